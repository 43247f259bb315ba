"""One correct pipeline: what it is modelled on, how it is run, and what must come of that."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from adk_fluent.ir import LoopNode, MapOverNode, Node, ParallelNode, RaceNode, RouteNode, walk
from adk_fluent.testing import Script, rule

if TYPE_CHECKING:
    from adk_fluent.builders import Builder
    from adk_fluent.testing import Asked

#: What an agent answers: replies in order, or, for one that runs several times at once, replies by
#: a text that its instruction holds.
Replies = Sequence[Any] | Mapping[str, Sequence[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A correct pipeline: it passes every check, and it runs.

    Attributes:
        name: What it is called in the tests.
        source: The public sample whose topology it has: repository and path.
        pipeline: Makes it.
        message: What the user says.
        state: What the session holds when the run begins.
        inputs: Keys that must have a value then.
        replies: What each agent's model answers, by the agent's name; all of it is asked for, and
            who is not listed is never asked.
        answers: What people answer to the gates, in order.
        text: The answer.
        after: Values of state afterwards, by key.
    """

    name: str
    source: str
    pipeline: Callable[[], Builder]
    message: str = "Go."
    state: Mapping[str, Any] = field(default_factory=dict[str, Any])
    inputs: tuple[str, ...] = ()
    replies: Mapping[str, Replies] = field(default_factory=dict[str, Replies])
    answers: tuple[Any, ...] = ()
    text: str | None = None
    after: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def mixes(self) -> bool:
        """Whether the pipeline has a route, a loop and something parallel."""
        return mixes(self.pipeline().to_ir())


def mixes(root: Node) -> bool:
    """Whether a pipeline has a route, a loop and something parallel."""
    kinds = {type(node) for node in walk(root)}
    forks = {ParallelNode, MapOverNode, RaceNode}
    return {RouteNode, LoopNode} <= kinds and bool(kinds & forks)


def script(replies: Replies) -> Script:
    """The script of one agent."""
    if not isinstance(replies, Mapping):
        return Script(*replies)
    return Script(
        rules=[
            rule(lambda asked, text=text: text in asked.system, reply=reply, times=1)
            for text, several in replies.items()
            for reply in several
        ]
    )


def count(replies: Replies) -> int:
    """How many replies these are."""
    if isinstance(replies, Mapping):
        return sum(len(several) for several in replies.values())
    return len(replies)


def data(**fields: Any) -> str:
    """The answer of an agent that writes several keys, or one that is not text."""
    return json.dumps(fields)


def told(*texts: str, says: Any) -> Callable[[Asked], Any]:
    """A reply of an agent whose instruction must hold some texts: what others wrote to state."""

    def answer(asked: Asked) -> Any:
        missing = [text for text in texts if text not in asked.system]
        assert not missing, f"{asked.agent} was not told {missing}: {asked.system}"
        return says

    return answer

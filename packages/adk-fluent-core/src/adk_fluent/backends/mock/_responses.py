"""What scripted agents answer, in the forms a user may give it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from adk_fluent._scripts._replies import Asked, Call, Reply, rule
from adk_fluent._scripts._script import Script
from adk_fluent.errors import UsageError

if TYPE_CHECKING:
    from adk_fluent._scripts._replies import Answer

#: A text is said, a mapping written to state, a tool called, each time; a list is given one after
#: the other; a function gets the prompt's text and returns one of these.
Response: TypeAlias = (
    str
    | Mapping[str, Any]
    | Call
    | Reply
    | Exception
    | Script
    | Sequence[Any]
    | Callable[[str], Any]
)


@dataclass(frozen=True, slots=True)
class Writes:
    """A part of a reply that writes state.

    Attributes:
        delta: What it writes.
    """

    delta: Mapping[str, Any]


def script_of(response: Response) -> Script:
    """The script that a response stands for.

    Raises:
        UsageError: It is nothing an agent can answer.
    """
    if isinstance(response, Script):
        return response
    if isinstance(response, (list, tuple)):
        return Script(*map(_answer, cast("Sequence[Any]", response)))
    # as the reply of a rule, so that None is refused instead of taken for no default
    return Script(rules=[rule(reply=_answer(response))])


def _answer(response: Any) -> Answer:
    if isinstance(response, Mapping):
        delta = dict(cast("Mapping[Any, Any]", response))
        for key in delta:
            if not isinstance(key, str):
                raise UsageError(
                    f"a state key is a str, not {key!r}", help="a mapping answers with state"
                )
        return Reply(parts=(Writes(delta),))
    if callable(response) and not isinstance(response, type):
        return _ByPrompt(response)
    return response


class _ByPrompt:
    """A function of the prompt as a function of all that a script is told."""

    def __init__(self, function: Callable[[str], Any]) -> None:
        self._function = function

    def __call__(self, asked: Asked) -> Any:
        answer = self._function(asked.prompt)
        return self._later(answer) if inspect.isawaitable(answer) else _answer(answer)

    async def _later(self, answer: Awaitable[Any]) -> Any:
        return _answer(await answer)


@dataclass(frozen=True, slots=True)
class Conditional:
    """A script for one agent and certain prompts.

    Attributes:
        agent: Name of the agent.
        contains: What its prompt has to contain; None is any prompt.
        script: What it answers.
    """

    agent: str
    contains: str | None
    script: Script

    def applies(self, agent: str, prompt: str) -> bool:
        """Whether it is for this agent and prompt."""
        return self.agent == agent and (
            self.contains is None or self.contains.casefold() in prompt.casefold()
        )

"""What a scripted agent is asked: its instruction and what of the conversation it sees."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from adk_fluent.ir import AgentNode
from adk_fluent.protocol import compose_answer, kept_events
from adk_fluent.testing import Turn

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from adk_fluent.ir import Node
    from adk_fluent.protocol import AgentEvent

USER: Final = "user"
_PLACEHOLDER: Final = re.compile(r"(?<![\$\{\\]){+[^{}]*}+")


def instruction(node: Node, state: Mapping[str, object]) -> str:
    """An agent's instruction with its placeholders filled, as ADK does; "" if it is a function.

    Raises:
        KeyError: State has nothing for a placeholder that is not optional.
    """
    if not isinstance(node, AgentNode) or not isinstance(node.instruction, str):
        return ""

    def value(found: re.Match[str]) -> str:
        name = found.group().lstrip("{").rstrip("}").strip()
        key = name.removesuffix("?")
        if not _is_key(key):
            return found.group()
        if key == name and key not in state:
            raise KeyError(f"Context variable not found: `{key}`.")
        held = state.get(key)
        return "" if held is None else str(held)

    return _PLACEHOLDER.sub(value, node.instruction)


def _is_key(name: str) -> bool:
    scope, _, rest = name.rpartition(":")
    return rest.isidentifier() and scope in ("", "app", "user", "temp")


def visible(
    events: Iterable[AgentEvent], run: str, attempt: str | None, still_open: Collection[str]
) -> list[AgentEvent]:
    """What was said, but for discarded attempts and branches that still run beside this one.

    Args:
        events: All events of the session.
        run: The run that asks.
        attempt: The scopes it asks from.
        still_open: The scopes that are open.
    """
    own = set((attempt or "").split("."))

    def is_beside(event: AgentEvent) -> bool:
        scopes = () if event.attempt is None else event.attempt.split(".")
        return event.run_id == run and any(s in still_open and s not in own for s in scopes)

    return [e for e in kept_events(events) if e.content is not None and not is_beside(e)]


def turns(
    node: Node, events: Iterable[AgentEvent], run: str, path: str, message: str
) -> tuple[Turn, ...]:
    """The conversation as an agent sees it, given what is visible to it.

    Args:
        node: The agent; its `history` decides.
        events: What is visible.
        run: The run that asks.
        path: The agent's position.
        message: What the user said.
    """
    history = node.history if isinstance(node, AgentNode) else "transcript"
    if history == "none":
        return ()
    if history == "input":
        before = compose_answer(
            (event.path, event.content or "")
            for event in events
            if event.run_id == run and event.is_final and event.path is not None
            if event.path != path
        )
        return (Turn(USER, before or message),)
    every = (_turn(node.name, event) for event in events)
    shown = (each for each, is_own in every if is_own or history == "transcript")
    return tuple(shown)


def _turn(agent: str, event: AgentEvent) -> tuple[Turn, bool]:
    """An event as a turn, and whether it is the user's or the agent's own."""
    text = event.content or ""
    if event.author == USER:
        return Turn(USER, text), True
    if event.author == agent:
        return Turn("model", text), True
    return Turn(USER, f"For context:\n[{event.author}] said: {text}"), False

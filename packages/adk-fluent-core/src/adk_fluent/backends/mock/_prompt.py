"""What a scripted agent is asked: its instruction and what of the conversation it sees."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any, Final

from adk_fluent._scripts._replies import Turn
from adk_fluent.backends._declared_order import in_declared_order
from adk_fluent.ir import AgentNode
from adk_fluent.protocol import AgentEvent, compose_answer, kept_events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from adk_fluent.ir import Node
    from adk_fluent.protocol import ToolResponseInfo

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


def said(message: str, run: str) -> AgentEvent:
    """What the user says at the beginning of a run, as the session keeps it."""
    metadata = {"run": run}
    return AgentEvent(USER, message, timestamp=time.time(), invocation_id=run, metadata=metadata)


def visible(
    events: Iterable[AgentEvent], run: str, attempt: str | None, is_open: Callable[[str], bool]
) -> list[AgentEvent]:
    """What was said, but for discarded attempts and branches that still run beside this one.

    What branches of a fork said stands in declared order.

    Args:
        events: All events of the session.
        run: The run that asks.
        attempt: The scopes it asks from.
        is_open: Whether a scope is open.
    """
    own = set((attempt or "").split("."))

    def is_beside(event: AgentEvent) -> bool:
        scopes = () if event.attempt is None else event.attempt.split(".")
        return event.run_id == run and any(s not in own and is_open(s) for s in scopes)

    seen = [e for e in kept_events(events) if _says(e) and not is_beside(e)]
    return in_declared_order(seen, _place)


def _place(event: AgentEvent) -> tuple[str, str] | None:
    if event.author == USER or event.path is None:
        return None
    return event.run_id or "", event.path


def _says(event: AgentEvent) -> bool:
    return event.content is not None or bool(event.tool_calls or event.tool_responses)


def turns(
    node: Node, events: Sequence[AgentEvent], run: str, path: str, message: str
) -> tuple[Turn, ...]:
    """The conversation as an agent sees it, given what is visible to it.

    Args:
        node: The agent; its `history` decides.
        events: What is visible.
        run: The run that asks.
        path: The agent's position.
        message: What the user said.
    """
    # nobody else, and nobody later, sees an answer that its agent was asked to give again
    events = [e for e in events if "retried" not in e.metadata or (e.run_id, e.path) == (run, path)]
    history = node.history if isinstance(node, AgentNode) else "transcript"
    view = _View(node.name, events)
    if history in ("none", "input"):
        now = [e for e in events if e.run_id == run and e.path == path]
        own = [turn for e in now if (turn := view.own(e)) is not None]
        if history == "none":
            return tuple(own)
        before = compose_answer(
            (event.path, event.content or "")
            for event in events
            if event.run_id == run and event.is_final and event.path is not None
            if event.path != path
        )
        return (Turn(USER, before or message), *own)
    other = view.other if history == "transcript" else _nothing
    seen = (view.users(e) or view.own(e) or other(e) for e in events)
    return tuple(turn for turn in seen if turn is not None)


def _nothing(event: AgentEvent) -> None:
    """What others said, where nobody is shown it."""


class _View:
    """Events as one agent sees them.

    A call that waited has several results. Who called sees the last one, where the first one stood;
    others see the last one where it stands.
    """

    def __init__(self, agent: str, events: Iterable[AgentEvent]) -> None:
        self._agent = agent
        self._calls: set[str | None] = set()
        self._results: dict[str | None, ToolResponseInfo] = {}
        self._last: dict[str | None, ToolResponseInfo] = {}
        self._shown: dict[str | None, int] = {}  # where: the event's identity
        for event in events:
            if event.author == agent:
                self._calls.update(call.call_id for call in event.tool_calls)
            for each in event.tool_responses:
                self._last[each.call_id] = each
                if each.call_id in self._calls:
                    self._results[each.call_id] = each
                    self._shown.setdefault(each.call_id, id(event))

    def users(self, event: AgentEvent) -> Turn | None:
        """What the user said, and the results of this agent's calls that come from outside."""
        if event.author != USER:
            return None
        return self._told(event) if event.tool_responses else Turn(USER, event.content or "")

    def own(self, event: AgentEvent) -> Turn | None:
        """What the agent said itself, called, and was told."""
        if event.author == USER and event.tool_responses:
            return self._told(event)
        if event.author != self._agent:
            return None
        if event.tool_responses:
            return self._told(event)
        calls = [f"[call {call.tool_name} {_json(call.args)}]" for call in event.tool_calls]
        return Turn("model", "\n".join([*_text(event), *calls]))

    def other(self, event: AgentEvent) -> Turn | None:
        """What another agent said and did, as ADK tells of it."""
        if event.author in (USER, self._agent):
            return None
        who = f"[{event.author}]"
        lines = [f"{who} said: {text}" for text in _text(event)]
        lines += [
            f"{who} called tool `{call.tool_name}` with parameters: {call.args}"
            for call in event.tool_calls
        ]
        lines += [
            f"{who} `{each.tool_name}` tool returned result: {each.result}"
            for each in event.tool_responses
            if self._last[each.call_id] is each
        ]
        if event.tool_responses and not lines:
            return None
        return Turn(USER, "\n".join(["For context:", *lines]))

    def _told(self, event: AgentEvent) -> Turn | None:
        told = [
            self._results[each.call_id]
            for each in event.tool_responses
            if self._shown.get(each.call_id) == id(event)
        ]
        lines = [f"[result {each.tool_name} {_json(each.result)}]" for each in told]
        return Turn(USER, "\n".join(lines)) if lines else None


def _text(event: AgentEvent) -> list[str]:
    return [] if event.content is None else [event.content]


def _json(value: Any) -> str:
    return json.dumps(value or {}, default=str, ensure_ascii=False)

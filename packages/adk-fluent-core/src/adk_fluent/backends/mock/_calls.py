"""What comes of the calls in a model's reply: results, questions, and who goes on."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.backends._answers import answer_of
from adk_fluent.backends.mock._tools import (
    EXIT,
    TRANSFER,
    agent_tools_of,
    is_flow,
    is_long_running,
    may_call,
    must_confirm,
    steps_of,
    tool_names,
)
from adk_fluent.protocol import Pending, ToolResponseInfo

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping

    from adk_fluent.ir import Node
    from adk_fluent.protocol import ToolCallInfo

    #: Runs an agent that is a tool; gives its result and what it wrote.
    CallAgent = Callable[[Node, Mapping[str, Any]], Awaitable[tuple[Any, dict[str, Any]]]]

# What models and people are told; ADK says the same in words of its own.
_ASKS: Final = "May {}() be called?"
_WAITS: Final = {"error": "a person has to approve this call first"}
_REJECTED: Final = {"error": "a person refused this call"}
_UNKNOWN: Final = "there is no tool {}(); the tools that can be called: {}"
_LACKS: Final = "{}() was called without {}"
_NOTHING: Final[Mapping[str, Any]] = {"result": None}


@dataclass(slots=True)
class Outcome:
    """What came of the calls of one reply.

    Attributes:
        results: What the model is told.
        writes: State that agents wrote which are tools.
        asked: Confirmations that are asked for, each with its call.
        hands_over: The name of who goes on.
        escalates: Whether the nearest loop ends.
        settled: Whether the model is told anything that it can go on with.
    """

    results: list[ToolResponseInfo] = field(default_factory=list[ToolResponseInfo])
    writes: dict[str, Any] = field(default_factory=dict[str, Any])
    asked: list[tuple[Pending, ToolCallInfo]] = field(
        default_factory=list["tuple[Pending, ToolCallInfo]"]
    )
    hands_over: str | None = None
    escalates: bool = False
    settled: bool = False


def new_id(name: str) -> str:
    """An id that no other call and no other question has."""
    return f"{name}-{uuid.uuid4().hex[:12]}"


def long_running(agent: Node, calls: Iterable[ToolCallInfo]) -> tuple[Pending, ...]:
    """What is asked with the calls themselves: results that come later."""
    return tuple(
        Pending(call.call_id or "", "tool", call.tool_name, agent.name, payload=dict(call.args))
        for call in calls
        if is_long_running(agent, call.tool_name)
    )


async def outcome_of(
    agent: Node, calls: Iterable[ToolCallInfo], targets: Collection[str], call_agent: CallAgent
) -> Outcome:
    """What comes of the calls in a reply.

    Tools are not called: each is as good as one that returns nothing.

    Args:
        agent: Whose reply it is.
        calls: Its calls.
        targets: Names of whom it may hand over to.
        call_agent: Runs an agent that is a tool.
    """
    made = Outcome()
    agents = agent_tools_of(agent)
    for call in calls:
        name, result = call.tool_name, _NOTHING
        if is_long_running(agent, name):
            continue
        if name == TRANSFER:
            result = _transfer(agent, call.args, targets, made)
        elif name == EXIT:
            made.escalates = True
        elif name in agents:
            returned, writes = await call_agent(agents[name], call.args)
            result = as_result(returned)
            made.writes.update(writes)
        elif not may_call(agent, name):
            result = {"error": _UNKNOWN.format(name, _callable(agent, targets))}
        elif await must_confirm(agent, name, call.args):
            asked = Pending(
                new_id(name),
                "confirmation",
                name,
                agent.name,
                _ASKS.format(name),
                dict(call.args),
            )
            made.asked.append((asked, call))
            made.results.append(ToolResponseInfo(name, dict(_WAITS), call.call_id))
            continue
        made.settled = True
        made.results.append(ToolResponseInfo(name, dict(result), call.call_id))
    return made


def confirmed(call: ToolCallInfo, *, approved: bool) -> ToolResponseInfo:
    """What the model is told of a call that a person decided about."""
    return ToolResponseInfo(call.tool_name, dict(_NOTHING if approved else _REJECTED), call.call_id)


def as_result(value: Any) -> Mapping[str, Any]:
    """What a tool returned, as models are told it."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {"result": value}


def request_of(node: Node, args: Mapping[str, Any]) -> str:
    """What an agent that is a tool is told, given what it was called with."""
    schema: Any = getattr(node, "input_schema", None)
    if schema is not None:
        return schema.value.model_validate(dict(args)).model_dump_json(exclude_none=True)
    if "request" in args:
        return str(args["request"])
    return json.dumps(dict(args), ensure_ascii=False, sort_keys=True)


def result_of(node: Node, text: str, error: str) -> Any:
    """What an agent that is a tool returns: data if its last agent has a schema.

    Args:
        node: The agent, or the pipeline.
        text: What was said last.
        error: The last error that was reported; the newest ADK tells it where nothing is said.
    """
    last = [each for each in steps_of(node) if not is_flow(each)][-1:]
    answer = answer_of(last[0]) if last else None
    if not text or answer is None or not answer.is_typed:
        return text or error
    from pydantic import TypeAdapter  # noqa: PLC0415  # slow, and only schemas need it

    adapter = TypeAdapter[Any](answer.schema)
    return adapter.dump_python(adapter.validate_json(text), exclude_none=True)


def _transfer(
    agent: Node, args: Mapping[str, Any], targets: Collection[str], made: Outcome
) -> Mapping[str, Any]:
    if not targets:
        return {"error": _UNKNOWN.format(TRANSFER, _callable(agent, targets))}
    if "agent_name" not in args:
        return {"error": _LACKS.format(TRANSFER, "agent_name")}
    made.hands_over = str(args["agent_name"])
    return _NOTHING


def _callable(agent: Node, targets: Collection[str]) -> str:
    names = (*((TRANSFER,) if targets else ()), *tool_names(agent))
    return ", ".join(names) or "none"

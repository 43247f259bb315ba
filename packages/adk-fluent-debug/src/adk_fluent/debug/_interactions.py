"""The calls of models, tools and remote agents on a tape."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from adk_fluent.protocol import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Data = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction:
    """A call.

    Attributes:
        agent_name: The agent that called, or the remote agent that was called.
        branch: ADK's branch, dotted.
        error: What it raised, ``type`` and ``message``; None if nothing.
        cancelled: It was cancelled before it had answered.
        latency_ms: Milliseconds until it had answered.
        entry: Where it stands in its run's `RecordedRun.tape`.
    """

    agent_name: str = ""
    branch: str | None = None
    error: Data | None = None
    cancelled: bool = False
    latency_ms: float = 0.0
    entry: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMInteraction(Interaction):
    """A call of a model.

    Attributes:
        model: The model that was asked.
        request: What it was asked: ``contents``, ``config``; identities of calls are numbers.
        chunks: Fragments of a streamed answer, as ADK's LlmResponse in JSON.
        responses: The answer, in the same form.
        usage: Tokens of the call; None when the model did not say.
    """

    model: str = ""
    request: Data = field(default_factory=dict[str, Any])
    chunks: list[Data] = field(default_factory=list[Data])
    responses: list[Data] = field(default_factory=list[Data])
    usage: Usage | None = None

    @property
    def request_content(self) -> list[Data]:
        """What was said to the model, as ADK's Content in JSON."""
        return self.request.get("contents", [])

    @property
    def response_content(self) -> list[Data]:
        """What the model said, as ADK's Content in JSON."""
        return [each["content"] for each in self.responses if each.get("content")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolInteraction(Interaction):
    """A call of a tool.

    Attributes:
        tool_name: The tool.
        call_id: Identity of the call.
        args: Its arguments.
        result: What it returned.
        effects: What it did to state and to ADK's EventActions: ``state_delta``, ``escalate``, ...
    """

    tool_name: str
    call_id: str | None = None
    args: Data = field(default_factory=dict[str, Any])
    result: Any = None
    effects: Data = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteInteraction(Interaction):
    """A call of a remote agent.

    Attributes:
        asked: What it was asked: the ``parts`` of the message, and to what task it belongs.
        chunks: Fragments of its answer, as ADK's Event in JSON.
        responses: Its answer, in the same form, with what it writes to state.
    """

    asked: Data = field(default_factory=dict[str, Any])
    chunks: list[Data] = field(default_factory=list[Data])
    responses: list[Data] = field(default_factory=list[Data])


def interactions(tape: Sequence[Data]) -> Iterator[Interaction]:
    """The calls on a tape, in the order in which they began, without requests never sent."""
    ends: dict[int, Data] = {}
    chunks: dict[int, list[Data]] = {}
    for each in tape:
        if "chunk_of" in each:
            chunks.setdefault(each["chunk_of"], []).append(each["response"])
        elif "reply_of" in each or "result_of" in each:
            ends[each["reply_of" if "reply_of" in each else "result_of"]] = each
    for at, entry in enumerate(tape):
        number = entry.get("model_call", entry.get("tool_call", entry.get("remote_call")))
        if number is None:
            continue
        end = ends.get(number, {"cancelled": True})
        if end.get("unsent"):
            continue
        common: Data = {
            "agent_name": entry["agent"],
            "branch": entry.get("branch"),
            "error": end.get("error"),
            "cancelled": bool(end.get("cancelled")),
            "latency_ms": _between(entry, end),
            "entry": at,
        }
        if "tool_call" in entry:
            yield ToolInteraction(
                tool_name=entry["tool"],
                call_id=entry.get("call_id"),
                args=entry.get("args", {}),
                result=end.get("result"),
                effects=end.get("effects", {}),
                **common,
            )
            continue
        common |= {"chunks": chunks.get(number, []), "responses": end.get("responses", [])}
        if "remote_call" in entry:
            yield RemoteInteraction(asked=entry.get("args", {}), **common)
        else:
            yield LLMInteraction(
                model=entry.get("model", ""),
                request=entry.get("request", {}),
                usage=_usage(common["responses"]),
                **common,
            )


def called(call: Interaction) -> str:
    """What was called, and by whom, in a few words."""
    if isinstance(call, ToolInteraction):
        return f"{call.agent_name}: {call.tool_name}"
    return f"{call.agent_name}: {'agent' if isinstance(call, RemoteInteraction) else 'model'}"


def _between(start: Data, end: Data) -> float:
    return round(end.get("t", start.get("t", 0.0)) - start.get("t", 0.0), 3)


def _usage(responses: list[Data]) -> Usage | None:
    """Tokens of a call: the last count is that of all."""
    for each in reversed(responses):
        counts = each.get("usage_metadata")
        if counts:
            return Usage(
                prompt=counts.get("prompt_token_count") or 0,
                cached=counts.get("cached_content_token_count") or 0,
                output=counts.get("candidates_token_count") or 0,
                thoughts=counts.get("thoughts_token_count") or 0,
                tool=counts.get("tool_use_prompt_token_count") or 0,
            )
    return None

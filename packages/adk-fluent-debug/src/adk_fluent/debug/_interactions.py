"""The calls of models and tools on a tape."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from adk_fluent.protocol import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Data = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMInteraction:
    """A call of a model.

    Attributes:
        agent_name: The agent that called it.
        branch: ADK's branch, dotted.
        model: The model that was asked.
        request: What it was asked: ``contents``, ``config``; identities of calls are numbers.
        chunks: Fragments of a streamed answer, as ADK's LlmResponse in JSON.
        responses: The answer, in the same form.
        usage: Tokens of the call; None when the model did not say.
        error: What it raised, ``type`` and ``message``; None if nothing.
        cancelled: It was cancelled before it had answered.
        latency_ms: Milliseconds until it had answered.
        entry: Where it stands in its run's `RecordedRun.tape`.
    """

    agent_name: str
    branch: str | None = None
    model: str = ""
    request: Data = field(default_factory=dict[str, Any])
    chunks: list[Data] = field(default_factory=list[Data])
    responses: list[Data] = field(default_factory=list[Data])
    usage: Usage | None = None
    error: Data | None = None
    cancelled: bool = False
    latency_ms: float = 0.0
    entry: int = 0

    @property
    def request_content(self) -> list[Data]:
        """What was said to the model, as ADK's Content in JSON."""
        return self.request.get("contents", [])

    @property
    def response_content(self) -> list[Data]:
        """What the model said, as ADK's Content in JSON."""
        return [each["content"] for each in self.responses if each.get("content")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolInteraction:
    """A call of a tool.

    Attributes:
        tool_name: The tool.
        agent_name: The agent that called it.
        branch: ADK's branch, dotted.
        call_id: Identity of the call.
        args: Its arguments.
        result: What it returned.
        effects: What it did to state and to ADK's EventActions: ``state_delta``, ``escalate``, ...
        error: What it raised, ``type`` and ``message``; None if nothing.
        cancelled: It was cancelled before it had returned.
        latency_ms: Milliseconds until it had returned.
        entry: Where it stands in its run's `RecordedRun.tape`.
    """

    tool_name: str
    agent_name: str = ""
    branch: str | None = None
    call_id: str | None = None
    args: Data = field(default_factory=dict[str, Any])
    result: Any = None
    effects: Data = field(default_factory=dict[str, Any])
    error: Data | None = None
    cancelled: bool = False
    latency_ms: float = 0.0
    entry: int = 0


def models(tape: Sequence[Data]) -> Iterator[LLMInteraction]:
    """The model calls on a tape, without those that were never sent."""
    ends = {each["reply_of"]: each for each in tape if "reply_of" in each}
    chunks: dict[int, list[Data]] = {}
    for each in tape:
        if "chunk_of" in each:
            chunks.setdefault(each["chunk_of"], []).append(each["response"])
    for at, entry in enumerate(tape):
        if "model_call" not in entry:
            continue
        number = entry["model_call"]
        end = ends.get(number, {"cancelled": True})
        if end.get("unsent"):
            continue
        yield LLMInteraction(
            agent_name=entry["agent"],
            branch=entry.get("branch"),
            model=entry.get("model", ""),
            request=entry.get("request", {}),
            chunks=chunks.get(number, []),
            responses=end.get("responses", []),
            usage=_usage(end.get("responses", [])),
            error=end.get("error"),
            cancelled=bool(end.get("cancelled")),
            latency_ms=_between(entry, end),
            entry=at,
        )


def tools(tape: Sequence[Data]) -> Iterator[ToolInteraction]:
    """The tool calls on a tape."""
    ends = {each["result_of"]: each for each in tape if "result_of" in each}
    for at, entry in enumerate(tape):
        if "tool_call" not in entry:
            continue
        end = ends.get(entry["tool_call"], {"cancelled": True})
        yield ToolInteraction(
            tool_name=entry["tool"],
            agent_name=entry["agent"],
            branch=entry.get("branch"),
            call_id=entry.get("call_id"),
            args=entry.get("args", {}),
            result=end.get("result"),
            effects=end.get("effects", {}),
            error=end.get("error"),
            cancelled=bool(end.get("cancelled")),
            latency_ms=_between(entry, end),
            entry=at,
        )


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

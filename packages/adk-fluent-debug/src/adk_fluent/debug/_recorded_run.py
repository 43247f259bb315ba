"""A recorded run, and the calls of models, tools and remote agents on its tape."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from adk_fluent.debug._errors import PipelineMismatchError
from adk_fluent.errors import UsageError
from adk_fluent.ir import content_hash, walk
from adk_fluent.protocol import AgentEvent, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from adk_fluent.ir import Node

Data = dict[str, Any]

_Call = TypeVar("_Call", bound="Interaction")
#: Stands in the place of content that was not captured.
LEFT_OUT: Final = "[not recorded]"
#: What an entry has that begins a call, or ends it: its number.
BEGIN: Final = ("model_call", "tool_call", "remote_call")
END: Final = ("reply_of", "result_of")
#: What entries of calls have.
OF_CALLS: Final = (*BEGIN, "chunk_of", *END)


def counted(number: int, what: str) -> str:
    """A number of things, in words: ``1 run``, ``2 runs``."""
    return f"{number} {what}{'' if number == 1 else 's'}"


class RecordedRun:
    """One run of a recording.

    Args:
        data: The run as it stands in the file.

    Attributes:
        data: The same.
        tape: Everything that happened, in order; ``t`` is milliseconds since the run began.
        message: What the user said, as ADK's Content in JSON.
        answers: What a run that goes on was answered: ``id``, ``name`` and ``response`` of each.
        resumed: It goes on after a pause.
        session_id: The session it ran in.
        state: Session state when it began; None if that was not captured.
        spans: Its spans: ``name``, ``start``, ``end`` (milliseconds since it began),
            ``attributes``.
        status: How it ended: ``completed``, ``waiting``, ``failed``, ``cancelled``; "" if cut off.
        ir_hash: `adk_fluent.ir.content_hash` of the pipeline.
    """

    def __init__(self, data: Data) -> None:
        self.data: Data = data
        self.tape: list[Data] = data["tape"]
        self.message: Data | None = data.get("message")
        self.answers: list[Data] = data.get("answers", [])
        self.resumed: bool = bool(data.get("resumed"))
        self.session_id: str = data.get("session_id", "")
        self.state: Data | None = data.get("state")
        self.spans: list[Data] = data.get("spans", [])
        self.status: str = data.get("status", "")
        self.ir_hash: str = data.get("pipeline", {}).get("hash", "")

    @property
    def states(self) -> Iterator[Data]:
        """Session state after each of its events.

        Raises:
            UsageError: State was not captured.
        """
        if self.state is None:
            raise UsageError(
                "this recording has no state",
                found="it was recorded with capture_state=False or capture_content=False",
                help="Recorder(capture_state=True)",
            )
        state = dict(self.state)
        for event in self.events:
            if not event.is_partial:
                state.update(event.state_delta)
            yield {key: value for key, value in state.items() if value is not None}

    @cached_property
    def events(self) -> list[AgentEvent]:
        """Its events; what agents did that a tool ran is on the tape alone."""
        ours = (each["event"] for each in self.tape if "event" in each and "within" not in each)
        return [AgentEvent.from_dict(each) for each in ours]

    @cached_property
    def calls(self) -> list[Interaction]:
        """Its calls, in the order in which they began."""
        return calls_on(self.tape)

    @property
    def interactions(self) -> list[Interaction]:
        """Its calls without those that were refused before anything was sent."""
        return [each for each in self.calls if each.sent]


class Recorded:
    """What was recorded, to be looked at; see `Recording`."""

    def __init__(self, runs: Sequence[RecordedRun], metadata: Mapping[str, Any]) -> None:
        self.runs: list[RecordedRun] = list(runs)
        self.metadata: Data = dict(metadata)
        self.path: Path | None = None
        self.edited: bool = False

    def __repr__(self) -> str:
        runs = counted(len(self.runs), "run")
        calls = counted(len(self.llm_interactions), "model call")
        tools = counted(len(self.tool_interactions), "tool call")
        remote = len(self.remote_interactions)
        also = f", {counted(remote, 'call')} of remote agents" if remote else ""
        return f"<Recording: {runs}, {calls}, {tools}{also}>"

    @property
    def pipeline_ir_hash(self) -> str:
        """`adk_fluent.ir.content_hash` of the first run's pipeline; "" when there is no run."""
        return self.runs[0].ir_hash if self.runs else ""

    @property
    def events(self) -> list[AgentEvent]:
        """The events of all runs, in order."""
        return [event for run in self.runs for event in run.events]

    @property
    def llm_interactions(self) -> list[LLMInteraction]:
        """The model calls of all runs."""
        return self._of(LLMInteraction)

    @property
    def tool_interactions(self) -> list[ToolInteraction]:
        """The tool calls of all runs."""
        return self._of(ToolInteraction)

    @property
    def remote_interactions(self) -> list[RemoteInteraction]:
        """The calls of remote agents of all runs."""
        return self._of(RemoteInteraction)

    def _of(self, kind: type[_Call]) -> list[_Call]:
        calls = (each for run in self.runs for each in run.interactions)
        return [each for each in calls if isinstance(each, kind)]

    def get_llm_interactions(self) -> list[LLMInteraction]:
        """The same as `llm_interactions`."""
        return self.llm_interactions

    def get_tool_interactions(self) -> list[ToolInteraction]:
        """The same as `tool_interactions`."""
        return self.tool_interactions

    @property
    def state_snapshots(self) -> list[Data]:
        """Session state after each event, as `state_at` gives it.

        Raises:
            UsageError: State was not captured.
        """
        return [state for run in self.runs for state in run.states]

    def state_at(self, index: int) -> Data:
        """Session state after an event.

        Args:
            index: Which of `events`; negative numbers count from the end.

        Raises:
            UsageError: State was not captured, or there is no such event.
        """
        states = self.state_snapshots
        if not isinstance(index, int) or not -len(states) <= index < len(states):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers may be untyped
            raise UsageError(
                f"the recording has no event {index!r}",
                found=f"it has {counted(len(states), 'event')}",
                help="an index of recording.events",
            )
        return states[index]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction:
    """A call.

    Attributes:
        agent_name: The agent that called, or the remote agent that was called.
        branch: ADK's branch, dotted.
        asked: What was asked: a request, the arguments of a tool, or the ``parts`` of the message
            to a remote agent and to what task it belongs.
        error: What it raised, ``type`` and ``message``; None if nothing.
        cancelled: It was cancelled before it had answered.
        sent: It was not refused before it was made, as by a budget.
        latency_ms: Milliseconds until it had answered.
        entry: Where it stands in its run's `RecordedRun.tape`.
        parts: Where the fragments of its answer stand.
        end: Where its end stands; None if it never ended.
    """

    agent_name: str = ""
    branch: str | None = None
    asked: Data = field(default_factory=dict[str, Any])
    error: Data | None = None
    cancelled: bool = False
    sent: bool = True
    latency_ms: float = 0.0
    entry: int = 0
    parts: tuple[int, ...] = ()
    end: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMInteraction(Interaction):
    """A call of a model.

    Attributes:
        model: The model that was asked.
        chunks: Fragments of a streamed answer, as ADK's LlmResponse in JSON.
        responses: The answer, in the same form.
        usage: Tokens of the call; None when the model did not say.
        first_chunk_ms: Milliseconds until the first fragment came; None if none did.
    """

    model: str = ""
    chunks: list[Data] = field(default_factory=list[Data])
    responses: list[Data] = field(default_factory=list[Data])
    usage: Usage | None = None
    first_chunk_ms: float | None = None

    @property
    def request(self) -> Data:
        """What it was asked: ``contents``, ``config``; identities of calls are numbers."""
        return self.asked

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
        result: What it returned.
        effects: What it did to state and to ADK's EventActions: ``state_delta``, ``escalate``, ...
    """

    tool_name: str
    call_id: str | None = None
    result: Any = None
    effects: Data = field(default_factory=dict[str, Any])

    @property
    def args(self) -> Data:
        """Its arguments."""
        return self.asked


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteInteraction(Interaction):
    """A call of a remote agent.

    Attributes:
        chunks: Fragments of its answer, as ADK's Event in JSON.
        responses: Its answer, in the same form, with what it writes to state.
    """

    chunks: list[Data] = field(default_factory=list[Data])
    responses: list[Data] = field(default_factory=list[Data])


def number_of(entry: Data, keys: Sequence[str] = BEGIN) -> int | None:
    """The number of the call that an entry begins, or is part of; None if it does not."""
    return next((entry[key] for key in keys if key in entry), None)


def calls_on(tape: Sequence[Data]) -> list[Interaction]:
    """The calls on a tape, in the order in which they began."""
    begun: dict[int, int] = {}
    parts: dict[int, list[int]] = {}
    ends: dict[int, int] = {}
    for index, entry in enumerate(tape):
        if (number := number_of(entry)) is not None:
            begun[number], parts[number] = index, []
        elif entry.get("chunk_of") in begun:
            parts[entry["chunk_of"]].append(index)
        elif (of := number_of(entry, END)) in begun:
            ends[of] = index
    return [_call(tape, at, parts[each], ends.get(each)) for each, at in begun.items()]


def _call(tape: Sequence[Data], start: int, parts: list[int], stop: int | None) -> Interaction:
    entry = tape[start]
    end: Data = {"cancelled": True} if stop is None else tape[stop]
    begun = entry.get("t", 0.0)
    common: Data = {
        "agent_name": entry["agent"],
        "branch": entry.get("branch"),
        "asked": entry.get("request" if "model_call" in entry else "args", {}),
        "error": end.get("error"),
        "cancelled": bool(end.get("cancelled")),
        "sent": not end.get("unsent"),
        "latency_ms": round(end.get("t", begun) - begun, 3),
        "entry": start,
        "parts": tuple(parts),
        "end": stop,
    }
    if "tool" in entry:
        return ToolInteraction(
            tool_name=entry["tool"],
            call_id=entry.get("call_id"),
            result=end.get("result"),
            effects=end.get("effects", {}),
            **common,
        )
    common["chunks"] = [tape[index]["response"] for index in parts]
    common["responses"] = end.get("responses", [])
    if "remote_call" in entry:
        return RemoteInteraction(**common)
    return LLMInteraction(
        model=entry.get("model", ""),
        usage=_usage(common["responses"]),
        first_chunk_ms=round(tape[parts[0]].get("t", begun) - begun, 3) if parts else None,
        **common,
    )


def called(call: Interaction) -> str:
    """What was called, and by whom, in a few words."""
    if isinstance(call, ToolInteraction):
        return f"{call.agent_name}: {call.tool_name}"
    return f"{call.agent_name}: {'agent' if isinstance(call, RemoteInteraction) else 'model'}"


def _usage(responses: list[Data]) -> Usage | None:
    """Tokens of a call: the last count is that of all."""
    found = (each["usage_metadata"] for each in reversed(responses) if each.get("usage_metadata"))
    if (said := next(found, None)) is None:
        return None
    counts = {name: each for name, each in said.items() if isinstance(each, int)}
    return Usage.from_genai(SimpleNamespace(**counts))


def pipeline_data(root: Node) -> Data:
    """What a pipeline is told by: its hash, and the name, kind and hash of each node."""
    nodes = [
        {"name": each.name, "kind": type(each).__name__, "hash": content_hash(each)[:16]}
        for each in walk(root)
    ]
    return {"hash": content_hash(root), "nodes": nodes}


def check_pipeline(recorded: Data | None, now: Data) -> None:
    """Refuse to replay the recording of another pipeline.

    Args:
        recorded: The pipeline of the recording.
        now: The one that is run.

    Raises:
        PipelineMismatchError: They are not the same.
    """
    if recorded and recorded.get("hash") != now["hash"]:
        raise PipelineMismatchError(
            "this recording is of another pipeline than the one that is run",
            found=_changed(recorded.get("nodes", []), now["nodes"]),
            help="record again, or replay with on_mismatch='live'",
        )


def _changed(was: list[Data], has: list[Data]) -> str:
    """Which node has changed; of those nested in each other, the innermost."""
    before, after = ({each["name"]: each for each in nodes} for nodes in (was, has))
    parts = [f"{name!r} is gone" for name in before if name not in after]
    parts += [f"{name!r} is new" for name in after if name not in before]
    if parts:
        return "; ".join(parts)
    changed = [name for name in after if before[name] != after[name]]
    if not changed:
        return "the same nodes in another order"
    name = changed[-1]
    old, new = before[name]["kind"], after[name]["kind"]
    return f"{new} {name!r} has changed{'' if old == new else f' from {old}'}"

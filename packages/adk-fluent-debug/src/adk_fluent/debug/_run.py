"""A recorded run, and the calls of models, tools and remote agents on its tape."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, Protocol

from adk_fluent.debug._errors import PipelineMismatchError
from adk_fluent.errors import UsageError
from adk_fluent.ir import content_hash, walk
from adk_fluent.protocol import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from adk_fluent.ir import Node
    from adk_fluent.protocol import AgentEvent

Data = dict[str, Any]

#: Stands in the place of content that was not captured.
LEFT_OUT: Final = "[not recorded]"
#: What an entry has that begins a call: its number.
BEGIN: Final = ("model_call", "tool_call", "remote_call")


class RecordedRun:
    """One run of a recording.

    Args:
        data: The run as it stands in the file.
    """

    def __init__(self, data: Data) -> None:
        self.data: Data = data

    @property
    def tape(self) -> list[Data]:
        """Everything that happened, in order; ``t`` is milliseconds since the run began."""
        return self.data["tape"]

    @property
    def message(self) -> Data | None:
        """What the user said, as ADK's Content in JSON."""
        return self.data.get("message")

    @property
    def answers(self) -> list[Data]:
        """What a run that goes on was answered: ``id``, ``name`` and ``response`` of each."""
        return self.data.get("answers", [])

    @property
    def resumed(self) -> bool:
        """Whether it goes on after a pause."""
        return bool(self.data.get("resumed"))

    @property
    def session_id(self) -> str:
        """The session it ran in."""
        return self.data.get("session_id", "")

    @property
    def state(self) -> Data | None:
        """Session state when it began; None if that was not captured."""
        return self.data.get("state")

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

    @property
    def spans(self) -> list[Data]:
        """Its spans: ``name``, ``start``, ``end`` (milliseconds since it began), ``attributes``."""
        return self.data.get("spans", [])

    @property
    def status(self) -> str:
        """How it ended: ``completed``, ``waiting``, ``failed``, ``cancelled``; "" if cut off."""
        return self.data.get("status", "")

    @property
    def ir_hash(self) -> str:
        """`adk_fluent.ir.content_hash` of the pipeline."""
        return self.data.get("pipeline", {}).get("hash", "")

    @cached_property
    def events(self) -> list[AgentEvent]:
        """Its events; what agents did that a tool ran is on the tape alone."""
        from adk_fluent.protocol import AgentEvent  # noqa: PLC0415  # slow to import

        ours = (each["event"] for each in self.tape if "event" in each and "within" not in each)
        return [AgentEvent.from_dict(each) for each in ours]

    @cached_property
    def interactions(self) -> list[Interaction]:
        """Its calls, in the order in which they began, without requests that were never sent."""
        return list(interactions(self.tape))

    @property
    def llm_interactions(self) -> list[LLMInteraction]:
        """Its model calls."""
        return [each for each in self.interactions if isinstance(each, LLMInteraction)]

    @property
    def tool_interactions(self) -> list[ToolInteraction]:
        """Its tool calls."""
        return [each for each in self.interactions if isinstance(each, ToolInteraction)]

    @property
    def remote_interactions(self) -> list[RemoteInteraction]:
        """Its calls of remote agents."""
        return [each for each in self.interactions if isinstance(each, RemoteInteraction)]


class Recorded(Protocol):
    """A recording, as far as what shows one needs it; see `Recording`."""

    runs: list[RecordedRun]
    metadata: Data
    path: Path | None
    edited: bool

    @property
    def events(self) -> list[AgentEvent]:
        """The events of all runs, in order."""
        ...


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
        first_chunk_ms: Milliseconds until the first fragment came; None if none did.
    """

    model: str = ""
    request: Data = field(default_factory=dict[str, Any])
    chunks: list[Data] = field(default_factory=list[Data])
    responses: list[Data] = field(default_factory=list[Data])
    usage: Usage | None = None
    first_chunk_ms: float | None = None

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


def call_of(entry: Data, keys: Sequence[str] = BEGIN) -> int | None:
    """The number of the call that an entry begins, or is part of; None if it does not."""
    return next((entry[key] for key in keys if key in entry), None)


@dataclass(slots=True, eq=False)
class Taped:
    """A call on a tape.

    Attributes:
        entry: The entry where it begins.
        start: The index of that entry.
        asked: What is compared: the request, or the arguments.
        chunks: The indexes of the fragments of its answer.
        end: The index of the entry where it ends; None if it never did.
        used: A run has asked for it.
    """

    entry: Data
    start: int
    asked: Any
    chunks: list[int] = field(default_factory=list[int])
    end: int | None = None
    used: bool = False

    @property
    def agent(self) -> str:
        """The agent that makes it."""
        return self.entry["agent"]

    @property
    def tool(self) -> str | None:
        """The tool that is called; None if a model or an agent elsewhere is."""
        return self.entry.get("tool")

    def __str__(self) -> str:
        what = "agent" if "remote_call" in self.entry else "model"
        return f"{self.agent}: " + (f"tool {self.tool}" if self.tool else what)


def calls_on(tape: Sequence[Data]) -> list[Taped]:
    """The calls on a tape, in the order in which they began."""
    known: dict[Any, Taped] = {}
    for index, entry in enumerate(tape):
        if (number := call_of(entry)) is not None:
            asked = entry.get("request" if "model_call" in entry else "args", {})
            known[number] = Taped(entry, index, asked)
        elif entry.get("chunk_of") in known:
            known[entry["chunk_of"]].chunks.append(index)
        elif (of := entry.get("reply_of", entry.get("result_of"))) in known:
            known[of].end = index
    return list(known.values())


def interactions(tape: Sequence[Data]) -> Iterator[Interaction]:
    """The calls on a tape, in the order in which they began, without requests never sent."""
    for call in calls_on(tape):
        entry = call.entry
        end: Data = {"cancelled": True} if call.end is None else tape[call.end]
        if end.get("unsent"):
            continue
        begun = entry.get("t", 0.0)
        common: Data = {
            "agent_name": call.agent,
            "branch": entry.get("branch"),
            "error": end.get("error"),
            "cancelled": bool(end.get("cancelled")),
            "latency_ms": round(end.get("t", begun) - begun, 3),
            "entry": call.start,
        }
        if call.tool is not None:
            yield ToolInteraction(
                tool_name=call.tool,
                call_id=entry.get("call_id"),
                args=call.asked,
                result=end.get("result"),
                effects=end.get("effects", {}),
                **common,
            )
            continue
        parts = [tape[index] for index in call.chunks]
        common["chunks"] = [each["response"] for each in parts]
        common["responses"] = end.get("responses", [])
        if "remote_call" in entry:
            yield RemoteInteraction(asked=call.asked, **common)
            continue
        yield LLMInteraction(
            model=entry.get("model", ""),
            request=call.asked,
            usage=_usage(common["responses"]),
            first_chunk_ms=round(parts[0].get("t", begun) - begun, 3) if parts else None,
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
    nodes = [[each.name, type(each).__name__, content_hash(each)[:16]] for each in walk(root)]
    return {"hash": content_hash(root), "nodes": nodes}


def check_pipeline(recorded: Data | None, now: Data) -> None:
    """Refuse to replay the recording of another pipeline.

    Args:
        recorded: The pipeline of the recording.
        now: The one that is run.

    Raises:
        PipelineMismatchError: They are not the same.
    """
    if not recorded or recorded.get("hash") == now["hash"]:
        return
    was: list[list[str]] = recorded.get("nodes", [])
    has: list[list[str]] = now["nodes"]
    raise PipelineMismatchError(
        "this recording is of another pipeline than the one that is run",
        found=_changed(was, has),
        help="record again, or replay with on_mismatch='live'",
    )


def _changed(was: list[list[str]], has: list[list[str]]) -> str:
    """Which node has changed; of those nested in each other, the innermost."""
    before, after = ({name: rest for name, *rest in nodes} for nodes in (was, has))
    parts = [f"{name!r} is gone" for name in before if name not in after]
    parts += [f"{name!r} is new" for name in after if name not in before]
    if parts:
        return "; ".join(parts)
    changed = [name for name in after if before[name] != after[name]]
    if not changed:
        return "the same nodes in another order"
    name = changed[-1]
    old, new = before[name][0], after[name][0]
    return f"{new} {name!r} has changed{'' if old == new else f' from {old}'}"

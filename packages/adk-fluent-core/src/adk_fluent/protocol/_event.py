"""What happens in a run, as every backend reports it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from adk_fluent.protocol._json import json_safe
from adk_fluent.protocol._pending import Pending
from adk_fluent.protocol._usage import Usage, counts_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self


@dataclass(frozen=True, slots=True)
class ToolCallInfo:
    """A model's wish to call a tool.

    Attributes:
        tool_name: The tool.
        args: Its arguments.
        call_id: Identity of the call; its response carries the same.
    """

    tool_name: str
    args: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class ToolResponseInfo:
    """What a tool returned.

    Attributes:
        tool_name: The tool.
        result: What it returned.
        call_id: Identity of the call.
    """

    tool_name: str
    result: Any = field(default=None, hash=False)
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """An error that an event reports.

    Attributes:
        code: A short code, such as ``"SAFETY"`` or an exception's type.
        message: What a person is told.
    """

    code: str
    message: str = ""

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" if self.message else self.code


@dataclass(slots=True)
class AgentEvent:
    """One thing that happened in a run.

    Pickles and deep copies leave `raw` out.

    Attributes:
        author: The agent that made it; for a function or a join, the pipeline's root.
        content: Its text without thoughts; None when it has none.
        state_delta: State it wrote, keys with their scope prefix; None deletes.
        artifact_delta: Artifacts it saved, and their new version.
        transfer_to: The agent it handed over to.
        escalate: It ends the nearest loop.
        tool_calls: Tools the model called.
        tool_responses: What tools returned.
        is_final: It is its author's answer, not a step on the way.
        is_partial: A fragment of a streamed text; a whole event follows.
        end_of_agent: Its author is done (resumable runs).
        agent_state: What its author needs to resume.
        metadata: What else the backend tells: ``run`` (an id that a resumed run keeps),
            ``retried`` (what was wrong with an answer whose agent was asked again),
            ``settled`` (ids of long-running calls that get no result later),
            ``finish_reason``, ``model_version``, ``grounding``, ``compaction``,
            ``skip_summarization``, ...
        timestamp: Seconds since 1970.
        id: Its identity in the session.
        invocation_id: The call it belongs to.
        branch: ADK's branch, dotted.
        path: Position of its step in the pipeline, such as ``s2.p1.l3``; see `final_text`.
        node: Name of the step; unlike `author` also for functions and joins.
        attempt: Dotted ids of the discardable scopes it works in, innermost last.
        discarded: Ids of the scopes that this event discards; their events no longer count.
        usage: Tokens of the model call that made it.
        error: The error it reports.
        pending: Questions the run now waits on.
        output: Its structured result, where there is one.
        custom_metadata: What the user attached.
        raw: The backend's own event, such as ADK's.
    """

    author: str
    content: str | None = None
    state_delta: dict[str, Any] = field(default_factory=dict[str, Any])
    artifact_delta: dict[str, int] = field(default_factory=dict[str, int])
    transfer_to: str | None = None
    escalate: bool = False
    tool_calls: list[ToolCallInfo] = field(default_factory=list[ToolCallInfo])
    tool_responses: list[ToolResponseInfo] = field(default_factory=list[ToolResponseInfo])
    is_final: bool = False
    is_partial: bool = False
    end_of_agent: bool = False
    agent_state: dict[str, Any] | None = None
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    timestamp: float = 0.0
    id: str = ""
    invocation_id: str = ""
    branch: str | None = None
    path: str | None = None
    node: str | None = None
    attempt: str | None = None
    discarded: tuple[str, ...] = ()
    usage: Usage | None = None
    error: ErrorInfo | None = None
    pending: tuple[Pending, ...] = ()
    output: Any = None
    custom_metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    raw: Any = field(default=None, repr=False, compare=False)

    @property
    def run_id(self) -> str:
        """Identity of the run it belongs to; a run that was paused and resumed keeps it."""
        return self.metadata.get("run") or self.invocation_id

    def to_dict(self) -> dict[str, Any]:
        """The event as JSON data, `raw` and whatever is at its default left out."""
        out: dict[str, Any] = {"author": self.author}
        for (name, default), value in zip(_DEFAULTS.items(), _values_of(self), strict=True):
            if value is default:  # as most are
                continue
            # an output may be anything, and some objects cannot be compared
            if default is None or value != default:
                out[name] = counts_of(value) if name == "usage" else json_safe(value)
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The event that `to_dict` was called on, as far as JSON could hold it.

        Raises:
            TypeError: The data has a field that no event has, or lacks the author.
        """
        made = dict(data)
        for name, kind in (("tool_calls", ToolCallInfo), ("tool_responses", ToolResponseInfo)):
            made[name] = [kind(**each) for each in made.get(name, ())]
        made["pending"] = tuple(Pending(**each) for each in made.get("pending", ()))
        made["discarded"] = tuple(made.get("discarded", ()))
        if made.get("usage") is not None:
            made["usage"] = Usage(**made["usage"])
        if made.get("error") is not None:
            made["error"] = ErrorInfo(**made["error"])
        return cls(**made)

    def __copy__(self) -> Self:
        return replace(self)

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "raw"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self.raw = None


_DEFAULTS = {
    f.name: getattr(AgentEvent(""), f.name)
    for f in fields(AgentEvent)
    if f.name not in {"author", "raw"}
}
_values_of = attrgetter(*_DEFAULTS)

"""A recorded run as lanes on a time axis: what each agent of each branch did, and when."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from adk_fluent.protocol import AgentEvent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.debug._interactions import LLMInteraction, ToolInteraction
    from adk_fluent.debug._run import RecordedRun

Data = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Something that an agent did.

    Attributes:
        kind: A ``model`` call, a ``tool`` call, or an ``event``, which takes no time.
        label: The model, the tool, or the step that made the event.
        start_ms: Milliseconds from the beginning of the run.
        end_ms: When it was over.
        status: ``ok``, ``error`` or ``cancelled``.
        error: The error's type and message; "" if there is none.
        tokens: Tokens of a model call.
        what: The call, or the event, as data: arguments and result, contents, state.
        entry: Where it stands in `RecordedRun.tape`.
        within: It was done by agents that a tool ran.
    """

    kind: Literal["model", "tool", "event"]
    label: str
    start_ms: float
    end_ms: float
    status: Literal["ok", "error", "cancelled"] = "ok"
    error: str = ""
    tokens: int = 0
    what: LLMInteraction | ToolInteraction | AgentEvent = field(repr=False)
    entry: int = 0
    within: bool = False


@dataclass(frozen=True, slots=True)
class Lane:
    """What one agent, or another step, did in one branch, in order.

    Attributes:
        agent: The agent, or the step.
        branch: ADK's branch, dotted; "" outside of branches.
        spans: What it did.
    """

    agent: str
    branch: str
    spans: list[Span] = field(default_factory=list[Span])

    @property
    def name(self) -> str:
        """Agent and branch; each lane of a run has a name of its own."""
        inside = self.branch.rpartition(".")[2] == self.agent
        return f"{self.branch}/{self.agent}" if self.branch and not inside else self.agent


def lanes(run: RecordedRun) -> list[Lane]:
    """The lanes of a run, in the order in which they begin.

    Args:
        run: The run.
    """
    found: dict[tuple[str, str], Lane] = {}
    for agent, branch, span in sorted(_spans(run), key=lambda row: row[2].entry):
        key = (agent, branch)
        found.setdefault(key, Lane(agent, branch)).spans.append(span)
    return list(found.values())


def rows(run: RecordedRun) -> list[tuple[Lane, Span]]:
    """Everything in the lanes of a run, in the order in which it began."""
    made = [(lane, span) for lane in lanes(run) for span in lane.spans]
    return sorted(made, key=lambda row: row[1].entry)


def duration(run: RecordedRun) -> float:
    """Milliseconds from the beginning of a run to the last thing in it."""
    return max((float(each.get("t", 0.0)) for each in run.tape), default=0.0)


def _spans(run: RecordedRun) -> Iterator[tuple[str, str, Span]]:
    tape = run.tape
    calls: list[LLMInteraction | ToolInteraction] = [*run.llm_interactions, *run.tool_interactions]
    for call in calls:
        start = float(tape[call.entry].get("t", 0.0))
        tool = getattr(call, "tool_name", "")
        usage = getattr(call, "usage", None)
        span = Span(
            kind="tool" if tool else "model",
            label=tool or getattr(call, "model", ""),
            start_ms=start,
            end_ms=start + call.latency_ms,
            status="cancelled" if call.cancelled else "error" if call.error else "ok",
            error=error_text(call.error),
            tokens=usage.total if usage is not None else 0,
            what=call,
            entry=call.entry,
            within="within" in tape[call.entry],
        )
        yield call.agent_name, call.branch or "", span
    for at, entry in enumerate(tape):
        if "event" not in entry:
            continue
        event = AgentEvent.from_dict(entry["event"])
        error = None if event.error is None else {"type": event.error.code, **_message(event)}
        time = float(entry.get("t", 0.0))
        span = Span(
            kind="event",
            label=event.node or event.author,
            start_ms=time,
            end_ms=time,
            status="ok" if error is None else "error",
            error=error_text(error),
            what=event,
            entry=at,
            within="within" in entry,
        )
        yield event.node or event.author, event.branch or "", span


def _message(event: AgentEvent) -> Data:
    return {} if event.error is None else {"message": event.error.message}


def error_text(error: Data | None) -> str:
    """The type and message of a recorded error; "" if there is none."""
    if error is None:
        return ""
    kind = str(error.get("type", "")).rpartition(":")[2]
    return ": ".join(str(each) for each in (kind, error.get("message")) if each)

"""A recorded run as lanes on a time axis: what each agent of each branch did, and when."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from adk_fluent.debug._interactions import Interaction, LLMInteraction, ToolInteraction
from adk_fluent.protocol import AgentEvent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from adk_fluent.debug._run import RecordedRun

Data = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Something that an agent did.

    Attributes:
        kind: A ``model`` call, a ``tool`` call, a ``remote`` agent's call, an ``event``, which
            takes no time, or a ``span`` of OpenTelemetry's.
        label: The model, the tool, the remote agent, the step that made the event, or the span.
        start_ms: Milliseconds from the beginning of the run.
        end_ms: When it was over.
        status: ``ok``, ``error`` or ``cancelled``.
        error: The error's type and message; "" if there is none.
        tokens: Tokens of a model call.
        what: The call, the event, or the span as it stands in the file.
        entry: Where it stands in `RecordedRun.tape`.
        within: It was done by agents that a tool ran.
    """

    kind: Literal["model", "tool", "remote", "event", "span"]
    label: str
    start_ms: float
    end_ms: float
    status: Literal["ok", "error", "cancelled"] = "ok"
    error: str = ""
    tokens: int = 0
    what: Interaction | AgentEvent | Data = field(repr=False)
    entry: int = 0
    within: bool = False

    def overlaps(self, start_ms: float, end_ms: float) -> bool:
        """Whether it happened between two moments, at least in part."""
        return self.start_ms <= end_ms and start_ms <= self.end_ms


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


#: An agent, a branch, and what the one did in the other.
_Row = tuple[str, str, Span]


def lanes(run: RecordedRun) -> list[Lane]:
    """The lanes of a run, in the order in which they begin.

    A span of OpenTelemetry's stands in the lane of the agent that it is of, or is within. Which
    branch that is it does not say: it is the one in which the agent did something meanwhile. Where
    that were several, the lane has no branch. What belongs to no agent is in the lane ``spans``.

    Args:
        run: The run.
    """
    done = [*_calls(run), *_events(run)]
    found: dict[tuple[str, str], Lane] = {}
    for agent, branch, span in sorted((*done, *_spans(run, done)), key=_begins):
        key = (agent, branch)
        found.setdefault(key, Lane(agent, branch)).spans.append(span)
    return list(found.values())


def rows(run: RecordedRun) -> list[tuple[Lane, Span]]:
    """Everything in the lanes of a run, in the order in which it began."""
    made = [(lane, span) for lane in lanes(run) for span in lane.spans]
    return sorted(made, key=_begins)


def _begins(row: tuple[Any, ...]) -> tuple[int, bool]:
    """What orders rows, of which the span is the last; what goes on in a span begins after it."""
    span: Span = row[-1]
    return span.entry, span.kind != "span"


def duration(run: RecordedRun) -> float:
    """Milliseconds from the beginning of a run to the last thing in it."""
    return max((float(each.get("t", 0.0)) for each in run.tape), default=0.0)


def _calls(run: RecordedRun) -> Iterator[_Row]:
    for call in run.interactions:
        entry = run.tape[call.entry]
        start = float(entry.get("t", 0.0))
        usage = call.usage if isinstance(call, LLMInteraction) else None
        kind, label = _named(call)
        span = Span(
            kind=kind,
            label=label,
            start_ms=start,
            end_ms=start + call.latency_ms,
            status="cancelled" if call.cancelled else "error" if call.error else "ok",
            error=error_text(call.error),
            tokens=usage.total if usage is not None else 0,
            what=call,
            entry=call.entry,
            within="within" in entry,
        )
        yield call.agent_name, call.branch or "", span


def _events(run: RecordedRun) -> Iterator[_Row]:
    for at, entry in enumerate(run.tape):
        if "event" not in entry:
            continue
        event = AgentEvent.from_dict(entry["event"])
        error = event.error and {"type": event.error.code, "message": event.error.message}
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


def _spans(run: RecordedRun, done: Sequence[_Row]) -> Iterator[_Row]:
    known = {str(each.get("span_id")): each for each in run.spans}
    times = [float(each.get("t", 0.0)) for each in run.tape]
    of_agents: dict[str, dict[str, list[Span]]] = {}
    for name, branch, row in done:
        of_agents.setdefault(name, {}).setdefault(branch, []).append(row)
    for each in run.spans:
        start, end = float(each.get("start", 0.0)), float(each.get("end", 0.0))
        agent = _agent_of(each, known)
        branches = [*of_agents.get(agent, ())]
        if len(branches) > 1:
            rows = of_agents[agent]
            branches = [b for b in branches if any(r.overlaps(start, end) for r in rows[b])]
        span = Span(
            kind="span",
            label=str(each.get("name", "")),
            start_ms=start,
            end_ms=end,
            status="error" if each.get("status") == "error" else "ok",
            what=each,
            entry=bisect_left(times, start),
        )
        yield agent or "spans", branches[0] if len(branches) == 1 else "", span


def _agent_of(span: Data, known: dict[str, Data]) -> str:
    """The agent that a span is of, or that of the nearest one above it; "" if there is none."""
    seen: set[str] = set()  # a file may hold circles
    here: Data | None = span
    while here is not None and not here.get("agent"):
        above = str(here.get("parent_id"))
        here = None if above in seen else known.get(above)
        seen.add(above)
    return "" if here is None else str(here["agent"])


def _named(call: Interaction) -> tuple[Literal["model", "tool", "remote"], str]:
    if isinstance(call, ToolInteraction):
        return "tool", call.tool_name
    return (
        ("model", call.model) if isinstance(call, LLMInteraction) else ("remote", call.agent_name)
    )


def error_text(error: Data | None) -> str:
    """The type and message of a recorded error; "" if there is none."""
    if error is None:
        return ""
    kind = str(error.get("type", "")).rpartition(":")[2]
    return ": ".join(str(each) for each in (kind, error.get("message")) if each)

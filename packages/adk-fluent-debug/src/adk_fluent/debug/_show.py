"""A recording as lanes on a time axis, in the words of a terminal, and as data for programs."""

from __future__ import annotations

import json
from bisect import bisect_left
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, Literal

from adk_fluent.debug._diff import counted, lane_name
from adk_fluent.debug._run import (
    LEFT_OUT,
    Interaction,
    LLMInteraction,
    RemoteInteraction,
    ToolInteraction,
)
from adk_fluent.protocol import AgentEvent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from adk_fluent.debug._run import Recorded, RecordedRun

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

    def to_dict(self) -> Data:
        """All but what it is of, as JSON has it."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.repr}


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
        return lane_name(self.agent, self.branch)


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
        found.setdefault((agent, branch), Lane(agent, branch)).spans.append(span)
    return list(found.values())


def rows(run: RecordedRun) -> list[tuple[Lane, Span]]:
    """Everything in the lanes of a run, in the order in which it began."""
    return sorted(((lane, span) for lane in lanes(run) for span in lane.spans), key=_begins)


def _begins(row: tuple[Any, ...]) -> tuple[int, bool]:
    """What orders rows, of which the span is the last; what goes on in a span begins after it."""
    return row[-1].entry, row[-1].kind != "span"


def duration(run: RecordedRun) -> float:
    """Milliseconds from the beginning of a run to the last thing in it."""
    return max((float(each.get("t", 0.0)) for each in run.tape), default=0.0)


def _calls(run: RecordedRun) -> Iterator[_Row]:
    for call in run.interactions:
        entry = run.tape[call.entry]
        start = float(entry.get("t", 0.0))
        model = call if isinstance(call, LLMInteraction) else None
        tool = call if isinstance(call, ToolInteraction) else None
        span = Span(
            kind="model" if model else "tool" if tool else "remote",
            label=model.model if model else tool.tool_name if tool else call.agent_name,
            start_ms=start,
            end_ms=start + call.latency_ms,
            status="cancelled" if call.cancelled else "error" if call.error else "ok",
            error=error_text(call.error),
            tokens=model.usage.total if model and model.usage else 0,
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
        time, step = float(entry.get("t", 0.0)), event.node or event.author
        span = Span(
            kind="event",
            label=step,
            start_ms=time,
            end_ms=time,
            status="error" if event.error else "ok",
            error=_event_error(event),
            what=event,
            entry=at,
            within="within" in entry,
        )
        yield step, event.branch or "", span


def _spans(run: RecordedRun, done: Sequence[_Row]) -> Iterator[_Row]:
    known = {str(each.get("span_id")): each for each in run.spans}
    times = [float(each.get("t", 0.0)) for each in run.tape]
    for each in run.spans:
        start, end = float(each.get("start", 0.0)), float(each.get("end", 0.0))
        agent = _agent_of(each, known)
        theirs = [(branch, row) for name, branch, row in done if name == agent]
        branches = {branch for branch, _ in theirs}
        if len(branches) > 1:
            branches = {branch for branch, row in theirs if row.overlaps(start, end)}
        span = Span(
            kind="span",
            label=str(each.get("name", "")),
            start_ms=start,
            end_ms=end,
            status="error" if each.get("status") == "error" else "ok",
            what=each,
            entry=bisect_left(times, start),
        )
        yield agent or "spans", branches.pop() if len(branches) == 1 else "", span


def _agent_of(span: Data, known: dict[str, Data]) -> str:
    """The agent that a span is of, or that of the nearest one above it; "" if there is none."""
    seen: set[str] = set()  # a file may hold circles
    here: Data | None = span
    while here is not None and not here.get("agent"):
        above = str(here.get("parent_id"))
        here = None if above in seen else known.get(above)
        seen.add(above)
    return "" if here is None else str(here["agent"])


def error_text(error: Data | None) -> str:
    """The type and message of a recorded error; "" if there is none."""
    if error is None:
        return ""
    kind = str(error.get("type", "")).rpartition(":")[2]
    return ": ".join(str(each) for each in (kind, error.get("message")) if each)


#: Characters of a value.
SHOWN: Final = 72


def event_lines(event: AgentEvent, limit: int = SHOWN) -> Iterator[str]:
    """What an event says and does, in a few words each; a limit of 0 cuts nothing off."""
    if event.content and not (event.is_partial and event.tool_calls):
        yield f"{'says part' if event.is_partial else 'says'} {cut(event.content, limit)}"
    if event.error:
        yield f"error {shown(_event_error(event), limit)}"
    yield from event_deeds(event, limit)
    for key, value in event.state_delta.items():
        yield f"removes {key}" if value is None else f"writes {key} = {cut(value, limit)}"


def event_deeds(event: AgentEvent, limit: int = SHOWN) -> Iterator[str]:
    """What an event does beside saying and writing something, as `event_lines` has it."""
    if event.transfer_to:
        yield f"transfers to {event.transfer_to}"
    if event.escalate:
        yield "escalates"
    for each in event.pending:
        yield f"asks {each.name}: {cut(each.message, limit)}"


def _event_error(event: AgentEvent) -> str:
    error = event.error
    return error_text(error and {"type": error.code, "message": error.message})


def said(run: RecordedRun) -> str:
    """What the user said, in one line."""
    parts: list[Data] = (run.message or {}).get("parts") or []
    return " ".join(each.get("text") or "[no text]" for each in parts)


def arguments(args: Data, limit: int = SHOWN) -> str:
    """Arguments as a call has them; a limit of 0 cuts nothing off."""
    return ", ".join(f"{key}={cut(value, limit)}" for key, value in args.items())


def cut(value: Any, limit: int = SHOWN) -> str:
    """A value as Python writes it, in which no control character does anything."""
    if value == LEFT_OUT:
        return LEFT_OUT
    return _shorter(repr(value), limit)


def shown(text: str, limit: int) -> str:
    """A text without quotes, in which no control character does anything."""
    plain = "".join(
        each if each.isprintable() and each != "\\" else repr(each)[1:-1] for each in text
    )
    return _shorter(plain, limit)


def _shorter(text: str, limit: int) -> str:
    return text if not limit or len(text) <= limit else f"{text[:limit]}..."


_PACKAGES: Final = ("google-adk", "adk-fluent-core", "adk-fluent-debug")


def text_of(recording: Recorded, *, full: bool = False) -> str:
    """What a recording holds, for people.

    Args:
        recording: The recording.
        full: Cut nothing off.
    """
    return "\n".join(map(_printable, _lines(recording, 0 if full else SHOWN)))


def data_of(recording: Recorded) -> Data:
    """What a recording holds, for programs."""
    runs = [
        {**run_data(run), "lanes": [_lane_data(each) for each in lanes(run)]}
        for run in recording.runs
    ]
    return {**head_of(recording), "runs": runs}


def head_of(recording: Recorded) -> Data:
    """What a recording is: its name, what it holds in a few words, and where it was made."""
    return {
        "name": name_of(recording),
        "holds": repr(recording)[len("<Recording: ") : -1],
        "metadata": recording.metadata,
        "edited": recording.edited,
    }


def name_of(recording: Recorded) -> str:
    """The name of its file, if it has one."""
    return "recording" if recording.path is None else recording.path.name


def run_data(run: RecordedRun) -> Data:
    """How a run went, as JSON has it."""
    return {
        "status": run.status,
        "duration_ms": duration(run),
        "message": said(run),
        "error": run.data.get("error"),
    }


def _lane_data(lane: Lane) -> Data:
    spans = [each.to_dict() for each in lane.spans]
    return {"name": lane.name, "agent": lane.agent, "branch": lane.branch, "spans": spans}


def _lines(recording: Recorded, limit: int) -> Iterator[str]:
    head = head_of(recording)
    yield f"{head['name']}: {head['holds']}"
    versions: Data = recording.metadata.get("versions") or {}
    made = [f"{each} {versions[each]}" for each in _PACKAGES if each in versions]
    when = recording.metadata.get("recorded_at")
    if when or made:
        yield f"recorded {when or ''}{' with ' if made else ''}{', '.join(made)}"
    if recording.edited:
        yield "it was edited after it was recorded"
    for number, run in enumerate(recording.runs):
        yield ""
        yield from _run_lines(number, run, limit)


def _run_lines(number: int, run: RecordedRun, limit: int) -> Iterator[str]:
    tokens = sum(each.usage.total for each in run.llm_interactions if each.usage is not None)
    head = f"run {number}: {run.status or 'cut off'} in {duration(run):.0f} ms"
    yield head + (f", {counted(tokens, 'token')}" if tokens else "")
    if run.resumed:
        yield f"  resumed with {counted(len(run.answers), 'answer')}"
    elif message := said(run):
        yield f"  user: {cut(message, limit)}"
    found = rows(run)
    width = max((len(lane.name) for lane, _ in found), default=0)
    for lane, span in found:
        mark = "| " if span.within else ""
        start = f"  {span.start_ms:>9.1f} ms  {lane.name:<{width}}  {mark}"
        for line in _span_lines(span, limit):
            yield start + line
            start = " " * (len(start) - len(mark)) + mark
    if error := run.data.get("error"):
        yield f"  failed: {shown(error_text(error), limit)}"


def _span_lines(span: Span, limit: int) -> Iterator[str]:
    what = span.what
    took = f"{span.end_ms - span.start_ms:.1f} ms"
    if isinstance(what, LLMInteraction):
        tokens = f", {counted(span.tokens, 'token')}" if span.tokens else ""
        how = _how(span, limit)
        yield f"model {span.label}: {how or took}{tokens}"
    elif isinstance(what, ToolInteraction):
        gave = "" if what.result is None else f"{cut(what.result, limit)} in "
        how = _how(span, limit) or f"{gave}{took}"
        yield f"tool {span.label}({arguments(what.args, limit)}): {how}"
    elif isinstance(what, RemoteInteraction):
        yield f"remote agent: {_how(span, limit) or took}"
    elif isinstance(what, AgentEvent):
        yield from event_lines(what, limit)
    else:
        yield f"span {shown(span.label, limit)}: {span.status if span.status == 'error' else took}"


def _how(span: Span, limit: int) -> str:
    return "cancelled" if span.status == "cancelled" else shown(span.error, limit)


def _printable(line: str) -> str:
    """A line in which no control character does anything, whoever wrote the file."""
    if line.isprintable():
        return line
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in line)


def json_of(data: Data) -> str:
    """Data as JSON that every terminal and pipe takes."""
    return json.dumps(data, ensure_ascii=True, indent=1)

"""A recording as rows in lanes on a time axis, in the words of a terminal, and for programs."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, Literal

from adk_fluent.debug._diff import lane_name, lane_of
from adk_fluent.debug._recorded_run import (
    LEFT_OUT,
    Data,
    Interaction,
    LLMInteraction,
    ToolInteraction,
    counted,
)
from adk_fluent.protocol import AgentEvent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.debug._recorded_run import Recorded, RecordedRun


Kind = Literal["model", "tool", "remote", "event", "span"]


@dataclass(frozen=True, slots=True)
class Row:
    """Something that an agent, or another step, did.

    Attributes:
        kind: A ``model`` call, a ``tool`` call, a ``remote`` agent's call, an ``event``, which
            takes no time, or a ``span`` of OpenTelemetry's.
        lane: Who did it, and in which branch.
        label: The model, the tool, the remote agent, the step that made the event, or the span.
        start_ms: Milliseconds from the beginning of the run.
        end_ms: When it was over.
        what: The call, the event, or the span as it stands in the file.
        entry: Where it stands in `RecordedRun.tape`.
        status: ``ok``, ``error`` or ``cancelled``.
        error: The error's type and message; "" if there is none.
        tokens: Tokens of a model call.
        within: It was done by agents that a tool ran.
    """

    kind: Kind
    lane: str
    label: str
    start_ms: float
    end_ms: float
    what: Interaction | AgentEvent | Data = field(repr=False)
    entry: int
    status: str = "ok"
    error: str = ""
    tokens: int = 0
    within: bool = False

    def to_dict(self) -> Data:
        """All but what it is of, as JSON has it."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.repr}


def rows(run: RecordedRun) -> list[Row]:
    """Everything in a run, in the order in which it began; what goes on in a span comes after it.

    A span of OpenTelemetry's stands in the lane of the agent that it names; one that names none is
    in the lane ``spans``.

    Args:
        run: The run.
    """
    found = [*_calls(run), *_events(run), *_spans(run)]
    return sorted(found, key=lambda row: (row.entry, row.kind != "span"))


def duration(run: RecordedRun) -> float:
    """Milliseconds from the beginning of a run to the last thing in it."""
    return max((float(each.get("t", 0.0)) for each in run.tape), default=0.0)


def _calls(run: RecordedRun) -> Iterator[Row]:
    for call in run.interactions:
        kind: Kind = "remote"
        label, tokens = call.agent_name, 0
        if isinstance(call, LLMInteraction):
            kind, label, tokens = "model", call.model, call.usage.total if call.usage else 0
        elif isinstance(call, ToolInteraction):
            kind, label = "tool", call.tool_name
        entry = run.tape[call.entry]
        start, lane = float(entry.get("t", 0.0)), lane_name(call.agent_name, call.branch or "")
        status = "cancelled" if call.cancelled else "error" if call.error else "ok"
        how = (status, error_text(call.error), tokens, "within" in entry)
        yield Row(kind, lane, label, start, start + call.latency_ms, call, call.entry, *how)


def _events(run: RecordedRun) -> Iterator[Row]:
    for at, entry in enumerate(run.tape):
        if "event" in entry:
            event = AgentEvent.from_dict(entry["event"])
            who, time = event.node or event.author, float(entry.get("t", 0.0))
            how = ("error" if event.error else "ok", _event_error(event), 0, "within" in entry)
            yield Row("event", lane_of(event), who, time, time, event, at, *how)


def _spans(run: RecordedRun) -> Iterator[Row]:
    times = [float(each.get("t", 0.0)) for each in run.tape]
    for each in run.spans:
        start, end = float(each.get("start", 0.0)), float(each.get("end", 0.0))
        lane, at = str(each.get("agent") or "spans"), bisect_left(times, start)
        how = ("error", "failed") if each.get("status") == "error" else ("ok", "")
        yield Row("span", lane, str(each.get("name", "")), start, end, each, at, *how)


def error_text(error: Data | None) -> str:
    """The type and message of a recorded error; "" if there is none."""
    if error is None:
        return ""
    kind = str(error.get("type", "")).rpartition(":")[2]
    return ": ".join(str(each) for each in (kind, error.get("message")) if each)


def _event_error(event: AgentEvent) -> str:
    error = event.error
    return error_text(error and {"type": error.code, "message": error.message})


#: Characters of a value.
SHOWN: Final = 72


def event_lines(event: AgentEvent, limit: int = SHOWN) -> Iterator[str]:
    """What an event says and does, in a few words each; a limit of 0 cuts nothing off."""
    if event.content and not (event.is_partial and event.tool_calls):
        yield f"{'says part' if event.is_partial else 'says'} {cut(event.content, limit)}"
    if event.error:
        yield f"error {_shorter(_event_error(event), limit)}"
    if event.transfer_to:
        yield f"transfers to {event.transfer_to}"
    if event.escalate:
        yield "escalates"
    for each in event.pending:
        yield f"asks {each.name}: {cut(each.message, limit)}"
    for key, value in event.state_delta.items():
        yield f"removes {key}" if value is None else f"writes {key} = {cut(value, limit)}"


def said(run: RecordedRun) -> str:
    """What the user said, in one line."""
    parts: list[Data] = (run.message or {}).get("parts") or []
    return " ".join(each.get("text") or "[no text]" for each in parts)


def arguments(args: Data, limit: int = SHOWN) -> str:
    """Arguments as a call has them; a limit of 0 cuts nothing off."""
    return ", ".join(f"{key}={cut(value, limit)}" for key, value in args.items())


def cut(value: Any, limit: int = SHOWN) -> str:
    """A value as Python writes it."""
    return LEFT_OUT if value == LEFT_OUT else _shorter(repr(value), limit)


def _shorter(text: str, limit: int) -> str:
    return text if not limit or len(text) <= limit else f"{text[:limit]}..."


def text_of(recording: Recorded, *, full: bool = False) -> str:
    """What a recording holds, for people.

    Args:
        recording: The recording.
        full: Cut nothing off.
    """
    return "\n".join(map(_printable, _lines(recording, 0 if full else SHOWN)))


def head_of(recording: Recorded) -> Data:
    """What a recording is: its name, what it holds in a few words, and where it was made."""
    return {
        "name": "recording" if recording.path is None else recording.path.name,
        "holds": repr(recording)[len("<Recording: ") : -1],
        "metadata": recording.metadata,
        "edited": recording.edited,
    }


def run_data(run: RecordedRun) -> Data:
    """How a run went, as JSON has it."""
    return {
        "status": run.status,
        "duration_ms": duration(run),
        "message": said(run),
        "error": error_text(run.data.get("error")),
    }


def _lines(recording: Recorded, limit: int) -> Iterator[str]:
    head = head_of(recording)
    yield f"{head['name']}: {head['holds']}"
    versions: Data = recording.metadata.get("versions") or {}
    made = [f"{name} {each}" for name, each in versions.items()]
    when = recording.metadata.get("recorded_at")
    if when or made:
        yield f"recorded {when or ''}{' with ' if made else ''}{', '.join(made)}"
    if recording.edited:
        yield "it was edited after it was recorded"
    for number, run in enumerate(recording.runs):
        yield ""
        yield from _run_lines(number, run, limit)


def _run_lines(number: int, run: RecordedRun, limit: int) -> Iterator[str]:
    known, found = run_data(run), rows(run)
    tokens = sum(each.tokens for each in found)
    head = f"run {number}: {run.status or 'cut off'} in {known['duration_ms']:.0f} ms"
    yield head + (f", {counted(tokens, 'token')}" if tokens else "")
    if run.resumed:
        yield f"  resumed with {counted(len(run.answers), 'answer')}"
    elif known["message"]:
        yield f"  user: {cut(known['message'], limit)}"
    width = max((len(each.lane) for each in found), default=0)
    for row in found:
        mark = "| " if row.within else ""
        start = f"  {row.start_ms:>9.1f} ms  {row.lane:<{width}}  {mark}"
        for line in _row_lines(row, limit):
            yield start + line
            start = " " * (len(start) - len(mark)) + mark
    if known["error"]:
        yield f"  failed: {_shorter(known['error'], limit)}"


def _row_lines(row: Row, limit: int) -> Iterator[str]:
    what, took = row.what, f"{row.end_ms - row.start_ms:.1f} ms"
    how = "cancelled" if row.status == "cancelled" else _shorter(row.error, limit)
    if isinstance(what, AgentEvent):
        yield from event_lines(what, limit)
    elif isinstance(what, ToolInteraction):
        gave = "" if what.result is None else f"{cut(what.result, limit)} in "
        yield f"tool {row.label}({arguments(what.args, limit)}): {how or gave + took}"
    else:
        tokens = f", {counted(row.tokens, 'token')}" if row.tokens else ""
        yield f"{row.kind} {_shorter(row.label, limit)}: {how or took}{tokens}"


def _printable(line: str) -> str:
    """A line in which no control character does anything, whoever wrote the file."""
    if line.isprintable():
        return line
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in line)

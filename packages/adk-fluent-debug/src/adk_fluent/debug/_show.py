"""A recording in the words of a terminal, or as data for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.debug._compare import counted
from adk_fluent.debug._interactions import LLMInteraction, ToolInteraction
from adk_fluent.debug._lanes import duration, error_text, lanes, rows
from adk_fluent.debug._words import SHOWN, arguments, cut, event_lines, said, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.debug._lanes import Lane, Span
    from adk_fluent.debug._recording import Recording
    from adk_fluent.debug._run import RecordedRun

Data = dict[str, Any]

_PACKAGES: Final = ("google-adk", "adk-fluent-core", "adk-fluent-debug")


def text_of(recording: Recording, *, full: bool = False) -> str:
    """What a recording holds, for people.

    Args:
        recording: The recording.
        full: Cut nothing off.
    """
    return "\n".join(map(_printable, _lines(recording, 0 if full else SHOWN)))


def data_of(recording: Recording) -> Data:
    """What a recording holds, for programs."""
    return {
        "metadata": recording.metadata,
        "edited": recording.edited,
        "runs": [
            {
                "status": run.status,
                "duration_ms": duration(run),
                "message": said(run),
                "error": run.data.get("error"),
                "lanes": [_lane_data(each) for each in lanes(run)],
            }
            for run in recording.runs
        ],
    }


def _lane_data(lane: Lane) -> Data:
    names = ("kind", "label", "start_ms", "end_ms", "status", "error", "tokens", "entry", "within")
    spans = [{name: getattr(span, name) for name in names} for span in lane.spans]
    return {"name": lane.name, "agent": lane.agent, "branch": lane.branch, "spans": spans}


def _lines(recording: Recording, limit: int) -> Iterator[str]:
    name = "recording" if recording.path is None else recording.path.name
    yield f"{name}: {repr(recording)[len('<Recording: ') : -1]}"
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
    else:
        yield from event_lines(what, span, limit)


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

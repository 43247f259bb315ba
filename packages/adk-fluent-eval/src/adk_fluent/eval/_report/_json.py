"""Reports as JSON: written one outcome to a line, and read strictly.

Fields with their default value are left out.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from adk_fluent.eval._cases._suite import Gate
from adk_fluent.eval._errors import EvalError
from adk_fluent.eval._files._source import Source
from adk_fluent.eval._outcome import RECORDS, CaseOutcome, changed
from adk_fluent.eval._text import encodable, plain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike

    from adk_fluent.eval._report._figures import ReportFigures

_R = TypeVar("_R", bound="ReportFigures")
_SCHEMA: Final = 1
_KIND: Final = "eval-report"
_ALWAYS: Final = frozenset({"id", "run", "status", "score"})
#: The fields of a report in a file.
_FIELDS: Final[dict[str, Any]] = {
    "suite": str,
    "engine": str,
    "adk_version": str,
    "started_at": datetime,
    "duration_s": float,
    "interrupted": bool,
    "metrics": list[str],
    "notes": list[str],
    "gate": Gate,
    "saved_regressions": list[str],
    "shard": tuple[int, int] | None,
    "outcomes": list[CaseOutcome],
}
#: Figures of a report in a file, for other programs.
_SUMMARY: Final = (
    *("ok", "failures", "pass_rate", "pass_rate_ci", "counts", "flaky", "tokens", "cost_usd"),
)


def report_chunks(report: ReportFigures) -> Iterator[str]:
    """Yield a report as JSON."""
    head = {"adk_fluent": {"kind": _KIND, "schema": _SCHEMA}}
    head |= {name: getattr(report, name) for name in _FIELDS}
    head |= {"started_at": report.started_at.isoformat(), "saved_regressions": report.regressions}
    outcomes = head.pop("outcomes")
    summary = {name: getattr(report, name) for name in _SUMMARY}
    summary |= {"pass_rate_ci": report.pass_rate_ci(), "tokens": report.tokens.total}
    head["summary"] = summary  # for other programs; not read again
    yield "{\n"
    for name, value in head.items():
        yield f"{json_line(name)}: {json_line(value)},\n"
    yield '"outcomes": [\n'
    for number, outcome in enumerate(outcomes):
        yield f",\n{json_line(outcome)}" if number else json_line(outcome)
    yield "\n]\n}\n"


def json_line(value: Any) -> str:
    """Return a record or plain data as JSON in one line."""
    try:
        text = json.dumps(
            value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_record
        )
    except (TypeError, ValueError, RecursionError):  # an outcome made by hand
        text = json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"))
    return encodable(text)


def _record(value: Any) -> Any:
    return changed(value, _ALWAYS) if type(value) in RECORDS else plain(value)


# --- reading -------------------------------------------------------------------------------------


def read_report(report: type[_R], path: str | PathLike[str]) -> _R:
    """Return the report in a file."""
    source, value = Source.read_json(path)
    data = source.mapping((), value)
    head = source.mapping(("adk_fluent",), data.pop("adk_fluent", {}))
    data.pop("summary", None)
    if head.get("kind") != _KIND:
        raise source.error(("adk_fluent", "kind"), "not a report", help="see report.save(path)")
    source.check_schema(("adk_fluent",), head.get("schema"), _SCHEMA)
    source.mapping((), data, _FIELDS, "a report")
    for name, kind in _FIELDS.items():
        if name not in data:
            raise source.error((name,), f"a report has no {name}")
        data[name] = source.validated(kind, data[name], (name,), strict=True)
    try:
        return report(**data)
    except EvalError as error:  # two outcomes of one run
        raise source.error(("outcomes",), error.what) from error

"""Reports as JSON: written one outcome to a line, and read strictly.

Fields with their default value are left out.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, asdict, dataclass, field, fields
from datetime import datetime  # noqa: TC003  # pydantic reads the fields' types
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.eval._errors import EvalError, EvalFileError
from adk_fluent.eval._files._source import Source, parse_json, read_text
from adk_fluent.eval._gate import Gate
from adk_fluent.eval._outcome import (
    CaseOutcome,
    Finding,
    MetricScore,
    Step,
    Tokens,
    ToolUse,
    TurnOutcome,
)
from adk_fluent.eval._report._report import FluentEvalReport
from adk_fluent.eval._report._verdict import regressions
from adk_fluent.eval._text import encodable
from adk_fluent.eval._values import plain
from adk_fluent.extend import describe

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike

_SCHEMA: Final = 1
_KIND: Final = "eval-report"
_ALWAYS: Final = frozenset({"id", "run", "status", "score"})
_DEFAULTS: Final = {
    record: {
        each.name: each.default_factory() if each.default_factory is not MISSING else each.default
        for each in fields(record)
    }
    for record in (CaseOutcome, Finding, MetricScore, Step, Tokens, ToolUse, TurnOutcome)
}


def report_chunks(report: FluentEvalReport) -> Iterator[str]:
    """Yield a report as JSON."""
    head = {
        "adk_fluent": {"kind": _KIND, "schema": _SCHEMA},
        "suite": report.suite,
        "engine": report.engine,
        "adk_version": report.adk_version,
        "started_at": report.started_at.isoformat(),
        "duration_s": report.duration_s,
        "interrupted": report.interrupted,
        "metrics": report.metrics,
        "notes": report.notes,
        "gate": {name: plain(value) for name, value in asdict(report.gate).items()},
        "regressions": regressions(report),
        "summary": {  # for other programs; not read again
            "ok": report.ok,
            "failures": report.failures,
            "pass_rate": report.pass_rate,
            "pass_rate_ci": report.pass_rate_ci(),
            "counts": report.counts,
            "flaky": report.flaky,
            "tokens": report.tokens.total,
            "cost_usd": report.cost_usd,
        },
    }
    yield "{\n"
    for name, value in head.items():
        yield f"{_text(name)}: {_text(value)},\n"
    yield '"outcomes": [\n'
    for number, outcome in enumerate(report.outcomes):
        yield f",\n{_text(outcome)}" if number else _text(outcome)
    yield "\n]\n}\n"


def outcome_text(outcome: CaseOutcome) -> str:
    """Return an outcome as JSON in one line."""
    return _text(outcome)


def _text(value: Any) -> str:
    try:
        text = json.dumps(
            value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_record
        )
    except (TypeError, ValueError, RecursionError):  # an outcome made by hand
        text = json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"))
    return encodable(text)


def _record(value: Any) -> Any:
    defaults = _DEFAULTS.get(cast("type[Any]", type(value)))
    if defaults is None:
        return plain(value)
    found: dict[str, Any] = {}
    for name, default in defaults.items():
        each = getattr(value, name)
        if name in _ALWAYS or not (type(each) is type(default) and each == default):
            found[name] = each
    return found


# --- reading -------------------------------------------------------------------------------------


@dataclass
class _GateFile:
    min_pass_rate: float = 1.0
    min_tag_pass_rate: dict[str, float] = field(default_factory=dict[str, float])
    min_metric: dict[str, float] = field(default_factory=dict[str, float])
    max_regressions: int | None = 0
    significant_only: bool = False
    allow_flaky: bool = True
    max_cost_usd: float | None = None


@dataclass
class _ReportFile:
    suite: str
    started_at: datetime
    gate: _GateFile
    outcomes: list[CaseOutcome]
    engine: str = ""
    adk_version: str = ""
    duration_s: float = 0.0
    interrupted: bool = False
    metrics: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    regressions: list[str] = field(default_factory=list[str])


def read_report(path: str | PathLike[str]) -> FluentEvalReport:
    """Return the report in a file.

    Raises:
        EvalFileError: It is missing, broken, or of a newer version.
    """
    name, text = str(path), read_text(path)
    _check_head(Source(name), parse_json(text, name))
    file: _ReportFile = validated(_ReportFile, text, name)
    try:
        report = FluentEvalReport(
            file.outcomes,
            suite=file.suite,
            gate=Gate(**vars(file.gate)),
            metrics=file.metrics,
            engine=file.engine,
            adk_version=file.adk_version,
            started_at=file.started_at,
            duration_s=file.duration_s,
            notes=file.notes,
            interrupted=file.interrupted,
        )
    except EvalError as error:
        raise EvalFileError(
            f"invalid report: {error.what}", path=name, found=error.found
        ) from error
    report.saved_regressions = tuple(file.regressions)
    return report


def validated(kind: type[Any], text: str, path: str) -> Any:
    """Return the record of a type that a JSON text holds.

    Raises:
        EvalFileError: A field is invalid.
    """
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415  # slow to import

    try:
        return TypeAdapter(kind).validate_json(text, strict=True)
    except ValidationError as error:
        first, *more = error.errors(include_url=False, include_context=False)
        found = "nothing" if first["type"] == "missing" else describe(first["input"])
        raise Source(path).error(
            first["loc"],
            f"{first['msg']}{f', and {len(more):,} more' if more else ''}",
            found=found,
        ) from None  # its own text shows contents


def _check_head(source: Source, data: Any) -> None:
    head: Any = cast("dict[str, Any]", data).get("adk_fluent") if isinstance(data, dict) else None
    found = cast("dict[str, Any]", head) if isinstance(head, dict) else {}
    if found.get("kind") != _KIND:
        raise source.error(
            ("adk_fluent", "kind"), "not a report", help="write one with report.save(path)"
        )
    schema = found.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise source.error(("adk_fluent", "schema"), "invalid schema", found=describe(schema))
    if schema > _SCHEMA:
        raise source.error(
            ("adk_fluent", "schema"),
            f"schema {schema} is newer than this version reads ({_SCHEMA})",
            help="upgrade adk-fluent-eval",
        )

"""Reports as JSON: one outcome to a line, written as it goes, so that size costs no memory.

Fields that are as they are by default are left out. What JSON cannot say is written as what comes
nearest and never breaks a file: numbers that are none as null, values that are no data by their
type, data that holds itself or is nested without end up to a depth.
"""

from __future__ import annotations

import json
import math
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent._words import describe
from adk_fluent.eval._outcome import (
    CaseOutcome,
    Finding,
    MetricScore,
    Step,
    Tokens,
    ToolUse,
    TurnOutcome,
)
from adk_fluent.eval._report._compare import CaseChange, Delta
from adk_fluent.eval._report._kept import baseline_runs
from adk_fluent.eval._report._text import encodable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adk_fluent.eval._report._compare import RegressionReport
    from adk_fluent.eval._report._report import FluentEvalReport

SCHEMA: Final = 1
REPORT, COMPARISON, MATRIX = "eval-report", "eval-comparison", "eval-matrix"

_DEPTH: Final = 64
_INT_BITS: Final = 10_000  # longer ones Python refuses to write
_RECORDS: Final = (CaseOutcome, Finding, MetricScore, Step, Tokens, ToolUse, TurnOutcome)
_ALWAYS: Final = frozenset({"id", "run", "status", "score"})


def _defaults(record: type[Any]) -> dict[str, Any]:
    return {
        each.name: each.default_factory() if each.default_factory is not MISSING else each.default
        for each in fields(record)
    }


_FIELDS: Final = {record: _defaults(record) for record in _RECORDS}


def report_chunks(report: FluentEvalReport) -> Iterator[str]:
    """A report as JSON, in parts."""
    head = {"adk_fluent": {"kind": REPORT, "schema": SCHEMA}, **_head(report)}
    yield from _document(head, report)


def matrix_chunks(reports: Mapping[str, FluentEvalReport]) -> Iterator[str]:
    """Reports by name as JSON, in parts."""
    yield f'{{\n"adk_fluent": {_text({"kind": MATRIX, "schema": SCHEMA})},\n"reports": {{\n'
    for number, (name, report) in enumerate(reports.items()):
        yield f"{',' if number else ''}{_text(name)}: "
        yield from _document(_head(report), report)
    yield "}\n}\n"


def line_of(outcome: CaseOutcome) -> str:
    """An outcome as JSON in one line."""
    return _text(outcome)


def comparison_text(comparison: RegressionReport) -> str:
    """A comparison as JSON."""
    plain = {name: _lowered(getattr(comparison, name)) for name in comparison.__slots__}
    detectable = comparison.detectable
    whole = {
        "adk_fluent": {"kind": COMPARISON, "schema": SCHEMA},
        **plain,
        "compared": comparison.compared,
        "p_value": comparison.p_value,
        "significant": comparison.significant,
        "detectable": detectable if math.isfinite(detectable) else None,
        "ok": comparison.ok,
    }
    return encodable(json.dumps(_safe(whole), ensure_ascii=False, indent=1))


def _document(head: Mapping[str, Any], report: FluentEvalReport) -> Iterator[str]:
    yield "{\n"
    for name, value in head.items():
        yield f"{_text(name)}: {_text(value)},\n"
    yield '"outcomes": [\n'
    for number, outcome in enumerate(report.outcomes):
        yield f",\n{_text(outcome)}" if number else _text(outcome)
    yield "\n]\n}\n"


def _head(report: FluentEvalReport) -> dict[str, Any]:
    gate, shards, failures = report.gate, report.shards, report.failures
    return {
        "suite": report.suite,
        "engine": report.engine,
        "adk_version": report.adk_version,
        "model": report.model,
        "started_at": report.started_at.isoformat(),
        "duration_s": report.duration_s if math.isfinite(report.duration_s) else 0.0,
        "interrupted": report.interrupted,
        "metrics": report.metrics,
        "notes": report.notes,
        "shards": None
        if shards is None
        else {"of": shards.of, "have": shards.have, "merged": shards.merged},
        "gate": {
            "min_pass_rate": gate.min_pass_rate,
            "min_tag_pass_rate": dict(gate.min_tag_pass_rate),
            "min_metric": dict(gate.min_metric),
            "max_regressions": gate.max_regressions,
            "significant_only": gate.significant_only,
            "allow_flaky": gate.allow_flaky,
            "max_cost_usd": gate.max_cost_usd,
        },
        "kept_baseline": baseline_runs(report),
        "kept_regressions": report.kept_regressions if report.baseline is None else (),
        "summary": {  # for those who read files with other tools; nothing here reads it
            "ok": not failures,
            "failures": failures,
            "pass_rate": report.pass_rate,
            "pass_rate_ci": report.pass_rate_ci(),
            "counts": report.counts,
            "flaky": report.flaky,
            "tokens": report.tokens.total,
            "cost_usd": report.cost_usd,
            "eval_tokens": report.eval_tokens.total,
            "eval_cost_usd": report.eval_cost_usd,
        },
    }


def _text(value: Any) -> str:
    """A value as JSON in one line."""
    try:
        text = json.dumps(
            value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_record
        )
    except (TypeError, ValueError, RecursionError):  # something that JSON cannot say
        text = json.dumps(_safe(value), ensure_ascii=False, separators=(",", ":"))
    return encodable(text)


def _record(value: Any) -> Any:
    """A record of ours as data; what is no data by its type, as it may hold secrets."""
    defaults = _FIELDS.get(cast("type[Any]", type(value)))
    if defaults is None:
        return f"({describe(value)})"
    found: dict[str, Any] = {}
    for name, default in defaults.items():
        each = getattr(value, name)
        if name in _ALWAYS or not (type(each) is type(default) and each == default):
            found[name] = each
    return found


def _safe(value: Any, depth: int = 0) -> Any:
    """Data that JSON can say, in place of data that it cannot."""
    if value is None or isinstance(value, str | int | float):
        return _safe_scalar(value)
    if depth >= _DEPTH:
        return f"({describe(value)} nested too deep)"
    if isinstance(value, dict):
        pairs = cast("dict[Any, Any]", value).items()
        return {_key(key): _safe(each, depth + 1) for key, each in pairs}
    if isinstance(value, list | tuple):
        return [_safe(each, depth + 1) for each in cast("list[Any]", value)]
    return _safe_record(value, depth)


def _safe_scalar(value: str | float | None) -> str | float | None:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int) and value.bit_length() >= _INT_BITS:
        return "(a very large int)"
    return value


def _safe_record(value: Any, depth: int) -> Any:
    plain = _record(value)
    if isinstance(plain, str):
        return plain
    defaults = _FIELDS[cast("type[Any]", type(value))]
    return {  # a null stands only where the reader takes one
        name: each
        for name, each in _safe(plain, depth + 1).items()
        if each is not None or name == "score" or defaults[name] is None
    }


def _key(key: Any) -> str:
    return key if isinstance(key, str) else str(_safe(key))


def _lowered(value: Any) -> Any:
    """Records of a comparison as data."""
    if isinstance(value, dict):
        return {name: _lowered(each) for name, each in cast("dict[str, Any]", value).items()}
    if isinstance(value, tuple):
        return [_lowered(each) for each in cast("tuple[Any, ...]", value)]
    if isinstance(value, CaseChange | Delta):
        return {each.name: _lowered(getattr(value, each.name)) for each in fields(value)}
    return value

"""Reports read from files, strictly: what is wrong is told with its line or field."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime  # noqa: TC003  # pydantic reads the fields' types
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic import TypeAdapter, ValidationError

from adk_fluent._words import describe
from adk_fluent.eval._errors import EvalError, EvalFileError
from adk_fluent.eval._gate import Gate
from adk_fluent.eval._outcome import CaseOutcome
from adk_fluent.eval._report._json import MATRIX, REPORT, SCHEMA
from adk_fluent.eval._report._merge import Shards
from adk_fluent.eval._report._report import FluentEvalReport

if TYPE_CHECKING:
    import os

_MORE: Final = 3  # errors of fields that are told beside the first


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
class _ShardsFile:
    of: int
    have: list[int]
    merged: bool = False


@dataclass
class _ReportFile:
    suite: str
    started_at: datetime
    gate: _GateFile
    outcomes: list[CaseOutcome]
    engine: str = ""
    adk_version: str = ""
    model: str = ""
    duration_s: float = 0.0
    interrupted: bool = False
    metrics: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    shards: _ShardsFile | None = None
    kept_baseline: dict[str, list[bool]] | None = None
    kept_regressions: list[str] = field(default_factory=list[str])


@dataclass
class _MatrixFile:
    reports: dict[str, _ReportFile]


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def read_report(path: str | os.PathLike[str]) -> FluentEvalReport:
    """The report of a file.

    Raises:
        EvalFileError: There is none, or it is broken, something else, or of a newer version.
    """
    name = str(path)
    return _made(_parsed(name, REPORT, _ReportFile), name)


def read_matrix(path: str | os.PathLike[str]) -> dict[str, FluentEvalReport]:
    """The reports of a matrix's file, by model.

    Raises:
        EvalFileError: As `read_report`.
    """
    name = str(path)
    found: _MatrixFile = _parsed(name, MATRIX, _MatrixFile)
    return {
        model: _made(each, name, f"reports[{model!r}]") for model, each in found.reports.items()
    }


def outcome_of(data: Any, path: str, line: int) -> CaseOutcome:
    """The outcome of a line of a journal.

    Args:
        data: The outcome, as JSON is read.
        path: The file.
        line: The line, counted from 1.

    Raises:
        EvalFileError: A field is not what it should be.
    """
    try:
        return _adapter(CaseOutcome).validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        raise _misfit(error, path, line) from None  # its own text shows contents


def _made(file: _ReportFile, path: str, field: str = "") -> FluentEvalReport:
    try:
        gate = Gate(**vars(file.gate))
        report = FluentEvalReport(
            file.outcomes,
            suite=file.suite,
            gate=gate,
            metrics=file.metrics,
            engine=file.engine,
            adk_version=file.adk_version,
            started_at=file.started_at,
            duration_s=file.duration_s,
            notes=file.notes,
            interrupted=file.interrupted,
            model=file.model,
        )
    except EvalError as error:
        raise EvalFileError(
            f"the report does not hold together: {error.what}",
            path=path,
            field=field,
            found=error.found,
        ) from error
    if (shards := file.shards) is not None:
        report.shards = Shards(shards.of, tuple(shards.have), shards.merged)
    report.kept_baseline = file.kept_baseline
    report.kept_regressions = tuple(file.kept_regressions)
    return report


def _parsed(path: str, kind: str, shape: type[Any]) -> Any:
    text = _content(path)
    _check_head(_loaded(text, path), path, kind)
    try:
        return _adapter(shape).validate_json(text, strict=True)
    except ValidationError as error:
        raise _misfit(error, path) from None  # its own text shows contents


def _content(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise EvalFileError(
            "there is no such file", path=path, help="write one with report.save(path)"
        ) from error
    except UnicodeDecodeError as error:
        raise EvalFileError(
            "the file is no text in UTF-8", path=path, found=f"byte {error.start:,} is none of it"
        ) from error
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise EvalFileError(f"the file cannot be read: {why}", path=path) from error


def _loaded(text: str, path: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise EvalFileError(
            "the file is no JSON" if text.strip() else "the file is empty",
            path=path,
            line=error.lineno,
            found=f"{error.msg} at column {error.colno}",
            help="it may have been cut off; save the report again",
        ) from error
    except (RecursionError, ValueError) as error:
        raise EvalFileError(
            "the file is JSON that cannot be read: nested too deep, or with numbers too long",
            path=path,
        ) from error


def _check_head(data: Any, path: str, kind: str) -> None:
    head: Any = cast("dict[str, Any]", data).get("adk_fluent") if isinstance(data, dict) else None
    found = cast("dict[str, Any]", head) if isinstance(head, dict) else {}
    if found.get("kind") != kind:
        other = found.get("kind")
        raise EvalFileError(
            f"the file is no {_KINDS[kind]}",
            path=path,
            field="adk_fluent.kind",
            found=f"a file of kind {other[:60]!r}"
            if isinstance(other, str)
            else "JSON of something else",
            help=_HELP.get(str(other)),
        )
    schema = found.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise EvalFileError(
            "the file does not say of which schema it is",
            path=path,
            field="adk_fluent.schema",
            found=describe(schema),
        )
    if schema > SCHEMA:
        raise EvalFileError(
            f"the file is of schema {schema}, and this version reads up to {SCHEMA}",
            path=path,
            field="adk_fluent.schema",
            help="upgrade adk-fluent-eval",
        )


_KINDS: Final = {REPORT: "report of a suite", MATRIX: "matrix of models"}
_HELP: Final = {
    REPORT: "read it with FluentEvalReport.load(path)",
    MATRIX: "read it with ModelMatrix.load(path)",
}


def _misfit(error: ValidationError, path: str, line: int | None = None) -> EvalFileError:
    problems = error.errors(include_url=False, include_context=False)
    first = problems[0]
    places = [_place(each["loc"]) for each in problems]
    more = len(problems) - 1
    found = f"{first['msg']}; found {describe(first['input'])}"
    if first["type"] == "missing":
        found = "nothing"
    if more:
        others = ", ".join(places[1 : 1 + _MORE])
        found += f"; and {more:,} more, at {others}{', ...' if more > _MORE else ''}"
    return EvalFileError(
        "a field of the file is not what it should be",
        path=path,
        line=line,
        field=places[0],
        found=found,
    )


def _place(location: tuple[int | str, ...]) -> str:
    made = ""
    for each in location:
        made += f"[{each}]" if isinstance(each, int) else f".{each}" if made else each
    return made

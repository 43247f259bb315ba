"""Suites in YAML, as the specification writes them (section 6.11), and cases in tables.

A table is CSV, or JSON lines with a case on each line.
"""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.errors import nearest_name
from adk_fluent.eval._errors import EvalError, EvalFileError
from adk_fluent.eval._files import _codec as codec
from adk_fluent.eval._files._codec import Reader, Registry, SuiteData
from adk_fluent.eval._files._source import Source
from adk_fluent.extend import to_yaml_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adk_fluent.eval._cases._suite import Suite


_EXTENSION: Final = "x-"  # keys at the top that only hold anchors


def load_yaml(path: str | os.PathLike[str], registry: Registry | None = None) -> SuiteData:
    """Return the suite in a YAML file."""
    name = os.fspath(path)
    source, value = Source.read_yaml(path)
    given = source.mapping((), value)
    given = {key: each for key, each in given.items() if not key.startswith(_EXTENSION)}
    if "eval_cases" in given:
        help = "read it with FluentEvalSuite.from_eval_set(path)"
        raise source.error((), "the file is an eval set of ADK", help=help)
    reader = Reader(source, registry)
    fields = reader.fields((), given, (*codec.SUITE_FIELDS, "cases"), "a suite")
    cases: Any = fields.pop("cases", None)
    if not isinstance(cases, list):
        help = "write cases: with a list"
        raise source.error(("cases",), "the file has no list of cases", help=help)
    read = reader.cases(("cases",), cast("list[Any]", cases))
    return SuiteData({"name": Path(name).stem, **fields}, read, source)


def write_yaml(path: str | os.PathLike[str], suite: Suite) -> None:
    """Write a suite as YAML."""
    made = {**codec.suite_data(suite), "cases": [codec.case_data(case) for case in suite.cases]}
    Source.write(path, [to_yaml_text(made)])


# --- tables --------------------------------------------------------------------------------------

_METADATA: Final = "metadata."
_LISTS: Final = frozenset({"expected_trajectory", "tags", "rubrics"})
_TEXTS: Final = (
    *("input", "id", "reference_response", "target_node", "trajectory_match"),
    *("expected_status", "skip", "xfail"),
)
#: What spreadsheets write where a field takes a reason.
_NO_REASON: Final = frozenset({"true", "false", "yes", "no", "0", "1"})
_LONGEST: Final = 2**31 - 1  # characters of a cell


def load_table(
    path: str | os.PathLike[str],
    map: Mapping[str, str] | None = None,
    registry: Registry | None = None,
) -> SuiteData:
    """Return the cases of a CSV file, or of JSON lines (``.jsonl``, ``.ndjson``)."""
    name, kind = os.fspath(path), Path(path).suffix.lower()
    read = {".csv": _csv, ".jsonl": _json_lines, ".ndjson": _json_lines}.get(kind)
    if read is None:
        found = kind or "no suffix"
        raise EvalFileError("a table is .csv or .jsonl", path=name, found=found)
    rows = list(read(Source.read_text(path, newline=""), name, dict(map or {})))
    source = Source(name, {("cases", n): line for n, (line, _) in enumerate(rows)})
    if not rows:
        raise source.error((), "the file has no cases")
    cases = Reader(source, registry).cases(("cases",), [row for _, row in rows])
    return SuiteData({"name": Path(name).stem}, cases, source)


def _csv(text: str, path: str, map: dict[str, str]) -> Iterator[tuple[int, dict[str, Any]]]:
    csv.field_size_limit(_LONGEST)
    head = text.partition("\n")[0]  # spreadsheets of some languages write semicolons
    delimiter = ";" if ";" in head and "," not in head else ","
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    fields: list[str] | None = None
    line = 1
    try:
        for cells in reader:
            source = Source(path, {(): line})
            if fields is None:
                fields = _fields(source, cells, map)
            elif any(cells):
                if len(cells) != len(fields):
                    what = f"the row has {len(cells)} cells, the first row {len(fields)}"
                    help = "put cells with commas, quotes or line breaks in double quotes"
                    raise source.error((), what, help=help)
                row = zip(fields, cells, strict=True)
                made = {key: _cell(source, key, cell) for key, cell in row if cell}
                yield line, _folded(source, made)
            line = reader.line_num + 1
    except csv.Error as error:
        help = 'a quote in a quoted cell is written twice: ""'
        what = f"invalid CSV: {error}"
        raise EvalFileError(what, path=path, line=line, help=help) from error


def _json_lines(text: str, path: str, map: dict[str, str]) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, each in enumerate(text.split("\n"), 1):  # not splitlines: texts may have U+2028
        if each.strip():
            source = Source(path, {(): line})
            value = source.mapping((), source.parse_json(each, line))
            fields = _fields(source, list(value), {k: v for k, v in map.items() if k in value})
            yield line, _folded(source, dict(zip(fields, value.values(), strict=True)))


def _fields(source: Source, columns: list[str], map: dict[str, str]) -> list[str]:
    """The field of a case that each column has."""
    for column in map:
        if column not in columns:
            what = f"map= names column {column!r}, which the file does not have"
            raise EvalError(what, location=source.path, found=", ".join(columns) or "no columns")
    fields = [map.get(each, each).strip() for each in columns]
    for column, field in zip(columns, fields, strict=True):
        if fields.count(field) > 1:
            raise source.error((), f"two columns are the field {field!r}")
        is_metadata = field.startswith(_METADATA) and field != _METADATA
        if field not in codec.CASE_FIELDS and not is_metadata:
            near = nearest_name(field, codec.CASE_FIELDS) or "input"
            help = f"map={{{column!r}: {near!r}}}, or call it metadata.{column}"
            raise source.error((), f"column {column!r} is not a field of a case", help=help)
    return fields


def _cell(source: Source, field: str, text: str) -> Any:
    """The value of a cell of CSV: a text, a list with ``|`` between its items, or JSON."""
    if field in {"skip", "xfail"} and text.strip().lower() in _NO_REASON:
        help = "write the reason, or leave the cell empty"
        raise source.error((), f"{field} is a reason, not a yes or no", found=text, help=help)
    if field in _TEXTS or field.startswith(_METADATA):
        return text
    if not text.lstrip().startswith(("[", "{")):
        if field in _LISTS:
            return [each.strip() for each in text.split("|")]
        if field == "expected_response_contains":
            return text
    return source.parse_json(text, source.line_of(()) or 1, field)


def _folded(source: Source, row: dict[str, Any]) -> dict[str, Any]:
    """A row with the fields ``metadata.x`` in its metadata."""
    own = {key: row.pop(key) for key in [*row] if key.startswith(_METADATA)}
    if own:
        held = source.mapping(("metadata",), row.get("metadata", {}))
        row["metadata"] = held | {key.removeprefix(_METADATA): each for key, each in own.items()}
    return row

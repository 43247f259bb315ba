"""Cases in tables: CSV, and JSON lines, which hold a case each."""

from __future__ import annotations

import csv
import io
import json
import os
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.errors import nearest_name
from adk_fluent.eval._errors import EvalError, EvalFileError
from adk_fluent.eval._files._content import SuiteData
from adk_fluent.eval._files._json_text import parse_json
from adk_fluent.eval._files._place import Source, read_text
from adk_fluent.eval._files._plain import case_data
from adk_fluent.eval._files._read import CASE_FIELDS, Reader, distinct

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._files._marked import Registry
    from adk_fluent.eval._files._place import At

_LIMIT: Final = Lock()
_LONGEST: Final = 2**31 - 1  # what csv can count to on every system
_METADATA: Final = "metadata."
_BETWEEN: Final = "|"
_QUOTE_ERRORS: Final = ("expected after", "unexpected end")

_LISTS: Final = frozenset({"expected_trajectory", "rubrics", "tags"})
_NUMBERS: Final = frozenset(
    {"max_cost_usd", "max_latency_s", "max_tokens", "max_tool_calls", "timeout_s"}
)
_JSON: Final = frozenset(
    {"initial_state", "metadata", "mock_tool_outputs", "simulation", "state_assertions"}
)


def load_csv(
    path: str | os.PathLike[str],
    map: Mapping[str, str] | None = None,
    registry: Registry | None = None,
) -> SuiteData:
    """The cases of a CSV file, a row each; the first row names the fields.

    Lists (`tags`, `expected_trajectory`, `rubrics`) are split at ``|``, or are JSON lists. Fields
    that hold mappings are JSON. A column ``metadata.x`` is what the metadata holds as ``x``. Empty
    cells say nothing.

    Args:
        path: The file.
        map: Column to the field that it is, such as ``{"question": "input"}``.
        registry: Functions by the names that the file calls them by.

    Raises:
        EvalFileError: The file cannot be read, or says something that has no meaning; the error
            names the line and the field.
    """
    name = os.fspath(path)
    rows = _rows(read_text(path), name)
    first = next(rows, None)
    if first is None:
        raise EvalFileError("the file is empty", path=name, help="its first row names the fields")
    columns = _columns(Source(name, line=1), first[1], map or {})

    def cases() -> Iterator[tuple[Source, At, FluentCase]]:
        for line, cells in rows:
            if not any(cells):
                continue
            source = Source(name, line=line)
            if len(cells) != len(columns):
                raise source.error(
                    (),
                    "the row is cut off" if len(cells) < len(columns) else "the row is too long",
                    found=f"{len(cells)} cells of {len(columns)}",
                    help="put cells with commas or line breaks in quotes",
                )
            values = _named(source, columns, cells)
            yield source, (), Reader(source, registry).case((), values)

    return SuiteData(Path(name).stem, distinct(cases()))


def load_jsonl(
    path: str | os.PathLike[str],
    map: Mapping[str, str] | None = None,
    registry: Registry | None = None,
) -> SuiteData:
    """The cases of a file of JSON lines, each as a case of a YAML file; empty lines say nothing.

    Args:
        path: The file.
        map: Key to the field that it is, such as ``{"question": "input"}``.
        registry: Functions by the names that the file calls them by, as ``{"call": name}``.

    Raises:
        EvalFileError: The file cannot be read, or says something that has no meaning; the error
            names the line and the field.
    """
    name = os.fspath(path)

    def cases() -> Iterator[tuple[Source, At, FluentCase]]:
        # not splitlines: a text may hold characters that it takes for the end of a line
        for number, text in enumerate(read_text(path).split("\n"), 1):
            if not text.strip():
                continue
            source = Source(name, line=number)
            reader = Reader(source, registry)
            value = reader.mapping((), parse_json(text, name, number), "the line")
            keys = _columns(source, list(value), map or {})
            yield source, (), reader.case((), _unfolded(source, keys, value.values()))

    return SuiteData(Path(name).stem, distinct(cases()))


def dump_jsonl(data: SuiteData) -> str:
    """The cases of a suite as JSON lines; what is said of the whole suite has no place in them.

    Raises:
        EvalError: A case holds something that cannot be written; the error names case and field.
    """
    return "".join(f"{json.dumps(case_data(case), ensure_ascii=False)}\n" for case in data.cases)


# --- columns -----------------------------------------------------------------------------------


def _columns(source: Source, names: list[str], map: Mapping[str, str]) -> list[str]:
    """The fields that columns are, in their order."""
    for column in map:
        if column not in names:
            raise EvalError(
                f"map= names {column!r}, and the file has no such column",
                location=source.path,
                help=f"it has {', '.join(names) or 'none'}",
            )
    fields: list[str] = []
    for name in names:
        field = map.get(name, name).strip()
        inner = field.removeprefix(_METADATA)
        if field not in CASE_FIELDS and (inner == field or not inner):
            raise _unknown_column(source, names, name, map)
        if field in fields:
            raise source.error((name,), f"two columns are the field {field!r}")
        fields.append(field)
    return fields


def _unknown_column(
    source: Source, names: list[str], name: str, map: Mapping[str, str]
) -> EvalFileError:
    if len(names) == 1 and ";" in name:
        return source.error(
            (), "the file has one column", found="semicolons", help="separate cells by commas"
        )
    if name in map:
        return source.unknown((map[name],), "a case", CASE_FIELDS)
    near = nearest_name(name, CASE_FIELDS)
    ways = f"map={{{name!r}: {near or 'input'!r}}}, or call it metadata.{name or 'x'}"
    return source.error(
        (name,),
        f"the column {name!r} is no field of a case",
        help=f"did you mean {near!r}? Else say what it is: {ways}"
        if near
        else f"say what it is: {ways}",
    )


def _named(source: Source, columns: list[str], cells: list[str]) -> dict[str, Any]:
    """What a row says, by field."""
    said = [(field, cell) for field, cell in zip(columns, cells, strict=True) if cell]
    values = [_cell(source, field, cell) for field, cell in said]
    return _unfolded(source, [field for field, _ in said], values)


def _unfolded(source: Source, fields: list[str], values: Any) -> dict[str, Any]:
    """Values by field, with those of ``metadata.x`` put into the metadata."""
    made: dict[str, Any] = {}
    noted: dict[str, Any] = {}
    for field, value in zip(fields, values, strict=True):
        if field.startswith(_METADATA):
            noted[field.removeprefix(_METADATA)] = value
        else:
            made[field] = value
    if noted:
        whole: Any = {} if made.get("metadata") is None else made["metadata"]
        made["metadata"] = {**Reader(source).mapping(("metadata",), whole), **noted}
    return made


# --- cells -------------------------------------------------------------------------------------


def _rows(text: str, path: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV text, each with the line in which it starts."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    with _long_cells(len(text)):
        rows = list(_parsed(reader, path))
    return iter(rows)


def _parsed(reader: Any, path: str) -> Iterator[tuple[int, list[str]]]:
    line = 1
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            quotes = any(each in str(error) for each in _QUOTE_ERRORS)
            raise EvalFileError(
                f"broken CSV: {error}",
                path=path,
                line=line,
                help='a quote in a quoted cell is written twice: ""' if quotes else None,
            ) from error
        if row is None:
            return
        yield line, row
        line = reader.line_num + 1


@contextmanager
def _long_cells(length: int) -> Generator[None]:
    """Cells of any length, where a file may have some; csv has one limit for the whole process."""
    with _LIMIT:  # or another thread would read, or put back, what is ours
        before = csv.field_size_limit()
        if length <= before:
            yield
            return
        csv.field_size_limit(min(length, _LONGEST))
        try:
            yield
        finally:
            csv.field_size_limit(before)


def _cell(source: Source, field: str, text: str) -> Any:
    """What a cell says."""
    if field in _JSON or (
        (field in _LISTS or field == "expected_response_contains")
        and (text.lstrip().startswith(("[", "{")))
    ):
        return parse_json(text, source.path, source.line, field)
    if field in _LISTS:
        return [each.strip() for each in text.split(_BETWEEN)]
    if field in _NUMBERS:
        return _number(source, field, text)
    return text


def _number(source: Source, field: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise source.error((field,), f"{field}: is no number", found=repr(text[:40])) from None
    return int(number) if number.is_integer() else number

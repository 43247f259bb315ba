"""Files of JSON and YAML that people edit: read strictly, with errors that name line and field.

Values that JSON does not have, keys given twice and values without end are refused, nothing in a
file can run code, and dates stay text.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Collection, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, NoReturn, Self, TypeAlias, cast

from adk_fluent._arguments import must_be
from adk_fluent._words import describe
from adk_fluent.errors import DataFileError, UsageError, nearest_name

#: The path from the top of a file to a value: keys, and positions in lists.
At: TypeAlias = "tuple[str | int, ...]"

_LARGEST: Final = 500_000  # values; aliases in a few lines can stand for billions
_HEAD: Final = 4096  # bytes in which a page of HTML begins
_LONGEST: Final = 2_000_000  # characters of JSON in which lines are looked for
#: What is wrong, before the fault: "case 'a': ".
_WHAT: Final = re.compile(r"""\w+(?: (?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"))?: """)
_FIELD: Final = re.compile(r"(\w+)=")
#: What is wrong with a path that is none, and what to give.
_PATH: Final = ("a file is given by its path", "a text, or a Path")


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file as errors name it; a layer derives from it and gives the errors a `kind` of their own.

    ::

        file, value = DataFile.read_yaml("prices.yaml")
        rows = file.mapping((), value, ("models",), "a price list")

    Attributes:
        kind: The class of its errors.
        wheel: The distribution that reads it.
        number_keys: Whether whole numbers may be keys in YAML, which JSON does not have.
        path: The file.
        lines: Paths of values to their lines, counted from 1.
        text: The file as JSON, in which lines are looked for when there is an error.
    """

    kind: ClassVar[type[DataFileError]] = DataFileError
    wheel: ClassVar[str] = "adk-fluent-core"
    number_keys: ClassVar[bool] = False
    path: str
    lines: Mapping[At, int] = field(default_factory=dict["At", int])
    text: str = field(default="", repr=False)

    # --- reading and writing -------------------------------------------------------------------

    @classmethod
    def read_text(
        cls, path: str | os.PathLike[str], newline: str | None = None, errors: str | None = None
    ) -> str:
        """Return the text of a file in UTF-8, without a byte order mark.

        Args:
            path: The file.
            newline: As of open.
            errors: As of open.

        Raises:
            DataFileError: It cannot be read, or is not UTF-8.
            UsageError: It is no path.
        """
        must_be(str | os.PathLike, path, *_PATH)
        try:
            with Path(path).open(encoding="utf-8-sig", newline=newline, errors=errors) as file:
                return file.read()
        except UnicodeDecodeError as error:
            raise cls.kind("the file is not UTF-8", path=os.fspath(path)) from error
        except (OSError, ValueError) as error:  # ValueError: a null character in its name
            what = f"the file cannot be read: {getattr(error, 'strerror', None) or error}"
            raise cls.kind(what, path=os.fspath(path)) from error

    @classmethod
    def read_json(cls, path: str | os.PathLike[str]) -> tuple[Self, Any]:
        """Return a file of JSON and its value.

        Raises:
            DataFileError: It cannot be read, or is not JSON.
        """
        text = cls.read_text(path)
        made = cls(os.fspath(path), text=text)
        return made, made.parse_json(text)

    @classmethod
    def read_yaml(cls, path: str | os.PathLike[str]) -> tuple[Self, Any]:
        """Return a file of YAML and its value, with the lines of its parts.

        Raises:
            DataFileError: It cannot be read, or is not YAML.
        """
        from adk_fluent import _yaml_files  # noqa: PLC0415  # imports yaml, which is slow

        text, lines = cls.read_text(path), dict[At, int]()
        try:
            look = partial(_locate, at=(), lines=lines)
            value = _yaml_files.parsed(text, look, number_keys=cls.number_keys)
        except (*_yaml_files.FAULTS, RecursionError) as error:
            what, line = _yaml_files.fault(error)
            raise cls.kind(
                f"invalid YAML: {what}",
                path=os.fspath(path),
                line=line,
                help="indent with spaces, not tabs" if r"'\t'" in what else None,
            ) from error
        return cls(os.fspath(path), lines), value

    def parse_json(self, text: str, first: int = 1, field: str = "") -> Any:
        """Return the value of a JSON text of this file.

        Args:
            text: The text.
            first: Its first line in the file.
            field: The field it is from.

        Raises:
            DataFileError: It is not JSON.
        """
        try:
            return json.loads(
                text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite
            )
        except json.JSONDecodeError as error:
            raise self.kind(
                f"invalid JSON: {error.msg}",
                path=self.path,
                line=first + error.lineno - 1,
                field=field,
                found=f"column {error.colno}" if text.strip() else "an empty file",
            ) from error
        except (RecursionError, ValueError) as error:
            what = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            line = first if first > 1 or field else None
            what = f"invalid JSON: {what}"
            raise self.kind(what, path=self.path, line=line, field=field) from error

    @classmethod
    def write(cls, path: str | os.PathLike[str], chunks: Iterable[str]) -> None:
        """Write a text to a file, which is replaced once all of it is on the disk.

        Missing folders are created. Devices and pipes are written to, and never replaced.

        Raises:
            DataFileError: It cannot be written; an old file stays.
            UsageError: It is no path.
        """
        must_be(str | os.PathLike, path, *_PATH)
        temporary: Path | None = None
        try:
            target = Path(path).resolve()  # a link stays a link
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists() and not target.is_file() and not target.is_dir():
                with target.open("w", encoding="utf-8", newline="\n") as device:
                    device.writelines(chunks)
                return
            temporary = target.with_name(f".adk-fluent-{os.getpid()}-{os.urandom(4).hex()}.tmp")
            with temporary.open("x", encoding="utf-8", newline="\n", buffering=1 << 20) as file:
                file.writelines(chunks)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        except BaseException as error:
            if temporary is not None:
                with suppress(OSError):
                    temporary.unlink(missing_ok=True)
            if not isinstance(error, OSError | ValueError):
                raise
            raise cls.kind(
                f"the file cannot be written: {getattr(error, 'strerror', None) or error}",
                path=os.fspath(path),
                help="an old file of that name is unchanged; save to another place",
            ) from error

    @classmethod
    def write_page(cls, path: str | os.PathLike[str], chunks: Iterable[str]) -> None:
        """Write a page of HTML, as `write` does, over nothing else than an older page.

        Raises:
            DataFileError: It cannot be written, or the file holds something else.
        """
        cls.check_page(path)
        cls.write(path, chunks)

    @classmethod
    def check_page(cls, path: str | os.PathLike[str]) -> None:
        """Refuse a file that a page is not to be written over; there may be none yet.

        Raises:
            DataFileError: It holds something else than a page of HTML, or cannot be read.
            UsageError: It is no path.
        """
        must_be(str | os.PathLike, path, *_PATH)
        held = ""
        try:
            if (file := Path(path)).is_file():
                with file.open("rb") as opened:
                    held = opened.read(_HEAD).decode("utf-8", "replace").lower()
        except OSError as error:
            what = f"the file cannot be read: {error.strerror or error}"
            raise cls.kind(what, path=os.fspath(path)) from error
        if held and "<!doctype html" not in held and "<html" not in held:
            what = "this is no page of HTML, and is not written over"
            raise cls.kind(what, path=os.fspath(path), help="write the page to another file")

    # --- errors --------------------------------------------------------------------------------

    def line_of(self, at: At) -> int | None:
        """Return the line of a value, or of the nearest value around it."""
        for length in range(len(at), -1, -1):
            if (line := self.lines.get(at[:length])) is not None:
                return line
        return None

    def error(
        self, at: At, what: str, *, found: str | None = None, help: str | None = None
    ) -> DataFileError:
        """Return an error about a value."""
        if self.text and not self.lines:
            made = type(self)(self.path, _json_lines(self.text))
            return made.error(at, what, found=found, help=help)
        name = ""
        for step in at:
            if isinstance(step, int):
                name += f"[{step}]"
            elif step.isidentifier():
                name += f".{step}" if name else step
            else:
                name += f"[{step!r}]"
        line = self.line_of(at)
        return self.kind(what, path=self.path, line=line, field=name, found=found, help=help)

    @contextmanager
    def naming(self, at: At) -> Generator[None]:
        """Turn a `UsageError` about what is made of a value into an error about that value.

        One that begins with ``name=`` is about the field of that name.
        """
        try:
            yield
        except UsageError as error:
            said = _WHAT.match(error.what)
            what = error.what if said is None else error.what[said.end() :]
            field = _FIELD.match(what)
            if field is not None and (at or (field[1],) in self.lines):
                at = (*at, field[1])
            raise self.error(at, what, found=error.found, help=error.help) from error

    def mapping(
        self, at: At, value: Any, known: Collection[str] = (), what: str = ""
    ) -> dict[str, Any]:
        """Return a value that must be a mapping, as a dict.

        Args:
            at: Its place.
            value: The value.
            known: The keys that it may have; empty allows all.
            what: What it is, such as ``a case``.

        Raises:
            DataFileError: It is no mapping, or has another key.
        """
        if not isinstance(value, Mapping):
            raise self.error(at, "expected a mapping", found=describe(value))
        made = dict(cast("Mapping[str, Any]", value))
        for key in made if known else ():
            if key not in known:
                near = nearest_name(str(key), known)
                help = f"did you mean {near!r}?" if near else f"one of {', '.join(sorted(known))}"
                raise self.error((*at, key), f"{what} has no field {key!r}", help=help)
        return made

    def validated(
        self,
        kind: Any,
        value: Any,
        at: At = (),
        *,
        strict: bool | None = None,
        unknown: str | None = None,
    ) -> Any:
        """Return data of the file as a model, dataclass or other type that pydantic knows.

        Args:
            kind: The type.
            value: The data.
            at: Its place.
            strict: Whether no value is converted, as of pydantic.
            unknown: What to do about a field that the type does not have.

        Raises:
            DataFileError: It is not of the type; says what is wrong first, and where.
        """
        from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415  # slow to import

        try:
            text = json.dumps(value, allow_nan=False)  # base64 is only read from JSON
        except (TypeError, ValueError, RecursionError) as error:
            raise self.error(at, "JSON has no such value", found=str(error)) from error
        try:
            with self.naming(at):
                return TypeAdapter(kind).validate_json(text, strict=strict)
        except ValidationError as error:
            first, *more = error.errors(include_url=False, include_context=False)
            what = f"{first['msg']}{f', and {len(more):,} more' if more else ''}"
            is_missing = first["type"] == "missing"
            found = "nothing" if is_missing else describe(first["input"])
            help = unknown if first["type"] == "extra_forbidden" else None
            way = _in_file(value, first["loc"], missing=is_missing)
            raise self.error((*at, *way), what, found=found, help=help) from None

    def check_schema(self, at: At, schema: object, known: int) -> None:
        """Check that the wheel knows the schema of a file, which a newer one may have written.

        Raises:
            DataFileError: It is newer, or no whole number from 1 on.
        """
        at = (*at, "schema")
        if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
            what = "schema must be a whole number from 1 on"
            raise self.error(at, what, found=describe(schema))
        if schema > known:
            raise self.error(
                at,
                f"schema {schema!r} is newer than this version reads ({known})",
                help=f"upgrade {self.wheel}",
            )


def _json_lines(text: str) -> dict[At, int]:
    """The lines of the values of a JSON text, which is YAML as well; none if it is long."""
    from adk_fluent import _yaml_files  # noqa: PLC0415  # imports yaml, which is slow

    lines: dict[At, int] = {}
    if len(text) <= _LONGEST:
        with suppress(*_yaml_files.FAULTS, RecursionError):
            _locate(_yaml_files.node_of(text), (), lines)
    return lines


def _locate(node: Any, at: At, lines: dict[At, int]) -> None:
    """Note the lines of a node of YAML and of all below it."""
    if len(lines) > _LARGEST:
        what = f"over {_LARGEST:,} values"
        raise ValueError(what)
    lines.setdefault(at, node.start_mark.line + 1)
    if node.id == "sequence":
        for n, each in enumerate(node.value):
            _locate(each, (*at, n), lines)
    elif node.id == "mapping":
        for key, each in node.value:
            lines[*at, str(key.value)] = key.start_mark.line + 1
            _locate(each, (*at, str(key.value)), lines)


def _in_file(value: Any, loc: At, *, missing: bool = False) -> At:
    """What of pydantic's path to a fault is in the data: parts of unions are not.

    Args:
        value: The data.
        loc: The path.
        missing: The last step of it is a field that is not there.
    """
    way: list[str | int] = []
    for step in loc[:-1] if missing else loc:
        try:
            value = value[step]
        except (LookupError, TypeError):
            continue
        way.append(step)
    return (*way, *loc[-1:]) if missing else tuple(way)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        seen = set[str]()
        for key, _ in pairs:
            if key in seen:
                what = f"duplicate key {key!r}"
                raise ValueError(what)
            seen.add(key)
    return made


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        what = f"{text[:40]} is too large"
        raise ValueError(what)
    return value


def _no_constant(name: str) -> NoReturn:
    what = f"{name} is not JSON"
    raise ValueError(what)

"""Files: reading and writing them, and errors that name a place in them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias, cast
from zlib import crc32

from adk_fluent.eval._errors import EvalError, EvalFileError, did_you_mean, one_of
from adk_fluent.extend import describe

_LARGEST: Final = 500_000  # values; aliases in a few lines can stand for billions
_LONGEST: Final = 2_000_000  # characters of JSON in which lines are looked for
#: The path from the top of a file to a value: keys, and positions in lists.
At: TypeAlias = "tuple[str | int, ...]"


@dataclass(frozen=True, slots=True)
class Source:
    """A file, as errors name it.

    Attributes:
        path: The file.
        lines: The lines of values.
        text: The file as JSON, in which an error finds lines that are not known.
    """

    path: str
    lines: Mapping[At, int] = field(default_factory=dict["At", int])
    text: str = field(default="", repr=False)

    def line_of(self, at: At) -> int | None:
        """Return the line of a value, or of the nearest value around it."""
        for length in range(len(at), -1, -1):
            if (line := self.lines.get(at[:length])) is not None:
                return line
        return None

    def error(
        self, at: At, what: str, *, found: str | None = None, help: str | None = None
    ) -> EvalFileError:
        """Return an error about a value."""
        if self.text and not self.lines:
            return Source(self.path, json_lines(self.text)).error(at, what, found=found, help=help)
        name = ""
        for step in at:
            if isinstance(step, int):
                name += f"[{step}]"
            elif step.isidentifier():
                name += f".{step}" if name else step
            else:
                name += f"[{step!r}]"
        return EvalFileError(
            what, path=self.path, line=self.line_of(at), field=name, found=found, help=help
        )

    def invalid(self, at: At, error: EvalError) -> EvalFileError:
        """Return an error about an invalid case or suite, at the field that the error names."""
        what = re.sub(r"^case[^:]*: ", "", error.what)
        field, is_named, _ = what.partition("=")
        if is_named and field.isidentifier() and (at or (field,) in self.lines):
            at = (*at, field)
        return self.error(at, what, found=error.found, help=error.help)

    @contextmanager
    def naming(self, at: At) -> Generator[None]:
        """Turn an error about what is made of a value into one about that value."""
        try:
            yield
        except EvalError as error:
            raise self.invalid(at, error) from error

    def mapping(
        self, at: At, value: Any, known: Collection[str] = (), what: str = ""
    ) -> dict[str, Any]:
        """Return a mapping.

        Args:
            at: Its place.
            value: The value that must be one.
            known: The keys that it may have; empty allows all.
            what: What it is, such as ``a case``.
        """
        if not isinstance(value, Mapping):
            raise self.error(at, "expected a mapping", found=describe(value))
        made = dict(cast("Mapping[str, Any]", value))
        for key in made if known else ():
            if key not in known:
                help = did_you_mean(str(key), known, one_of(sorted(known)))
                raise self.error((*at, key), f"{what} has no field {key!r}", help=help)
        return made

    def check_schema(self, at: At, schema: object, known: int) -> None:
        """Check that this version knows the schema of a file."""
        if not isinstance(schema, int) or schema > known:
            raise self.error(
                (*at, "schema"),
                f"schema {schema!r} is newer than this version reads ({known})",
                help="upgrade adk-fluent-eval",
            )


def read_text(
    path: str | os.PathLike[str], newline: str | None = None, errors: str | None = None
) -> str:
    """Return the text of a file in UTF-8, without a byte order mark.

    `newline` and `errors` are those of open.
    """
    try:
        with Path(path).open(encoding="utf-8-sig", newline=newline, errors=errors) as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise EvalFileError("the file is not UTF-8", path=os.fspath(path)) from error
    except (OSError, ValueError) as error:  # ValueError: a null character in its name
        raise EvalFileError(
            f"the file cannot be read: {getattr(error, 'strerror', None) or error}",
            path=os.fspath(path),
        ) from error


def parse_json(text: str, path: str, first: int = 1, field: str = "") -> Any:
    """Return the value of a JSON text, strictly: no duplicate keys, no NaN.

    Args:
        text: The text.
        path: The file it is from.
        first: Its first line in that file.
        field: The field it is from.
    """
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise EvalFileError(
            f"invalid JSON: {error.msg}",
            path=path,
            line=first + error.lineno - 1,
            field=field,
            found=f"column {error.colno}" if text.strip() else "an empty file",
        ) from error
    except (RecursionError, ValueError) as error:
        what = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        line = first if first > 1 or field else None
        raise EvalFileError(f"invalid JSON: {what}", path=path, line=line, field=field) from error


def read_json(path: str | os.PathLike[str]) -> tuple[Source, Any]:
    """Return a JSON file and its value."""
    text = read_text(path)
    source = Source(os.fspath(path), text=text)
    return source, parse_json(text, source.path)


def json_lines(text: str) -> dict[At, int]:
    """Return the lines of the values of a JSON text, which is YAML as well; none if it is long."""
    import yaml  # noqa: PLC0415  # slow to import, and needed for faults alone

    lines: dict[At, int] = {}
    if len(text) <= _LONGEST:
        with suppress(yaml.YAMLError, ValueError, RecursionError):
            # without complete types
            locate(cast("Any", yaml).compose(text, yaml.SafeLoader), (), lines)
    return lines


def locate(node: Any, at: At, lines: dict[At, int]) -> None:
    """Note the lines of a node of YAML and of all below it."""
    if len(lines) > _LARGEST:
        what = f"over {_LARGEST:,} values"
        raise ValueError(what)
    lines.setdefault(at, node.start_mark.line + 1)
    if node.id == "sequence":
        for n, each in enumerate(node.value):
            locate(each, (*at, n), lines)
    elif node.id == "mapping":
        for key, each in node.value:
            lines[*at, str(key.value)] = key.start_mark.line + 1
            locate(each, (*at, str(key.value)), lines)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        what = f"duplicate key {next(key for key in keys if keys.count(key) > 1)!r}"
        raise ValueError(what)
    return made


def _no_constant(name: str) -> NoReturn:
    what = f"{name} is not JSON"
    raise ValueError(what)


def write_whole(path: str | os.PathLike[str], chunks: Iterable[str]) -> None:
    """Write a text to a file, which is replaced once all of it is on disk.

    Missing folders are created.
    """
    temporary: Path | None = None
    try:
        target = Path(path).resolve()  # a link stays a link
        target.parent.mkdir(parents=True, exist_ok=True)
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
        raise EvalFileError(
            f"the file cannot be written: {getattr(error, 'strerror', None) or error}",
            path=os.fspath(path),
            help="an old file of that name is unchanged; save to another place",
        ) from error


def with_suite(path: str, suite: str) -> str:
    """Return ``run.<suite>.json`` for ``run.json``; the path itself without a suite.

    A name that a file cannot have gets a checksum, so that no two suites write one file.
    """
    if not suite:
        return path
    file = Path(path)
    safe = re.sub(r"[^A-Za-z0-9._-]+", "_", suite)[:80]
    if safe != suite:
        safe += f"-{crc32(suite.encode('utf-8', 'surrogatepass')):08x}"
    return str(file.with_name(f"{file.stem}.{safe}{file.suffix}"))

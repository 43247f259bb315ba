"""Where in a file something stands, and errors that say so."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from adk_fluent.errors import nearest_name
from adk_fluent.eval._errors import EvalFileError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

#: The way from the top of a file to a value: keys, and positions in lists.
At: TypeAlias = "tuple[str | int, ...]"


@dataclass(frozen=True, slots=True)
class Source:
    """A file, or a line of one, as errors name it.

    Attributes:
        path: The file.
        lines: The lines of values, by the way to them.
        line: The line of whatever is not in `lines`; None where it is not known.
        root: What fields are named after, as ``cases[0]``; empty where they stand for themselves.
    """

    path: str
    lines: Mapping[At, int] = field(default_factory=dict["At", int])
    line: int | None = None
    root: At = ()

    def line_of(self, at: At) -> int | None:
        """The line of a value, or of the nearest thing around it."""
        for length in range(len(at), -1, -1):
            if (line := self.lines.get(at[:length])) is not None:
                return line
        return self.line

    def error(
        self, at: At, what: str, *, found: str | None = None, help: str | None = None
    ) -> EvalFileError:
        """An error about the value at a place."""
        return EvalFileError(
            what,
            path=self.path,
            line=self.line_of(at),
            field=field_name((*self.root, *at)),
            found=found,
            help=help,
        )

    def unknown(self, at: At, what: str, known: Iterable[str]) -> EvalFileError:
        """An error about a key that is not one of those that are known.

        Args:
            at: The way to it, which ends with the key.
            what: What it is no key of, such as ``a case``.
            known: The keys that there are.
        """
        names = sorted(known)
        near = nearest_name(str(at[-1]), names)
        return self.error(
            at,
            f"unknown key {at[-1]!r}: there is no such field in {what}",
            help=f"did you mean {near!r}?" if near else f"one of {', '.join(names)}",
        )


def field_name(at: At) -> str:
    """The way to a value as text, such as ``cases[3].input``."""
    name = ""
    for step in at:
        if isinstance(step, int):
            name += f"[{step}]"
        elif step.isidentifier():
            name += f".{step}" if name else step
        else:
            name += f"[{step!r}]"
    return name


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a file in UTF-8, a byte order mark left out, line ends as they are.

    Raises:
        EvalFileError: It is not there, cannot be read, or is not UTF-8.
    """
    file = Path(path)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise _unreadable(file, error) from error
    except ValueError as error:  # a null character in its name
        raise EvalFileError(f"the file cannot be read: {error}", path=str(file)) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise EvalFileError(
            "the file is not UTF-8",
            path=str(file),
            line=data.count(b"\n", 0, error.start) + 1,
            found=f"byte 0x{data[error.start]:02x}",
            help="save it as UTF-8",
        ) from error


def _unreadable(file: Path, error: OSError) -> EvalFileError:
    near = None
    if isinstance(error, FileNotFoundError) and file.parent.is_dir():
        near = nearest_name(file.name, (each.name for each in file.parent.iterdir()))
    return EvalFileError(
        f"the file cannot be read: {error.strerror or error}",
        path=str(file),
        help=f"did you mean {str(file.with_name(near))!r}?" if near else None,
    )

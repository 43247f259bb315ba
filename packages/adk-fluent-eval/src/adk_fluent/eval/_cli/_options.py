"""What options of the commands may hold."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_STDOUT: Final = "-"
#: A file to be written; ``-`` is standard output.
OUT: Final = click.Path(dir_okay=False, allow_dash=True)
#: A file to be read. Whether it is there, the reader tells, and what to do then.
IN: Final = click.Path()


def named_file(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """A file with a name: what is read again, or is read and written, is no stream."""
    if value == _STDOUT:
        raise click.BadParameter("- is no file here; name one.")
    return value


def share(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """A share, as ``0.95`` or ``95%``."""
    if value is None:
        return None
    text = value.strip()
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        number = math.nan
    number = number / 100 if text.endswith("%") else number
    if not 0 <= number <= 1:  # NaN neither
        raise click.BadParameter(f"{value!r} is no share; write 0.95 or 95%.")
    return number


def shard(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, int] | None:
    """One part of a whole, as ``1/4``."""
    if value is None:
        return None
    which, _, of = value.partition("/")
    if not (which.strip().isdecimal() and of.strip().isdecimal()):
        raise click.BadParameter(f"{value!r} is no part of a whole; write 1/4.")
    if not 1 <= int(which) <= int(of):
        raise click.BadParameter(
            f"{value!r}: there is no such part; the last of {of} is {of}/{of}."
        )
    return int(which), int(of)


def seconds(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    """Seconds, above 0."""
    if value is not None and not (math.isfinite(value) and value > 0):
        raise click.BadParameter(f"{value} is no number of seconds above 0.")
    return value


def level(ctx: click.Context, param: click.Parameter, value: float) -> float:
    """A p-value: above 0 and below 1."""
    if not 0 < value < 1:  # NaN neither
        raise click.BadParameter(f"{value} is no number between 0 and 1.")
    return value


def pairs(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """COLUMN=FIELD, several times."""
    made: dict[str, str] = {}
    for each in values:
        column, equals, name = (part.strip() for part in each.partition("="))
        if not (column and equals and name):
            raise click.BadParameter(f"{each!r} is not COLUMN=FIELD.")
        made[column] = name
    return made


def check_files(
    options: dict[str, Any],
    *outputs: str,
    inputs: Iterable[str | None] = (),
    both: Iterable[str] = (),
) -> None:
    """Refuse to write two things to one place, and to write over what is read.

    Args:
        options: Option to its value.
        *outputs: The options that name files to be written.
        inputs: Files that are read, or targets; None names none.
        both: The options that name files that are read, and written in another form.
    """
    taken: dict[Path | str, str] = {}
    for name in (*both, *outputs):
        if (path := options.get(name)) is None:
            continue
        if (other := taken.setdefault(_place(path), name)) != name:
            where = "standard output" if path == _STDOUT else path
            raise click.UsageError(f"--{other} and --{name} are both {where}.")
    for text in filter(None, inputs):
        for path in (text, text.rpartition(":")[0]):  # a target is path.py:attribute
            if path and (name := taken.get(_place(path))) is not None:
                raise click.UsageError(f"--{name} would write over {path}, which is read.")


def _place(path: str) -> Path | str:
    return path if path == _STDOUT else Path(path).resolve()


def registry_option(command: Any) -> Any:
    """The option that gives files the functions that they name."""
    return click.option(
        "--registry",
        metavar="TARGET",
        help="Functions that a file of cases names: module:attribute or path.py:attribute of a "
        "mapping of names to functions, or a module, all of whose functions are meant.",
    )(command)


_FORMS: Final = (
    ("json", "the whole report as JSON"),
    ("html", "a page for browsers"),
    ("junit", "JUnit's XML"),
    ("markdown", "a page in Markdown"),
)


def output_options(*names: str) -> Callable[[Any], Any]:
    """The options that name what is written."""

    def add(command: Any) -> Any:
        for name, what in reversed(_FORMS):
            if name in names:
                option = click.option(
                    f"--{name}",
                    type=OUT,
                    metavar="FILE",
                    help=f"Write {what} there; - is standard output.",
                )
                command = option(command)
        return command

    return add

"""Files of prices: YAML, whose errors name line and field."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Final

from adk_fluent.cost._errors import PriceError, PriceFileError
from adk_fluent.extend import DataFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_HELP: Final = "models with rows such as  my-model: {input: 0.30, output: 2.50}"


class _PriceFile(DataFile):
    """A file of prices; numbers of tokens are keys of its `above`."""

    kind: ClassVar = PriceFileError
    wheel: ClassVar = "adk-fluent-cost"
    number_keys: ClassVar = True


def read_rows(path: Path, check: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """Return the rows of a file, each of them checked.

    Args:
        path: The file.
        check: Raises `PriceError` where a row is invalid.

    Raises:
        PriceFileError: It cannot be read, or a row is invalid; it names line and field.
    """
    file, value = _PriceFile.read_yaml(path)
    if not isinstance(value, dict):
        raise file.error((), "the file has no prices", help=_HELP)
    rows = file.mapping((), value)
    for model, row in rows.items():
        try:
            check({model: row})
        except PriceError as error:
            named, _, way = error.what.partition(repr(model))
            at = [] if named else _fields(way)  # it is about the name, or about a field behind it
            raise file.error(
                (str(model), *at), error.what, found=error.found, help=error.help or _HELP
            ) from None
    return rows


def _fields(what: str) -> list[str]:
    """The way to the field that an error is about, which begins with it: ``, above 9, input: ...``.

    One that does not exist, or is missing, is named behind it.
    """
    way, colon, rest = what.partition(":")
    return re.findall(r"\w+", way) + re.findall(r"'(\w+)'", rest)[:1] if colon else []

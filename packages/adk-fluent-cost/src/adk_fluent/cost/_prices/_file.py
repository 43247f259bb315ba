"""Files of prices: YAML, whose errors name the line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, cast

import yaml

from adk_fluent.cost._errors import PriceError, PriceFileError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_HELP: Final = "models with rows such as  my-model: {input: 0.30, output: 2.50}"
_MOST: Final = 1_000_000  # characters; the largest table known has a tenth


def read_rows(path: Path, check: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """Return the rows of a file, each of them checked.

    Args:
        path: The file.
        check: Raises `PriceError` where a row is invalid.

    Raises:
        PriceFileError: It cannot be read, or a row is invalid; the message has file and line.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PriceFileError(f"the prices in {path} cannot be read", found=str(error)) from error
    if len(text) > _MOST:
        raise PriceFileError(f"the prices in {path} are too large", found=f"{len(text)} characters")
    try:
        root = cast("Any", yaml).compose(text, yaml.SafeLoader)  # half typed
        rows: Any = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:
        raise PriceFileError(f"{path} is no YAML", found=_place(error)) from error
    if not isinstance(root, yaml.MappingNode) or not isinstance(rows, dict):
        raise PriceFileError(f"{path} has no prices", help=_HELP)
    _refuse_twice(path, root)
    for key, value in root.value:
        line, model = key.start_mark.line + 1, key.value
        made: Any = yaml.safe_load(cast("Any", yaml).serialize(value))
        try:
            check({model: made})
        except PriceError as error:
            raise PriceFileError(
                f"{path}, line {_line_of(value, error, line)}: {error.what}",
                found=error.found,
                help=error.help or _HELP,
            ) from None
    return {str(model): row for model, row in cast("dict[Any, Any]", rows).items()}


def _refuse_twice(path: Path, root: Any) -> None:
    """Refuse a model, or a field of one, that is given twice: YAML takes the last one."""
    todo, seen = [root], set[int]()
    while todo:
        node = todo.pop()
        if id(node) in seen:  # an alias
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            todo += node.value
        if not isinstance(node, yaml.MappingNode):
            continue
        lines: dict[str, int] = {}
        for key, value in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            if name in lines:
                found = f"lines {lines[name]}, {line}"
                raise PriceFileError(f"{path} has {name!r} more than once", found=found)
            lines[name] = line
            todo.append(value)


def _line_of(node: Any, error: PriceError, line: int) -> int:
    """The line of the field that an error is about; `line` is that of its model.

    The error begins with the way to it: ``'model', above 200000, input: ...``.
    """
    way, _, rest = error.what.partition(":")
    fields = re.split(r",? ", way)[1:] + re.findall(r"'(\w+)'", rest)[:1]
    for field in fields:
        below = node.value if isinstance(node, yaml.MappingNode) else ()
        for key, value in below:
            if key.value == field:
                line, node = key.start_mark.line + 1, value
    return line


def _place(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    said = getattr(error, "problem", None) or str(error)
    return f"{said}, line {mark.line + 1}" if mark is not None else said

"""Where two pieces of JSON data differ."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

from adk_fluent.debug._redaction import REDACTED

_SHOWN: Final = 200  # characters of a value in a message
_ABSENT: Final = "nothing"


class Difference(NamedTuple):
    """The first place where two pieces of data differ.

    Attributes:
        path: Where, as ``.contents[0].parts[0].text``.
        recorded: What one has there.
        now: What the other has there.
    """

    path: str
    recorded: Any
    now: Any


def first_difference(
    recorded: Any, now: Any, *, empty_is_missing: bool = False
) -> Difference | None:
    """The first difference, depth first; what was redacted is like anything.

    Args:
        recorded: One piece of data.
        now: The other one.
        empty_is_missing: An empty mapping or list is the same as none, as in requests, from which
            what is empty is left out, and in which redaction empties mappings.
    """
    todo: list[Difference] = [Difference("", recorded, now)]
    while todo:
        place = todo.pop()
        path, was, has = place
        if isinstance(was, dict) and isinstance(has, dict):
            todo += reversed(_rows(path, cast("dict[str, Any]", was), cast("dict[str, Any]", has)))
        elif isinstance(was, list) and isinstance(has, list):
            todo += reversed(_items(path, cast("list[Any]", was), cast("list[Any]", has)))
        elif empty_is_missing and _is_empty(was) and _is_empty(has):
            continue
        elif not _equal(was, has) and not _fits(was, has):
            return place
    return None


def shown(value: Any) -> str:
    """A value in a message, cut off where it is long."""
    if value is Missing:
        return _ABSENT
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


def counted(number: int, what: str) -> str:
    """A number of things, in words: ``1 run``, ``2 runs``."""
    return f"{number} {what}{'' if number == 1 else 's'}"


class Missing:
    """Stands for what is not there."""


def _rows(path: str, was: dict[str, Any], has: dict[str, Any]) -> list[Difference]:
    keys = [*was, *(key for key in has if key not in was)]
    return [
        Difference(f"{path}.{key}", was.get(key, Missing), has.get(key, Missing)) for key in keys
    ]


def _items(path: str, was: list[Any], has: list[Any]) -> list[Difference]:
    return [
        Difference(
            f"{path}[{at}]",
            was[at] if at < len(was) else Missing,
            has[at] if at < len(has) else Missing,
        )
        for at in range(max(len(was), len(has)))
    ]


def _is_empty(value: Any) -> bool:
    return value is Missing or (isinstance(value, dict | list) and not value)


def _equal(was: Any, has: Any) -> bool:
    return bool(was == has) and type(was) is type(has)


def _fits(was: Any, has: Any) -> bool:
    """Whether two scalars are the same, as far as one can tell of what was redacted."""
    if was == REDACTED and has is not Missing:
        return True
    if isinstance(was, str) and isinstance(has, str):
        return REDACTED in was and _matches(was.split(REDACTED), has)
    is_number = isinstance(was, int | float) and isinstance(has, int | float)
    return is_number and not isinstance(was, bool) and not isinstance(has, bool) and was == has


def _matches(pieces: list[str], text: str) -> bool:
    """Whether a text is these pieces with anything between them."""
    first, *middle, last = pieces
    if not (text.startswith(first) and text[len(first) :].endswith(last)):
        return False
    at, end = len(first), len(text) - len(last)
    for each in middle:
        at = text.find(each, at, end)
        if at < 0:
            return False
        at += len(each)
    return True

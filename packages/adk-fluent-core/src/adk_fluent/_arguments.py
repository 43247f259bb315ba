"""Checks of arguments, for callers who check no types."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

from adk_fluent._words import describe
from adk_fluent.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")


def must_be(
    kind: Any, value: Any, what: str, help: str | None = None, error: type[UsageError] = UsageError
) -> None:
    """Refuse a value of another kind, also from callers who check no types.

    Args:
        kind: What ``isinstance`` takes; a class itself is never a value of a protocol.
        value: The value.
        what: What takes which kind of value, for the error.
        help: How it is written, for the error.
        error: The error.

    Raises:
        UsageError: It is of another kind.
    """
    is_bool = isinstance(value, bool) and kind is not bool  # to Python alone, it is an int
    if is_bool or isinstance(value, type) or not isinstance(value, kind):
        raise error(what, found=describe(value), help=help)


def must_be_number(
    value: Any,
    what: str,
    help: str | None = None,
    *,
    most: float = inf,
    above_0: bool = False,
    kind: Any = int | float,
) -> None:
    """Refuse what is no finite number of 0 or more.

    Args:
        value: The number.
        what: What takes which numbers, for the error.
        help: How it is written, for the error.
        most: The largest one.
        above_0: 0 is none.
        kind: What ``isinstance`` takes.

    Raises:
        UsageError: It is none.
    """
    must_be(kind, value, what, help)
    if not 0 <= value <= most or value == inf or (above_0 and not value):
        raise UsageError(what, found=describe(value), help=help)


def one_of(value: T, known: Sequence[T], role: str) -> T:
    """Return a value that is one of a few.

    Args:
        value: The value.
        known: The values that are allowed.
        role: What it is for, as the start of the error: the name of an argument.

    Raises:
        UnknownNameError: It is none of them.
    """
    if value in known:
        return value
    raise UnknownNameError(
        f"{role} is one of {', '.join(map(repr, known))}",
        unknown=str(value),
        known=map(str, known),
        found=repr(value) if isinstance(value, str) else describe(value),
    )

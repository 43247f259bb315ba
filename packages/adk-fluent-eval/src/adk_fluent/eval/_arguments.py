"""The checks of arguments, which type checkers of users may not have checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.errors import nearest_name
from adk_fluent.eval._errors import EvalError
from adk_fluent.extend import describe

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable


_NOTHING: Final = object()
_LISTED: Final = 20  # names


def require(holds: object, what: str, value: object = _NOTHING, *, help: str | None = None) -> None:
    """Check that something holds of an argument.

    Args:
        holds: Whether it does.
        what: What is wrong if it does not.
        value: The argument, which the error describes.
        help: What to do.

    Raises:
        EvalError: It does not hold.
    """
    if not holds:
        raise EvalError(what, found=None if value is _NOTHING else describe(value), help=help)


def require_type(value: object, kind: Any, what: str, *, help: str | None = None) -> None:
    """Check the type of an argument, which type checkers of users may not have checked.

    Raises:
        EvalError: It is of another type.
    """
    require(isinstance(value, kind), what, value, help=help)


def did_you_mean(name: str, known: Iterable[str], otherwise: str | None = None) -> str | None:
    """Return the help line for an unknown name: the known name most like it, if one is near."""
    near = nearest_name(name, known)
    return f"did you mean {near!r}?" if near else otherwise


def check_known(
    names: Iterable[Any],
    known: Collection[str],
    what: str,
    kind: str,
    error: Callable[..., EvalError] = EvalError,
) -> None:
    """Check that all names are known.

    Args:
        names: The names.
        known: The names that there are.
        what: What is wrong with a name that is not, which follows.
        kind: What the names are names of, such as ``tags``.
        error: Makes the error.

    Raises:
        EvalError: One is unknown; lists the known ones.
    """
    for name in map(str, names):
        if name not in known:
            some = ", ".join(sorted(known)[:_LISTED])
            found = f"{kind}: {some}" if some else f"no {kind}"
            help = did_you_mean(name, known)
            raise error(f"{what} {name!r}", found=found, help=help)


def one_of(names: Iterable[str]) -> str:
    """Return the help line that lists what is known."""
    return f"one of {', '.join(names)}"


def is_number(value: Any) -> bool:
    """Whether a value is a finite int or float (not a bool)."""
    is_real = isinstance(value, int | float) and not isinstance(value, bool)
    return is_real and math.isfinite(value)


def is_limit(value: Any) -> bool:
    """Whether a value is a finite number from 0 up."""
    return is_number(value) and value >= 0


def is_whole(value: Any, least: int = 0) -> bool:
    """Whether a value is a whole number from `least` up (not a bool)."""
    return is_number(value) and isinstance(value, int) and value >= least


def is_mapping(value: Any) -> bool:
    """Whether a value is a mapping."""
    return isinstance(value, Mapping)


def is_text(value: Any) -> bool:
    """Whether a value is a text that is not blank."""
    return isinstance(value, str) and bool(value.strip())


def positive(name: str, value: Any) -> int:
    """Return a whole number from 1 up."""
    require(is_whole(value, 1), f"{name}= must be a whole number >= 1", value)
    return value


def listed(name: str, value: Any) -> list[Any]:
    """Return an argument that takes several values as a list."""
    several = hasattr(value, "__iter__") and not isinstance(value, str) and not is_mapping(value)
    require(several, f"{name}= must be a list", value, help=f"{name}=[...]")
    return list(value)

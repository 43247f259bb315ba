"""What users say that their functions do to state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from adk_fluent._words import describe
from adk_fluent.builders._keys import as_key, as_written, merged
from adk_fluent.errors import UsageError
from adk_fluent.ir import OPAQUE, Effects, StateFieldRef, declare_effects, declared_effects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from adk_fluent.builders._types import KeyLike

F = TypeVar("F")


def effects(
    *,
    reads: KeyLike | Iterable[KeyLike] = (),
    writes: KeyLike | Iterable[KeyLike] = (),
    may_write: KeyLike | Iterable[KeyLike] = (),
) -> Callable[[F], F]:
    """Say which state keys a function or a tool reads and writes: all of them.

    Checks rely on it where the source of a function does not tell, and believe it where it does.

    Example:
        >>> from adk_fluent import effects
        >>> @effects(reads="order", writes=["total", "currency"])
        ... def price(state):
        ...     return price_list.lookup(state)

    Args:
        reads: Keys that must have a value, but for fields that have a default.
        writes: Keys that it gives a value whenever it succeeds.
        may_write: Keys that it gives a value sometimes.

    Raises:
        UsageError: One of them is no state key, or nothing can be noted on what is decorated.
    """
    said = Effects(
        _keys(reads, "reads", as_key),
        _keys(writes, "writes", as_written),
        opaque=False,
        may_write=_keys(may_write, "may_write", as_written),
    )

    def mark(fn: F) -> F:
        try:
            declare_effects(fn, said)
        except (AttributeError, TypeError) as error:
            raise UsageError(
                "effects(...) cannot note anything on this",
                found=describe(fn),
                help="decorate a function of yours that calls it",
            ) from error
        return fn

    return mark


def _keys(
    values: Any, name: str, check: Callable[[KeyLike, str], StateFieldRef]
) -> tuple[StateFieldRef, ...]:
    role = f"effects({name}=...)"
    if isinstance(values, str) or hasattr(values, "key"):
        values = (values,)
    try:
        every = tuple(values)
    except TypeError:
        every = (values,)  # refused below, in the words of every other key
    return merged((), tuple(check(each, role) for each in every))


def reading(fn: object) -> Effects:
    """What was said of a function that only looks: what it reads."""
    said = declared_effects(fn)
    return OPAQUE if said is None else Effects(said.reads, opaque=False)


def computing(functions: Iterable[object], writes: tuple[StateFieldRef, ...]) -> Effects:
    """What functions do whose values are written: they read what was said, if all of it was."""
    every = [declared_effects(fn) for fn in functions]
    reads: tuple[StateFieldRef, ...] = ()
    for each in every:
        if each is not None:
            reads = merged(reads, each.reads)
    return Effects(reads, writes, opaque=any(each is None for each in every))

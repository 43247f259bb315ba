"""State keys that users name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent._words import describe
from adk_fluent.builders._operands import some
from adk_fluent.errors import UsageError
from adk_fluent.ir import Ref, StateFieldRef, is_reserved_key

if TYPE_CHECKING:
    from adk_fluent.builders._types import KeyLike


def as_key(value: KeyLike, role: str) -> StateFieldRef:
    """A state key with what is known about it.

    Raises:
        UsageError: It is neither a non-empty str nor a field of a state schema.
    """
    if isinstance(value, str):
        if value.strip():
            return StateFieldRef(value)
    elif isinstance(value, StateFieldRef):
        return value
    elif isinstance(getattr(value, "key", None), str):
        reducer = getattr(value, "reducer", None)
        held = reducer if reducer is None or isinstance(reducer, Ref) else Ref.to(reducer)
        return StateFieldRef(value.key, value.type, default=value.default, reducer=held)
    raise UsageError(
        f"{role} takes state keys",
        found=describe(value),
        help='pass a key such as "intent" or "user:tier", or a field of a StateSchema',
    )


def as_written(value: KeyLike, role: str) -> StateFieldRef:
    """A state key that is written.

    Raises:
        UsageError: It is no state key, or kept for others.
    """
    ref = as_key(value, role)
    if is_reserved_key(ref.name):
        raise UsageError(
            f"{role} does not take {ref.key!r}",
            found="a key that ADK and adk-fluent keep for themselves",
            help="choose another key",
        )
    return ref


def as_keys(
    values: tuple[KeyLike, ...], role: str, *, written: bool = False
) -> tuple[StateFieldRef, ...]:
    """State keys, one at least.

    Raises:
        UsageError: There is none, or one is no state key.
    """
    check = as_written if written else as_key
    return tuple(check(value, role) for value in some(values, role, "a state key"))


def merged(
    known: tuple[StateFieldRef, ...], added: tuple[StateFieldRef, ...]
) -> tuple[StateFieldRef, ...]:
    """Both, each key once; what was known of a key first stays."""
    by_key = {ref.key: ref for ref in known}
    for ref in added:
        by_key.setdefault(ref.key, ref)
    return tuple(by_key.values())

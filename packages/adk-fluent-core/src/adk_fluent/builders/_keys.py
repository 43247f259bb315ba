"""State keys that users name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.builders._operands import some
from adk_fluent.builders._words import describe
from adk_fluent.errors import UsageError
from adk_fluent.ir import Location, StateFieldRef

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
        return StateFieldRef(value.key, value.type, default=value.default)
    raise UsageError(
        f"{role} takes state keys",
        found="an empty str" if isinstance(value, str) else describe(value),
        location=Location.caller(),
        help='pass a key such as "intent" or "user:tier", or a field of a StateSchema',
    )


def as_keys(values: tuple[KeyLike, ...], role: str) -> tuple[StateFieldRef, ...]:
    """State keys, one at least.

    Raises:
        UsageError: There is none, or one is no state key.
    """
    return tuple(as_key(value, role) for value in some(values, role, "a state key"))


def merged(
    known: tuple[StateFieldRef, ...], added: tuple[StateFieldRef, ...]
) -> tuple[StateFieldRef, ...]:
    """Both, each key once; what was known of a key first stays."""
    by_key = {ref.key: ref for ref in known}
    for ref in added:
        by_key.setdefault(ref.key, ref)
    return tuple(by_key.values())

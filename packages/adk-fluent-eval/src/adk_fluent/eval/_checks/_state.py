"""Checking session state against assertions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent.errors import nearest_name
from adk_fluent.eval._cases._turn import key_of
from adk_fluent.eval._outcome import Finding
from adk_fluent.eval._values import error_line, mismatch, plain, shown
from adk_fluent.ir import UNSET

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adk_fluent.eval._cases._turn import StateMap
    from adk_fluent.protocol import FieldRef

_KEYS_SHOWN: Final = 12


def check_keys(
    expected: StateMap,
    state: Mapping[str, Any],
    written: Mapping[str, Mapping[str, Any]],
    turn: int | None,
) -> list[Finding]:
    """Check each asserted key.

    An absent key is None, and of a typed reference its default; it meets no condition.
    """
    return [_check(ref, value, state, written, turn) for ref, value in expected.items()]


def _check(
    ref: str | FieldRef,
    expected: Any,
    state: Mapping[str, Any],
    written: Mapping[str, Mapping[str, Any]],
    turn: int | None,
) -> Finding:
    key = key_of(ref)
    what, name, source = f"state {key}", key, state
    step, dot, rest = key.partition(".")
    if dot and key not in state and step in written:
        what, name, source = f"state {rest} as {step} wrote it", rest, written[step]
    stored = source.get(name)
    actual, problem = (stored, "") if expected is None else _read(ref, stored)
    if actual is None and not problem and expected is not None:
        reason = _no_such_key(name, source)
    else:
        reason = problem or mismatch(expected, actual)
    return Finding(what, not reason, plain(expected), plain(actual), reason, turn)


def _read(ref: str | FieldRef, stored: Any) -> tuple[Any, str]:
    """The value that a reader of a reference gets, and why it cannot be read; empty if it can."""
    try:
        if stored is None:
            default = getattr(ref, "default", UNSET)
            return (None if default is UNSET else default), ""
        decode = getattr(ref, "decode", None)
        return (stored if decode is None else decode(stored)), ""
    except Exception as error:  # noqa: BLE001  # stored values may be anything
        what = "its default" if stored is None else shown(stored)
        return stored, f"{what} is not a value of {key_of(ref)}: {error_line(error)}"


def _no_such_key(name: str, source: Mapping[str, Any]) -> str:
    keys = sorted(key for key, value in source.items() if value is not None)
    if near := nearest_name(name, keys):
        return f"the key is absent; did you mean {near!r}?"
    rest = ", ..." if len(keys) > _KEYS_SHOWN else ""
    return f"the key is absent; state has {', '.join(keys[:_KEYS_SHOWN]) or 'no keys'}{rest}"

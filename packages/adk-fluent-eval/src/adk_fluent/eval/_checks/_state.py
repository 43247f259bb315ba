"""What session state holds, held against what is expected of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent.errors import nearest_name
from adk_fluent.eval._cases._turn import key_of
from adk_fluent.eval._checks._same import fits, plain, shown, told
from adk_fluent.eval._outcome import Finding
from adk_fluent.ir import UNSET

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adk_fluent.eval._cases._turn import StateMap
    from adk_fluent.protocol import FieldRef

_KEYS_SHOWN: Final = 12


def look_at_state(
    expected: StateMap,
    state: Mapping[str, Any],
    written: Mapping[str, Mapping[str, Any]],
    turn: int | None,
) -> list[Finding]:
    """What was found for each key.

    A key that is absent is None, and of a typed reference its default, as for all who read state;
    but no condition is met by what is not there.

    Args:
        expected: Key, typed reference or ``step.key`` to a value, or to a function that returns
            whether a value will do.
        state: What state holds.
        written: Step to what it wrote last.
        turn: The turn, counted from 1; None for the end.
    """
    return [_look_at(ref, value, state, written, turn) for ref, value in expected.items()]


def _look_at(
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
    # that nobody wrote it can be expected, too, whatever a reader gets instead
    actual, problem = (stored, "") if expected is None else _value(ref, stored)
    if actual is None and not problem and expected is not None:
        reason = _no_such_key(name, source)
    else:
        reason = problem or fits(expected, actual)
    return Finding(what, not reason, plain(expected), plain(actual), reason, turn)


def _value(ref: str | FieldRef, stored: Any) -> tuple[Any, str]:
    """What a reader gets for what is stored, and why that cannot be told; empty if it can."""
    try:
        if stored is None:
            default = getattr(ref, "default", UNSET)
            return (None if default is UNSET else default), ""
        decode = getattr(ref, "decode", None)
        return (stored if decode is None else decode(stored)), ""
    except Exception as error:  # noqa: BLE001  # what is stored may be anything
        what = "its default" if stored is None else shown(stored)
        return stored, f"{what} is no value of {key_of(ref)}: {told(error)}"


def _no_such_key(name: str, source: Mapping[str, Any]) -> str:
    keys = sorted(key for key, value in source.items() if value is not None)
    if near := nearest_name(name, keys):
        return f"there is no such key; did you mean {near!r}?"
    if not keys:
        return "there is no such key"
    rest = "..." if len(keys) > _KEYS_SHOWN else ""
    return f"there is no such key; there are {', '.join(keys[:_KEYS_SHOWN])}{rest}"

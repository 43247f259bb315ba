"""State that a case names, as it is stored: typed references say how."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.eval._cases._turn import key_of
from adk_fluent.eval._checks._same import told

if TYPE_CHECKING:
    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._cases._turn import StateMap

_IMMUTABLE: Final = str | int | float | None


def initial_state(case: FluentCase) -> dict[str, Any]:
    """The state that a case starts with; nobody else has its values.

    Raises:
        EvalError: A value is none of its field.
    """
    made: dict[str, Any] = {}
    for ref, value in (case.initial_state or {}).items():
        encode = None if isinstance(ref, str) else getattr(ref, "encode", None)
        try:
            made[key_of(ref)] = _copied(value) if encode is None else encode(value)
        except Exception as error:
            raise case.error(
                f"it cannot start with what initial_state= gives {key_of(ref)!r}",
                found=told(error),
                help="give a value that state can hold",
            ) from error
    return made


def _copied(value: Any) -> Any:
    return value if isinstance(value, _IMMUTABLE) else copy.deepcopy(value)


def asserted_state(case: FluentCase, asserted: StateMap) -> dict[str, Any]:
    """What a case, or a turn of it, expects of state; functions stay what they are.

    Raises:
        EvalError: A value is none of its field, so that state never holds it.
    """
    made: dict[str, Any] = {}
    for ref, value in asserted.items():
        encode = None if isinstance(ref, str) else getattr(ref, "encode", None)
        try:
            made[key_of(ref)] = value if encode is None or callable(value) else encode(value)
        except Exception as error:
            raise case.error(
                f"state never holds what state_assertions= expects of {key_of(ref)!r}",
                found=told(error),
                help="expect a value of the field's type, or give a function",
            ) from error
    return made

"""What functions and tools declare that they do to state, where whoever makes nodes finds it."""

from __future__ import annotations

from functools import partial
from typing import Any, Final, cast

from adk_fluent.ir._state import Effects

_ATTRIBUTE: Final = "__adk_fluent_effects__"


def declare_effects(value: object, effects: Effects) -> None:
    """Note on a function or a tool what it does to state.

    Raises:
        AttributeError: Nothing can be noted on it.
        TypeError: The same, of what Python itself brings.
    """
    setattr(value, _ATTRIBUTE, effects)


def declared_effects(value: object) -> Effects | None:
    """What a function or a tool was declared to do to state; None if nothing was."""
    while type(value) is partial:
        value = cast("partial[Any]", value).func
    for each in (value, type(value).__call__ if callable(value) else None):
        found = getattr(each, _ATTRIBUTE, None)
        if isinstance(found, Effects):
            return found
    return None

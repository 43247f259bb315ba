"""Fields of ADK's LlmAgent by ADK's names: what `Agent.configure` takes, and what a name means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent._adk_fields import NEWEST, NO_SETTER, OWN_SETTERS, SINCE, at_least
from adk_fluent.builders._adk_setters import CHECKS
from adk_fluent.builders._branching import SCALARS
from adk_fluent.errors import UnknownNameError, UsageError, nearest_name
from adk_fluent.ir import Ref

if TYPE_CHECKING:
    from collections.abc import Mapping


def as_settings(fields: Mapping[str, object]) -> dict[str, Any]:
    """Fields that have no setter of another name.

    Raises:
        UsageError: One has, or cannot be set, or its value is not of its type.
        UnknownNameError: ADK has no such field.
    """
    for name in fields:
        if (help := advice(name)) is not None:
            raise UsageError(f".configure(...) does not set {name!r}", help=help)
        if name not in SINCE and not _may_be_new():
            raise _unknown(name)
    return {name: _setting(name, value) for name, value in fields.items()}


def advice(name: str) -> str | None:
    """What to do instead of setting a field by its name in ADK; None where that is the way."""
    setter = OWN_SETTERS.get(name)
    return NO_SETTER.get(name) if setter is None else f"use .{setter}(...)"


def _setting(name: str, value: object) -> object:
    if (check := CHECKS.get(name)) is not None:
        return check(value, f".{name}(...)")
    return value if value is None or isinstance(value, SCALARS) else Ref.to(value)


def _may_be_new() -> bool:
    """Whether the installed ADK is newer than the one whose fields are known here."""
    from importlib.metadata import version  # noqa: PLC0415  # slow to import, seldom needed

    return not at_least(NEWEST, version("google-adk"))


def _unknown(name: str) -> UnknownNameError:
    near = nearest_name(name, SINCE)
    return UnknownNameError(
        f"ADK's LlmAgent has no field {name!r}",
        unknown=name,
        known=SINCE,
        help=None if near is None else advice(near),
    )

"""Outcomes without the secrets of the environment, which models, tools and services may quote."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent._keys import secrets, without_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adk_fluent.eval._outcome import CaseOutcome

#: What identifies an outcome, or was written by whoever wrote the suite: it stays what it is.
_OURS: Final = frozenset(
    {"id", "name", "tags", "metadata", "target_node", "session_id", "user_id", "call_id"}
)


def clean(outcome: CaseOutcome) -> None:
    """Put the name of its variable in the place of each secret, wherever it stands."""
    known = secrets()
    if known:
        _fields(outcome, known)


def _fields(made: Any, known: Mapping[str, str]) -> None:
    for each in fields(made):
        if each.name not in _OURS:
            old = getattr(made, each.name)
            new = _cleaned(old, known)
            if new is not old:
                setattr(made, each.name, new)


def _cleaned(value: Any, known: Mapping[str, str]) -> Any:
    kind = cast("type[Any]", type(value))
    if kind is str:
        return without_keys(value, known)
    if kind is dict:
        items = cast("dict[Any, Any]", value).items()
        return {_cleaned(key, known): _cleaned(each, known) for key, each in items}
    if kind is list:
        return [_cleaned(each, known) for each in cast("list[Any]", value)]
    if is_dataclass(value) and not isinstance(value, type):
        _fields(value, known)
    return value

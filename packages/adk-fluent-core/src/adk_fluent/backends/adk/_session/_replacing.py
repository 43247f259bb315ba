"""Really replacing a dict where a session service would merge the new one into the old."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Mapping


def dicts_to_clear(delta: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, None]:
    """A write that must come first where dicts are merged: the keys whose old dict has more."""
    return {key: None for key, value in delta.items() if _has_more(state.get(key), value)}


def _has_more(old: object, new: object) -> bool:
    todo: list[tuple[object, object]] = [(old, new)]
    while todo:
        before, after = todo.pop()
        if isinstance(before, dict) and isinstance(after, dict):
            held, given = cast("dict[str, Any]", before), cast("dict[str, Any]", after)
            if held.keys() - given.keys():
                return True
            todo.extend((value, given[key]) for key, value in held.items())
    return False

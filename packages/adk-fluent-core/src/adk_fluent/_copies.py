"""Copies of nested data, however deep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def copied(
    value: Any,
    begin: Callable[[Any], dict[Any, Any] | list[Any] | None],
    kept: Callable[[Any], Any] | None = None,
) -> Any:
    """A copy of a value and of what is in it; a part that stands in several places still does.

    Args:
        value: The value; it is not changed.
        begin: What the copy of a part begins with, an empty dict or list; None for what is shared.
        kept: What of a part is copied; without it, all is.
    """
    copies: dict[int, Any] = {}  # by what they are of
    parts: list[tuple[Any, dict[Any, Any] | list[Any]]] = []

    def copy(part: Any) -> Any:
        if id(part) not in copies:
            made = begin(part)
            if made is None:
                return part
            copies[id(part)] = made
            parts.append((part, made))
        return copies[id(part)]

    done = copy(value)
    for part, made in parts:  # which grows meanwhile
        of = part if kept is None else kept(part)
        if isinstance(made, dict):
            made.update({key: copy(each) for key, each in of.items()})
        else:
            made.extend(map(copy, of))
    return done


def copied_containers(value: Any) -> Any:
    """A copy of lists and dicts, however deep; what else is in them is shared."""
    return copied(value, _empty)


def _empty(part: Any) -> dict[Any, Any] | list[Any] | None:
    """What a copy of a dict or list begins with; None for anything else."""
    if type(part) is dict:
        return {}
    return [] if type(part) is list else None

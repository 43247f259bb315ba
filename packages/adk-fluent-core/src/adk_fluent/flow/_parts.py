"""A position in parts, so that what one step changes can be kept without writing all of it anew.

What grows with the items of a run is cut up: strands and scopes by their numbers, and what is only
added to by place. Every part holds some of each, and most steps change two or three parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_SIZE: Final = 32  # entries of one container in a part
_LARGE: Final = 2 * _SIZE  # what has no more is kept whole
_COME_AND_GO: Final = ("strands", "scopes")
_GROW: Final = ("done", "results", "items")

#: Path of a container in the position, and what of it is in a part.
Part = dict[str, Any]


def split(position: Mapping[str, Any]) -> tuple[dict[str, Any], dict[int, Part]]:
    """Cut up what is large in a position.

    Args:
        position: Where a run stands; it stays as it is.

    Returns:
        The rest of it, with empty containers in the places of those cut up, and the parts by
        number.
    """
    rest, parts = dict(position), dict[int, Part]()
    rest["strands"] = {
        id: _cut_frames(id, frames, parts) for id, frames in position["strands"].items()
    }
    for field in _COME_AND_GO:
        if len(rest.get(field, ())) > _LARGE:
            rest[field] = _cut(field, field, rest[field], parts)
    return rest, parts


def join(rest: dict[str, Any], parts: Mapping[int, Part]) -> dict[str, Any]:
    """Put a position together again.

    Args:
        rest: What `split` returned; changed in place.
        parts: All of the parts.
    """
    found: dict[str, list[Any]] = {}
    for number in sorted(parts):
        for path, some in parts[number].items():
            found.setdefault(path, []).append(some)
    for path in sorted(found, key=lambda each: each.count(".")):  # strands before their frames
        where, _, field = path.rpartition(".")
        holder = rest
        if where:
            id, _, index = where.partition(".")
            holder = rest["strands"][id][int(index)]
        for some in found[path]:
            if isinstance(some, list):
                holder[field].extend(some)
            else:
                holder[field].update(some)
    return rest


def _cut_frames(id: str, frames: list[dict[str, Any]], parts: dict[int, Part]) -> list[Any]:
    cut = frames
    for index, frame in enumerate(frames):
        if "done" not in frame:
            continue  # only what forks has as many entries as there are branches
        large = [f for f in (*_COME_AND_GO, *_GROW) if len(frame.get(f, ())) > _LARGE]
        if large:
            cut = list(frames) if cut is frames else cut
            pieces = {f: _cut(f, f"{id}.{index}.{f}", frame[f], parts) for f in large}
            cut[index] = {**frame, **pieces}
    return cut


def _cut(field: str, path: str, whole: Any, parts: dict[int, Part]) -> Any:
    """Put a container into parts; gives an empty one of its kind."""
    if isinstance(whole, list):
        for start in range(0, len(whole), _SIZE):  # pyright: ignore[reportUnknownArgumentType]
            parts.setdefault(start // _SIZE, {})[path] = whole[start : start + _SIZE]
        return []
    for place, (key, value) in enumerate(whole.items()):
        number = (place if field in _GROW else int(key)) // _SIZE
        parts.setdefault(number, {}).setdefault(path, {})[key] = value
    return {}

"""Replacing a dict in a store that merges dicts instead, by SQL's ``json_patch``."""

from __future__ import annotations

from typing import Any, cast


def patched(old: object, new: Any) -> Any:
    """What to write so that a store that merges it into `old` holds `new`.

    There, None removes a key. A None in `new` is lost, as it is with all that is written there.
    """
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return new
    was, now = cast("dict[str, Any]", old), cast("dict[str, Any]", new)
    gone: dict[str, Any] = dict.fromkeys(was.keys() - now.keys())
    return gone | {key: patched(was.get(key), now[key]) for key in now}

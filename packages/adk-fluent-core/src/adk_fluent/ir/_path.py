"""How live objects are told apart, named, and found again in another process."""

from __future__ import annotations

import sys
from types import MethodType
from typing import Any


def same_object(one: Any, other: Any) -> bool:
    """Identity; of a bound method, which is a new object at each access, and of a record: parts."""
    return one is other or (is_made_of_parts(one) and bool(one == other))


def is_made_of_parts(value: object) -> bool:
    """Whether an object is what it is made of: two such are the same when their parts are."""
    kind = type(value)
    return kind is MethodType or hasattr(kind, "__record__")


def name_of_object(value: Any) -> str:
    """A short, deterministic name for a live object."""
    for attribute in ("__name__", "name"):
        name = getattr(value, attribute, None)
        if isinstance(name, str) and name:
            return name
    inner = getattr(value, "func", None)  # functools.partial
    return name_of_object(inner) if inner is not None else type(value).__name__


def import_path(value: Any) -> str | None:
    """``module:qualname`` when importing that gives this very object, else None."""
    module, qualname = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not (isinstance(module, str) and isinstance(qualname, str)) or "<" in qualname:
        return None
    found: Any = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return f"{module}:{qualname}" if same_object(found, value) else None

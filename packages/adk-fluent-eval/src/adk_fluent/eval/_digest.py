"""Digests of values: the same in each process, and different where the values are."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from hashlib import sha256
from typing import Any, Final, cast

from adk_fluent.extend import json_safe

_DEPTH: Final = 20
_ADDRESS: Final = re.compile(" at 0x[0-9a-fA-F]+")


def digest_of(value: Any) -> str:
    """Return the hexadecimal digest of a value.

    Functions count by their name and source, patterns by text and flags, exceptions by type and
    arguments, models by name, and other objects by their `repr` without addresses.
    """
    text = json.dumps(_told(value), sort_keys=True, ensure_ascii=True)
    return sha256(text.encode()).hexdigest()


def _told(given: object, depth: int = 0) -> Any:
    """Plain data that distinguishes a value from others; objects with the name of their type."""
    value: Any = given
    if value is None or isinstance(value, str | int | float):
        return json_safe(value)
    if depth > _DEPTH:
        return _repr(value)
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value).items()
        keyed = ((key if isinstance(key, str) else _repr(key), each) for key, each in pairs)
        return {key: _told(each, depth + 1) for key, each in keyed}
    if isinstance(value, list | tuple):
        return [_told(each, depth + 1) for each in cast("list[Any]", value)]
    if isinstance(value, AbstractSet):
        items = [_told(each, depth + 1) for each in cast("AbstractSet[Any]", value)]
        return sorted(items, key=json.dumps)
    return {f"<{type(value).__qualname__}>": _held(value, depth + 1)}


def _held(value: Any, depth: int) -> Any:  # noqa: PLR0911  # one line for each kind
    """What distinguishes an object from others of its type."""
    if isinstance(value, re.Pattern):
        pattern = cast("re.Pattern[Any]", value)
        return [_told(pattern.pattern), pattern.flags]
    if isinstance(value, BaseException):
        return _told([*value.args, vars(value)], depth)
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    if hasattr(value, "generate_content_async"):  # a model
        return str(getattr(value, "model", ""))
    if hasattr(value, "__dataclass_fields__"):
        names = (name for name in value.__dataclass_fields__ if name != "location")
        return {name: _told(getattr(value, name), depth) for name in names}
    if callable(value):
        try:
            return [str(getattr(value, "__qualname__", "")), inspect.getsource(value)]
        except (OSError, TypeError):  # such as a partial, whose repr has its arguments
            return _repr(value)
    try:
        return _told(value.model_dump(), depth)
    except Exception:  # noqa: BLE001  # no model of pydantic, or one that cannot be dumped
        return _repr(value)


def _repr(value: object) -> str:
    try:
        return _ADDRESS.sub("", repr(value))
    except Exception:  # noqa: BLE001  # user objects
        return ""

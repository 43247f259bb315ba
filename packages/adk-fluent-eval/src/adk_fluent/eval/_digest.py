"""Digests of values: the same in each process, and different where the values are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final, cast

from adk_fluent import ir

_DEPTH: Final = 20
_ADDRESS: Final = re.compile(" at 0x[0-9a-fA-F]+")


def digest_of(value: Any) -> str:
    """Return the hexadecimal digest of a value.

    Functions, types, patterns and models count as in `adk_fluent.ir.content_hash`, exceptions by
    type and arguments, and objects that nobody knows by their `repr` without addresses.
    """
    return ir.content_hash(ir.AdkAgentNode("value", ir.Ref(_told(value), "value")))


def _told(given: object, depth: int = 0) -> Any:  # noqa: PLR0911  # one line for each kind
    """What distinguishes a value from others, as containers of what a content hash knows."""
    value: Any = given
    if isinstance(given, bool | float):  # True and 1 hash alike
        return [type(given), repr(given)]
    if given is None or isinstance(given, str | int | bytes | AbstractSet | type):
        return value
    if depth > _DEPTH:
        return _repr(value)
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value).items()
        keyed = ((key if isinstance(key, str) else _repr(key), each) for key, each in pairs)
        return {key: _told(each, depth + 1) for key, each in keyed}
    if isinstance(value, list | tuple):
        return [_told(each, depth + 1) for each in cast("list[Any]", value)]
    if isinstance(value, BaseException):
        return [type(value), _told([*value.args, vars(value)], depth + 1)]
    if hasattr(value, "__dataclass_fields__"):
        names = (name for name in value.__dataclass_fields__ if name != "location")
        return [type(value), *([name, _told(getattr(value, name), depth + 1)] for name in names)]
    if callable(given) or isinstance(given, re.Pattern) or hasattr(given, "generate_content_async"):
        return value
    try:
        return [type(value), _told(value.model_dump(), depth + 1)]
    except Exception:  # noqa: BLE001  # no model of pydantic, or one that cannot be dumped
        return [type(value), _repr(value)]


def _repr(value: object) -> str:
    try:
        return _ADDRESS.sub("", repr(value))
    except Exception:  # noqa: BLE001  # user objects
        return ""

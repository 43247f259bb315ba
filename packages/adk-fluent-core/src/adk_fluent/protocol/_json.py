"""Turning any value into one that JSON can hold, without ever failing or showing an address."""

from __future__ import annotations

import math
import sys
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from os import PathLike, fspath
from typing import Any, Final

#: Deeper than this a value is replaced by "..."; also what ends a value that contains itself.
MAX_DEPTH: Final = 64
_PLAIN: Final = (str, bool)
#: Python refuses to print integers much longer than this.
_BITS: Final = 8192


def json_safe(value: Any, depth: int = MAX_DEPTH) -> Any:
    """The value as str, int, float, bool, None, list and dict with str keys.

    Dates and paths become text, bytes base64, sets sorted lists, not-a-number and infinities text,
    integers of thousands of digits text, dataclasses and pydantic models dicts; of any other object
    only the type's name is left.
    """
    kind = value.__class__
    if value is None or kind in _PLAIN or (kind is int and value.bit_length() <= _BITS):
        return value
    if depth == 0:
        return "..."
    convert = _conversion(kind)
    if convert is not None:
        return convert(value, depth - 1)
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: json_safe(getattr(value, f.name), depth - 1) for f in fields(value)}
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return json_safe(dump(exclude_none=True), depth - 1)
    uuid = sys.modules.get("uuid")  # slow to import, and who has one has imported it
    is_uuid = uuid is not None and isinstance(value, uuid.UUID)
    return str(value) if is_uuid else f"<{kind.__qualname__}>"


@lru_cache(256)
def _conversion(kind: type) -> Callable[[Any, int], Any] | None:
    """What converts values of a type; looked up once, for abstract types are slow to compare."""
    return next((convert for types, convert in _CONVERSIONS if issubclass(kind, types)), None)


def _number(value: float, _: int) -> Any:
    return float(value) if math.isfinite(value) else str(value)


def _mapping(value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    return {
        key if key.__class__ is str else _key(key): each
        if each.__class__ is str
        else json_safe(each, depth)
        for key, each in value.items()
    }


def _key(key: Any) -> str:
    plain = json_safe(key, 1)
    return plain if isinstance(plain, str) else str(plain)


#: The first that fits counts.
_CONVERSIONS: Final[tuple[tuple[tuple[type, ...], Callable[[Any, int], Any]], ...]] = (
    ((Enum,), lambda value, depth: json_safe(value.value, depth)),
    ((str,), lambda value, _: str.__str__(value)),
    ((int,), lambda value, _: int(value) if value.bit_length() <= _BITS else hex(value)),
    ((float,), _number),
    ((bytes, bytearray, memoryview), lambda value, _: b64encode(value).decode("ascii")),
    ((date, time), lambda value, _: value.isoformat()),
    ((timedelta,), lambda value, _: value.total_seconds()),
    ((Decimal,), lambda value, _: str(value)),
    ((PathLike,), lambda value, depth: json_safe(fspath(value), depth)),
    ((Mapping,), _mapping),
    ((AbstractSet,), lambda value, depth: sorted((json_safe(v, depth) for v in value), key=repr)),
    ((Sequence,), lambda value, depth: [json_safe(v, depth) for v in value]),
)

"""Under which key an answer is kept."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import fractions
import hashlib
import json
import pathlib
import uuid
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.protocol import request_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from adk_fluent.protocol import ModelCall

#: Part of every key: another number, and nothing that was kept before is found.
FORMAT: Final = 2
#: Settings of models that say how they are reached, not what they answer.
_ASIDE: Final = frozenset(
    {"api_key", "client", "client_kwargs", "extra_headers", "headers", "llm_client"}
    | {"max_retries", "num_retries", "retry_options", "timeout"}
)
#: What says all about itself as text.
_TOLD_BY_TEXT: Final = (
    *(pathlib.PurePath, uuid.UUID, decimal.Decimal, fractions.Fraction, complex),
    *(dt.date, dt.time, dt.timedelta),  # a datetime is a date
)


def key_of(
    call: ModelCall, own: Callable[[ModelCall], str | None] | None, *, shared: bool
) -> str | None:
    """The key of a call; None when there is none, so that nothing can be kept."""
    whose = None if shared else _whose(call.ctx)
    if whose is None and not shared:
        return None
    try:
        asked = request_key(call.request) if own is None else own(call)
    except TypeError:
        if own is not None:
            raise
        return None  # a live object in the request
    if asked is None:
        return None
    try:
        model = _model(call.model)
    except (TypeError, RecursionError):
        return None  # a live object in the settings: nothing tells it from others of its type
    named = getattr(call.request, "model", None)
    parts = [FORMAT, whose, named, model, own is not None, asked]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _whose(ctx: Any) -> list[str] | None:
    session = getattr(ctx, "session", None)
    return None if session is None else [session.app_name, session.user_id]


def _model(model: Any) -> Any:
    """What kind of model it is, and its settings; LiteLlm keeps most of them apart.

    Raises:
        TypeError: A setting is a live object.
    """
    kind = cast("type[Any]", type(model))
    return [_name(kind), _plain(_fields(model) | (getattr(model, "_additional_args", None) or {}))]


def _plain(value: Any) -> Any:
    """Settings as data. What is no JSON has its type with it, so that two types never look alike.

    Raises:
        TypeError: It cannot be told by its value.
    """
    kind = cast("type[Any]", type(value))
    if isinstance(value, Enum):  # of flags that are combined, only the value is sure
        return [_name(kind), value.name or repr(value)]
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, dict):
        rows = [
            (key, _plain(each))
            for key, each in cast("dict[Any, Any]", value).items()
            if not (isinstance(key, str) and key in _ASIDE)
        ]
        if all(type(key) is str for key, _ in rows):
            return dict(rows)
        return [_name(kind), *_in_order([_plain(key), each] for key, each in rows)]
    if isinstance(value, list | tuple):
        return [_plain(each) for each in cast("list[Any]", value)]
    return [_name(kind), _of(value, kind)]


def _of(value: Any, kind: type[Any]) -> Any:
    if isinstance(value, set | frozenset):
        return _in_order(_plain(each) for each in cast("set[Any]", value))
    if isinstance(value, bytes | bytearray):
        return value.hex()
    if isinstance(value, _TOLD_BY_TEXT):
        return str(value)
    if isinstance(value, type):
        named = cast("type[Any]", value)
        if "<" not in named.__qualname__:  # in a function, several may have one name
            return _name(named)
    elif hasattr(kind, "model_fields"):
        return _model(value) if hasattr(kind, "generate_content_async") else _plain(_fields(value))
    elif dataclasses.is_dataclass(kind):
        return {each.name: _plain(getattr(value, each.name)) for each in dataclasses.fields(kind)}
    what = f"nothing tells one {kind.__qualname__} from another"
    raise TypeError(what)


def _fields(value: Any) -> dict[str, Any]:
    """The settings of one of pydantic's models."""
    fields: dict[str, Any] = getattr(cast("Any", type(value)), "model_fields", {})
    settings = {
        name: getattr(value, name, None) for name, each in fields.items() if not each.exclude
    }
    return settings | (getattr(value, "model_extra", None) or {})


def _in_order(values: Iterable[Any]) -> list[Any]:
    return sorted(values, key=lambda each: json.dumps(each, sort_keys=True))


def _name(kind: type[Any]) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"

"""Under which key an answer is kept."""

from __future__ import annotations

import hashlib
import json
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.protocol import request_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.protocol import ModelCall

#: Part of every key: another number, and nothing that was kept before is found.
FORMAT: Final = 1
#: Settings of models that say how they are reached, not what they answer.
_ASIDE: Final = frozenset(
    {"api_key", "client", "client_kwargs", "extra_headers", "headers", "llm_client"}
    | {"max_retries", "num_retries", "retry_options", "timeout"}
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
    named = getattr(call.request, "model", None)
    parts = [FORMAT, whose, named, _model(call.model), own is not None, asked]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _whose(ctx: Any) -> list[str] | None:
    session = getattr(ctx, "session", None)
    return None if session is None else [session.app_name, session.user_id]


def _model(model: Any) -> Any:
    """What kind of model it is, and its settings; LiteLlm keeps most of them apart."""
    kind = cast("type[Any]", type(model))
    fields: dict[str, Any] = getattr(kind, "model_fields", {})
    settings = {
        name: getattr(model, name, None) for name, each in fields.items() if not each.exclude
    }
    settings |= getattr(model, "_additional_args", None) or {}
    return [kind.__module__, kind.__qualname__, _plain(settings)]


def _plain(value: Any) -> Any:
    """Settings as data; of a live object, its type."""
    if value is None or isinstance(value, str | int | float | Enum):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, dict):
        rows = cast("dict[Any, Any]", value).items()
        return {str(key): _plain(each) for key, each in rows if key not in _ASIDE}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in cast("list[Any]", value)]
    if hasattr(value, "generate_content_async"):  # models in a model
        return _model(value)
    kind = cast("type[Any]", type(value))
    return _plain(dict(value)) if hasattr(kind, "model_fields") else kind.__qualname__

"""What several layers need to know about a model request: ADK's LlmRequest, taken by its shape."""

from __future__ import annotations

import hashlib
import json
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: The parts of a request that models edit in place; `tools_dict` holds live tools and is only read.
_EDITED: Final = frozenset({"contents", "config", "live_connect_config"})
_READ: Final = frozenset({"tools_dict"})
#: Settings of a request that do not bear upon what is answered.
_ASIDE: Final = frozenset({"labels", "http_options"})
#: Characters a token, for want of anything better before a model has counted.
_CHARACTERS: Final = 4
#: What Gemini counts for an image; other media are taken for one.
_MEDIUM: Final = 258


class RequestSnapshot:
    """A model request as it is now, so that a second try begins with what the first began with.

    Models edit their request in place. Live objects in it (tools, clients) are shared, not copied.

    Args:
        request: ADK's LlmRequest.
    """

    __slots__ = ("_kept", "_private", "_request")

    def __init__(self, request: Any) -> None:
        self._request = request
        self._kept: dict[str, Any] = _taken(request.__dict__)
        private: dict[str, Any] | None = getattr(request, "__pydantic_private__", None)
        self._private: dict[str, Any] = _copied(dict(private or {}))

    def restore(self) -> None:
        """Make the request what it was; as often as there are tries."""
        request = self._request
        request.__dict__.update(_taken(self._kept))
        private: dict[str, Any] | None = getattr(request, "__pydantic_private__", None)
        if private is not None:
            private.update(_copied(self._private))


def _taken(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _copied(value) if name in _EDITED else value
        for name, value in fields.items()
        if name not in _READ
    }


def _copied(value: Any) -> Any:
    """A copy of models, lists and dicts; everything else is what it is."""
    if isinstance(value, list):
        return [_copied(each) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in cast("dict[Any, Any]", value).items()}
    if not hasattr(type(value), "model_copy"):
        return value
    made = value.model_copy()
    fields: dict[str, Any] = made.__dict__
    for name, each in fields.items():
        fields[name] = _copied(each)
    return made


def request_key(request: Any, model: str = "") -> str:
    """What identifies a request: two with the same key ask the same of the same model.

    Identities that differ from run to run (of function calls) count by the order in which they
    come up. Labels and HTTP options do not count.

    Args:
        request: ADK's LlmRequest.
        model: The model that is asked, where the request does not name it.

    Returns:
        64 hexadecimal digits, the same in every process.
    """
    ids: dict[str, str] = {}
    parts = [_plain(content, ids) for content in request.contents or ()]
    config: dict[str, Any] = _plain(request.config, ids) or {}
    asked = {
        "model": request.model or model,
        "contents": parts,
        "config": {key: value for key, value in config.items() if key not in _ASIDE},
        "previous": getattr(request, "previous_interaction_id", None),
    }
    text = json.dumps(asked, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _plain(value: Any, ids: dict[str, str]) -> Any:
    """Plain data of anything in a request, without what is not set."""
    if isinstance(value, type):
        schema: Any = getattr(value, "model_json_schema", None)  # pyright: ignore[reportUnknownArgumentType]
        return str(value) if schema is None else schema()  # pyright: ignore[reportUnknownArgumentType]
    if hasattr(type(value), "model_copy"):
        return _fields(value, ids)
    if isinstance(value, dict):
        rows = cast("dict[Any, Any]", value).items()
        return {str(key): _plain(each, ids) for key, each in rows}
    if isinstance(value, list | tuple):
        return [_plain(each, ids) for each in cast("list[Any]", value)]
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    return value.value if isinstance(value, Enum) else value


def _fields(model: Any, ids: dict[str, str]) -> dict[str, Any]:
    given: dict[str, Any] = model.__dict__
    made = {name: _plain(each, ids) for name, each in given.items() if each is not None}
    if type(model).__name__ in ("FunctionCall", "FunctionResponse") and "id" in made:
        made["id"] = ids.setdefault(made["id"], str(len(ids)))
    return made


def estimate_tokens(request: Any) -> int:
    """How many tokens a request will take, roughly: four characters a token, 258 for an image.

    A model's own count (`Usage`) is better wherever there is one; this is for before.

    Args:
        request: ADK's LlmRequest, or a Content, or a list of Contents.
    """
    contents: Any = getattr(request, "contents", None)
    if contents is None:
        contents = [request] if hasattr(request, "parts") else request
    characters, media = 0, 0
    for part in _parts(contents, getattr(request, "config", None)):
        if isinstance(part, str):
            characters += len(part)
        elif part.text is not None:
            characters += len(part.text)
        elif (call := part.function_call) is not None:
            characters += len(call.name or "") + _length(call.args)
        elif (response := part.function_response) is not None:
            characters += len(response.name or "") + _length(response.response)
        elif part.inline_data is not None or part.file_data is not None:
            media += 1
    return -(-characters // _CHARACTERS) + media * _MEDIUM


def _parts(contents: Iterable[Any], config: Any) -> Iterator[Any]:
    for content in contents:
        yield from content.parts or ()
    if config is None:
        return
    system: Any = config.system_instruction
    for each in cast("list[Any]", system) if isinstance(system, list) else [system]:
        if isinstance(each, str):
            yield each
        elif each is not None and hasattr(each, "parts"):
            yield from each.parts or ()
    for tool in config.tools or ():
        for declared in getattr(tool, "function_declarations", None) or ():
            yield json.dumps(_plain(declared, {}), default=str)


def _length(value: Any) -> int:
    return 0 if value is None else len(json.dumps(value, default=str, ensure_ascii=False))

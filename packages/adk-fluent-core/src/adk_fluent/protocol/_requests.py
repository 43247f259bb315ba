"""What several layers need to know about a model request: ADK's LlmRequest, taken by its shape."""

from __future__ import annotations

import json
import sys
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, cast, get_origin

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: The parts of a request that models edit in place; `tools_dict` holds live tools and is only read.
_EDITED: Final = frozenset({"contents", "config", "live_connect_config"})
_READ: Final = frozenset({"tools_dict"})
#: Settings of a request that do not bear upon what is answered.
_ASIDE: Final = frozenset({"labels", "http_options"})
#: What of HTTP options does: where the request goes, and what is added to it.
_OF_HTTP: Final = ("base_url", "api_version", "extra_body")
#: What may have an id of its own, and what answers it.
_ANSWERS: Final = {
    "FunctionResponse": "FunctionCall",
    "ToolResponse": "ToolCall",
    "CodeExecutionResult": "ExecutableCode",
}
_CALLS: Final = frozenset(_ANSWERS.values())
#: Values of tools that show all they are.
_SHOWN: Final = (date, time, timedelta, Decimal)
#: The same, in modules that are slow to import: where nobody has, there is none of them.
_SHOWN_OF: Final = {"pathlib": "PurePath", "uuid": "UUID"}
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
    """A copy of models, lists and dicts; everything else is what it is.

    A schema in a request is a class, or an alias that lends the names of one: neither is a model.
    """
    if isinstance(value, list):
        return [_copied(each) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in cast("dict[Any, Any]", value).items()}
    kind: type = type(cast("object", value))
    if not hasattr(kind, "model_copy"):
        return value
    made = value.model_copy()
    fields: dict[str, Any] = made.__dict__
    for name, each in fields.items():
        fields[name] = _copied(each)
    return made


def request_key(request: Any, model: str = "") -> str:
    """What identifies a request: two with the same key ask the same of the same model.

    It is the same in every session, run and process: identities of calls count by their order,
    and what is not set counts as little as what is empty. Labels do not count, nor do HTTP
    options, but for where they lead and what they add to the body.

    Args:
        request: ADK's LlmRequest.
        model: The model that is asked, where the request does not name it.

    Returns:
        64 hexadecimal digits.

    Raises:
        TypeError: The request holds a live object, which nothing tells from others of its type.
    """
    asked = request_data(request, model)
    text = json.dumps(asked, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return _sha256(text.encode("utf-8", "surrogatepass"))


def request_data(request: Any, model: str = "") -> dict[str, Any]:
    """What identifies a request, as plain data: what `request_key` is made of.

    Args:
        request: ADK's LlmRequest.
        model: The model that is asked, where the request does not name it.

    Returns:
        ``model``, ``contents``, ``config`` and ``previous``; bytes stand there as their SHA-256.

    Raises:
        TypeError: The request holds a live object, which nothing tells from others of its type.
    """
    called = _Called()
    return {
        "model": request.model or model,
        "contents": [_plain(content, called) for content in request.contents or ()],
        "config": _settings(request.config, called),
        "previous": getattr(request, "previous_interaction_id", None),
    }


class _Called:
    """The calls in a conversation, numbered, and which of them an answer belongs to.

    Providers, ADK and its versions each give ids of their own, or none; what is meant is the same.
    """

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._open: dict[tuple[str, str], list[int]] = {}
        self._count = 0

    def call(self, kind: str, name: str, id: str | None) -> int:
        """The number of a call."""
        number, self._count = self._count, self._count + 1
        self._open.setdefault((kind, name), []).append(number)
        if id:
            self._ids[id] = number
        return number

    def answered(self, kind: str, name: str, id: str | None) -> int | None:
        """The number of the call that is answered: that of this id, or the first one still open."""
        waiting = self._open.get((kind, name), [])
        number = self._ids.get(id) if id else None
        if number is None:
            return waiting.pop(0) if waiting else None
        if number in waiting:
            waiting.remove(number)
        return number


def _sha256(value: bytes | bytearray) -> str:
    from hashlib import sha256  # noqa: PLC0415  # OpenSSL, which is slow to import

    return sha256(value).hexdigest()


def _is_shown(value: object) -> bool:
    """Whether a value is told by what it prints as."""
    loaded = ((sys.modules.get(module), name) for module, name in _SHOWN_OF.items())
    others = (getattr(module, name) for module, name in loaded if module is not None)
    return isinstance(value, (*_SHOWN, *others))


def _settings(config: Any, called: _Called) -> dict[str, Any]:
    """What of a configuration bears upon the answer."""
    if config is None:
        return {}
    made = _fields(config, called, without=_ASIDE)
    http = getattr(config, "http_options", None)
    bears = {name: getattr(http, name, None) for name in _OF_HTTP}
    return made | {"http": _plain({k: v for k, v in bears.items() if v}, called)}


def _plain(value: Any, called: _Called) -> Any:  # noqa: PLR0911  # one line for each kind of thing
    """Plain data of anything in a request, without what is not set."""
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, type) or get_origin(value) is not None:
        return _schema(value)
    if hasattr(value, "model_copy"):
        return _fields(value, called)
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name), called) for each in fields(value)}
    if isinstance(value, dict):
        rows = cast("dict[Any, Any]", value).items()
        return {str(key): _plain(each, called) for key, each in rows}
    if isinstance(value, list | tuple):
        return [_plain(each, called) for each in cast("list[Any]", value)]
    if isinstance(value, set | frozenset):  # in the order of what is shown; that of a set is chance
        return sorted((_plain(each, called) for each in cast("set[Any]", value)), key=json.dumps)
    if isinstance(value, bytes | bytearray):
        return {"sha256": _sha256(value)}
    if _is_shown(value):
        return repr(value)
    what = f"nothing identifies a {type(value).__qualname__} in a model request"
    raise TypeError(what)


def _fields(model: Any, called: _Called, without: frozenset[str] = frozenset()) -> dict[str, Any]:
    given: dict[str, Any] = model.__dict__ | (model.__pydantic_extra__ or {})
    made = {
        name: _plain(each, called)
        for name, each in given.items()
        if name not in without and not _unsaid(each)
    }
    kind = type(model).__name__
    if kind in _CALLS:
        made["id"] = called.call(kind, given.get("name") or "", given.get("id"))
    elif kind in _ANSWERS:
        made["id"] = called.answered(_ANSWERS[kind], given.get("name") or "", given.get("id"))
    return made


def _unsaid(value: Any) -> bool:
    return value is None or (isinstance(value, list | dict) and not value)


def _schema(kind: Any) -> Any:
    """The JSON Schema of a type: classes of one name may differ in their fields."""
    from pydantic import PydanticUserError, TypeAdapter  # noqa: PLC0415  # who has a request has it
    from pydantic.errors import PydanticSchemaGenerationError  # noqa: PLC0415  # the same

    try:
        return TypeAdapter(kind).json_schema()
    except (PydanticUserError, PydanticSchemaGenerationError):
        what = f"nothing identifies {kind} in a model request: it has no JSON Schema"
        raise TypeError(what) from None


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
            yield json.dumps(_plain(declared, _Called()))


def _length(value: Any) -> int:
    return 0 if value is None else len(json.dumps(value, default=str, ensure_ascii=False))

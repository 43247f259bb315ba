"""Messages of the protocol, and what a pipeline is told and answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from a2a.types import Part, SendMessageRequest
from a2a.utils.errors import InvalidParamsError
from google.genai import types
from google.protobuf.json_format import MessageToDict, ParseDict, SerializeToJsonError
from google.protobuf.message import DecodeError
from google.protobuf.struct_pb2 import Value

from adk_fluent.a2a._values import plain
from adk_fluent.extend import json_safe
from adk_fluent.serve._gate import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from a2a.types import Message

    from adk_fluent.serve._keys import Keys

_TEXT: Final = "text/plain"


class Heard(NamedTuple):
    """What a message says.

    Attributes:
        text: Its text parts, joined.
        data: Its data parts; objects are merged. None if it has none.
        parts: Its text and its files, as the model is shown them.
    """

    text: str
    data: Any
    parts: list[types.Part]


def heard(message: Message) -> Heard:
    """Read a message. Nothing in it can stand for a tool's call or result.

    Raises:
        InvalidParamsError: A part says nothing, or cannot be taken.
    """
    texts: list[str] = []
    parts: list[types.Part] = []
    data: Any = None
    for part in message.parts:
        kind = part.WhichOneof("content")
        if kind == "text":
            if "\0" in part.text:
                raise InvalidParamsError("A text with a NUL character is not taken")
            texts.append(part.text)
            parts.append(types.Part(text=part.text))
        elif kind == "data":
            value: Any = plain(MessageToDict(part.data))
            if isinstance(data, dict) and isinstance(value, dict):
                value = {**cast("dict[str, Any]", data), **cast("dict[str, Any]", value)}
            data = value
        elif kind == "raw":
            if not part.media_type:
                raise InvalidParamsError("A part with raw bytes needs a mediaType")
            file = types.Blob(data=part.raw, mime_type=part.media_type)
            parts.append(types.Part(inline_data=file))
        elif kind == "url":  # whoever fetches it would do so with our rights
            raise InvalidParamsError("A part with a URL is not taken: send its bytes as raw")
        else:
            raise InvalidParamsError("A part of the message is empty")
    return Heard("\n".join(texts), data, parts)


def prompt_of(said: Heard, inputs: Keys) -> tuple[list[types.Part], dict[str, Any]]:
    """What a pipeline is told, and what of a message is state.

    Args:
        said: The message.
        inputs: The state that a data part may write; all else in it is text.

    Raises:
        InvalidParamsError: A value does not fit its field.
    """
    parts, state, rest = list(said.parts), dict[str, Any](), said.data
    if isinstance(rest, dict):
        state, rest = inputs.taken(cast("dict[str, Any]", rest))
        rest = rest or (None if parts else said.data)  # a run needs a message
    if rest is not None:
        parts.append(types.Part(text=json.dumps(rest, ensure_ascii=False)))
    return parts, state


def read_call(deserialize: Callable[[bytes], Any], body: bytes, most: int) -> Any:
    """What a call of gRPC asks.

    Args:
        deserialize: Reads it.
        body: What came.
        most: Levels of nesting of its data.

    Raises:
        RefusedError: It cannot be read, or nobody could be told of it in JSON.
    """
    try:
        request = deserialize(body)
        if isinstance(request, SendMessageRequest):
            if any(_depth(part.data) > most for part in request.message.parts):
                raise RefusedError(400, f"The JSON is nested more than {most} levels")
            MessageToDict(request)  # which has no NaN
    except (DecodeError, SerializeToJsonError):
        raise RefusedError(400, "The message cannot be read") from None
    return request


def _depth(value: Value) -> int:
    """How deep a value of a data part is nested; protobuf reads no more than a hundred levels."""
    kind = value.WhichOneof("kind")
    inner: Any = ()
    if kind == "struct_value":
        inner = value.struct_value.fields.values()
    elif kind == "list_value":
        inner = value.list_value.values
    else:
        return 0
    return 1 + max(map(_depth, inner), default=0)


def text_part(text: str) -> Part:
    """A part with text."""
    return Part(text=text, media_type=_TEXT)


def data_part(data: Mapping[str, Any]) -> Part:
    """A part with an object."""
    return Part(data=ParseDict(json_safe(dict(data)), Value()), media_type="application/json")


def file_parts(parts: Sequence[types.Part]) -> list[Part]:
    """The files of an answer."""
    return [
        Part(raw=each.inline_data.data, media_type=each.inline_data.mime_type or "")
        for each in parts
        if each.inline_data is not None and each.inline_data.data
    ]

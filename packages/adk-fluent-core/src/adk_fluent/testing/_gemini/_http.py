"""As much of HTTP/1.1 as it takes: one request a connection, whatever it looks like."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from adk_fluent._scripts._wire import error_body

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from collections.abc import Mapping, Sequence

#: Most bytes of a request's line and headers.
HEAD_LIMIT: Final = 65_536
#: Most bytes of a request's body: Gemini's own limit.
BODY_LIMIT: Final = 20 * 1024 * 1024
#: Most bytes, and seconds, of a refused body that are read, so that the refusal arrives.
_DRAINED: Final = 8 * BODY_LIMIT
_PATIENCE: Final = 2.0
_JSON: Final = "application/json; charset=UTF-8"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request as it came.

    Attributes:
        method: Such as ``POST``.
        path: Without the query, unquoted.
        query: What follows the question mark.
        headers: By name in lower case.
        body: Its bytes.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


class RefusedError(Exception):
    """What is answered with an error of Google's shape.

    Args:
        code: The HTTP status.
        message: What is wrong.
        details: Messages of ``google.rpc``.
        headers: Further headers.
    """

    def __init__(
        self,
        code: int,
        message: str,
        *,
        details: Sequence[Any] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.body = error_body(code, message, details=details)
        self.headers = dict(headers or {})


# --- reading -------------------------------------------------------------------------------------


async def read_request(reader: StreamReader, writer: StreamWriter) -> HttpRequest | None:
    """The request on a connection; None when the client leaves before it is complete.

    Raises:
        RefusedError: It is none, or too large.
    """
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        method, target, headers = _head(head)
        length = _length(headers)
        if "100-continue" in headers.get("expect", "").lower():
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await reader.readexactly(length)
    except asyncio.LimitOverrunError:
        raise RefusedError(400, f"The headers are longer than {HEAD_LIMIT} bytes.") from None
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    try:
        parts = urlsplit(target)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
    except ValueError as error:
        raise RefusedError(400, f"The URL cannot be read: {error}.") from None
    return HttpRequest(method, unquote(parts.path), query, headers, body)


def _head(head: bytes) -> tuple[str, str, dict[str, str]]:
    """Method, target and headers."""
    lines = head[:-4].decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise RefusedError(400, "The request line is not of HTTP/1.1.")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise RefusedError(400, "A header is malformed.")
        name = name.lower()
        headers[name] = f"{headers[name]}, {value.strip()}" if name in headers else value.strip()
    return words[0], words[1], headers


def _length(headers: Mapping[str, str]) -> int:
    """How many bytes of body there are."""
    if "transfer-encoding" in headers:
        raise RefusedError(411, "A Content-Length is required.")
    told = headers.get("content-length", "0")
    if not (told.isascii() and told.isdigit()):
        raise RefusedError(400, "The Content-Length is no number.")
    if len(told) > 18 or int(told) > BODY_LIMIT:
        raise RefusedError(400, f"Request payload size exceeds the limit: {BODY_LIMIT} bytes.")
    return int(told)


# --- writing -------------------------------------------------------------------------------------


def json_bytes(value: Any) -> bytes:
    """Compact JSON, for the eyes of people, too; halves of characters become question marks."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


class Response:
    """What goes back on a connection; it is closed after it.

    Args:
        writer: The connection.
    """

    def __init__(self, writer: StreamWriter) -> None:
        self._writer = writer

    async def send(
        self,
        status: int,
        body: bytes,
        *,
        content_type: str = _JSON,
        headers: Mapping[str, str] | None = None,
        sent: int | None = None,
    ) -> None:
        """A whole response.

        Args:
            status: The HTTP status.
            body: Its bytes.
            content_type: What they are.
            headers: Further headers.
            sent: How many of the bytes are sent; None is all.
        """
        self._begin(
            status,
            {"Content-Type": content_type, "Content-Length": str(len(body)), **(headers or {})},
        )
        self._writer.write(body[:sent])
        await self._writer.drain()

    async def begin_stream(self, content_type: str) -> None:
        """The head of a response that comes in pieces."""
        self._begin(200, {"Content-Type": content_type, "Transfer-Encoding": "chunked"})
        await self._writer.drain()

    async def piece(self, data: bytes) -> None:
        """A piece of it."""
        if data:  # an empty one would end it
            self._writer.write(b"%x\r\n%b\r\n" % (len(data), data))
            await self._writer.drain()

    async def end_stream(self) -> None:
        """Its end; without it, the client sees the connection break off."""
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    def _begin(self, status: int, headers: Mapping[str, str]) -> None:
        try:
            phrase = HTTPStatus(status).phrase
        except ValueError:
            phrase = ""
        lines = [f"HTTP/1.1 {status} {phrase}", *(f"{k}: {v}" for k, v in headers.items())]
        head = "\r\n".join([*lines, "Connection: close", "", ""])
        self._writer.write(head.encode("latin-1", "replace"))


async def hang_up(reader: StreamReader, writer: StreamWriter, *, drain: bool = False) -> None:
    """Close a connection.

    Args:
        reader: Its one end.
        writer: Its other end.
        drain: First read what the client still sends. A connection that is closed before that is
            reset, and a client that only writes never sees the response.
    """
    with suppress(ConnectionError, TimeoutError):
        if drain:
            writer.write_eof()
            async with asyncio.timeout(_PATIENCE):
                left = _DRAINED
                while left > 0 and (data := await reader.read(HEAD_LIMIT)):
                    left -= len(data)
        writer.close()
        await writer.wait_closed()
    writer.transport.abort()

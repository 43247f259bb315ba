"""What stands before every request: who asks, and whether it is more than the server takes."""

from __future__ import annotations

import asyncio
import json
import re
from itertools import accumulate
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.context import attach, detach
from starlette.authentication import AuthCredentials
from starlette.datastructures import Headers

from adk_fluent.a2a._trace import TRACE
from adk_fluent.extend import is_loopback
from adk_fluent.serve._gate import Principal, RefusedError
from adk_fluent.serve._handler import NOTICE, Notice

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from adk_fluent.serve._gate import Gate
    from adk_fluent.serve._limits import Limits

_JSON: Final = frozenset({"application/json", "application/a2a+json"})
#: A string of JSON; one that does not end goes to the end, so that no byte is looked at twice.
_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\Z)', re.DOTALL)
_STEPS: Final = {ord(b): step for step, both in ((1, "[{"), (-1, "]}")) for b in both}
_NOT_BRACKETS: Final = bytes(each for each in range(256) if each not in _STEPS)
#: Bytes above the limit that are read nonetheless: a client that still sends reads no answer.
_DISCARDED: Final = 16 << 20
#: What a POST without a body may end in.
_BODILESS: Final = (":cancel", ":subscribe")
#: Half of a character that is written as two, which no UTF-8 has, may be there.
_HALVES: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_PARSE_ERROR: Final = -32700
_STATUS: Final = {
    400: ("INVALID_ARGUMENT", -32600),
    401: ("UNAUTHENTICATED", -32600),
    403: ("PERMISSION_DENIED", -32600),
    408: ("DEADLINE_EXCEEDED", -32600),
    413: ("INVALID_ARGUMENT", -32600),
    415: ("INVALID_ARGUMENT", -32600),
    429: ("RESOURCE_EXHAUSTED", -32603),
    500: ("INTERNAL", -32603),
    503: ("UNAVAILABLE", -32603),
}


class _UnreadableError(RefusedError):
    """A body is not read; JSON-RPC has a code for that, in an answer of status 200."""


class Guard:
    """An ASGI app that lets through what may be answered.

    Args:
        app: What answers.
        gate: Finds the principal, and counts.
        local: Whether only this machine is served.
        limits: What is too much.
        open_paths: Paths that need no principal.
        rpc_paths: Paths whose refusals are JSON-RPC errors; without any, the app reads JSON itself.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        gate: Gate,
        local: bool,
        limits: Limits,
        open_paths: Collection[str],
        rpc_paths: Collection[str],
    ) -> None:
        self._app = app
        self._gate = gate
        self._local = local
        self._limits = limits
        self._open = frozenset(open_paths)
        self._rpc = frozenset(rpc_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1003})
            return
        counted: list[str] = []
        try:
            await self._answer(scope, receive, send, counted)
        finally:
            self._gate.leave(counted)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, counted: list[str]) -> None:
        try:
            replayed = await self._admitted(scope, receive, counted)
        except RefusedError as refused:
            await self._refuse(scope, send, refused)
            return
        notice = Notice()
        token = NOTICE.set(notice)
        trace = attach(TRACE.extract(Headers(scope=scope)))
        try:
            await self._app(scope, replayed, _Busy(send, notice))
        finally:
            detach(trace)
            NOTICE.reset(token)

    async def _admitted(self, scope: Scope, receive: Receive, counted: list[str]) -> Receive:
        """Put the principal into the scope, and read the body."""
        headers = Headers(scope=scope)
        self._gate.check_client(scope)
        if self._local:
            _check_host(headers)
        if scope["path"] in self._open and scope["method"] in ("GET", "HEAD"):
            return receive
        scope["user"] = Principal(await self._gate.enter(scope, counted))
        scope["auth"] = AuthCredentials()
        if scope["method"] in ("GET", "HEAD", "DELETE"):
            return receive
        # a page of a browser can send anything but JSON to this machine without asking first
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        body = await self._body(headers, receive)
        if body and kind not in _JSON:
            raise RefusedError(415, "The body is JSON: send Content-Type: application/json")
        if depth_above(body, self._limits.depth):
            raise RefusedError(400, f"The JSON is nested more than {self._limits.depth} levels")
        if self._rpc and (body or not scope["path"].endswith(_BODILESS)) and not _is_json(body):
            raise _UnreadableError(400, "The body is not JSON that can be read")
        return _Replay(body, receive)

    async def _body(self, headers: Headers, receive: Receive) -> bytes:
        most = self._limits.body_bytes
        large = RefusedError(413, f"The body has more than {most} bytes", connection="close")
        declared = headers.get("content-length", "0")
        if declared.isdecimal() and int(declared[:20]) > most + _DISCARDED:
            raise large
        body, size = bytearray(), 0
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                more = True
                while more and size <= most + _DISCARDED:
                    message = await receive()
                    if message["type"] == "http.disconnect":  # what came may look whole
                        raise RefusedError(400, "The body did not arrive")
                    chunk = message.get("body", b"")
                    size += len(chunk)
                    if size <= most:
                        body += chunk
                    more = message.get("more_body", False)
        except TimeoutError:
            raise RefusedError(408, "The body did not arrive in time", connection="close") from None
        if size > most:
            raise large
        return bytes(body)

    async def _refuse(self, scope: Scope, send: Send, refusal: RefusedError) -> None:
        status, says = refusal.status, str(refusal)
        name, code = _STATUS[status]
        error: dict[str, Any] = {"code": status, "status": name, "message": says}
        body: dict[str, Any] = {"error": error}
        if scope["path"] in self._rpc and scope["method"] == "POST":
            if isinstance(refusal, _UnreadableError):
                status, code = 200, _PARSE_ERROR
            body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": says}}
        content = json.dumps(body).encode()
        headers = {
            "content-type": "application/json",
            "content-length": str(len(content)),
            **refusal.headers,
        }
        raw = [(key.encode(), value.encode()) for key, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": raw})
        await send({"type": "http.response.body", "body": content})


def depth_above(body: bytes, most: int) -> bool:
    """Whether JSON is nested deeper than so many levels; in one pass, without recursion."""
    brackets = _STRING.sub(b"", body).translate(None, _NOT_BRACKETS)
    return len(brackets) > most and max(accumulate(map(_STEPS.__getitem__, brackets))) > most


def _is_json(body: bytes) -> bool:
    """Whether a body can be read, and what is in it written again."""
    try:
        value = json.loads(body, parse_float=_finite, parse_constant=_finite)
        if _HALVES.search(body) is not None:
            json.dumps(value, ensure_ascii=False).encode()
    except ValueError:  # of UTF-8, too, and of a number with thousands of digits
        return False
    return True


def _finite(number: str) -> float:
    if isfinite(value := float(number)):
        return value
    raise ValueError  # no answer could tell it


def _check_host(headers: Headers) -> None:
    """Refuse what was not meant for this machine.

    A proxy on this machine, and a page whose name was rebound to it, ask for another host.
    """
    host = headers.get("host", "").rpartition("@")[2]
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    if not is_loopback(name):
        raise RefusedError(403, "Without auth= only this machine is served")


class _Replay:
    """Gives a body that was read, and then what comes after it."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


class _Busy:
    """Sends an answer, and makes that of a busy server one of HTTP, too, which clients retry."""

    def __init__(self, send: Send, notice: Notice) -> None:
        self._send = send
        self._notice = notice

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and self._notice.busy:
            headers = [*message.get("headers", ()), (b"retry-after", b"1")]
            message = {**message, "status": 429, "headers": headers}
        await self._send(message)

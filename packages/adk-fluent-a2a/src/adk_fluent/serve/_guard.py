"""What stands before every request: who asks, and whether it is more than the server takes."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import re
from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.context import attach, detach
from starlette.authentication import AuthCredentials, BaseUser
from starlette.datastructures import Headers
from starlette.requests import Request

from adk_fluent.a2a._trace import TRACE
from adk_fluent.extend import LOG
from adk_fluent.serve._auth import principal_fault
from adk_fluent.serve._handler import NOTICE, Notice

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from adk_fluent.serve._auth import Authenticator
    from adk_fluent.serve._limits import Limits

#: Whose requests are that come without authentication, which only this machine may send.
ANONYMOUS: Final = "anonymous"
_JSON: Final = frozenset({"application/json", "application/a2a+json"})
#: A string of JSON; one that does not end goes to the end, so that no byte is looked at twice.
_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\Z)', re.DOTALL)
_STEPS: Final = {ord(b): step for step, both in ((1, "[{"), (-1, "]}")) for b in both}
_NOT_BRACKETS: Final = bytes(each for each in range(256) if each not in _STEPS)
#: Bytes above the limit that are read nonetheless: a client that still sends reads no answer.
_DISCARDED: Final = 16 << 20
_MANY: Final = 10_000  # principals whose rate is remembered
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


class Principal(BaseUser):
    """Who asks, as the SDK wants to know it."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def is_authenticated(self) -> bool:
        """Always true: no other request comes here."""
        return True

    @property
    def display_name(self) -> str:
        """The principal."""
        return self._name


class RefusedError(Exception):
    """A request is not answered.

    Attributes:
        status: The HTTP status.
        headers: Headers of the answer.
    """

    def __init__(self, status: int, says: str, **headers: str) -> None:
        super().__init__(says)
        self.status = status
        self.headers = {key.replace("_", "-"): value for key, value in headers.items()}


class Guard:
    """An ASGI app that lets through what may be answered.

    Args:
        app: What answers.
        auth: Finds the principal; None serves this machine alone, as `ANONYMOUS`.
        limits: What is too much.
        open_paths: Paths that need no principal.
        rpc_paths: Paths whose refusals are JSON-RPC errors.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        auth: Authenticator | None,
        limits: Limits,
        open_paths: Collection[str],
        rpc_paths: Collection[str],
    ) -> None:
        self._app = app
        self._auth = auth
        self._limits = limits
        self._open = frozenset(open_paths)
        self._rpc = frozenset(rpc_paths)
        self._answering: Counter[str] = Counter()
        self._rates: dict[str, tuple[float, float]] = {}

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
            for principal in counted:
                self._answering[principal] -= 1
                if not self._answering[principal]:
                    del self._answering[principal]

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
        if self._auth is None:
            _check_local(scope, headers)
        if scope["path"] in self._open and scope["method"] in ("GET", "HEAD"):
            return receive
        principal = ANONYMOUS if self._auth is None else await self._principal(self._auth, scope)
        self._count(principal)
        self._answering[principal] += 1
        counted.append(principal)
        scope["user"] = Principal(principal)
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
        return _Replay(body, receive)

    async def _principal(self, auth: Authenticator, scope: Scope) -> str:
        challenge = str(getattr(auth, "challenge", "Bearer"))
        try:
            principal = await auth(Request(scope))
        except Exception:  # noqa: BLE001  # of somebody's own function
            LOG.exception("the authentication of a request failed")
            raise RefusedError(500, "Internal error") from None
        if principal is None:
            raise RefusedError(401, "Authentication is required", www_authenticate=challenge)
        if (fault := principal_fault(principal)) is not None:
            LOG.error("auth= returned a principal that %s", fault)
            raise RefusedError(500, "Internal error")
        return principal

    def _count(self, principal: str) -> None:
        """Take one request of what a principal may send."""
        limits, now = self._limits, asyncio.get_running_loop().time()
        if self._answering[principal] >= limits.open_requests:
            raise RefusedError(429, "Too many open requests: try again later", retry_after="1")
        left, then = self._rates.pop(principal, (float(limits.burst), now))
        left = min(float(limits.burst), left + (now - then) * limits.requests_per_second)
        if len(self._rates) >= _MANY:  # the first is the one that was not seen for longest
            del self._rates[next(iter(self._rates))]
        self._rates[principal] = (max(left - 1, 0.0) if left >= 1 else left, now)
        if left < 1:
            wait = max(1, round((1 - left) / limits.requests_per_second))
            raise RefusedError(429, "Too many requests: try again later", retry_after=str(wait))

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
        name, code = _STATUS[refusal.status]
        says = str(refusal)
        error: dict[str, Any] = {"code": refusal.status, "status": name, "message": says}
        body: dict[str, Any] = {"error": error}
        if scope["path"] in self._rpc and scope["method"] == "POST":
            body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": says}}
        content = json.dumps(body).encode()
        headers = {
            "content-type": "application/json",
            "content-length": str(len(content)),
            **refusal.headers,
        }
        raw = [(key.encode(), value.encode()) for key, value in headers.items()]
        await send({"type": "http.response.start", "status": refusal.status, "headers": raw})
        await send({"type": "http.response.body", "body": content})


def depth_above(body: bytes, most: int) -> bool:
    """Whether JSON is nested deeper than so many levels; in one pass, without recursion."""
    brackets = _STRING.sub(b"", body).translate(None, _NOT_BRACKETS)
    return len(brackets) > most and max(accumulate(map(_STEPS.__getitem__, brackets))) > most


def _check_local(scope: Scope, headers: Headers) -> None:
    """Refuse what does not come from this machine, or was not meant for it.

    A proxy on this machine, and a page whose name was rebound to it, ask for another host.
    """
    client = scope.get("client")
    if client is None or not is_loopback(client[0]):
        raise RefusedError(403, "Without auth= only this machine is served")
    host = headers.get("host", "").rpartition("@")[2]
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    if not is_loopback(name):
        raise RefusedError(403, "Without auth= only this machine is served")


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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

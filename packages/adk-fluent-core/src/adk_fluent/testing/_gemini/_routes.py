"""From a request to its answer: which there are, who may ask, what comes back."""

from __future__ import annotations

import asyncio
import json
import math
import re
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent._scripts._script import prompt_tokens
from adk_fluent._scripts._wire import error_info
from adk_fluent.errors import UsageError
from adk_fluent.testing._gemini._answer import answer_of
from adk_fluent.testing._gemini._caches import NOT_FOUND, Caches
from adk_fluent.testing._gemini._checks import complaint
from adk_fluent.testing._gemini._delivery import send_stream, send_whole
from adk_fluent.testing._gemini._http import (
    RefusedError,
    Response,
    hang_up,
    json_bytes,
    read_request,
)
from adk_fluent.testing._gemini._request import GeminiRequest, field

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from collections.abc import Callable, Collection, Coroutine

    from adk_fluent._scripts._replies import Reply
    from adk_fluent._scripts._script import Script
    from adk_fluent.testing._gemini._answer import Answer
    from adk_fluent.testing._gemini._delivery import Trouble
    from adk_fluent.testing._gemini._http import HttpRequest

_MODEL: Final = re.compile(r"/(v1\w*)/(?:models|tunedModels)/([^/:]+):(\w+)")
_CACHE: Final = re.compile(r"/v1\w*/(cachedContents(?:/[^/:]+)?)")
_CACHE_ACTIONS: Final = {"POST": "create", "GET": "get", "DELETE": "delete"}
_SECRET: Final = frozenset({"authorization", "cookie", "x-goog-api-key"})
_INVALID_KEY: Final = "API key not valid. Please pass a valid API key."
_NO_KEY: Final = (
    "Method doesn't allow unregistered callers (callers without established identity). Please use "
    "API Key or other form of API consumer identity to call this API."
)


class Routes:
    """Answers requests, and remembers them.

    Args:
        script: What is answered now.
        keys: The API keys that are valid; None takes every key.
        denied: API keys without the permission.
        models: The models there are; None has every model.

    Attributes:
        requests: Every request so far.
        abandoned: Those whose client hung up before the end.
        failures: What went wrong in the script.
    """

    def __init__(
        self,
        script: Callable[[], Script],
        *,
        keys: Collection[str] | None,
        denied: Collection[str],
        models: Collection[str] | None,
    ) -> None:
        self._script = script
        self._keys, self._denied, self._models = keys, denied, models
        self._caches = Caches()
        self.requests: list[GeminiRequest] = []
        self.abandoned: list[GeminiRequest] = []
        self.failures: list[BaseException] = []

    async def serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Serve one connection, which is one request."""
        response = Response(writer)
        try:
            http = await read_request(reader, writer)
        except RefusedError as error:
            with suppress(ConnectionError):
                await _refuse(response, error)
            await hang_up(reader, writer, drain=True)
            return
        if http is not None:
            request = self._record(http)
            try:
                if not await _while_there(reader, self._respond(http, request, response)):
                    self.abandoned.append(request)
            except Exception as error:  # noqa: BLE001  # told at the end; others are still served
                self.failures.append(error)
        await hang_up(reader, writer)

    def _record(self, http: HttpRequest) -> GeminiRequest:
        model = _MODEL.fullmatch(http.path)
        cache = _CACHE.fullmatch(http.path)
        action = model[3] if model else _CACHE_ACTIONS.get(http.method) if cache else None
        body = _json_object(http.body)
        cached = field(body or {}, "cachedContent")
        request = GeminiRequest(
            number=len(self.requests),
            method=http.method,
            path=http.path,
            model=model[2] if model else None,
            action=action,
            headers={k: v for k, v in http.headers.items() if k not in _SECRET},
            body=body,
            cached=self._caches.find(cached) if isinstance(cached, str) else None,
        )
        self.requests.append(request)
        return request

    async def _respond(self, http: HttpRequest, request: GeminiRequest, to: Response) -> None:
        try:
            self._check_key(http)
            if (cache := _CACHE.fullmatch(http.path)) is not None:
                told = self._cache(request, cache[1])
            elif request.model is None:
                raise RefusedError(404, f"The emulator has no {http.path}.")
            else:
                self._check_model(http, request)
                if request.action != "countTokens":
                    await self._generate(http, request, to)
                    return
                told = {"totalTokens": prompt_tokens(request.asked)}
            await to.send(200, json_bytes(told))
        except RefusedError as error:
            await _refuse(to, error)

    # --- who may ask, and what -----------------------------------------------------------------

    def _check_key(self, http: HttpRequest) -> None:
        if self._keys is None and not self._denied:
            return
        key = http.headers.get("x-goog-api-key") or http.query.get("key")
        if not key:
            raise RefusedError(403, _NO_KEY)
        if key in self._denied:
            raise RefusedError(
                403,
                "Requests to this API generativelanguage.googleapis.com are blocked.",
                details=[error_info("API_KEY_SERVICE_BLOCKED")],
            )
        if self._keys is not None and key not in self._keys:
            raise RefusedError(400, _INVALID_KEY, details=[error_info("API_KEY_INVALID")])

    def _check_model(self, http: HttpRequest, request: GeminiRequest) -> None:
        if request.action not in {"generateContent", "streamGenerateContent", "countTokens"}:
            raise RefusedError(501, f"The emulator has no {request.action}.")
        _only(http.method, "POST")
        if self._models is not None and request.model not in self._models:
            version = http.path.split("/")[1]
            raise RefusedError(
                404,
                f"models/{request.model} is not found for API version {version}, or is not "
                f"supported for {request.action}. Call ListModels to see the list of available "
                "models and their supported methods.",
            )
        if (wrong := complaint(request)) is not None:
            raise RefusedError(400, wrong)
        name = field(request.body or {}, "cachedContent")
        if name is not None and request.cached is None:
            raise RefusedError(403, NOT_FOUND)

    def _cache(self, request: GeminiRequest, name: str) -> dict[str, Any]:
        if "/" not in name:
            _only(request.method, "POST")
            return self._caches.create(request)
        _only(request.method, "GET", "DELETE")
        return self._caches.get(name) if request.method == "GET" else self._caches.delete(name)

    # --- what is answered ----------------------------------------------------------------------

    async def _generate(self, http: HttpRequest, request: GeminiRequest, to: Response) -> None:
        reply, answer, trouble = await self._scripted(request)
        if request.stream and answer.status == 200:
            sse = http.query.get("alt") == "sse"
            await send_stream(to, answer, trouble, pause=reply.pause, sse=sse)
        else:
            headers: dict[str, str] = {}
            if reply.retry_after is not None:
                headers["Retry-After"] = str(math.ceil(reply.retry_after))
            await send_whole(to, answer, trouble, headers)

    async def _scripted(self, request: GeminiRequest) -> tuple[Reply, Answer, Trouble | None]:
        try:
            reply = await self._script().answer(request.asked)
            reply, status, trouble = _as_seen(reply, stream=request.stream)
            return reply, answer_of(reply, request, status), trouble
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # pytest's outcomes, too; told at the end
            self.failures.append(error)
            why = f"The emulator's script failed: {type(error).__name__}: {error}"
            raise RefusedError(400, why) from error


def _as_seen(reply: Reply, *, stream: bool) -> tuple[Reply, int | None, Trouble | None]:
    """What a client sees of a reply: the reply, the HTTP status of its error, what goes wrong.

    Raises:
        UsageError: The reply raises what no client can see.
    """
    error = reply.raises
    if error is None:
        return reply, reply.status, reply.fault
    code = getattr(error, "code", None)
    if isinstance(code, int):
        message = getattr(error, "message", None) or str(error)
        return replace(reply, raises=None, error_message=message), code, None
    if not isinstance(error, ConnectionError | TimeoutError):
        raise UsageError(
            f"an emulator cannot raise {type(error).__name__} in its client",
            help="give reply(status=...) or reply(fault=...), a ConnectionError or a TimeoutError",
        )
    lost: Trouble = "disconnect"
    if stream and reply.chunks:  # they arrive, and what would come after them does not
        reply, lost = replace(reply, chunks=(*reply.chunks, "")), "cut"
    return reply, None, "silence" if isinstance(error, TimeoutError) else lost


async def _while_there(reader: StreamReader, work: Coroutine[Any, Any, None]) -> bool:
    """Do the work, unless the client hangs up before it is done."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_leave(reader))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            return False
        await working
    except ConnectionError:
        return False
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)
    return True


async def _leave(reader: StreamReader) -> None:
    with suppress(ConnectionError):
        while await reader.read(4096):
            continue  # what still comes is nothing we asked for


async def _refuse(to: Response, error: RefusedError) -> None:
    await to.send(error.code, json_bytes(error.body), headers=error.headers)


def _only(method: str, *known: str) -> None:
    if method not in known:
        allowed = ", ".join(known)
        raise RefusedError(405, f"Only {allowed} is known here.", headers={"Allow": allowed})


def _json_object(body: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):  # not JSON, not text, numbers without end, depth
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None

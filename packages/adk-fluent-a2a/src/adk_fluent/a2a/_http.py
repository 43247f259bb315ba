"""The HTTP client: one for each event loop, closed with it."""

from __future__ import annotations

import asyncio
from http.cookiejar import DefaultCookiePolicy
from typing import TYPE_CHECKING, Final, NamedTuple

import httpx

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import AsyncGenerator, AsyncIterator

#: Bytes of an answer, or of a whole stream of events.
LARGEST = 64 << 20


class _Held(NamedTuple):
    client: httpx.AsyncClient
    keeper: AsyncGenerator[None, None]


_HELD: Final[dict[AbstractEventLoop, _Held]] = {}


async def http_client() -> httpx.AsyncClient:
    """The client of the running loop. It follows no redirects and keeps no cookies.

    It has no time limits of its own: the whole task has one. An answer above `LARGEST` raises a
    ValueError while it is read.
    """
    loop = asyncio.get_running_loop()
    held = _HELD.get(loop)
    if held is None:
        for each in [each for each in _HELD if each.is_closed()]:
            del _HELD[each]
        client = httpx.AsyncClient(
            timeout=None,  # noqa: S113  # the deadline of the task stands around every request
            follow_redirects=False,
            headers={"accept-encoding": "identity"},  # what unpacks has no size
            event_hooks={"response": [_limit]},
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=50),
        )
        # what one user's task set must not be sent with another's
        client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=()))
        held = _HELD[loop] = _Held(client, _keep(client))
        await anext(held.keeper)
    return held.client


async def _keep(client: httpx.AsyncClient) -> AsyncGenerator[None, None]:
    """Close the client when the loop ends, which closes the generators that are open then."""
    async with client:
        yield


class _Limited(httpx.AsyncByteStream):
    """A body of which no more than `LARGEST` is read."""

    def __init__(self, stream: httpx.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = LARGEST
        async for chunk in self._stream:
            left -= len(chunk)
            if left < 0:
                raise ValueError(f"it has more than {LARGEST} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _limit(response: httpx.Response) -> None:
    # a transport of our own would do it, too, but then httpx takes no proxy from the environment
    coding = response.headers.get("content-encoding", "identity")
    if coding.lower() != "identity":
        raise ValueError("it is compressed, which was not asked for")
    if isinstance(response.stream, httpx.AsyncByteStream):
        response.stream = _Limited(response.stream)

"""The HTTP client: one for each event loop, closed with it."""

from __future__ import annotations

import asyncio
from http.cookiejar import DefaultCookiePolicy
from typing import TYPE_CHECKING, Final, NamedTuple

import httpx

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import AsyncGenerator


class _Held(NamedTuple):
    client: httpx.AsyncClient
    keeper: AsyncGenerator[None, None]


_HELD: Final[dict[AbstractEventLoop, _Held]] = {}


async def http_client() -> httpx.AsyncClient:
    """The client of the running loop. It follows no redirects and keeps no cookies.

    It has no time limits of its own: the whole task has one.
    """
    loop = asyncio.get_running_loop()
    held = _HELD.get(loop)
    if held is None:
        for each in [each for each in _HELD if each.is_closed()]:
            del _HELD[each]
        client = httpx.AsyncClient(
            timeout=None,  # noqa: S113  # the deadline of the task stands around every request
            follow_redirects=False,
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

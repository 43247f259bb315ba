"""An agent's registration at a directory server, kept alive."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx
from google.protobuf.json_format import MessageToDict

from adk_fluent.a2a._failures_adk import failure, failure_of
from adk_fluent.a2a._http import http_client
from adk_fluent.errors import RemoteError
from adk_fluent.extend import LOG

if TYPE_CHECKING:
    from a2a.types import AgentCard
    from adk_fluent.a2a._lookup_adk import Web


class Registration:
    """One agent at one directory.

    Args:
        web: The directory.
        card: The agent's card.
        url: Where the card is; None lets the directory show it.
        lease: Seconds for which the directory is asked to keep it.
    """

    def __init__(self, web: Web, card: AgentCard, url: str | None, lease: float) -> None:
        self._web = web
        self._base = web.node.endpoint.rstrip("/")
        self._body = {"card": MessageToDict(card), "url": url, "leaseSeconds": lease}
        self._lease = lease
        self._identifier = ""

    async def renew(self) -> str:
        """Register the agent, or renew its lease; gives what the directory calls it.

        Raises:
            RemoteError: The directory cannot be reached, or refuses it.
        """
        answer = await self._send("POST", "/agents", self._body)
        self._identifier = str(answer.get("identifier", ""))
        granted = answer.get("leaseSeconds")
        if isinstance(granted, int | float) and granted > 0:
            self._lease = float(granted)
        return self._identifier

    async def keep(self) -> None:
        """Renew the lease until cancelled; a failure is tried again."""
        while True:
            await asyncio.sleep(self._lease / 3)
            try:
                async with asyncio.timeout(self._lease / 3):
                    await self.renew()
            except (RemoteError, TimeoutError) as error:
                LOG.warning("the lease of %s was not renewed: %s", self._identifier, error)

    async def end(self) -> None:
        """Unregister the agent; where that fails, its lease ends by itself."""
        try:
            async with asyncio.timeout(self._web.node.timeout_seconds):
                await self._send("DELETE", f"/agents/{quote(self._identifier)}", None)
        except (RemoteError, TimeoutError) as error:
            LOG.warning("%s was not unregistered: %s", self._identifier, error)

    async def _send(self, method: str, path: str, body: Any) -> dict[str, Any]:
        node = self._web.node
        client = await http_client()
        headers = await self._web.credentials.headers(client)
        try:
            response = await client.request(method, self._base + path, json=body, headers=headers)
            if response.is_client_error:
                raise failure(
                    "DIRECTORY",
                    node,
                    f"refuses {self._identifier or 'the agent'}",
                    found=response.text,
                    status=response.status_code,
                )
            response.raise_for_status()
            return response.json() if response.content else {}
        except (httpx.HTTPError, ValueError) as error:
            raise failure_of(error, node) from error

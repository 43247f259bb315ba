"""ADK's Gemini, bound to an emulator. Importing this imports google.adk."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary

import httpx
from google.adk.models.google_llm import Gemini
from google.genai import Client, types
from pydantic import PrivateAttr

from adk_fluent.testing._gemini._server import HOST

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Mapping
    from typing import Self


class _Clients:
    """A client for each event loop: what it holds open belongs to the loop."""

    def __init__(self, url: str, key: str) -> None:
        self._url, self._key = url, key
        self._made: WeakKeyDictionary[AbstractEventLoop, Client] = WeakKeyDictionary()
        self._off_loop: Client | None = None

    def get(self, retry: types.HttpRetryOptions | None) -> Client:
        """The client of the running loop, or, where none runs, the one for synchronous use."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._off_loop = self._off_loop or self._new(retry)
            return self._off_loop
        if loop not in self._made:
            self._made[loop] = self._new(retry)
        return self._made[loop]

    def _new(self, retry: types.HttpRetryOptions | None) -> Client:
        options = types.HttpOptions(base_url=self._url, retry_options=retry)
        if getproxies().get("http") and not proxy_bypass(HOST):
            options.client_args = {"trust_env": False}
            options.async_client_args = {"transport": httpx.AsyncHTTPTransport()}  # or aiohttp's
        return Client(api_key=self._key, vertexai=False, http_options=options)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


class EmulatedGemini(Gemini):
    """ADK's Gemini with a client of its own making; everything else is ADK's."""

    _clients: _Clients = PrivateAttr()

    @property
    def api_client(self) -> Client:  # pyright: ignore[reportIncompatibleVariableOverride]  # ADK's is cached, in one way or another
        """The client that talks to the emulator."""
        return self._clients.get(self.retry_options)

    @classmethod
    def bound(cls, url: str, key: str, name: str, fields: Mapping[str, Any]) -> Self:
        """A model that is bound to an emulator.

        Args:
            url: The emulator's base URL.
            key: The API key.
            name: The model's name.
            fields: Further fields of ADK's Gemini.
        """
        model = cls(model=name, **fields)
        model._clients = _Clients(url, key)
        return model

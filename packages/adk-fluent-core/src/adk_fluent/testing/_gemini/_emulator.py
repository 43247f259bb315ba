"""Gemini's REST API on loopback, answering from a script."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, Final

from adk_fluent._scripts._script import Script
from adk_fluent.errors import UsageError
from adk_fluent.testing._gemini._routes import Routes
from adk_fluent.testing._gemini._server import HOST, Server

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Self

    from google.adk.models.google_llm import Gemini

    from adk_fluent._scripts._replies import Answer, Asked, Rule
    from adk_fluent.testing._gemini._request import GeminiRequest

_KEY: Final = "emulator-key"
_PROXIES: Final = ("NO_PROXY", "no_proxy")


class GeminiEmulator:
    """The Gemini REST API on 127.0.0.1, for whatever talks to Gemini by Google's own client.

    It answers from a script, as a `ScriptedModel` does, but over HTTP: requests and responses,
    errors, streams and broken connections pass through ADK's ``Gemini`` and google-genai. It
    refuses what Gemini refuses, and records every request.

    Rules and functions of the script run in a thread of the emulator. What goes wrong in the script
    itself (a prompt that nothing answers, a function that raises) is answered with status 400, and
    raised at the end of the ``with`` block, so that no fallback covers it up.

    An exception as an answer is what the client sees of it: a `ConnectionError` ends the
    connection, after a `TimeoutError` nothing comes any more, and google-genai's errors are their
    HTTP status.

    Example:
        >>> with GeminiEmulator(reply(status=429), "Hello!") as gemini:
        ...     agent = Agent("greet", gemini.model()) // Agent("again", gemini.model())
        ...     agent.ask("Hi.")
        'Hello!'

    Args:
        *replies: Given one after the other, each once.
        rules: Tried first, in order; `rule(model=...)` is for one model.
        default: Given when nothing else is left.
        latency: Seconds before each reply that names none itself.
        script: Follow this script instead of the arguments before.
        keys: The API keys that are valid; None takes every key.
        denied: API keys that are valid, but not for this API.
        models: The models there are; None has every model.
        port: Where to listen; 0 takes a free port.

    Attributes:
        script: What it answers; may be replaced at any time.
        key: The API key that it gives to its own clients.
    """

    def __init__(
        self,
        *replies: Answer,
        rules: Sequence[Rule] = (),
        default: Answer | None = None,
        latency: float = 0.0,
        script: Script | None = None,
        keys: Sequence[str] | None = None,
        denied: Sequence[str] = (),
        models: Sequence[str] | None = None,
        port: int = 0,
    ) -> None:
        if script is None:
            script = Script(*replies, rules=rules, default=default, latency=latency)
        elif replies or rules or default is not None or latency:
            raise UsageError("a script brings its replies", help="give them to Script(...) instead")
        for name, names in (("keys", keys), ("denied", denied), ("models", models)):
            if isinstance(names, str):
                raise UsageError(f"{name}= takes a list of texts", found=repr(names)[:20])
        self.script = script
        self.key: str = keys[0] if keys else _KEY
        self._routes = Routes(lambda: self.script, keys=keys, denied=denied, models=models)
        self._port = port
        self._server: Server | None = None

    # --- where it is ---------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Its base URL.

        Raises:
            UsageError: It does not run.
        """
        return f"http://{HOST}:{self._running().port}"

    @property
    def env(self) -> dict[str, str]:
        """Environment variables with which every process uses it instead of Gemini."""
        return {
            "GOOGLE_GEMINI_BASE_URL": self.url,
            "GOOGLE_API_KEY": self.key,
            "GOOGLE_GENAI_USE_ENTERPRISE": "false",
            "GOOGLE_GENAI_USE_VERTEXAI": "false",
            **{name: _with_host(os.environ.get(name, "")) for name in _PROXIES},
        }

    def model(self, name: str = "gemini-2.5-flash", **fields: Any) -> Gemini:
        """ADK's Gemini, bound to this emulator whatever the environment says.

        Args:
            name: The model's name.
            **fields: Further fields of ADK's Gemini, such as ``retry_options``.
        """
        from adk_fluent.testing._gemini import _model_adk  # noqa: PLC0415  # keeps ADK lazy

        return _model_adk.EmulatedGemini.bound(self.url, self.key, name, fields)

    # --- what it was asked ---------------------------------------------------------------------

    @property
    def requests(self) -> tuple[GeminiRequest, ...]:
        """Every request so far, in order, those that were refused included."""
        return tuple(self._routes.requests)

    @property
    def calls(self) -> tuple[Asked, ...]:
        """What its script was asked so far, in order."""
        return self.script.calls

    @property
    def abandoned(self) -> tuple[GeminiRequest, ...]:
        """The requests whose client hung up before it had the whole answer."""
        return tuple(self._routes.abandoned)

    @property
    def failures(self) -> tuple[BaseException, ...]:
        """What went wrong in its script; the first one is raised at the end of ``with``."""
        return tuple(self._routes.failures)

    def of(self, *, agent: str | None = None, model: str | None = None) -> list[GeminiRequest]:
        """The requests of one agent, to one model, or both.

        Args:
            agent: The agent's name.
            model: The model's name.
        """
        return [
            each
            for each in self.requests
            if (agent is None or each.agent == agent) and (model is None or each.model == model)
        ]

    # --- from start to end ---------------------------------------------------------------------

    def start(self) -> Self:
        """Begin to listen, unless it does already; ``with`` does it.

        Raises:
            OSError: The port is taken.
        """
        if self._server is None:
            self._server = Server(self._routes.serve, self._port)
        return self

    def close(self) -> None:
        """End every connection and stop; ``with`` does it. Nothing happens if it does not run."""
        server, self._server = self._server, None
        if server is not None:
            server.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
        self._tell_failures(error)

    async def __aenter__(self) -> Self:
        return self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.close)
        self._tell_failures(error)

    def _tell_failures(self, error: BaseException | None) -> None:
        if not self.failures:
            return
        first = self.failures[0]
        if error is None:
            raise first
        if error is not first:
            error.add_note(f"the emulator's script failed before: {type(first).__name__}: {first}")

    def _running(self) -> Server:
        if self._server is None:
            raise UsageError(
                "the emulator does not run", help="write: with GeminiEmulator(...) as gemini:"
            )
        return self._server

    def __repr__(self) -> str:
        where = "stopped" if self._server is None else self.url
        return f"<GeminiEmulator {where}, {len(self.requests)} requests>"


def _with_host(hosts: str) -> str:
    """A list of hosts that are reached without a proxy, and this one."""
    known = [host.strip() for host in hosts.split(",") if host.strip()]
    return ",".join(known if HOST in known else [*known, HOST])

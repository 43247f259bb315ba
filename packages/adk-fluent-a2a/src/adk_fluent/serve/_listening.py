"""A server that listens in somebody else's event loop."""

from __future__ import annotations

import asyncio
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import uvicorn

from adk_fluent.errors import UsageError
from adk_fluent.extend import is_loopback, must_be_number

if TYPE_CHECKING:
    from collections.abc import Generator

    from starlette.types import ASGIApp

_EVERYWHERE: Final = ("", "0.0.0.0", "::")  # noqa: S104  # which nobody can be told to come to


def check_start(
    what: str, listening: object, host: str, *, local: bool, nowhere: str | None, help: str
) -> None:
    """Refuse to listen where that cannot be meant.

    Args:
        what: What is started.
        listening: What is there of a start before; None if there was none.
        host: The address.
        local: Whether there is no `auth`, so that this machine alone is served.
        nowhere: What would name an address that is not known; None if it is known.
        help: How to name it.

    Raises:
        UsageError: It was started already, or is to listen where it must not.
    """
    if listening is not None:
        raise UsageError(f"the {what} was started already", help="make another one")
    if local and not is_loopback(host):
        raise UsageError(
            "without auth= only this machine is served",
            found=f"host={host!r}",
            help='give auth=BearerAuth({os.environ["TOKEN"]: "ann"}), or leave host= out',
        )
    if nowhere is not None and host in _EVERYWHERE:
        raise UsageError(
            f"{nowhere} names the address where clients come in, which is not known",
            found=f"host={host!r}",
            help=help,
        )


def listener_at(host: str, port: int) -> tuple[socket.socket, str]:
    """A socket that listens, and its address as a URL; port 0 takes a free one.

    Raises:
        OSError: The address cannot be listened at.
        UsageError: The port is none.
    """
    must_be_number(port, "port= is a whole number from 0 to 65535", most=65535, kind=int)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=2048)
    shown = f"[{host}]" if ":" in host else host
    return listener, f"http://{shown}:{listener.getsockname()[1]}"


class Listening:
    """An app that is served in the running event loop."""

    def __init__(self, app: ASGIApp) -> None:
        self._server = _Uvicorn(
            uvicorn.Config(
                app,
                log_level="warning",
                access_log=False,
                proxy_headers=False,  # who asks is not taken from a header
                server_header=False,
                timeout_graceful_shutdown=5,
            )
        )
        self._serving: asyncio.Task[None] | None = None

    async def start(self, listener: socket.socket) -> None:
        """Serve at a socket; returns when requests are answered."""
        self._serving = asyncio.create_task(self._server.serve(sockets=[listener]))
        listening = asyncio.create_task(self._server.listening.wait())
        await asyncio.wait({self._serving, listening}, return_when=asyncio.FIRST_COMPLETED)
        listening.cancel()
        if self._serving.done():
            self._serving.result()

    async def stop(self) -> None:
        """Answer what has been asked, and close."""
        if self._serving is not None:
            self._server.should_exit = True
            await self._serving


class _Uvicorn(uvicorn.Server):
    """A server in somebody else's program: it leaves signals alone, and says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Do nothing."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        self.listening.set()

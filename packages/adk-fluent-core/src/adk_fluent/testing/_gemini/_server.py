"""A server on loopback with an event loop and a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final

from adk_fluent.errors import UsageError
from adk_fluent.testing._gemini._http import HEAD_LIMIT

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from collections.abc import Awaitable, Callable

HOST: Final = "127.0.0.1"
_PATIENCE: Final = 10.0  # seconds for a function of a script to come to its end


class Server:
    """Accepts connections until it is stopped; a task for each of them.

    Args:
        handle: Serves one connection.
        port: Where to listen; 0 takes a free one.
    """

    def __init__(
        self, handle: Callable[[StreamReader, StreamWriter], Awaitable[None]], port: int = 0
    ) -> None:
        self._handle = handle
        self._wanted = port
        self._ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, int]] = Future()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name="gemini-emulator", daemon=True)
        self._thread.start()
        self._loop, self._stopping, self.port = self._ready.result()

    def stop(self) -> None:
        """End every connection, and wait until nothing is left of the server.

        Raises:
            UsageError: A function of the script does not come to an end.
        """
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(_PATIENCE)
        if self._thread.is_alive():
            raise UsageError(
                "the emulator cannot stop: a function of its script still runs",
                help="let it come to an end; to wait in it, write it as async def",
            )

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except OSError as error:  # nothing listens yet: _serve raises only before it is ready
            self._ready.set_exception(error)

    async def _serve(self) -> None:
        stopping = asyncio.Event()
        server = await asyncio.start_server(self._accept, HOST, self._wanted, limit=HEAD_LIMIT)
        port: int = server.sockets[0].getsockname()[1]
        self._ready.set_result((asyncio.get_running_loop(), stopping, port))
        try:
            await stopping.wait()
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve_one(reader, writer))
        self._tasks.add(task)

        def done(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            writer.transport.abort()  # also where the task was cancelled before it began

        task.add_done_callback(done)

    async def _serve_one(self, reader: StreamReader, writer: StreamWriter) -> None:
        await self._handle(reader, writer)

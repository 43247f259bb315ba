"""An echo behind A2A, by our server and by ADK's `to_a2a`: the server's own CPU seconds.

Each is served in the process that is measured; the clients are in another one, so that what they
take does not count.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import TYPE_CHECKING, Any

import uvicorn
from google.adk.a2a.utils.agent_to_a2a import to_a2a
from google.adk.agents.llm_agent import LlmAgent

from adk_fluent import Agent
from adk_fluent.serve import A2AServer, Limits
from bench.side.clients import CLIENTS
from bench.side.scripted import Echo

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from bench.side.worker import Task

_LIMITS = Limits(requests_per_second=1e6, burst=10**6)


def _driven(serve: Callable[[], Awaitable[int]]) -> Callable[[int], Any]:
    """Have clients send so many messages each; return how many tasks were completed."""

    def task(size: int) -> Callable[[], Coroutine[Any, Any, int]]:
        clients: list[asyncio.subprocess.Process] = []

        async def once() -> int:
            if not clients:
                port = await serve()
                clients.append(
                    await asyncio.create_subprocess_exec(
                        *(sys.executable, "-m", "bench.side.clients", str(port)),
                        stdin=asyncio.subprocess.PIPE,
                        stdout=asyncio.subprocess.PIPE,
                    )
                )
            (process,) = clients
            assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018
            process.stdin.write(f"{size}\n".encode())
            return int(await process.stdout.readline()) // CLIENTS

        return once

    return task


async def _fluent() -> int:
    server = A2AServer(Agent("echo", Echo(model="echo")), limits=_LIMITS)
    await server.start(port=0)
    return int(server.url.rpartition(":")[2])


async def _adk() -> int:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    agent = LlmAgent(name="echo", model=Echo(model="echo"))
    app = to_a2a(agent, host="127.0.0.1", port=port)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
    _SERVING.append(asyncio.create_task(server.serve(sockets=[listener])))
    return port


_SERVING: list[asyncio.Task[None]] = []
TASKS: dict[str, Task] = {"fluent": _driven(_fluent), "adk": _driven(_adk)}

"""Open streams of an A2A server, and the memory that each of them takes.

Prints one line of JSON, like all that runs in a process of its own: ``streams.main(1000)``. The
clients are in another process, ``python -m bench.side.streams PORT``: for each line of input
they open so many streams more, and say so when each has told of its task.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from time import process_time
from typing import TYPE_CHECKING, Any

from bench.side.soak import resident

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Streams that are there before anything is counted, so that what happens once is not.
FIRST = 50


def _request(at: int) -> bytes:
    message = {"messageId": f"m{at}", "role": "ROLE_USER", "parts": [{"text": "Wait."}]}
    method, params = "SendStreamingMessage", {"message": message}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    head = (
        "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nA2A-Version: 1.0\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _clients(port: int) -> None:
    opened: list[Any] = []
    for line in iter(sys.stdin.readline, ""):
        for _ in range(int(line)):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(_request(len(opened)))
            await reader.readuntil(b"TASK_STATE_WORKING")
            opened.append((reader, writer))
        print(len(opened), flush=True)


async def _held(size: int) -> dict[str, Any]:
    """Hold a quarter of the streams, then all; gives the bytes of each."""
    from adk_fluent import Agent  # noqa: PLC0415  # the clients have no use for them
    from adk_fluent.serve import A2AServer, Limits  # noqa: PLC0415
    from bench.side.scripted import Echo  # noqa: PLC0415

    go = asyncio.Event()

    async def hold(state: Mapping[str, Any]) -> Mapping[str, Any]:
        await go.wait()
        return {}

    limits = Limits(concurrency=10**6, open_requests=10**6, requests_per_second=1e6)
    server = A2AServer(hold >> Agent("echo", Echo(model="echo")), limits=limits)
    await server.start(port=0)
    clients = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.side.streams", server.url.rpartition(":")[2]),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert clients.stdin is not None and clients.stdout is not None  # noqa: S101, PT018
    bytes_then: list[int] = []
    opened = 0
    for total in (FIRST, FIRST + size // 4, FIRST + size):
        clients.stdin.write(f"{total - opened}\n".encode())
        opened = int(await clients.stdout.readline())
        gc.collect()
        bytes_then.append(resident())
    go.set()
    clients.stdin.close()
    await clients.wait()
    await server.stop(grace=0)
    first, some, all = bytes_then
    return {
        "streams": opened - FIRST,
        "some": (some - first) / (size // 4),
        "all": (all - first) / size,
    }


def main(size: int) -> None:
    """Hold so many streams, and say what was seen."""
    started = process_time()
    result = asyncio.run(_held(size))
    print(json.dumps({"seconds": process_time() - started, "result": result}))


if __name__ == "__main__":
    asyncio.run(_clients(int(sys.argv[1])))

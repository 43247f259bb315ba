"""Clients of an A2A server, in a process of their own: ``python -m bench.side.clients PORT``.

Each line of input is how many messages every client sends, one after the other; each line of output
how many tasks were completed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Final
from uuid import uuid4

CLIENTS: Final = 16
# each message has an id of its own, of as many characters: one that is sent again is not run
_ID: Final = b"0" * 32
_MESSAGE: Final = {
    "messageId": _ID.decode(),
    "role": "ROLE_USER",
    "parts": [{"text": "Say it again."}],
}
_BODY: Final = json.dumps(
    {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": _MESSAGE}}
).encode()
_HEAD: Final = (
    "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\n"
    f"Content-Length: {len(_BODY)}\r\n\r\n"
).encode()


async def _client(port: int, messages: int) -> int:
    """Send messages on one connection; return how many tasks were completed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    done = 0
    for _ in range(messages):
        writer.write(_HEAD + _BODY.replace(_ID, uuid4().hex.encode()))
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length:")[2].partition("\r\n")[0])
        answer = json.loads(await reader.readexactly(length))
        state = answer.get("result", {}).get("task", {}).get("status", {}).get("state")
        done += state == "TASK_STATE_COMPLETED"
    writer.close()
    await writer.wait_closed()
    return done


async def _all(port: int, messages: int) -> int:
    return sum(await asyncio.gather(*(_client(port, messages) for _ in range(CLIENTS))))


def main() -> None:
    """Send what is asked for, until there is no more."""
    for line in sys.stdin:
        print(asyncio.run(_all(int(sys.argv[1]), int(line))), flush=True)


if __name__ == "__main__":
    main()

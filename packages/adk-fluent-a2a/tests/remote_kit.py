"""Servers on loopback: real ones of ADK and the SDK, and one that misbehaves as it is told."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import uvicorn

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from starlette.types import ASGIApp

WELL_KNOWN = "/.well-known/agent-card.json"


@asynccontextmanager
async def served(make: Callable[[int], ASGIApp]) -> AsyncGenerator[str]:
    """Serve the app that `make` gives for a port, in this loop; gives its address."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        config = uvicorn.Config(make(port), log_level="error", lifespan="on")
        server = uvicorn.Server(config)
        task = asyncio.create_task(server.serve(sockets=[listener]))
        while not server.started:
            if task.done():
                task.result()
            await asyncio.sleep(0)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            await task


def card(url: str, **fields: Any) -> dict[str, Any]:
    """An agent card as JSON."""
    interface = {"url": f"{url}/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    return {
        "name": "Payments",
        "description": "Pays.",
        "version": "1",
        "supportedInterfaces": [interface],
        "capabilities": {"streaming": False},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [
            {"id": "refund", "name": "Refund", "description": "Pays back.", "tags": ["pay"]}
        ],
        **fields,
    }


def text(said: str) -> dict[str, Any]:
    return {"text": said}


def message(*parts: dict[str, Any], id: str = "m1") -> dict[str, Any]:
    return {"messageId": id, "role": "ROLE_AGENT", "parts": list(parts)}


def task(
    state: str, *parts: dict[str, Any], said: str | None = None, **more: Any
) -> dict[str, Any]:
    """A task as JSON, with an artifact of these parts."""
    status: dict[str, Any] = {"state": f"TASK_STATE_{state}"}
    if said is not None:
        status["message"] = message(text(said))
    made = {"id": "t1", "contextId": "c1", "status": status, **more}
    if parts:
        made["artifacts"] = [{"artifactId": "a1", "parts": list(parts)}]
    return {"task": made}


def status(state: str, said: str | None = None) -> dict[str, Any]:
    told: dict[str, Any] = {"state": f"TASK_STATE_{state}"}
    if said is not None:
        told["message"] = message(text(said))
    return {"statusUpdate": {"taskId": "t1", "contextId": "c1", "status": told}}


def artifact(*parts: dict[str, Any], append: bool = False, last: bool = False) -> dict[str, Any]:
    update = {"artifact": {"artifactId": "a1", "parts": list(parts)}, "append": append}
    return {"artifactUpdate": {"taskId": "t1", "contextId": "c1", "lastChunk": last, **update}}


@dataclass
class Request:
    """What was asked."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any

    @property
    def call(self) -> str:
        """The JSON-RPC method; "" for others."""
        return "" if isinstance(self.body, str) else self.body.get("method", "")

    @property
    def message(self) -> dict[str, Any]:
        return self.body["params"]["message"]

    @property
    def data(self) -> Any:
        return next((p["data"] for p in self.message["parts"] if "data" in p), None)

    @property
    def texts(self) -> list[str]:
        return [p["text"] for p in self.message["parts"] if "text" in p]


@dataclass
class Wire:
    """A connection to whoever asks."""

    writer: asyncio.StreamWriter
    id: Any = None

    def respond(self, code: int, body: Any = b"", **headers: str) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = {"content-type": "application/json", "content-length": str(len(content))} | {
            key.replace("_", "-"): value for key, value in headers.items()
        }
        lines = "".join(f"{key}: {value}\r\n" for key, value in head.items())
        self.writer.write(f"HTTP/1.1 {code} X\r\n{lines}connection: close\r\n\r\n".encode())
        self.writer.write(content)

    def result(self, result: Any) -> None:
        self.respond(200, {"jsonrpc": "2.0", "id": self.id, "result": result})

    def error(self, code: int, said: str) -> None:
        error = {"code": code, "message": said}
        self.respond(200, {"jsonrpc": "2.0", "id": self.id, "error": error})

    def stream(self, **headers: str) -> None:
        """Begin a stream of events."""
        given = {"content-type": "text/event-stream", "connection": "close", **headers}
        lines = "".join(f"{key.replace('_', '-')}: {each}\r\n" for key, each in given.items())
        self.writer.write(f"HTTP/1.1 200 X\r\n{lines}\r\n".encode())

    def event(self, result: Any) -> bytes:
        line = json.dumps({"jsonrpc": "2.0", "id": self.id, "result": result})
        return f"data: {line}\n\n".encode()

    async def send(self, result: Any) -> None:
        """Send one event of a stream."""
        self.writer.write(self.event(result))
        await self.writer.drain()


@dataclass
class Peer:
    """An agent that answers as it is told, and keeps what it was asked.

    Attributes:
        url: Its address.
        replies: What it does with each request to send a message; the last counts for the rest.
        card: What it does with a request for its card.
        requests: Messages it was sent.
        cards: Requests for its card.
        cancelled: Ids of tasks it was told to cancel.
    """

    url: str = ""
    replies: list[Any] = field(default_factory=list[Any])
    card: Any = None
    requests: list[Request] = field(default_factory=list[Request])
    cards: list[Request] = field(default_factory=list[Request])
    cancelled: list[str] = field(default_factory=list[str])
    open: set[asyncio.Task[Any]] = field(default_factory=set[asyncio.Task[Any]])
    told: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        here = asyncio.current_task()
        assert here is not None
        self.open.add(here)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._handle(reader, writer)
        finally:
            self.open.discard(here)
            writer.close()

    def _card(self, _: Request, wire: Wire) -> None:
        wire.respond(200, card(self.url))

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, path, _ = head[0].split(" ")
        pairs = (line.split(": ", 1) for line in head[1:] if line)
        headers = {key.lower(): value for key, value in pairs}
        content = await reader.readexactly(int(headers.get("content-length", 0)))
        body: Any = json.loads(content) if content[:1] == b"{" else content.decode()
        request, wire = Request(method, path, headers, body), Wire(writer)
        if method == "GET":
            self.cards.append(request)
            reply = self.card or self._card
        elif request.call == "CancelTask":
            self.cancelled.append(body["params"]["id"])
            self.told.set()
            wire.id = body["id"]
            reply = says(task("CANCELED")["task"])
        else:
            self.requests.append(request)
            wire.id = None if isinstance(body, str) else body.get("id")
            reply = self.replies[min(len(self.requests), len(self.replies)) - 1]
        done: Any = reply(request, wire)
        if done is not None:
            await done
        await writer.drain()


@asynccontextmanager
async def peer(*replies: Any, card: Any = None) -> AsyncGenerator[Peer]:
    """An agent on loopback that answers so."""
    made = Peer(replies=list(replies), card=card)
    server = await asyncio.start_server(made, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        for each in list(made.open):
            each.cancel()
        await asyncio.gather(*made.open)


def says(result: Any) -> Any:
    """A reply with a result."""

    def reply(_: Request, wire: Wire) -> None:
        wire.result(result)

    return reply


def streams(*results: Any) -> Any:
    """A reply with a stream of results."""

    async def reply(_: Request, wire: Wire) -> None:
        wire.stream()
        for each in results:
            await wire.send(each)

    return reply


def streaming(made: Peer) -> None:
    """Let its card say that it streams."""

    def reply(_: Request, wire: Wire) -> None:
        wire.respond(200, card(made.url, capabilities={"streaming": True}))

    made.card = reply

"""Remote agents, ours and ADK's, against a server in the same loop that answers at once."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
from google.adk.runners import InMemoryRunner
from google.genai import types

from adk_fluent import Pipeline, RemoteAgent

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from google.adk.agents.base_agent import BaseAgent

    from bench.side.worker import Task


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer requests on one connection until it is closed."""
    port = writer.get_extra_info("sockname")[1]
    while head := (await _head(reader)):
        if head.startswith("GET"):
            _answer(writer, _card(port))
            continue
        length = next(
            int(line.partition(":")[2])
            for line in head.split("\r\n")
            if line.lower().startswith("content-length:")
        )
        body = json.loads(await reader.readexactly(length))
        _answer(writer, {"jsonrpc": "2.0", "id": body["id"], "result": {"task": _TASK}})


async def _head(reader: asyncio.StreamReader) -> str:
    try:
        return (await reader.readuntil(b"\r\n\r\n")).decode()
    except (asyncio.IncompleteReadError, ConnectionError):
        return ""


def _answer(writer: asyncio.StreamWriter, body: dict[str, Any]) -> None:
    content = json.dumps(body).encode()
    head = f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
    writer.write(f"HTTP/1.1 200 OK\r\n{head}".encode() + content)


def _card(port: int) -> dict[str, Any]:
    interface = {"protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    return {
        "name": "far",
        "description": "Answers.",
        "version": "1",
        "capabilities": {"streaming": False},
        "supportedInterfaces": [{"url": f"http://127.0.0.1:{port}/", **interface}],
    }


_TASK = {
    "id": "t1",
    "contextId": "c1",
    "status": {"state": "TASK_STATE_COMPLETED"},
    "artifacts": [{"artifactId": "a1", "parts": [{"text": "done"}]}],
}


def _asked(make: Callable[[str], BaseAgent]) -> Callable[[], Coroutine[Any, Any, int]]:
    """Run an agent in a session of its own; return how many events came."""
    ready: list[InMemoryRunner] = []

    async def once() -> int:
        if not ready:
            server = await asyncio.start_server(_serve, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            agent = make(f"http://127.0.0.1:{port}")
            ready.append(InMemoryRunner(agent=agent, app_name="bench"))
        (runner,) = ready
        session = await runner.session_service.create_session(app_name="bench", user_id="u")
        message = types.Content(role="user", parts=[types.Part(text="Do it.")])
        events = runner.run_async(user_id="u", session_id=session.id, new_message=message)
        return len([event async for event in events if event.is_final_response()])

    return once


def fluent(size: int) -> Callable[[], Coroutine[Any, Any, int]]:
    """Ask by our agent."""
    return _asked(lambda url: RemoteAgent("far", endpoint=url).to_agent())


def adk(size: int) -> Callable[[], Coroutine[Any, Any, int]]:
    """Ask by ADK's, as a step of a pipeline, too."""

    def make(url: str) -> BaseAgent:
        far = RemoteA2aAgent(name="far", agent_card=f"{url}/.well-known/agent-card.json")
        return Pipeline("pipeline", far).to_agent()

    return _asked(make)


TASKS: dict[str, Task] = {"fluent": fluent, "adk": adk}

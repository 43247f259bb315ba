"""Servers of ours on loopback, and a client that says what came back."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import grpc.aio
import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.client.client import ClientCallContext
from a2a.types import (
    AgentCard,
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)

from adk_fluent.serve import A2AServer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from a2a.client import Client

BINDINGS = ("JSONRPC", "HTTP+JSON")
ALL = (*BINDINGS, "GRPC")


@asynccontextmanager
async def serving(pipeline: Any, **options: Any) -> AsyncGenerator[A2AServer]:
    """A server that listens, and is stopped at the end."""
    grpc_port = options.pop("grpc_port", None)
    server = A2AServer(pipeline, **options)
    await server.start(port=0, grpc_port=grpc_port)
    try:
        yield server
    finally:
        await server.stop(grace=0)


@dataclass
class Told:
    """What a task came to.

    Attributes:
        task: The task.
        pieces: Texts of its artifact updates, in order.
        states: The states it was told to be in.
    """

    task: Task = field(default_factory=Task)
    pieces: list[str] = field(default_factory=list[str])
    states: list[str] = field(default_factory=list[str])

    @property
    def state(self) -> str:
        return name_of(self.task.status.state)

    @property
    def said(self) -> str:
        """The words of its status."""
        return "".join(part.text for part in self.task.status.message.parts)

    @property
    def text(self) -> str:
        """The words of its artifacts."""
        return "".join(part.text for each in self.task.artifacts for part in each.parts)


def name_of(state: int) -> str:
    return TaskState.Name(state).removeprefix("TASK_STATE_").lower()


class Caller:
    """A client of the SDK, with the headers of one principal."""

    def __init__(self, client: Client, headers: dict[str, str]) -> None:
        self.client = client
        self.context = ClientCallContext(service_parameters=dict(headers))

    async def send(self, *parts: str | Part, task: str = "", context: str = "") -> Told:
        """Send a message, follow its task, and read it once more."""
        told = Told()
        async for each in self.events(*parts, task=task, context=context):
            kind = each.WhichOneof("payload")
            update = getattr(each, kind)
            if kind == "artifact_update":
                told.pieces.append("".join(part.text for part in update.artifact.parts))
            else:
                told.states.append(name_of(update.status.state))
            id = update.id if kind == "task" else update.task_id
            told.task.id = id
        told.task = await self.get(told.task.id)
        return told

    def events(self, *parts: str | Part, task: str = "", context: str = "") -> AsyncIterator[Any]:
        message = Message(
            message_id=str(uuid4()),
            role=Role.ROLE_USER,
            parts=[Part(text=each) if isinstance(each, str) else each for each in parts],
            task_id=task,
            context_id=context,
        )
        return self.client.send_message(SendMessageRequest(message=message), context=self.context)

    async def get(self, task: str) -> Task:
        return await self.client.get_task(GetTaskRequest(id=task), context=self.context)

    async def list(self) -> list[Task]:
        found = await self.client.list_tasks(ListTasksRequest(), context=self.context)
        return list(found.tasks)

    async def cancel(self, task: str) -> Task:
        return await self.client.cancel_task(CancelTaskRequest(id=task), context=self.context)

    def subscribe(self, task: str) -> AsyncIterator[Any]:
        request = SubscribeToTaskRequest(id=task)
        return self.client.subscribe(request, context=self.context)


@asynccontextmanager
async def calling(
    server: A2AServer,
    binding: str = "JSONRPC",
    *,
    url: str = "",
    streaming: bool = True,
    **headers: str,
) -> AsyncGenerator[Caller]:
    """A client of the server's card over one transport."""
    async with httpx.AsyncClient(timeout=120) as http:
        base = url or server.url
        response = await http.get(
            f"{base}/.well-known/agent-card.json", headers={"A2A-Version": "1.0"}
        )
        from google.protobuf.json_format import ParseDict

        card = ParseDict(response.json(), AgentCard())  # it has no field that 1.0 has not
        config = ClientConfig(
            httpx_client=http,
            supported_protocol_bindings=[binding],
            streaming=streaming,
            grpc_channel_factory=lambda url: grpc.aio.insecure_channel(url.partition("//")[2]),
        )
        caller = Caller(ClientFactory(config).create(card), headers)
        try:
            yield caller
        finally:
            if binding == "GRPC":
                await caller.client.close()


async def post(url: str, body: Any, **headers: str) -> httpx.Response:
    """Send bytes, or JSON, as they are."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {"content-type": "application/json", "a2a-version": "1.0"}
    given |= {key.replace("_", "-"): value for key, value in headers.items()}
    async with httpx.AsyncClient(timeout=120) as http:
        return await http.post(url, content=content, headers=given)


def rpc(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": text}], **more}

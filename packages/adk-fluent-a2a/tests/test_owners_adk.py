"""Whose tasks are whose: two principals, all operations, all transports."""

from __future__ import annotations

import asyncio
import json
import random
import re
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import grpc.aio
import httpx
import pytest
from a2a.types import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    a2a_pb2_grpc,
)
from google.protobuf.json_format import MessageToDict, ParseDict
from serve_kit import said

from adk_fluent import Agent, gate
from adk_fluent.serve import A2AServer, BearerAuth, Limits, PushPolicy
from adk_fluent.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from adk_fluent.builders import State
    from adk_fluent.testing import Asked

pytestmark = pytest.mark.adk

WHO = ("ann", "bob")
TRANSPORTS = ("rpc", "rest", "rpc 0.3", "grpc")
PUSH = "ListTaskPushNotificationConfigs"
SET_PUSH = "CreateTaskPushNotificationConfig"
DROP_PUSH = "DeleteTaskPushNotificationConfig"
METHODS = (
    *["SendMessage"] * 6,
    *("GetTask", "CancelTask", "SubscribeToTask", "ListTasks"),
    *(PUSH, SET_PUSH, SET_PUSH, DROP_PUSH),
)
#: What the calls of gRPC take.
TAKES = {
    "SendMessage": SendMessageRequest,
    "GetTask": GetTaskRequest,
    "CancelTask": CancelTaskRequest,
    "SubscribeToTask": SubscribeToTaskRequest,
    "ListTasks": ListTasksRequest,
    PUSH: ListTaskPushNotificationConfigsRequest,
    SET_PUSH: TaskPushNotificationConfig,
    DROP_PUSH: DeleteTaskPushNotificationConfigRequest,
}


def told(asked: Asked) -> str:
    """All that the model was ever shown, so that nothing of another session stays hidden."""
    return " | ".join(turn.text for turn in asked.turns)


def wants(state: State) -> bool:
    return bool(state.get("ask"))


@dataclass
class Known:
    """A task as its owner saw it last.

    Attributes:
        hooks: Its push configs.
    """

    owner: str
    context: str
    state: str = ""
    hooks: set[str] = field(default_factory=set[str])


@dataclass
class World:
    """A server, and what each principal has there.

    Attributes:
        http: Its clients.
        channel: The same over gRPC.
        hooks: Where notifications go, by principal.
        tasks: The tasks of this sequence, by id.
        owners: Whose each task is, those of earlier sequences too.
        random: What decides.
        seed: Which sequence this is.
        sent: What each principal sent, and may send again.
    """

    http: httpx.AsyncClient
    channel: grpc.aio.Channel
    hooks: dict[str, str]
    owners: dict[str, str]
    tasks: dict[str, Known] = field(default_factory=dict[str, Known])
    random: random.Random = field(default_factory=random.Random)
    seed: int = 0
    sent: dict[str, list[Any]] = field(default_factory=lambda: {who: [] for who in WHO})

    async def call(self, who: str, kind: str, method: str, params: dict[str, Any]) -> Any:
        """Do something; gives what came of it, or None if it was refused as not there."""
        headers = {"authorization": f"Bearer {who}-token", "a2a-version": "1.0"}
        asked = json.dumps(params)
        if kind == "grpc":
            text, result = await self._grpc(method, params, headers)
        else:
            if kind == "rest":
                response = await self._rest(method, params, headers)
            else:
                if kind == "rpc 0.3":
                    method, params = older(method, params)
                    headers.pop("a2a-version")
                body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
                response = await self.http.post("/", json=body, headers=headers)
            text, result = response.text, _result(response)
        other = next(each for each in WHO if each != who)
        for secret in (f"words-of-{other}", f"{other}-token", self.hooks[other]):
            assert secret in asked or secret not in text
        mine = {id for id, task in self.tasks.items() if task.owner == who}
        for id in self.tasks.keys() - mine:
            assert id in asked or id not in text
        return result

    async def _grpc(self, method: str, params: dict[str, Any], headers: Any) -> tuple[str, Any]:
        stub: Any = a2a_pb2_grpc.A2AServiceStub(self.channel)
        call = getattr(stub, method)(
            ParseDict(params, TAKES[method]()), metadata=list(headers.items())
        )
        try:
            answer = await call if method != "SubscribeToTask" else await anext(aiter(call))
        except grpc.aio.AioRpcError as error:
            refused = error
        else:
            data = MessageToDict(answer)
            return json.dumps(data), data
        assert refused.code() is not grpc.StatusCode.INTERNAL, refused.details()
        return str(refused.details()), None

    async def _rest(self, method: str, params: dict[str, Any], headers: Any) -> httpx.Response:
        task = f"/tasks/{params.get('taskId') or params.get('id')}"
        hooks = f"{task}/pushNotificationConfigs"
        verb, place, body = {
            "SendMessage": ("POST", "/message:send", params),
            "GetTask": ("GET", task, None),
            "ListTasks": ("GET", "/tasks", None),
            "CancelTask": ("POST", f"{task}:cancel", {}),
            "SubscribeToTask": ("GET", f"{task}:subscribe", None),
            PUSH: ("GET", hooks, None),
            SET_PUSH: ("POST", hooks, {key: params.get(key) for key in ("id", "url")}),
            DROP_PUSH: ("DELETE", f"{hooks}/{params.get('id')}", None),
        }[method]
        query = params if method == "ListTasks" else None
        return await self.http.request(verb, place, json=body, params=query, headers=headers)


def older(method: str, params: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """A call in the words of protocol 0.3."""
    if method != "SendMessage":
        of_push = "tasks/pushNotificationConfig"
        names = {
            "GetTask": "tasks/get",
            "CancelTask": "tasks/cancel",
            "SubscribeToTask": "tasks/resubscribe",
            PUSH: f"{of_push}/list",
            SET_PUSH: f"{of_push}/set",
            DROP_PUSH: f"{of_push}/delete",
        }
        task = params.get("taskId")
        if method == PUSH:
            params = {"id": task}
        if method == SET_PUSH:
            config = {"id": params["id"], "url": params["url"]}
            params = {"taskId": task, "pushNotificationConfig": config}
        if method == DROP_PUSH:
            params = {"id": task, "pushNotificationConfigId": params["id"]}
        return names[method], params
    message = dict(params["message"])
    parts = [
        {"kind": "data", "data": each["data"]} if "data" in each else {"kind": "text", **each}
        for each in message["parts"]
    ]
    return "message/send", {
        "message": {**message, "kind": "message", "role": "user", "parts": parts}
    }


def _result(response: httpx.Response) -> Any:
    if response.headers["content-type"].startswith("text/event-stream"):
        first = response.text.split("data: ", 1)[1].splitlines()[0]
        found = json.loads(first)
    else:
        found = response.json()
    error = found.get("error")
    if error is None:
        return found.get("result", found)
    assert "Traceback" not in response.text
    return None


def _state(task: dict[str, Any]) -> str:
    state = task["status"]["state"]
    return state.removeprefix("TASK_STATE_").lower().replace("_", "-")


async def step(world: World) -> None:
    """One random thing that one of the two does."""
    who, kind = world.random.choice(WHO), world.random.choice(TRANSPORTS)
    ids = list(world.tasks)
    id = world.random.choice(ids) if ids else "nothing"
    known = world.tasks.get(id, Known("nobody", "nowhere"))
    method = world.random.choice(METHODS)
    if method == "SendMessage":
        await send(world, who, kind, id)
    elif method == "ListTasks":
        params = world.random.choice(({}, {"contextId": known.context}))
        result = await world.call(who, "rest" if kind == "rpc 0.3" else kind, method, params)
        found = {each["id"] for each in result.get("tasks", ())}
        assert {world.owners[each] for each in found} <= {who}
    elif method in {PUSH, SET_PUSH, DROP_PUSH}:
        await hook(world, who, kind, method, id)
    elif method != "SubscribeToTask" or known.owner != who:  # one that waits is watched for ever
        result = await world.call(who, kind, method, {"id": id})
        assert known.owner == who or result is None
        if result is not None and method == "CancelTask":
            known.state = _state(result)


async def send(world: World, who: str, kind: str, id: str) -> None:
    """Send a message: to nothing, to a context or to a task."""
    known = world.tasks.get(id, Known("nobody", "nowhere"))
    ways = ("new", "context", "context", "task") if world.tasks else ("new",)
    to = world.random.choice(ways)
    where = {"new": {}, "context": {"contextId": known.context}, "task": {"taskId": id}}[to]
    sent = world.sent[who]
    number = f"{world.seed}.{len(sent)}"
    message: dict[str, Any] = said(f"words-of-{who} {number}", **where) | {"messageId": number}
    if to == "task":
        message["parts"] = [{"text": "yes"}]
    elif world.random.random() < 0.4:
        message["parts"].append({"data": {"ask": True}})
    if to != "task":
        if sent and world.random.random() < 0.2:
            message = world.random.choice(sent)
        sent.append(message)
    result = await world.call(who, kind, "SendMessage", {"message": message})
    task = result and (result.get("task") or result)
    if to == "task" and known.owner != who:
        assert result is None
    elif task:
        mine = world.tasks.setdefault(task["id"], Known(who, task["contextId"]))
        assert mine.owner == who
        mine.state = _state(task)
        world.owners[task["id"]] = who


async def hook(world: World, who: str, kind: str, method: str, id: str) -> None:
    """Set, drop or list where a task is told about."""
    known = world.tasks.get(id, Known("nobody", "nowhere"))
    params = {"taskId": id}
    if method != PUSH:
        params["id"] = world.random.choice(("h1", "h2"))
    if method == SET_PUSH:
        params["url"] = world.hooks[who]
    result = await world.call(who, kind, method, params)
    if known.owner != who:
        assert result is None
    elif method == SET_PUSH:
        assert result is not None
        known.hooks.add(params["id"])
    elif method == DROP_PUSH:
        known.hooks.discard(params["id"])
    else:
        listed = cast(
            "list[Any]", result if isinstance(result, list) else result.get("configs", [])
        )
        ids = {each.get("pushNotificationConfig", each)["id"] for each in listed}
        assert ids == known.hooks


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Draw 20 sequences, or with ``--full`` 10 000, each hundred at a server of its own."""
    full = metafunc.config.option.full
    seeds = [range(at, at + 100) for at in range(0, 10_000, 100)] if full else [range(20)]
    metafunc.parametrize("seeds", seeds, ids=str)


@asynccontextmanager
async def receiving() -> AsyncGenerator[tuple[str, list[tuple[str, str]]]]:
    """A receiver of notifications: its address, and the path and body of each that came."""
    came: list[tuple[str, str]] = []

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.lower().partition("content-length: ")[2].partition("\r\n")[0])
        came.append((head.split()[1], (await reader.readexactly(length)).decode()))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", came
    server.close()


async def test_nobody_reaches_what_is_another_s(seeds: range) -> None:
    echo = Agent("echo", ScriptedModel(default=told))
    server = A2AServer(
        gate(wants, message="Go on?", name="ok") >> echo,
        auth=BearerAuth({f"{who}-token": who for who in WHO}),
        limits=Limits(requests_per_second=1e6, burst=10**6),
        inputs=["ask"],
        push=PushPolicy(allow_private=True),
    )
    await server.start(port=0, grpc_port=0)
    address = server.grpc_url.partition("//")[2]
    async with (
        receiving() as (hook, came),
        httpx.AsyncClient(base_url=server.url) as http,
        grpc.aio.insecure_channel(address) as channel,
    ):
        owners: dict[str, str] = {}
        hooks = {who: f"{hook}/{who}-hook" for who in WHO}
        for seed in seeds:
            world = World(http, channel, hooks, owners, random=random.Random(seed), seed=seed)
            for _ in range(10):
                await step(world)
            for id, known in world.tasks.items():
                task = await world.call(known.owner, "rpc", "GetTask", {"id": id})
                assert _state(task) == known.state
                if known.state == "input-required":  # who wants to know of it is told
                    await world.call(known.owner, "rpc", "CancelTask", {"id": id})
        await server.stop(grace=0)
    assert came
    for path, body in came:
        (task,) = set(re.findall(r'"taskId": ?"([^"]+)"', body))
        assert path == f"/{owners[task]}-hook"

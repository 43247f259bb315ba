"""Whose tasks are whose: two principals, all operations, all transports."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from serve_kit import said

from adk_fluent import Agent, gate
from adk_fluent.serve import A2AServer, BearerAuth, Limits
from adk_fluent.testing import ScriptedModel

if TYPE_CHECKING:
    from adk_fluent.builders import State
    from adk_fluent.testing import Asked

pytestmark = pytest.mark.adk

WHO = ("ann", "bob")
TRANSPORTS = ("rpc", "rest", "rpc 0.3")
PUSH = "ListTaskPushNotificationConfigs"
METHODS = (*["SendMessage"] * 6, "GetTask", "CancelTask", "SubscribeToTask", "ListTasks", PUSH)


def told(asked: Asked) -> str:
    """All that the model was ever shown, so that nothing of another session stays hidden."""
    return " | ".join(turn.text for turn in asked.turns)


def wants(state: State) -> bool:
    return bool(state.get("ask"))


@dataclass
class Known:
    """A task as its owner saw it last."""

    owner: str
    context: str
    state: str = ""


@dataclass
class World:
    """A server, and what each principal has there.

    Attributes:
        http: Its clients.
        tasks: The tasks of this sequence, by id.
        owners: Whose each task is, those of earlier sequences too.
        random: What decides.
        words: How many messages were sent.
    """

    http: httpx.AsyncClient
    owners: dict[str, str]
    tasks: dict[str, Known] = field(default_factory=dict[str, Known])
    random: random.Random = field(default_factory=random.Random)
    words: int = 0

    async def call(self, who: str, kind: str, method: str, params: dict[str, Any]) -> Any:
        """Do something; gives what came of it, or None if it was refused as not there."""
        headers = {"authorization": f"Bearer {who}-token", "a2a-version": "1.0"}
        if kind == "rest":
            response = await self._rest(method, params, headers)
        else:
            if kind == "rpc 0.3":
                method, params = older(method, params)
                headers.pop("a2a-version")
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            response = await self.http.post("/", json=body, headers=headers)
        other = next(each for each in WHO if each != who)
        assert f"words-of-{other}" not in response.text
        assert f"{other}-token" not in response.text
        mine = {id for id, task in self.tasks.items() if task.owner == who}
        asked = json.dumps(params)
        for id in self.tasks.keys() - mine:
            assert id in asked or id not in response.text
        return _result(response)

    async def _rest(self, method: str, params: dict[str, Any], headers: Any) -> httpx.Response:
        id = params.get("id") or params.get("taskId")
        match method:
            case "SendMessage":
                return await self.http.post("/message:send", json=params, headers=headers)
            case "GetTask":
                return await self.http.get(f"/tasks/{id}", headers=headers)
            case "ListTasks":
                query = {"contextId": params["contextId"]} if params else {}
                return await self.http.get("/tasks", params=query, headers=headers)
            case "CancelTask":
                return await self.http.post(f"/tasks/{id}:cancel", json={}, headers=headers)
            case "SubscribeToTask":
                return await self.http.get(f"/tasks/{id}:subscribe", headers=headers)
            case _:
                place = f"/tasks/{id}/pushNotificationConfigs"
                return await self.http.get(place, headers=headers)


def older(method: str, params: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """A call in the words of protocol 0.3."""
    if method != "SendMessage":
        name = {"GetTask": "tasks/get", "CancelTask": "tasks/cancel"}.get(method)
        name = name or {"SubscribeToTask": "tasks/resubscribe"}.get(method)
        return name or "tasks/pushNotificationConfig/list", params
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
    own = known.owner == who
    method = world.random.choice(METHODS)
    params: dict[str, Any] = {"id": id}
    if method == "SubscribeToTask" and own:
        return  # a task that waits is watched for ever
    if method == "ListTasks":
        kind = "rest" if kind == "rpc 0.3" else kind
        params = world.random.choice(({}, {"contextId": known.context}))
    if method == PUSH:
        params = {"id": id} if kind == "rpc 0.3" else {"taskId": id}
    if method == "SendMessage":
        world.words += 1
        to = world.random.choice(("new", "context", "context", "task")) if ids else "new"
        where = {"new": {}, "context": {"contextId": known.context}, "task": {"taskId": id}}[to]
        message = said(f"words-of-{who} {world.words}", **where)
        if to == "task":
            message["parts"] = [{"text": "yes"}]
        elif world.random.random() < 0.25:
            message["parts"].append({"data": {"ask": True}})
        result = await world.call(who, kind, method, {"message": message})
        task = result and (result.get("task") or result)
        if to == "task" and not own:
            assert result is None
        elif task:
            assert task["id"] not in world.tasks or world.tasks[task["id"]].owner == who
            world.tasks[task["id"]] = Known(who, task["contextId"], _state(task))
            world.owners[task["id"]] = who
        return
    result = await world.call(who, kind, method, params)
    if method == "ListTasks":
        found = {each["id"] for each in result.get("tasks", ())}
        assert {world.owners[each] for each in found} <= {who}
    elif not own or method == PUSH:
        assert result is None
    elif result is not None and method == "CancelTask":
        known.state = _state(result)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Draw 20 sequences, or with ``--full`` 10 000, each hundred at a server of its own."""
    full = metafunc.config.option.full
    seeds = [range(at, at + 100) for at in range(0, 10_000, 100)] if full else [range(20)]
    metafunc.parametrize("seeds", seeds, ids=str)


async def test_nobody_reaches_what_is_another_s(seeds: range) -> None:
    echo = Agent("echo", ScriptedModel(default=told))
    server = A2AServer(
        gate(wants, message="Go on?", name="ok") >> echo,
        card=echo.to_agent_card(endpoint="http://agents.test"),
        auth=BearerAuth({f"{who}-token": who for who in WHO}),
        limits=Limits(requests_per_second=1e6, burst=10**6),
        inputs=["ask"],
    )
    transport = httpx.ASGITransport(server.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://agents.test") as http:
        owners: dict[str, str] = {}
        for seed in seeds:
            world = World(http, owners, random=random.Random(seed))
            for _ in range(8):
                await step(world)
            for id, known in world.tasks.items():
                task = await world.call(known.owner, "rpc", "GetTask", {"id": id})
                assert _state(task) == known.state
    await server.stop(grace=0)

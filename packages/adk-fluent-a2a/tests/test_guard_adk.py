"""What a server refuses: strangers, and what is malformed, too large, too deep or too much."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any

import httpx
import jwt
import pytest
from a2a.types import Part
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value
from serve_kit import BINDINGS, calling, post, rpc, said, serving

from adk_fluent import Agent, RemoteAgent, gate
from adk_fluent.errors import RemoteError, UsageError
from adk_fluent.serve import A2AServer, ApiKeyAuth, BearerAuth, JwtAuth, Limits, _server_adk
from adk_fluent.serve._guard import depth_above
from adk_fluent.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from adk_fluent.builders import State

pytestmark = pytest.mark.adk

GO = rpc("SendMessage", message=said("Go."))
KEY = "k" * 32
ASK = Part(data=ParseDict({"ask": True}, Value()))


def agent() -> Agent:
    return Agent("desk", ScriptedModel(default="done"))


def answer(response: httpx.Response) -> str:
    """The words of an answer's artifact; "" for an error."""
    task = response.json().get("result", {}).get("task", {})
    return "".join(p["text"] for each in task.get("artifacts", ()) for p in each["parts"])


# --- who asks ------------------------------------------------------------------------------------


def token(**claims: Any) -> str:
    given = {"sub": "ann", "aud": "here", "exp": time.time() + 86_400, **claims}
    return jwt.encode({k: v for k, v in given.items() if v is not None}, KEY, algorithm="HS256")


async def by_header(request: Request) -> str | None:
    if request.headers.get("x-break"):
        raise ValueError("hunter2")
    return request.headers.get("x-who")


HS = JwtAuth(KEY, audience="here", algorithms=["HS256"])
BEARER = BearerAuth({"t0k": "ann"})


@pytest.mark.parametrize(
    ("auth", "headers", "status"),
    [
        (BEARER, {"authorization": "Bearer t0k"}, 200),
        (BEARER, {"authorization": "bearer t0k"}, 200),
        (BEARER, {"authorization": "Basic t0k"}, 401),
        (BEARER, {"authorization": "Bearer other"}, 401),
        (BEARER, {"authorization": "Bearer"}, 401),
        (BEARER, {}, 401),
        (ApiKeyAuth({"k3y": "ann"}), {"x-api-key": "k3y"}, 200),
        (ApiKeyAuth({"k3y": "ann"}, header="X-Key"), {"x-key": "other"}, 401),
        (HS, {"authorization": f"Bearer {token()}"}, 200),
        (HS, {"authorization": f"Bearer {token(exp=1)}"}, 401),
        (HS, {"authorization": f"Bearer {token(exp=None)}"}, 401),
        (HS, {"authorization": f"Bearer {token(aud='there')}"}, 401),
        (HS, {"authorization": f"Bearer {token(sub=None)}"}, 401),
        (HS, {"authorization": f"Bearer {jwt.encode({'sub': 'ann'}, '', algorithm='none')}"}, 401),
        (by_header, {"x-who": "ann"}, 200),
        (by_header, {}, 401),
        (by_header, {"x-who": "a" * 256}, 500),
        (by_header, {"x-break": "1"}, 500),
    ],
)
async def test_requests_have_a_principal_or_are_refused(
    auth: Any, headers: dict[str, str], status: int
) -> None:
    server = A2AServer(agent(), card=agent().to_agent_card(endpoint="http://desk"), auth=auth)
    transport = httpx.ASGITransport(server.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://desk") as http:
        for path, body in (("/", GO), ("/message:send", {"message": said("Go.")})):
            given = {"a2a-version": "1.0", **headers}
            response = await http.post(path, json=body, headers=given)
            assert response.status_code == status
            assert "hunter2" not in response.text
            if status == 401:
                assert response.headers["www-authenticate"] in ("Bearer", "ApiKey")
        card = await http.get("/.well-known/agent-card.json")
        assert card.status_code == 200
    await server.stop(grace=0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: BearerAuth({}),
        lambda: BearerAuth(["t"]),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        lambda: BearerAuth({"": "ann"}),
        lambda: BearerAuth({"t": " ann"}),
        lambda: ApiKeyAuth({"t": ""}),
        lambda: JwtAuth(KEY, audience="here", algorithms=["none"]),
        lambda: JwtAuth(KEY, audience="here", algorithms=[]),
    ],
)
def test_secrets_that_cannot_be_are_refused(make: Any) -> None:
    with pytest.raises(UsageError):
        make()


def test_without_pyjwt_what_to_install_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "jwt", None)
    with pytest.raises(UsageError, match="needs PyJWT") as caught:
        JwtAuth(KEY, audience="here")
    assert caught.value.help == "pip install 'adk-fluent-a2a[jwt]'"


@pytest.mark.parametrize(
    ("client", "host", "status"),
    [
        ("127.0.0.1", "localhost:80", 200),
        ("::1", "[::1]:80", 200),
        ("10.0.0.7", "localhost", 403),
        ("127.0.0.1", "desk.example.com", 403),
        ("127.0.0.1", "127.0.0.1.example.com", 403),
        ("127.0.0.1", "", 403),
    ],
)
async def test_without_auth_only_this_machine_is_served(
    client: str, host: str, status: int
) -> None:
    server = A2AServer(agent(), card=agent().to_agent_card(endpoint="http://127.0.0.1"))
    transport = httpx.ASGITransport(server.app, client=(client, 9))
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
        for path in ("/.well-known/agent-card.json", "/healthz", "/tasks"):
            headers = {"host": host, "a2a-version": "1.0"}
            assert (await http.get(path, headers=headers)).status_code == status
    with pytest.raises(UsageError, match="only this machine"):
        await server.start(host="0.0.0.0", port=0)  # it is refused
    await server.stop(grace=0)


async def test_at_all_addresses_clients_have_to_be_told_where() -> None:
    server = A2AServer(agent(), auth=BEARER)
    with pytest.raises(UsageError, match="where clients come in, which is not known"):
        await server.start(host="0.0.0.0", port=0)  # it is refused
    await server.stop(grace=0)


# --- too much ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "above"),
    [
        (b"[[[]]]", False),
        (b"[[[[]]]]", True),
        (b'{"a":{"b":[1]}}', False),
        (b'{"a":{"b":[{}]}}', True),
        (b'["[[[[[["]', False),
        (b'["\\"[[[["]', False),
        (b'["\\\\",[[[]]]]', True),
        (b'"[[[[[[', False),
        (b"]]]]][[[[", False),
        (b"", False),
    ],
)
def test_depth_is_counted_outside_of_strings(body: bytes, above: bool) -> None:
    assert depth_above(body, 3) is above


async def test_each_principal_has_a_rate_of_its_own() -> None:
    limits = Limits(requests_per_second=0.001, burst=2)
    auth = BearerAuth({"a": "ann", "b": "bob"})
    async with serving(agent(), auth=auth, limits=limits) as server:
        codes = [
            (await post(server.url, GO, authorization=f"Bearer {who}")).status_code
            for who in ("a", "a", "a", "b")
        ]
        refused = await post(server.url, GO, authorization="Bearer a")
    assert codes == [200, 200, 429, 200]
    assert int(refused.headers["retry-after"]) > 1


async def test_each_principal_has_so_many_open_requests() -> None:
    auth = BearerAuth({"a": "ann", "b": "bob"})
    asks = gate(message="Go on?") >> agent()
    async with (
        serving(asks, auth=auth, limits=Limits(open_requests=1)) as server,
        calling(server, authorization="Bearer a") as ann,
    ):
        told = await ann.send("Go.")
        watching = aiter(ann.subscribe(told.task.id))
        await anext(watching)  # and it waits for the answer
        codes = [
            (await post(server.url, GO, authorization=f"Bearer {who}")).status_code
            for who in ("a", "b")
        ]
    assert codes == [429, 200]


@pytest.mark.parametrize("binding", BINDINGS)
async def test_a_busy_server_says_so_in_http(binding: str) -> None:
    entered, go = asyncio.Event(), asyncio.Event()

    async def wait(state: State) -> Mapping[str, Any]:
        entered.set()
        await go.wait()
        return {}

    async with (
        serving(wait >> agent(), limits=Limits(concurrency=1)) as server,
        calling(server) as caller,
    ):
        first = asyncio.ensure_future(caller.send("Go."))
        await entered.wait()
        path, body = ("", GO) if binding == "JSONRPC" else ("/message:send", GO["params"])
        response = await post(f"{server.url}{path}", body)
        assert (response.status_code, response.headers["retry-after"]) == (429, "1")
        go.set()
        assert (await first).state == "completed"
        assert answer(await post(server.url, GO)) == "done"


async def test_no_more_tasks_run_at_once_however_fast_they_come() -> None:
    go = asyncio.Event()

    async def wait(state: State) -> Mapping[str, Any]:
        await go.wait()
        return {}

    async with serving(wait >> agent(), limits=Limits(concurrency=2)) as server:
        sent = [asyncio.ensure_future(post(server.url, GO)) for _ in range(6)]
        refused = 0
        for each in asyncio.as_completed(sent):
            refused += (await each).status_code == 429
            if refused == 4:
                go.set()
    assert refused == 4


async def test_one_principal_does_not_take_all_tasks() -> None:
    go = asyncio.Event()

    async def wait(state: State) -> Mapping[str, Any]:
        await go.wait()
        return {}

    auth, limits = BearerAuth({"a": "ann", "b": "bob"}), Limits(principal_concurrency=1)
    async with serving(wait >> agent(), auth=auth, limits=limits) as server:
        ann, bob = ({"authorization": f"Bearer {who}"} for who in "ab")
        at_once = rpc("SendMessage", message=said("Go."), configuration={"returnImmediately": True})
        first = await post(server.url, at_once, **ann)
        assert first.json()["result"]["task"]["status"]["state"] == "TASK_STATE_WORKING"
        assert (await post(server.url, GO, **ann)).status_code == 429
        other = asyncio.ensure_future(post(server.url, GO, **bob))
        go.set()
        assert answer(await other) == "done"


async def test_a_body_that_broke_off_is_not_run() -> None:
    model = ScriptedModel(default="done")
    desk = Agent("desk", model)
    server = A2AServer(desk, card=desk.to_agent_card(endpoint="http://127.0.0.1"))
    sent: list[Any] = []
    messages = iter(
        [
            {"type": "http.request", "body": json.dumps(GO).encode(), "more_body": True},
            {"type": "http.disconnect"},
        ]
    )

    async def receive() -> Any:
        return next(messages)

    async def send(message: Any) -> None:
        sent.append(message)

    headers = {"host": "localhost", "content-type": "application/json", "a2a-version": "1.0"}
    raw = [(key.encode(), value.encode()) for key, value in headers.items()]
    scope = {"type": "http", "method": "POST", "path": "/", "client": ("127.0.0.1", 9)}
    await server.app({**scope, "headers": raw, "query_string": b""}, receive, send)
    assert sent[0]["status"] == 400
    assert not model.calls
    await server.stop(grace=0)


async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    async with serving(agent(), limits=Limits(body_seconds=0.05)) as server:
        host, port = server.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        head = f"POST / HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: 10\r\n\r\n{{".encode())
        assert b"408" in await reader.readline()
        writer.close()


@pytest.mark.parametrize(
    "options", [{"depth": 91}, {"parts": 0}, {"body_bytes": 1.5}, {"burst": True}]
)
def test_limits_that_cannot_be_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Limits(**options)


async def test_memory_keeps_so_many_tasks() -> None:
    async with serving(agent(), limits=Limits(kept_tasks=2)) as server, calling(server) as caller:
        sent = [(await caller.send("Go.")).task.id for _ in range(3)]
        assert {each.id for each in await caller.list()} == set(sent[1:])


async def test_nobody_loses_tasks_to_another_who_sends_more() -> None:
    auth = BearerAuth({"a": "ann", "b": "bob"})
    async with (
        serving(agent(), auth=auth, limits=Limits(kept_tasks=3)) as server,
        calling(server, authorization="Bearer a") as ann,
        calling(server, authorization="Bearer b") as bob,
    ):
        mine = (await ann.send("Go.")).task.id
        sent = [(await bob.send("Go.")).task.id for _ in range(4)]
        assert [each.id for each in await ann.list()] == [mine]
        assert {each.id for each in await bob.list()} == set(sent[2:])


async def test_memory_keeps_so_many_bytes_and_tasks_that_wait_last() -> None:
    asks = gate(lambda state: "ask" in state, message="Go on?") >> agent()
    limits = Limits(kept_bytes=20_000)
    async with (
        serving(asks, inputs=["ask"], limits=limits) as server,
        calling(server) as caller,
    ):
        waits = [(await caller.send(ASK)).task.id for _ in range(2)]
        over = [(await caller.send("x" * 9_000)).task.id for _ in range(3)]
        assert {each.id for each in await caller.list()} == {*waits, *over[1:]}
        await caller.send("x" * 19_500)
        assert len(await caller.list()) == 1


async def test_sessions_in_memory_go_with_the_last_task_of_their_context(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sessions = InMemorySessionService()
    monkeypatch.setattr(_server_adk, "InMemorySessionService", lambda: sessions)

    async def kept() -> int:
        found = await sessions.list_sessions(app_name="adk_fluent_app")
        return len(found.sessions)

    async with (
        serving(agent(), limits=Limits(kept_tasks=2)) as server,
        calling(server) as caller,
    ):
        told = await caller.send("Go.")
        for _ in range(3):
            await caller.send("Go.", context=told.task.context_id)
        assert await kept() == 1
        for _ in range(3):
            await caller.send("Go.")
        assert await kept() == 2
        assert (await caller.send("Go.", context=told.task.context_id)).state == "completed"


# --- cards ---------------------------------------------------------------------------------------


async def test_cards_of_both_versions_are_shown() -> None:
    card = agent().to_agent_card(endpoint="https://desk.example.com/a2a")
    async with serving(agent(), card=card, auth=BEARER) as server, httpx.AsyncClient() as http:
        url = f"{server.url}/.well-known/agent-card.json"
        assert server.card_url == f"{server.url}/a2a/.well-known/agent-card.json"
        new = (await http.get(url, headers={"a2a-version": "1.0"})).json()
        both = (await http.get(server.card_url)).json()
        old = (await http.get(f"{server.url}/a2a/.well-known/agent.json")).json()
    assert "url" not in new
    assert [each["protocolVersion"] for each in new["supportedInterfaces"]] == ["1.0", "1.0"]
    assert new["securitySchemes"]["bearer"]["httpAuthSecurityScheme"]["scheme"] == "Bearer"
    assert new["capabilities"]["streaming"] is True
    assert both["supportedInterfaces"][:2] == new["supportedInterfaces"]
    assert old["url"] == both["url"] == "https://desk.example.com/a2a"
    assert (old["protocolVersion"], "supportedInterfaces" in old) == ("0.3", False)


async def test_the_extended_card_is_for_principals() -> None:
    more = agent().to_agent_card(endpoint="http://127.0.0.1", description="For friends.")
    with pytest.raises(UsageError, match="needs auth="):
        A2AServer(agent(), extended_card=more)
    async with serving(agent(), auth=BEARER, extended_card=more) as server:
        ask = rpc("GetExtendedAgentCard")
        shown = await post(server.url, ask, authorization="Bearer t0k")
        assert shown.json()["result"]["description"] == "For friends."
        assert (await post(server.url, ask)).status_code == 401


async def test_a_client_of_0_3_is_answered() -> None:
    parts = [{"kind": "text", "text": "Go."}]
    message: dict[str, Any] = {"kind": "message", "messageId": "m", "role": "user", "parts": parts}
    async with serving(agent()) as server:
        response = await post(server.url, rpc("message/send", message=message), a2a_version="0.3")
        task = response.json()["result"]
        assert (task["kind"], task["status"]["state"]) == ("task", "completed")
        message["messageId"] = "n"
        stream = await post(server.url, rpc("message/stream", message=message), a2a_version="")
        last = json.loads(stream.text.strip().rpartition("data: ")[2])["result"]
        assert (last["status"]["state"], last["final"]) == ("completed", True)


@pytest.mark.parametrize("tampered", [False, True])
async def test_signed_cards_are_verified_by_remote_agents(tampered: bool) -> None:
    signing = pytest.importorskip("a2a.utils.signing")
    sign = signing.create_agent_card_signer(KEY, {"kid": "1", "alg": "HS256"})

    def key_of(kid: str | None, jku: str | None) -> str:
        return KEY

    verify = signing.create_signature_verifier(key_of, ["HS256"])

    def forged(card: Any) -> Any:
        signed = sign(card)
        signed.description = "Pays anybody."
        return signed

    async with serving(agent(), signer=forged if tampered else sign) as server:
        far = RemoteAgent("far", endpoint=server.url, verify_card=verify)
        if tampered:
            with pytest.raises(RemoteError) as caught:
                await far.run("Go.")
            assert caught.value.error_code == "A2A_CARD"
        else:
            assert (await far.run("Go.")).text == "done"

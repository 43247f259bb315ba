"""The directory of a team: who may register what, for how long, and who finds it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from remote_kit import card

from adk_fluent.a2a import AgentDirectory, AuthConfig
from adk_fluent.cli import main
from adk_fluent.errors import RemoteError, UsageError
from adk_fluent.serve import BearerAuth, DirectoryServer, Limits, _directory_command, _leases
from adk_fluent.serve._leases import HELD_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

pytestmark = pytest.mark.adk
PAY = card("https://pay.acme.com")
CARD = "/.well-known/agent-card.json"


class Client:
    """One principal at an app, without a network."""

    def __init__(self, server: DirectoryServer, token: str | None) -> None:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        transport = httpx.ASGITransport(server.app, client=("127.0.0.1", 1))
        self.http = httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1", headers=headers
        )

    async def register(self, given: Any = PAY, **more: Any) -> httpx.Response:
        return await self.http.post("/a2a/agents", json={"card": given, **more})

    async def search(self, text: str, **more: Any) -> httpx.Response:
        query = {"text": text, **more.pop("query", {})}
        return await self.http.post("/a2a/search", json={"query": query, **more})

    async def found(self, text: str, **filter: Any) -> list[str]:
        response = await self.search(text, query={"filter": filter})
        return [each["displayName"] for each in response.json()["results"]]


@pytest.fixture
async def team() -> AsyncGenerator[Callable[..., tuple[Client, Client, Client]]]:
    """Ann, Bob and nobody at a directory in memory."""
    made: list[DirectoryServer] = []

    def make(**options: Any) -> tuple[Client, Client, Client]:
        auth = BearerAuth({"a": "ann", "b": "bob"})
        server = DirectoryServer(auth=auth, endpoint="https://directory.acme.com/a2a/", **options)
        made.append(server)
        return Client(server, "a"), Client(server, "b"), Client(server, None)

    yield make
    for each in made:
        await each.stop()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1_000_000.0]
    monkeypatch.setattr(_leases, "time", lambda: now[0])
    return now


def named(name: str, *skills: str, **more: Any) -> dict[str, Any]:
    offered = [{"id": each, "name": each, "description": each, "tags": [each]} for each in skills]
    return card("https://pay.acme.com", name=name, skills=offered, **more)


async def test_an_agent_is_registered_shown_and_dropped(team: Any) -> None:
    ann, bob, _ = team()
    response = await ann.register(leaseSeconds=30)
    urn = "urn:air:pay.acme.com:agent:payments"
    assert (response.status_code, response.json()) == (201, {"identifier": urn, "leaseSeconds": 30})
    assert (await ann.register()).status_code == 200  # which renews it
    shown = (await bob.http.get(f"/a2a/agents/{urn}")).json()
    assert shown["capabilities"] == ["refund", "Refund", "pay"]
    assert shown["data"]["supportedInterfaces"][0]["url"] == "https://pay.acme.com/"
    assert shown["type"] == shown["mediaType"] == "application/a2a-agent-card+json"
    assert (await bob.http.get("/a2a/agents")).json() == {"items": [shown], "total": 1}
    for who, status in ((bob, 403), (ann, 204), (ann, 404)):
        assert (await who.http.delete(f"/a2a/agents/{urn}")).status_code == status
    assert (await bob.http.get(f"/a2a/agents/{urn}")).status_code == 404


async def test_where_its_card_is_may_be_shown_in_its_place(team: Any) -> None:
    ann, *_ = team()
    url = f"https://pay.acme.com{CARD}"
    await ann.register(url=url, identifier="urn:air:acme.com:bank:pay")
    (shown,) = (await ann.http.get("/a2a/agents")).json()["items"]
    assert (shown["identifier"], shown["url"]) == ("urn:air:acme.com:bank:pay", url)
    assert "data" not in shown


async def test_a_lease_ends_and_its_name_is_held_for_its_owner(
    team: Any, clock: list[float]
) -> None:
    ann, bob, _ = team(lease=60, longest_lease=100)
    assert (await ann.register()).json()["leaseSeconds"] == 60
    assert (await ann.register(leaseSeconds=1e9)).json()["leaseSeconds"] == 100
    clock[0] += 99
    assert await bob.found("refund") == ["Payments"]
    clock[0] += 1
    assert await bob.found("refund") == []
    assert (await bob.http.get("/a2a/agents")).json() == {"items": [], "total": 0}
    response = await bob.register()
    assert (response.status_code, response.json()["errorCode"]) == (409, "ALREADY_EXISTS")
    assert (await ann.register()).status_code == 201
    clock[0] += 60 + HELD_SECONDS + 1
    assert (await bob.register()).status_code == 201


async def test_search_ranks_filters_and_pages(team: Any) -> None:
    ann, *_ = team()
    await ann.register(named("Refunds", "process_refund"))
    await ann.register(named("Both", "process_refund", "checkBalance"))
    await ann.register(named("Ships", "ship"), identifier="urn:air:acme.com:mail:ships")
    assert await ann.found("who can process a refund and check the balance") == ["Both", "Refunds"]
    assert await ann.found("refund", capabilities=["checkBalance", "ship"]) == ["Both"]
    assert await ann.found("refund ship", publisher="acme.com") == ["Ships"]
    assert await ann.found("refund", capabilities="process_refund", version="7") == []
    assert await ann.found("refund", **{"data.skills.id": ["checkBalance"]}) == ["Both"]
    assert await ann.found("nothing of it") == []
    first = (await ann.search("refund ship", pageSize=2)).json()
    rest = (await ann.search("refund ship", pageSize=2, pageToken=first["pageToken"])).json()
    assert [len(first["results"]), len(rest["results"]), "pageToken" in rest] == [2, 1, False]
    assert first["results"][0]["source"] == "https://directory.acme.com/a2a"
    assert first["results"][0]["score"] == 50
    assert (await ann.search("x", federation="referrals")).json()["referrals"] == []
    token, seen = "", list[str]()
    while token is not None:
        page = (await ann.http.get(f"/a2a/agents?pageSize=1&pageToken={token}")).json()
        seen += [each["displayName"] for each in page["items"]]
        token = page.get("pageToken")
    assert seen == ["Ships", "Both", "Refunds"]


async def test_principals_alone_see_agents(team: Any) -> None:
    """Anybody sees that there is a directory, as ARD's clients find it."""
    ann, _, nobody = team(name="Acme")
    await ann.register()
    for path in ("/.well-known/ai-catalog.json", "/a2a/.well-known/ai-catalog.json"):
        response = await nobody.http.get(path)
        assert response.headers["content-type"] == "application/ai-catalog+json"
        (entry,) = response.json()["entries"]
        assert (entry["type"], entry["displayName"]) == ("application/ai-registry+json", "Acme")
        assert entry["url"] == "https://directory.acme.com/a2a"
    assert (await nobody.http.get("/healthz")).status_code == 200
    urn = "/a2a/agents/urn:air:pay.acme.com:agent:payments"
    for method, path in (("GET", "/a2a/agents"), ("GET", urn), ("DELETE", urn)):
        assert (await nobody.http.request(method, path)).status_code == 401
    assert (await nobody.search("refund")).status_code == 401
    assert (await nobody.register()).status_code == 401


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        (b"{", "Invalid JSON"),
        ({}, "card: Field required"),
        ({"card": 7}, "card: "),
        ({"card": PAY, "more": 1}, "more: Extra inputs"),
        ({"card": {}}, "has no interface"),
        ({"card": {"name": 7}}, "cannot be read"),
        ({"card": card("http://pay.acme.com")}, "only https is safe"),
        ({"card": PAY, "url": "http://pay.acme.com/card"}, "only https is safe"),
        ({"card": PAY, "url": "https://evil.com/card"}, "not to the origin of https://evil.com"),
        ({"card": PAY, "identifier": "pay"}, "not of the form"),
        ({"card": PAY, "identifier": "urn:air:pay.acme.com"}, "not of the form"),
        ({"card": PAY, "identifier": "urn:air:bank.com:agent:pay"}, "is not the domain of"),
        ({"card": PAY, "identifier": "urn:air:com:agent:pay"}, "is not the domain of"),
        ({"card": PAY, "identifier": f"urn:air:acme.com:{'a' * 255}"}, "identifier: "),
        ({"card": PAY, "leaseSeconds": 0}, "leaseSeconds: "),
        ({"card": PAY, "leaseSeconds": "60"}, "leaseSeconds: "),
    ],
)
async def test_what_cannot_be_registered_is_refused(team: Any, sent: Any, says: str) -> None:
    ann, *_ = team()
    content = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
    headers = {"content-type": "application/json"}
    response = await ann.http.post("/a2a/agents", content=content, headers=headers)
    assert response.status_code == 400
    assert response.json()["errorCode"] == "INVALID_ARGUMENT"
    assert says in response.json()["message"]
    assert (await ann.http.get("/a2a/agents")).json()["total"] == 0


@pytest.mark.parametrize(
    ("method", "path", "sent", "status"),
    [
        ("POST", "search", {"query": {"filter": {}}}, 400),
        ("POST", "search", {"query": {"text": "x"}, "pageSize": 101}, 400),
        ("POST", "search", {"query": {"text": "x"}, "pageToken": "x"}, 400),
        ("POST", "search", {"query": {"text": "x"}, "federation": "all"}, 400),
        ("POST", "search", {"query": {"text": "x", "filter": {"type": 7}}}, 400),
        ("POST", "explore", {"resultType": {"facets": []}}, 501),
        ("GET", "agents?filter=x", None, 400),
        ("GET", "agents?pageSize=0", None, 400),
        ("GET", "agents?pageSize=9999999999999", None, 400),
        ("DELETE", "agents", None, 405),
        ("GET", "nothing", None, 404),
    ],
)
async def test_what_cannot_be_asked_is_refused(
    team: Any, method: str, path: str, sent: Any, status: int
) -> None:
    ann, *_ = team()
    response = await ann.http.request(method, f"/a2a/{path}", json=sent)
    assert response.status_code == status


async def test_there_are_limits(team: Any) -> None:
    ann, bob, _ = team(per_owner=2, capacity=3, limits=Limits(body_bytes=2000, depth=12))
    for name in ("one", "two"):
        assert (await ann.register(named(name))).status_code == 201
    refused = await ann.register(named("three"))
    assert (refused.status_code, refused.json()["errorCode"]) == (409, "RESOURCE_EXHAUSTED")
    assert (await ann.register(named("two"))).status_code == 200
    assert (await bob.register(named("three"))).status_code == 201
    assert (await bob.register(named("four"))).status_code == 409
    assert (await ann.register(named("x" * 2000))).status_code == 413
    deep: Any = {}
    for _ in range(12):
        deep = {"x": deep}
    assert (await ann.register(deep)).status_code == 400


async def test_without_auth_only_this_machine_is_served() -> None:
    server = DirectoryServer()
    with pytest.raises(UsageError, match="without auth= only this machine"):
        await server.start(host="0.0.0.0", port=0)
    with pytest.raises(UsageError, match=r"`\.app` needs endpoint="):
        _ = server.app
    local = DirectoryServer(endpoint="https://directory.acme.com/a2a")
    ann = Client(local, None)
    assert (await ann.register()).status_code == 201
    far = await ann.http.get("/a2a/agents", headers={"host": "evil.com"})
    assert far.status_code == 403
    open_ = DirectoryServer(auth=BearerAuth({"a": "ann"}))
    with pytest.raises(UsageError, match="where clients come in"):
        await open_.start(host="0.0.0.0", port=0)
    for each in (server, local, open_):
        await each.stop()


def test_a_database_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as db:
        db.execute("create table agents (x int)")
    for path, found in (
        (other, "no such column: identifier"),
        (tmp_path, "unable to open"),
        ("a\0b", "null"),
    ):
        with pytest.raises(UsageError, match="cannot be used") as caught:
            DirectoryServer(path)
        assert found in (caught.value.found or "")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"path": 7}, "takes a path"),
        ({"auth": "token"}, "takes an authenticator"),
        ({"endpoint": "http://acme.com"}, "only https is safe"),
        ({"endpoint": 7}, "takes a URL"),
        ({"limits": 7}, "takes Limits"),
        ({"lease": 0}, "lease="),
        ({"per_owner": 1.5}, "per_owner="),
    ],
)
def test_arguments_are_checked(options: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        DirectoryServer(**options)


async def test_an_agent_stays_registered_while_it_runs_and_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over HTTP, with the client of the layer, in two servers on one file."""
    monkeypatch.setenv("DIRECTORY_TOKEN", "a")
    auth = BearerAuth({"a": "ann"})
    servers = [DirectoryServer(tmp_path / "agents.db", auth=auth) for _ in range(2)]
    for each in servers:
        await each.start(port=0)
    with pytest.raises(UsageError, match="was started already"):
        await servers[0].start()
    token = AuthConfig("bearer", "DIRECTORY_TOKEN")
    first, second = (AgentDirectory(each.url, auth=token, timeout=120) for each in servers)
    here = named("Here", "refund")
    here["supportedInterfaces"][0]["url"] = f"{servers[0].url}/pay"
    async with first.registered(here, lease=300) as identifier:
        assert identifier == "urn:air:127.0.0.1:agent:here"
        (found,) = await second.discover(capabilities=["refund"])
        assert (found.identifier, found.name) == (identifier, "Here")
        assert [each.name for each in await second.discover()] == ["Here"]
    second.forget()
    assert await second.discover(capabilities=["refund"]) == []
    monkeypatch.setenv("DIRECTORY_TOKEN", "b")
    with pytest.raises(RemoteError, match="refuses the agent") as caught:
        async with first.registered(here):
            pass
    assert caught.value.status == 401
    with pytest.raises(UsageError, match="not to the origin"):
        async with first.registered(here, url="https://evil.com/card"):
            pass
    with pytest.raises(UsageError, match="needs a directory at an address"):
        async with AgentDirectory(PAY).registered(PAY):
            pass
    for each in servers:
        await each.stop()


async def test_a_lease_is_renewed_through_an_outage(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With a clock of its own: each third of the lease passes at once."""
    from adk_fluent.a2a import _registering_adk

    server = DirectoryServer()
    await server.start(port=0)
    asked: list[str] = []
    done = asyncio.Event()
    real = _registering_adk.Registration._send

    async def send(self: Any, method: str, path: str, body: Any) -> Any:
        asked.append(method)
        if len(asked) == 2:
            raise RemoteError("it is down")
        if len(asked) == 4:
            done.set()
        return await real(self, method, path, body)

    async def third(seconds: float) -> None:
        assert seconds == 20.0
        if done.is_set():
            await asyncio.Event().wait()

    monkeypatch.setattr(_registering_adk.Registration, "_send", send)
    monkeypatch.setattr(_registering_adk, "asyncio", Clocked(asyncio, third))
    async with AgentDirectory(server.url, timeout=120).registered(PAY):
        await done.wait()
    assert asked == ["POST", "POST", "POST", "POST", "DELETE"]
    assert "was not renewed" in caplog.text
    await server.stop()


class Clocked:
    """asyncio with another sleep."""

    def __init__(self, real: Any, sleep: Any) -> None:
        self._real = real
        self.sleep = sleep

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def test_the_command_makes_a_directory_of_its_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is interrupted at once."""

    def interrupted() -> asyncio.Event:
        ended = asyncio.Event()
        ended.set()
        return ended

    monkeypatch.setattr(_directory_command, "interruption", interrupted)
    path = tmp_path / "agents.db"
    monkeypatch.setenv("ADK_FLUENT_SERVE_TOKENS", "hunter2")
    for arguments, code, says in (
        (["--port", "0"], 2, "ADK_FLUENT_SERVE_TOKENS holds JSON"),
        (["--port", "0", "--endpoint", "http://acme.com"], 2, "only https is safe"),
        (["--port", "0", "--host", "0.0.0.0"], 2, "without auth= only this machine"),
        (["--port", "0", "--lease", "5"], 0, "[serving the directory at http://127.0.0.1:"),
    ):
        with pytest.raises(SystemExit) as caught:
            main(["directory", str(path), *arguments])
        told = capsys.readouterr().err
        assert (caught.value.code or 0, says in told) == (code, True), told
        assert "hunter2" not in told
        monkeypatch.delenv("ADK_FLUENT_SERVE_TOKENS", raising=False)
    assert path.exists()


@pytest.mark.full  # the example runs processes, too
@pytest.mark.skipif(os.name == "nt", reason="its processes take no SIGINT of their own")
def test_the_command_serves_until_interrupted(tmp_path: Path) -> None:
    tokens = json.dumps({"t0k": "ann"})
    command = [sys.executable, "-m", "adk_fluent.cli", "directory", "agents.db", "--port", "0"]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        env={**os.environ, "ADK_FLUENT_SERVE_TOKENS": tokens},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"serving the directory at (http://127\.0\.0\.1:\d+)\]", line)
        assert found is not None, line
        headers = {"authorization": "Bearer t0k"}
        body = {"card": PAY}
        url = f"{found[1]}/agents"
        assert httpx.post(url, json=body, headers=headers, timeout=120).status_code == 201
        assert httpx.post(url, json=body, timeout=120).status_code == 401
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0
        assert process.stderr.read() == "[stopping]\n"
    finally:
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()
    assert (tmp_path / "agents.db").exists()

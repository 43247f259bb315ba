"""Agent cards: where they come from, what is refused, how long they are used."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from a2a.client.card_resolver import parse_agent_card
from a2a.utils.signing import create_agent_card_signer, create_signature_verifier
from google.protobuf.json_format import MessageToDict
from remote_kit import Request, Wire, card, peer, says, task, text

from adk_fluent import RemoteAgent
from adk_fluent.a2a import AuthConfig
from adk_fluent.a2a._http import http_client
from adk_fluent.errors import CredentialsError, RemoteError, UsageError
from adk_fluent.ir import RemoteAgentNode

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

pytestmark = pytest.mark.adk
PAID = says(task("COMPLETED", text("R1")))
KEY = "a shared secret of 32 bytes or more"


def interfaces(*urls: str, binding: str = "JSONRPC", version: str = "1.0") -> list[dict[str, str]]:
    return [{"url": url, "protocolBinding": binding, "protocolVersion": version} for url in urls]


@pytest.mark.parametrize(
    ("endpoint", "path"),
    [
        ("", "/.well-known/agent-card.json"),
        ("/", "/.well-known/agent-card.json"),
        ("/pay/", "/pay/.well-known/agent-card.json"),
        ("/cards/pay.json", "/cards/pay.json"),
    ],
)
async def test_an_endpoint_is_a_base_address_or_that_of_the_card(endpoint: str, path: str) -> None:
    async with peer(PAID) as far:
        assert (await RemoteAgent("pay", endpoint=far.url + endpoint).run("Pay.")).text == "R1"
        assert [each.path for each in far.cards] == [path]


async def test_the_place_of_older_cards_is_looked_at_too() -> None:
    def older(request: Request, wire: Wire) -> None:
        there = request.path == "/.well-known/agent.json"
        wire.respond(200 if there else 404, card(far.url))

    async with peer(PAID, card=older) as far:
        assert (await RemoteAgent("pay", endpoint=far.url).run("Pay.")).text == "R1"


@pytest.mark.parametrize("form", ["object", "mapping", "path", "from_card"])
async def test_a_card_may_be_given(form: str, tmp_path: Path) -> None:
    async with peer(PAID) as far:
        given: Any = card(far.url)
        if form == "object":
            given = parse_agent_card(given)
        elif form == "path":
            (tmp_path / "card.json").write_text(json.dumps(given))
            given = tmp_path / "card.json"
        if form == "from_card":
            made = RemoteAgent.from_card(given, timeout=5)
            assert made.name == "payments"
        else:
            made = RemoteAgent("payments", card=given)
        node = made.to_ir()
        assert isinstance(node, RemoteAgentNode)
        assert node.endpoint == f"{far.url}/"
        assert (await made.run("Pay.")).text == "R1"
        assert far.cards == []


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("no such file", "cannot be read"),
        ({"name": 7}, "cannot be read"),
        ({"name": object()}, "cannot be read"),
        (7, "an agent card is needed"),
        ({}, "has no interface"),
        (card("x", supportedInterfaces=interfaces("https://a.b", binding="SLIM")), "only SLIM"),
        (card("x", supportedInterfaces=interfaces("http://a.b")), "only https is safe"),
        (card("x", supportedInterfaces=interfaces("ftp://a.b")), "is not a URL"),
        (card("x", supportedInterfaces=interfaces("https://u:pa55@a.b")), "has credentials"),
        (
            card("x", supportedInterfaces=interfaces("https://a.b", "https://evil.c")),
            "and not to the origin of https://a.b",
        ),
    ],
)
def test_a_card_that_must_not_be_used_is_refused_at_once(given: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        RemoteAgent("pay", card=given)
    assert "pa55" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9/",
        "http://localhost:{port}/",
        "https://127.0.0.1:{port}/",
        "http://0x7f.1:{port}/",
        "http://user@127.0.0.1:{port}/",
    ],
)
async def test_a_fetched_card_cannot_send_requests_elsewhere(url: str) -> None:
    def evil(_: Request, wire: Wire) -> None:
        there = url.format(port=far.url.rpartition(":")[2])
        wire.respond(200, card(far.url, supportedInterfaces=interfaces(f"{far.url}/", there)))

    async with peer(PAID, card=evil) as far:
        with pytest.raises(RemoteError) as caught:
            await RemoteAgent("pay", endpoint=far.url).run("Pay.")
        assert caught.value.error_code == "A2A_CARD"
        assert far.requests == []


async def test_an_endpoint_that_others_can_read_is_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PAY_TOKEN", "s3cret")
    auth = AuthConfig("bearer", "PAY_TOKEN")
    with pytest.raises(RemoteError, match="only https is safe") as caught:
        await RemoteAgent("pay", endpoint="http://pay.example.com", auth=auth).run("Pay.")
    assert caught.value.error_code == "A2A_CARD"


async def test_a_card_is_fetched_again_when_it_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    from adk_fluent.a2a import _cards_adk

    clock = [0.0]
    monkeypatch.setattr(_cards_adk, "monotonic", lambda: clock[0])
    async with peer(PAID) as far:
        pipeline = RemoteAgent("pay", endpoint=far.url, card_ttl=60)
        for now, fetched in ((1.0, 1), (59.0, 1), (62.0, 2), (121.0, 2), (123.0, 3)):
            clock[0] = now
            await pipeline.run("Pay.")
            assert len(far.cards) == fetched


async def test_capabilities_are_looked_for_in_the_card() -> None:
    async with peer(PAID) as far:
        wanted = ("refund", "pay", "Refund")  # by id, tag and name
        await RemoteAgent("pay", endpoint=far.url, capabilities=wanted).run("Pay.")
        with pytest.raises(RemoteError, match="offers no 'fly'") as caught:
            await RemoteAgent("far", endpoint=far.url, capabilities=("refund", "fly")).run("Pay.")
    assert caught.value.error_code == "A2A_CARD"


@pytest.mark.parametrize("state", ["signed", "changed", "unsigned", "alg none", "other key"])
async def test_signatures_are_verified_if_that_is_asked_for(state: str) -> None:
    def reply(_: Request, wire: Wire) -> None:
        made = parse_agent_card(card(far.url))
        if state != "unsigned":
            key = "another secret of 32 bytes or more!" if state == "other key" else KEY
            alg = "none" if state == "alg none" else "HS256"
            sign = create_agent_card_signer(
                key if alg == "HS256" else None,  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
                {"alg": alg, "kid": "k1", "jku": None, "typ": "JOSE"},
            )
            sign(made)
        if state == "changed":
            made.description = "Pays somebody else."
        wire.respond(200, MessageToDict(made))

    verify = create_signature_verifier(lambda kid, jku: KEY, ["HS256"])
    async with peer(PAID, card=reply) as far:
        made = RemoteAgent("pay", endpoint=far.url, verify_card=verify)
        if state == "signed":
            assert (await made.run("Pay.")).text == "R1"
        else:
            with pytest.raises(RemoteError, match="is not trusted") as caught:
                await made.run("Pay.")
            assert caught.value.error_code == "A2A_CARD"
            assert far.requests == []
        await RemoteAgent("plain", endpoint=far.url).run("Pay.")  # by choice


# --- credentials -------------------------------------------------------------------------------


async def test_secrets_are_read_when_they_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    async with peer(PAID) as far:
        bearer = RemoteAgent("pay", endpoint=far.url, auth=AuthConfig("bearer", "PAY_TOKEN"))
        key = RemoteAgent(
            "key", endpoint=far.url, auth=AuthConfig("api_key", "PAY_TOKEN", header="X-Key")
        )
        with pytest.raises(CredentialsError, match="PAY_TOKEN is not set"):
            await bearer.run("Pay.")
        assert (far.requests, far.cards) == ([], [])
        monkeypatch.setenv("PAY_TOKEN", "s3cret")
        result = await bearer.run("Pay.")
        await key.run("Pay.")
    first, second = far.requests
    assert first.headers["authorization"] == "Bearer s3cret"
    assert second.headers["x-key"] == "s3cret"
    assert "authorization" not in second.headers
    assert "s3cret" not in repr([each.raw for each in result])


@pytest.mark.parametrize(
    ("auth", "secret", "says"),
    [
        (AuthConfig("bearer", "PAY_TOKEN"), "s3cret\nX-More: 1", "a line break"),
        (AuthConfig("bearer", "PAY_TOKEN"), "s3cret\u2603", "not printable ASCII"),
        (AuthConfig("api_key", "PAY_TOKEN", header="X Key"), "s3cret", "no name of a header"),
        (
            AuthConfig("oauth2", "PAY_TOKEN", token_url="http://auth.example.com/token"),
            "desk:s3cret",
            "only https is safe",
        ),
        (AuthConfig("oauth2", "PAY_TOKEN", token_url="https://t"), "s3cret", "no colon"),
    ],
)
async def test_a_secret_that_cannot_be_sent_is_in_no_error(
    auth: AuthConfig, secret: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAY_TOKEN", secret)
    async with peer(PAID) as far:
        with pytest.raises(CredentialsError, match=says) as caught:
            await RemoteAgent("pay", endpoint=far.url, auth=auth).run("Pay.")
    assert (far.requests, far.cards) == ([], [])
    error: BaseException | None = caught.value
    while error is not None:
        assert "s3cret" not in str(error)
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}", b'{"access_token": "\xc3\xa9"}'])
async def test_a_token_endpoint_without_tokens_is_a_failure(
    body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAY_CLIENT", "desk:s3cret")

    def reply(_: Request, wire: Wire) -> None:
        wire.respond(200, body)

    async with peer(reply) as far:
        auth = AuthConfig("oauth2", "PAY_CLIENT", token_url=f"{far.url}/token")
        with pytest.raises(RemoteError, match="a token endpoint without tokens") as caught:
            await RemoteAgent("pay", endpoint=far.url, auth=auth).run("Pay.")
    assert caught.value.error_code == "A2A_HTTP"


async def test_a_token_is_fetched_and_used_until_it_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PAY_CLIENT", "desk:s3cret")
    tokens = 0

    def reply(request: Request, wire: Wire) -> None:
        nonlocal tokens
        if request.path == "/token":
            tokens += 1
            assert request.headers["authorization"] == "Basic ZGVzazpzM2NyZXQ="
            assert "scope=pay+refund" in request.body
            return wire.respond(200, {"access_token": f"t{tokens}", "expires_in": 3600})
        if request.headers["authorization"] == "Bearer t2":
            return wire.respond(401)
        return wire.result(task("COMPLETED", text("R1")))

    async with peer(reply) as far:
        auth = AuthConfig(
            "oauth2", "PAY_CLIENT", scopes=("pay", "refund"), token_url=f"{far.url}/token"
        )
        pipeline = RemoteAgent("pay", endpoint=far.url, auth=auth)
        await pipeline.run("Pay.")
        await pipeline.run("Pay.")
        assert tokens == 1
        app_node = pipeline.to_ir()
        assert "s3cret" not in repr(app_node)
        tokens = 1
        other = RemoteAgent("other", endpoint=far.url, auth=auth)
        with pytest.raises(RemoteError) as caught:
            await other.run("Pay.")
        assert caught.value.status == 401
        assert (await other.run("Pay.")).text == "R1"  # with a new token
        assert tokens == 3


# --- the wire ----------------------------------------------------------------------------------


async def test_a_peer_that_speaks_http_and_json_is_spoken_to_as_such() -> None:
    def rest(_: Request, wire: Wire) -> None:
        offered = interfaces(f"{far.url}/v1", binding="HTTP+JSON")
        wire.respond(200, card(far.url, supportedInterfaces=offered))

    def reply(request: Request, wire: Wire) -> None:
        assert request.path == "/v1/message:send"
        wire.respond(200, task("COMPLETED", text("R1")))

    async with peer(reply, card=rest) as far:
        assert (await RemoteAgent("pay", endpoint=far.url).run("Pay.")).text == "R1"


async def test_an_unknown_version_of_the_protocol_is_a_card_that_cannot_be_used() -> None:
    def later(_: Request, wire: Wire) -> None:
        offered = interfaces(f"{far.url}/", version="one")
        wire.respond(200, card(far.url, supportedInterfaces=offered))

    async with peer(PAID, card=later) as far:
        with pytest.raises(RemoteError) as caught:
            await RemoteAgent("pay", endpoint=far.url).run("Pay.")
        assert caught.value.error_code == "A2A_CARD"
        assert far.requests == []


async def test_cookies_are_not_kept() -> None:
    def reply(_: Request, wire: Wire) -> None:
        done = {"jsonrpc": "2.0", "id": wire.id, "result": task("COMPLETED", text("R1"))}
        wire.respond(200, done, set_cookie="who=anna")

    async with peer(reply) as far:
        pipeline = RemoteAgent("pay", endpoint=far.url)
        await pipeline.run("Pay.")
        await pipeline.run("Pay.")
        assert all("cookie" not in each.headers for each in (*far.requests, *far.cards))


def test_the_client_of_a_loop_is_closed_with_it() -> None:
    async def both() -> tuple[httpx.AsyncClient, httpx.AsyncClient]:
        return await http_client(), await http_client()

    one, same = asyncio.run(both())
    other, _ = asyncio.run(both())
    assert one is same
    assert other is not one
    assert one.is_closed
    assert other.is_closed


# --- older peers -------------------------------------------------------------------------------


async def test_a_peer_of_protocol_0_3_is_spoken_to_as_such() -> None:
    def old(_: Request, wire: Wire) -> None:
        made = card(far.url) | {"url": f"{far.url}/", "preferredTransport": "JSONRPC"}
        del made["supportedInterfaces"]
        wire.respond(200, made | {"protocolVersion": "0.3.0"})

    def reply(request: Request, wire: Wire) -> None:
        assert request.call == "message/send"
        assert request.message["kind"] == "message"
        done = {
            "kind": "task",
            "id": "t1",
            "contextId": "c1",
            "status": {"state": "completed"},
            "artifacts": [
                {
                    "artifactId": "a",
                    "parts": [
                        {"kind": "text", "text": "done"},
                        {"kind": "data", "data": {"receipt": "R1", "total": 3}},
                    ],
                }
            ],
        }
        wire.result(done)

    async with peer(reply, card=old) as far:
        made = RemoteAgent("pay", endpoint=far.url, inputs="order", outputs=("receipt", "total"))
        result = await made.run("Pay.", state={"order": {"id": 7}})
    assert (result.state["receipt"], result.state["total"]) == ("R1", 3)
    (sent,) = far.requests
    assert sent.data == {"order": {"id": 7}}

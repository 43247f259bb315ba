"""Whatever a remote agent does wrong is one kind of `RemoteError`, and starts the fallback."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from remote_kit import (
    Request,
    Wire,
    artifact,
    card,
    message,
    peer,
    says,
    status,
    streaming,
    streams,
    task,
    text,
)

from adk_fluent import Agent, RemoteAgent
from adk_fluent.a2a._asking import REFUSED
from adk_fluent.a2a._failures_adk import failure_of
from adk_fluent.errors import OutputInvalidError, OutputMissingError, RemoteError
from adk_fluent.ir import RemoteAgentNode, RetryConfig, StateFieldRef
from adk_fluent.protocol import classify
from adk_fluent.testing import ScriptedModel

pytestmark = pytest.mark.adk
AT_ONCE = RetryConfig(max_attempts=3, initial_delay=0)


async def hangs(_: Request, wire: Wire) -> None:
    await asyncio.Event().wait()


async def drips(_: Request, wire: Wire) -> None:
    """Says again and again that it works, so that no single read takes long."""
    wire.stream()
    while True:
        await wire.send(status("WORKING", "still at it"))
        await asyncio.sleep(0.01)


def drops(_: Request, wire: Wire) -> None:
    wire.writer.transport.abort()


async def drops_later(_: Request, wire: Wire) -> None:
    wire.stream(transfer_encoding="chunked")
    event = wire.event(task("WORKING"))
    wire.writer.write(b"%x\r\n%b\r\nff\r\ndata: {" % (len(event), event))


def status_of(code: int, **headers: str) -> Any:
    def reply(_: Request, wire: Wire) -> None:
        wire.respond(code, {"error": "no"}, **headers)

    return reply


def body(content: bytes) -> Any:
    def reply(_: Request, wire: Wire) -> None:
        wire.respond(200, content)

    return reply


def elsewhere(_: Request, wire: Wire) -> None:
    wire.respond(200, card("https://evil.example.com"))


def rpc_error(_: Request, wire: Wire) -> None:
    wire.error(-32603, "boom")


def rpc_error_of_its_own(_: Request, wire: Wire) -> None:
    wire.error(-32050, "boom")


def refused(*, by_person: bool) -> dict[str, Any]:
    """A task that is rejected, with what our servers tell of why."""
    made = task("REJECTED", said="not mine")
    made["task"]["status"]["message"]["metadata"] = {REFUSED: by_person}
    return made


@dataclass(frozen=True)
class Case:
    """A kind of failure.

    Attributes:
        name: What happens.
        code: The end of the error's code.
        reply: What is done with a message.
        card: What is done with a request for the card.
        again: It is tried again with `retry=`.
        idempotent: It is, if the agent is also said to be idempotent.
        streams: The card says that it streams.
    """

    name: str
    code: str
    reply: Any = None
    card: Any = None
    again: bool = False
    idempotent: bool = False
    streams: bool = False


CASES = [
    Case("refused", "CONNECT", again=True),
    Case("card 404", "CARD", card=status_of(404)),
    Case("card 503", "CARD", card=status_of(503), again=True),
    Case("card is not JSON", "CARD", card=body(b"{not json")),
    Case("card is another thing", "CARD", card=body(b'{"foo": 1}')),
    Case("card is a list", "CARD", card=body(b"[]")),
    Case("card is deep", "CARD", card=body(b"[" * 100_000)),
    Case("card is large", "CARD", card=body(b" " * (1 << 21))),
    Case("card sends elsewhere", "CARD", card=elsewhere),
    Case("card redirects", "CARD", card=status_of(302, location="https://evil.example.com")),
    Case("500", "HTTP", status_of(500), idempotent=True),
    Case("503", "HTTP", status_of(503), again=True),
    Case("401", "HTTP", status_of(401)),
    Case("429", "HTTP", status_of(429), again=True),
    Case("redirect", "HTTP", status_of(307, location="https://evil.example.com")),
    Case("hangs", "DEADLINE", hangs),
    Case("drips", "DEADLINE", drips, streams=True),
    Case("not JSON", "PROTOCOL", body(b"<html>")),
    Case("JSON of another kind", "PROTOCOL", body(b"[1]")),
    Case("neither task nor message", "PROTOCOL", says({})),
    Case("empty stream", "PROTOCOL", streams(), streams=True),
    Case("deep JSON", "PROTOCOL", body(b'{"jsonrpc": "2.0", "result":' + b"[" * 100_000)),
    Case("dropped", "CONNECT", drops, idempotent=True),
    Case("dropped in the middle", "INCOMPLETE", drops_later, streams=True),
    Case("JSON-RPC error", "RPC", rpc_error),
    Case("JSON-RPC error of its own", "RPC", rpc_error_of_its_own),
    Case("compressed", "PROTOCOL", status_of(200, content_encoding="gzip")),
    Case("failed", "FAILED", says(task("FAILED", said="no money"))),
    Case("failed in a stream", "FAILED", streams(task("WORKING"), status("FAILED")), streams=True),
    Case("rejected", "REJECTED", says(task("REJECTED", said="not mine"))),
    Case("rejected, and nobody refused", "REJECTED", says(refused(by_person=False))),
    Case("cancelled", "CANCELED", says(task("CANCELED"))),
    Case("stops working", "INCOMPLETE", says(task("WORKING"))),
    Case("stream stops", "INCOMPLETE", streams(task("WORKING"), artifact(text("a"))), streams=True),
]
VARIANTS: list[Any] = [
    pytest.param(True, False, False, id="fallback alone", marks=pytest.mark.full),
    pytest.param(True, True, True, id="all", marks=pytest.mark.full),
    *(
        pytest.param(fallback, retry, idempotent, id=f"{fallback=} {retry=} {idempotent=}")
        for fallback, retry, idempotent in [
            (False, False, False),
            (True, True, False),
            (False, True, True),
        ]
    ),
]


def by_hand() -> Agent:
    return Agent("by_hand", ScriptedModel(default="by hand")).instruct("Pay.").writes("receipt")


@pytest.mark.parametrize(("fallback", "retry", "idempotent"), VARIANTS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_each_failure_has_its_kind_and_starts_the_fallback(
    case: Case, fallback: bool, retry: bool, idempotent: bool
) -> None:
    async with peer(case.reply, card=case.card) as far:
        if case.streams:
            streaming(far)
        made = RemoteAgent(
            "pay",
            endpoint="http://127.0.0.1:9" if case.name == "refused" else far.url,
            outputs="receipt",
            timeout=0.2 if case.code == "DEADLINE" else 10,
            retry=AT_ONCE if retry else None,
            idempotent=idempotent,
            fallback=by_hand() if fallback else None,
        )
        after = Agent("after", ScriptedModel(default="after")).instruct("Thank for {receipt}.")
        if fallback:
            result = await (made >> after).run("Pay.")
            assert result.state["receipt"] == "by hand"
            assert result.text == "after"
        else:
            with pytest.raises(RemoteError) as caught:
                await (made >> after).run("Pay.")
            assert caught.value.error_code == f"A2A_{case.code}", caught.value
            assert "where: node 'pay' at" in str(caught.value)
            assert caught.value.endpoint.startswith("http://127.0.0.1")
            if case.name == "refused":
                assert "found: http://127.0.0.1:9: " in str(caught.value)
            again = case.again or (idempotent and case.idempotent)
            assert classify(caught.value) == ("retriable" if again else "permanent")
        tries = 3 if retry and (case.again or (idempotent and case.idempotent)) else 1
        asked = far.cards if case.card else far.requests
        if case.name != "refused":
            assert len({each.path for each in asked}) * tries == len(asked)
        assert len({each.message["messageId"] for each in far.requests}) <= 1


@pytest.mark.parametrize("idempotent", [False, True])
def test_which_statuses_may_be_tried_again(idempotent: bool) -> None:
    node = RemoteAgent("pay", endpoint="https://a.b", idempotent=idempotent).to_ir()
    assert isinstance(node, RemoteAgentNode)
    request = httpx.Request("POST", "https://a.b")
    again: set[int] = set()
    for code in range(300, 600):
        response = httpx.Response(code, request=request)
        error = httpx.HTTPStatusError("no", request=request, response=response)
        assert not failure_of(error, node, received=True).retriable
        if failure_of(error, node).retriable:
            again.add(code)
    assert again == {429, *(range(500, 600) if idempotent else (502, 503, 504))}


async def test_nothing_is_sent_again_after_an_event() -> None:
    async with peer(drops_later) as far:
        streaming(far)
        made = RemoteAgent("pay", endpoint=far.url, retry=AT_ONCE, idempotent=True)
        with pytest.raises(RemoteError, match="dropped the connection"):
            await made.run("Pay.")
    assert len(far.requests) == 1


async def test_a_retry_recovers() -> None:
    replies = (status_of(503), status_of(503), says(task("COMPLETED", text("R1"))))
    async with peer(*replies) as far:
        made = RemoteAgent("pay", endpoint=far.url, outputs="receipt", retry=AT_ONCE)
        result = await made.run("Pay.")
    assert result.state["receipt"] == "R1"
    assert len({each.message["messageId"] for each in far.requests}) == 1
    assert len(far.requests) == 3


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Waits between tries, which take no time."""
    from adk_fluent.a2a import _exchange_adk

    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(_exchange_adk, "pause", sleep)
    return waited


async def test_delays_grow_and_a_server_may_ask_for_longer_ones(waits: list[float]) -> None:
    replies = (
        status_of(503),
        status_of(429, retry_after="7"),
        status_of(503, retry_after="Wed, 21 Oct 2015 07:28:00 GMT"),
        says(task("COMPLETED", text("R1"))),
    )
    retry = RetryConfig(max_attempts=4, initial_delay=0.5, backoff_factor=2, jitter=0)
    async with peer(*replies) as far:
        await RemoteAgent("pay", endpoint=far.url, retry=retry).run("Pay.")
    assert waits == [0.5, 7.0, 2.0]


async def test_a_wait_beyond_the_deadline_is_not_begun(waits: list[float]) -> None:
    async with peer(status_of(503, retry_after="3600")) as far:
        with pytest.raises(RemoteError) as caught:
            await RemoteAgent("pay", endpoint=far.url, retry=AT_ONCE).run("Pay.")
    assert caught.value.status == 503
    assert (waits, len(far.requests)) == ([], 1)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (task("COMPLETED", {"data": {"total": "much"}}), OutputInvalidError),
        (task("COMPLETED", text("much")), OutputInvalidError),
        (task("COMPLETED", {"data": {"other": 1}}), OutputMissingError),
        (task("COMPLETED"), OutputInvalidError),
        ({"message": message(text("much"))}, OutputInvalidError),
    ],
)
async def test_an_answer_that_is_not_what_was_declared_starts_the_fallback(
    answer: Any, error: type[Exception]
) -> None:
    total = StateFieldRef("total", int)
    async with peer(says(answer)) as far:
        made = RemoteAgent("pay", endpoint=far.url, outputs=total)
        with pytest.raises(error):
            await made.run("Pay.")
        local = Agent("local", ScriptedModel(default='{"total": 3}')).writes(total)
        made = RemoteAgent("pay", endpoint=far.url, outputs=total, fallback=local)
        assert (await made.run("Pay.")).state["total"] == 3


async def test_an_answer_without_the_output_is_missing() -> None:
    async with peer(says(task("COMPLETED"))) as far:
        with pytest.raises(OutputMissingError):
            await RemoteAgent("pay", endpoint=far.url, outputs="receipt").run("Pay.")


@pytest.mark.parametrize(
    ("outputs", "sent"),
    [
        ("reciept", {"data": {"receipt": "R1", "total": 12}}),
        (("reciept", "total"), {"data": {"receipt": "R1", "total": 12}}),
        (("reciept", "total"), text('{"receipt": "R1", "total": 12}')),
        (StateFieldRef("reciept", int), {"data": {"receipt": 1, "total": 12}}),
    ],
    ids=["single", "several", "text", "typed"],
)
async def test_a_misspelt_output_is_told_with_what_came(outputs: Any, sent: Any) -> None:
    async with peer(says(task("COMPLETED", sent))) as far:
        made = RemoteAgent("pay", endpoint=far.url, outputs=outputs)
        with pytest.raises(OutputMissingError, match="did not send 'reciept'") as caught:
            await made.run("Pay.")
    assert caught.value.keys == ("reciept",)
    assert "found: data with 'receipt', 'total'" in str(caught.value)
    assert "did you mean 'receipt'?" in str(caught.value)


async def test_beside_a_text_only_a_name_like_it_is_a_mistake() -> None:
    answer = task("COMPLETED", text("Paid."), {"data": {"receipt": "R1"}})
    async with peer(says(answer)) as far:
        with pytest.raises(OutputMissingError, match="did you mean 'receipt'"):
            await RemoteAgent("pay", endpoint=far.url, outputs="reciept").run("Pay.")
        result = await RemoteAgent("pay", endpoint=far.url, outputs="words").run("Pay.")
    assert result.state["words"] == "Paid."


async def test_a_text_that_holds_no_outputs_is_shown_as_it_came() -> None:
    async with peer(says(task("COMPLETED", text("much")))) as far:
        with pytest.raises(OutputInvalidError, match="found: 'much'"):
            await RemoteAgent("pay", endpoint=far.url, outputs=("receipt", "total")).run("Pay.")


async def test_what_the_peer_says_is_told_short_and_on_one_line() -> None:
    long = "no\n\x1b[2Jmoney " + "x" * 5000
    async with peer(says(task("FAILED", said=long))) as far:
        with pytest.raises(RemoteError) as caught:
            await RemoteAgent("pay", endpoint=far.url).run("Pay.")
    (line,) = [each for each in str(caught.value).splitlines() if "found: " in each]
    assert "no [2Jmoney" in line
    assert line.isprintable()
    assert line.endswith("x… (4,513 more characters)")


@pytest.mark.parametrize("streamed", [False, True])
async def test_an_answer_has_a_largest_size(
    streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from adk_fluent.a2a import _http

    monkeypatch.setattr(_http, "LARGEST", 50_000)
    working = task("WORKING"), *[status("WORKING", "x" * 10_000)] * 9
    large = (
        streams(*working, status("COMPLETED"))
        if streamed
        else says(task("COMPLETED", text("x" * 90_000)))
    )
    async with peer(large, large, says(task("COMPLETED", text("x" * 9_000)))) as far:
        if streamed:
            streaming(far)
        pipeline = RemoteAgent("pay", endpoint=far.url, retry=AT_ONCE, idempotent=True)
        for _ in range(2):
            with pytest.raises(RemoteError, match="more than 50000 bytes") as caught:
                await pipeline.run("Pay.")
            assert caught.value.error_code == "A2A_PROTOCOL"
        assert len(far.requests) == 2
        if not streamed:
            assert (await pipeline.run("Pay.")).text == "x" * 9_000


@pytest.mark.parametrize("says", ["9" * 500, "Wed, 21 Oct 99999999999999999999 07:28:00 GMT", "²"])
async def test_a_retry_after_that_cannot_be_is_no_other_error(says: str) -> None:
    async with peer(status_of(503, retry_after=says)) as far:
        with pytest.raises(RemoteError) as caught:
            await RemoteAgent("pay", endpoint=far.url, retry=AT_ONCE).run("Pay.")
    assert caught.value.status == 503


async def test_adk_logs_nothing_of_a_failure_that_a_fallback_recovers_from(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with peer(says(task("FAILED", said="no money"))) as far:
        await RemoteAgent("pay", endpoint=far.url, fallback=by_hand()).run("Pay.")
    assert [each.name for each in caplog.records if each.levelname == "ERROR"] == []

"""What a task does besides answering: progress, questions, cancellation, its context."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.a2a.utils.agent_to_a2a import to_a2a
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from remote_kit import (
    Request,
    Wire,
    artifact,
    message,
    peer,
    says,
    served,
    status,
    streaming,
    streams,
    task,
    text,
)

from adk_fluent import Agent, RemoteAgent, race, timeout
from adk_fluent.a2a._exchange_adk import Exchange
from adk_fluent.errors import RemoteError, StepTimeoutError
from adk_fluent.testing import Call, ScriptedModel

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.adk


async def works_forever(_: Request, wire: Wire) -> None:
    wire.stream()
    await wire.send(task("WORKING"))
    await asyncio.Event().wait()


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set when the first answer of an agent is known here."""
    taken, take = asyncio.Event(), Exchange._take

    def taking(exchange: Exchange, item: Any) -> None:
        take(exchange, item)
        taken.set()

    monkeypatch.setattr(Exchange, "_take", taking)
    return taken


async def test_progress_comes_as_fragments_and_the_answer_once() -> None:
    items = (
        task("SUBMITTED"),
        status("WORKING", "looking"),
        artifact(text("It is ")),
        artifact(text("paid."), append=True, last=True),
        status("COMPLETED"),
    )
    async with peer(streams(*items)) as far:
        streaming(far)
        events = [each async for each in RemoteAgent("pay", endpoint=far.url).stream("Pay.")]
    partial = [each for each in events if each.is_partial]
    assert [each.content for each in partial] == [None, "It is ", "paid."]
    assert {each.custom_metadata["a2a"]["state"] for each in partial} == {"working"}
    assert partial[0].raw.content.parts[0].text == "looking"
    (final,) = [each for each in events if each.is_final and not each.is_partial]
    assert final.content == "It is paid."
    assert final.custom_metadata["a2a"] == {
        "task_id": "t1",
        "context_id": "c1",
        "state": "completed",
    }


async def test_a_stream_is_not_read_beyond_the_end_of_the_task() -> None:
    async def reply(_: Request, wire: Wire) -> None:
        wire.stream()
        await wire.send(task("COMPLETED", text("done")))
        await asyncio.Event().wait()

    async with peer(reply) as far:
        streaming(far)
        assert (await RemoteAgent("pay", endpoint=far.url).run("Pay.")).text == "done"


async def test_calls_of_tools_over_there_are_not_ours() -> None:
    call: dict[str, Any] = {
        "data": {"id": "f1", "name": "look_up", "args": {}},
        "metadata": {"adk_type": "function_call", "adk_is_long_running": True},
    }
    async with peer(says(task("COMPLETED", call, text("done")))) as far:
        result = await RemoteAgent("pay", endpoint=far.url, outputs="said").run("Pay.")
    assert not result.pending
    assert result.state["said"] == "done"
    assert [each.tool_calls for each in result] == [[]] * len(result)


# --- cancellation ------------------------------------------------------------------------------


async def test_cancelled_here_means_cancelled_there(begun: asyncio.Event) -> None:
    async with peer(works_forever) as far:
        streaming(far)
        run = asyncio.create_task(RemoteAgent("pay", endpoint=far.url).run("Pay."))
        await begun.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert far.cancelled == ["t1"]


async def test_a_deadline_cancels_there_too() -> None:
    async with peer(works_forever) as far:
        streaming(far)
        with pytest.raises(RemoteError, match=r"within 0\.2 s"):
            await RemoteAgent("pay", endpoint=far.url, timeout=0.2).run("Pay.")
        assert far.cancelled == ["t1"]


async def test_what_stands_around_it_cancels_it(begun: asyncio.Event) -> None:
    async with peer(works_forever) as far:
        streaming(far)
        with pytest.raises(StepTimeoutError):
            await timeout(RemoteAgent("pay", endpoint=far.url), 0.2).run("Pay.")
        assert far.cancelled == ["t1"]
        begun.clear()

        async def local(_: object) -> dict[str, str]:
            await begun.wait()
            return {"won": "local"}

        remote = RemoteAgent("pay", endpoint=far.url)
        assert (await race(remote, local).run("Pay.")).state["won"] == "local"
        assert far.cancelled == ["t1", "t1"]


async def test_a_finished_task_is_not_cancelled() -> None:
    async with peer(says(task("FAILED"))) as far:
        with pytest.raises(RemoteError):
            await RemoteAgent("pay", endpoint=far.url).run("Pay.")
        assert far.cancelled == []


# --- questions ---------------------------------------------------------------------------------

ASKS = says(task("INPUT_REQUIRED", said="Which order?"))
PAID = says(task("COMPLETED", text("R1")))


@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_a_question_pauses_the_pipeline_and_the_answer_resumes_it(
    store: str, tmp_path: Path
) -> None:
    service: Any = (
        InMemorySessionService()
        if store == "memory"
        else DatabaseSessionService(f"sqlite+aiosqlite:///{tmp_path}/sessions.db")
    )
    after = Agent("after", ScriptedModel(default="thanks")).instruct("Thank for {receipt}.")
    async with peer(ASKS, PAID) as far:
        pipeline = RemoteAgent("pay", endpoint=far.url, outputs="receipt") >> after
        first = await pipeline.run("Pay.", session_service=service)
        assert first.pending
        (asked,) = first.pending
        assert (asked.kind, asked.message, asked.author) == ("input", "Which order?", "pay")
        assert (asked.name, asked.response_schema) == ("pay", None)
        known: Any = {"session_id": first.session_id, "session_service": service}
        assert await pipeline.pending(**known) == [asked]
        result = await pipeline.resume(asked.answer("order 7"), **known)
    assert not result.pending
    assert result.text == "thanks"
    assert result.state["receipt"] == "R1"
    begin, answer = far.requests
    assert "taskId" not in begin.message
    assert (answer.message["taskId"], answer.message["contextId"]) == ("t1", "c1")
    assert (answer.texts, answer.data) == (["order 7"], None)
    if store == "sqlite":
        await service.close()


async def test_a_question_may_be_answered_with_data_and_asked_again() -> None:
    async with peer(ASKS, ASKS, PAID) as far:
        pipeline = RemoteAgent("pay", endpoint=far.url, outputs="receipt")
        run = await pipeline.run("Pay.")
        for answer in ({"order": 7}, True):
            assert run.pending
            (asked,) = run.pending
            run = await pipeline.resume(asked.answer(answer), session_id=run.session_id)
    assert run.state["receipt"] == "R1"
    assert far.requests[1].data == {"order": 7}
    assert far.requests[2].texts == ["true"]


async def test_auth_required_pauses_as_a_question_for_credentials() -> None:
    asks = says(task("AUTH_REQUIRED", said="Sign in at https://bank.example.com"))
    async with peer(asks, PAID) as far:
        pipeline = RemoteAgent("pay", endpoint=far.url, outputs="receipt")
        run = await pipeline.run("Pay.")
        (asked,) = run.pending
        assert (asked.kind, asked.name) == ("auth", "pay")
        assert asked.message == "Sign in at https://bank.example.com"
        assert asked.payload["message"] == "Sign in at https://bank.example.com"
        run = await pipeline.resume(asked.answer("done"), session_id=run.session_id)
    assert run.state["receipt"] == "R1"
    assert far.requests[1].message["taskId"] == "t1"


WHICH = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}


def asks_for(**question: Any) -> Any:
    """A peer of adk-fluent asks one question."""
    told = {"id": "q1", "kind": "gate", "name": "which", "payload": {"open": 2}, **question}
    asks = task("INPUT_REQUIRED")
    parts = [text("Which order?"), {"data": {"questions": [told]}}]
    asks["task"]["status"]["message"] = message(*parts)
    return says(asks)


async def test_a_question_has_the_name_and_the_schema_that_the_peer_gives() -> None:
    async with peer(asks_for(responseSchema=WHICH), PAID) as far:
        pipeline = RemoteAgent("pay", endpoint=far.url, outputs="receipt")
        run = await pipeline.run("Pay.")
        (asked,) = run.pending
        assert await pipeline.pending(session_id=run.session_id) == [asked]
        assert (asked.kind, asked.name, asked.message) == ("input", "which", "Which order?")
        assert (asked.payload, asked.response_schema) == ({"open": 2}, WHICH)
        run = await pipeline.resume(asked.answer({"order": "A7"}), session_id=run.session_id)
    assert run.state["receipt"] == "R1"
    assert far.requests[1].data == {"order": "A7"}


@pytest.mark.parametrize("schema", ["text", {"type": "no such type"}, {"x": "y" * 70_000}, {}])
async def test_a_schema_that_nobody_can_check_by_is_left_out(schema: Any) -> None:
    async with peer(asks_for(responseSchema=schema, name="a\n\x1b[2Jb" + "c" * 1000)) as far:
        run = await RemoteAgent("pay", endpoint=far.url).run("Pay.")
    (asked,) = run.pending
    assert asked.response_schema is None
    assert asked.name.isprintable()
    assert len(asked.name) < 600


def approve(order: str) -> None:
    """Wait for a person."""


@pytest.mark.parametrize("asks", ["tool", "confirmation"])
async def test_what_an_agent_of_adk_waits_for_is_answered_with_a_response(asks: str) -> None:
    def pay(order: str) -> str:
        """Pay an order."""
        return f"{order} is paid"

    waiting = LongRunningFunctionTool(approve)
    tool = waiting if asks == "tool" else FunctionTool(pay, require_confirmation=True)
    model = ScriptedModel(Call(tool.name, {"order": "A7"}), default="done")
    native = Agent("bank", model).tool(tool).to_agent()
    async with served(lambda port: to_a2a(native, host="127.0.0.1", port=port)) as url:
        pipeline = RemoteAgent("pay", endpoint=url, outputs="receipt")
        run = await pipeline.run("Pay.")
        (asked,) = run.pending
        assert (asked.kind, asked.name) == ("input", tool.name)
        assert asked.payload == {"order": "A7"}
        run = await pipeline.resume(asked.answer(True), session_id=run.session_id)
    assert run.state["receipt"] == "done"


async def test_a_failure_after_the_answer_starts_the_fallback() -> None:
    async with peer(ASKS, says(task("FAILED"))) as far:
        local = Agent("local", ScriptedModel(default="mine")).writes("receipt")
        pipeline = RemoteAgent("pay", endpoint=far.url, outputs="receipt", fallback=local)
        run = await pipeline.run("Pay.")
        assert run.pending
        run = await pipeline.resume(run.pending[0].answer("7"), session_id=run.session_id)
    assert run.state["receipt"] == "mine"


# --- the conversation --------------------------------------------------------------------------


async def test_the_next_turn_is_in_the_same_context() -> None:
    async with peer(PAID) as far:
        pipeline = RemoteAgent("pay", endpoint=far.url)
        first = await pipeline.run("Pay.")
        await pipeline.run("And again.", session_id=first.session_id)
        await pipeline.run("Somebody else.")
    one, two, three = (each.message for each in far.requests)
    assert "contextId" not in one
    assert two["contextId"] == "c1"
    assert "taskId" not in two
    assert "contextId" not in three


@pytest.mark.parametrize(
    ("history", "sent"),
    [
        ("input", ["refund"]),
        ("transcript", ["Give it back.", "[classify] refund"]),
        ("none", []),
    ],
)
async def test_what_of_the_conversation_is_sent(history: str, sent: list[str]) -> None:
    async with peer(PAID) as far:
        classify = Agent("classify", ScriptedModel(default="refund")).writes("intent")
        remote = RemoteAgent("pay", endpoint=far.url, history=history, inputs="intent")
        await (classify >> remote).run("Give it back.")
    assert far.requests[0].texts == sent
    assert far.requests[0].data == {"intent": "refund"}


async def test_a_fan_out_before_it_is_sent_as_a_whole() -> None:
    async with peer(PAID) as far:
        one, two = (Agent(name, ScriptedModel(default=name)).instruct("x") for name in "ab")
        await ((one | two) >> RemoteAgent("pay", endpoint=far.url)).run("Go.")
    assert far.requests[0].texts == ["a", "b"]


async def test_a_message_instead_of_a_task_is_an_answer() -> None:
    async with peer(says({"message": message(text("R1")) | {"contextId": "c9"}})) as far:
        result = await RemoteAgent("pay", endpoint=far.url, outputs="receipt").run("Pay.")
    assert result.state["receipt"] == "R1"
    assert result[-1].custom_metadata["a2a"]["context_id"] == "c9"

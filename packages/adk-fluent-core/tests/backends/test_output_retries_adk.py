"""What does not fit goes back to the model, in each arrangement, and not more often than said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from pydantic import BaseModel

from adk_fluent import Agent, map_over, race
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import OutputInvalidError, UsageError
from adk_fluent.ir import StateFieldRef
from adk_fluent.protocol import Middleware
from adk_fluent.testing import (
    AgentHarness,
    Call,
    GeminiEmulator,
    ScriptedModel,
    mock_backend,
    reply,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.builders import Builder

pytestmark = [pytest.mark.adk, pytest.mark.filterwarnings("ignore:.EXPERIMENTAL")]


class Invoice(BaseModel):
    total: int


GOOD = '{"total": 3}'
BAD = '{"total": "many"}'
WRONG = "the answer of reader does not fit its schema: total: Input should be a valid integer"
THREE = Invoice(total=3)


@pytest.fixture(params=["mock", "adk"])
def run(request: pytest.FixtureRequest) -> Any:
    async def run(pipeline: Any, **options: Any) -> Any:
        backend = mock_backend() if request.param == "mock" else None
        return await pipeline.run("go", backend=backend, **options)

    return run


def reader(*replies: Any, retries: int = 2) -> Agent[Invoice]:
    return Agent("reader").mock(list(replies)).output_retries(retries) @ Invoice


def items(state: Any) -> dict[str, Any]:
    return {"items": ["a", "b"]}


def handed_over(*replies: Any) -> Builder:
    host = Agent("host").mock(Call("transfer_to_agent", {"agent_name": "reader"}))
    return host.delegates(reader(*replies).writes("k"))


def called(*replies: Any) -> Builder:
    host = Agent("host").mock([Call("reader", {"request": "x"}), "done"])
    return host.agent_tool(reader(*replies).writes("k"))


PLACES: dict[str, Callable[..., Builder]] = {
    "step": lambda *replies: reader(*replies).writes("k"),
    "in a sequence": lambda *replies: (
        Agent("one").mock("x") >> reader(*replies).writes("k") >> Agent("two").mock("y")
    ),
    "at the same time": lambda *replies: Agent("one").mock("x") | reader(*replies).writes("k"),
    "fallback": lambda *replies: reader(*replies).writes("k") // Agent("two").mock("y"),
    "race": lambda *replies: race(reader(*replies).writes("k")),
    "transfer": handed_over,
    "tool": called,
}


@pytest.mark.parametrize("streaming", ["none", "sse"])
@pytest.mark.parametrize("place", PLACES)
async def test_the_model_answers_again(run: Any, place: str, streaming: Any) -> None:
    pipeline = PLACES[place](BAD, "sorry", GOOD)
    result = await run(pipeline, config=ExecutionConfig(streaming_mode=streaming))
    assert result.state["k"] == {"total": 3}
    if place != "tool":  # whose events are in a session of its own
        whole = [each for each in result if each.author == "reader" and not each.is_partial]
        told = [each.metadata.get("retried", "") for each in whole]
        assert [WRONG in each for each in told] == [True, False, False]
        assert [each.is_final for each in whole] == [False, False, True]
        assert BAD not in result.text


@pytest.mark.parametrize("place", [each for each in PLACES if each != "fallback"])
async def test_it_is_asked_no_more_often_than_said(run: Any, place: str) -> None:
    with pytest.raises(OutputInvalidError) as raised:
        await run(PLACES[place](BAD, BAD, BAD, GOOD))
    assert raised.value.fields == ("total",)


async def test_a_fallback_takes_over_then(run: Any) -> None:
    result = await run(PLACES["fallback"](BAD, BAD, BAD, GOOD))
    assert (result.text, "k" in result.state) == ("y", False)


async def test_by_default_it_is_asked_once(run: Any) -> None:
    with pytest.raises(OutputInvalidError):
        await run(reader(BAD, GOOD, retries=0))
    with pytest.raises(OutputInvalidError):
        await run(Agent("reader").mock([BAD, GOOD]) @ Invoice)


async def test_items_of_a_map_have_tries_of_their_own(run: Any) -> None:
    pipeline = items >> map_over("items", reader(BAD, GOOD, BAD, GOOD, retries=1), concurrency=1)
    result = await run(pipeline)
    assert result.output == [THREE, THREE]
    assert result.state["results"] == [{"total": 3}] * 2


async def test_each_turn_of_a_loop_begins_anew(run: Any) -> None:
    assert (await run(reader(BAD, GOOD, BAD, GOOD, retries=1) * 2)).output == THREE


@pytest.mark.parametrize("streaming", ["none", "sse"])
@pytest.mark.parametrize("place", ["step", "fallback", "race"])
async def test_an_answer_that_broke_off_is_made_good(place: str, streaming: Any) -> None:
    cut = reply('{"tot', finish_reason="MAX_TOKENS")
    config = ExecutionConfig(streaming_mode=streaming)
    result = await PLACES[place](cut, GOOD).run("go", config=config)
    assert (result.status, result.errors, result.discarded) == ("completed", [], [])
    assert result.output == THREE
    with pytest.raises(OutputInvalidError, match="broke off in the middle: MAX_TOKENS"):
        await reader(cut, retries=0).run("go", config=config)


async def test_several_keys(run: Any) -> None:
    agent = Agent("reader").writes(StateFieldRef("n", int), "tier").output_retries(1)
    result = await run(agent.mock(['{"n": 1}', '{"n": 1, "tier": "gold"}']))
    assert result.state == {"n": 1, "tier": "gold"}


async def test_text_is_never_wrong(run: Any) -> None:
    with pytest.raises(UsageError, match="answers in text"):
        await run(Agent("writer").mock("x").output_retries(1))


@pytest.mark.parametrize("times", [-1, True, "2", None])
def test_it_takes_a_count(times: Any) -> None:
    with pytest.raises(UsageError, match="an int of 0 or more"):
        Agent("reader").output_retries(times)


class Requests(Middleware):
    def __init__(self) -> None:
        self.seen: list[list[tuple[str, str]]] = []

    async def wrap_model_call(self, call: Any, next: Any) -> Any:
        """See what models are asked."""
        self.seen.append(
            [
                (each.role, "".join(part.text or "" for part in each.parts))
                for each in call.request.contents
            ]
        )
        return await next(call)


def lookup() -> str:
    """Look something up."""
    return "found"


async def test_the_model_is_told_behind_its_answer_and_nobody_else() -> None:
    requests = Requests()
    model = ScriptedModel(BAD, "sorry", GOOD)
    first = Agent("reader", model).output_retries(2) @ Invoice
    pipeline = first >> Agent("next").mock("ok").history("transcript")
    await pipeline.run("go", middleware=[requests])
    third, later = requests.seen[2:]
    assert [role for role, _ in third] == ["user", "model", "user", "model", "user"]
    assert (third[1][1], third[3][1]) == (BAD, "sorry")
    assert third[2][1].startswith(WRONG)
    assert "fits the schema" in third[4][1]
    assert not any(BAD in text or "does not fit" in text for _, text in later)


async def test_the_next_run_of_the_session_sees_only_what_fits() -> None:
    requests = Requests()
    model = ScriptedModel(BAD, GOOD, GOOD)
    agent = Agent("reader", model).output_retries(1) @ Invoice
    first = await agent.run("go")
    await agent.run("more", session_id=first.session_id, middleware=[requests])
    texts = [text for _, text in requests.seen[0]]
    assert GOOD in texts
    assert BAD not in texts


async def test_an_answer_by_a_tool_of_adk_is_given_again() -> None:
    answer = "set_model_response"
    model = ScriptedModel(
        Call("lookup"), Call(answer, {"total": "many"}), Call(answer, {"total": 3})
    )
    agent = Agent("reader", model).tool(lookup).output_retries(1) @ Invoice
    assert (await agent.run("go")).output == THREE


@pytest.mark.parametrize("retries", [0, 1])
async def test_callbacks_around_the_agent_are_called_once(retries: int) -> None:
    called: list[str] = []
    agent = reader(*([BAD] * retries), GOOD, retries=retries)

    def before(callback_context: Any) -> None:
        called.append("before")

    def after(callback_context: Any) -> None:
        called.append("after")

    agent.before_agent(before).after_agent(after)
    assert (await agent.run("go")).output == THREE
    assert called == ["before", "after"]


async def test_tokens_of_all_answers_are_counted() -> None:
    once = await reader(GOOD).run("go")
    twice = await reader(BAD, GOOD).run("go")
    assert twice.usage.total > once.usage.total


def test_over_http_the_correction_is_a_turn_of_the_user() -> None:
    with GeminiEmulator(BAD, GOOD) as gemini:
        agent = Agent("reader", gemini.model()).output_retries(1) @ Invoice
        harness = AgentHarness(agent)
        result = harness.send_sync("go")
        assert (result.status, result.output) == ("completed", THREE)
        assert [turn.role for turn in gemini.calls[1].turns] == ["user", "model", "user"]


def test_over_http_the_status_is_read() -> None:
    with GeminiEmulator(reply("cut o", finish_reason="MAX_TOKENS")) as gemini:
        result = AgentHarness(Agent("writer", gemini.model())).send_sync("go")
    assert (result.status, result.step, result.output) == ("truncated", "writer", None)


async def test_words_said_meanwhile_are_not_held_against_the_type_of_a_delegate() -> None:
    def file() -> dict[str, str]:
        """File it."""
        return {"status": "pending"}

    tool = LongRunningFunctionTool(file)
    model = ScriptedModel(Call("file", {}, "c1"), "It is filed.", GOOD)
    clerk = (Agent("reader", model).tool(tool) @ Invoice).writes("k")
    host = Agent("host").mock(Call("transfer_to_agent", {"agent_name": "reader"})).delegates(clerk)
    first = await host.run("go")
    assert (first.status, "k" in first.state) == ("waiting", False)
    answer = first.pending[0].answer({"status": "done"})
    second = await host.resume(answer, session_id=first.session_id)
    assert (second.status, second.state["k"]) == ("completed", {"total": 3})


async def test_an_agent_that_is_a_tool_cannot_wait_and_its_error_says_so() -> None:
    def file() -> dict[str, str]:
        """File it."""
        return {"status": "pending"}

    model = ScriptedModel(Call("file", {}, "c1"), "It is filed.")
    clerk = Agent("reader", model).tool(LongRunningFunctionTool(file)) @ Invoice
    host = Agent("host").mock([Call("reader", {"request": "x"}), "done"]).agent_tool(clerk)
    with pytest.raises(OutputInvalidError, match="cannot wait: make it a step") as caught:
        await host.run("go")
    assert caught.value.found == "'It is filed.'"

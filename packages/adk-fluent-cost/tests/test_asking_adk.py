"""Budgets that ask a person: the run pauses, and goes on with what was answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.adk.sessions import InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService

from adk_fluent import Agent, Fallback, FanOut, map_over
from adk_fluent.config import ExecutionConfig
from adk_fluent.cost import Budget, SqliteLedger, cost_attribution, cost_of
from adk_fluent.ir import ModelCandidate
from adk_fluent.protocol import Usage
from adk_fluent.testing import Call, ScriptedModel, reply

if TYPE_CHECKING:
    from pathlib import Path

    from adk_fluent.builders import Builder
    from adk_fluent.protocol import ModelCall, ModelReply, NextModel, RunResult

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]

PRICES = {"dear": {"input": 0, "output": 1000}, "cheap": {"input": 0, "output": 1}}


def said(text: str, output: int = 1000, **more: Any) -> Any:
    return reply(text, usage=Usage(prompt=10, output=output), **more)


def dear(*replies: Any) -> ScriptedModel:
    return ScriptedModel(*replies, default=said("ok"), model="dear")


def asking(limit: float, **options: Any) -> Budget:
    made: dict[str, Any] = {"prices": PRICES, "reserve_output": 1000, "on_exceed": "ask", **options}
    return Budget(limit, **made)


class Session:
    """A session, and runs in it."""

    def __init__(self, pipeline: Builder, service: Any = None, **options: Any) -> None:
        self._pipeline = pipeline
        self._options: dict[str, Any] = {"session_id": "s", **options}
        self._options["session_service"] = service or InMemorySessionService()

    async def run(self, prompt: Any = "hi") -> RunResult:
        return await self._pipeline.run(prompt, **self._options)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_an_approved_call_goes_with_the_stated_money(streamed: bool) -> None:
    model, budget = dear(), asking(1.5)
    pipeline = Agent("a", model) >> Agent("b", model).writes("b")
    pipeline = pipeline.middleware(budget).middleware(cost_attribution(prices=PRICES))
    config = ExecutionConfig(streaming_mode="sse") if streamed else None
    session = Session(pipeline, config=config)
    first = await session.run()
    assert (first.status, len(model.calls)) == ("waiting", 1)
    (asked,) = first.pending
    assert (asked.kind, asked.author, asked.payload["usd"]) == ("input", "b", "1")
    assert asked.message == (
        "budget of $1.50 has $0.50 left: may agent b spend up to $1.00 on a call of dear?"
    )
    assert budget.balance(first).held.usd == 0
    second = await session.run(asked.answer(True))
    assert (second.status, second.text, second.state["b"]) == ("completed", "ok", "ok")
    assert budget.balance(second).spent.usd == 2
    charged = cost_of(first).records + cost_of(second).records
    assert [each.agent for each in charged] == ["a", "b"]


async def test_each_of_two_budgets_asks_once() -> None:
    """What one was allowed is kept while the other asks."""
    model, inner, outer = dear(), asking(0.5, name="inner"), asking(0.6, name="outer")
    session = Session(Agent("a", model).middleware(inner).middleware(outer))
    result, asked = await session.run(), list[str]()
    while result.pending and len(asked) < 5:
        asked.append(result.pending[0].message.split()[0])
        result = await session.run(result.pending[0].answer(True))
    assert (sorted(asked), result.text, len(model.calls)) == (["inner", "outer"], "ok", 1)
    assert [each.balance(result).spent.usd for each in (inner, outer)] == [1, 1]


async def test_a_refused_call_ends_the_run_as_rejected() -> None:
    model = dear()
    pipeline = Agent("a", model).writes("said") >> Agent("b").mock("B")
    session = Session(pipeline.middleware(asking(0.5)))
    first = await session.run()
    second = await session.run(first.pending[0].answer({"approved": False, "note": "too dear"}))
    assert (second.status, second.step, len(model.calls)) == ("rejected", "a", 0)
    assert second.reason == "a call of agent a above budget of $0.50 was refused"
    assert second.errors[0].code == "BUDGET_REFUSED"
    assert "said" not in second.state
    assert (await session.run("again")).status == "waiting"  # another run asks anew


async def test_an_answer_that_is_neither_is_asked_again() -> None:
    session = Session(Agent("a", dear()).middleware(asking(0.5)))
    first = await session.run()
    second = await session.run(first.pending[0].answer("perhaps"))
    assert second.status == "waiting"
    assert second.pending[0].id != first.pending[0].id
    assert (await session.run(second.pending[0].answer("yes"))).text == "ok"


async def test_each_approval_is_of_one_call() -> None:
    """Also in an agent that calls a tool, and in a loop."""

    def look() -> str:
        """Look."""
        return "seen"

    model = dear(said(Call("look", {})))  # pyright: ignore[reportArgumentType]
    session = Session((Agent("a", model).tool(look) * 2).middleware(asking(0.5)))
    result, questions = await session.run(), 0
    while result.pending:
        questions += 1
        result = await session.run(result.pending[0].answer(True))
    assert (result.text, questions, len(model.calls)) == ("ok", 3, 3)


async def test_no_model_is_told_of_the_question() -> None:
    seen: list[str] = []

    class Sees:
        async def wrap_model_request(self, call: ModelCall, next: NextModel) -> ModelReply:
            seen.append(str(call.request.contents) + str(call.request.config.tools))
            return await next(call)

    pipeline = Agent("a", dear()) >> Agent("b", dear())
    session = Session(pipeline.middleware(asking(0.5)).middleware(Sees()))
    result = await session.run()
    while result.pending:
        result = await session.run(result.pending[0].answer(True))
    assert result.status == "completed"
    result = await session.run("and now?")
    assert (await session.run(result.pending[0].answer(True))).pending
    assert len(seen) == 3
    assert not any("adk_request_input" in each or "approved" in each for each in seen)


async def test_branches_each_have_their_answer() -> None:
    model = dear()
    both = FanOut(Agent("a", model), Agent("b", model)).middleware(asking(0.5))
    session = Session(both)
    first = await session.run()
    assert sorted(each.author for each in first.pending) == ["a", "b"]
    second = await session.run([each.answer(True) for each in first.pending])
    assert (second.status, len(model.calls)) == ("completed", 2)

    mapped = dear()
    each = map_over("items", Agent("a", mapped), output_key="out")
    session = Session(each.middleware(asking(0.5)), state={"items": ["x", "y", "z"]})
    first = await session.run()
    assert len(first.pending) == 3
    second = await session.run([each.answer(True) for each in first.pending])
    assert (second.state["out"], len(mapped.calls)) == (["ok"] * 3, 3)


async def test_a_delegate_asks_and_goes_on() -> None:
    handing = said(Call("transfer_to_agent", {"agent_name": "b"}), output=0)  # pyright: ignore[reportArgumentType]
    other = Agent("b", dear(said("from b"))).description("Helps.")
    clerk = Agent("a", ScriptedModel(handing, model="cheap")).delegates(other)
    session = Session(clerk.middleware(asking(0.5)))
    first = await session.run()
    assert [each.author for each in first.pending] == ["b"]
    second = await session.run(first.pending[0].answer(True))
    assert (second.status, second.text) == ("completed", "from b")


async def test_a_fallback_takes_over_what_was_refused() -> None:
    pipeline = Fallback(
        Agent("a", dear()).middleware(asking(0.5), scope="agent"), Agent("b").mock("B")
    )
    session = Session(pipeline)
    first = await session.run()
    assert (await session.run(first.pending[0].answer(False))).text == "B"


async def test_it_goes_on_in_another_process(tmp_path: Path) -> None:
    """All that is known there stands in two files."""

    def process(*replies: Any) -> tuple[ScriptedModel, Budget, Session]:
        model = dear(*replies)
        budget = asking(1.5, ledger=SqliteLedger(tmp_path / "budgets.db"))
        service = SqliteSessionService(str(tmp_path / "sessions.db"))
        pipeline = Agent("a", model) >> Agent("b", model)
        return model, budget, Session(pipeline.middleware(budget), service)

    _, _, session = process()
    first = await session.run()
    assert first.status == "waiting"
    model, budget, session = process(said("there"))
    second = await session.run(first.pending[0].answer(True))
    assert (second.text, len(model.calls)) == ("there", 1)
    assert budget.balance(second).spent.usd == 2


async def test_a_function_may_ask() -> None:
    words: list[str] = []

    def decide(call: ModelCall, left: Any) -> Any:
        words.append(call.agent)
        return "ask"

    session = Session(Agent("a", dear()).middleware(asking(0.5, on_exceed=decide)))
    first = await session.run()
    assert (await session.run(first.pending[0].answer(True))).text == "ok"
    assert words == ["a"]


async def test_an_agent_in_a_tool_cannot_wait_and_stops() -> None:
    helper = Agent("helper", dear()).description("Helps.")
    calls = said(Call("helper", {"request": "x"}), output=100)  # pyright: ignore[reportArgumentType]
    clerk = Agent("clerk", dear(calls)).agent_tool(helper)
    result = await clerk.middleware(asking(1.0)).run("hi")
    assert [each.author for each in result.pending] == ["clerk"]  # which goes on, and asks itself


async def test_a_fallback_model_of_a_selector_comes_before_a_question() -> None:
    cheap = ScriptedModel(default=said("cheap"), model="cheap")
    agent = Agent("a").model_select(
        strategy="budget_bounded", candidates=[ModelCandidate(dear())], fallback_model=cheap
    )
    result = await agent.middleware(asking(0.5)).run("hi")
    assert (result.text, result.status) == ("cheap", "completed")

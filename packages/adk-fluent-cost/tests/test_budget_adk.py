"""Budgets on ADK's own Runner: what fits is called, what does not is not, and nothing is lost."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import random
from contextlib import aclosing
from contextvars import ContextVar
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.sequential_agent import SequentialAgent  # pyright: ignore[reportDeprecated]
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.sessions import InMemorySessionService
from google.genai import types

from adk_fluent import Agent, FanOut, Pipeline, gate
from adk_fluent.config import ExecutionConfig
from adk_fluent.cost import (
    Balance,
    Budget,
    FunctionError,
    MemoryLedger,
    Money,
    PriceError,
    Reservation,
    SqliteLedger,
    UnknownPriceError,
    cost_attribution,
    cost_of,
    price_limit,
)
from adk_fluent.errors import AdkFluentError, UsageError
from adk_fluent.ir import MiddlewareRef, content_hash
from adk_fluent.protocol import Answer, ModelCall, ModelReply, Sink, Usage
from adk_fluent.testing import Call, ScriptedModel, reply

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Measured

    from adk_fluent.protocol import NextModel

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]

SSE = ExecutionConfig(streaming_mode="sse")
#: A dollar for an answer of a thousand tokens; prompts are free, so that sums can be read off.
PRICES = {"dear": {"input": 0, "output": 1000}, "cheap": {"input": 0, "output": 1}}


def said(text: str = "ok", output: int = 1000, **more: Any) -> Any:
    return reply(text, usage=Usage(prompt=10, output=output), **more)


def dear(*replies: Any) -> ScriptedModel:
    return ScriptedModel(*replies, default=said(), model="dear")


def budget(limit: Any, **options: Any) -> Budget:
    made: dict[str, Any] = {"prices": PRICES, "reserve_output": 1000, **options}
    return Budget(limit, **made)


def codes(result: Any) -> list[str]:
    return [each.code for each in result.errors]


# --- within a limit ------------------------------------------------------------------------------


@pytest.mark.parametrize("config", [None, SSE], ids=["whole", "streamed"])
async def test_what_does_not_fit_is_not_called(config: ExecutionConfig | None) -> None:
    model = dear()
    limit = budget(1.5)
    pipeline = (Agent("a", model) >> Agent("b", model)).middleware(limit)
    result = await pipeline.run("hi", config=config)
    assert len(model.calls) == 1
    assert codes(result) == ["BUDGET_EXHAUSTED"]
    assert (
        "budget of $1.50 for this run is exhausted: $0.50 is left, and the next call of agent b"
        in (result.errors[0].message)
    )
    assert limit.balance(result) == Balance(Money.of("1"), Money())


@pytest.mark.parametrize("sqlite", [False, True], ids=["memory", "sqlite"])
async def test_ten_parallel_agents_with_money_for_two_make_two_calls(
    tmp_path: Path, sqlite: bool
) -> None:
    ledger = SqliteLedger(tmp_path / "budgets.db") if sqlite else MemoryLedger()
    model = dear()
    agents = [Agent(f"a{n}", model) for n in range(10)]
    limit = budget(2, ledger=ledger)
    result = await FanOut(*agents).middleware(limit).run("hi")
    assert len(model.calls) == 2
    assert codes(result) == ["BUDGET_EXHAUSTED"] * 8
    assert limit.balance(result) == Balance(Money.of("2"), Money())


async def test_what_is_left_over_is_given_back() -> None:
    """A call may cost a dollar and costs a tenth; ten of them fit."""
    model = dear(*[said(output=100)] * 11)
    agent = Agent("a", model).middleware(limit := budget(1.9, scope="session"))
    service = InMemorySessionService()
    for _ in range(10):
        assert codes(await agent.run("hi", session_service=service, session_id="s")) == []
    result = await agent.run("hi", session_service=service, session_id="s")
    assert codes(result) == ["BUDGET_EXHAUSTED"]
    assert limit.balance(result).spent == Money.of("1")


async def test_a_request_with_a_limit_reserves_no_more_than_that() -> None:
    limited = Agent("a", dear(said(output=50)))
    limited = limited.generate_content_config(types.GenerateContentConfig(max_output_tokens=100))
    assert codes(await limited.middleware(budget(0.1)).run("hi")) == []
    assert codes(await Agent("a", dear()).middleware(budget(0.1)).run("hi")) == ["BUDGET_EXHAUSTED"]


@pytest.mark.parametrize(
    ("scope", "shared"),
    [("invocation", 0), ("session", 1), ("user", 2), ("app", 3), ("process", 4)],
)
async def test_whose_money_it_is(scope: Any, shared: int) -> None:
    """The second run shares nothing, the session, the user, the app, or the process."""
    service = InMemorySessionService()
    for at in range(5):
        agent = Agent("a", dear()).middleware(budget(1, scope=scope, name=f"b{at}"))
        where = [
            {"session_id": "s", "user_id": "u"},
            {"session_id": "s", "user_id": "u"},
            {"session_id": "t", "user_id": "u"},
            {"session_id": "s", "user_id": "v"},
            {"session_id": "s", "user_id": "u", "config": ExecutionConfig(app_name="other")},
        ]
        # from the one that shares most to the one that shares least
        second = {0: None, 1: where[1], 2: where[2], 3: where[3], 4: where[4]}[at]
        first: Any = where[0]
        assert codes(await agent.run("hi", session_service=service, **first)) == []
        again: Any = second or first
        found = codes(await agent.run("hi", session_service=service, **again))
        exhausted = at <= shared and scope != "invocation"
        assert found == (["BUDGET_EXHAUSTED"] if exhausted else []), at


async def test_agents_in_tools_spend_the_runs_money() -> None:
    helper = Agent("helper", dear()).description("Helps.")
    model = dear(said(Call("helper", {"request": "x"})), said("done"))  # pyright: ignore[reportArgumentType]
    clerk = Agent("clerk", model).agent_tool(helper)
    result = await clerk.middleware(limit := budget(2)).run("hi")
    assert codes(result) == ["BUDGET_EXHAUSTED"]
    assert limit.balance(result).spent == Money.of("2")


async def test_a_run_that_is_resumed_goes_on_with_its_money() -> None:
    service = InMemorySessionService()
    pipeline = Agent("a", dear()) >> gate(message="go?") >> Agent("b", dear())
    pipeline = pipeline.middleware(budget(1))
    first = await pipeline.run("hi", session_service=service, session_id="s")
    assert first.pending
    answer = Answer(first.pending[0].id, value=True)
    second = await pipeline.run(answer, session_service=service, session_id="s")
    assert codes(second) == ["BUDGET_EXHAUSTED"]


async def test_around_a_part_alone() -> None:
    pipeline = Agent("a", dear()).middleware(budget(0.5), scope="agent") >> Agent("b", dear())
    result = await pipeline.run("hi")
    assert codes(result) == ["BUDGET_EXHAUSTED"]
    assert result.text == "ok"


async def test_several_budgets_around_one_agent_all_hold() -> None:
    run, user = budget(5, name="run"), budget(1, name="user", scope="user")
    agent = Agent("a", dear()).middleware(run).middleware(user)
    assert codes(await agent.run("hi")) == []
    second = await agent.run("hi")
    assert codes(second) == ["BUDGET_EXHAUSTED"]
    assert run.balance(second) == Balance()  # what was refused inside is given back outside
    same = budget(1, name="same")
    assert codes(await Agent("a", dear()).middleware(same).middleware(same).run("hi")) == []


async def test_two_ledgers_of_one_file_are_one(tmp_path: Path) -> None:
    made = [budget(9, scope="user", ledger=SqliteLedger(tmp_path / "l.db")) for _ in range(2)]
    result = await Agent("a", dear()).middleware(made[0]).middleware(made[1]).run("hi")
    assert made[0].balance(result) == Balance(Money.of(1), Money())


async def test_attempts_and_other_models_each_need_money() -> None:
    class Thrice:
        async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
            await next(call)
            await next(call)
            return await next(call)

    for stack in ((budget(2), Thrice()), (Thrice(), budget(2))):
        model = dear()
        agent = Agent("a", model).middleware(stack[0]).middleware(stack[1])
        assert codes(await agent.run("hi")) == ["BUDGET_EXHAUSTED"]
        assert len(model.calls) == 2


# --- what is done with a call that does not fit --------------------------------------------------


async def test_a_fallback_of_the_pipeline_takes_over() -> None:
    pipeline = Agent("a", dear()).middleware(budget(0.5), scope="agent") // Agent("b").mock("B")
    assert (await pipeline.run("hi")).text == "B"


async def test_nothing_that_runs_is_cancelled() -> None:
    begun, over = asyncio.Event(), asyncio.Event()

    class Waits:
        async def wrap_model_request(self, call: ModelCall, next: NextModel) -> ModelReply:
            if call.agent == "slow":
                begun.set()
                await over.wait()
            else:
                await begun.wait()
            return await next(call)

    class Ends:
        async def after_agent(self, ctx: Any, name: str) -> None:
            if name == "late":
                over.set()

    late = Agent("late", dear()).middleware(Ends(), scope="agent")

    class Later:
        async def before_agent(self, ctx: Any, name: str) -> None:
            if name == "late":
                await begun.wait()

    both = FanOut(Agent("slow", dear(said("slow"))), late)
    result = await both.middleware(Later()).middleware(budget(1)).middleware(Waits()).run("hi")
    assert codes(result) == ["BUDGET_EXHAUSTED"]
    assert [each.content for each in result if each.content] == ["slow"]


@pytest.mark.parametrize("outside", [True, False], ids=["outside", "inside"])
async def test_a_cheaper_model_is_asked_and_charged(outside: bool, metrics: Measured) -> None:
    cheap = ScriptedModel(default=said("cheap"), model="cheap")
    limit = budget(0.5, on_exceed="fallback", fallback_model=cheap)
    costs = cost_attribution(prices=PRICES)
    stack = (costs, limit) if outside else (limit, costs)
    agent = Agent("a", model := dear())
    for each in stack:
        agent = agent.middleware(each)
    result = await agent.run("hi")
    assert (result.text, len(model.calls)) == ("cheap", 0)
    assert limit.balance(result).spent == cost_of(result).total == Money.of("0.001")
    assert cost_of(result).records[0].model == "cheap"
    assert metrics("adk_fluent.budget.denied", adk_fluent__decision="fallback") == 1
    assert metrics("adk_fluent.budget.remaining") == pytest.approx(0.499)


@pytest.mark.parametrize("outside", [False, True])
async def test_whoever_asks_again_does_not_get_the_dear_model_for_the_cheap_price(
    outside: bool,
) -> None:
    class Again:
        async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
            try:
                return await next(call)
            except ConnectionError:
                return await next(call)

    cheap = ScriptedModel(reply(raises=ConnectionError("x")), default=said(), model="cheap")
    limit = budget(0.5, on_exceed="fallback", fallback_model=cheap)
    agent = Agent("a", model := dear()).middleware(Again())
    other = budget(0.9, name="other", on_exceed="warn")
    ways = [limit, other] if outside else [other, limit]
    result = await agent.middleware(ways[0]).middleware(ways[1]).run("hi")
    assert model.calls == ()
    assert limit.balance(result).spent == other.balance(result).spent == Money.of("0.001")


async def test_a_cheaper_model_that_does_not_fit_either() -> None:
    cheap = ScriptedModel(default=said("cheap"), model="cheap")
    limit = budget(0.0005, on_exceed="fallback", fallback_model=cheap)
    assert codes(await Agent("a", dear()).middleware(limit).run("hi")) == ["BUDGET_EXHAUSTED"]
    assert cheap.calls == ()
    own = budget(0.0005, on_exceed="fallback", fallback_model=cheap)
    assert codes(await Agent("a", cheap).middleware(own).run("hi")) == ["BUDGET_EXHAUSTED"]


async def test_a_warning_lets_it_through_and_counts_it(caplog: pytest.LogCaptureFixture) -> None:
    limit = budget(0.5, on_exceed="warn")
    with caplog.at_level(logging.WARNING, "adk_fluent"):
        result = await Agent("a", dear()).middleware(limit).run("hi")
    assert result.text == "ok"
    assert limit.balance(result).spent == Money.of("1")
    assert (
        "budget of $0.50 is exceeded: agent a needs up to $1.00, and $0.50 is left" in caplog.text
    )


async def test_a_function_decides() -> None:
    seen: list[tuple[str, Money]] = []

    async def decide(call: ModelCall, left: Money) -> Any:
        seen.append((call.agent, left))
        return "warn" if call.agent == "a" else "stop"

    pipeline = Agent("a", dear()) >> Agent("b", dear())
    result = await pipeline.middleware(budget(0.5, on_exceed=decide)).run("hi")
    assert seen == [("a", Money.of("0.5")), ("b", Money.of("-0.5"))]
    assert codes(result) == ["BUDGET_EXHAUSTED"]


@pytest.mark.parametrize("word", ["panic", "fallback", None])
async def test_a_function_that_says_something_else(word: Any) -> None:
    def decide(call: ModelCall, left: Money) -> Any:
        return word

    agent = Agent("a", dear()).middleware(budget(0.5, on_exceed=decide))
    with pytest.raises((UsageError, LookupError)):
        await agent.run("hi")


async def test_a_function_that_fails_is_an_error_that_says_where() -> None:
    def decide(call: ModelCall, left: Money) -> Any:
        raise KeyError("tier")

    agent = Agent("a", model := dear()).middleware(budget(0.5, on_exceed=decide))
    with pytest.raises(FunctionError, match="the on_exceed= of budget of agent a has") as caught:
        await agent.run("hi")
    assert (caught.value.found, model.calls) == ("KeyError: 'tier'", ())


async def test_what_is_left_is_copied_to_state_and_never_read() -> None:
    agent = Agent("a", dear()).middleware(budget(5, budget_key="left"))
    result = await agent.run("hi", state={"left": 0.0})
    assert (codes(result), result.state["left"]) == ([], 4.0)


async def test_a_call_that_is_refused_tells_what_is_left_too() -> None:
    agent = Agent("a", dear()).middleware(budget("0.5", budget_key="left"))
    result = await agent.run("Go.")
    assert (result.errors[0].code, result.state["left"]) == ("BUDGET_EXHAUSTED", 0.5)


# --- what calls cost -----------------------------------------------------------------------------


async def test_a_call_that_fails_gives_its_money_back() -> None:
    model = dear(reply(raises=ConnectionError("gone")))
    agent = Agent("a", model).middleware(limit := budget(1, scope="process"))
    with pytest.raises(ConnectionError):
        await agent.run("hi")
    assert limit.ledger.balance(limit._named(("", "", "", ""))) == Balance()


async def test_a_stream_that_is_left_is_charged_and_holds_nothing() -> None:
    model = dear(reply(chunks=["word " * 8, "more"], pause=30))
    agent = Agent("a", model).middleware(limit := budget(1, scope="process"))
    async with aclosing(agent.stream("hi", config=SSE)) as events:
        async for _ in events:
            break
    balance = limit.ledger.balance(limit._named(("", "", "", "")))
    assert balance == Balance(Money.of("0.01"), Money())  # ten estimated tokens


async def test_a_price_book_that_fails_loses_no_answer_and_leaks_no_reservation(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Fails:
        asked = 0

        def price(self, model: str, usage: Usage, at: Any, *, tier: str | None = None) -> Money:
            self.asked += 1
            if self.asked > 1:
                raise RuntimeError("no book")
            return Money.of(1)

    agent = Agent("a", dear()).middleware(limit := budget(1, scope="process", prices=Fails()))
    with caplog.at_level("WARNING", "adk_fluent"):
        assert (await agent.run("hi")).text == "ok"
    assert (
        "counts all that was reserved, $1.00: no price of 'dear': the price book Fails"
        in caplog.text
    )
    balance = limit.ledger.balance(limit._named(("", "", "", "")))
    assert balance == Balance(Money.of(1), Money())  # what nobody can tell is what was reserved


async def test_a_call_that_is_collected_elsewhere_holds_nothing() -> None:
    limit = budget(1, scope="process")

    async def never(call: ModelCall) -> ModelReply:
        await asyncio.Future()
        raise AssertionError

    request = LlmRequest(model="dear", config=types.GenerateContentConfig())
    limit._owner = ("app", "user", "session", "r")
    calling: Any = limit.wrap_model_request(ModelCall(request, model=dear()), never)
    contextvars.copy_context().run(calling.send, None)
    calling.close()
    assert limit.ledger.balance(limit._named(limit._owner)).held == Money()


async def test_several_answers_to_one_request_are_all_reserved() -> None:
    limit = budget(1)
    limit._owner = ("app", "user", "session", "r")
    request = LlmRequest(model="dear", config=types.GenerateContentConfig(candidate_count=2))
    assert limit._most(ModelCall(request)) == Money.of(2)


async def test_what_stands_in_for_a_model_is_free() -> None:
    limit = Budget(0.10)
    mocked = Agent("a").mock("hi") >> Agent("b", ScriptedModel(default=said()))
    result = await mocked.middleware(limit, cost_attribution()).run("hi")
    assert (result.text, limit.balance(result)) == ("ok", Balance())
    assert (cost_of(result).total, cost_of(result).unpriced) == (Money(), {})


async def test_a_model_without_a_price_is_not_called() -> None:
    odd = ScriptedModel(default=said(), model="house-9")
    with pytest.raises(UnknownPriceError, match="budget cannot be kept: no price of 'house-9'"):
        await Agent("a", odd).middleware(budget(1)).run("hi")
    assert odd.calls == ()
    result = await Agent("a", odd).middleware(budget(1, on_unknown="allow")).run("hi")
    assert result.text == "ok"


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # of the word set below
async def test_a_cost_that_nobody_can_tell_is_what_was_reserved() -> None:
    class Provisioned:
        async def wrap_model_request(self, call: ModelCall, next: NextModel) -> ModelReply:
            made = await next(call)
            for each in made.responses:
                vars(each.usage_metadata)["traffic_type"] = "PROVISIONED_THROUGHPUT"
            return made

    agent = (
        Agent("a", dear(said(output=1))).middleware(limit := budget(1)).middleware(Provisioned())
    )
    assert limit.balance(await agent.run("hi")).spent == Money.of("1")


def test_what_is_no_result_is_refused() -> None:
    with pytest.raises(UsageError, match="takes the result of a run"):
        budget(1).balance(None)  # pyright: ignore[reportArgumentType]


async def test_price_limit_is_the_short_form() -> None:
    agent = Agent("a", dear()).middleware(price_limit(0.5, prices=PRICES, reserve_output=1000))
    result = await agent.run("hi")
    assert "price_limit of $0.50 for this run" in result.errors[0].message
    assert price_limit(1, name="mine").name == "mine"


@pytest.mark.parametrize(("name", "first"), [("budget", "limit"), ("price_limit", "max_price")])
async def test_by_name(name: str, first: str) -> None:
    config = {first: 0.5, "prices": PRICES, "reserve_output": 1000}
    agent = Agent("a", dear()).middleware(MiddlewareRef(name, config))
    assert codes(await agent.run("hi")) == ["BUDGET_EXHAUSTED"]


async def test_a_live_run_is_refused() -> None:
    agent = Agent("a", dear()).middleware(budget(1))
    with pytest.raises(AdkFluentError, match="a live connection is none"):
        agent.to_app(config=ExecutionConfig(streaming_mode="bidi"))


@pytest.mark.parametrize(
    ("limit", "options"),
    [
        (0, {}),
        (-1, {}),
        (float("nan"), {}),
        ("much", {}),
        (True, {}),
        (None, {}),
        (1, {"scope": "planet"}),
        (1, {"on_exceed": "explode"}),
        (1, {"on_exceed": "ask", "fallback_model": "cheap"}),
        (1, {"on_exceed": "fallback"}),
        (1, {"fallback_model": "cheap"}),
        (1, {"on_exceed": "fallback", "fallback_model": 5}),
        (1, {"on_exceed": "fallback", "fallback_model": ScriptedModel}),
        (1, {"reserve_output": -1}),
        (1, {"reserve_output": True}),
        (1, {"ledger": "budgets.db"}),
        (1, {"ledger": MemoryLedger}),
        (1, {"clock": 3}),
        (1, {"name": ""}),
        (1, {"budget_key": ""}),
        (1, {"on_unknown": "guess"}),
        (1, {"prices": 5}),
    ],
    ids=str,
)
def test_what_is_no_budget_is_refused(limit: Any, options: dict[str, Any]) -> None:
    with pytest.raises((UsageError, PriceError, LookupError)):
        Budget(limit, **options)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_what_fails_in_a_tree_of_adks_because_a_budget_has_stopped_an_agent_says_so() -> None:
    kids = [
        LlmAgent(name="one", model=dear(), output_key="topic"),
        LlmAgent(name="two", model=dear(), instruction="About {topic}."),
    ]
    tree = SequentialAgent(name="tree", sub_agents=[*kids])  # pyright: ignore[reportDeprecated]
    with pytest.raises(KeyError, match="Context variable not found") as caught:
        await Pipeline("p", tree).middleware(budget("0.5")).run("hi")
    first, *_ = caught.value.__notes__
    assert first.startswith("agent 'one' had failed before: BUDGET_EXHAUSTED: budget of $0.50")


# --- random schedules ----------------------------------------------------------------------------


_MINE: ContextVar[Reservation] = ContextVar("mine")


class Noting(SqliteLedger):
    """Lets a call know what was reserved for it."""

    async def reserve(self, account: str, amount: Money, limit: Money | None) -> Reservation | None:
        made = await super().reserve(account, amount, limit)
        if made is not None:
            _MINE.set(made)
        return made


class Killed(BaseException):
    """The process was killed; nothing of it runs any more."""


def answer(tokens: int, *, partial: bool = False) -> LlmResponse:
    used = types.GenerateContentResponseUsageMetadata(
        prompt_token_count=5, candidates_token_count=tokens, total_token_count=tokens + 5
    )
    content = types.Content(role="model", parts=[types.Part(text="x")])
    return LlmResponse(content=content, usage_metadata=used, partial=partial)


class Schedule:
    """Calls at once, in one or two processes, each of which ends in some way."""

    def __init__(self, draw: random.Random, ledgers: list[Any], name: str) -> None:
        self.draw = draw
        self.limit = draw.randint(1, 8)
        self.budgets = [budget(self.limit, ledger=each, scope="app", name=name) for each in ledgers]
        for each in self.budgets:
            each._owner = ("app", "u", "s", "r")
        self.true = 0
        self.killed = False

    async def run(self) -> None:
        made = [asyncio.ensure_future(self.call()) for _ in range(self.draw.randint(1, 10))]
        await asyncio.wait(made)
        for each in made:
            if not each.cancelled() and (error := each.exception()) is not None:
                assert isinstance(error, ConnectionError | Killed), error

    def balance(self) -> Balance:
        one = self.budgets[0]
        return one.ledger.balance(one._named(("app", "u", "s", "r")))

    async def call(self) -> None:
        one, most = self.draw.choice(self.budgets), self.draw.randint(0, 4) * 1000
        config = types.GenerateContentConfig(max_output_tokens=most)
        request = LlmRequest(model="dear", contents=[], config=config)
        sink = Sink(self.take)
        await one.wrap_model_request(ModelCall(request, sink=sink), self.next(one, most))

    async def take(self, fragment: Any) -> None:
        await asyncio.sleep(0)

    def next(self, one: Budget, most: int) -> Any:
        async def following(call: ModelCall) -> ModelReply:
            balance = self.balance()
            assert (balance.spent + balance.held).usd <= self.limit
            end = self.draw.choice(("whole", "streamed", "cancelled", "failed", "broken", "killed"))
            used = self.draw.randint(0, 4) * most // 4
            for _ in range(self.draw.randint(0, 3)):
                await asyncio.sleep(0)
            if end == "failed":
                raise ConnectionError
            if end == "killed":
                return self.kill(one)
            if end != "whole":
                await call.emit(answer(used // 2, partial=True))
                await call.emit(answer(used, partial=True))
            self.true += used
            if end == "broken":
                raise ConnectionError
            if end == "cancelled":
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
                await asyncio.sleep(0)
            return ModelReply([answer(used)])

        return following

    def kill(self, one: Budget) -> ModelReply:
        if not isinstance(one.ledger, Noting):
            raise ConnectionError
        del one.ledger._open[_MINE.get().id]  # nothing settles or renews it
        self.killed = True
        raise Killed


class Time:
    """A clock that is moved by hand."""

    at = 1_000_000.0

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.at += seconds


def test_no_schedule_overspends_or_leaks(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    option = pytestconfig.option
    count = option.examples or (10_000 if option.full else 150)
    draw, clock = random.Random(option.seed), Time()
    opened = [Noting(tmp_path / "l.db", clock=clock) for _ in range(2)]

    async def all_of_them() -> None:
        for at in range(count):
            ledgers: list[Any] = list(opened) if at % 2 else [MemoryLedger()]
            one = Schedule(draw, ledgers, f"b{at}")
            await one.run()
            if one.killed:
                clock.at += 61
            balance = one.balance()
            assert balance.held == Money(), at
            assert balance.spent.usd <= one.limit, at
            assert balance.spent == Money(Decimal(one.true) / 1000), at

    asyncio.run(all_of_them())
    for each in opened:
        each.close()


def test_limits_are_exact() -> None:
    assert Budget(0.1).limit.usd == Decimal("0.1")
    assert Budget("0.10").limit == Budget(Money.of("0.1")).limit == Budget(Decimal("0.1")).limit


def test_what_tells_budgets_apart(tmp_path: Path) -> None:
    def hashed(limit: Any, **options: Any) -> str:
        return content_hash(Agent("a").middleware(budget(limit, **options)).to_ir())

    shared = SqliteLedger(str(tmp_path / "b.db"))
    assert hashed(1) == hashed("1.00")
    found = [hashed(1), hashed(2), hashed(1, scope="user"), hashed(1, name="other")]
    found += [hashed(1, on_exceed="warn"), hashed(1, ledger=shared), hashed(1, budget_key="left")]
    found += [hashed(1, on_exceed="fallback", fallback_model=model) for model in ("cheap", "dear")]
    assert len({*found}) == len(found)
    kept = [budget(1), budget(1, scope="process"), budget(1, ledger=shared)]
    assert [bool(each.__process_memory__) for each in kept] == [True, False, False]

"""What each request to a model costs, on ADK's own Runner: metrics, spans, events, reports."""

from __future__ import annotations

import gc
import json
import logging
import pickle
import weakref
from contextlib import aclosing
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.sessions import InMemorySessionService
from google.adk.telemetry import tracing
from google.genai import types
from opentelemetry import trace
from opentelemetry._logs import NoOpLogger
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from adk_fluent import Agent, FanOut, Pipeline, race
from adk_fluent.backends.adk import replace_models
from adk_fluent.config import ExecutionConfig
from adk_fluent.cost import (
    Budget,
    CostAttributionMiddleware,
    CostRecord,
    CostReport,
    Money,
    PriceBooks,
    PriceError,
    PriceTable,
    TrafficAssumptions,
    Unknown,
    cost_attribution,
    cost_of,
)
from adk_fluent.cost._report import text_of
from adk_fluent.errors import UsageError
from adk_fluent.ir import MiddlewareRef
from adk_fluent.protocol import Middleware, ModelReply, RunResult, Sink, Usage
from adk_fluent.testing import Call, GeminiEmulator, ScriptedModel, reply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from conftest import Measured
    from google.adk.models.llm_response import LlmResponse

    from adk_fluent.protocol import ModelCall, NextModel

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]

SSE = ExecutionConfig(streaming_mode="sse")
#: A dollar for a prompt token, ten for an answer's: what is spent can be read off.
PRICES = {
    "small": {"input": 1, "output": 10, "cached": 0.5},
    "large": {"input": 100, "output": 1000},
}
COST = "adk_fluent.llm.cost"


def said(text: Any = "ok", prompt: int = 1000, output: int = 100, **more: Any) -> Any:
    """An answer of 0.002 USD by the small model."""
    parts = () if text is None else (text,)
    return reply(*parts, usage=Usage(prompt=prompt, output=output), **more)


def small(*replies: Any) -> ScriptedModel:
    return ScriptedModel(*replies, model="small")


def large(*replies: Any) -> ScriptedModel:
    return ScriptedModel(*replies, model="large")


def priced(**options: Any) -> CostAttributionMiddleware:
    return cost_attribution(prices=PRICES, **options)


@pytest.mark.parametrize("around", ["pipeline", "race"])
async def test_what_is_spent_after_the_last_answer_is_in_the_result(around: str) -> None:
    day = CostReport()
    spent = priced(on_record=day.add)
    slow = Agent("slow", small(said())) >> Agent("slower", small(said(latency=60)))
    contest = race(Agent("fast", large(said(latency=0.05))), slow)
    if around == "race":
        contest = contest.middleware(spent)
    whole = Agent("before", ScriptedModel(said())) >> contest
    if around == "pipeline":
        whole = whole.middleware(spent)
    result = await whole.run("a")
    told = pickle.loads(pickle.dumps(result))
    assert {"fast", "slow", "slower"} <= {each.agent for each in day.records}
    assert cost_of(told).total == day.total
    dearer = {name: {kind: usd * 2 for kind, usd in row.items()} for name, row in PRICES.items()}
    assert cost_of(told, prices=dearer).total.usd == day.total.usd * 2
    assert TrafficAssumptions.from_results([result, told]).measured_calls["slower"] == 1


# --- the metric ----------------------------------------------------------------------------------


async def test_a_call_is_counted_with_agent_and_models(metrics: Measured) -> None:
    result = await Agent("clerk", small(said())).middleware(priced()).run("hi")
    assert result.text == "ok"
    assert metrics == [
        (
            COST,
            0.002,
            {
                "gen_ai.agent.name": "clerk",
                "gen_ai.request.model": "small",
                "gen_ai.response.model": "small",
                "gen_ai.provider.name": "scriptedmodel",
                "adk_fluent.price.source": "table",
            },
        )
    ]


async def test_an_answer_that_no_model_was_asked_for_costs_nothing(metrics: Measured) -> None:
    async def kept(call: ModelCall, next: NextModel) -> ModelReply:
        return ModelReply((await next(call)).responses, asked=False)

    budget = Budget(1, prices=PRICES)
    clerk = Agent("clerk", small(said())).middleware(priced()).middleware(budget)
    with replace_models(kept):
        result = await clerk.run("hi")
    assert result.text == "ok"
    assert (cost_of(result).records, budget.balance(result).spent) == ([], Money())
    assert metrics(COST) == 0


async def test_each_call_of_a_tool_loop_and_each_step_is_counted(metrics: Measured) -> None:
    def look() -> str:
        """Look."""
        return "seen"

    first = Agent("first", small(said(Call("look", {})), said())).tool(look)
    second = Agent("second", large(said()))
    result = await (first >> second).middleware(priced()).run("hi")
    assert metrics(COST, gen_ai__agent__name="first") == pytest.approx(0.004)
    assert metrics(COST, gen_ai__agent__name="second") == pytest.approx(0.2)
    report = cost_of(result)
    assert report.total == Money.of("0.204")
    assert [(each.name, each.calls) for each in report.by_agent()] == [("second", 1), ("first", 2)]
    assert [each.name for each in report.by_model()] == ["large", "small"]
    paths = {event.node: event.path for event in result}
    assert [each.name for each in report.by_step()] == [paths["second"], paths["first"]]


@pytest.mark.parametrize("pipeline", [False, True])
async def test_an_agent_in_a_tool_is_counted_once(metrics: Measured, pipeline: bool) -> None:
    helper: Any = Agent("helper", large(said())).description("Helps.")
    helper = Pipeline("helpers", helper) if pipeline else helper
    call = Call("helpers" if pipeline else "helper", {"request": "x"})
    clerk = Agent("clerk", small(said(call), said()))
    result = await clerk.agent_tool(helper).middleware(priced()).run("hi")
    assert metrics(COST) == pytest.approx(0.204)
    assert metrics(COST, gen_ai__agent__name="helper") == pytest.approx(0.2)
    assert cost_of(result).total == Money.of("0.204")
    assert [each.agent for each in cost_of(result).records] == ["clerk", "helper", "clerk"]


async def test_parallel_branches_each_keep_their_own(metrics: Measured) -> None:
    agents = [Agent(f"a{n}", small(said(output=100 * (n + 1)))) for n in range(3)]
    result = await FanOut(*agents).middleware(priced()).run("hi")
    costs = {each.name: each.cost.usd for each in cost_of(result).by_agent()}
    assert costs == {"a0": Decimal("0.002"), "a1": Decimal("0.003"), "a2": Decimal("0.004")}
    assert len(cost_of(result).by_step()) == 3
    branches = [each.name for each in cost_of(result).by_branch()]
    assert branches == ["parallel.a2", "parallel.a1", "parallel.a0"]
    assert metrics(COST) == pytest.approx(0.009)


async def test_streamed_usage_is_the_last_and_not_the_sum(metrics: Measured) -> None:
    model = small(said(None, chunks=["a", "b", "c"]))
    result = await Agent("clerk", model).middleware(priced()).run("hi", config=SSE)
    assert metrics(COST) == pytest.approx(0.002)
    assert cost_of(result).total == Money.of("0.002")


async def test_on_gemini_over_http_and_its_chunks_that_each_report(metrics: Measured) -> None:
    with GeminiEmulator(said(None, chunks=["a", "b", "c"])) as gemini:
        agent = Agent("clerk", gemini.model()).middleware(cost_attribution())
        result = await agent.run("hi", config=SSE)
    expected = Decimal(1000) * Decimal("0.3") / 10**6 + Decimal(100) * Decimal("2.5") / 10**6
    assert cost_of(result).total.usd == expected
    assert metrics(COST, gen_ai__provider__name="gcp.gemini") == pytest.approx(float(expected))


async def test_a_stream_that_is_cut_off_costs_what_it_reported(metrics: Measured) -> None:
    class Reports(ScriptedModel):
        async def generate_content_async(
            self, llm_request: Any, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            async for each in ScriptedModel.generate_content_async(self, llm_request, stream):
                used = types.GenerateContentResponseUsageMetadata(
                    prompt_token_count=1000, candidates_token_count=100, total_token_count=1100
                )
                yield each.model_copy(update={"usage_metadata": used})

    report = CostReport()
    made: Any = Reports  # whose fields pyright does not see
    model = made(reply(chunks=["one", "two", "three"], pause=30), model="small")
    agent = Agent("clerk", model).middleware(priced(on_record=report.add))
    async with aclosing(agent.stream("hi", config=SSE)) as events:
        async for event in events:
            assert event.content == "one"
            break
    assert metrics(COST) == pytest.approx(0.002)
    assert report.total == Money.of("0.002")
    assert not report.records[0].estimated


class OwnSink:
    """Looks at fragments through a sink of its own."""

    async def wrap_model_request(self, call: ModelCall, next: NextModel) -> ModelReply:
        return await next(replace(call, sink=Sink(call.emit, call.emitted)))


class Keeps:
    """Has a sink that is its own, and notes who stands in it."""

    def __init__(self) -> None:
        self.found: list[bool] = []

    async def wrap_model_request(self, call: ModelCall, next: NextModel) -> ModelReply:
        sink = Sink(call.emit, call.emitted)
        before = sink.forward
        try:
            return await next(replace(call, sink=sink))
        finally:
            self.found.append(sink.forward is before)


@pytest.mark.parametrize("between", [False, True])
async def test_fragments_are_counted_once_and_sinks_left_as_they_are(between: bool) -> None:
    report, budget = CostReport(), Budget(5, prices=PRICES)
    model = small(reply(chunks=["word " * 40, "more"], pause=30))
    agent = Agent("clerk", model)
    keeps, costs = Keeps(), priced(on_record=report.add)
    for each in (keeps, costs, *([OwnSink()] if between else []), budget, OwnSink()):
        agent = agent.middleware(each)
    async with aclosing(agent.stream("hi", config=SSE)) as events:
        async for _ in events:
            break
    assert keeps.found == [True]
    (record,) = report.records
    assert record.estimated
    assert record.usage.output in (50, 51)  # the second may be on its way


async def test_a_stream_that_breaks_off_is_estimated(metrics: Measured) -> None:
    report = CostReport()
    broken = small(reply(chunks=["word " * 40], raises=ConnectionError("gone")))
    agent = Agent("clerk", broken).middleware(priced(on_record=report.add))
    with pytest.raises(ConnectionError):
        await agent.run("hi", config=SSE)
    (record,) = report.records
    assert record.estimated
    assert record.usage.output == 50
    assert metrics(COST) > 0


async def test_what_was_said_after_the_last_report_is_estimated() -> None:
    class Begins(ScriptedModel):
        async def generate_content_async(
            self, llm_request: Any, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            used = types.GenerateContentResponseUsageMetadata(prompt_token_count=1000)
            async for each in ScriptedModel.generate_content_async(self, llm_request, stream):
                yield each.model_copy(update={"usage_metadata": used})

    report = CostReport()
    made: Any = Begins
    model = made(reply(chunks=["word " * 8, "more"], pause=30), model="small")
    agent = Agent("clerk", model).middleware(priced(on_record=report.add))
    async with aclosing(agent.stream("hi", config=SSE)) as events:
        async for _ in events:
            break
    (record,) = report.records
    assert record.usage == Usage(prompt=1000, output=10)
    assert record.estimated


async def test_a_call_that_fails_before_it_says_anything_costs_nothing(metrics: Measured) -> None:
    with pytest.raises(ConnectionError):
        await Agent("a", small(reply(raises=ConnectionError("gone")))).middleware(priced()).run("x")
    assert metrics == []


class Unmetered:
    """Answers without the usage."""

    async def wrap_model_request(self, call: ModelCall, next: NextModel) -> ModelReply:
        made = await next(call)
        return ModelReply([r.model_copy(update={"usage_metadata": None}) for r in made.responses])


async def test_missing_usage_is_an_estimate_and_says_so() -> None:
    agent = Agent("clerk", small("x" * 400)).middleware(priced()).middleware(Unmetered())
    report = cost_of(await agent.run("y" * 3952))  # 48 characters are ADK's instruction
    (record,) = report.records
    assert record.estimated
    assert (record.usage.prompt, record.usage.output) == (1000, 100)
    assert report.total == Money.of("0.002")
    assert "1 of them with estimated tokens" in report.summary()


async def test_an_unknown_price_is_counted_and_never_zero(
    metrics: Measured, caplog: pytest.LogCaptureFixture
) -> None:
    odd = Agent("odd", ScriptedModel(said(), said(), model="house-9"))
    with caplog.at_level(logging.WARNING, "adk_fluent"):
        result = await (odd >> Agent("clerk", small(said()))).middleware(priced()).run("hi")
    report = cost_of(result)
    assert report.total == Money.of("0.002")
    assert report.unpriced == {"house-9": 1}
    assert "no price is known: house-9 (1)" in str(report)
    assert "| odd | unknown | 1 |" in report.to_markdown()
    assert metrics(COST) == pytest.approx(0.002)
    assert metrics("adk_fluent.llm.unpriced", gen_ai__request__model="house-9") == 1
    assert [each.message for each in caplog.records if "house-9" in each.message]


async def test_what_is_told_and_fails_loses_no_answer(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        said: Any = 0.01  # a price is Money

        def price(self, model: str, usage: Usage, at: Any, *, tier: str | None = None) -> Any:
            return self.said / (model != "dead")

    def told(record: CostRecord) -> None:
        raise KeyError("report")

    pipeline = Agent("clerk", small(said())) >> Agent("odd", ScriptedModel(said(), model="dead"))
    costs = cost_attribution(prices=Broken(), on_record=told)
    result = await pipeline.middleware(costs).run("hi")
    assert "the on_record= of cost_attribution has failed" in caplog.text
    reasons = [str(each.cost) for each in cost_of(result).records]
    assert "the price book Broken gives 0.01" in reasons[0]
    assert "the price book Broken raised ZeroDivisionError" in reasons[1]


class Half(PriceBooks):  # noqa: PLW1641  # that is the point
    """Takes half of what the books say, and is equal to books of the same name: has no hash."""

    name = "half"

    def quote(self, model: str, usage: Usage, at: Any, *, tier: str | None = None) -> Any:
        made = super().quote(model, usage, at, tier=tier)
        assert isinstance(made.money, Money)
        return made._replace(money=Money(made.money.usd / 2))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Half) and self.name == other.name


class HalfTable(PriceTable):
    """A table that takes half."""

    def price(self, model: str, usage: Usage, at: Any, *, tier: str | None = None) -> Any:
        made = super().price(model, usage, at, tier=tier)
        return Money(made.usd / 2) if isinstance(made, Money) else made


async def test_books_of_a_class_of_ones_own_are_asked_each_time() -> None:
    for books in (Half([PriceTable(PRICES)]), PriceBooks([HalfTable(PRICES)])):
        costs = cost_attribution(prices=books)
        result = await Agent("clerk", small(said(), said())).middleware(costs).run("hi")
        assert (result.text, cost_of(result).total) == ("ok", Money.of("0.001"))


async def test_what_is_known_of_prices_goes_with_the_middleware() -> None:
    table = PriceTable(PRICES)
    books = PriceBooks([table])
    held = weakref.ref(table)
    costs = cost_attribution(prices=books)
    await Agent("clerk", small(said())).middleware(costs).run("hi")
    del table, books, costs
    gc.collect()
    assert held() is None


async def test_requests_of_many_places_look_a_price_up_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    of_day = PriceBooks.of_day

    def noted(self: PriceBooks, model: str, day: Any, tier: str | None) -> Any:
        asked.append(model)
        return of_day(self, model, day, tier)

    monkeypatch.setattr(PriceBooks, "of_day", noted)
    monkeypatch.setattr("adk_fluent.cost._attribution._MOST", 1)  # models to keep
    costs = priced()
    for _ in range(2):
        agents = [Agent(f"a{n}", small(said())) for n in range(3)]
        result = await FanOut(*agents).middleware(costs).run("hi")
        assert {each.agent for each in cost_of(result).records} == {"a0", "a1", "a2"}
    assert asked == ["small"]
    await (Agent("b", large(said())) >> Agent("c", small(said()))).middleware(costs).run("hi")
    assert asked == ["small", "large", "small"]


async def test_the_model_that_answered_decides(metrics: Measured) -> None:
    class Elsewhere:
        async def wrap_model_request(self, call: ModelCall, next: NextModel) -> ModelReply:
            made = await next(call)
            return ModelReply(
                [r.model_copy(update={"model_version": "large"}) for r in made.responses]
            )

    agent = Agent("clerk", small(said())).middleware(priced()).middleware(Elsewhere())
    report = cost_of(await agent.run("hi"))
    assert (report.records[0].model, report.records[0].served) == ("small", "large")
    assert report.total == Money.of("0.2")
    assert metrics(COST, gen_ai__request__model="small", gen_ai__response__model="large") > 0.1


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # of the words set below
@pytest.mark.filterwarnings("ignore:.*is not a valid TrafficType")  # 1.x knows fewer
@pytest.mark.parametrize(
    ("traffic", "asked", "cost"),
    [
        ("ON_DEMAND_FLEX", None, "0.001"),
        ("ON_DEMAND", "flex", "0.002"),
        (None, "priority", "0.0036"),
        ("PROVISIONED_THROUGHPUT", None, None),
    ],
)
async def test_the_service_tier_is_that_of_the_answer_or_else_of_the_request(
    traffic: str | None, asked: str | None, cost: str | None
) -> None:
    class Tier:
        async def wrap_model_request(self, call: ModelCall, next: NextModel) -> ModelReply:
            if asked is not None:
                vars(call.request.config)["service_tier"] = asked  # 1.x's genai has no such field
            made = await next(call)
            for each in made.responses:
                if traffic is not None:
                    vars(each.usage_metadata)["traffic_type"] = traffic
            return made

    agent = Agent("clerk", small(said())).middleware(priced()).middleware(Tier())
    report = cost_of(await agent.run("hi"))
    (record,) = report.records
    assert record.cost == (
        Unknown("no price for the service tier 'provisioned throughput'")
        if cost is None
        else Money.of(cost)
    )


# --- charged once, wherever it stands ------------------------------------------------------------


class Twice:
    """Asks again, and throws the first answer away."""

    async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
        await next(call)
        return await next(call)


class Remembers:
    """Answers the second call with the answer of the first one."""

    def __init__(self) -> None:
        self.kept: ModelReply | None = None

    async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
        if self.kept is None:
            self.kept = await next(call)
        return self.kept


@pytest.mark.parametrize("outside", [True, False])
async def test_what_is_thrown_away_is_charged_wherever_it_stands(
    metrics: Measured, outside: bool
) -> None:
    stack = [priced(), Twice()] if outside else [Twice(), priced()]
    agent = Agent("clerk", small(said(), said("better", output=200)))
    for each in stack:
        agent = agent.middleware(each)
    result = await agent.run("hi")
    assert result.text == "better"
    assert metrics(COST) == pytest.approx(0.005)
    assert cost_of(result).total == Money.of("0.005")


@pytest.mark.parametrize("outside", [True, False])
async def test_what_was_sent_to_nobody_costs_nothing(metrics: Measured, outside: bool) -> None:
    memory = Remembers()
    stack: list[Any] = [priced(), memory] if outside else [memory, priced()]
    agent = Agent("clerk", small(said()))
    for each in stack:
        agent = agent.middleware(each)
    costs = [cost_of(await agent.run("hi")).total for _ in range(2)]
    assert costs == [Money.of("0.002"), Money()]
    assert metrics(COST) == pytest.approx(0.002)


async def test_what_a_budget_asks_costs_nothing_in_another_reply_either(metrics: Measured) -> None:
    class Anew(Middleware):
        async def wrap_model_request(self, call: ModelCall, next: NextModel) -> ModelReply:
            return ModelReply((await next(call)).responses)

    agent = Agent("clerk", small()).middleware(priced()).middleware(Anew())
    result = await agent.middleware(Budget("0.000001", on_exceed="ask", prices=PRICES)).run("hi")
    assert len(result.pending) == 1
    assert metrics(COST) == 0
    assert cost_of(result).total == Money()


async def test_an_answer_that_is_given_again_keeps_the_costs_of_each_call_apart() -> None:
    class Same(ScriptedModel):
        async def generate_content_async(
            self, llm_request: Any, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            made = ScriptedModel.generate_content_async(self, llm_request, stream)
            shared.extend([each async for each in made])
            yield shared[0]

    shared: list[Any] = []
    made: Any = Same
    model = made(said(), said(), said(), model="small")
    pipeline = FanOut(Agent("a", model), Agent("b", model)) >> Agent("c", model)
    for config in (ExecutionConfig(), SSE):
        result = await pipeline.middleware(priced()).run("hi", config=config)
        kept = [json.loads(e.custom_metadata["adk_fluent_cost"]) for e in result if e.usage]
        assert sorted([each["agent"] for each in rows] for rows in kept) == [["a"], ["b"], ["c"]]
        assert cost_of(result).total == Money.of("0.006")
        model = made(said(), said(), said(), model="small")
        pipeline = FanOut(Agent("a", model), Agent("b", model)) >> Agent("c", model)


async def test_an_answer_that_somebody_holds_is_left_as_it_is() -> None:
    class Holds(ScriptedModel):
        async def generate_content_async(
            self, llm_request: Any, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            async for each in ScriptedModel.generate_content_async(self, llm_request, stream):
                held.append(each)
                yield each

    held: list[Any] = []
    made: Any = Holds
    result = await Agent("a", made(said(), model="small")).middleware(priced()).run("hi")
    assert cost_of(result).total == Money.of("0.002")
    assert [each.custom_metadata for each in held] == [None]


async def test_requests_are_freed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # a web server of ADK in the same process keeps what is logged, and with it requests
    monkeypatch.setattr(tracing, "otel_logger", NoOpLogger("off"), raising=False)

    class Seen(ScriptedModel):
        async def generate_content_async(
            self, llm_request: Any, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            requests.append(weakref.ref(llm_request))
            async for each in ScriptedModel.generate_content_async(self, llm_request, stream):
                yield each

    requests: list[weakref.ref[Any]] = []
    made: Any = Seen
    pipeline = Agent("a", made(said(), model="small")) >> Agent("b", made(said(), model="small"))
    pipeline = pipeline.middleware(Budget(5, prices=PRICES)).middleware(priced())
    gc.collect()
    gc.disable()
    try:
        await pipeline.run("hi")
        assert [each() for each in requests] == [None, None]
    finally:
        gc.enable()


async def test_one_object_in_two_places_tells_of_each_charge_once() -> None:
    report = CostReport()
    costs = priced(on_record=report.add)
    other = priced(on_record=report.add)
    agent = Agent("clerk", small(said())).middleware(costs).middleware(other)
    result = await agent.run("hi", middleware=[costs])
    assert report.total == cost_of(result).total == Money.of("0.002")


async def test_several_of_them_charge_once(metrics: Measured) -> None:
    clerk = Agent("clerk", small(said())).middleware(priced())
    result = await (clerk >> Agent("b", small(said()))).middleware(priced()).run("hi")
    assert metrics(COST) == pytest.approx(0.004)
    assert cost_of(result).total == Money.of("0.004")


@pytest.mark.parametrize("given_outside", [False, True])
async def test_the_prices_of_whoever_was_given_some_hold(given_outside: bool) -> None:
    ways = [cost_attribution(), priced()]
    outer, inner = reversed(ways) if given_outside else ways
    result = await Agent("clerk", small(said())).middleware(outer).middleware(inner).run("hi")
    assert cost_of(result).total == Money.of("0.002")


async def test_around_a_part_alone(metrics: Measured) -> None:
    clerk = Agent("clerk", small(said())).middleware(priced(), scope="agent")
    await (clerk >> Agent("b", small(said()))).run("hi")
    assert metrics(COST) == metrics(COST, gen_ai__agent__name="clerk") == pytest.approx(0.002)


async def test_by_name(metrics: Measured) -> None:
    ref = MiddlewareRef("cost_attribution", {"prices": PRICES})
    result = await Agent("clerk", small(said())).middleware(ref).run("hi")
    assert cost_of(result).total == Money.of("0.002")


def test_it_is_explained_by_its_name() -> None:
    agent = Agent("clerk", "gemini-2.5-flash").middleware(priced()).middleware(Budget(0.5))
    assert "middleware cost_attribution, budget" in str(agent.explain())


# --- results -------------------------------------------------------------------------------------


async def test_records_survive_the_session_and_json() -> None:
    service = InMemorySessionService()
    agent = Agent("clerk", small(said())).middleware(priced())
    result = await agent.run("hi", session_service=service, session_id="s")
    session = await service.get_session(app_name=result.app_name, user_id="user", session_id="s")
    assert session is not None
    kept = [e.custom_metadata["adk_fluent_cost"] for e in session.events if e.custom_metadata]
    assert json.loads(kept[-1])[0]["usd"] == "0.002"
    report = cost_of(result)
    again = CostReport.from_dict(json.loads(json.dumps(report.to_dict())))
    assert again.records == report.records
    assert again.to_dict() == report.to_dict()


def test_a_record_is_written_without_what_is_at_its_default() -> None:
    least = CostRecord(agent="a", model="m", served="m")
    assert not hasattr(least, "__dict__")
    assert least.to_dict() == {"agent": "a", "model": "m", "usage": {}, "usd": "0"}
    full = CostRecord(
        agent='Ann "A"',
        model="m",
        served="m-001",
        provider="p",
        usage=Usage(prompt=1, output=2, image_output=1),
        cost=Unknown('no "price"\n'),
        source="s",
        estimated=True,
        tier="flex",
        path="s1",
        branch="b",
        at=1.5,
    )
    assert CostRecord.from_dict(full.to_dict()) == full
    assert full.to_dict()["usage"] == {"prompt": 1, "output": 2, "image_output": 1}
    half = CostRecord(agent="a", model="m", served="m", cost=Unknown("half a character: \ud83d"))
    for each in (least, full, half):
        assert json.loads(text_of([each, each])) == [each.to_dict()] * 2


async def test_without_the_middleware_events_are_priced_by_what_they_report() -> None:
    with GeminiEmulator(said()) as gemini:
        result = await Agent("clerk", gemini.model()).run("hi")
    assert cost_of(result).total == Money.of("0.00055")
    silent = await Agent("clerk", small(said())).run("hi")
    report = cost_of(silent)
    assert report.unpriced == {"unknown": 1}
    assert report.summary() == (
        "$0.00 for 1 model call; not in it: 1 call, since the run was not attributed; "
        "add .middleware(cost_attribution()) to it"
    )
    again = cost_of(silent, prices={"unknown": {"input": 1, "output": 1}})
    assert again.summary() == report.summary()


async def test_other_prices_price_anew() -> None:
    result = await Agent("clerk", small(said())).middleware(priced()).run("hi")
    assert cost_of(result, prices={"small": {"input": 2, "output": 0}}).total == Money.of("0.002")
    assert cost_of(result, prices={"small": {"input": 0, "output": 50}}).total == Money.of("0.005")


def test_a_report_is_a_table() -> None:
    records = [
        CostRecord(agent="a|b", model="m", served="m", cost=Money.of("0.0000001")),
        CostRecord(agent="c", model="n", served="n", cost=Money.of("1.5"), estimated=True),
        CostRecord(agent="c", model="k", served="k", cost=Unknown("?"), usage=Usage(prompt=1234)),
    ]
    report = CostReport(records)
    assert report.to_markdown() == (
        "$1.50 for 3 model calls, 1 of them with estimated tokens; not in it, since no price is "
        "known: k (1)\n\n"
        "| agent | cost | calls | input tokens | output tokens |\n|---|---:|---:|---:|---:|\n"
        "| c | $1.50 + 1 unpriced | 2 | 1,234 | 0 |\n"
        "| a\\|b | less than $0.000001 | 1 | 0 | 0 |\n\n"
        "| model | cost | calls | input tokens | output tokens |\n|---|---:|---:|---:|---:|\n"
        "| n | $1.50 | 1 | 0 | 0 |\n| m | less than $0.000001 | 1 | 0 | 0 |\n"
        "| k | unknown | 1 | 1,234 | 0 |"
    )
    assert CostReport().summary() == "$0.00 for 0 model calls"


def test_what_is_no_result_is_refused() -> None:
    with pytest.raises(PriceError, match=r"cost_of takes the result(.|\n)*cost_of\(await "):
        cost_of(5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(PriceError, match="cost_of takes the events"):
        cost_of(["hi"])  # pyright: ignore[reportArgumentType]
    with pytest.raises(PriceError, match="on_record="):
        cost_attribution(on_record=5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(PriceError, match="CostReport takes records"):
        CostReport([5])  # pyright: ignore[reportArgumentType]
    with pytest.raises(PriceError, match=r"CostReport\.add takes a record"):
        CostReport().add(5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match=r"cost_attribution\(clock="):
        cost_attribution(clock=5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="no records"):
        CostReport.from_dict({})
    with pytest.raises(ValueError, match="no report"):
        CostReport.from_dict([])  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="no record of costs"):
        CostReport.from_dict({"records": [{"agent": "a"}]})


async def test_what_a_client_put_there_is_passed_over() -> None:
    result = await Agent("clerk", small(said())).middleware(priced()).run("hi")
    event = result[-1]
    (row,) = json.loads(event.custom_metadata["adk_fluent_cost"])
    changed: list[dict[str, Any]] = [
        {"agent": None},
        {"path": []},
        {"at": float("inf")},
        {"at": 1e18},
        {"usd": "NaN"},
        {"usage": {"prompt": "9" * 9000}},
    ]
    rows = [json.dumps([{**row, **each}]) for each in changed]
    for foreign in ('[{"usd": "1"}, 7]', "{", "5", *rows):
        event.custom_metadata["adk_fluent_cost"] = foreign
        assert cost_of(result).records == []
    assert cost_of(RunResult()).total == Money()


# --- spans and live ------------------------------------------------------------------------------

_EXPORTER = InMemorySpanExporter()


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    provider: Any = trace.get_tracer_provider()
    if not hasattr(provider, "add_span_processor"):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    if not hasattr(provider, "_of_these_costs"):
        provider._of_these_costs = True
        provider.add_span_processor(SimpleSpanProcessor(_EXPORTER))
    _EXPORTER.clear()
    yield _EXPORTER
    _EXPORTER.clear()


@pytest.mark.parametrize("config", [ExecutionConfig(), SSE], ids=["whole", "streamed"])
async def test_the_cost_stands_on_adks_own_span(
    config: ExecutionConfig, spans: InMemorySpanExporter
) -> None:
    model = small(said(prompt=0, output=10_000), said(None, chunks=["a"], prompt=0, output=20_000))
    agent = Agent("clerk", model).middleware(priced()).middleware(Twice())
    await agent.run("hi", config=config)
    names = ("generate_content", "call_llm")
    ended = [each for each in spans.get_finished_spans() if each.name.startswith(names)]
    found = [(each.attributes or {}).get("adk_fluent.cost_usd") for each in ended]
    assert [each for each in found if each is not None] == [0.3]  # 0.1 and 0.2, to the cent


async def test_a_live_run_is_refused() -> None:
    from adk_fluent.errors import AdkFluentError

    agent = Agent("clerk", small(said())).middleware(priced())
    with pytest.raises(AdkFluentError, match="a live connection is none"):
        agent.to_app(config=ExecutionConfig(streaming_mode="bidi"))

"""Models that are chosen at run time, on ADK's own Runner: which one is asked, and what is told."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.sessions import InMemorySessionService
from pydantic import BaseModel

from adk_fluent import Agent, FanOut, map_over
from adk_fluent.backends.adk import to_agent
from adk_fluent.config import ExecutionConfig
from adk_fluent.cost import (
    Budget,
    FunctionError,
    MemoryLedger,
    NoCandidateError,
    PriceError,
    cost_attribution,
    cost_of,
    estimate_cost,
)
from adk_fluent.errors import AdkFluentError, BuildError, UsageError
from adk_fluent.ir import ModelCandidate, from_json, to_json
from adk_fluent.protocol import Usage
from adk_fluent.testing import Call, ScriptedModel, reply

if TYPE_CHECKING:
    from adk_fluent.protocol import ModelCall, ModelReply, NextModel

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]

SSE = ExecutionConfig(streaming_mode="sse")
#: A thousand answer tokens cost a dollar, ten cents and a cent; prompts are free.
PRICES = {
    "best": {"input": 0, "output": 1000},
    "good": {"input": 0, "output": 100},
    "cheap": {"input": 0, "output": 10},
}


def said(text: str, output: int = 1000, **more: Any) -> Any:
    return reply(text, usage=Usage(prompt=10, output=output), **more)


class Desk:
    """Three models, and candidates of them."""

    def __init__(self, **replies: Any) -> None:
        self.models = {
            name: ScriptedModel(*replies.get(name, ()), default=said(f"{name} says"), model=name)
            for name in PRICES
        }

    def candidate(self, name: str, **more: Any) -> ModelCandidate:
        tier = {"cheap": 1, "good": 2, "best": 3}[name]
        made: dict[str, Any] = {"quality_tier": tier, "prices": PRICES[name], **more}
        return ModelCandidate(self.models[name], **made)

    def agent(self, name: str = "a", **options: Any) -> Agent:
        options.setdefault("candidates", [self.candidate(each) for each in PRICES])
        return Agent(name).model_select(**options)

    @property
    def asked(self) -> dict[str, int]:
        return {name: n for name, each in self.models.items() if (n := len(each.calls))}


def no(ctx: Any, request: Any) -> bool:
    return False


def adaptive(desk: Desk, *rejected: str, **more: Any) -> Agent:
    def will_do(reply: ModelReply) -> bool:
        return reply.text not in rejected

    return desk.agent(strategy="adaptive", judge=will_do, **more)


# --- which one -----------------------------------------------------------------------------------


async def test_the_cheapest_call_whose_condition_holds() -> None:
    desk = Desk()
    assert (await desk.agent().run("hi")).text == "cheap says"
    candidates = [
        desk.candidate("best"),
        desk.candidate("good"),
        desk.candidate("cheap", condition=no),
    ]
    assert (await desk.agent(candidates=candidates).run("hi")).text == "good says"


async def test_the_call_counts_and_not_the_price_of_a_token() -> None:
    """One is cheap for long prompts, the other for long answers."""
    reader = ScriptedModel(default="reader", model="reader")
    writer = ScriptedModel(default="writer", model="writer")
    agent = Agent("a").model_select(
        candidates=[
            ModelCandidate(reader, prices={"input": 1, "output": 100}),
            ModelCandidate(writer, prices={"input": 50, "output": 1}),
        ]
    )
    assert (await agent.run("hi")).text == "writer"
    assert (await agent.run("hi " * 4000)).text == "reader"


async def test_conditions_are_given_the_context_and_the_request() -> None:
    desk = Desk()

    async def pays(ctx: Any, request: Any) -> bool:
        assert request.contents[-1].parts[0].text == "hi"
        return ctx.state["plan"] == "pro"

    candidates = [desk.candidate("cheap"), desk.candidate("best", condition=pays)]
    agent = desk.agent(strategy="quality_optimized", candidates=candidates)
    assert (await agent.run("hi", state={"plan": "pro"})).text == "best says"
    assert (await agent.run("hi", state={"plan": "free"})).text == "cheap says"


async def test_the_best_and_of_the_best_the_cheapest() -> None:
    desk = Desk()
    assert (await desk.agent(strategy="quality_optimized").run("hi")).text == "best says"
    candidates = [desk.candidate(each, quality_tier=1) for each in PRICES]
    agent = desk.agent(strategy="quality_optimized", candidates=candidates)
    assert (await agent.run("hi")).text == "cheap says"


async def test_a_prompt_above_a_limit_goes_to_another() -> None:
    desk = Desk()
    candidates = [desk.candidate("cheap", max_tokens=100), desk.candidate("good")]
    agent = desk.agent(candidates=candidates)
    assert (await agent.run("hi")).text == "cheap says"
    assert (await agent.run("hi " * 400)).text == "good says"


async def test_a_model_without_a_price_is_never_the_cheapest() -> None:
    desk = Desk()
    candidates = [desk.candidate("cheap", prices=()), desk.candidate("best")]
    assert (await desk.agent(candidates=candidates).run("hi")).text == "best says"


async def test_where_none_takes_it_the_error_says_why() -> None:
    desk = Desk()
    candidates = [desk.candidate("cheap", max_tokens=1), desk.candidate("best", condition=no)]
    agent = desk.agent(candidates=candidates)
    with pytest.raises(NoCandidateError) as caught:
        await agent.run("hello")
    assert caught.value.found == (
        "cheap: takes 1 tokens; best: its condition does not hold; the prompt has about 13"
    )
    with_fallback = desk.agent(candidates=candidates, fallback_model=desk.models["good"])
    assert (await with_fallback.run("hello")).text == "good says"


def raising(*_: Any) -> bool:
    raise KeyError("tier")


async def test_a_condition_that_fails_is_an_error_that_says_where() -> None:
    desk = Desk()
    candidates = [desk.candidate("cheap", condition=raising)]
    agent = desk.agent(candidates=candidates, fallback_model=desk.models["good"])
    with pytest.raises(FunctionError, match="the condition of cheap of agent a has fail") as caught:
        await agent.run("hi")
    error = caught.value
    assert (error.code, error.found) == ("ADKF805", "KeyError: 'tier'")
    assert str(error.location).rpartition("/")[2].startswith("test_selecting_adk.py:")
    assert isinstance(error.__cause__, KeyError)
    assert error.help == "correct it; it is written as lambda ctx, request: ..."
    assert desk.asked == {}


async def test_candidates_come_instead_of_a_model_that_stays_with_those_below() -> None:
    desk = Desk()
    desk.models["cheap"] = ScriptedModel(
        Call("transfer_to_agent", {"agent_name": "b"}), model="cheap"
    )
    below = ScriptedModel("below says", model="below")
    agent = Agent("a", below).model_select(candidates=[desk.candidate("cheap")])
    assert (await agent.delegates(Agent("b")).run("hi")).text == "below says"
    assert (len(below.calls), desk.asked) == (1, {"cheap": 1})
    assert estimate_cost(agent).per_model.keys() == {"cheap"}


# --- a budget ------------------------------------------------------------------------------------


def bounded(desk: Desk, **more: Any) -> Agent:
    candidates = [desk.candidate("best"), desk.candidate("good")]
    return desk.agent(
        strategy="budget_bounded",
        candidates=candidates,
        fallback_model=desk.models["cheap"],
        **more,
    )


@pytest.mark.parametrize("config", [None, SSE], ids=["whole", "streamed"])
async def test_the_fallback_is_asked_once_money_is_short(config: ExecutionConfig | None) -> None:
    desk = Desk()
    agent = bounded(desk, budget_key="left")
    limit = Budget(0.25, reserve_output=1000, scope="session", prices={"cheap": PRICES["cheap"]})
    service = InMemorySessionService()
    texts: list[str | None] = []
    left: list[float] = []
    codes: list[str] = []
    for _ in range(9):
        result = await agent.middleware(limit).run(
            "hi", session_service=service, session_id="s", config=config
        )
        texts.append(result.text)
        left.append(round(result.state["left"], 4))
        codes += [each.code for each in result.errors]
    assert texts == ["good says"] * 2 + ["cheap says"] * 5 + ["", ""]
    assert left == [0.15, 0.05, 0.04, 0.03, 0.02, 0.01, 0.0, 0.0, 0.0]
    assert codes == ["BUDGET_EXHAUSTED"] * 2


async def test_parallel_agents_never_overspend() -> None:
    desk = Desk()
    agents = [
        desk.agent(
            f"a{n}",
            strategy="budget_bounded",
            candidates=[desk.candidate("good")],
            fallback_model=desk.models["cheap"],
        )
        for n in range(10)
    ]
    limit = Budget(
        0.25, reserve_output=1000, prices={"cheap": PRICES["cheap"]}, ledger=MemoryLedger()
    )
    result = await FanOut(*agents).middleware(limit).middleware(cost_attribution()).run("hi")
    assert desk.asked == {"good": 2, "cheap": 5}
    assert [each.code for each in result.errors] == ["BUDGET_EXHAUSTED"] * 3
    assert limit.balance(result).spent.usd == limit.limit.usd


# --- adaptive ------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", [None, SSE], ids=["whole", "streamed"])
async def test_an_answer_that_will_not_do_is_asked_of_a_better_model(
    config: ExecutionConfig | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "adk_fluent")
    desk = Desk()
    agent = adaptive(desk, "cheap says").middleware(cost_attribution(prices=PRICES))
    result = await agent.run("hi", config=config)
    assert result.text == "good says"
    assert [(each.model, each.cost) for each in cost_of(result).records] == [
        ("cheap", cost_of(result).records[0].cost),
        ("good", cost_of(result).records[1].cost),
    ]
    assert str(cost_of(result).total) == "$0.11"
    assert "good answered for $0.11 in all; best at once would have cost $1.00" in caplog.text


async def test_nobody_reads_a_part_of_an_answer_that_will_not_do() -> None:
    async def parts(agent: Agent) -> list[str]:
        events = agent.stream("hi", config=SSE)
        return [each.content or "" async for each in events if each.is_partial]

    bad, good = reply(chunks=["Non", "sense"]), reply(chunks=["Paid ", "back"])
    assert await parts(adaptive(Desk(cheap=[bad], good=[good]), "Nonsense")) == ["Paid ", "back"]
    assert await parts(adaptive(Desk(cheap=[good]), "Nonsense")) == ["Paid ", "back"]


async def test_a_judge_may_give_a_score_and_be_async() -> None:
    desk = Desk()

    async def score(reply: ModelReply) -> float:
        return {"cheap says": 0.49, "good says": 0.5}[reply.text]

    assert (await desk.agent(strategy="adaptive", judge=score).run("hi")).text == "good says"

    for said in (None, 80, float("nan")):

        def wrong(reply: ModelReply, said: Any = said) -> Any:
            return said

        with pytest.raises(UsageError, match="gives a bool, or a score from 0 to 1") as raised:
            await desk.agent(strategy="adaptive", judge=wrong).run("hi")
        assert f"found: {said}" in str(raised.value)


async def test_a_judge_that_fails_is_an_error_that_says_where() -> None:
    with pytest.raises(FunctionError, match="the judge of agent a has failed") as caught:
        await Desk().agent(strategy="adaptive", judge=raising).run("hi")
    assert (caught.value.found, caught.value.node) == ("KeyError: 'tier'", "a")
    assert caught.value.location is not None


async def test_the_last_one_is_not_judged() -> None:
    desk = Desk()
    judged: list[str] = []

    def never(reply: ModelReply) -> bool:
        judged.append(reply.text)
        return False

    assert (await desk.agent(strategy="adaptive", judge=never).run("hi")).text == "best says"
    assert judged == ["cheap says", "good says"]


async def test_a_session_stays_with_the_better_model() -> None:
    desk, service = Desk(cheap=[said("no")]), InMemorySessionService()
    agent = adaptive(desk, "no")
    for _ in range(2):
        result = await agent.run("hi", session_service=service, session_id="s")
        assert result.text == "good says"
    assert desk.asked == {"cheap": 1, "good": 2}
    assert (await agent.run("hi", session_service=service, session_id="t")).text == "cheap says"


async def test_never_after_a_tool_call() -> None:
    """Its answer is the same model's, and is not judged."""
    ran: list[str] = []

    def look(order: str) -> str:
        """Look an order up."""
        ran.append(order)
        return "paid"

    desk = Desk(cheap=[said(Call("look", {"order": "7"})), said("no")])  # pyright: ignore[reportArgumentType]
    result = await adaptive(desk, "no").tool(look).run("hi")
    assert (result.text, ran, desk.asked) == ("no", ["7"], {"cheap": 2})


async def test_what_has_called_a_tool_gets_its_result() -> None:
    """Also where another one would be chosen by now, and after a person was asked."""

    def look() -> str:
        """Look at all."""
        return "much " * 2000

    desk = Desk(cheap=[said(Call("look", {}))])  # pyright: ignore[reportArgumentType]
    candidates = [desk.candidate("good"), desk.candidate("cheap", max_tokens=500)]
    result = await desk.agent(candidates=candidates).tool(look).run("hi")
    assert (result.text, desk.asked) == ("cheap says", {"cheap": 2})

    kept: dict[str, Any] = {"session_service": InMemorySessionService(), "session_id": "s"}
    asking = Desk(cheap=[said(Call("look", {}))])  # pyright: ignore[reportArgumentType]
    candidates = [asking.candidate("good"), asking.candidate("cheap", max_tokens=500)]
    agent = asking.agent(candidates=candidates).tool(look, require_confirmation=True)
    paused = await agent.run("hi", **kept)
    result = await agent.run(paused.pending[0].answer(True), **kept)
    assert (result.text, asking.asked) == ("cheap says", {"cheap": 2})


async def test_without_money_for_a_better_answer_the_one_there_is_stands() -> None:
    desk = Desk()
    limit = Budget(0.05, reserve_output=1000)
    result = await adaptive(desk, "cheap says").middleware(limit).run("hi")
    assert (result.text, desk.asked, result.errors) == ("cheap says", {"cheap": 1}, [])


async def test_an_adaptive_one_has_a_fallback_too(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is compared where nothing was asked."""
    caplog.set_level(logging.INFO, "adk_fluent")
    desk = Desk()
    candidates = [desk.candidate("good"), desk.candidate("best")]
    agent = adaptive(desk, candidates=candidates, fallback_model=desk.models["cheap"])
    limit = Budget(0.05, reserve_output=1000, prices={"cheap": PRICES["cheap"]})
    assert (await agent.middleware(limit).run("hi")).text == "cheap says"
    assert desk.asked == {"cheap": 1}
    assert "would have cost" not in caplog.text


async def test_an_error_in_the_place_of_an_answer_will_not_do() -> None:
    desk = Desk(cheap=[reply(error_code="SAFETY")])
    assert (await adaptive(desk).run("hi")).text == "good says"


# --- what is told --------------------------------------------------------------------------------


async def test_what_served_a_call_is_in_the_response_and_the_report() -> None:
    desk = Desk()
    result = await desk.agent().middleware(cost_attribution()).run("hi")
    assert result[-1].metadata["model_version"] == "cheap"
    (record,) = cost_of(result).records
    assert (record.model, record.served, record.source) == ("cheap", "cheap", "candidates")
    assert str(record.cost) == "$0.01"


async def test_what_served_a_call_is_on_the_span() -> None:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    spans = InMemorySpanExporter()
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    provider.add_span_processor(SimpleSpanProcessor(spans))
    result = await adaptive(Desk(), "cheap says").run("hi")
    assert result.text == "good says"
    found = [dict(each.attributes or {}) for each in spans.get_finished_spans()]
    (asked,) = [each for each in found if "gen_ai.response.model" in each]
    assert asked["gen_ai.request.model"] == asked["gen_ai.response.model"] == "good"
    assert asked["adk_fluent.counterfactual_usd"] == 1.0


async def test_other_middlewares_have_to_do_with_the_model_that_was_chosen() -> None:
    seen: list[str] = []

    class Sees:
        async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
            seen.append(call.model.model)
            return await next(call)

    await adaptive(Desk(), "cheap says").middleware(Sees()).run("hi")
    assert seen == ["cheap", "good"]


async def test_the_books_of_whoever_charges_come_first() -> None:
    mine = {"cheap": {"input": 0, "output": 7}}
    result = await Desk().agent().middleware(cost_attribution(prices=mine)).run("hi")
    assert str(cost_of(result).total) == "$0.007"


# --- where it stands -----------------------------------------------------------------------------


class Verdict(BaseModel):
    good: bool


async def test_typed_answers_loops_maps_and_delegates() -> None:
    typed = Desk(cheap=[said('{"good": true}')])
    result = await typed.agent().produces(Verdict).run("hi")
    assert result.state["good"] is True

    looped = Desk()
    body = looped.agent().writes("text")
    assert (await (body * 3).run("hi")).text
    assert looped.asked == {"cheap": 3}

    mapped = Desk(cheap=[said("no")] * 3)
    each = map_over("items", adaptive(mapped, "no"), output_key="out")
    result = await each.run("hi", state={"items": ["x", "y", "z"]})
    assert result.state["out"] == ["good says"] * 3

    handing = Desk(cheap=[said(Call("transfer_to_agent", {"agent_name": "b"}))])  # pyright: ignore[reportArgumentType]
    first = [handing.candidate("best"), handing.candidate("cheap")]
    desk = handing.agent(candidates=first).delegates(Agent("b").description("Helps."))
    assert (await desk.run("hi")).text == "cheap says"
    assert handing.asked == {"cheap": 2}


async def test_a_mock_stands_for_all_candidates() -> None:
    desk = Desk()
    assert (await desk.agent().mock("M").run("hi")).text == "M"
    assert desk.asked == {}


async def test_agents_in_tools_choose_too() -> None:
    desk = Desk()
    helper = desk.agent("helper").description("Helps.")
    calls = ScriptedModel(said(Call("helper", {"request": "x"})), said("done"), model="best")  # pyright: ignore[reportArgumentType]
    assert (await Agent("clerk", calls).agent_tool(helper).run("hi")).text == "done"
    assert desk.asked == {"cheap": 1}


async def test_pipelines_from_files_choose_too() -> None:
    """By names; models that are objects and functions are no data."""
    named = Agent("a").model_select(
        strategy="budget_bounded",
        candidates=[ModelCandidate("gemini-2.5-pro", quality_tier=2, prices=PRICES["best"])],
        fallback_model="gemini-2.5-flash",
    )
    again = from_json(to_json(named.to_ir()))
    assert again == named.to_ir()
    (agent,) = to_agent(again).sub_agents
    assert isinstance(agent, LlmAgent)
    assert agent.canonical_model.model == "gemini-2.5-pro"


def test_a_live_run_is_refused() -> None:
    with pytest.raises(AdkFluentError, match="chooses for each model call"):
        Desk().agent().to_app(config=ExecutionConfig(streaming_mode="bidi"))


def test_two_agents_of_one_name_that_choose_otherwise_are_refused() -> None:
    desk = Desk()
    helper = Agent("h", desk.models["best"]).agent_tool(desk.agent("a").description("Helps."))
    other = desk.agent("a", candidates=[desk.candidate("best")])
    with pytest.raises(BuildError, match="two agents called 'a' choose among different models"):
        (helper >> other).to_app()
    plain = Agent("a", desk.models["best"])
    with pytest.raises(BuildError, match="different models, or only one does"):
        (helper >> plain).to_app()
    (helper >> plain.mock("M")).to_app()


def test_a_candidates_price_is_held_against_the_known_one() -> None:
    per_thousand = ModelCandidate("gemini-2.5-pro", prices={"input": 0.00125, "output": 0.01})
    agent = Agent("a").model_select(candidates=[per_thousand])
    (found,) = agent.check().errors
    assert found.code == "CST001"
    both = "$0.00125 for a million tokens, or $1.25 if it is the price of a thousand"
    assert both in found.message
    with pytest.raises(PriceError, match=r"input: this is 0\.001 times what is known of it"):
        agent.to_app()
    twice = [ModelCandidate("m", prices={"input": n, "output": 1}) for n in (1, 2)]
    with pytest.raises(PriceError, match="two candidates called 'm' have different prices"):
        Agent("a").model_select(candidates=twice).to_app()
    misspelt = ModelCandidate("m", prices={"inptu": 1, "output": 1})
    with pytest.raises(PriceError, match="there is no kind of tokens 'inptu'"):
        Agent("a").model_select(candidates=[misspelt]).to_app()
    good = ModelCandidate("gemini-2.5-pro", 0.00125, 0.01)
    assert not Agent("a").model_select(candidates=[good]).check().errors

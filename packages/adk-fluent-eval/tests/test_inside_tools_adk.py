"""What agents inside of tools do: ADK runs them in sessions of their own."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest
from eval_judges import HAS_EXTRA, NO_EXTRA
from eval_programs import case, report_of, says, scripted, sequence
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.events.event import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

from adk_fluent import Agent
from adk_fluent.eval import EvalError, FluentEvalSuite, MetricStatus, Status
from adk_fluent.eval._preflight._metric_adk import VERSION
from adk_fluent.eval._running._target_adk import Targets
from adk_fluent.protocol import Money, Usage
from adk_fluent.testing import Call, reply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from adk_fluent.eval import CaseOutcome, FluentCase, MetricScore

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]"),  # ADK 1.x says so
    pytest.mark.filterwarnings("ignore:.*is deprecated.*:DeprecationWarning"),  # ADK 2.x's own
]

USAGE = Usage(prompt=10, output=5)


class Prices:
    """Each model's tokens cost what its name says."""

    def price(self, model: str, usage: Usage, at: Any, **_: Any) -> Money:
        return Money.of(float(model) * usage.total)


def search(query: str) -> str:
    """Search the web."""
    return f"found {query}"


def inner(**fields: Any) -> LlmAgent:
    """An agent that calls a tool, and then answers."""
    answers = [reply(Call("search", {"query": "rain"}), usage=USAGE), reply("Rain.", usage=USAGE)]
    return LlmAgent(
        name="searcher",
        model=scripted(*answers, model="0.1"),
        tools=[search],
        output_key="weather",
        **fields,
    )


def adks() -> LlmAgent:
    """One built with ADK that has the other for a tool."""
    answers = [
        reply(Call("searcher", {"request": "rain?"}), usage=USAGE),
        reply("It rains.", usage=USAGE),
    ]
    model = scripted(*answers, model="0.001")
    return LlmAgent(name="boss", model=model, tools=[AgentTool(inner())])


def ours() -> Any:
    """The same, built here."""
    answers = [
        reply(Call("searcher", {"request": "rain?"}), usage=USAGE),
        reply("It rains.", usage=USAGE),
    ]
    return Agent("boss", scripted(*answers, model="0.001")).tool(AgentTool(inner()))


@pytest.fixture(params=[adks, ours])
def program(request: pytest.FixtureRequest) -> Any:
    return request.param()


@pytest.fixture(
    params=[
        "light",
        pytest.param("local", marks=pytest.mark.skipif(not HAS_EXTRA, reason=NO_EXTRA)),
    ]
)
def engine(request: pytest.FixtureRequest) -> str:
    if request.param == "local" and VERSION < (2,):
        pytest.skip("ADK's service of 1.x runs no plugins, and tells nothing of tools")
    return request.param


async def ran(program: Any, each: FluentCase, **options: Any) -> CaseOutcome:
    """What a run of one case comes to."""
    return (await report_of(program, each, **options)).outcomes[0]


def budget(outcome: CaseOutcome) -> MetricScore:
    return next(each for each in outcome.scores if each.name == "adk_fluent_budget")


async def test_what_they_take_counts(program: Any, engine: Any) -> None:
    outcome = await ran(
        program, case(max_tokens=60, max_tool_calls=2), engine=engine, prices=Prices()
    )
    assert outcome.status is Status.PASSED
    assert outcome.tokens.total == 60
    assert outcome.turns[0].model_calls == 4
    assert outcome.cost_usd == pytest.approx(30 * 0.1 + 30 * 0.001)


async def test_what_they_take_can_be_too_much(program: Any, engine: Any) -> None:
    outcome = await ran(
        program,
        case(max_tokens=59, max_tool_calls=1, max_cost_usd=3),
        engine=engine,
        prices=Prices(),
    )
    assert outcome.reasons == [
        "max_cost_usd: 3.03 USD of 3 USD",
        "max_tokens: 60 tokens of 59 tokens",
        "max_tool_calls: 2 of 1",
    ]


async def test_what_they_do_is_told_between(program: Any, engine: Any) -> None:
    outcome = await ran(program, case(), engine=engine)
    told = [
        (step.who, step.tool.name if step.tool else step.text)
        for step in outcome.turns[0].steps
        if step.tool or step.text
    ]
    assert told == [
        ("boss", "searcher"),
        ("searcher (inside of searcher)", "search"),
        ("searcher (inside of searcher)", "Rain."),
        ("boss", "It rains."),
    ]
    [outer] = outcome.tool_uses
    assert outer.response == {"result": "Rain."}
    [_, called] = outcome.turns[0].all_tool_uses
    assert called.response == {"result": "found rain"}


async def test_what_they_call_is_mocked_and_told(program: Any, engine: Any) -> None:
    outcome = await ran(
        program, case(mock_tool_outputs={"search": {"result": "snow"}}), engine=engine
    )
    [_, called] = outcome.turns[0].all_tool_uses
    assert (called.mocked, called.response) == (True, {"result": "snow"})


async def test_what_they_write_is_theirs(program: Any, engine: Any) -> None:
    expected = {"searcher.weather": "Rain.", "weather": "Rain."}
    outcome = await ran(program, case(state_assertions=expected), engine=engine)
    assert outcome.status is Status.PASSED, outcome.reasons


async def test_trajectories_are_of_the_session(program: Any, engine: Any) -> None:
    outcome = await ran(program, case(expected_trajectory=["searcher"]), engine=engine)
    assert outcome.status is Status.PASSED, outcome.reasons


async def test_a_trajectory_of_what_is_inside_costs_nothing(program: Any) -> None:
    suite = FluentEvalSuite("s", program, [case(expected_trajectory=["searcher", "search"])])
    with pytest.raises(EvalError, match=r"'search', which an agent inside of a tool calls"):
        await suite.run()


def test_what_is_also_called_outside_may_be_expected() -> None:
    program = LlmAgent(name="boss", model=says("ok"), tools=[search, AgentTool(inner())])
    assert Targets(program).of(case()).inner_tools == frozenset()


async def test_other_plugins_keep_nothing_from_it(engine: Any) -> None:
    class Greedy(BasePlugin):
        """Answers all events and models itself, so that plugins after it see nothing."""

        async def on_event_callback(self, *, invocation_context: Any, event: Any) -> Any:
            return event

        async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> Any:
            return llm_response

    outcome = await ran(adks(), case(), engine=engine, plugins=[Greedy(name="greedy")])
    assert outcome.tokens.total == 60
    assert len(outcome.turns[0].all_tool_uses) == 2


# --- models that do not say what they took -------------------------------------------------------


class Mute(BaseLlm):
    """A model that does not say what its answers took."""

    async def generate_content_async(
        self, llm_request: Any, stream: bool = False
    ) -> AsyncGenerator[LlmResponse]:
        yield LlmResponse(content=types.ModelContent("ok"))


async def test_unknown_tokens_pass_no_budget(engine: Any) -> None:
    program = LlmAgent(name="a", model=Mute(model="mute"))
    outcome = await ran(program, case(max_tokens=1_000_000), engine=engine)
    assert outcome.status is Status.ERROR
    assert budget(outcome).status is MetricStatus.NOT_EVALUATED
    assert "max_tokens: model 'mute' does not say what its answer took" in outcome.reasons[0]
    assert outcome.turns[0].model_calls == 1


async def test_unknown_tokens_have_no_price(engine: Any) -> None:
    program = LlmAgent(name="a", model=Mute(model="0.1"))
    outcome = await ran(program, case(max_cost_usd=100), engine=engine, prices=Prices())
    assert outcome.status is Status.ERROR
    assert outcome.cost_usd is None
    assert "max_cost_usd: model '0.1' does not say" in outcome.reasons[0]


async def test_known_tokens_can_be_too_many_by_themselves(engine: Any) -> None:
    told = LlmAgent(name="a", model=says(reply("ok", usage=USAGE)))
    program = sequence("s", told, LlmAgent(name="b", model=Mute(model="mute")))
    outcome = await ran(program, case(max_tokens=10), engine=engine)
    assert outcome.status is Status.FAILED
    assert outcome.reasons == ["max_tokens: 15 tokens of 10 tokens"]


async def test_an_agent_that_asks_no_model_takes_nothing(engine: Any) -> None:
    def answer(callback_context: Any) -> types.Content:
        return types.ModelContent("no model was asked")

    program = LlmAgent(name="a", model=says("ok"), before_agent_callback=answer)
    outcome = await ran(program, case(max_tokens=0), engine=engine)
    assert outcome.status is Status.PASSED, outcome.reasons
    assert outcome.turns[0].model_calls == 0


@pytest.mark.skipif(not HAS_EXTRA or VERSION >= (2,), reason="of ADK's own service of 1.x")
@pytest.mark.parametrize(
    ("fields", "is_fine"),
    [({"max_tokens": 9}, False), ({"max_tool_calls": 9}, False), ({"max_latency_s": 60}, True)],
)
async def test_where_nothing_inside_is_seen_no_budget_is_kept(
    program: Any, fields: Any, is_fine: Any
) -> None:
    suite = FluentEvalSuite("s", program, [case(**fields)])
    with nullcontext() if is_fine else pytest.raises(EvalError, match="are not seen"):
        assert (await suite.run(engine="local")).ok


@pytest.mark.skipif(not HAS_EXTRA or VERSION >= (2,), reason="of ADK's own service of 1.x")
async def test_unknown_tokens_pass_no_budget_of_events() -> None:
    class Finished(Mute):
        """As Gemini is: it says why it stopped."""

        async def generate_content_async(
            self, llm_request: Any, stream: bool = False
        ) -> AsyncGenerator[LlmResponse]:
            stop = types.FinishReason.STOP
            yield LlmResponse(content=types.ModelContent("ok"), finish_reason=stop)

    program = LlmAgent(name="a", model=Finished(model="mute"))
    outcome = await ran(program, case(max_tokens=1_000_000), engine="local")
    assert outcome.status is Status.ERROR
    assert "model 'mute' does not say" in outcome.reasons[0]


# --- what only events tell -----------------------------------------------------------------------


def told(prompt: int | None = 500, **fields: Any) -> types.GenerateContentResponseUsageMetadata:
    return types.GenerateContentResponseUsageMetadata(prompt_token_count=prompt, **fields)


class Foreign(BaseAgent):
    """An agent of another framework, which tells in its events what its model took."""

    async def _run_async_impl(self, ctx: Any) -> AsyncGenerator[Event]:
        yield Event(
            author=self.name,
            invocation_id=ctx.invocation_id,
            content=types.ModelContent("ok"),
            usage_metadata=told(),
        )


def short_cut(callback_context: Any, llm_request: Any) -> LlmResponse:
    """Another model answers in the place of the agent's."""
    return LlmResponse(content=types.ModelContent("ok"), usage_metadata=told())


@pytest.mark.parametrize(
    "make",
    [
        lambda: Foreign(name="foreign"),
        lambda: LlmAgent(name="a", model=says("ok"), before_model_callback=short_cut),
        lambda: LlmAgent(
            name="a",
            model=scripted(Call("foreign", {"request": "x"}), "ok"),
            tools=[AgentTool(Foreign(name="foreign"))],
        ),
    ],
    ids=["agent", "callback", "inside"],
)
async def test_what_only_events_tell_counts(make: Any, engine: Any) -> None:
    outcome = await ran(make(), case(max_tokens=499), engine=engine)
    assert outcome.status is Status.FAILED, outcome.reasons
    assert 500 <= outcome.tokens.total < 600


async def test_an_answer_and_its_event_count_once(engine: Any) -> None:
    program = LlmAgent(name="a", model=scripted(*[reply("ok", usage=USAGE)] * 2))
    outcome = await ran(sequence("s", program), case(["Hi", "Ho"]), engine=engine)
    assert [turn.tokens.total for turn in outcome.turns] == [15, 15]
    assert [turn.model_calls for turn in outcome.turns] == [1, 1]


class Vague(Mute):
    """A model whose usage has no counts, or only a sum."""

    total: int | None = None

    async def generate_content_async(
        self, llm_request: Any, stream: bool = False
    ) -> AsyncGenerator[LlmResponse]:
        usage = told(None, total_token_count=self.total)
        yield LlmResponse(content=types.ModelContent("ok"), usage_metadata=usage)


@pytest.mark.parametrize("total", [None, 5_000])
async def test_usage_without_counts_is_none(engine: Any, total: Any) -> None:
    program = LlmAgent(name="a", model=Vague(model="vague", total=total))
    outcome = await ran(program, case(max_tokens=1_000_000), engine=engine)
    assert outcome.status is Status.ERROR
    assert "model 'vague' does not say" in outcome.reasons[0]
    assert outcome.turns[0].model_calls == 1


@pytest.mark.parametrize(
    ("fields", "is_fine"),
    [
        ({"max_tokens": 1_000}, False),
        ({"max_tool_calls": 9}, False),
        ({"state_assertions": {"searcher.weather": None}}, False),
        ({"state_assertions": {"weather": "Rain."}, "max_latency_s": 60}, True),
    ],
)
async def test_what_runs_without_plugins_is_not_judged_unseen(fields: Any, is_fine: Any) -> None:
    answers = [Call("searcher", {"request": "rain?"}), "It rains."]
    tool = AgentTool(inner(), include_plugins=False)
    program = LlmAgent(name="boss", model=scripted(*answers), tools=[tool])
    suite = FluentEvalSuite("s", program, [case(**fields)])
    expects = nullcontext() if is_fine else pytest.raises(EvalError, match="include_plugins=False")
    with expects:
        assert (await suite.run()).ok


async def test_tools_side_by_side_come_before_what_they_lead_to(engine: Any) -> None:
    calls = reply(Call("fast", {"request": "x"}), Call("slow", {"request": "x"}))
    tools: list[Any] = [
        AgentTool(LlmAgent(name="fast", model=says("quick"))),
        AgentTool(LlmAgent(name="slow", model=says(reply("late", latency=0.05)))),
    ]
    program = LlmAgent(name="boss", model=scripted(calls, "done"), tools=tools)
    outcome = await ran(program, case(), engine=engine)
    said = [step.text for step in outcome.turns[0].steps if step.text]
    assert said == ["quick", "late", "done"]

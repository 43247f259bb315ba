"""Every code example of the v5 specification, sections 1 to 11.

`spec_examples.md` holds them as written. What exists here runs, or is compared with what we have,
field by field; a correction cites its number in section 3 of DESIGN.md. What comes with a wheel
that is not installed must name that wheel, and what a later version of core brings must say that
there is no such thing yet: those tests fail when it arrives, which is when to rewrite them.
"""

from __future__ import annotations

import ast
import asyncio
import dataclasses
import json
import re
import shlex
import subprocess
import sys
from datetime import date
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import pytest

import adk_fluent
from adk_fluent import Agent, FanOut, contracts, ir
from adk_fluent._registry import found
from adk_fluent.config import ExecutionConfig, TelemetryConfig
from adk_fluent.contracts import ContractReport, check_all
from adk_fluent.distributed import BoundaryError, InlineEngine, split
from adk_fluent.errors import (
    MissingLayerError,
    StateKeyError,
    UnknownNameError,
    UnsupportedConfigError,
    UnsupportedNodeError,
    UsageError,
)
from adk_fluent.ir import (
    AgentNode,
    ModelCandidate,
    ModelSelectorNode,
    Ref,
    RemoteAgentNode,
    RouteNode,
    SequenceNode,
    StateFieldRef,
)
from adk_fluent.protocol import Middleware

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_BLOCK = re.compile(r"^## (\S+)\n\n```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_TEXT = Path(__file__).with_name("spec_examples.md").read_text("utf-8")
EXAMPLES = {name: (language, code) for name, language, code in _BLOCK.findall(_TEXT)}
PYTHON = {name: code for name, (language, code) in EXAMPLES.items() if language == "python"}


def execute(name: str, code: str | None = None, **names: Any) -> dict[str, Any]:
    """Run an example with the names it takes for granted."""
    space: dict[str, Any] = {
        **{name: getattr(adk_fluent, name) for name in adk_fluent.__all__},
        **{name: getattr(ir, name) for name in ir.__all__},
        **names,
    }
    source = f"from __future__ import annotations\n{PYTHON[name] if code is None else code}"
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    program = compile(source, f"spec {name}", "exec", flags, dont_inherit=True)
    waiting = eval(program, space)
    if waiting is not None:
        asyncio.run(waiting)
    return space


def billing_state() -> Any:
    """Section 1.2's schema."""
    return execute("1.2", Annotated=Annotated)["BillingState"]


# --- all of them ---------------------------------------------------------------------------------


def test_every_example_is_tested() -> None:
    here = Path(__file__).read_text("utf-8")
    tested = {name for name in EXAMPLES if re.search(rf'"{re.escape(name)}"', here)}
    assert tested == EXAMPLES.keys()
    assert len(EXAMPLES) == 43


@pytest.mark.parametrize("name", PYTHON)
def test_every_example_is_python(name: str) -> None:
    ast.parse(PYTHON[name])


# --- 1: state ------------------------------------------------------------------------------------


def test_1_2_scopes_are_prefixes() -> None:
    """As written; correction 8 is about what type checkers make of it."""
    fields = billing_state().__state_fields__
    assert {ref.name: ref.scope for ref in fields.values()} == {
        **dict.fromkeys(["intent", "confidence", "ticket_id", "resolution"], "session"),
        "user_tier": "user",
        "app_version": "app",
        "scratch": "temp",
    }
    assert {"intent", "user:user_tier", "app:app_version", "temp:scratch"} < fields.keys()


def test_1_3_fields_of_a_schema_are_typed_keys() -> None:
    schema = billing_state()
    node = execute("1.3", BillingState=schema)["pipeline"].build()
    classifier, resolver = node.steps
    assert [ref.key for ref in classifier.writes_keys] == ["intent", "confidence"]
    ref = resolver.reads_keys[0]
    assert ref == StateFieldRef("intent", str)
    assert (ref.name, ref.type, ref.scope) == ("intent", str, "session")
    assert resolver.writes_keys[0] == StateFieldRef("ticket_id", str | None, default=None)
    assert repr(schema.intent) == "BillingState.intent: str"


def test_1_4_bound_state_is_typed() -> None:
    schema = billing_state()
    names: dict[str, Any] = {"BillingState": schema, "generate_id": lambda: "1234"}
    create_ticket = execute("1.4", **names)["create_ticket"]
    state: dict[str, Any] = {"intent": "refund"}
    assert create_ticket("q", state) == "Created ticket for refund"
    assert state["ticket_id"] == "T-1234"
    with pytest.raises(TypeError, match=r"cannot be given 42 \(int\)"):
        schema.bind(state).ticket_id = 42
    with pytest.raises(StateKeyError, match="keys intent, ticket_id"):
        _ = schema.bind(state).confidence


def test_1_7_schemas_are_put_together() -> None:
    from adk_fluent.state import SchemaCompositionError, StateSchema

    space = execute("1.7", StateSchema=StateSchema)
    whole = space["BillingPipelineState"]
    assert set(whole.__state_fields__) == {"intent", "confidence", "ticket_id", "resolution"}
    clash = PYTHON["1.7"].replace("ticket_id: str", "intent: int")
    assert clash != PYTHON["1.7"]
    with pytest.raises(SchemaCompositionError, match="two different fields 'intent'"):
        execute("1.7", clash, StateSchema=StateSchema)


def test_1_5_the_issues_have_their_names_and_codes() -> None:
    """Correction 7: the algorithm is unsound; ours is another one, with the same names."""
    names = {code.name for code in contracts.CODES.values()}
    for issue in ("ReadBeforeWrite", "TypeMismatch", "ScopeMismatch", "DeadState"):
        assert issue in names
    assert "issues.append(ReadBeforeWrite(" in PYTHON["1.5"]
    assert "SchemaViolation" in names


# --- 2: streams ----------------------------------------------------------------------------------


def shape(cls: Any) -> dict[str, Any]:
    """Names of a data class's fields with their defaults."""
    return {field.name: field.default for field in dataclasses.fields(cls)}


def assert_has(ours: Any, theirs: Any) -> None:
    """Ours has the fields of theirs, in their order and with their defaults."""
    have, want = shape(ours), shape(theirs)
    assert [name for name in have if name in want] == list(want)
    for name, default in want.items():
        if default is not dataclasses.MISSING:
            assert have[name] == default, name


def test_2_2_edge_semantics_are_data() -> None:
    spec = execute("2.2", dataclass=dataclasses.dataclass)
    assert_has(ir.EdgeSemantics, spec["EdgeSemantics"])
    assert shape(ir.EdgeSemantics) == shape(spec["EdgeSemantics"])


def test_2_3_streaming_to_the_next_step_is_data() -> None:
    pipeline = execute("2.3")["pipeline"].build()
    assert isinstance(pipeline, ir.SequenceNode)
    assert pipeline.edge_semantics == (ir.EdgeSemantics("full"), ir.EdgeSemantics("token"))


@pytest.mark.adk
def test_2_4_streaming_to_the_next_step_comes_later() -> None:
    with pytest.raises(UnsupportedNodeError, match="streaming between steps does not work yet"):
        execute("2.3")["pipeline"].to_app()


@pytest.mark.adk
async def test_2_3_the_first_to_complete_is_kept() -> None:
    from adk_fluent.testing import ScriptedModel, reply, rule

    _, parallel = PYTHON["2.3"].split("\n\n")
    parallel = cast("FanOut", execute("2.3", parallel)["parallel"])
    rules = [rule(agent="search_a", reply=reply("slow", latency=60)), rule(reply="fast")]
    config = ExecutionConfig(default_model=Ref.to(ScriptedModel(rules=rules)))
    assert await parallel.ask_async("search", config=config) == "fast"
    assert cast("ir.ParallelNode", parallel.build()).merge == "first_complete"


def never(node: object) -> bool:
    return False


def test_2_5_streams_into_a_route_are_found_by_patterns() -> None:
    """Correction 15: the last of the n edges leads to the caller, so it has no child after it."""
    code = PYTHON["2.5"].replace("enumerate(edges)", "enumerate(edges[:-1])")
    check = execute("2.5", code, has_upstream_token_streaming=never, StreamingRouteConflict=str)[
        "check_streaming_contracts"
    ]
    token, full = ir.EdgeSemantics("token"), ir.EdgeSemantics()
    route = RouteNode("by_intent", "intent", default=AgentNode("b"))
    steps = (AgentNode("a"), route)
    for edges, routes in (((token, full), ["by_intent"]), ((full, token), [])):
        sequence = SequenceNode("s", steps, edges)
        assert check(sequence) == routes
        ours = contracts.check_streaming_contracts(sequence)
        assert [(each.node, type(each)) for each in ours] == [
            (name, contracts.StreamingRouteConflict) for name in routes
        ]


# --- 3: cost -------------------------------------------------------------------------------------


def test_3_2_selectors_are_data() -> None:
    spec = execute("3.2", dataclass=dataclasses.dataclass)
    assert_has(ModelCandidate, spec["ModelCandidate"])
    assert_has(ModelSelectorNode, spec["ModelSelectorNode"])


CANDIDATES = (
    # Correction 4: the spec's numbers are prices per million tokens, not per thousand.
    ModelCandidate("gemini-2.5-flash", 0.15 / 1000, 0.60 / 1000, quality_tier=1),
    ModelCandidate("gemini-2.5-pro", 1.25 / 1000, 5.00 / 1000, quality_tier=2),
)


def selecting_agent() -> AgentNode:
    selector = ModelSelectorNode(
        "classifier_model",
        strategy="budget_bounded",
        candidates=CANDIDATES,
        budget_key="remaining_budget",
        fallback_model="gemini-2.5-flash",
    )
    return AgentNode("classifier", selector=selector, instruction="Classify: {user_query}")


def test_3_3_the_setter_makes_a_selector() -> None:
    """Correction 4: prices like these are per million tokens, and refused with both readings."""
    with pytest.raises(
        UsageError, match=r"\$150 for a million, or \$0\.15 if it is meant for a mil"
    ):
        execute("3.3")
    priced = re.sub(r"(\d\.\d\d), (\d\.\d\d),", r"\1 / 1000, \2 / 1000,", PYTHON["3.3"])
    made = execute("3.3", priced)["agent"].build()
    assert isinstance(made, AgentNode)
    assert made.selector is not None
    assert made.selector.strategy == "budget_bounded"
    assert [each.model for each in made.selector.candidates] == [
        "gemini-2.5-flash",
        "gemini-2.5-pro",
    ]
    assert made.selector.budget_key == "remaining_budget"
    assert made.instruction == "Classify: {user_query}"


def as_written() -> AgentNode:
    flash = ModelCandidate("gemini-2.5-flash", 0.15, 0.60, quality_tier=1)
    return AgentNode("a", selector=ModelSelectorNode("m", candidates=(flash,)))


def test_3_3_its_prices_are_held_against_the_known_ones() -> None:
    """Right by correction 4; as written, it is found."""
    assert [each.code for each in check_all(selecting_agent()).errors] == []
    assert [each.code for each in check_all(as_written()).errors] == ["CST001"]


@pytest.mark.adk
async def test_3_3_it_runs_and_heeds_a_budget() -> None:
    from adk_fluent.cost import Budget
    from adk_fluent.testing import ScriptedModel

    model = ScriptedModel(default="refund", model="gemini-2.5-flash-lite")
    agent = (
        Agent("classifier")
        .model_select(
            strategy="budget_bounded",
            candidates=[ModelCandidate(model)],
            budget_key="remaining_budget",
            fallback_model=model,
        )
        .instruct("Classify: {user_query}")
    )
    result = await agent.middleware(Budget(0.01)).run("Go.", state={"user_query": "money back"})
    assert result.text == "refund"
    assert 0.0099 < result.state["remaining_budget"] < 0.01


def test_3_4_costs_are_estimated(capsys: pytest.CaptureFixture[str]) -> None:
    """As written: 500 and 200 tokens of each of two calls, 10 000 times a day."""
    from adk_fluent import Route

    def agent(name: str) -> Agent:
        return Agent(name, "gemini-2.5-flash").history("none")

    route = Route("intent").eq("billing", agent("billing")).eq("technical", agent("technical"))
    pipeline = agent("classify").writes("intent") >> route.otherwise(agent("general"))
    execute("3.4", pipeline=pipeline)
    one = (500 * 0.30 + 200 * 2.50) / 1_000_000
    assert capsys.readouterr().out == f"Estimated daily cost: ${2 * one * 10_000:.2f}\n"


@pytest.mark.adk
@pytest.mark.parametrize(
    ("name", "class_name", "arguments"),
    [("3.5", "CostAttributionMiddleware", ()), ("5.3", "OTelEnrichmentMiddleware", ("billing",))],
)
def test_a_plain_class_with_hooks_is_a_middleware(
    name: str, class_name: str, arguments: tuple[str, ...]
) -> None:
    """As written. Correction 4: a budget does not live in state; 2: the span is set elsewhere."""
    seen: list[Any] = []
    middleware = execute(name, extract_usage=seen.append)[class_name](*arguments)
    middleware._estimate_cost = estimate  # what the examples leave to the reader
    assert isinstance(middleware, Middleware)
    agent = Agent("a").mock("x").middleware(middleware)
    if name == "3.5":  # it asks ADK's RunConfig for the model, which has none
        with pytest.raises(AttributeError, match="'RunConfig' object has no attribute 'model'"):
            agent.ask("hello")
        return
    assert agent.ask("hello") == "x"
    assert len(seen) == 1


def estimate(request: Any) -> float:
    return 0.0


# --- 4: A2A --------------------------------------------------------------------------------------


def test_4_1_remote_agents_are_data() -> None:
    spec = execute("4.1", dataclass=dataclasses.dataclass)
    assert_has(RemoteAgentNode, spec["RemoteAgentNode"])


def test_4_2_a_remote_agent_stands_in_a_pipeline() -> None:
    pipeline = execute("4.2")["pipeline"].build()
    assert isinstance(pipeline, ir.SequenceNode)
    assert [step.name for step in pipeline.steps] == [
        "classifier",
        "payment_processor",
        "responder",
    ]
    remote = pipeline.steps[1]
    assert remote == RemoteAgentNode(
        "payment_processor",
        endpoint="https://payments.internal/a2a",
        capabilities=("process_refund", "check_balance"),
        timeout_seconds=15.0,
        fallback=AgentNode("fallback_processor", instruction="Handle payment manually"),
    )


with_a2a = pytest.mark.skipif("a2a" not in found(), reason="it needs google-adk 2.13")


@with_a2a
@pytest.mark.adk
def test_4_3_it_compiles_to_an_agent_with_a_fallback_beside_it() -> None:
    """ADR-003: a `BaseAgent` that overrides `_run_async_impl` alone."""
    from google.adk.agents.base_agent import BaseAgent

    root = execute("4.2")["pipeline"].to_app().root_agent
    remote = root.find_agent("payment_processor")
    assert isinstance(remote, BaseAgent)
    assert type(remote)._run_async_impl is not BaseAgent._run_async_impl
    assert type(remote).run_async is BaseAgent.run_async
    fallback = root.find_agent("fallback_processor")
    assert fallback is not None
    assert fallback.parent_agent is root


@with_a2a
@pytest.mark.adk
async def test_4_3_status_updates_are_events_and_a_failure_starts_the_fallback() -> None:
    """With scripted models, the address of nobody, and somebody who writes `resolution`."""
    source = PYTHON["4.2"].replace("https://payments.internal/a2a", "http://127.0.0.1:9/a2a")
    source = source.replace('"gemini-2.5-flash"', "scripted")
    source = source.replace('Agent("fallback_processor")', 'Agent("fallback_processor", scripted)')
    source = source.replace('manually")', 'manually").outputs("resolution")')
    from adk_fluent.testing import ScriptedModel

    made = execute("4.2", source, scripted=ScriptedModel(default="done"))
    result = await made["pipeline"].run("Refund.", state={"user_query": "refund"})
    assert [each.author for each in result if each.is_final] == [
        "classifier",
        "fallback_processor",
        "responder",
    ]
    assert result.state["resolution"] == "done"


async def shown_at(url: str) -> Any:
    import httpx

    async with httpx.AsyncClient() as http:
        return (await http.get(url)).json()


@with_a2a
@pytest.mark.adk
def test_4_4_a_pipeline_has_a_card_and_is_served() -> None:
    """On a free port, and asked for its card there before the loop ends."""
    from adk_fluent.testing import ScriptedModel

    pipeline = Agent("billing", ScriptedModel(default="paid")).description("Refunds orders.")
    source = PYTHON["4.4"].replace("port=8080", "port=0")
    more = "shown = await shown_at(server.card_url)\nawait server.stop()"
    names = {"pipeline": pipeline, "config": None, "shown_at": shown_at}
    made = execute("4.4", f"{source}\n{more}", **names)
    assert made["card"].skills[0].description == "Refunds orders."
    assert made["shown"]["description"] == "Billing support agent with refund processing"
    assert made["shown"]["url"] == "https://support.example.com/a2a"  # as clients of 0.3 read it


@with_a2a
@pytest.mark.adk
def test_4_5_a_directory_finds_an_agent_which_becomes_a_step() -> None:
    """With a card in the place of the directory's address, at which nobody is."""
    payments = Agent("payments").description("Pays.")
    card = payments.to_agent_card(endpoint="https://payments.internal/a2a")
    card.skills[0].id = "process_refund"
    source = PYTHON["4.5"].replace('"https://directory.internal/a2a"', "card")
    steps = execute("4.5", source, card=card)["pipeline"].build().steps
    assert [step.name for step in steps] == ["classifier", "payments", "responder"]
    assert steps[1].endpoint == "https://payments.internal/a2a"


# --- 5: telemetry --------------------------------------------------------------------------------


def test_5_1_the_span_hierarchy_is_one_of_adk_1() -> None:
    """Correction 2: ADK 2.x has no `invocation` and no `call_llm` by default. It is no code."""
    assert EXAMPLES["5.1"][0] == "text"
    assert "call_llm" in EXAMPLES["5.1"][1]


@pytest.mark.adk
def test_5_4_metrics_are_opentelemetrys_own() -> None:
    from opentelemetry import metrics

    made = execute("5.4", metrics=metrics)
    assert {"_llm_cost", "_llm_tokens", "_pipeline_duration"} <= made.keys()


@pytest.mark.adk
def test_5_6_telemetry_is_configured_and_costs_are_attributed() -> None:
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    config = execute("5.6", my_exporter=exporter)["config"]
    assert isinstance(config, ExecutionConfig)
    assert isinstance(config.telemetry, TelemetryConfig)
    assert config.app_name == "support"
    assert config.telemetry.custom_exporters == (exporter,)
    assert config.telemetry.enable_cost_metrics
    assert hash(config) == hash(dataclasses.replace(config))
    assert ir.verify(ir.AppNode("support", AgentNode("a"), execution=config)) == ()
    from adk_fluent.cost import cost_of

    offline = dataclasses.replace(config.telemetry, trace_to_cloud=False)
    config = dataclasses.replace(config, telemetry=offline)
    result = asyncio.run(Agent("a").mock("x").run("hello", config=config))
    assert [each.agent for each in cost_of(result).records] == ["a"]


# --- 6: evaluation -------------------------------------------------------------------------------

#: A metric that Google Cloud computes: its lines are left out where an example runs.
_CLOUD = re.compile(r"^ *PrebuiltMetrics\.RESPONSE_EVALUATION_SCORE.*\n", re.MULTILINE)


def billing_desk() -> Any:
    """What section 6 evaluates: an agent that classifies a message, then calls one other tool."""
    from adk_fluent.testing import Call, ScriptedModel, rule

    def classify_intent(intent: str, tool_context: Any) -> str:
        """Note what the user wants."""
        tool_context.state["intent"], tool_context.state["confidence"] = intent, 0.9
        return f"it is {intent}"

    def create_ticket() -> str:
        """Open a ticket."""
        return "T-1"

    def process_refund() -> str:
        """Pay back."""
        return "paid back"

    def lookup_docs() -> str:
        """Look into the manual."""
        return "Press reset"

    intents = {"bill": "billing_dispute", "refund": "refund", "password": "technical"}
    next_tool = {
        "billing_dispute": "create_ticket",
        "refund": "process_refund",
        "technical": "lookup_docs",
    }
    model = ScriptedModel(
        rules=[
            *(
                rule(f"it is {intent}", reply="noted", agent="classifier")
                for intent in intents.values()
            ),
            *(
                rule(word, reply=Call("classify_intent", {"intent": intent}), agent="classifier")
                for word, intent in intents.items()
            ),
            rule("[result create_ticket", reply="I opened ticket T-1."),
            rule("[result ", reply="It is done."),
            *(rule(word, reply=Call(next_tool[intent])) for word, intent in intents.items()),
        ],
        default="Hello!",
    )
    classifier = Agent("classifier", model).tool(classify_intent)
    worker = Agent("worker", model)
    for each in (create_ticket, process_refund, lookup_docs):
        worker = worker.tool(each)
    return classifier >> worker


@pytest.mark.adk
async def test_6_3_a_suite_runs() -> None:
    """Correction 6: a metric that cannot be computed is refused; it never passes silently."""
    from adk_fluent.eval import MetricUnavailableError

    with pytest.raises(MetricUnavailableError, match="'response_evaluation_score'"):
        execute("6.3", pipeline=billing_desk())["suite"].check()
    code, left_out = _CLOUD.subn("", PYTHON["6.3"])
    assert left_out == 2
    report = await execute("6.3", code, pipeline=billing_desk())["suite"].run()
    assert report.suite == "billing_pipeline_v2"
    assert report.ok, report.to_markdown()
    assert [each.run for each in report.outcomes] == [1, 2] * 3
    assert {tag: each.counting for tag, each in report.per_tag.items()} == {
        "billing": 4,
        "dispute": 2,
        "refund": 2,
        "technical": 2,
    }


def test_6_4_a_case_has_the_fields_in_another_order() -> None:
    """Sequences and mappings of any kind are taken, so their defaults are empty ones, not lists."""
    from adk_fluent.eval import FluentCase

    spec = execute("6.4", dataclass=dataclasses.dataclass, field=dataclasses.field)["FluentCase"]
    ours, theirs = FluentCase("x"), spec("x")
    assert shape(FluentCase).keys() > shape(spec).keys()
    for name in shape(spec):
        have, want = getattr(ours, name), getattr(theirs, name)
        assert have == want or (not have and not want), name


@pytest.mark.adk
def test_6_4_a_case_is_compiled_to_adks() -> None:
    """Correction 6: what the example makes of ADK's types is not in ADK; what it means is."""
    from adk_fluent.eval import FluentCase, FluentEvalSuite

    assert {"ToolUse", "InitialSession"} <= set(re.findall(r"\w+", PYTHON["6.4b"]))
    case = FluentCase(
        ["My bill is wrong", "Well?"],
        expected_trajectory=["classify_intent", "create_ticket"],
        mock_tool_outputs={"create_ticket": "T-9"},
        reference_response="I opened ticket T-9.",
        initial_state={"tier": "gold"},
        metadata={"id": "two-turns"},
    )
    [made] = FluentEvalSuite("billing", billing_desk(), [case]).to_eval_set().eval_cases
    assert made.eval_id == "two-turns"
    assert made.conversation
    first, last = made.conversation
    said: list[Any] = [each.user_content.parts for each in (first, last)]
    assert [parts[0].text for parts in said] == case.input
    assert (first.intermediate_data, first.final_response) == (None, None)
    calls = getattr(last.intermediate_data, "tool_uses", ())
    assert [each.name for each in calls] == case.expected_trajectory
    assert last.final_response
    assert last.final_response.parts
    assert last.final_response.parts[0].text == case.reference_response
    assert made.session_input
    assert made.session_input.state == {"tier": "gold"}


@pytest.mark.adk
async def test_6_5_a_run_gives_adks_results_by_case() -> None:
    """Correction 6: none of the calls in the example is as ADK has it. Criterion 10 runs it."""
    from google.adk.evaluation.eval_metrics import EvalStatus
    from google.adk.evaluation.eval_result import EvalCaseResult

    from adk_fluent.eval import FluentCase, FluentEvalSuite

    assert "async def run(self, **kwargs) -> FluentEvalReport" in PYTHON["6.5"]
    cases = [
        FluentCase("a refund", expected_trajectory=["process_refund"], id="wrong"),
        FluentCase("a password", expected_trajectory=["classify_intent", "lookup_docs"], id="ok"),
    ]
    report = await FluentEvalSuite("s", billing_desk(), cases).run()
    assert [type(each) for each in report.case_results] == [EvalCaseResult] * 2
    assert [(each.eval_id, each.final_eval_status) for each in report.case_results] == [
        ("wrong", EvalStatus.FAILED),
        ("ok", EvalStatus.PASSED),
    ]


@pytest.mark.adk
async def test_6_6_a_report_has_what_is_asked_and_matches_cases_by_id(tmp_path: Path) -> None:
    """Correction 6: the example puts cases and results together by position."""
    from adk_fluent.eval import FluentCase, FluentEvalReport, FluentEvalSuite, RegressionReport

    spec: Any = execute("6.6", dataclass=dataclasses.dataclass)["FluentEvalReport"]
    members = cast("dict[str, Any]", vars(spec))
    asked = {*shape(spec), *(name for name in members if not name.startswith("_"))}
    assert "zip(self.case_results, baseline.case_results)" in PYTHON["6.6"]

    def report_of(*intents: str) -> FluentEvalReport:
        cases = [
            FluentCase(
                f"a {word}", expected_trajectory=["classify_intent", tool], id=word, tags=[tool]
            )
            for word, tool in zip(("refund", "password"), intents, strict=True)
        ]
        return FluentEvalSuite("s", billing_desk(), cases).run_sync()

    good = await asyncio.to_thread(report_of, "process_refund", "lookup_docs")
    bad = await asyncio.to_thread(report_of, "process_refund", "create_ticket")
    assert {name for name in asked if not hasattr(good, name)} == set()
    assert (good.pass_rate, bad.pass_rate) == (1.0, 0.5)
    assert bad.per_tag["create_ticket"].pass_rate == 0.0
    bad.save(str(tmp_path / "bad.json"))
    comparison = FluentEvalReport.load(str(tmp_path / "bad.json")).compare(good)
    assert isinstance(comparison, RegressionReport)
    assert [each.id for each in comparison.regressed] == ["password"]
    assert "password" in bad.to_markdown()
    assert json.loads(bad.to_json())


@pytest.mark.adk
async def test_6_7_a_function_judges() -> None:
    from adk_fluent.eval import FluentCase, FluentEvalSuite, PrebuiltMetrics

    given: list[tuple[Any, ...]] = []

    def score(*seen: Any) -> float:
        given.append(seen)
        return 0.9

    code = PYTHON["6.7"].replace("cases=[...]", "cases=[case]")
    code = code.replace(
        "    ...\n", "    return score(actual_response, reference, tool_trajectory)\n"
    )
    names: dict[str, Any] = {
        "FluentEvalSuite": FluentEvalSuite,
        "PrebuiltMetrics": PrebuiltMetrics,
        "case": FluentCase(
            "a refund",
            expected_trajectory=["classify_intent", "process_refund"],
            reference_response="Done",
        ),
    }
    report = await execute("6.7", code, pipeline=billing_desk(), score=score, **names)[
        "suite"
    ].run()
    assert given == [("It is done.", "Done", ["classify_intent", "process_refund"])]
    judged = report.outcomes[0].score("domain_quality")
    assert (judged.score, judged.threshold, judged.ok) == (0.9, 0.8, True)
    assert report.ok


@pytest.mark.adk
@pytest.mark.parametrize("name", ["6.8", "6.9"])
async def test_6_8_and_6_9_parts_and_typed_state(name: str) -> None:
    from adk_fluent.eval import FluentCase, FluentEvalSuite

    schema = billing_state()
    names: dict[str, Any] = {"FluentCase": FluentCase, "BillingState": schema}
    case = execute(name, f"case = {PYTHON[name]}", **names)["case"]
    outcome = (await FluentEvalSuite("s", billing_desk(), [case]).run()).outcomes[0]
    assert outcome.passed, outcome.reasons
    assert outcome.target_node == ("classifier" if name == "6.8" else "")
    assert [use.name for use in outcome.tool_uses][:1] == ["classify_intent"]
    assert len(outcome.tool_uses) == (1 if name == "6.8" else 2)
    wrong = PYTHON[name].replace("> 0.8", "> 0.95")
    case = execute(name, f"case = {wrong}", **names)["case"]
    report = await FluentEvalSuite("s", billing_desk(), [case]).run()
    assert "confidence" in str(report.outcomes[0].reasons)


@pytest.mark.adk
async def test_6_10_a_user_is_simulated() -> None:
    """Correction 6: ADK cannot compute the trajectory of such a case; it is the conversation's."""
    from adk_fluent.eval import FluentCase, PrebuiltMetrics
    from adk_fluent.testing import ScriptedModel

    code = PYTHON["6.10"].replace('model="gemini-2.5-flash"', "model=user")
    user = ScriptedModel("A refund for it, too.", "Thanks. </finished>")
    names: dict[str, Any] = {"user": user, "PrebuiltMetrics": PrebuiltMetrics}
    suite = execute("6.10", code, pipeline=billing_desk(), **names)["suite"]
    calls = ["classify_intent", "process_refund"] * 2
    suite.add(FluentCase("a refund", id="refund", expected_trajectory=calls))
    [outcome] = (await suite.run()).outcomes
    assert outcome.passed, outcome.reasons
    assert [each.input for each in outcome.turns] == ["a refund", "A refund for it, too."]
    assert outcome.stop_reason == "stop_signal"
    assert "Frustrated customer" in str(user.calls[0].raw.config.system_instruction)


@pytest.fixture
def billing_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that section 6.11 reads."""
    monkeypatch.chdir(tmp_path)
    Path("eval").mkdir()
    Path("eval/billing_cases.yaml").write_text(EXAMPLES["6.11b"][1], "utf-8")
    return tmp_path


@pytest.mark.adk
async def test_6_11_files_are_read_and_written(billing_files: Path) -> None:
    from adk_fluent.eval import FluentEvalSuite

    assert EXAMPLES["6.11b"][0] == "yaml"
    FluentEvalSuite.from_yaml("eval/billing_cases.yaml").to_eval_set_file("billing.evalset.json")
    names: dict[str, Any] = {"FluentEvalSuite": FluentEvalSuite, "pipeline": billing_desk()}
    suite = execute("6.11", **names)["suite"]
    read = FluentEvalSuite.from_eval_set("billing.evalset.json", pipeline=billing_desk())
    for each in (suite, read):
        assert (each.name, each.num_runs, each.thresholds) == (
            "billing_pipeline_v2",
            2,
            {"tool_trajectory_avg_score": 1.0, "response_evaluation_score": 0.7},
        )
        tags = [list(case.tags) for case in each.cases]
        assert tags == [["billing", "dispute"], ["billing", "refund"]]
        local = FluentEvalSuite("s", each.pipeline, each.cases, num_runs=each.num_runs)
        report = await local.run()
        assert len(report.outcomes) == 4
        assert report.ok, report.to_markdown()


@pytest.mark.adk
def test_6_12_the_command_writes_what_adk_eval_reads(billing_files: Path) -> None:
    """ADK's command has no --num_runs."""
    from google.adk.evaluation.eval_set import EvalSet

    language, commands = EXAMPLES["6.12"]
    assert language == "bash"
    writes, runs = commands.splitlines()
    assert "adk eval my_agent/ billing.evalset.json" in runs
    Path("my_pipeline.py").write_text(
        "from adk_fluent.eval import FluentEvalSuite\n"
        "suite = FluentEvalSuite.from_yaml('eval/billing_cases.yaml')\n",
        "utf-8",
    )
    python, option, program = shlex.split(writes)
    assert (python, option) == ("python", "-c")
    subprocess.run([sys.executable, option, program], check=True, cwd=billing_files)
    text = (billing_files / "billing.evalset.json").read_text("utf-8")
    assert len(EvalSet.model_validate_json(text).eval_cases) == 2


# --- 11: middlewares -----------------------------------------------------------------------------


def test_11_1_the_built_in_middlewares_are_there() -> None:
    lines = re.findall(r"^    ([^#\n]+)", PYTHON["11.1"], re.MULTILINE)
    listed = {name for line in lines for name in re.findall(r"\w+", line)}
    assert listed > {"cost_attribution", "recorder"}
    execute("11.1", f"from adk_fluent.middleware import {', '.join(listed)}")


# --- 7: content ----------------------------------------------------------------------------------


def test_7_1_content_is_data() -> None:
    """As written it cannot run: `ContentSpec` uses `Modality` before that is defined."""
    content, _, modality = PYTHON["7.1"].partition("class Modality")
    code = f"class Modality{modality}\n{content}"
    spec = execute("7.1", code, dataclass=dataclasses.dataclass, Enum=Enum)
    assert {m.name: m.value for m in ir.Modality} == {m.name: m.value for m in spec["Modality"]}
    have, want = shape(ir.ContentSpec), shape(spec["ContentSpec"])
    assert list(have) == list(want)
    for name in ("input_modalities", "output_modalities"):
        assert {each.value for each in have[name]} == {each.value for each in want[name]}


def test_7_2_the_setters_say_what_goes_in_and_out() -> None:
    made = execute("7.2")["agent"].build()
    assert isinstance(made, AgentNode)
    assert made.content == ir.ContentSpec(
        frozenset({ir.Modality.IMAGE, ir.Modality.TEXT}),
        frozenset({ir.Modality.TEXT, ir.Modality.STRUCTURED}),
    )


def test_7_3_mismatches_are_found_before_anything_runs() -> None:
    """The agent of 7.2 takes what a painter gives; one that takes text alone does not."""
    look = execute("7.2")["agent"].output_schema(dict[str, str])
    paint = Agent("paint").produces_modality(ir.Modality.IMAGE)
    assert contracts.check_modality_contracts(paint >> look) == []
    [issue] = contracts.check_modality_contracts(paint >> Agent("read").accepts(ir.Modality.TEXT))
    assert (issue.node, type(issue)) == ("read", contracts.ModalityMismatch)


# --- 8: recording --------------------------------------------------------------------------------


@pytest.mark.adk
def test_8_2_a_run_is_recorded_and_8_5_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from adk_fluent.debug import Recording
    from adk_fluent.testing import ScriptedModel

    monkeypatch.chdir(tmp_path)
    pipeline = Agent("a", ScriptedModel(default="Good day."))
    space = execute("8.2", pipeline=pipeline)
    recording = Recording.load("recordings/issue_1234.json")
    execute("8.5", recording=recording, new_events=space["events"])
    assert capsys.readouterr().out == "no difference in 1 event\n"


def test_8_2_and_8_3_have_the_names_of_the_specification() -> None:
    """Correction 5: what is recorded comes from the call sites, and not from spans."""
    from adk_fluent.debug import LLMInteraction, Recorder, Recording, ToolInteraction

    for name, have in (("8.2b", Recorder), ("8.3", Recording)):
        [spec] = [n for n in ast.walk(ast.parse(PYTHON[name])) if isinstance(n, ast.ClassDef)]
        methods = {n.name for n in ast.walk(spec) if isinstance(n, ast.FunctionDef)}
        assert methods - {"__init__", "install"} <= set(dir(have))
        told = {ast.unparse(n.target) for n in spec.body if isinstance(n, ast.AnnAssign)}
        assert told - {"spans"} <= {*dir(have), *vars(Recording([], {}))}
    for kind in (LLMInteraction, ToolInteraction):
        made = [
            {word.arg for word in call.keywords}
            for call in ast.walk(ast.parse(PYTHON["8.3"]))
            if isinstance(call, ast.Call)
            and isinstance(call.func, ast.Name)
            and call.func.id == kind.__name__
        ]
        assert made[0] <= set(dir(kind))


# --- 9: distribution -----------------------------------------------------------------------------


def test_9_1_boundaries_are_data() -> None:
    spec = execute("9.1", dataclass=dataclasses.dataclass)
    assert shape(ir.ExecutionBoundary) == shape(spec["ExecutionBoundary"])


def test_9_2_the_setter_makes_a_boundary() -> None:
    pipeline = execute("9.2")["pipeline"].build()
    assert isinstance(pipeline, ir.SequenceNode)
    assert [step.boundary for step in pipeline.steps] == [
        None,
        ir.ExecutionBoundary(
            transport=ir.TransportConfig(
                type="queue", endpoint="pubsub://projects/my-proj/topics/heavy"
            ),
            scaling=ir.ScalingConfig(max_instances=20),
        ),
        None,
    ]


@pytest.mark.adk
def test_9_2_what_it_makes_is_refused_where_all_of_it_would_run_in_one_process() -> None:
    boundary = ir.ExecutionBoundary(
        transport=ir.TransportConfig(
            type="queue", endpoint="pubsub://projects/my-proj/topics/heavy"
        ),
        scaling=ir.ScalingConfig(max_instances=20),
    )
    heavy = ir.AgentNode("heavy_processor", mock=Ref("heavy", "mock"), boundary=boundary)
    pipeline = Agent("classifier").mock("x") >> heavy >> Agent("responder").mock("done")
    with pytest.raises((MissingLayerError, UnsupportedNodeError)) as caught:
        pipeline.ask("hello")
    assert "transport='queue' and scaling" in caught.value.what
    assert caught.value.node == "heavy_processor"
    plain = heavy.replace(boundary=ir.ExecutionBoundary())
    assert (Agent("classifier").mock("x") >> plain).ask("hello") == "heavy"


@pytest.mark.adk
@pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning")
def test_9_3_boundaries_split_it_into_apps() -> None:
    plan = split(execute("9.2")["pipeline"])
    assert plan.names == ("pipeline", "heavy_processor")
    apps = [plan.to_app(name) for name in plan.names]
    assert apps[0] is not apps[1]
    assert all(app.resumability_config.is_resumable for app in apps if app.resumability_config)
    assert all(app.resumability_config for app in apps)


@pytest.mark.adk
def test_9_2_the_spec_names_a_transport_that_comes_later() -> None:
    with pytest.raises(BoundaryError, match="cannot host segment 'heavy_processor'") as raised:
        InlineEngine().register(execute("9.2")["pipeline"])
    assert "pubsub://" in (raised.value.found or "")


@pytest.mark.adk
async def test_9_3_state_crosses_by_its_schema() -> None:
    from adk_fluent.state import StateSchema

    class Billing(StateSchema):
        due: date
        amount: Decimal

    def bill(state: Mapping[str, Any]) -> dict[str, Any]:
        return {"due": date(2026, 1, 31), "amount": Decimal("12.50")}

    seen: list[Any] = []

    def read(state: Mapping[str, Any]) -> None:
        seen.extend([Billing.bind(state).due, Billing.bind(state).amount])

    heavy = (Agent("heavy").mock("x") >> read).named("heavy_processor").execution_boundary()
    pipeline = (Agent("classifier").mock("x") >> bill >> heavy).state(Billing)
    await InlineEngine().run(pipeline, "Go.")
    assert seen == [date(2026, 1, 31), Decimal("12.50")]


# --- 10: the checker -----------------------------------------------------------------------------


def test_10_a_pipeline_is_checked_without_a_schema() -> None:
    pipeline = Agent("classifier").writes("intent") >> Agent("resolver").reads("intent")
    code = PYTHON["10"].replace(", schema=BillingState", "")
    report = execute("10", code, pipeline=pipeline)["report"]
    assert isinstance(report, ContractReport)
    assert report.ok


def test_10_a_pipeline_is_checked_with_a_schema() -> None:
    schema = billing_state()
    good = Agent("classifier").writes(schema.intent) >> Agent("resolver").instruct("{intent}")
    names: dict[str, Any] = {"BillingState": schema}
    assert execute("10", pipeline=good, **names)["report"].ok
    bad = Agent("classifier").writes("intnt") >> Agent("resolver").instruct("{intnt}")
    report = execute("10", pipeline=bad, **names)["report"]
    assert "SchemaViolation" in {type(each).__name__ for each in report.errors}


def test_10_checkers_are_registered() -> None:
    """As written, but that core's list of checkers is not open to everybody's hands."""
    assert "def register_checker(fn: Callable) -> None:" in PYTHON["10b"]

    def no_poems(graph: contracts.Graph) -> Iterator[contracts.Diagnostic]:
        seen.append(len(graph.nodes))
        yield from ()

    seen: list[int] = []
    contracts.register_checker(no_poems)
    try:
        assert check_all(Agent("a") >> Agent("b")).ok
    finally:
        contracts.unregister_checker(no_poems)
    assert seen == [3]


def test_the_report_is_data_for_other_programs() -> None:
    report = check_all(as_written())
    assert json.loads(report.to_json())["diagnostics"], "section 10: a report, not only text"


def test_no_other_error_hides_behind_these() -> None:
    """The errors that these tests expect are kinds of the standard library's, as documented."""
    assert issubclass(UnknownNameError, AttributeError)
    assert issubclass(MissingLayerError, ImportError)
    assert issubclass(UnsupportedConfigError, NotImplementedError)
    assert issubclass(UnsupportedNodeError, NotImplementedError)

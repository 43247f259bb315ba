"""ADK's own spans, described, as an OpenTelemetry SDK gets them."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types
from kit import SSE, TWO_TOOLS, clerk, run_program, search, until, weather
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from adk_fluent import Agent, gate
from adk_fluent.backends.adk import ADKBackend
from adk_fluent.errors import UsageError
from adk_fluent.ir import content_hash, structure_hash
from adk_fluent.middleware import retry, structured_log
from adk_fluent.protocol import Answer, Middleware, Usage
from adk_fluent.telemetry import OTelEnrichmentMiddleware, otel_enrichment
from adk_fluent.telemetry._spans import described
from adk_fluent.testing import Call, GeminiEmulator, ScriptedModel, reply

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opentelemetry.sdk.trace import ReadableSpan

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]

_EXPORTER = InMemorySpanExporter()


class Spans:
    """What ended in a test."""

    @property
    def all(self) -> list[ReadableSpan]:
        return list(_EXPORTER.get_finished_spans())

    def named(self, start: str) -> list[dict[str, Any]]:
        """What is said of ours on the spans with such a name, in the order of their starts."""
        found = [each for each in self.all if each.name.startswith(start)]
        return [ours(each) for each in sorted(found, key=lambda each: each.start_time or 0)]

    @property
    def root(self) -> dict[str, Any]:
        (root,) = [each for each in self.all if each.parent is None]
        return ours(root)


def trace_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return span.context.trace_id


def ours(span: ReadableSpan) -> dict[str, Any]:
    found: Mapping[str, Any] = span.attributes or {}
    return {
        name.removeprefix("adk_fluent."): value
        for name, value in found.items()
        if name.startswith("adk_fluent.")
    }


@pytest.fixture(params=["", "1"], ids=["schema", "schema 1"])
def spans(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Spans]:
    """Spans in both forms that ADK 2.x has for them; ADK 1.x has the one."""
    if request.param:
        monkeypatch.setenv("ADK_TELEMETRY_SCHEMA_VERSION_OPT_IN", request.param)
    provider: Any = trace.get_tracer_provider()
    if not hasattr(provider, "add_span_processor"):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    if not hasattr(provider, "_of_these_tests"):
        provider._of_these_tests = True
        provider.add_span_processor(SimpleSpanProcessor(_EXPORTER))
    _EXPORTER.clear()
    yield Spans()
    _EXPORTER.clear()


def counted(tokens: int, text: str = "ok") -> Any:
    return reply(text, usage=Usage(prompt=tokens, output=2, thoughts=3, tool=1))


# --- what every middleware here is tried in ------------------------------------------------------


async def test_happy(spans: Spans) -> None:
    pipeline = (Agent("a", ScriptedModel(counted(10))) >> Agent("b").mock("B")).named("desk")
    node = pipeline.to_ir()
    result = await pipeline.middleware(otel_enrichment()).run("hi")
    run = {
        "pipeline": "desk",
        "run_id": result[0].metadata["run"],
        "structure_hash": structure_hash(node),
        "content_hash": content_hash(node),
    }
    assert spans.root == {**run, "node_type": "sequence"}
    a = {"agent_name": "a", "node_type": "agent", "step_path": "s0", "loop_iteration": 0}
    assert spans.named("invoke_agent a") == [run | a]
    tokens = {"actual_input_tokens": 11, "actual_output_tokens": 5}
    assert spans.named("generate_content")[0] == run | a | tokens
    assert spans.named("generate_content")[1]["step_path"] == "s1"
    for call in spans.named("call_llm")[:1]:  # of schema 1 and ADK 1.x
        assert call == run | a | tokens
    assert all(each["pipeline"] == "desk" for each in map(ours, spans.all))


async def test_streamed(spans: Spans) -> None:
    """The span of a call may end with the last fragment."""
    usage = Usage(prompt=7, output=4)
    with GeminiEmulator(reply(chunks=["a", "b", "c"], usage=usage)) as gemini:
        result = await clerk(gemini, otel_enrichment()).run("hi", config=SSE)
    assert result.text == "abc"
    (call,) = spans.named("generate_content")
    assert (call["actual_input_tokens"], call["actual_output_tokens"]) == (7, 4)


async def test_parallel_tools(spans: Spans) -> None:
    pipeline = Agent("a", ScriptedModel(*TWO_TOOLS)).tool(search).tool(weather)
    await pipeline.middleware(otel_enrichment()).run("hi")
    for name in ("execute_tool search", "execute_tool weather"):
        (tool,) = spans.named(name)
        assert (tool["tool_agent"], tool["pipeline"], tool["node_type"]) == ("a", "a", "agent")
    (merged,) = spans.named("execute_tool (merged)")
    assert (merged["pipeline"], merged["agent_name"]) == ("a", "a")


async def test_cancelled(spans: Spans) -> None:
    model = ScriptedModel(reply("late", latency=60), "next")
    pipeline = Agent("a", model).middleware(otel_enrichment())
    running = asyncio.ensure_future(pipeline.run("hi"))
    await until(lambda: bool(model.calls))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(lambda: bool(spans.named("invoke_agent a_flow")))
    assert {each["pipeline"] for each in map(ours, spans.all)} == {"a"}
    _EXPORTER.clear()
    await Agent("other").mock("B").run("hi")  # nothing is left behind
    assert not any(map(ours, spans.all))


async def test_error_after_the_first_partial(spans: Spans) -> None:
    half = reply(chunks=["Half an ", "answer"], fault="cut")
    with GeminiEmulator(half) as gemini, pytest.raises(Exception):  # noqa: B017, PT011  # see retry
        await clerk(gemini, otel_enrichment()).run("hi", config=SSE)
    (call,) = spans.named("generate_content")
    assert (call["agent_name"], call["pipeline"]) == ("clerk", "clerk")


async def test_concurrent(spans: Spans) -> None:
    """Runs at the same time, with agents at the same time in each: nothing gets mixed up."""
    shared = otel_enrichment()

    async def one(n: int) -> tuple[str, Any]:
        branches = [
            Agent(f"b{n}{m}", ScriptedModel(reply("x", latency=0.01 * m, usage=Usage(100 * n + m))))
            for m in range(3)
        ]
        pipeline = (branches[0] | branches[1] | branches[2]).named(f"p{n}")
        return f"p{n}", await pipeline.middleware(shared).run("hi")

    runs = dict(await asyncio.gather(*(one(n) for n in range(1, 6))))
    for name, result in runs.items():
        mine = [each for each in map(ours, spans.all) if each["pipeline"] == name]
        assert {each["run_id"] for each in mine} == {result[0].metadata["run"]}
        assert len({trace_of(each) for each in spans.all if ours(each) in mine}) == 1
    calls = spans.named("generate_content")
    assert len(calls) == 15
    for call in calls:
        n, m = map(int, call["agent_name"][1:])
        assert (call["pipeline"], call["step_path"]) == (f"p{n}", f"p{m}")
        assert call["actual_input_tokens"] == 100 * n + m


# --- no spans of its own, and none of others -----------------------------------------------------


def shape(spans: Spans) -> Counter[str]:
    found = Counter(each.name for each in spans.all)
    _EXPORTER.clear()
    return found


async def test_there_are_as_many_spans_as_without(spans: Spans) -> None:
    def pipeline() -> Any:
        one = Agent("a", ScriptedModel(*TWO_TOOLS)).tool(search).tool(weather)
        return one >> (Agent("b").mock("B") | Agent("c").mock("C"))

    await pipeline().run("hi")
    without = shape(spans)
    await pipeline().middleware(otel_enrichment()).run("hi")
    assert shape(spans) == without
    assert sum(without.values()) >= 10


async def test_spans_of_others_are_left_alone(spans: Spans) -> None:
    tracer = trace.get_tracer("mine")

    def search(word: str) -> str:
        """Look something up."""
        with tracer.start_as_current_span("execute_tool by me"):
            return "found"

    class Around:
        """Has a span of its own where the middleware expects one of ADK's."""

        async def wrap_model_call(self, call: Any, next: Any) -> Any:
            with tracer.start_as_current_span("generate_content by me"):
                return await next(call)

        async def before_tool(self, ctx: Any, name: str, args: Any) -> None:
            with tracer.start_as_current_span("before by me"):
                pass

    model = ScriptedModel(Call("search", {"word": "x"}), "done")
    pipeline = Agent("a", model).tool(search).middleware(Around())
    with tracer.start_as_current_span("request"):
        await pipeline.middleware(otel_enrichment()).run("hi")
    mine = [each for each in spans.all if each.name.endswith("by me") or each.name == "request"]
    assert len(mine) == 5
    assert not any(map(ours, mine))
    runs = [each for each in spans.all if each.name.startswith(("invocation", "invoke_workflow"))]
    assert [ours(each)["pipeline"] for each in runs] == ["a"]


async def test_runs_without_it_are_left_alone(spans: Spans) -> None:
    """Also in the same task, and while a described run goes on."""
    model = ScriptedModel(default=reply("x", latency=0.05))
    described = Agent("a", model).middleware(otel_enrichment())
    await described.run("hi")
    running = asyncio.ensure_future(described.run("hi"))
    await Agent("plain").mock("B").run("hi")
    runner = InMemoryRunner(LlmAgent(name="bare", model=ScriptedModel("ok")), app_name="bare")
    made = await runner.session_service.create_session(app_name="bare", user_id="u")
    said = types.Content(role="user", parts=[types.Part(text="hi")])
    async for _ in runner.run_async(user_id="u", session_id=made.id, new_message=said):
        pass
    await running
    others = [each for each in spans.all if "plain" in each.name or "bare" in each.name]
    assert len(others) >= 3
    assert not any(map(ours, others))


async def test_a_pipeline_in_a_tool_describes_its_own_spans(spans: Spans) -> None:
    async def search(word: str) -> str:
        """Look something up."""
        inner = Agent("inner").mock("I").middleware(otel_enrichment())
        return (await inner.run(word)).text

    model = ScriptedModel(Call("search", {"word": "x"}), "done")
    result = await Agent("outer", model).tool(search).middleware(otel_enrichment()).run("hi")
    assert result.text == "done"
    assert spans.root["pipeline"] == "outer"
    inside = {each["run_id"] for each in map(ours, spans.all) if each["pipeline"] == "inner"}
    outside = {each["run_id"] for each in map(ours, spans.all) if each["pipeline"] == "outer"}
    assert (len(inside), len(outside)) == (1, 1)
    assert spans.named("execute_tool search")[0]["pipeline"] == "outer"


@pytest.mark.parametrize(
    ("name", "meant"),
    [("invoke_agent a", False), ("call_llm", True), ("generate_content m", True)],
)
async def test_tokens_are_said_of_model_calls_only(spans: Spans, name: str, meant: bool) -> None:
    """Where ADK has no span for a call, the one that is current is another one."""
    usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=5)
    made = otel_enrichment()
    with trace.get_tracer("gcp.vertex.agent").start_as_current_span(name):
        await made.after_model(None, LlmResponse(usage_metadata=usage))
        await made.before_tool(None, "search", {})
    with trace.get_tracer("mine").start_as_current_span(name):
        await made.after_model(None, LlmResponse(usage_metadata=usage))
    assert list(map(ours, spans.all)) == [
        {"actual_input_tokens": 5, "actual_output_tokens": 0} if meant else {},
        {},
    ]


def test_what_is_said_is_said_inside_only(spans: Spans) -> None:
    otel_enrichment()
    tracer = trace.get_tracer("gcp.vertex.agent")
    with described({"adk_fluent.a": 1, "adk_fluent.b": 1}):
        with described({"adk_fluent.b": 2}):
            tracer.start_span("inside").end()
        tracer.start_span("between").end()
    tracer.start_span("outside").end()
    assert list(map(ours, spans.all)) == [{"a": 1, "b": 2}, {"a": 1, "b": 1}, {}]


async def test_model_calls_that_are_retried_have_one_span(spans: Spans) -> None:
    model = ScriptedModel(ConnectionError("reset"), counted(20))
    pipeline = Agent("a", model).middleware(otel_enrichment()).middleware(retry(backoff_base=0.0))
    await pipeline.run("hi")
    (call,) = spans.named("generate_content")
    assert call["actual_input_tokens"] == 21


# --- steps ---------------------------------------------------------------------------------------


async def test_loops_are_counted(spans: Spans) -> None:
    pipeline = (Agent("a").mock("A") >> Agent("b").mock("B")) * 2
    await pipeline.middleware(otel_enrichment()).run("hi")
    calls = spans.named("generate_content")
    assert [(each["agent_name"], each["loop_iteration"]) for each in calls] == [
        ("a", 0),
        ("b", 0),
        ("a", 1),
        ("b", 1),
    ]
    assert len({each["step_path"] for each in calls}) == 4


async def test_who_takes_over_is_named(spans: Spans) -> None:
    """An agent that a model hands over to, and one that it calls as a tool, are no steps."""
    expert = Agent("expert", ScriptedModel(Call("search", {"word": "x"}), "E")).description("knows")
    front = ScriptedModel(Call("transfer_to_agent", {"agent_name": "expert"}))
    pipeline = Agent("front", front).delegates(expert.tool(search))
    await pipeline.middleware(otel_enrichment()).run("hi")
    calls = spans.named("generate_content")
    assert [each["agent_name"] for each in calls] == ["front", "expert", "expert"]
    (tool,) = spans.named("execute_tool search")
    assert (tool["tool_agent"], tool["agent_name"]) == ("expert", "expert")

    _EXPORTER.clear()
    helper = Agent("helper", ScriptedModel(counted(50))).description("helps")
    asks = ScriptedModel(Call("helper", {"request": "help"}), counted(60))
    await Agent("boss", asks).agent_tool(helper).middleware(otel_enrichment()).run("hi")
    inside = [each for each in spans.named("generate_content") if each["agent_name"] == "helper"]
    assert [each["actual_input_tokens"] for each in inside] == [51]
    assert {each["pipeline"] for each in map(ours, spans.all)} == {"boss"}


async def test_a_run_that_goes_on_is_the_same_run(spans: Spans) -> None:
    pipeline = (Agent("a").mock("A") >> gate(name="ok") >> Agent("b").mock("B")).named("desk")
    backend, desk = ADKBackend(), pipeline.middleware(otel_enrichment())
    first = await desk.run("hi", backend=backend)
    answer = Answer(first.pending[0].id, {"approved": True})
    await desk.run(answer, backend=backend, session_id=first.session_id)
    roots = [ours(each) for each in spans.all if each.parent is None]
    assert len(roots) == 2
    assert len({each["run_id"] for each in roots}) == 1


# --- options -------------------------------------------------------------------------------------


async def test_the_pipeline_may_be_named(spans: Spans) -> None:
    await Agent("a").mock("A").middleware(otel_enrichment(pipeline_name="shop")).run("hi")
    assert {each["pipeline"] for each in map(ours, spans.all)} == {"shop"}


async def test_hashes_tell_versions_apart(spans: Spans) -> None:
    said: list[tuple[str, str]] = []
    for text in ("one", "one", "two"):
        _EXPORTER.clear()
        await Agent("a").mock("A").instruct(text).middleware(otel_enrichment()).run("hi")
        said.append((spans.root["structure_hash"], spans.root["content_hash"]))
    assert said[0] == said[1]
    assert said[0][0] == said[2][0]
    assert said[0][1] != said[2][1]

    _EXPORTER.clear()
    await Agent("a").mock("A").middleware(otel_enrichment(hashes=False)).run("hi")
    assert spans.root.keys() == {"pipeline", "node_type", "run_id"}


async def test_it_stands_with_others(spans: Spans) -> None:
    model = ScriptedModel(counted(3))
    pipeline = Agent("a", model).middleware(structured_log()).middleware(otel_enrichment())
    await pipeline.run("hi")
    assert spans.named("generate_content")[0]["actual_input_tokens"] == 4


def test_it_is_a_middleware() -> None:
    assert isinstance(otel_enrichment(), Middleware)
    assert OTelEnrichmentMiddleware().pipeline_name is None


@pytest.mark.parametrize("options", [{"pipeline_name": 3}, {"hashes": "yes"}])
def test_wrong_options_are_refused_where_they_are_given(options: Any) -> None:
    with pytest.raises(UsageError, match=r"otel_enrichment\("):
        otel_enrichment(**options)


# --- other providers, in a process of their own --------------------------------------------------


def test_without_a_provider_nothing_is_done() -> None:
    program = """
        from adk_fluent import Agent
        from adk_fluent.telemetry import _pipelines, _spans, otel_enrichment

        def dear(root):
            raise AssertionError("worked out for nobody")

        _pipelines.structure_hash = _pipelines.content_hash = _pipelines.check_all = dear
        made = otel_enrichment()
        print(Agent("a").mock("A").middleware(made).ask("hi"), len(_spans._KNOWN))
    """
    assert run_program(program).split() == ["A", "0"]


@pytest.mark.full
def test_a_provider_that_is_set_later_is_found() -> None:
    program = """
        from adk_fluent import Agent
        from adk_fluent.telemetry import otel_enrichment
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        pipeline = Agent("a").mock("A").middleware(otel_enrichment())
        pipeline.ask("hi")
        exporter, provider = InMemorySpanExporter(), TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        trace.set_tracer_provider(provider)
        pipeline.ask("hi")
        spans = exporter.get_finished_spans()
        print(len(spans) > 3, {each.attributes.get("adk_fluent.pipeline") for each in spans})
    """
    assert run_program(program).split() == ["True", "{'a'}"]


def test_spans_that_are_not_sampled_cost_nothing_and_fail_nothing() -> None:
    program = """
        from adk_fluent import Agent
        from adk_fluent.telemetry import otel_enrichment
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

        trace.set_tracer_provider(TracerProvider(sampler=ALWAYS_OFF))
        print(Agent("a").mock("A").middleware(otel_enrichment()).ask("hi"))
    """
    assert run_program(program).strip() == "A"


@pytest.mark.parametrize("schema", ["1", pytest.param("", marks=pytest.mark.full)])
def test_where_another_library_records_gemini(schema: str) -> None:
    """ADK makes no span of its own for the call then: the agent's must not be taken for it."""
    pytest.importorskip("opentelemetry.instrumentation.google_genai")
    program = """
        import asyncio
        from opentelemetry import trace
        from opentelemetry.instrumentation.google_genai import GoogleGenAiSdkInstrumentor
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        exporter, provider = InMemorySpanExporter(), TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        trace.set_tracer_provider(provider)
        GoogleGenAiSdkInstrumentor().instrument()
        from adk_fluent import Agent
        from adk_fluent.telemetry import otel_enrichment
        from adk_fluent.testing import GeminiEmulator

        with GeminiEmulator("one", "two") as gemini:
            a, b = Agent("a", gemini.model()), Agent("b", gemini.model())
            (a >> b).named("desk").middleware(otel_enrichment()).ask("hi")
        for each in exporter.get_finished_spans():
            said = each.attributes
            print(
                each.name.split()[0],
                each.instrumentation_scope.name,
                said.get("adk_fluent.pipeline"),
                said.get("adk_fluent.agent_name"),
                "adk_fluent.actual_input_tokens" in said,
                sep="|",
            )
    """
    made = run_program(program, ADK_TELEMETRY_SCHEMA_VERSION_OPT_IN=schema).splitlines()
    lines = [line.split("|") for line in made]
    assert {line[2] for line in lines} == {"desk"}
    assert not any(line[4] == "True" for line in lines if line[0].startswith("invoke"))
    calls = [line for line in lines if line[0] == "generate_content"]
    assert sorted({line[3] for line in calls}) == ["a", "b"]
    assert schema or {line[1] for line in calls} == {"opentelemetry.instrumentation.google_genai"}


async def test_a_part_says_which_run_it_is_of(spans: Spans) -> None:
    def look(word: str) -> str:
        """Look something up."""
        return word

    model = ScriptedModel(Call("look", {"word": "x"}), default=counted(10))
    part = Agent("a", model).tool(look).middleware(otel_enrichment(), scope="agent")
    pipeline = (part >> Agent("b").mock("B")).named("desk")
    result = await pipeline.run("hi")
    run = {
        "pipeline": "desk",
        "run_id": result[0].metadata["run"],
        "structure_hash": structure_hash(pipeline.to_ir()),
        "content_hash": content_hash(pipeline.to_ir()),
    }
    for name in ("invoke_agent a", "generate_content", "execute_tool look"):
        assert run.items() <= spans.named(name)[0].items(), name
    assert spans.named("generate_content")[1]["actual_input_tokens"] == 11
    assert spans.named("execute_tool look")[0]["tool_agent"] == "a"
    assert spans.root == {}  # what is around the part is somebody else's
    assert spans.named("invoke_agent b") == [{}]


async def test_a_part_that_is_handed_over_to_says_it_of_its_calls(spans: Spans) -> None:
    specialist = Agent("expert", ScriptedModel(default=counted(10)))
    model = ScriptedModel(Call("transfer_to_agent", {"agent_name": "expert"}))
    desk = Agent("desk", model).delegates(specialist.middleware(otel_enrichment(), scope="agent"))
    result = await desk.run("hi")
    first, second = spans.named("generate_content")
    assert first == {}
    assert second["run_id"] == result[0].metadata["run"]
    assert second["pipeline"] == "desk"

"""From IR to ADK objects: what is made, what is shared, what is refused before anything runs."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from adk_programs import agent, built, fn, par, run, seq, writer
from google.adk.agents.context_cache_config import ContextCacheConfig
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.apps.app import App
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.version import __version__
from google.genai import types
from pydantic import BaseModel

from adk_fluent import Agent, Route, _registry
from adk_fluent.backends._tables import Pass, PassList
from adk_fluent.backends.adk import ADKBackend, CompileContext, FlowAgent, rules, to_agent, to_app
from adk_fluent.backends.adk._config import merged, run_config
from adk_fluent.backends.adk._lowering import _compile as compiling
from adk_fluent.errors import (
    BuildError,
    LegalityError,
    MissingLayerError,
    UnknownNameError,
    UnsupportedConfigError,
    UnsupportedNodeError,
    UsageError,
)
from adk_fluent.flow import RULES
from adk_fluent.ir import (
    NODES,
    AdkAgentNode,
    AgentNode,
    AppNode,
    EdgeSemantics,
    ExecutionConfig,
    GateNode,
    Location,
    ModelSelectorNode,
    Node,
    RaceNode,
    Ref,
    RemoteAgentNode,
    ResourceNode,
    SequenceNode,
    StateFieldRef,
    TelemetryConfig,
    TimeoutNode,
    ToolSpec,
    node,
)
from adk_fluent.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.agents.base_agent import BaseAgent

    from adk_fluent.backends.adk._lowering._compile import Compiled

pytestmark = pytest.mark.adk


def compiled(root: Node, config: ExecutionConfig | None = None) -> Compiled:
    return ADKBackend().compile(root, config)


def agents_of(root: Node, config: ExecutionConfig | None = None) -> list[BaseAgent]:
    return compiled(root, config).root.sub_agents


def only(root: Node, config: ExecutionConfig | None = None) -> LlmAgent:
    (made,) = agents_of(root, config)
    assert isinstance(made, LlmAgent)
    return made


def tools_of(made: LlmAgent) -> list[Any]:
    return list(getattr(made, "tools"))  # noqa: B009  # half typed by ADK


def look_up(order: str) -> str:
    """Finds an order."""
    return order


# --- agents --------------------------------------------------------------------------------------


def test_only_what_was_set_is_passed_on() -> None:
    made = only(AgentNode("desk", instruction="Help."))
    assert made.model_fields_set - {"name", "instruction"} <= {"parent_agent"}
    assert made.instruction == "Help."


def test_every_field_of_an_agent_arrives() -> None:
    class Order(BaseModel):
        pass

    def before(callback_context: Any) -> None:
        return None

    def other(callback_context: Any) -> None:
        return None

    model = ScriptedModel("x")
    made = only(
        AgentNode(
            "desk",
            model=Ref.to(model),
            instruction="Look at {order}.",
            static_instruction="You are polite.",
            description="Answers questions.",
            tools=(ToolSpec(Ref.to(look_up)),),
            agent_tools=(AgentNode("expert", description="Knows."),),
            delegates=(AgentNode("billing", description="Bills."),),
            callbacks=(
                ("before_agent", (Ref.to(before),)),
                ("after_model", (Ref.to(before), Ref.to(other))),
            ),
            writes_keys=(StateFieldRef("answer", str),),
            input_schema=Ref.to(Order),
            output_schema=Ref.to(Order),
            settings=(
                ("disallow_transfer_to_peers", True),
                ("generate_content_config", Ref.to(types.GenerateContentConfig(temperature=0.5))),
            ),
        )
    )
    assert made.canonical_model is model
    assert made.instruction == "Look at {order}."
    assert getattr(made, "static_instruction") == "You are polite."  # noqa: B009  # half typed
    assert made.description == "Answers questions."
    tool, expert = tools_of(made)
    assert isinstance(tool, FunctionTool)
    assert tool.func is look_up
    assert isinstance(expert, AgentTool)
    assert expert.agent.name == "expert"
    assert [each.name for each in made.sub_agents] == ["billing"]
    assert made.before_agent_callback is before
    assert made.after_model_callback == [before, other]
    assert made.output_key is None  # it is written when it has been validated
    assert made.input_schema is Order
    assert made.output_schema is Order
    assert made.disallow_transfer_to_peers is True
    assert made.generate_content_config is not None
    assert made.generate_content_config.temperature == 0.5


def test_declared_tool_writes_change_nothing() -> None:
    made = only(AgentNode("desk", tool_writes=(StateFieldRef("order"),)))
    assert made.output_key is None


def test_one_key_is_adks_output_key_there() -> None:
    keys, schema = (StateFieldRef("order"),), Ref.to(types.Content)
    below = AgentNode("below", writes_keys=keys)
    typed = AgentNode("typed", writes_keys=keys, output_schema=schema)
    made = only(AgentNode("boss", delegates=(below, typed)))
    written = [each.output_key for each in made.sub_agents if isinstance(each, LlmAgent)]
    assert written == ["order", None]  # data is written when it has been validated


def test_a_field_the_installed_adk_does_not_have_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError) as caught:
        compiled(AgentNode("desk", settings=(("include_content", "none"),)))
    assert __version__ in str(caught.value)
    assert caught.value.nearest == "include_contents"


def test_a_parent_cannot_be_set() -> None:
    with pytest.raises(UnknownNameError, match="parent_agent"):
        compiled(AgentNode("desk", settings=(("parent_agent", None),)))


async def test_a_mock_stands_in_for_the_model() -> None:
    desk = AgentNode("desk", model="no-such-model", mock=Ref("hello", "mock"))
    assert (await run(desk)).text == "hello"


async def test_a_mock_gives_replies_in_order() -> None:
    desk = AgentNode("desk", mock=Ref(("one", "two"), "mock"))
    backend = ADKBackend()
    program = backend.compile(desk)
    assert [(await backend.run(program, "hi")).text for _ in range(2)] == ["one", "two"]


async def test_a_mock_may_be_a_function_of_the_prompt() -> None:
    desk = AgentNode("desk", mock=Ref.to(str.upper))
    assert (await run(desk, "where is it?")).text == "WHERE IS IT?"


def test_a_value_adk_does_not_take_names_agent_and_field() -> None:
    wrong = AgentNode("desk", settings=(("disallow_transfer_to_peers", "maybe"),))
    with pytest.raises(UsageError, match="ADK refuses the agent 'desk'") as caught:
        compiled(wrong)
    assert "disallow_transfer_to_peers" in str(caught.value)
    assert caught.value.help is None


def test_a_schema_adk_does_not_take_is_refused_with_what_to_give() -> None:
    with pytest.raises(UsageError, match="ADK refuses the agent 'desk'") as caught:
        compiled(AgentNode("desk", input_schema=Ref.to(dict)))
    assert caught.value.found is not None
    assert caught.value.found.startswith("input_schema: ")
    assert caught.value.help == "give a pydantic model as the type of its input"


def test_a_type_of_answers_is_taken_or_refused_with_what_to_do() -> None:
    desk = AgentNode("desk", output_schema=Ref.to(list[str]))
    if LlmAgent.model_fields["output_schema"].annotation != type[BaseModel] | None:
        compiled(desk)
        return
    with pytest.raises(UsageError, match="ADK refuses the agent 'desk'") as caught:
        compiled(desk)
    assert "or upgrade google-adk" in str(caught.value.help)


@pytest.mark.parametrize("history", ["own", "input", "none"])
def test_a_history_mode_adk_could_not_keep_is_refused(history: Any) -> None:
    desk = AgentNode("desk", delegates=(AgentNode("kid", history=history),))
    with pytest.raises(UnsupportedNodeError, match="no effect on a delegate") as caught:
        compiled(desk)
    assert caught.value.node == "kid"
    caller = AgentNode("desk", agent_tools=(AgentNode("kid", history=history),))
    if history == "none":
        with pytest.raises(UnsupportedNodeError, match="no effect on a tool"):
            compiled(caller)
    else:
        assert len(agents_of(caller)) == 1


# --- models --------------------------------------------------------------------------------------


def test_a_model_is_the_agents_then_the_configurations_then_adks() -> None:
    config = ExecutionConfig(default_model="gemini-2.5-pro")
    own = AgentNode("own", model="gemini-2.5-flash")
    first, second = agents_of(seq(own, AgentNode("none")), config)
    assert isinstance(first, LlmAgent)
    assert isinstance(second, LlmAgent)
    assert (first.model, second.model) == ("gemini-2.5-flash", "gemini-2.5-pro")
    assert only(AgentNode("none")).canonical_model.model == LlmAgent(name="x").canonical_model.model


def test_a_default_model_may_be_an_object() -> None:
    model = ScriptedModel("x")
    made = only(AgentNode("desk"), ExecutionConfig(default_model=Ref.to(model)))
    assert made.canonical_model is model


def test_a_delegate_takes_the_model_of_the_agent_above() -> None:
    model = ScriptedModel("x")
    desk = AgentNode(
        "desk",
        model=Ref.to(model),
        delegates=(AgentNode("kid", delegates=(AgentNode("grandkid"),)),),
    )
    made = only(desk, ExecutionConfig(default_model="gemini-2.5-pro"))
    kid = made.sub_agents[0]
    assert isinstance(kid, LlmAgent)
    assert kid.canonical_model is model
    grandkid = kid.sub_agents[0]
    assert isinstance(grandkid, LlmAgent)
    assert grandkid.canonical_model is model


def test_an_agent_that_is_a_tool_gets_the_default_model() -> None:
    desk = AgentNode("desk", model=Ref.to(ScriptedModel("x")), agent_tools=(AgentNode("expert"),))
    (tool,) = tools_of(only(desk, ExecutionConfig(default_model="gemini-2.5-pro")))
    assert isinstance(tool, AgentTool)
    assert isinstance(tool.agent, LlmAgent)
    assert tool.agent.model == "gemini-2.5-pro"


def test_a_model_nobody_knows_is_refused_at_compile() -> None:
    desk = AgentNode("desk", model="gemni-2.5", location=Location("shop.py", 3))
    with pytest.raises(UsageError, match=r"gemni-2\.5") as caught:
        compiled(desk)
    assert (caught.value.node, str(caught.value.location)) == ("desk", "shop.py:3")


# --- tools ---------------------------------------------------------------------------------------


def test_a_tool_that_is_none_names_the_agent() -> None:
    with pytest.raises(UsageError, match="int") as caught:
        compiled(AgentNode("desk", tools=(ToolSpec(Ref(42, "answer")),)))
    assert caught.value.node == "desk"


def test_a_pipeline_may_be_a_tool() -> None:
    pipe = seq(AgentNode("first"), AgentNode("second"), name="both")
    (tool,) = tools_of(only(AgentNode("desk", agent_tools=(pipe,))))
    assert isinstance(tool, AgentTool)
    assert isinstance(tool.agent, FlowAgent)
    assert [each.name for each in tool.agent.sub_agents] == ["first", "second"]


# --- sharing and names ---------------------------------------------------------------------------


def test_agents_are_the_roots_direct_sub_agents_one_for_each() -> None:
    a = AgentNode("a")
    program = seq(a, par(AgentNode("b"), seq(a, AgentNode("c"))), AgentNode("a"))
    assert [each.name for each in agents_of(program)] == ["a", "b", "c"]


def test_two_different_agents_of_one_name_are_refused() -> None:
    one = AgentNode("a", instruction="x", location=Location("one.py", 1))
    two = AgentNode("a", instruction="y", location=Location("two.py", 2))
    with pytest.raises(BuildError, match="two different agents are called 'a'") as caught:
        compiled(seq(one, two))
    assert "two.py:2" in str(caught.value)
    assert "one.py:1" in str(caught.value)


def test_a_delegate_and_a_step_may_not_share_a_name_unless_equal() -> None:
    with pytest.raises(BuildError, match="two different agents"):
        compiled(seq(AgentNode("a"), AgentNode("b", delegates=(AgentNode("a", instruction="x"),))))
    assert len(agents_of(seq(AgentNode("a"), AgentNode("b", delegates=(AgentNode("a"),))))) == 2


def test_tools_live_in_a_world_of_their_own() -> None:
    desk = AgentNode("desk", agent_tools=(AgentNode("a", instruction="x"),))
    assert len(agents_of(seq(AgentNode("a"), desk))) == 2


@pytest.mark.usefixtures("illegal_ir")
@pytest.mark.parametrize(
    "name", ["has space", "a-b", "1st", "user", "START", "__START__", "_adk_x", ""]
)
def test_a_name_adk_does_not_take_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be the name of an agent"):
        compiled(AgentNode(name))


@pytest.mark.usefixtures("illegal_ir")
@pytest.mark.parametrize(
    ("name", "root"),
    [
        ("pipe", "pipe"),
        ("a >> b", "a____b"),
        ("desk", "desk_flow"),
        ("user", "flow_user"),
        ("START", "flow_START"),
        ("_adk_x", "flow__adk_x"),
        ("2nd", "flow_2nd"),
        ("", "flow"),
    ],
)
def test_the_root_has_a_name_of_its_own(name: str, root: str) -> None:
    made = compiled(seq(AgentNode("desk"), name=name)).root
    assert made.name == root


def test_the_root_of_one_agent_is_described_like_it() -> None:
    config = ExecutionConfig(timeout_seconds=9)
    assert to_agent(AgentNode("a", description="Answers."), config).description == "Answers."
    assert to_agent(seq(AgentNode("a", description="Answers."))).description == ""


def test_the_root_evades_names_until_one_is_free() -> None:
    made = compiled(seq(AgentNode("a"), AgentNode("a_flow"), name="a")).root
    assert made.name == "a_flow_2"


def test_the_same_program_gives_the_same_objects_twice() -> None:
    program = seq(AgentNode("a"), par(AgentNode("b"), AgentNode("c")))
    first, second = compiled(program), compiled(program)
    assert first.root.name == second.root.name
    assert [a.name for a in first.root.sub_agents] == [a.name for a in second.root.sub_agents]
    assert first.root is not second.root


# --- agents of the user's ------------------------------------------------------------------------


def test_a_built_agent_is_copied_with_its_tree() -> None:
    kid = LlmAgent(name="kid")
    mine = LlmAgent(name="mine", sub_agents=[kid])
    (made,) = agents_of(seq(built(mine)))
    assert made is not mine
    assert made.sub_agents[0] is not kid
    assert mine.parent_agent is None
    assert kid.parent_agent is mine


def test_a_built_agent_may_stand_in_two_pipelines_and_below_its_own_parent() -> None:
    kid = LlmAgent(name="kid")
    LlmAgent(name="boss", sub_agents=[kid])
    assert agents_of(seq(built(kid)))[0] is not agents_of(seq(built(kid)))[0]
    assert kid.parent_agent is not None


def test_a_built_agent_takes_the_name_of_its_node() -> None:
    mine = LlmAgent(name="mine")
    (made,) = agents_of(AdkAgentNode("other", Ref.to(mine)))
    assert (made.name, mine.name) == ("other", "mine")


def test_what_is_no_agent_is_refused() -> None:
    with pytest.raises(UsageError, match="dict is no ADK agent"):
        compiled(AdkAgentNode("mine", Ref({}, "mine")))


def test_no_deprecated_class_is_used() -> None:
    a = agent("a")
    everything = seq(a, par(agent("b"), agent("c")), TimeoutNode("t", a, 1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        root: Any = to_app(everything).root_agent
    kinds: set[type] = {type(each) for each in (root, *root.sub_agents)}
    assert kinds == {FlowAgent, LlmAgent}


# --- what is refused -----------------------------------------------------------------------------


def test_what_would_be_ignored_is_refused() -> None:
    for make in (compiled, to_agent, to_app):
        with pytest.raises(UnsupportedConfigError, match="target") as caught:
            make(AgentNode("a"), ExecutionConfig(target="workflow"))
        assert caught.value.field == "target"
        assert "a later version" in caught.value.brings


def test_telemetry_needs_its_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_registry, "found", dict)
    monkeypatch.setattr(_registry, "layers", dict)
    for make in (compiled, to_agent, to_app):
        with pytest.raises(MissingLayerError, match="telemetry= needs") as caught:
            make(AgentNode("a"), ExecutionConfig(telemetry=TelemetryConfig()))
        assert caught.value.distribution == "adk-fluent-middleware"


def test_telemetry_is_set_up_by_its_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is compiled; what that gives is put into every RunConfig."""
    seen: list[TelemetryConfig] = []

    def apply(config: TelemetryConfig) -> dict[str, Any]:
        seen.append(config)
        return {"max_llm_calls": 7}

    def sole_offer(slot: str) -> SimpleNamespace | None:
        return SimpleNamespace(load=lambda: apply) if slot == "telemetry" else None

    monkeypatch.setattr("adk_fluent.backends.adk._config.sole_offer", sole_offer)
    config = ExecutionConfig(telemetry=TelemetryConfig(capture_content=True))
    compiled(AgentNode("a"), config)
    assert seen == [config.telemetry]
    assert run_config(config).max_llm_calls == 7
    assert merged(RunConfig(max_llm_calls=3), config).max_llm_calls == 3


GATE = GateNode("ok", location=Location("shop.py", 9))


def test_a_gate_in_a_race_is_refused_precisely() -> None:
    race = RaceNode("first", (AgentNode("b"), seq(AgentNode("c"), GATE)))
    with pytest.raises(BuildError, match="gate 'ok' stands inside the race 'first'") as caught:
        compiled(seq(AgentNode("a"), race))
    assert (caught.value.node, str(caught.value.location)) == ("ok", "shop.py:9")


def test_a_gate_in_a_tool_is_refused_precisely() -> None:
    with pytest.raises(UnsupportedNodeError, match="'pipe', which is a tool and cannot") as caught:
        compiled(AgentNode("a", agent_tools=(seq(AgentNode("c"), GATE, name="pipe"),)))
    assert (caught.value.node, str(caught.value.location)) == ("ok", "shop.py:9")


def test_streaming_edges_are_refused() -> None:
    edges = (EdgeSemantics("chunked"), EdgeSemantics())
    with pytest.raises(UnsupportedNodeError, match="streaming between steps"):
        compiled(SequenceNode("pipe", (AgentNode("a"), AgentNode("b")), edges))
    merging = SequenceNode("pipe", (AgentNode("a"),), (EdgeSemantics(merge="first_complete"),))
    with pytest.raises(UnsupportedNodeError, match="edges do not merge") as caught:
        compiled(merging)
    assert caught.value.help == "leave it out, and say FanOut(..., merge='first_complete')"
    full = SequenceNode("pipe", (AgentNode("a"),), (EdgeSemantics(),))
    assert len(agents_of(full)) == 1


@node
class FarNode(Node):
    """Of a layer that nobody has."""

    layer: ClassVar[str] = "nowhere"


@pytest.mark.parametrize(("absent", "layer"), [(FarNode("far"), "nowhere")])
async def test_an_absent_layer_is_told_before_any_model_call(absent: Node, layer: str) -> None:
    first = agent("first")
    with pytest.raises(MissingLayerError, match=f"adk-fluent-{layer}") as caught:
        await run(seq(first, absent))
    assert caught.value.layer == layer
    assert model_calls(first) == 0


def model_calls(node_: AgentNode) -> int:
    assert isinstance(node_.model, Ref)
    return len(node_.model.value.calls)


def test_every_node_has_a_rule_or_runs_in_the_engine_or_is_refused() -> None:
    elsewhere = {AppNode, ResourceNode, ModelSelectorNode, RemoteAgentNode}
    leaf = RULES[AgentNode]
    in_engine = {kind for kind in NODES if RULES.get(kind, leaf) is not leaf}
    with_rule = set(NODES) - set(rules.missing(NODES)) - elsewhere  # those that a layer has
    assert in_engine | with_rule | elsewhere == set(NODES)
    assert with_rule == {AgentNode, AdkAgentNode}


# --- the application -----------------------------------------------------------------------------


def test_an_application_brings_its_configuration() -> None:
    node_ = AppNode("shop", AgentNode("a"), execution=ExecutionConfig(app_name="shop"))
    assert compiled(node_).app.name == "shop"
    assert compiled(node_, ExecutionConfig(app_name="other")).app.name == "other"


def test_settings_of_the_app_arrive_or_are_refused() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # ADK calls it experimental
        cache = ContextCacheConfig()
    node_ = AppNode("shop", AgentNode("a"), settings=(("context_cache_config", cache),))
    assert to_app(node_).context_cache_config is cache
    with pytest.raises(UsageError, match="an agent has no place for it"):
        to_agent(node_)
    with pytest.raises(UnknownNameError) as caught:
        to_app(AppNode("shop", AgentNode("a"), settings=(("context_cache", cache),)))
    assert caught.value.nearest == "context_cache_config"


def test_what_is_no_middleware_is_refused() -> None:
    for make in (
        lambda: compiled(AppNode("shop", AgentNode("a"), middlewares=(Ref(object(), "m"),))),
        lambda: compiled(AgentNode("a"), ExecutionConfig(middlewares=(print,))),
    ):
        with pytest.raises(UsageError, match="this is no middleware"):
            make()
    with pytest.raises(UsageError, match="takes a list of middlewares"):
        compiled(AgentNode("a"), ExecutionConfig(middlewares="m"))


def test_a_name_adk_refuses_for_an_app_is_explained() -> None:
    with pytest.raises(UsageError, match="ADK refuses the app 'my shop'"):
        to_app(AgentNode("a"), ExecutionConfig(app_name="my shop"))


def test_an_app_without_middlewares_has_no_plugin_of_ours() -> None:
    assert isinstance(compiled(AgentNode("a")).app, App)
    assert compiled(AgentNode("a")).app.plugins == []


# --- passes and rules of layers ------------------------------------------------------------------


@node
class EchoNode(Node):
    """A node of some layer: becomes an agent that echoes."""

    layer = "toy"


def test_passes_run_in_order_and_every_result_can_be_verified(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[str, str]] = []
    mine: PassList[CompileContext] = PassList()

    def rename(root: Node, cx: CompileContext) -> Node:
        assert cx.config.timeout_seconds == 5
        return root.replace(name="renamed")

    def limit(root: Node, cx: CompileContext) -> Node:
        return TimeoutNode(root.name, root, 9)

    mine.add(Pass("limit", limit))
    mine.add(Pass("rename", rename, before="limit"))
    monkeypatch.setattr(compiling, "passes", mine)
    config = ExecutionConfig(timeout_seconds=5)
    expected = TimeoutNode("renamed", AgentNode("renamed"), 9)
    assert compiled(AgentNode("a"), config).root.plan.node == expected

    def verify(name: str, root: Node) -> None:
        seen.append((name, type(root).__name__))

    assert mine(AgentNode("a"), CompileContext(config), verify) == expected
    assert seen == [("rename", "AgentNode"), ("limit", "TimeoutNode")]


WAYS: dict[str, Callable[[Route], object]] = {
    "ask": lambda desk: desk.ask("hi"),
    "map": lambda desk: desk.map(["hi"]),
    "to_agent": lambda desk: desk.to_agent(),
    "to_app": lambda desk: desk.to_app(),
    "to_runner": lambda desk: desk.to_runner(),
    "compile": lambda desk: compiled(desk.build()),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_pass_that_makes_illegal_ir_fails_every_test_that_compiles(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine: PassList[CompileContext] = PassList()
    mine.add(Pass("empties", lambda root, cx: root.replace(tests=())))
    monkeypatch.setattr(compiling, "passes", mine)
    desk = Route("k").eq("x", Agent("a").mock("x")).named("desk")
    with pytest.raises(LegalityError, match=r"'desk'.*0 tests for 1 branches") as caught:
        WAYS[way](desk)
    assert "this is what pass 'empties' returned" in caught.value.__notes__


async def test_a_rule_of_a_layer_is_asked_with_its_context(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []

    def echo(node_: EchoNode, children: tuple[BaseAgent, ...], cx: CompileContext) -> BaseAgent:
        told.append((cx.node, children, cx.config.app_name, cx.caps))
        return LlmAgent(name=cx.name_of(node_), model=ScriptedModel(default="echo"))

    table = type(rules)("agents")
    table.include(rules)
    table.rule(EchoNode)(echo)
    monkeypatch.setattr("adk_fluent.backends.adk._lowering._context.rules", table)
    node_ = EchoNode("echo")
    assert (await run(seq(agent("a"), node_))).text == "echo"
    assert told[0][0] is node_
    assert told[0][1:3] == ((), "adk_fluent_app")


def test_function_steps_need_no_adk_object() -> None:
    assert agents_of(seq(writer("w", x=1), fn("f", lambda state: None))) == []

"""What agents are able to do, as data; what needs a layer says so; shared settings; functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

import pytest
from pydantic import BaseModel

from adk_fluent import Agent, FanOut, Pipeline, Preset, RemoteAgent, agent
from adk_fluent.errors import (
    MissingLayerError,
    UnknownNameError,
    UnsupportedNodeError,
    UsageError,
)
from adk_fluent.ir import (
    AgentNode,
    AppNode,
    AuthConfig,
    ContentSpec,
    EdgeSemantics,
    ExecutionBoundary,
    LoopNode,
    Modality,
    ModelCandidate,
    ModelSelectorNode,
    ParallelNode,
    Ref,
    RemoteAgentNode,
    RetryConfig,
    ScalingConfig,
    SequenceNode,
    StateFieldRef,
    TransportConfig,
    assert_legal,
)
from adk_fluent.testing import mock_backend


class Ticket(BaseModel):
    intent: str
    score: float


@dataclass
class Order:
    number: str


class Draft(TypedDict):
    text: str


def built(made: Any, kind: type[Any] = AgentNode) -> Any:
    node = made.to_ir()
    assert_legal(node)
    assert isinstance(node, kind)
    return node


# --- produces, consumes --------------------------------------------------------------------------


def test_produces() -> None:
    node = built(Agent("a").produces(Ticket))
    assert node.produces_type == node.output_schema == Ref.to(Ticket)
    assert node.writes_keys == (StateFieldRef("intent", str), StateFieldRef("score", float))
    kept = built(Agent("a").output_schema(Draft).produces(Draft))
    assert kept.output_schema == Ref.to(Draft)


async def test_what_it_produces_is_written() -> None:
    made = Agent("a").produces(Ticket).mock('{"intent": "billing", "score": 1}')
    result = await made.run("go", backend=mock_backend())
    assert result.state == {"intent": "billing", "score": 1.0}


@pytest.mark.parametrize("schema", [Order, Draft])
def test_consumes(schema: Any) -> None:
    node = built(Agent("a").reads("x").consumes(schema))
    assert node.consumes_type == Ref.to(schema)
    assert [ref.key for ref in node.reads_keys] == ["x", *schema.__annotations__]
    assert [ref.type for ref in node.reads_keys] == [None, str]


@pytest.mark.parametrize("schema", [int, list[str]])
def test_a_type_without_fields_is_refused(schema: Any) -> None:
    with pytest.raises(UsageError, match=r"\.produces\(\.\.\.\) takes a type with annotated"):
        Agent("a").produces(schema)


# --- content -------------------------------------------------------------------------------------


def test_modalities() -> None:
    made = Agent("a").accepts(Modality.IMAGE, Modality.TEXT, max_tokens=1000)
    node = built(made.produces_modality(Modality.STRUCTURED))
    assert node.content == ContentSpec(
        frozenset({Modality.IMAGE, Modality.TEXT}),
        frozenset({Modality.STRUCTURED}),
        max_input_tokens=1000,
    )
    assert built(Agent("a")).content is None


@pytest.mark.parametrize("bad", [("image",), ()])
def test_what_is_no_modality(bad: Any) -> None:
    with pytest.raises(UsageError, match=r"\.accepts\(\.\.\.\)") as caught:
        Agent("a").accepts(*bad)
    assert "test_capabilities.py" in str(caught.value.location)


@pytest.mark.parametrize("bad", [0, -1, True, 1.5, "3"])
def test_what_is_no_number_of_tokens(bad: Any) -> None:
    with pytest.raises(UsageError, match="takes a number of tokens"):
        Agent("a").produces_modality(Modality.TEXT, max_tokens=bad)


# --- choosing the model --------------------------------------------------------------------------

FLASH = ModelCandidate("gemini-2.5-flash", 0.0003, 0.0025, quality_tier=1)
PRO = ModelCandidate("gemini-2.5-pro", 0.00125, 0.01, quality_tier=2)


def test_model_select() -> None:
    node = built(
        Agent("a").model_select(
            strategy="budget_bounded",
            candidates=[FLASH, PRO],
            budget_key="left",
            fallback_model="gemini-2.5-flash",
        )
    )
    assert node.selector == ModelSelectorNode(
        "a_model", "budget_bounded", (FLASH, PRO), "left", "gemini-2.5-flash"
    )


@pytest.mark.adk
def test_choosing_needs_the_layer() -> None:
    with pytest.raises(MissingLayerError, match="cost") as caught:
        Agent("a").model_select(candidates=[FLASH]).to_app()
    assert "pip install adk-fluent-cost" in str(caught.value)


def test_misuse_of_model_select() -> None:
    with pytest.raises(UsageError, match="needs a ModelCandidate at least"):
        Agent("a").model_select(candidates=[])
    with pytest.raises(UsageError, match="takes ModelCandidates"):
        Agent("a").model_select(candidates=["gemini"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    with pytest.raises(UnknownNameError, match="strategy is one of"):
        Agent("a").model_select(strategy="cheap", candidates=[FLASH])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


# --- edges ---------------------------------------------------------------------------------------


def test_stream_to() -> None:
    token, chunked = EdgeSemantics("token"), EdgeSemantics("chunked", True, 32)
    first = Agent("a").stream_to("token") >> Agent("b")
    assert built(first, SequenceNode).edge_semantics == (token, EdgeSemantics())
    last = Agent("c").stream_to("chunked", chunk_size=32, backpressure=True)
    node = built(first >> last, SequenceNode)
    assert [step.name for step in node.steps] == ["a", "b", "c"]
    assert node.edge_semantics == (token, EdgeSemantics(), chunked)
    assert built(first, SequenceNode).edge_semantics == (token, EdgeSemantics())
    assert built(Agent("x") >> Agent("y"), SequenceNode).edge_semantics == ()


def test_a_pipeline_with_edges_stays_whole() -> None:
    inner = (Agent("a") >> Agent("b")).stream_to("token")
    node = built(inner >> Agent("c"), SequenceNode)
    assert [type(step) for step in node.steps] == [SequenceNode, AgentNode]
    assert node.edge_semantics == (EdgeSemantics("token"), EdgeSemantics())


def test_what_stands_elsewhere_streams_to_the_caller() -> None:
    a = Agent("a").stream_to("token")
    alone = SequenceNode("pipeline", (AgentNode("a"),), (EdgeSemantics("token"),))
    assert built(a, SequenceNode) == alone
    assert built(a | Agent("b"), ParallelNode).branches == (alone, AgentNode("b"))
    assert built(a * 2, LoopNode).body == alone


@pytest.mark.parametrize(
    ("how", "options", "says"),
    [
        ("tokens", {}, "buffering is one of"),
        ("chunked", {}, "chunk_size= goes with"),
        ("token", {"chunk_size": 3}, "chunk_size= goes with"),
        ("chunked", {"chunk_size": 0}, "chunk_size is an int above 0"),
    ],
)
def test_misuse_of_stream_to(how: Any, options: Any, says: str) -> None:
    with pytest.raises((UsageError, UnknownNameError), match=says):
        Agent("a").stream_to(how, **options)


@pytest.mark.adk
def test_streaming_between_steps_is_refused_for_now() -> None:
    with pytest.raises(UnsupportedNodeError, match="streaming between steps"):
        (Agent("a").stream_to("token") >> Agent("b")).to_app()
    (Agent("a").stream_to("full") >> Agent("b")).to_app()


# --- boundaries ----------------------------------------------------------------------------------

QUEUE = TransportConfig("queue", "pubsub://heavy")


@pytest.mark.parametrize("make", [lambda: Agent("a"), lambda: Agent("a") >> Agent("b")])
def test_execution_boundary(make: Any) -> None:
    made = make().execution_boundary(transport=QUEUE, scaling=ScalingConfig(max_instances=20))
    node = built(made, object)
    assert node.boundary == ExecutionBoundary(
        transport=QUEUE, scaling=ScalingConfig(max_instances=20)
    )
    longer = built(made >> Agent("z"), SequenceNode)
    assert longer.boundary is None
    assert longer.steps[0] == node
    assert len(longer.steps) == 2


def test_a_fan_out_with_a_boundary_stays_whole() -> None:
    inner = FanOut(Agent("a"), Agent("b")).execution_boundary(isolation="process")
    node = built(inner | Agent("c"), ParallelNode)
    assert len(node.branches) == 2


def test_misuse_of_a_boundary() -> None:
    with pytest.raises(UnknownNameError, match="serialization is one of"):
        Agent("a").execution_boundary(serialization="xml")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match="transport= takes a TransportConfig"):
        Agent("a").execution_boundary(transport="queue")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


# --- remote agents -------------------------------------------------------------------------------


def test_remote_agent() -> None:
    made = RemoteAgent(
        "payments",
        endpoint="https://payments.internal/a2a",
        capabilities=("process_refund", "check_balance"),
        output_schema=Ticket,
        auth=AuthConfig("bearer", "TOKEN"),
        timeout=15,
        retry=RetryConfig(),
        fallback=Agent("by_hand").inject(db=1),
    )
    whole = (Agent("a") >> made.reads("x").writes("paid")).to_ir()
    assert isinstance(whole, AppNode)  # the fallback brought a resource along
    assert_legal(whole)
    assert isinstance(whole.root, SequenceNode)
    node = whole.root.steps[1]
    assert node == RemoteAgentNode(
        "payments",
        "https://payments.internal/a2a",
        ("process_refund", "check_balance"),
        output_schema=Ref.to(Ticket),
        auth=AuthConfig("bearer", "TOKEN"),
        timeout_seconds=15.0,
        retry=RetryConfig(),
        reads_keys=(StateFieldRef("x"),),
        writes_keys=(StateFieldRef("paid"),),
        fallback=AgentNode("by_hand"),
    )


@pytest.mark.adk
def test_remote_agents_need_the_layer() -> None:
    far = RemoteAgent("far", endpoint="http://far")
    for ask in (far.to_app, lambda: RemoteAgent.from_card({}), lambda: card_of(Agent("a"))):
        with pytest.raises(MissingLayerError) as caught:
            ask()
        assert "pip install adk-fluent-a2a" in str(caught.value)


def card_of(pipeline: Any) -> Any:
    return pipeline.to_agent_card(description="Pays back.", endpoint="http://here")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"endpoint": "far"}, "endpoint= takes the URL"),
        ({"endpoint": 3}, "endpoint= takes the URL"),
        ({"capabilities": "refund"}, "capabilities= takes names"),
        ({"capabilities": [""]}, "capabilities= takes names"),
        ({"capabilities": [3]}, "capabilities= takes names"),
        ({"timeout": 0}, "timeout is a number above 0"),
        ({"auth": "secret"}, "auth= takes an AuthConfig"),
        ({"retry": 3}, "retry= takes a RetryConfig"),
        ({"fallback": 3}, "cannot be a fallback"),
        ({"input_schema": 3}, "input_schema= takes a type"),
    ],
)
def test_misuse_of_remote_agents(options: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        RemoteAgent("far", **dict[str, Any]({"endpoint": "http://far", **options}))


# --- presets -------------------------------------------------------------------------------------


def tool_a() -> str:
    """A."""
    return "a"


def tool_b() -> str:
    """B."""
    return "b"


def test_presets() -> None:
    base = Preset(model="gemini-2.5-flash", history="own")
    more = Preset(base, history="none", tool=[tool_a, tool_b], writes=["x", "y"])
    node = built(Agent("a").use(base, more).instruct("Hi"))
    assert (node.model, node.history, node.instruction) == ("gemini-2.5-flash", "none", "Hi")
    assert [each.name for each in node.tools] == ["tool_a", "tool_b"]
    assert [ref.key for ref in node.writes_keys] == ["x", "y"]
    assert repr(more) == "<Preset model, history, tool, writes>"
    assert base.settings == {"model": "gemini-2.5-flash", "history": "own"}


def test_a_preset_is_checked_where_it_is_made() -> None:
    with pytest.raises(UnknownNameError, match="an agent has no setter 'historie'") as caught:
        Preset(historie="own")
    assert caught.value.nearest == "history"
    assert "test_capabilities.py" in str(caught.value.location)
    for name in ("run", "ask", "to_ir", "with_", "check", "clone", "model_select", "_fields"):
        with pytest.raises(UnknownNameError):
            Preset(**{name: 1})
    with pytest.raises(UsageError, match="a preset is made of presets"):
        Preset({"model": "x"})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match=r"\.use\(\.\.\.\) takes Presets"):
        Agent("a").use({"model": "x"})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_a_wrong_value_is_told_where_it_is_used() -> None:
    with pytest.raises(UnknownNameError, match="is one of"):
        Agent("a").use(Preset(history="al"))


# --- agents as functions -------------------------------------------------------------------------


def test_a_docstring_is_the_instruction() -> None:
    @agent
    def classify() -> None:
        """One word:
        billing or other?
        """

    node = built(classify)
    assert node.name == "classify"
    assert node.instruction == "One word:\nbilling or other?"
    assert node.description is None


def test_a_function_gives_the_instruction() -> None:
    @agent(
        "triage", Preset(history="own"), model="gemini-2.5-flash", writes="intent", tool=[tool_a]
    )
    async def classify(context: Any) -> str:
        """Sorts tickets."""
        return f"Sort {context.state['ticket']}."

    node = built(classify >> Agent("b"), SequenceNode).steps[0]
    assert (node.name, node.model, node.history) == ("triage", "gemini-2.5-flash", "own")
    assert node.description == "Sorts tickets."
    assert isinstance(node.instruction, Ref)
    assert [ref.key for ref in node.writes_keys] == ["intent"]


def test_misuse_of_the_decorator() -> None:
    def silent() -> str:
        return ""

    with pytest.raises(UsageError, match="the agent 'silent' has no instruction"):
        agent(silent)
    with pytest.raises(UsageError, match="@agent decorates"):
        agent("x")(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(UnknownNameError, match="no setter 'modle'"):
        agent("x", modle="y")


@pytest.mark.adk
async def test_a_decorated_function_runs() -> None:
    from adk_fluent.testing import ScriptedModel

    model = ScriptedModel("billing")

    @agent(model=model)
    def classify(context: Any) -> str:
        return f"Sort {context.state['ticket']}."

    result = await Pipeline(classify).run("go", state={"ticket": "T1"})
    assert result.text == "billing"
    assert "Sort T1." in model.calls[0].system

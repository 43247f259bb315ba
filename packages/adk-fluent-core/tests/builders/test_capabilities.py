"""What agents are able to do, as data; what needs a layer says so; shared settings; functions."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

import pytest
from pydantic import BaseModel

from adk_fluent import Agent, FanOut, Pipeline, Preset, RemoteAgent, agent
from adk_fluent.builders import PresetSettings, RemoteOptions
from adk_fluent.builders._agent import setters
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
    from_json,
    to_json,
)
from adk_fluent.testing import mock_backend

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.protocol import ModelReply


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


@pytest.mark.parametrize("bad", [0, -1, True, 1.5, "3"])
def test_what_is_no_number_of_tokens(bad: Any) -> None:
    with pytest.raises(UsageError, match="takes a number of tokens"):
        Agent("a").produces_modality(Modality.TEXT, max_tokens=bad)


# --- choosing the model --------------------------------------------------------------------------

FLASH = ModelCandidate("gemini-2.5-flash", 0.0003, 0.0025, quality_tier=1)
PRICED = ModelCandidate("m", prices={"input": 1, "output": 2.5})
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


def test_a_judge_and_a_condition_are_kept_as_references() -> None:
    def good(reply: ModelReply) -> bool:
        return bool(reply.text)

    candidate = ModelCandidate(
        "m", condition=lambda ctx, request: True, prices={"output": 2, "input": 1}
    )
    node = built(Agent("a").model_select(strategy="adaptive", candidates=[candidate], judge=good))
    assert node.selector is not None
    assert node.selector.judge == Ref.to(good)
    assert isinstance(candidate.condition, Ref)
    assert candidate.prices == (("input", 1), ("output", 2))
    priced = AgentNode("a", selector=ModelSelectorNode("s", candidates=(FLASH, PRICED)))
    assert_legal(priced)
    assert from_json(to_json(priced)) == priced


@pytest.mark.adk
def test_choosing_needs_the_layer(absent: Callable[[str], None]) -> None:
    absent("cost")
    with pytest.raises(MissingLayerError, match="adk-fluent-cost"):
        Agent("a").model_select(candidates=[FLASH]).to_app()


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


def test_cards_need_the_layer(absent: Callable[[str], None]) -> None:
    absent("a2a")
    for ask in (
        lambda: RemoteAgent("far", card={}),
        lambda: RemoteAgent.from_card({}),
        lambda: Agent("a").to_agent_card(endpoint="http://127.0.0.1"),
    ):
        with pytest.raises(MissingLayerError) as caught:
            ask()
        assert "pip install adk-fluent-a2a" in str(caught.value)


# --- presets -------------------------------------------------------------------------------------


def tool_a() -> str:
    """A."""
    return "a"


def tool_b() -> str:
    """B."""
    return "b"


def test_presets() -> None:
    base = Preset(model="gemini-2.5-flash", history="own")
    more = Preset(
        base,
        history="none",
        tool=[tool_a, tool_b],
        writes=["x", "y"],
        accepts=[Modality.TEXT, Modality.IMAGE],
    )
    node = built(Agent("a").use(base, more).instruct("Hi"))
    assert (node.model, node.history, node.instruction) == ("gemini-2.5-flash", "none", "Hi")
    assert [each.name for each in node.tools] == ["tool_a", "tool_b"]
    assert [ref.key for ref in node.writes_keys] == ["x", "y"]
    assert node.content.input_modalities == {Modality.TEXT, Modality.IMAGE}
    assert repr(more) == "<Preset model, history, tool, writes, accepts>"
    assert base.settings == {"model": "gemini-2.5-flash", "history": "own"}


@pytest.mark.parametrize(
    "name", ["run", "ask", "to_ir", "with_", "check", "clone", "model_select", "_fields"]
)
def test_what_is_no_setting_is_none_of_a_preset(name: str) -> None:
    with pytest.raises(UnknownNameError):
        Preset(**dict[str, Any]({name: 1}))


def test_the_type_of_settings_has_all_setters() -> None:
    assert sorted(PresetSettings.__annotations__) == sorted(setters())


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


def test_the_options_of_a_remote_agent_are_its_parameters() -> None:
    taken = list(inspect.signature(RemoteAgent).parameters)
    assert taken == ["name", "endpoint", "card", *RemoteOptions.__annotations__]

"""Execution boundaries, and all else that only a layer does, are honoured or refused."""

from __future__ import annotations

import asyncio
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent, FanOut, Loop, Pipeline, Route, _registry, gate, ir, map_over
from adk_fluent._registry import Found
from adk_fluent.backends import Pass
from adk_fluent.backends.adk._lowering._compile import compile_ir, passes
from adk_fluent.contracts import LayerAbsent, Severity, _check, _layers, check_all
from adk_fluent.errors import LayerError, MissingLayerError, UnsupportedNodeError
from adk_fluent.ir import (
    AgentNode,
    AppNode,
    ExecutionBoundary,
    ExecutionConfig,
    ModelSelectorNode,
    Node,
    Ref,
    RemoteAgentNode,
    ScalingConfig,
    TelemetryConfig,
    TransportConfig,
)
from adk_fluent.protocol import Layer
from adk_fluent.testing import AgentHarness, ScriptedModel, mock_backend

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.adk

ASKED: dict[str, ExecutionBoundary] = {
    "isolation='process'": ExecutionBoundary(isolation="process"),
    "isolation='container'": ExecutionBoundary(isolation="container"),
    "transport='queue'": ExecutionBoundary(transport=TransportConfig("queue")),
    "transport='http'": ExecutionBoundary(transport=TransportConfig("http", "http://10.0.0.1")),
    "transport='local'": ExecutionBoundary(transport=TransportConfig(timeout_seconds=1)),
    "scaling": ExecutionBoundary(scaling=ScalingConfig()),
}
PLAIN = (
    ExecutionBoundary(),
    ExecutionBoundary("arrow"),
    ExecutionBoundary(transport=TransportConfig("local")),
)
CONTAINER = ASKED["isolation='container'"]


def agent(name: str = "heavy", boundary: ExecutionBoundary | None = None, **fields: Any) -> Node:
    return AgentNode(name, model=Ref(ScriptedModel("done")), boundary=boundary, **fields)


#: Where a boundary can stand.
PLACES: dict[str, Callable[[ExecutionBoundary], Node]] = {
    "agent": lambda each: agent(boundary=each),
    "step": lambda each: (Agent("a").mock("x") >> agent(boundary=each)).to_ir(),
    "pipeline": lambda each: ir.SequenceNode("heavy", (agent("a"),), boundary=each),
    "branch": lambda each: FanOut(Agent("a").mock("x"), agent(boundary=each)).to_ir(),
    "loop": lambda each: Loop("l", agent(boundary=each), max=1).to_ir(),
    "route": lambda each: Route("k").eq("a", agent(boundary=each)).to_ir(),
    "fallback": lambda each: (Agent("a").mock("x") // agent(boundary=each)).to_ir(),
    "map": lambda each: map_over("k", agent(boundary=each)).to_ir(),
    "function": lambda each: ir.FunctionNode("heavy", Ref.to(len), boundary=each),
    "gate": lambda each: gate(message="ok?").to_ir().replace(name="heavy", boundary=each),
    "tool": lambda each: agent("a", agent_tools=(agent(boundary=each),)),
    "delegate": lambda each: agent("a", delegates=(agent(boundary=each),)),
    "pipeline of a delegate": lambda each: agent(
        "a", delegates=(ir.SequenceNode("p", (agent(boundary=each),)),)
    ),
    "application": lambda each: AppNode("heavy", agent("a"), boundary=each),
    "part with a middleware": lambda each: ir.MiddlewareNode("heavy", agent("a"), boundary=each),
}
#: How a pipeline is compiled.
BACKENDS: dict[str, Callable[[Node], object]] = {
    "mock": lambda node: mock_backend().compile(node),
    "adk": compile_ir,
    "unchecked": lambda node: compile_ir(node, ExecutionConfig(contracts="off")),
}


def install(monkeypatch: pytest.MonkeyPatch, target: str | None) -> None:
    """Have nothing installed but a layer for boundaries, of which `target` is the object."""
    point = EntryPoint("distributed", target or "", _registry.GROUP)
    source = Found("distributed", "adk-fluent-distributed", "0.1", point)
    layers = {"distributed": source} if target else {}
    for module in (_registry, _layers, _check):
        monkeypatch.setattr(module, "found", lambda: layers)
    monkeypatch.setattr(_registry, "_loaded", _registry._loaded.__wrapped__)


@pytest.fixture
def nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No layer is installed."""
    install(monkeypatch, None)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The layer for boundaries is, and sees to none."""
    monkeypatch.setattr(_registry, "LAYER", Layer("distributed", {}), raising=False)
    install(monkeypatch, "adk_fluent._registry:LAYER")


@pytest.mark.usefixtures("nothing")
@pytest.mark.parametrize("asked", ASKED)
def test_what_one_process_is_not_needs_the_layer(asked: str) -> None:
    for compiled in BACKENDS.values():
        with pytest.raises(MissingLayerError) as caught:
            compiled(agent(boundary=ASKED[asked]))
        error = caught.value
        assert error.what == (
            f"an execution boundary with {asked} needs the layer 'distributed', which is not "
            "installed"
        )
        assert (error.node, error.help) == ("heavy", "pip install adk-fluent-distributed")


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("asked", ASKED)
def test_what_the_layer_does_not_see_to_is_refused(asked: str) -> None:
    for compiled in BACKENDS.values():
        with pytest.raises(UnsupportedNodeError) as caught:
            compiled(agent(boundary=ASKED[asked]))
        assert caught.value.what.startswith(f"an execution boundary with {asked} is not held here")
        assert caught.value.node == "heavy"
        assert f"leave {asked} out" in str(caught.value.help)


def test_a_broken_layer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "adk_fluent.nothing:LAYER")
    for compiled in BACKENDS.values():
        with pytest.raises(LayerError, match=r"adk_fluent\.nothing"):
            compiled(agent(boundary=CONTAINER))


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("place", PLACES)
def test_wherever_it_stands(place: str) -> None:
    for compiled in BACKENDS.values():
        with pytest.raises(UnsupportedNodeError, match="isolation='container'") as caught:
            compiled(PLACES[place](CONTAINER))
        assert caught.value.node == "heavy"


@pytest.mark.usefixtures("nothing")
@pytest.mark.parametrize("place", PLACES)
def test_a_plain_one_is_as_none(place: str) -> None:
    for plain in PLAIN:
        node = PLACES[place](plain)
        for name, compiled in BACKENDS.items():
            if (place, name) != ("part with a middleware", "mock"):  # which that has none of
                compiled(node)


@pytest.mark.usefixtures("nothing")
@pytest.mark.parametrize("plain", PLAIN, ids=repr)
def test_a_plain_one_runs_in_this_process(plain: ExecutionBoundary) -> None:
    pipeline = Pipeline("p", Agent("first").mock("x"), agent(boundary=plain))
    assert pipeline.ask("hello") == "done"


@pytest.mark.usefixtures("nothing")
def test_nothing_runs_and_nothing_is_exported_that_does_not_hold_it() -> None:
    first, heavy = ScriptedModel("x"), ScriptedModel("y")
    held = Agent("heavy", heavy).execution_boundary(isolation="container")
    pipeline = Agent("first", first) >> held
    looks: list[Callable[[], object]] = [
        *(pipeline.to_app, pipeline.to_agent, pipeline.to_runner),
        lambda: pipeline.ask("hello"),
        lambda: asyncio.run(pipeline.run("hello")),
        lambda: asyncio.run(AgentHarness(pipeline).send("hello")),
    ]
    for look in looks:
        with pytest.raises(MissingLayerError, match="isolation='container'") as caught:
            look()
        assert str(caught.value.location).startswith(__file__)
    assert (len(first.calls), len(heavy.calls)) == (0, 0)


@pytest.mark.usefixtures("installed")
def test_a_layer_honours_one_by_taking_it_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass of the layer puts a node of its own there, or the layer cuts the pipeline before."""

    def elsewhere(root: Node, cx: object) -> Node:
        return ir.map(root, lambda node: node.replace(boundary=None) if node.boundary else node)

    monkeypatch.setattr(passes, "_passes", [*passes._passes, Pass("elsewhere", elsewhere)])
    for place, made in PLACES.items():
        if place != "application":  # which is no part of what passes are given
            compile_ir(made(CONTAINER))


@pytest.mark.usefixtures("nothing")
def test_check_says_so_before() -> None:
    def found(boundary: ExecutionBoundary) -> list[tuple[type, Severity, str]]:
        return [(type(d), d.severity, d.message) for d in check_all(agent(boundary=boundary))]

    what = "execution boundary with isolation='container'"
    assert found(CONTAINER) == [
        (
            LayerAbsent,
            Severity.ERROR,
            f"`heavy` needs the layer `distributed` ({what}), which is not installed",
        )
    ]
    for asked in ASKED.values():
        assert [severity for _, severity, _ in found(asked)] == [Severity.ERROR]
    for plain in PLAIN:
        assert [severity for _, severity, _ in found(plain)] == [Severity.WARNING]
    both = ir.SequenceNode("s", (agent("a", boundary=PLAIN[0]), agent(boundary=CONTAINER)))
    [worst] = check_all(both)
    assert (worst.node, worst.severity, len(worst.related)) == ("heavy", Severity.ERROR, 1)


# --- all else that belongs to a layer ------------------------------------------------------------

#: A pipeline for each kind of thing that core declares and a layer does.
OF_LAYERS: dict[type, Node] = {
    ExecutionBoundary: agent(boundary=CONTAINER),
    ModelSelectorNode: agent(selector=ModelSelectorNode("cheap")),
    RemoteAgentNode: RemoteAgentNode("far", "https://far.example"),
    TelemetryConfig: AppNode(
        "app", agent(), execution=ExecutionConfig(telemetry=TelemetryConfig())
    ),
}


def test_each_kind_is_looked_at() -> None:
    declared = {getattr(ir, name) for name in ir.__all__}
    assert {each for each in declared if getattr(each, "layer", "core") != "core"} == set(OF_LAYERS)


@pytest.mark.parametrize("kind", OF_LAYERS)
def test_what_an_absent_layer_does_is_refused(kind: type, absent: Callable[[str], None]) -> None:
    absent(getattr(kind, "layer"))  # noqa: B009  # not every type's
    part = OF_LAYERS[kind]
    within: list[Node] = [part]
    if not isinstance(part, AppNode):
        within += [
            ir.SequenceNode("s", (agent("a"), part)),
            ir.ParallelNode("b", (agent("a"), part)),
            agent("a", agent_tools=(part,)),
            agent("a", delegates=(part,)),
        ]
    for node in within:
        with pytest.raises(MissingLayerError) as caught:
            compile_ir(node)
        assert caught.value.layer == getattr(kind, "layer")  # noqa: B009  # not every type's

"""What belongs to layers: their checkers are asked, and their absence is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent, RemoteAgent
from adk_fluent._registry import LayerObject
from adk_fluent.contracts import (
    Diagnostic,
    Graph,
    LayerAbsent,
    Severity,
    _checkers,
    _layers,
    check_a2a_contracts,
    check_all,
    check_boundary_contracts,
    check_cost_contracts,
    register_checker,
)
from adk_fluent.contracts import _check as _check_module
from adk_fluent.errors import CheckerError, LayerError, UsageError
from adk_fluent.ir import (
    AgentNode,
    ExecutionBoundary,
    ModelSelectorNode,
    Node,
    RemoteAgentNode,
    SequenceNode,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHECKS = {
    "distributed": check_boundary_contracts,
    "a2a": check_a2a_contracts,
    "cost": check_cost_contracts,
}
USERS: dict[str, Node] = {
    "distributed": AgentNode("heavy", boundary=ExecutionBoundary()),
    "a2a": RemoteAgentNode("far", "https://far"),
    "cost": AgentNode("pick", selector=ModelSelectorNode("pick_model")),
}
NAMES = {"distributed": "heavy", "a2a": "far", "cost": "pick_model"}
EVERYTHING = SequenceNode("all", tuple(USERS.values()))


class OddLayer(Diagnostic, code="ODD101", severity=Severity.WARNING):
    """A finding of a layer's checker."""


def check_first(graph: Graph) -> Iterator[Diagnostic]:
    yield OddLayer.at(graph, graph.root, "found by the layer")


def check_badly(graph: Graph) -> Iterator[Diagnostic]:
    raise ZeroDivisionError


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_layers, "found", dict)


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Layers with these checkers."""

    def add(**checkers: Any) -> None:
        given = [LayerObject(layer, "", check) for layer, check in checkers.items() if check]

        def usable(slot: str) -> tuple[list[LayerObject], list[LayerError]]:
            return given, []

        monkeypatch.setattr(_checkers, "usable", usable)
        for module in (_layers, _check_module):
            monkeypatch.setattr(module, "found", lambda: dict.fromkeys(checkers))

    return add


@pytest.mark.parametrize("layer", CHECKS)
def test_an_absent_layer_is_told_by_its_check_alone(layer: str) -> None:
    for each, check in CHECKS.items():
        found = check(EVERYTHING)
        assert [(type(d), d.node) for d in found] == [(LayerAbsent, NAMES[each])]
        assert check(USERS[layer]) == ([] if each != layer else check(Graph(USERS[layer])))
    [absent] = CHECKS[layer](USERS[layer])
    assert absent.help == f"pip install adk-fluent-{layer}"
    assert [d for d in check_all(USERS[layer]) if d.code == "FLW901"] == [absent]


@pytest.mark.parametrize("layer", CHECKS)
def test_nothing_is_said_where_nothing_of_the_layer_is(layer: str) -> None:
    assert CHECKS[layer](Agent("a") >> Agent("b")) == []


@pytest.mark.parametrize("layer", CHECKS)
def test_an_installed_layer_is_asked(layer: str, install: Callable[..., None]) -> None:
    install(**{layer: check_first, "eval": check_first})
    for each, check in CHECKS.items():
        told = [type(d) for d in check(EVERYTHING)]
        assert told == [OddLayer if each == layer else LayerAbsent]
    # and `check_all` asks each checker once
    assert sum(type(d) is OddLayer for d in check_all(EVERYTHING)) == 1
    assert check_all(EVERYTHING).checked[-2:] == (f"{layer}.first", "eval.first")


def test_an_installed_layer_without_checkers_has_nothing_to_say(
    install: Callable[..., None],
) -> None:
    install(a2a=None)
    assert check_a2a_contracts(RemoteAgent("far", endpoint="https://far")) == []


def test_a_users_checker_for_a_layer_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    register_checker(check_first, layer="cost")
    assert [type(d) for d in check_cost_contracts(USERS["cost"])] == [OddLayer, LayerAbsent]
    assert [type(d) for d in check_a2a_contracts(USERS["cost"])] == []


def test_a_checker_that_fails_is_named(install: Callable[..., None]) -> None:
    install(cost=check_badly)
    with pytest.raises(CheckerError, match="'badly' of layer 'cost'"):
        check_cost_contracts(EVERYTHING)
    assert [type(d) for d in check_a2a_contracts(EVERYTHING)] == [LayerAbsent]


@pytest.mark.parametrize("layer", CHECKS)
def test_only_pipelines_are_checked(layer: str) -> None:
    with pytest.raises(UsageError, match="only a pipeline can be checked"):
        CHECKS[layer](42)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

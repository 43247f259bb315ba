"""`check_all` on IR that breaks the rules: files, passes and hands make such, builders do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from broken_ir import ANY, BROKEN, A
from hypothesis import given
from hypothesis import strategies as st
from ir_strategies import Tool, double, graphs, laws

from adk_fluent import ir
from adk_fluent.contracts import (
    ContractReport,
    Diagnostic,
    Graph,
    IllegalNode,
    InvalidValue,
    check_all,
    register_checker,
)
from adk_fluent.errors import CheckerError, LegalityError

if TYPE_CHECKING:
    from collections.abc import Iterable


def checked(root: ir.Node) -> ContractReport | LegalityError:
    """A report, or the one error there may be."""
    try:
        return check_all(root)
    except LegalityError as error:
        return error


@pytest.mark.parametrize(("rule", "root", "what"), BROKEN)
def test_a_broken_rule_is_told(rule: str, root: ir.Node, what: str) -> None:
    (violation,) = ir.verify(root)
    told = checked(root)
    if isinstance(told, LegalityError):  # of wrong types, so that nothing else can look at it
        assert rule == "typed"
        assert told.violations == (str(violation),)
        return
    assert not told.ok
    illegal = [each for each in told if isinstance(each, IllegalNode)]
    if illegal:
        (found,) = illegal
        assert found.message == f"`{violation.node}` is not legal: {violation.what}"
        assert (found.node, found.kind) == (violation.node, violation.kind)
        assert found.location == violation.location
    else:
        assert rule in WELL_EXPLAINED


#: Rules of which other findings tell, and better.
WELL_EXPLAINED = {
    "typed",
    "named",
    "keyed",
    "placed",
    "filled",
    "positive",
    "matched",
    "edged",
    "transformed",
    "resources",
    "runs",
    "reached",
}
ODD = [None, 3, -1, "", "x", (), ("x",), [1], {"a": 1}, double, Tool("x"), A, (A,), ir.Match]


@laws
@given(graphs(), st.data())
def test_whatever_is_done_to_ir_is_told_when_it_is_not_legal(
    root: ir.Node, data: st.DataObject
) -> None:
    here = data.draw(st.sampled_from(list(ir.walk(root))))
    field = data.draw(st.sampled_from(sorted(type(here).__record__.fields)))
    try:
        odd = ir.replace(root, here, here.replace(**{field: data.draw(st.sampled_from(ODD))}))
    except (TypeError, AttributeError):  # what is so wrong cannot be put into a graph
        return
    if ir.verify(odd):
        told = checked(odd)
        assert isinstance(told, LegalityError) or not told.ok


@laws
@given(graphs())
def test_legal_graphs_have_no_such_finding(root: ir.Node) -> None:
    assert not [each for each in check_all(root) if isinstance(each, IllegalNode)]


def test_what_another_finding_explains_is_not_told_twice() -> None:
    (found,) = check_all(ANY.AgentNode("a", history="all")).errors
    assert isinstance(found, InvalidValue)
    root = ir.SequenceNode("s", (ANY.AgentNode("a", history="all"), ANY.AgentNode("b", mock=3)))
    assert [(type(each), each.node) for each in check_all(root).errors] == [
        (InvalidValue, "a"),
        (IllegalNode, "b"),
    ]


def test_a_crash_of_ours_on_legal_ir_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(graph: Graph) -> Iterable[Diagnostic]:
        raise RuntimeError("boom")

    register_checker(fails, layer="core")
    with pytest.raises(CheckerError, match=r"checker 'fails' of layer 'core' failed.*boom"):
        check_all(A)
    with pytest.raises(LegalityError, match="model holds int"):
        check_all(ANY.AgentNode("a", model=3))


def test_a_crash_of_somebody_elses_is_theirs() -> None:
    @register_checker
    def fails(graph: Graph) -> Iterable[Diagnostic]:
        raise RuntimeError("boom")

    with pytest.raises(CheckerError, match="checker 'fails' failed: RuntimeError") as caught:
        check_all(ANY.AgentNode("a", model=3))
    assert caught.value.help == "correct the checker"
    assert fails


def test_a_value_that_cannot_be_compared_is_told() -> None:
    class Rude:
        def __hash__(self) -> int:
            raise ValueError("no")

    route = ir.RouteNode("r", tests=(ir.Match("eq", "k", Rude()),), branches=(A,), default=A)
    with pytest.raises(LegalityError, match="tests holds a Rude; wrap live objects in a Ref"):
        check_all(route)

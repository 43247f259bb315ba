"""The rules of legal IR: each has nodes that break it, and random legal graphs break none."""

from __future__ import annotations

import pytest
from broken_ir import ANY, BROKEN, FN, A
from hypothesis import given
from ir_strategies import Tool, chain, graphs, laws, wide

from adk_fluent import ir
from adk_fluent.errors import LegalityError


@laws
@given(graphs())
def test_random_graphs_are_legal(root: ir.Node) -> None:
    assert ir.verify(root) == ()
    ir.assert_legal(root)


@pytest.mark.parametrize(("rule", "root", "what"), BROKEN)
def test_each_rule(rule: str, root: ir.Node, what: str) -> None:
    (violation,) = ir.verify(root)
    assert violation.rule == rule
    assert what in violation.what
    assert violation.kind in repr(root)
    with pytest.raises(LegalityError, match="this IR breaks 1 rule"):
        ir.assert_legal(root)


def test_every_rule_is_broken_above() -> None:
    assert {rule for rule, _, _ in BROKEN} == {rule.name for rule in ir.RULES}
    assert len({rule.name for rule in ir.RULES}) == len(ir.RULES)
    assert all(rule.says.endswith(".") for rule in ir.RULES)


@pytest.mark.parametrize(
    "root",
    [
        ir.GateNode("g", response_schema="true"),
        ir.GateNode("g", response_schema='{"type": "boolean"}'),
        ir.SequenceNode("s", (A, A), (ir.EdgeSemantics(), ir.EdgeSemantics())),
        ir.SequenceNode("s", (A, ir.TransferNode("t", "a"))),
        ir.AgentNode("b", delegates=(A, ir.TransferNode("t", "b"))),
        ir.AgentNode("a", selector=ir.ModelSelectorNode("m")),
        ir.TapNode("t", FN, ir.Effects(reads=(ir.StateFieldRef("k"),))),
        ir.AgentNode("a", reads_keys=(ir.StateFieldRef("k", list[int], default=[1]),)),
        ir.AgentNode("a", instruction="", description=""),
        ir.AppNode(
            "x",
            A,
            execution=ir.ExecutionConfig(
                custom_metadata={"a": [1]},
                middlewares=(Tool("x"),),
                telemetry=ir.TelemetryConfig(custom_exporters=(object(),)),
            ),
        ),
        ir.AppNode(
            "x",
            ir.AgentNode("a", content=ir.ContentSpec({ir.Modality.TEXT}, [ir.Modality.PDF])),
            execution=ir.ExecutionConfig(
                middlewares=[Tool("x")],
                telemetry=ir.TelemetryConfig(custom_exporters=[object()]),
            ),
        ),
        ir.RemoteAgentNode("r", "http://x", auth=ir.AuthConfig("oauth2", scopes=["read"])),
        ir.TimeoutNode("t", A, 5),
        ir.TransformNode("t", semantics="delete_keys", affected_keys=("k",)),
        ir.TransformNode("t", semantics="replace_session", affected_keys=("k",)),
    ],
    ids=lambda root: type(root).__name__,
)
def test_what_is_allowed(root: ir.Node) -> None:
    assert ir.verify(root) == ()


def test_violations_say_where() -> None:
    at = ir.Location("steps.py", 7)
    root = ir.SequenceNode("s", (A, ir.LoopNode("l", A, 0, location=at)))
    (violation,) = ir.verify(root)
    assert str(violation) == (
        "[positive] LoopNode 'l' at steps.py:7: max_iterations is 0; it has to be positive"
    )
    with pytest.raises(LegalityError) as caught:
        ir.assert_legal(root)
    assert caught.value.violations == (str(violation),)
    assert caught.value.location == at


def test_all_of_them_are_found_each_node_once() -> None:
    wrong = ir.LoopNode("", A, 0)
    found = ir.verify(ir.SequenceNode("s", (wrong, wrong, ir.FallbackNode("f"))))
    assert [v.rule for v in found] == ["named", "positive", "filled"]
    with pytest.raises(LegalityError, match="this IR breaks 3 rules"):
        ir.assert_legal(ir.SequenceNode("s", (wrong, ir.FallbackNode("f"))))


def test_below_a_node_of_wrong_types_nothing_is_trusted() -> None:
    root = ANY.SequenceNode("s", (A, 3, ir.FallbackNode("f")))
    assert [v.rule for v in ir.verify(root)] == ["typed"]


def test_messages_show_no_values() -> None:
    node = ANY.AgentNode("a", model=Tool("hunter1"), settings=(("x", Tool("x")),))
    assert "hunter" not in "".join(map(str, ir.verify(node)))


def test_nodes_of_other_wheels_are_checked_by_their_annotations() -> None:
    @ir.node
    class Unresolved(ir.Node):
        """One whose annotation is known to type checkers only.

        Attributes:
            x: Something.
        """

        x: NoSuchType = None  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore[reportUndefinedVariable]

    assert ir.verify(Unresolved("u")) == ()
    assert [v.rule for v in ir.verify(Unresolved(""))] == ["named"]


@pytest.mark.parametrize("root", [chain(20_000), wide(4_000)], ids=["deep", "wide"])
def test_many_nodes(root: ir.Node) -> None:
    assert ir.verify(root) == ()

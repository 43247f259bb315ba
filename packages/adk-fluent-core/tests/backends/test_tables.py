from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adk_fluent import ir
from adk_fluent._registry import Found, Offer
from adk_fluent.backends._tables import Kind, Pass, PassList, RuleTable, ValueTable
from adk_fluent.errors import (
    BuildError,
    LayerError,
    MissingLayerError,
    UnsupportedNodeError,
    UsageError,
)
from adk_fluent.protocol import Entry

if TYPE_CHECKING:
    from collections.abc import Iterator

Tree = tuple[Any, ...]


@dataclass
class Installed:
    """Layers that are there, what they provide, each a layer's, and how often they were asked."""

    names: tuple[str, ...] = ()
    slots: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    asked: list[str] = field(default_factory=list[str])
    watchers: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])

    def require(self, name: str, what: str, node: ir.Node) -> None:
        if name not in self.names:
            raise MissingLayerError(f"{what} needs {name}", layer=name, node=node)

    def provided(self, slot: str) -> Iterator[tuple[Offer, Any]]:
        self.asked.append(slot)
        yield from zip(map(offer, ("ink", "pen", "nib")), self.slots.get(slot, []), strict=False)

    def watch(self, forget: Callable[[], None]) -> None:
        self.watchers.append(forget)


def offer(layer: str) -> Offer:
    point = EntryPoint(layer, f"{layer}:LAYER", "adk_fluent.layers")
    return Offer(layer, Entry(f"{layer}:TABLE"), Found(layer, f"acme-{layer}", "0.3", point))


def table(layers: Installed | None = None) -> RuleTable[Tree, str]:
    made: RuleTable[Tree, str] = RuleTable("toy", "rules", layers or Installed())

    @made.rule(ir.AgentNode)
    def agent(node: ir.AgentNode, children: tuple[Tree, ...], cx: str) -> Tree:
        return (cx + node.name, *children)

    @made.rule(ir.SequenceNode)
    def sequence(node: ir.SequenceNode, children: tuple[Tree, ...], cx: str) -> Tree:
        return ("seq", *children)

    @made.rule(ir.LoopNode)
    def loop(node: ir.LoopNode, children: tuple[Tree, ...], cx: str) -> Tree:
        return ("loop", node.max_iterations, *children)

    assert agent is not None
    assert sequence is not None
    assert loop is not None
    return made


def remote(node: ir.RemoteAgentNode, children: tuple[Tree, ...], cx: str) -> Tree:
    return ("remote", node.endpoint, *children)


REMOTE = ir.RemoteAgentNode("pay", endpoint="https://pay.example")
NODES = st.recursive(
    st.sampled_from("abc").map(ir.AgentNode),
    lambda below: st.one_of(
        st.lists(below, max_size=4).map(lambda steps: ir.SequenceNode("s", tuple(steps))),
        below.map(lambda body: ir.LoopNode("l", body)),
    ),
    max_leaves=30,
)


def recursive(node: ir.Node) -> Tree:
    below = tuple(recursive(each) for each in node.children)
    if isinstance(node, ir.LoopNode):
        return ("loop", node.max_iterations, *below)
    return (("seq",) if isinstance(node, ir.SequenceNode) else (f"_{node.name}",)) + below


@settings(deadline=None)
@given(NODES)
def test_rules_are_applied_bottom_up(node: ir.Node) -> None:
    assert table()(node, "_") == recursive(node)


def test_a_node_in_two_places_is_lowered_twice() -> None:
    made: RuleTable[object, None] = RuleTable("toy")
    made.rule(ir.AgentNode)(lambda node, children, cx: object())
    made.rule(ir.SequenceNode)(lambda node, children, cx: children)
    shared = ir.AgentNode("a")
    first, second = made(ir.SequenceNode("s", (shared, shared)), None)  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType]
    assert first is not second


def test_twenty_thousand_deep() -> None:
    made: RuleTable[int, None] = RuleTable("toy")
    made.rule(ir.Node)(lambda node, children, cx: 1 + sum(children))
    deep: ir.Node = ir.AgentNode("a")
    for _ in range(20_000):
        deep = ir.SequenceNode("s", (deep,))
    assert made(deep, None) == 20_001


def test_a_node_without_a_rule() -> None:
    with pytest.raises(UnsupportedNodeError) as caught:
        table()(ir.TransferNode("t", target="a"), "")
    message = str(caught.value)
    assert "target 'toy' has no rule for TransferNode" in message
    assert "'t'" in message
    assert "AgentNode, LoopNode, SequenceNode" in message


def test_a_node_whose_layer_is_absent() -> None:
    with pytest.raises(MissingLayerError) as caught:
        table()(ir.SequenceNode("s", (REMOTE,)), "")
    assert caught.value.layer == "a2a"
    assert "pip install adk-fluent-a2a" in str(caught.value)
    assert "'pay'" in str(caught.value)


def test_a_layer_that_is_there_but_has_no_rule() -> None:
    with pytest.raises(UnsupportedNodeError, match="RemoteAgentNode"):
        table(Installed(names=("a2a",)))(REMOTE, "")


def test_a_layers_table_is_taken_in_when_it_is_needed() -> None:
    theirs: RuleTable[Tree, str] = RuleTable("toy")
    theirs.rule(ir.RemoteAgentNode)(remote)
    layers = Installed(("a2a",), {"rules": [theirs]})
    made = table(layers)
    assert made(ir.AgentNode("a"), "_") == ("_a",)
    assert layers.asked == []
    assert made(ir.SequenceNode("s", (REMOTE, REMOTE)), "_")[1] == ("remote", "https://pay.example")
    assert layers.asked == ["rules"]


def test_a_subclass_is_done_by_the_rule_of_its_base_unless_a_layer_has_one() -> None:
    class Special(ir.AgentNode):
        __slots__ = ()

    assert table()(Special("x"), "_") == ("_x",)
    theirs: RuleTable[Tree, str] = RuleTable("toy")
    theirs.rule(Special)(lambda node, children, cx: ("special",))
    assert table(Installed(slots={"rules": [theirs]}))(Special("x"), "_") == ("special",)


def test_two_rules_for_one_type_are_refused() -> None:
    made = table()
    with pytest.raises(BuildError, match="'toy' has a rule for AgentNode already"):
        made.rule(ir.AgentNode)(lambda node, children, cx: ())
    theirs: RuleTable[Tree, str] = RuleTable("toy")
    theirs.rule(ir.AgentNode)(lambda node, children, cx: ())
    with pytest.raises(BuildError, match="leave one of the two out"):
        made.include(theirs)


def test_a_rule_that_two_layers_have_names_both_and_stops_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tables: list[RuleTable[Tree, str]] = [RuleTable("toy") for _ in "ab"]
    for each in tables:
        each.rule(ir.RemoteAgentNode)(lambda node, children, cx: ("remote",))
    tables[1].rule(ir.TransferNode)(lambda node, children, cx: ("transfer",))
    made = table(Installed(("a2a",), {"rules": tables}))
    for _ in range(2):
        with pytest.raises(LayerError) as caught:
            made(REMOTE, "")
        assert str(caught.value) == (
            "layers 'ink' and 'pen' both have a rule for 'RemoteAgentNode'\n"
            "  where: layer 'pen' of acme-pen 0.3\n"
            "  found: one of acme-ink 0.3 and one of acme-pen 0.3\n"
            "  help: uninstall acme-pen or acme-ink"
        )
    assert made(ir.TransferNode("t", target="a"), "") == ("transfer",)
    assert made(ir.AgentNode("a"), "_") == ("_a",)
    assert made.missing([ir.RemoteAgentNode]) == ()
    assert not caplog.records


def test_a_rule_for_a_node_of_cores_is_not_used_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    theirs: RuleTable[Tree, str] = RuleTable("toy")
    theirs.rule(ir.AgentNode)(lambda node, children, cx: ("theirs",))
    theirs.rule(ir.RemoteAgentNode)(remote)
    made = table(Installed(("a2a",), {"rules": [theirs]}))
    assert made(REMOTE, "")[0] == "remote"
    assert made(ir.AgentNode("a"), "_") == ("_a",)
    assert "what a layer has is not used: layer 'ink' has a rule for 'AgentNode', which" in (
        caplog.text
    )
    assert "found: ink:TABLE of acme-ink 0.3" in caplog.text


def test_a_table_looks_again_when_somebody_does() -> None:
    theirs: RuleTable[Tree, str] = RuleTable("toy")
    theirs.rule(ir.RemoteAgentNode)(remote)
    installed = Installed()
    made = RuleTable[Tree, str]("toy", "toy", installed)
    for slots, there in (({"toy": [theirs]}, True), ({}, False), ({"toy": [theirs]}, True)):
        installed.slots = slots
        for forget in installed.watchers:
            forget()
        assert (made.missing([ir.RemoteAgentNode]) == ()) is there


def test_a_layer_that_cannot_be_imported_leaves_the_table_as_it_was() -> None:
    theirs: RuleTable[Tree, str] = RuleTable("toy")
    theirs.rule(ir.RemoteAgentNode)(remote)

    class Broken(Installed):
        def provided(self, slot: str) -> Iterator[tuple[Offer, Any]]:
            yield offer("ink"), theirs
            if not self.asked:
                self.asked.append(slot)
                raise ImportError("broken")

    made = table(Broken())
    with pytest.raises(ImportError, match="broken"):
        made(REMOTE, "")
    assert made(REMOTE, "") == ("remote", "https://pay.example")


def test_what_a_table_lacks() -> None:
    made = table()
    assert made.missing([ir.AgentNode, ir.LoopNode]) == ()
    assert made.missing(ir.NODES) == tuple(
        kind for kind in ir.NODES if kind not in {ir.AgentNode, ir.SequenceNode, ir.LoopNode}
    )


# --- values --------------------------------------------------------------------------------------

NUMBER = Kind[int]("number", "digits or an int")
NAME = Kind[str]("name", "a text")


def numbers(layers: Installed | None = None) -> ValueTable[str]:
    made: ValueTable[str] = ValueTable(layers=layers or Installed())
    made.rule(NUMBER, str)(lambda value, cx: int(cx + value))
    made.rule(NUMBER, int)(lambda value, cx: value)
    made.rule(NAME, str)(lambda value, cx: value)
    return made


def test_values_by_what_is_wanted_and_what_was_given() -> None:
    made = numbers()
    assert made(NUMBER, "2", "1") == 12
    assert made(NAME, "2", "1") == "2"
    assert made(NUMBER, True, "") == 1


def test_a_value_nobody_knows() -> None:
    with pytest.raises(UsageError) as caught:
        numbers()(NUMBER, 1.5, "")
    error = caught.value
    assert (error.what, error.found) == ("cannot use float as a number", "1.5")
    assert error.help == "give digits or an int"
    assert str(error.location).startswith(__file__)


def test_a_layer_adds_values() -> None:
    theirs: ValueTable[str] = ValueTable()
    theirs.rule(NUMBER, float)(lambda value, cx: round(value))
    layers = Installed(slots={"values": [theirs]})
    made = numbers(layers)
    assert made(NUMBER, "1", "") == 1
    assert layers.asked == []
    assert made(NUMBER, 1.6, "") == 2
    assert made(NUMBER, 2.6, "") == 3
    assert layers.asked == ["values"]


def test_two_rules_for_one_value_are_refused() -> None:
    with pytest.raises(BuildError, match="number has a rule for str already"):
        numbers().rule(NUMBER, str)(lambda value, cx: 0)


def test_a_value_that_two_layers_or_core_have_a_rule_for(caplog: pytest.LogCaptureFixture) -> None:
    tables: list[ValueTable[str]] = [ValueTable() for _ in "ab"]
    for each in tables:
        each.rule(NUMBER, float)(lambda value, cx: round(value))
    tables[0].rule(NAME, str)(lambda value, cx: "theirs")
    made = numbers(Installed(slots={"values": tables}))
    with pytest.raises(LayerError, match="'ink' and 'pen' both have a rule for 'float as number'"):
        made(NUMBER, 1.5, "")
    assert made(NAME, "ours", "") == "ours"
    assert "layer 'ink' has a rule for 'str as name', which adk-fluent-core has" in caplog.text


# --- passes --------------------------------------------------------------------------------------


def renaming(to: str, before: str | None = None) -> Pass[str]:
    return Pass(to, lambda root, cx: root.replace(name=f"{root.name}{cx}{to}"), before)


def test_passes_run_in_order_and_are_verified() -> None:
    passes: PassList[str] = PassList()
    for each in (renaming("b"), renaming("c"), renaming("a", before="b")):
        passes.add(each)
    seen: list[tuple[str, str]] = []
    root = passes(ir.AgentNode("x"), "-", lambda name, node: seen.append((name, node.name)))
    assert passes.names() == ("a", "b", "c")
    assert root.name == "x-a-b-c"
    assert seen == [("a", "x-a"), ("b", "x-a-b"), ("c", "x-a-b-c")]


def test_a_layer_adds_passes() -> None:
    theirs: PassList[str] = PassList()
    theirs.add(renaming("z"))
    passes: PassList[str] = PassList("passes", Installed(slots={"passes": [theirs]}))
    passes.add(renaming("a"))
    assert passes(ir.AgentNode("x"), "").name == "xaz"
    passes.include(theirs)
    assert passes.names() == ("a", "z")


def test_a_pass_of_a_taken_name_is_left_out_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    tables: list[PassList[str]] = [PassList(), PassList()]
    for each in tables:
        each.add(renaming("z"))
    tables[0].add(renaming("a"))
    passes: PassList[str] = PassList("passes", Installed(slots={"passes": tables}))
    passes.add(renaming("a"))
    assert passes(ir.AgentNode("x"), "").name == "xaz"
    assert "layer 'ink' has a pass 'a', which adk-fluent-core has itself" in caplog.text
    assert "layers 'ink' and 'pen' both have a pass 'z'" in caplog.text


def test_passes_that_cannot_be_ordered() -> None:
    passes: PassList[str] = PassList()
    passes.add(renaming("a"))
    with pytest.raises(BuildError, match="'a' already"):
        passes.add(renaming("a"))
    with pytest.raises(BuildError, match="before 'q'") as caught:
        passes.add(renaming("b", before="q"))
    assert "name one of: a" in str(caught.value)

"""Nothing is left out: every class of the IR is listed, documented and drawn by the strategies."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_strategies import chain, data_field, graphs, node, record, wide

from adk_fluent import ir
from adk_fluent.ir import _agents, _flow, _ref, _state, _values
from adk_fluent.ir._record import schema_of
from adk_fluent.ir._types import field_tests

MODULES = (_agents, _flow, _ref, _state, _values)
CLASSES: tuple[type[Any], ...] = (*ir.NODES, *ir.VALUES)


def _declared(base: type) -> set[type]:
    return {
        cls
        for module in MODULES
        for cls in vars(module).values()
        if isinstance(cls, type) and "__record__" in vars(cls) and issubclass(cls, base)
        if cls.__module__ == module.__name__
    }


def test_every_node_and_value_is_listed_once() -> None:
    assert set(ir.NODES) == _declared(ir.Node)
    assert set(CLASSES) == _declared(object)
    assert len(set(CLASSES)) == len(CLASSES)
    assert len({cls.__name__ for cls in CLASSES}) == len(CLASSES)


def test_all_names_are_exported_in_order() -> None:
    assert {cls.__name__ for cls in CLASSES} <= set(ir.__all__)
    assert len(set(ir.__all__)) == len(ir.__all__)
    assert all(hasattr(ir, name) for name in ir.__all__)


@pytest.mark.parametrize("cls", [ir.Node, *CLASSES], ids=lambda cls: cls.__name__)
def test_every_field_is_documented(cls: type[Any]) -> None:
    doc = inspect.cleandoc(vars(cls)["__doc__"])
    assert doc.partition("\n")[0].endswith(".")
    _, _, section = doc.partition("\nAttributes:\n")
    described = re.findall(r"^    (\w+): \S", section, re.MULTILINE)
    above = {
        name for base in cls.__mro__[1:] if hasattr(base, "__record__") for name in fields(base)
    }
    assert described == [name for name in fields(cls) if name not in above]


def fields(cls: type) -> list[str]:
    return list(schema_of(cls).fields)


@pytest.mark.parametrize("kind", ir.NODES, ids=lambda cls: cls.__name__)
def test_every_node_names_its_layer(kind: type[ir.Node]) -> None:
    layers = {"core", "middleware", "state", "cost", "eval", "a2a", "debug", "distributed"}
    assert kind.layer in layers
    assert kind.__module__.startswith("adk_fluent.ir.")


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_the_strategies_draw_every_class_and_field(cls: type[Any], data: st.DataObject) -> None:
    leaf = st.just(ir.AgentNode("leaf"))
    drawn = data.draw(node(cls, "any", leaf) if issubclass(cls, ir.Node) else record(cls))
    assert type(drawn) is cls
    for name, fits in field_tests(cls).items():
        assert fits(getattr(drawn, name)), name
    for name, spec in schema_of(cls).fields.items():
        if not spec.child:
            data_field(cls, name, "any").validate()


def test_random_graphs_reach_every_kind() -> None:
    seen: set[type] = set()

    @settings(max_examples=600, derandomize=True, database=None, deadline=None)
    @given(graphs())
    def draw(root: ir.Node) -> None:
        seen.update(type(n) for n in ir.walk(root))

    draw()
    assert seen == set(ir.NODES)


@pytest.mark.parametrize("root", [chain(20_000), wide(4_000)], ids=["deep", "wide"])
def test_every_operation_on_many_nodes(root: ir.Node) -> None:
    import pickle

    again = pickle.loads(pickle.dumps(root))
    assert again == root
    assert again is not root
    assert hash(again) == hash(root)
    assert len(repr(root)) > 100
    count = sum(1 for _ in ir.walk(root))
    assert count >= 4_000
    assert ir.fold(root, _count) == count
    assert ir.map(root, lambda n: n) is root
    renamed = ir.map(root, lambda n: n.replace(name=f"{n.name}!"))
    assert renamed != root
    assert ir.find(root, "no such name") is None
    last = [n for n in ir.walk(root) if not n.children][-1]
    replaced = ir.replace(root, last, ir.AgentNode("new"))
    assert ir.find(replaced, "new") is not None


def _count(_: ir.Node, below: tuple[int, ...]) -> int:
    return 1 + sum(below)

"""`effects`: what users say that a function does to state."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import adk_fluent
from adk_fluent import Pipeline, S, effects, tap
from adk_fluent.contracts import check_all
from adk_fluent.contracts._effects import (
    effects_of_function,
    effects_of_node,
    effects_of_predicate,
    effects_of_tool,
)
from adk_fluent.errors import UsageError
from adk_fluent.ir import (
    OPAQUE,
    AgentNode,
    Effects,
    FunctionNode,
    Ref,
    StateFieldRef,
    TapNode,
    ToolSpec,
    TransformNode,
    content_hash,
    declared_effects,
    from_json,
    registry_of,
    to_json,
)

if TYPE_CHECKING:
    from adk_fluent.builders import State


def elsewhere(state: State) -> Any:
    return state


@effects(reads=("order", StateFieldRef("user:tier", default="free")), writes="total")
def priced(state: State) -> dict[str, Any]:
    return elsewhere(state)


def unsaid(state: State) -> dict[str, Any]:
    return elsewhere(state)


SAID = Effects(
    (StateFieldRef("order"), StateFieldRef("user:tier", default="free")),
    (StateFieldRef("total"),),
    opaque=False,
)


def test_it_is_public() -> None:
    assert adk_fluent.effects is effects
    assert "effects" in adk_fluent.__all__


def test_a_step_takes_over_what_is_said() -> None:
    node = (S.set(order=1) >> priced).to_ir()
    found = node.children[1]
    assert isinstance(found, FunctionNode)
    assert found.effects == SAID
    unknown = (S.set(order=1) >> unsaid).to_ir().children[1]
    assert isinstance(unknown, FunctionNode)
    assert unknown.effects is OPAQUE


def test_a_tap_only_reads() -> None:
    node = tap(priced).to_ir()
    assert isinstance(node, TapNode)
    assert node.effects == Effects(SAID.reads, opaque=False)
    unknown = tap(unsaid).to_ir()
    assert isinstance(unknown, TapNode)
    assert unknown.effects is OPAQUE


def test_computed_values_read_what_all_their_functions_read() -> None:
    @effects(reads="other")
    def second(state: State) -> Any:
        return elsewhere(state)

    node = S.compute(total=priced, n=second).to_ir()
    assert isinstance(node, TransformNode)
    assert not node.effects.opaque
    assert [ref.key for ref in node.effects.reads] == ["order", "user:tier", "other"]
    assert [ref.key for ref in node.effects.writes] == ["total", "n"]
    mixed = S.compute(total=priced, n=unsaid).to_ir()
    assert isinstance(mixed, TransformNode)
    assert mixed.effects.opaque


def test_computed_values_are_derived_function_by_function() -> None:
    node = S.compute(total=lambda s: s["a"], n=lambda s: s.get("b")).to_ir()
    assert isinstance(node, TransformNode)
    found = effects_of_node(node)
    assert found.opaque is None
    assert [(ref.key, ref.default) for ref in found.reads] == [
        ("a", StateFieldRef("a").default),
        ("b", None),
    ]
    assert [ref.key for ref in found.writes] == ["total", "n"]
    opaque = S.compute(total=unsaid, n=len).to_ir()
    assert isinstance(opaque, TransformNode)
    assert "hands `state` to `elsewhere`" in str(effects_of_node(opaque).opaque)


def test_what_is_said_takes_part_in_the_content_hash() -> None:
    def same(state: State) -> dict[str, Any]:
        return elsewhere(state)

    before = content_hash(Pipeline("p").step(same).to_ir())
    effects(writes="x")(same)
    assert content_hash(Pipeline("p").step(same).to_ir()) != before


def test_what_is_said_is_kept_in_files() -> None:
    node = (S.set(order=1) >> priced).to_ir()
    assert from_json(to_json(node), registry=registry_of(node)) == node


def test_what_is_said_wins_over_the_source() -> None:
    @effects(reads="x", writes="y", may_write="z")
    def step(state: State) -> dict[str, Any]:
        return {"a": state["b"]}

    for look in (effects_of_function, effects_of_predicate, effects_of_tool):
        found = look(Ref.to(step))
        assert found.opaque is None
        assert [ref.key for ref in found.reads] == ["x"]
        assert [ref.key for ref in found.writes] == ["y"]
        assert [ref.key for ref in found.may_write] == ["z"]


def test_what_is_said_makes_nodes_proven() -> None:
    assert not check_all(FunctionNode("f", Ref.to(unsaid))).proven
    assert check_all(AgentNode("a", tools=(ToolSpec(Ref.to(priced)),))).opaque == ()


class Step:
    """Steps that are methods and objects."""

    @effects(reads="m")
    def method(self, state: State) -> Any:
        return elsewhere(state)

    @effects(reads="c")
    def __call__(self, state: State) -> Any:
        return elsewhere(state)


@effects(reads="o")
class Tool:
    """A tool that is an object, as ADK's are."""


@pytest.mark.parametrize(
    ("value", "key"),
    [(Step().method, "m"), (Step(), "c"), (Tool(), "o"), (partial(priced), "order")],
)
def test_it_is_found_on_methods_objects_and_partials(value: Any, key: str) -> None:
    found = declared_effects(value)
    assert found is not None
    assert found.reads[0].key == key


def test_what_pretends_to_have_any_attribute_has_none() -> None:
    class Pretender:
        def __getattr__(self, name: str) -> Any:
            return name

    assert declared_effects(Pretender()) is None


@pytest.mark.parametrize("keys", ["", 3, [3], ["a", None], {"a": 1}.items()])
def test_what_is_no_key_is_refused(keys: Any) -> None:
    with pytest.raises(UsageError, match=r"effects\(reads=\.\.\.\) takes state keys"):
        effects(reads=keys)


def test_keys_that_are_kept_for_others_are_not_written() -> None:
    with pytest.raises(UsageError, match="does not take '_adk_x'"):
        effects(writes="_adk_x")


@pytest.mark.parametrize("value", [print, len, Step().method, object()])
def test_what_takes_no_note_is_refused(value: Any) -> None:
    with pytest.raises(UsageError, match="cannot note anything on this") as caught:
        effects(reads="x")(value)
    assert caught.value.help == "decorate a function of yours that calls it"

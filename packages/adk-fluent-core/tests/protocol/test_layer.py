from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from adk_fluent.errors import BuildError
from adk_fluent.protocol import SLOTS, Entry, Layer

LAYER = Layer(
    "cost",
    {
        "checkers": "adk_fluent.cost._check:check",
        "commands": (Entry("adk_fluent.cost._cli:main", "estimate", "Estimate"), "a:b.c"),
        "of_tomorrow": "a.b:c",
    },
)


def test_entries_are_read_in_one_shape() -> None:
    assert LAYER.entries("checkers") == (Entry("adk_fluent.cost._check:check"),)
    assert [e.name for e in LAYER.entries("commands")] == ["estimate", ""]
    assert LAYER.entries("rules") == ()


def test_a_slot_core_does_not_know_is_kept() -> None:
    assert "of_tomorrow" not in SLOTS
    assert LAYER.entries("of_tomorrow") == (Entry("a.b:c"),)
    assert list(LAYER.provides) == ["checkers", "commands", "of_tomorrow"]


def test_a_layer_is_a_value() -> None:
    same = Layer("cost", dict(LAYER.provides))  # entries may be given as they come out
    assert same == LAYER
    assert hash(same) == hash(LAYER)
    assert pickle.loads(pickle.dumps(LAYER)) == copy.deepcopy(LAYER) == LAYER
    with pytest.raises(TypeError):
        LAYER.provides["x"] = "a:b"  # pyright: ignore[reportIndexIssue]


@pytest.mark.parametrize("name", ["", "Cost", "1st", "a-b", "a b"])
def test_names_are_checked(name: str) -> None:
    with pytest.raises(BuildError, match=f"a layer is called '{name}'"):
        Layer(name, {})
    with pytest.raises(BuildError, match=f"a slot is called '{name}'"):
        Layer("ok", {name: "a:b"})


@pytest.mark.parametrize(
    "target", ["", "a", "a.b", "a:", ":b", "a.b:c d", "a:b:c", "a..b:c", "1:b"]
)
def test_targets_are_checked(target: str) -> None:
    with pytest.raises(BuildError, match=r"package\.module:attribute"):
        Layer("ok", {"rules": target})


@pytest.mark.parametrize("value", [len, 3, None, ["a:b"], ("a:b", 3)])
def test_anything_else_is_no_entry(value: Any) -> None:
    with pytest.raises(BuildError, match="is no entry"):
        Layer("ok", {"rules": value})


def test_the_names_of_slots_are_names_of_slots() -> None:
    assert Layer("all", dict.fromkeys(SLOTS, "a:b")).provides.keys() == SLOTS.keys()

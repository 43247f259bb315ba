"""State as functions see it: read-only, None as good as absent."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.errors import UsageError
from adk_fluent.flow._view import StateView
from adk_fluent.ir import Match

if TYPE_CHECKING:
    from .conftest import Bench, State

HELD: dict[str, Any] = {"a": 1, "gone": None, "empty": "", "no": False}
SEEN: dict[str, Any] = {"a": 1, "empty": "", "no": False}


def test_a_key_that_holds_none_is_absent() -> None:
    view = StateView(HELD)
    assert dict(view) == {**view} == SEEN
    assert view == SEEN
    assert len(view) == 3
    assert list(view.items()) == list(SEEN.items())
    assert [key in view for key in HELD] == [True, False, True, True]
    assert 3 not in view
    assert view.get("gone", 5) == 5
    assert view.get("no", 5) is False
    assert view["gone"] is None  # an item of a map may be None
    with pytest.raises(KeyError, match="never"):
        _ = view["never"]
    assert repr(view) == f"StateView({SEEN})"


def test_it_can_be_added_to() -> None:
    view = StateView(HELD)
    assert view | {"b": 2} == {**SEEN, "b": 2}
    assert MappingProxyType({"a": 0, "b": 2}) | view == {"a": 1, "b": 2, "empty": "", "no": False}


def test_it_shows_what_is_now() -> None:
    state = {"n": 1}
    view = StateView(state)
    state["n"] = 2
    assert view["n"] == 2


@pytest.mark.parametrize("method", ["clear", "pop", "popitem", "setdefault", "update"])
def test_methods_that_write_say_how_to_write(method: str) -> None:
    with pytest.raises(UsageError, match="only reads it") as caught:
        getattr(StateView(HELD), method)("a")
    assert (caught.value.found, caught.value.help) == (
        f"state.{method}",
        "return the keys and their values in a dict",
    )
    with pytest.raises(AttributeError, match="no attribute 'upd'"):
        _ = getattr(StateView(HELD), "upd")  # noqa: B009


async def test_writing_to_it_says_how_to_write(b: Bench) -> None:
    def assigns(state: Any) -> None:
        state["k"] = 1

    def deletes(state: Any) -> None:
        del state["k"]

    with pytest.raises(UsageError, match="only reads it") as caught:
        await b.run(b.fn("f", assigns))
    assert "return {'k': ...}" in str(caught.value.help)
    assert caught.value.node == "f"
    with pytest.raises(UsageError, match="only reads it"):
        await b.run(b.tap(deletes))


async def test_a_tap_changes_nothing(b: Bench) -> None:
    inner = {"n": [1]}
    b.state |= {"list": [inner, inner], "dict": {"of": inner}, "text": "x"}
    inner["self"] = inner  # type: ignore[assignment]  # pyright: ignore[reportArgumentType]
    seen: list[Any] = []

    def changes(state: Any) -> None:
        seen.append(state["list"][0] is state["list"][1])
        for held in (state["list"][0], state.get("dict")["of"], dict(state)["dict"]["of"]):
            held["n"].append(2)
            held["self"].clear()
        (state | {})["list"].clear()
        state.get("list").clear()
        seen.append((state["text"], state.get("absent", 3), len(state), sorted(state)))

    await b.run(b.tap(changes))
    assert b.state["list"] == [inner, inner]
    assert inner["n"] == [1]
    assert b.state["dict"]["of"] is inner is inner["self"]
    assert seen == [False, ("x", 3, 3, ["dict", "list", "text"])]


async def test_what_an_attempt_wrote_is_gone_for_functions_too(b: Bench) -> None:
    def count(state: State) -> dict[str, Any]:
        assert "items" not in state
        return {"n": len(state.get("items", []))}

    failing = b.seq(b.fn("w", items=[1]), b.fails("x"))
    await b.run(
        b.fallback(
            failing, b.seq(b.fn("c", count), b.route((lambda s: "items" in s, b.fn("never", m=1))))
        )
    )
    assert b.clean_state == {"n": 0}


@pytest.mark.parametrize(
    ("held", "asked", "holds"),
    [(0, False, False), (1, True, False), (True, 1, False), (True, True, True), (1.0, 1, True)],
)
async def test_a_truth_value_is_no_number(b: Bench, held: Any, asked: Any, holds: bool) -> None:
    b.state["k"] = held
    await b.run(b.route((Match("eq", "k", asked), b.fn("f", hit=True))))
    assert b.state.get("hit", False) is holds

"""A position in parts: nothing of it is lost or reordered, and a step changes few of them."""

from __future__ import annotations

import copy
import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.flow import Engine, _parts, join, new_position, split

from .conftest import BenchLeaf
from .test_restart import LIST, PROGRAMS, bump

if TYPE_CHECKING:
    from adk_fluent.flow import Position
    from adk_fluent.ir import Node

    from .conftest import Bench


def text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


async def positions(b: Bench, root: Node) -> list[Position]:
    """Where a run stands after each of its events."""
    found: list[Position] = []
    leaf = BenchLeaf(b.state, root.name)
    leaf.bench = b

    def written(position: Position) -> dict[str, Any]:
        found.append(copy.deepcopy(position))
        return {}

    try:
        async with aclosing(Engine(root, leaf, journal=written).run()) as events:
            async for event in events:
                b.commit(event)
    except Exception:  # noqa: BLE001  # some of the programs fail on purpose
        assert found
    return found


def again(position: Position) -> Position:
    rest, parts = split(position)
    kept = {int(number): part for number, part in json.loads(text(parts)).items()}
    return join(json.loads(text(rest)), kept)


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("name", PROGRAMS)
async def test_every_position_is_put_together_again(
    b: Bench, name: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_parts, "_SIZE", size)
    monkeypatch.setattr(_parts, "_LARGE", size)
    b.state.update(copy.deepcopy(LIST))
    for position in await positions(b, PROGRAMS[name](b)):
        before = text(position)
        assert text(again(position)) == before
        assert text(position) == before  # it was not changed


async def test_maps_in_maps(b: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_parts, "_SIZE", 3)
    monkeypatch.setattr(_parts, "_LARGE", 4)
    b.state["list"] = list(range(14))
    root = b.map(b.map(b.seq(bump(b, "x"), name="one"), name="inner"), name="outer")
    found = await positions(b, root)
    assert len(found) > 200
    for position in found:
        assert text(again(position)) == text(position)


def test_a_small_position_is_kept_whole() -> None:
    position = new_position()
    assert split(position) == (position, {})


@pytest.mark.full
async def test_what_a_step_changes_does_not_grow_with_the_items(b: Bench) -> None:
    sizes = {items: await usual(b, items) for items in (100, 400)}
    assert sizes[400] < 2 * sizes[100]


async def usual(b: Bench, items: int) -> int:
    """How much is written with most of the steps of a map."""
    b.state["list"] = list(range(items))
    found = await positions(b, b.map(b.seq(bump(b, "x"), bump(b, "y"), name="one"), result="x"))
    assert len(found) >= 2 * items
    before, written = dict[int, str](), list[int]()
    for position in found:
        rest, parts = split(position)
        texts = {number: text(part) for number, part in parts.items()}
        new = [each for number, each in texts.items() if before.get(number) != each]
        written.append(len(text(rest)) + sum(map(len, new)))
        before = texts
    return sorted(written)[len(written) * 9 // 10]

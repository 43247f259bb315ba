"""Random pipelines go on from every position they write down, and end as the reference says."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.backends.mock._leaf import MockLeaf, Session
from adk_fluent.flow import Engine, promises_of
from adk_fluent.ir import AgentNode, ExecutionConfig, walk
from adk_fluent.testing._oracle import Program, act, generate, meaning, recorded

from .conftest import ALL

if TYPE_CHECKING:
    from adk_fluent.flow import Position
    from adk_fluent.ir import Node
    from adk_fluent.testing import Asked, Script

    from .conftest import Bench, Hooks

CONFIG = ExecutionConfig(max_llm_calls=0)
#: Where each ten programs begin; most run with ``--full`` alone.
STARTS = [0, 10, *(pytest.param(n, marks=pytest.mark.full) for n in range(20, 150, 10))]
MOST = 12  # positions tried of one program


@dataclass
class Run:
    """A run from some position on, and what it wrote down on its way."""

    state: dict[str, Any]
    calls: list[str] = field(default_factory=list[str])
    saves: list[tuple[str, dict[str, Any], list[str]]] = field(
        default_factory=list[tuple[str, dict[str, Any], list[str]]]
    )
    error: Exception | None = None


def script_of(node: Node, asked: Asked) -> Script:
    assert isinstance(node, AgentNode)
    assert node.mock is not None
    return node.mock.value


async def follow(
    program: Program,
    state: dict[str, Any],
    position: Position | None = None,
    hooks: Hooks | None = None,
) -> Run:
    run = Run(state)

    async def save(now: Position) -> None:
        run.saves.append((json.dumps(now), copy.deepcopy(state), list(run.calls)))

    root = program.root
    leaf = MockLeaf(
        Session(state), root.name, "run", config=CONFIG, script_for=script_of, message="go"
    )
    promises = promises_of(root)
    engine = Engine(root, leaf, position=position, on_step=save, around=hooks, promises=promises)
    leaf.bind(engine)
    with recorded() as run.calls:
        try:
            async with aclosing(engine.run()) as events:
                async for event in events:
                    leaf.commit(event)
        except Exception as error:  # noqa: BLE001  # compared below
            run.error = error
    return run


@pytest.mark.parametrize("start", STARTS)
async def test_from_every_step(b: Bench, start: int) -> None:
    for number in range(start, start + 10):
        await check(b, random.Random(number))


@pytest.mark.parametrize("start", STARTS)
async def test_from_every_step_with_hooks_around_all(b: Bench, start: int) -> None:
    for number in range(start, start + 10):
        await check(b, random.Random(number), hooks=ALL)


async def check(b: Bench, chance: random.Random, hooks: Hooks | None = None) -> None:
    program = generate(chance.randint, plain=True)
    with recorded():
        wanted = meaning(program.root, program.state, act)
    once = await follow(program, copy.deepcopy(program.state), hooks=hooks)
    assert wanted.calls_differ(once.calls) is None
    loose = wanted.outcome.loose
    # an agent in flight may have written already, and it is run again
    agents = [node for node in walk(program.root) if isinstance(node, AgentNode)]
    feeds_on_itself = {
        node.name
        for node in agents
        if any(f"{{{ref.key}?}}" in str(node.instruction) for ref in node.writes_keys)
    }
    for text, state, calls in chance.sample(once.saves, min(MOST, len(once.saves))):
        position = json.loads(text)
        allowed = Counter(b.in_flight(program.root, position))
        if feeds_on_itself & allowed.keys():
            continue
        again = await follow(program, state, position, hooks)
        assert wanted.state_differs(again.state) is None, (program, text)
        assert (again.error is None) == (once.error is None), (program, text)
        twice = Counter(calls) + Counter(again.calls)
        twice.subtract(once.calls)
        too_often = {
            name: (count, allowed[name])
            for name, count in twice.items()
            # a predicate may be asked again, and what a loser does depends on the time it has
            if not (0 <= count <= allowed[name]) and not name.startswith("p") and name not in loose
        }
        if wanted.fails:  # a failure cancels others sooner or later
            too_often = {n: c for n, c in too_often.items() if c[0] > c[1]}
        assert not too_often, (program, text)

"""In which order steps that run at the same time go on: told, and decided by somebody else."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.errors import StepTimeoutError
from adk_fluent.flow import Engine
from adk_fluent.ir import ParallelNode, RaceNode, SequenceNode, TimeoutNode

from .conftest import BenchLeaf

if TYPE_CHECKING:
    from adk_fluent.flow import Strand
    from adk_fluent.ir import Node
    from adk_fluent.protocol import AgentEvent

    from .conftest import Bench


class Told:
    """Notes what it is told; holds a branch up until another one has handed in."""

    def __init__(self, **after: str) -> None:
        self.log: list[str] = []
        self.after = after
        self.keeps_time: bool = False
        self._in: dict[str, asyncio.Event] = {}

    def _of(self, name: str) -> asyncio.Event:
        return self._in.setdefault(name, asyncio.Event())

    async def turn(self, strand: Strand, event: Any) -> None:
        name = strand.nodes[-1].name
        if name in self.after:
            await self._of(self.after[name]).wait()
        self.log.append(name)
        self._of(name).set()

    async def ended(self, node: Node, branch: Strand, *, decides: bool) -> None:
        self.log.append(f"{branch.path} of {node.name} ends{' it' if decides else ''}")

    async def time_is_up(self, node: Node, strand: Strand) -> None:
        self.log.append(f"{node.name}?")
        if "never" in self.after:
            await asyncio.Event().wait()

    def expired(self, node: Node, strand: Strand) -> None:
        self.log.append(f"{node.name}!")


async def run(b: Bench, root: Node, order: Told) -> list[AgentEvent]:
    leaf = BenchLeaf({}, "root", "run")
    leaf.bench = b
    engine = Engine(root, leaf, order=order)
    made: list[AgentEvent] = []
    async with aclosing(engine.run()) as events:
        async for event in events:
            leaf.commit(event)
            made.append(event)
    return made


async def test_branches_hand_in_when_it_is_their_turn(b: Bench) -> None:
    order = Told(a="b")
    both = ParallelNode("both", (b.say("a"), b.say("b")))
    events = await run(b, SequenceNode("root", (b.say("first"), both)), order)
    assert [event.content for event in events if event.content] == ["first", "b", "a"]
    assert order.log == ["b", "a", "s1.p1 of both ends", "s1.p0 of both ends"]


async def test_the_end_of_a_winner_decides(b: Bench) -> None:
    order = Told()
    await run(b, RaceNode("root", (b.say("a"), b.say("b", ticks=50))), order)
    assert order.log == ["a", "w0 of root ends it"]


async def test_a_failure_decides_where_all_have_to_succeed(b: Bench) -> None:
    order = Told()
    with pytest.raises(b.Boom):
        await run(b, ParallelNode("root", (b.fails("a"), b.say("b", ticks=50))), order)
    assert order.log == ["p0 of root ends it"]


async def test_somebody_else_keeps_the_time(b: Bench) -> None:
    order = Told()
    order.keeps_time = True
    with pytest.raises(StepTimeoutError):
        await run(b, TimeoutNode("limit", b.say("slow", ticks=1000), seconds=600), order)
    assert order.log == ["limit?", "limit!"]
    order = Told(never="")
    order.keeps_time = True
    events = await run(b, TimeoutNode("limit", b.say("slow", ticks=9), seconds=1e-9), order)
    assert [event.content for event in events] == ["slow"]

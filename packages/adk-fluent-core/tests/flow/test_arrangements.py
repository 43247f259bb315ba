"""Every arrangement in every other: nested, reused, failing, cancelled, timed out."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from adk_fluent.errors import StepTimeoutError
from adk_fluent.ir import (
    NODES,
    AdkAgentNode,
    AppNode,
    GateNode,
    MapOverNode,
    MiddlewareNode,
    RemoteAgentNode,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.ir import Node

    from .conftest import Bench

#: Arrangements in which the body runs once and counts.
KINDS: dict[str, Callable[[Bench, Node, str], Node]] = {
    "sequence": lambda b, body, name: b.seq(b.seq(), body, name=name),
    "parallel": lambda b, body, name: b.par(b.seq(), body, name=name),
    "first": lambda b, body, name: b.first(b.hangs("other"), body, name=name),
    "loop": lambda b, body, name: b.loop(body, 1, name=name),
    "loop until": lambda b, body, name: b.loop(body, until=lambda _: True, name=name),
    "route": lambda b, body, name: b.route((lambda _: False, b.seq()), (lambda _: True, body)),
    "default": lambda b, body, name: b.route((lambda _: False, b.seq()), default=body),
    "fallback": lambda b, body, name: b.fallback(body, name=name),
    "second attempt": lambda b, body, name: b.fallback(b.fails("first"), body, name=name),
    "race": lambda b, body, name: b.race(b.hangs("other"), body, name=name),
    "map": lambda b, body, name: b.map(body, "one", name=name),
    "timeout": lambda b, body, name: b.timeout(body, name=name),
    "within": lambda b, body, name: MiddlewareNode(name, body),
}
KIND = pytest.mark.parametrize("kind", KINDS)


def nests(b: Bench, outer: str, body: Node) -> list[Node]:
    """The body in each kind in the outer kind; names stay apart."""
    b.state["one"] = [1]
    return [KINDS[outer](b, KINDS[inner](b, body, "inner"), "outer") for inner in KINDS]


@KIND
async def test_nested(b: Bench, kind: str) -> None:
    body = b.seq(b.say("a", x=1), b.fn("f", y=lambda s: s["x"] + 1), b.say("z"))
    for root in nests(b, kind, body):
        b.calls, b.state = [], {"one": [1]}
        ran = await b.run(b.seq(root, b.fn("after", seen=lambda s: s.get("y"))))
        assert [name for name in b.calls if name in "afz"] == ["a", "f", "z"]
        if any(isinstance(node, MapOverNode) for node in walk(root)):
            assert b.clean_state.items() >= {"one": [1], "results": ["z"]}.items()
            assert not b.clean_state.keys() & {"x", "y", "seen"}
        else:
            assert b.clean_state == {"one": [1], "x": 1, "y": 2, "seen": 2}
        assert ran.text == "z"


@KIND
async def test_reused(b: Bench, kind: str) -> None:
    """One node in several places, also at the same time."""
    body = b.seq(b.say("a", ticks=2, x=1), b.fn("f", y=lambda s: s["x"]))
    for root in nests(b, kind, body):
        b.calls = []
        await b.run(b.seq(root, root, b.par(root, root, name="both"), name="top"))
        assert b.calls.count("f") == 4


@KIND
async def test_failing(b: Bench, kind: str) -> None:
    for root in nests(b, kind, b.seq(b.say("a", x=1), b.fails("bad"))):
        b.calls = []
        error = await b.error(b.seq(without_others(b, root), b.say("never")))
        assert isinstance(error, b.Boom)
        assert error.__notes__[0] == "in node 'bad'"
        assert b.calls.count("bad") == 1
        assert "never" not in b.calls


@KIND
async def test_failing_in_an_attempt(b: Bench, kind: str) -> None:
    for root in nests(b, kind, b.seq(b.say("a", x=1), b.fails("bad"))):
        b.state, b.calls = {"one": [1], "x": 0}, []
        await b.run(
            b.fallback(without_others(b, root), b.say("good", seen=lambda s: s["x"]), name="top")
        )
        assert b.clean_state == {"one": [1], "x": 0, "seen": 0}


def without_others(b: Bench, root: Node) -> Node:
    """Races in which the other branch has lost already: it would hang for ever."""
    for node in walk(root):
        if node.name == "other":
            return without_others(b, node_replaced(root, node, b.fails("lost")))
    return root


def node_replaced(root: Node, old: Node, new: Node) -> Node:
    if root is old:
        return new
    return root.with_children(tuple(node_replaced(each, old, new) for each in root.children))


@KIND
async def test_cancelled(b: Bench, kind: str) -> None:
    """Whoever drives the engine is cancelled while a leaf waits: everything ends, orderly."""
    for root in nests(b, kind, b.seq(b.say("a"), b.hangs("h"))):
        b.calls, b.closed = [], []
        task = asyncio.create_task(b.run(root))
        await b.reach("h")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert sorted(b.closed) == sorted(b.calls)
        assert asyncio.all_tasks() == {asyncio.current_task()}


@KIND
async def test_closed(b: Bench, kind: str) -> None:
    """The consumer loses interest after each event in turn: no task and no open leaf is left."""
    body = b.seq(b.say("x", k=1), b.par(b.say("y"), b.say("z", ticks=3), name="two"), b.say("w"))
    for root in nests(b, kind, body):
        b.calls = []
        total = len((await b.run(root)).events)
        assert total >= 4
        for index in range(total):
            b.calls, b.closed = [], []
            async with aclosing(b.engine(root).run()) as events:
                for _ in range(index + 1):
                    await anext(events)
            assert sorted(b.closed) == sorted(name for name in b.calls)
            assert asyncio.all_tasks() == {asyncio.current_task()}


@KIND
async def test_timed_out(b: Bench, kind: str) -> None:
    for root in nests(b, kind, b.seq(b.say("a"), b.hangs("h"))):
        b.calls, b.closed = [], []
        error = await b.error(b.timeout(root, 0.005, name="limit"))
        assert isinstance(error, StepTimeoutError)
        assert error.node == "limit"
        assert sorted(b.closed) == sorted(b.calls)


@KIND
async def test_restarted(b: Bench, kind: str) -> None:
    body = b.seq(b.say("a", x=1), b.fn("f", y=lambda s: s["x"] + 1), b.say("z"))
    for root in nests(b, kind, body):
        b.state = {"one": [1]}
        await b.restarts(b.seq(root, b.mark("end"), name="top"))


def test_every_kind_the_engine_runs_is_named_here(b: Bench) -> None:
    """What arranges others is in KINDS; gates are in test_waiting, transfers in test_steps."""
    body = b.say("a")
    arranged = {type(each(b, body, "x")) for each in KINDS.values()}
    leaves = {"AgentNode", "FunctionNode", "TransformNode", "TapNode", "ExpectNode", "TransferNode"}
    elsewhere = {GateNode, AdkAgentNode, RemoteAgentNode}
    other_layers = {"ModelSelectorNode", "ResourceNode", AppNode.__name__}
    for node in NODES:
        assert node in arranged | elsewhere or node.__name__ in leaves | other_layers, node

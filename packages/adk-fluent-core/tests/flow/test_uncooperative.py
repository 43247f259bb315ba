"""Steps that do what a step should not: swallow cancellation, raise what no generator passes on."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.errors import RunError, StepTimeoutError
from adk_fluent.ir import FunctionNode, Ref

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from adk_fluent.ir import Node
    from adk_fluent.protocol import AgentEvent

    from .conftest import Bench, Turn


class FatalError(BaseException):
    """Not an Exception, as those of test frameworks and of ADK's interrupts are not."""


def stubborn(b: Bench) -> Node:
    """An agent that swallows its cancellation and goes on as if nothing were."""

    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            yield turn.event("late", state_delta={"late": 1})
        yield turn.event("later still", state_delta={"later": 1})

    return b.agent("stubborn", act)


def stubborn_function(b: Bench) -> Node:
    async def swallow(state: Mapping[str, Any]) -> dict[str, Any]:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return {"late": 1}

    return FunctionNode("stubborn", Ref.to(swallow))


@pytest.mark.parametrize("make", [stubborn, stubborn_function])
@pytest.mark.parametrize("nested", [False, True])
class TestSwallowedCancellation:
    def body(self, b: Bench, make: Callable[[Bench], Node], *, nested: bool) -> Node:
        """The step, with one after it that must not run any more; or that below another fork."""
        body = b.seq(make(b), b.say("after", after=1))
        return b.par(body, b.say("beside"), name="inner") if nested else body

    async def test_a_loser_of_a_race(
        self, b: Bench, make: Callable[[Bench], Node], nested: bool
    ) -> None:
        await b.run(b.seq(b.race(self.body(b, make, nested=nested), b.say("w", "won")), b.say("z")))
        assert "late" not in b.state
        assert "after" not in b.calls
        assert "z" in b.calls

    async def test_a_body_that_timed_out(
        self, b: Bench, make: Callable[[Bench], Node], nested: bool
    ) -> None:
        with pytest.raises(StepTimeoutError):
            await b.run(b.timeout(self.body(b, make, nested=nested), seconds=0.02))
        assert "late" not in b.state
        assert "after" not in b.calls

    async def test_a_sibling_of_a_failure(
        self, b: Bench, make: Callable[[Bench], Node], nested: bool
    ) -> None:
        with pytest.raises(b.Boom):
            await b.run(b.par(self.body(b, make, nested=nested), b.fails("bad", ticks=3)))
        assert "late" not in b.state
        assert "after" not in b.calls

    async def test_a_run_that_is_cancelled_from_outside(
        self, b: Bench, make: Callable[[Bench], Node], nested: bool
    ) -> None:
        task = asyncio.create_task(b.run(b.par(self.body(b, make, nested=nested), b.hangs("h"))))
        await b.reach("h")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            async with asyncio.timeout(10):
                await task
        assert "after" not in b.calls

    async def test_a_run_that_is_closed(
        self, b: Bench, make: Callable[[Bench], Node], nested: bool
    ) -> None:
        root = b.par(b.say("first", "hello"), self.body(b, make, nested=nested))
        async with asyncio.timeout(10), aclosing(b.engine(root).run()) as events:
            async for _ in events:
                break
        assert "after" not in b.calls


@pytest.mark.parametrize("ticks", [0, 5], ids=["ends first", "ends last"])
@pytest.mark.parametrize("arrange", ["par", "race", "timeout", "map", "nested"])
async def test_what_is_no_exception_leaves_every_fork_as_it_is(
    b: Bench, arrange: str, ticks: int
) -> None:
    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        for _ in range(ticks):
            await asyncio.sleep(0)
        raise FatalError
        yield turn.event("never")

    bad = b.agent("bad", act)
    b.state["items"] = [1]
    root = {
        "par": b.par(bad, b.say("x", ticks=2)),
        "race": b.race(bad, b.fails("x", ticks=2)),
        "timeout": b.timeout(bad),
        "map": b.map(bad, key="items"),
        "nested": b.par(b.timeout(b.par(bad, b.hangs("x"), name="in")), b.hangs("y")),
    }[arrange]
    with pytest.raises(FatalError):
        await b.run(root)


@pytest.mark.parametrize("kind", [StopIteration, StopAsyncIteration])
async def test_what_a_generator_cannot_pass_on_is_told_with_its_place(
    b: Bench, kind: type[Exception]
) -> None:
    def stops(state: Mapping[str, Any]) -> dict[str, Any]:
        raise kind

    for root in (FunctionNode("first", Ref.to(stops)), b.par(FunctionNode("first", Ref.to(stops)))):
        error = await b.error(root)
        assert isinstance(error, RunError)
        assert error.node == "first"
        assert kind.__name__ in str(error)
        assert isinstance(error.__cause__, kind)


async def test_a_branch_left_by_generator_exit_fails(b: Bench) -> None:
    def leaves(state: Mapping[str, Any]) -> dict[str, Any]:
        raise GeneratorExit

    error = await b.error(b.par(FunctionNode("f", Ref.to(leaves)), b.say("x")))
    assert isinstance(error, RunError)
    assert "GeneratorExit" in str(error)

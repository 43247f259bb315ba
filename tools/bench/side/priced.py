"""Ours with costs: estimates, attribution around runs, and ledgers."""

from __future__ import annotations

from functools import partial
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from adk_fluent import Agent
from adk_fluent.cost import (
    CostReport,
    MemoryLedger,
    Money,
    SqliteLedger,
    cost_attribution,
    estimate_cost,
)
from adk_fluent.protocol import Middleware
from bench.side.around import agents
from bench.side.scripted import driven

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from adk_fluent.builders import Builder
    from adk_fluent.protocol import ModelCall, ModelReply, NextModel
    from bench.side.worker import Task

_PRICES = {"echo": {"input": 0.3, "output": 2.5}}
_ONE, _MOST = Money.of("0.000001"), Money.of(1_000_000)


class Hooked(Middleware):
    """Has the hooks that cost_attribution has, and does nothing."""

    adds_tools = ()

    async def wrap_model_request(self, call: ModelCall, next: NextModel) -> ModelReply:
        """Send it."""
        return await next(call)

    def note_answer(self, call: ModelCall, /) -> None:
        """Keep nothing."""


def estimate(size: int) -> Callable[[], int]:
    """Estimate a chain of so many agents."""
    chain: Builder = Agent("a0", "gemini-2.5-flash").instruct("x")
    for at in range(1, size):
        chain = chain >> Agent(f"a{at}", "gemini-2.5-flash").instruct("x")
    ir = chain.to_ir()

    def once() -> int:
        return len(estimate_cost(ir).per_agent)

    return once


def run(attributed: bool, size: int) -> Callable[[], Coroutine[Any, Any, list[int]]]:
    """Run a pipeline of so many agents; return the events, and the calls that were charged."""
    report = CostReport()
    around: Any = Hooked()
    if attributed:
        around = cost_attribution(prices=_PRICES, on_record=report.add)
    go = driven(agents(size).middleware(around).to_runner())

    async def once() -> list[int]:
        report.records.clear()
        return [await go(), len(report.records)]

    return once


def reserve(kind: str, size: int) -> Callable[[], Coroutine[Any, Any, int]]:
    """Reserve and settle so many times."""
    folder = TemporaryDirectory()
    ledger = MemoryLedger() if kind == "memory" else SqliteLedger(f"{folder.name}/ledger.db")

    async def once(keep: Any = folder) -> int:
        for at in range(size):
            held = await ledger.reserve("account", _ONE, _MOST)
            if held is None:
                return at
            ledger.settle(held, _ONE)
        return size

    return once


TASKS: dict[str, Task] = {
    "estimate": estimate,
    "run-attributed": partial(run, True),
    "run-hooked": partial(run, False),
    "reserve-memory": partial(reserve, "memory"),
    "reserve-sqlite": partial(reserve, "sqlite"),
}

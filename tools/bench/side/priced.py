"""Ours with costs: estimates, attribution around runs, and ledgers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from google.adk.models.llm_response import LlmResponse
from google.genai import types

from adk_fluent import Agent
from adk_fluent.cost import (
    CostReport,
    MemoryLedger,
    Money,
    SqliteLedger,
    cost_attribution,
    estimate_cost,
)
from adk_fluent.protocol import Middleware, ModelReply, RunCall, Sink
from bench.side.around import agents
from bench.side.scripted import driven

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from adk_fluent.builders import Builder
    from adk_fluent.protocol import ModelCall, NextModel
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


class Keeps(Middleware):
    """Keeps the model calls of a run.

    Attributes:
        calls: What a run hands to the hooks.
    """

    adds_tools = ()

    def __init__(self) -> None:
        self.calls: list[ModelCall] = []

    async def wrap_model_request(self, call: ModelCall, next: NextModel) -> ModelReply:
        """Send it."""
        self.calls.append(call)
        return await next(call)


def estimate(size: int) -> Callable[[], int]:
    """Estimate a chain of so many agents."""
    chain: Builder = Agent("a0", "gemini-2.5-flash").instruct("x")
    for at in range(1, size):
        chain = chain >> Agent(f"a{at}", "gemini-2.5-flash").instruct("x")
    ir = chain.to_ir()

    def once() -> int:
        return len(estimate_cost(ir).per_agent)

    return once


def _around(attributed: bool, report: CostReport) -> Any:
    if attributed:
        return cost_attribution(prices=_PRICES, on_record=report.add)
    return Hooked()


def _reply(at: int) -> ModelReply:
    """What a model says, each time with other numbers of tokens."""
    usage = types.GenerateContentResponseUsageMetadata(
        prompt_token_count=1000 + at,
        candidates_token_count=50 + at % 400,
        total_token_count=1050 + at + at % 400,
    )
    said = types.Content(role="model", parts=[types.Part(text="ok")])
    return ModelReply([LlmResponse(content=said, usage_metadata=usage)])


def calls(attributed: bool, size: int) -> Callable[[], Coroutine[Any, Any, list[int]]]:
    """Pass so many model calls of a run through the hooks of one middleware, and nothing else.

    The call is one that ADK has made; the replies are ready, so that no model is asked. Return the
    calls, and those that were charged.
    """
    keeps, report = Keeps(), CostReport()
    agents(1).middleware(keeps).ask("hi")
    replies = [_reply(at) for at in range(size)]
    middleware: Any = _around(attributed, report)

    async def forward(fragment: Any) -> None:
        """Take no fragment: none is sent."""

    call = replace(keeps.calls[0], sink=Sink(forward))  # as it is on its way

    async def once() -> list[int]:
        report.records.clear()
        left = iter(replies)

        async def model(call: ModelCall) -> ModelReply:
            return next(left)

        around = middleware.new()
        around.begin_run(RunCall(run=call.run))
        for _ in range(size):
            await around.wrap_model_request(call, model)
            around.note_answer(call)
        return [size, len(report.records)]

    return once


def run(attributed: bool, size: int) -> Callable[[], Coroutine[Any, Any, list[int]]]:
    """Run a pipeline of so many agents; return the events, and the calls that were charged."""
    report = CostReport()
    go = driven(agents(size).middleware(_around(attributed, report)).to_runner())

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
    "calls-attributed": partial(calls, True),
    "calls-hooked": partial(calls, False),
    "run-attributed": partial(run, True),
    "run-hooked": partial(run, False),
    "reserve-memory": partial(reserve, "memory"),
    "reserve-sqlite": partial(reserve, "sqlite"),
}

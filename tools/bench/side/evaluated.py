"""Ours with evaluation: suites over an agent of ADK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent.eval import FluentCase, FluentEvalSuite
from bench.side.support import ANSWER, SAID, TOOLS, agent

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from bench.side.worker import Task


def run_suite(size: int) -> Callable[[], Coroutine[Any, Any, list[int]]]:
    """Run cases; return the numbers of model calls and of cases that passed."""
    calls = [0]
    desk = agent(calls)

    async def once() -> list[int]:
        calls[0] = 0
        cases = [
            FluentCase(
                SAID,
                id=f"case{number}",
                expected_trajectory=TOOLS,
                expected_response_contains="T-1",
            )
            for number in range(size)
        ]
        report = await FluentEvalSuite("bench", desk, cases).run()
        return [calls[0], sum(outcome.passed for outcome in report.outcomes)]

    return once


def fluent_cases(size: int) -> Callable[[], int]:
    """Make cases, and ADK's eval cases of them."""

    def once() -> int:
        cases = [
            FluentCase(
                SAID,
                id=f"case{number}",
                expected_trajectory=TOOLS,
                reference_response=ANSWER,
                initial_state={"a": 1},
            )
            for number in range(size)
        ]
        return len(FluentEvalSuite("bench", cases=cases).to_eval_set().eval_cases)

    return once


TASKS: dict[str, Task] = {"run-suite": run_suite, "fluent-cases": fluent_cases}

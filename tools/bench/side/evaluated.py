"""Ours with evaluation: suites over an agent of ADK's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent.eval import FluentCase, FluentEvalSuite
from adk_fluent.eval._files._evalset_adk import to_eval_case
from bench.side.support import ANSWER, SAID, TOOLS, agent

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from bench.side.worker import Task


def run_suite(size: int) -> Callable[[], Coroutine[Any, Any, list[int]]]:
    """So many cases; returns how many model calls, and how many passed."""
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
    """Cases made, and made ADK's."""

    def once() -> int:
        made = [
            to_eval_case(
                FluentCase(
                    SAID,
                    id=f"case{number}",
                    expected_trajectory=TOOLS,
                    reference_response=ANSWER,
                    initial_state={"a": 1},
                )
            )
            for number in range(size)
        ]
        return len(made)

    return once


def page(size: int) -> Callable[[], bool]:
    """The page of a report of so many small cases."""
    from datetime import UTC, datetime  # noqa: PLC0415  # of this task alone

    from adk_fluent.eval import CaseOutcome, FluentEvalReport, Status  # noqa: PLC0415  # the same

    outcomes = [CaseOutcome(f"case{n}", status=Status.PASSED, input=SAID) for n in range(size)]
    report = FluentEvalReport(outcomes, started_at=datetime(2026, 1, 1, tzinfo=UTC))

    def once() -> bool:
        return len(report.to_html()) > size

    return once


TASKS: dict[str, Task] = {"run-suite": run_suite, "fluent-cases": fluent_cases, "page": page}

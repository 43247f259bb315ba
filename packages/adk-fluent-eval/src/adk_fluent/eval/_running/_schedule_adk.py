"""All runs of all cases: how many at a time, what is tried again, and what is done already."""

from __future__ import annotations

import asyncio
import math
from contextlib import aclosing, nullcontext
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.eval._cases._case import text_of
from adk_fluent.eval._errors import EvalFileError
from adk_fluent.eval._outcome import CaseOutcome, Status
from adk_fluent.eval._running._case_run_adk import CaseRun
from adk_fluent.eval._running._overheard import OVERHEARD
from adk_fluent.eval._running._pace import LeftAloneError, Pace, refusal_in
from adk_fluent.eval._running._progress import Progress

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from google.adk.evaluation.eval_result import EvalCaseResult

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._journal._journal import Journal
    from adk_fluent.eval._running._shared_adk import Shared

_ATTEMPTS: Final = 6
_NOT_PASSED: Final = frozenset({Status.FAILED, Status.ERROR})


class Schedule:
    """The runs of a suite.

    Args:
        shared: What they have in common.
        units: Cases and runs, in the order in which they are begun.
        parallelism: How many at the same time, at most.
        journal: What is done already, and where it is noted; None notes nothing.
        fail_fast: Whether nothing more is begun once one did not pass.

    Attributes:
        results: ADK's own results, by case and run.
        stopped: Whether it has ended before everything was done.
        notes: What people should know beside the outcomes.
    """

    def __init__(
        self,
        shared: Shared,
        units: Sequence[tuple[FluentCase, int]],
        *,
        parallelism: int,
        journal: Journal | None,
        fail_fast: bool,
    ) -> None:
        self._shared = shared
        self._units = units
        self._parallelism = parallelism
        self._journal = journal
        self._fail_fast = fail_fast
        self.results: dict[tuple[str, int], EvalCaseResult] = {}
        self.stopped = False
        self._failed = False
        self.notes: list[str] = []

    async def go(self) -> AsyncGenerator[Progress, None]:
        """Run everything, and tell of each when it is done.

        Raises:
            EvalFileError: The journal cannot be read, or not be written from the beginning.
        """
        with self._journal or nullcontext(), OVERHEARD:
            try:
                async with aclosing(self._go()) as done:
                    async for each in done:
                        yield each
            finally:
                await self._shared.close()
                recording = self._shared.recording
                if recording is not None and recording.problem:
                    self.notes.append(f"answers of models are not all kept: {recording.problem}")

    async def _go(self) -> AsyncGenerator[Progress, None]:
        known = {} if self._journal is None else self._journal.done
        total, done = len(self._units), 0
        todo: list[tuple[FluentCase, int]] = []
        for case, run in self._units:
            if (outcome := known.get((case.name, run))) is None:
                todo.append((case, run))
                continue
            done += 1
            self._failed |= self._fail_fast and outcome.status in _NOT_PASSED
            yield Progress(outcome, done, total, resumed=True)
        if self._journal is not None and done:
            runs = "1 run" if done == 1 else f"{done:,} runs"
            self.notes.append(f"{runs} taken over from the journal {self._journal.name}")
        if self._journal is not None:
            self.notes += self._journal.notes
        if self._failed:
            self.stopped = done < total
            return
        if not todo:
            return
        pace = Pace(self._parallelism)
        ready: asyncio.Queue[CaseOutcome | BaseException | None] = asyncio.Queue()
        waiting = iter(todo)
        workers = [
            asyncio.create_task(self._work(waiting, pace, ready))
            for _ in range(min(self._parallelism, len(todo)))
        ]
        try:
            working = len(workers)
            while working:
                outcome = await ready.get()
                if isinstance(outcome, BaseException):
                    raise outcome
                if outcome is None:
                    working -= 1
                    continue
                done += 1
                yield Progress(outcome, done, total)
            self.stopped = done < total
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    def _note(self, outcome: CaseOutcome) -> None:
        """Write down what is done; a disk that is full costs that alone, not the run."""
        if self._journal is None:
            return
        try:
            self._journal.add(outcome)
        except EvalFileError as error:
            self._journal = None
            what = f"nothing is noted in the journal from case {outcome.id!r} on: {error.what}"
            self.notes.append(what)

    async def _work(self, waiting: Any, pace: Pace, ready: asyncio.Queue[Any]) -> None:
        """Run one after the other as long as there are any, and then say so with None."""
        for case, run in waiting:
            try:
                outcome = await self._one(case, run, pace)
                self._note(outcome)
            except asyncio.CancelledError as error:
                ready.put_nowait(error)  # whoever waits for it must not wait for ever
                raise
            except BaseException as error:  # noqa: BLE001  # raised where it is waited for
                ready.put_nowait(error)
                return
            ready.put_nowait(outcome)
            self._failed |= self._fail_fast and outcome.status in _NOT_PASSED
            if self._failed:
                break
        ready.put_nowait(None)

    async def _one(self, case: FluentCase, run: int, pace: Pace) -> CaseOutcome:
        """Run a case, and again where a service had no time for it."""
        if case.skip is not None:
            return _not_run(case, run, Status.SKIPPED, note=case.skip)
        attempt, outcome, result, given_up = 0, None, None, list[CaseOutcome]()
        while True:
            attempt += 1
            try:
                async with pace.turn() as began:
                    outcome, result, errors = await CaseRun(self._shared, case, run).go()
            except LeftAloneError as error:
                # of one that was begun before, there is more to tell
                outcome = outcome or _not_run(case, run, Status.ERROR, error=str(error))
                break
            outcome.attempts = attempt
            refused = refusal_in(errors) if outcome.status is Status.ERROR else None
            if refused is None:
                pace.went_well()
                break
            if not pace.was_refused(refused, attempt, began) or attempt >= _ATTEMPTS:
                break
            given_up.append(outcome)
        for each in given_up:
            if each is not outcome:
                _add_to(outcome, each)
        if result is not None:
            self.results[outcome.key] = result
        return outcome


def _add_to(outcome: CaseOutcome, given_up: CaseOutcome) -> None:
    """Add what an attempt took to what was taken beside the one that counts."""
    outcome.eval_tokens += given_up.tokens + given_up.eval_tokens
    costs = (outcome.eval_cost_usd, given_up.cost_usd, given_up.eval_cost_usd)
    outcome.eval_cost_usd = None if None in costs else math.fsum(filter(None, costs))


def _not_run(
    case: FluentCase, run: int, status: Status, *, note: str = "", error: str | None = None
) -> CaseOutcome:
    """The outcome of a case that is not run at all."""
    return CaseOutcome(
        case.name,
        run,
        status,
        [] if error is None else [error],
        error,
        input=text_of(case.turns[0].input),
        tags=list(case.tags),
        note=note,
        target_node=case.target_node or "",
    )

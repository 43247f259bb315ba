"""Running a program on a backend, and telling what is wrong with what it did."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from adk_fluent.builders import Pipeline, tap
from adk_fluent.errors import AdkFluentError
from adk_fluent.protocol import AgentEvent, RunResult, final_text
from adk_fluent.testing.conformance._bench import Bench
from adk_fluent.testing.conformance._numbers import filled, numbered
from adk_fluent.testing.conformance._order import beside, disorder, flat
from adk_fluent.testing.conformance._seen import error_differs, lines, own

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.protocol import Backend, Pending
    from adk_fluent.testing.conformance._program import Expected, Program, Turn
    from adk_fluent.testing.conformance._subject import Status, Subject

USER: Final = "user"
_CLOSING: Final = 1.0  # seconds
_REFUSAL: Final = 5.0  # seconds that a refusal may take
_SHORT: Final = (0.02, 0.2, 2.0)  # seconds that a timeout takes that is meant to strike


class Difference(NamedTuple):
    """One thing that is not as it should be.

    Attributes:
        aspect: What of the run: ``state``, ``text``, ``calls``, ``events``, ``error``, ``errors``,
            ``left running``, ``by run`` or ``status``.
        detail: What was found, and what should have been.
    """

    aspect: str
    detail: str

    def __str__(self) -> str:
        return f"{self.aspect}: {self.detail}"


@dataclass
class _Ran:
    """What was seen of one run."""

    events: list[AgentEvent] = field(default_factory=list[AgentEvent])
    error: BaseException | None = None


async def check(program: Program, subject: Subject, *, seconds: float = 60.0) -> list[Difference]:
    """Run a program, and tell what is wrong.

    Where the subject lacks the program's capability, it has to refuse it with an `AdkFluentError`.

    Args:
        program: One of `programs()`.
        subject: What runs it.
        seconds: How long it may take at most.

    Returns:
        Nothing, if all is as it should be.
    """
    status = subject.status(program.capability)
    found: list[Difference] = []
    trial = _Trial(program, subject, _SHORT[0])
    limit = asyncio.timeout(seconds if status.word == "works" else min(seconds, _REFUSAL))
    try:
        async with limit:
            found = await trial.streamed()
            for short in _SHORT[1:] if program.timed else ():
                if found:
                    trial = _Trial(program, subject, short)
                    found = await trial.streamed()
            if status.word != "works":
                return _refused(found, trial.errors, status)
            if not found and _is_plain(program):
                found = await _Trial(program, subject, _SHORT[0]).collected()
    except TimeoutError:
        if not limit.expired():
            raise
        found = [Difference("left running", f"not over after {seconds:g} s")]
    return found


def _is_plain(program: Program) -> bool:
    ways = {turn.way for turn in program.turns}
    return ways == {"run"} and not program.timed and program.copies == 1


def _refused(
    found: list[Difference], errors: list[BaseException], status: Status
) -> list[Difference]:
    """What is wrong with how a program was refused."""
    if not found:
        return [Difference("status", f"declared {status.word!r}, but it works")]
    if errors and all(isinstance(error, AdkFluentError) for error in errors):
        return []
    told = "; ".join(map(str, found))
    return [Difference("status", f"declared {status.word!r}, but it is not refused: {told}")]


class _Trial:
    """One go at a program, with sessions of its own."""

    def __init__(self, program: Program, subject: Subject, short: float) -> None:
        self._program, self._subject = program, subject
        self._bench = Bench(
            short=short,
            copies=program.copies,
            native=subject.native,
            long_running=subject.long_running,
        )
        self._node = program.build(self._bench).to_ir()
        self._backend: Backend[Any] = subject.backend()
        self._asked: list[Pending] = []
        #: Those that ended a run.
        self.errors: list[BaseException] = []

    async def streamed(self) -> list[Difference]:
        """Follow the events; see that nothing goes on afterwards and that sessions can be used."""
        before = asyncio.all_tasks()
        found: list[Difference] = []
        for number, turn in enumerate(self._program.turns):
            if number:
                self._start_again()
            at = len(self._bench.calls)
            runs = await asyncio.gather(*map(self._drive(turn), range(self._program.copies)))
            found += chain.from_iterable(
                self._compare(turn, ran, copy) for copy, ran in enumerate(runs)
            )
            found += self._calls(turn, self._bench.calls[at:])
        left = [name for name, count in self._bench.under_way.items() if count]
        tasks = asyncio.all_tasks() - before
        if tasks:  # what closes itself when it is collected may do so, at any time
            _, tasks = await asyncio.wait(tasks, timeout=_CLOSING)
        left += map(repr, tasks)
        found += [Difference("left running", each) for each in left]
        for copy in range(self._program.copies):
            expected = numbered(self._program.turns[-1].expects, copy)
            found += await self._afterwards(expected, copy)
        return found

    def _start_again(self) -> None:
        """A backend and a pipeline of another process, as far as that can be had."""
        reopen = self._subject.reopen
        self._backend = self._backend if reopen is None else reopen(self._backend)
        self._node = self._program.build(self._bench).to_ir()

    async def collected(self) -> list[Difference]:
        """Run to the end, and look at what comes back."""
        found: list[str | None] = []
        for number, turn in enumerate(self._program.turns):
            if number:
                self._start_again()
            expected, result, error = turn.expects, RunResult(), None
            try:
                compiled = self._backend.compile(self._node, self._program.config)
                result = await self._backend.run(compiled, self._sent(turn, 0), **self._options(0))
                self._asked = result.pending or self._asked
            except Exception as raised:  # noqa: BLE001  # compared with what should be raised
                error = raised
            expected = numbered(expected, 0)
            last = number + 1 == len(self._program.turns)
            if turn.may_refuse and isinstance(error, AdkFluentError):
                continue
            found.append(error_differs(expected.raises, error))
            if error is None and expected.raises is None:
                found.append(
                    None if expected.text is None else _differs("text", expected.text, result.text)
                )
                found.append(
                    _differs("state", dict(expected.state), own(result.state)) if last else None
                )
                told = tuple(map(str, result.errors))
                found.append(_differs("errors", expected.errors, told))
        return [Difference("by run", each) for each in found if each is not None]

    # --- one run -------------------------------------------------------------------------------

    def _options(self, copy: int) -> dict[str, Any]:
        state = filled(dict(self._program.state), copy)
        ids = {"user_id": USER, "session_id": f"session {copy}"}
        return {**self._subject.options, **ids, "state": state}

    def _drive(self, turn: Turn) -> Any:
        """Makes a run of the same compiled pipeline for a number."""
        error: BaseException | None = None
        compiled: Any = None
        try:
            compiled = self._backend.compile(self._node, self._program.config)
        except Exception as raised:  # noqa: BLE001  # compared with what should be raised
            error = raised

        async def run(copy: int) -> _Ran:
            if error is not None:
                self.errors.append(error)
                return _Ran(error=error)
            ran = _Ran()
            following = asyncio.create_task(self._follow(turn, compiled, ran, copy))
            try:
                if turn.way == "cancel":
                    await self._all_calls(turn, following)
                    following.cancel()
                await following
            except asyncio.CancelledError as cancelled:
                if not following.done():
                    following.cancel()
                    raise
                ran.error = cancelled
            except Exception as raised:  # noqa: BLE001  # compared with what should be raised
                ran.error = raised
            if ran.error is not None:
                self.errors.append(ran.error)
            return ran

        return run

    def _sent(self, turn: Turn, copy: int) -> Any:
        return filled(turn.message, copy) if turn.answers is None else turn.answers(self._asked)

    async def _follow(self, turn: Turn, compiled: Any, ran: _Ran, copy: int) -> None:
        enough = len(list(flat(turn.expects.events or ()))) if turn.way == "close" else None
        message = self._sent(turn, copy)
        stream = self._backend.stream(compiled, message, **self._options(copy))
        async with aclosing(stream) as events:
            async for event in events:
                ran.events.append(event)
                if enough is not None and len(lines(ran.events)) >= enough:
                    break
        self._asked = RunResult(ran.events).pending or self._asked

    async def _all_calls(self, turn: Turn, following: asyncio.Task[None]) -> None:
        expected = len(list(flat(turn.expects.calls or ()))) * self._program.copies
        while len(self._bench.calls) < expected and not following.done():  # noqa: ASYNC110  # as above
            await asyncio.sleep(0)

    # --- comparing -----------------------------------------------------------------------------

    def _compare(self, turn: Turn, ran: _Ran, copy: int) -> Iterator[Difference]:
        expected = numbered(turn.expects, copy)
        if turn.may_refuse and isinstance(ran.error, AdkFluentError):
            return
        if wrong := error_differs(expected.raises, ran.error):
            yield Difference("error", wrong)
        seen = lines(ran.events)
        if expected.events is not None and (wrong := disorder(expected.events, seen)):
            yield Difference("events", f"{wrong}; seen {seen}")
        if ran.error is None and turn.way == "run" and expected.raises is None:
            text = final_text(ran.events)
            if expected.text is not None and (wrong := _differs("answer", expected.text, text)):
                yield Difference("text", wrong)
            told = tuple(map(str, RunResult(ran.events).errors))
            if wrong := _differs("reported", expected.errors, told):
                yield Difference("errors", wrong)

    def _calls(self, turn: Turn, calls: list[str]) -> Iterator[Difference]:
        if turn.expects.calls is None:
            return
        expected = beside(*[turn.expects.calls] * self._program.copies)
        if wrong := disorder(expected, calls):
            yield Difference("calls", f"{wrong}; made {calls}")

    async def _afterwards(self, expected: Expected, copy: int) -> Iterator[Difference]:
        """Go on with the session: another pipeline sees what is in it."""
        reopen = self._subject.reopen
        backend = self._backend if reopen is None else reopen(self._backend)
        look = Pipeline("look", tap(lambda _: None, name="nothing")).to_ir()
        try:
            result = await backend.run(backend.compile(look), "look", **self._options(copy))
        except Exception as error:  # noqa: BLE001  # told
            return iter([Difference("state", f"the session cannot be used: {error!r}")])
        wrong = _differs("session", dict(expected.state), own(result.state))
        return iter([Difference("state", wrong)] if wrong else [])


def _differs(what: str, wanted: object, found: object) -> str | None:
    return None if wanted == found else f"{what} is {found!r}, should be {wanted!r}"

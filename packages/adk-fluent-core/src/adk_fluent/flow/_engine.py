"""The engine: drives strands through an IR as the rules say, and commits events.

Strand 0 runs in whoever drives `Engine.run`; every other strand runs from start to end in one task
of its own and hands its events, one at a time, to the main strand, which yields them. An event
counts as committed when the consumer asks for the next one.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from adk_fluent.errors import add_place
from adk_fluent.flow._around import Enclosed
from adk_fluent.flow._failures import raise_error
from adk_fluent.flow._fork import ForkRun
from adk_fluent.flow._operations import Operations
from adk_fluent.flow._port import E
from adk_fluent.flow._position import ENDED, INSIDE, questions_at
from adk_fluent.flow._rules import RULES, leaf_rule
from adk_fluent.flow._run_state import RunState
from adk_fluent.flow._signals import (
    ENTER,
    OK,
    PAUSE,
    Call,
    Emit,
    Enclose,
    Ended,
    Fork,
    Joined,
    Operation,
    Run,
    Signal,
    Step,
    Test,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Mapping

    from adk_fluent.flow._around import Around
    from adk_fluent.flow._commit import Commit
    from adk_fluent.flow._log import Scope
    from adk_fluent.flow._port import Leaf, Order, Watch
    from adk_fluent.flow._position import Journaled, OnStep, Position
    from adk_fluent.flow._promises import Promises
    from adk_fluent.flow._strand import Heard, Strand
    from adk_fluent.ir import Node
    from adk_fluent.protocol import Pending


class Engine(RunState[E]):
    """One run of a pipeline.

    Args:
        root: What runs.
        leaf: Who runs leaves and makes events.
        position: Where to go on; None starts at the beginning. It is changed in place.
        answers: Answers to calls that wait, by call id.
        on_step: Awaited with the position after every committed step.
        journal: Makes the position part of every event that moves it, so that both are committed
            or neither is; where a step ends without such an event, one of the engine's own.
        keeps_failures: Whether `failed_at` is kept.
        watch: Is told of steps that fail, and of attempts that are discarded.
        around: What stands around steps. It belongs to the run as `limit` does.
        limit: Seconds the run may take. It belongs to the run and not to the pipeline: a position
            of a run with another limit, or with none, can be gone on from.
        promises: What the pipeline promises about state.
        segment: Do the steps of this segment alone, and pause before those of others; "" is what
            stands outside of every execution boundary, None does all of them.
        beside: Segments whose steps are done here, too, where they stand in branches or items that
            run at the same time as others.
        order: Is told in which order steps that run at the same time go on.

    Attributes:
        root: What runs; where there is a limit, the timeout around it.
        limit: That timeout.
        position: Where the run stands: flat, JSON-shaped where state values are.
        outcome: How it ended: ``OK``, ``ESCALATE``, ``PAUSE`` or ``STOP``; None while it runs.
        pending: Calls that wait for an answer: call id to what is asked and by which node.
        questions: What gates ask that did not ask before, in order.
        failed_at: Where the run stands that a failed step has ended; who goes on from there does
            that step once more.
        log: The scopes that are still open.
        errors: Those of attempts and branches, while something else is tried.
        queue: What steps hand over while the run goes on; None ends it.
        promises: What the pipeline promises about state.
        segments: The segments whose steps it has paused before, in order.
    """

    def __init__(
        self,
        root: Node,
        leaf: Leaf[E],
        *,
        position: Position | None = None,
        answers: Mapping[str, Any] | None = None,
        on_step: OnStep | None = None,
        journal: Journaled | None = None,
        keeps_failures: bool = False,
        watch: Watch | None = None,
        around: Around | None = None,
        limit: float | None = None,
        promises: Promises | None = None,
        segment: str | None = None,
        beside: Collection[str] = (),
        order: Order | None = None,
    ) -> None:
        super().__init__(
            root,
            leaf,
            position=position,
            on_step=on_step,
            journal=journal,
            keeps_failures=keeps_failures,
            watch=watch,
            encloses=around.encloses if around is not None and around.has_steps else None,
            order=order,
            limit=limit,
            promises=promises,
        )
        self.outcome: Signal | None = None
        self.segments: tuple[str, ...] = ()
        self._segment, self._beside = segment, beside
        self._stops: dict[str, str] = {}
        self._around = around
        self._operations = Operations(leaf, answers or {}, watch)
        self.pending: dict[str, dict[str, Any]] = self._operations.pending
        self.questions: list[Pending] = self._operations.questions

    async def run(self) -> AsyncGenerator[E, None]:
        """Run to the end, to a pause or to an error, yielding events as they happen.

        Raises:
            Exception: Whatever a leaf or function raised, with its own type, its place added as a
                note.
        """
        main = self.strand("0", self.root, parent=None)
        try:
            async with aclosing(self.drive(main)) as commits:
                async for commit in commits:
                    event = commit.event if commit.make is None else commit.make()
                    after, kept = self._after(commit), dict[str, Any]()
                    if event is not None:
                        if self._journal is not None and after is not None:
                            after()  # the event itself says what is true once it is committed
                            after = None
                            kept.update(self._journal(self.position))
                            self.leaf.attach(event, kept)
                        yield event
                    if after is not None:
                        after()
                    s = commit.strand
                    if s is not None and s.heard is not None and event is not None:
                        self._hear(s.heard, s, event, kept)
        except GeneratorExit:  # who drives us wants no more after an event that it got
            raise
        except BaseException as error:
            self.cut_off(main, error)
            raise
        if isinstance(main.outcome, Exception):
            raise_error(main.outcome)
        self.outcome = main.outcome
        if self._around is not None:
            self._around.ended(paused=main.outcome is PAUSE)
        # what a branch asked that has lost since is no longer a question
        open_calls = questions_at(self.position)
        self.pending = {call: asked for call, asked in self.pending.items() if call in open_calls}
        self.questions = [each for each in self.questions if each.id in open_calls]
        strands = self.position["strands"]
        stops = (part for id, part in self._stops.items() if id in strands)
        self.segments = tuple(dict.fromkeys(stops))

    def _after(self, commit: Commit[E]) -> Callable[[], None] | None:
        """What becomes true in the moment that something is committed; None when nothing does."""
        if commit.after is not None:
            return commit.after
        if commit.scope is None or (not commit.delta and self._around is None):
            return None
        return partial(self._record, commit.scope, commit)

    def _record(self, scope: Scope, commit: Commit[E]) -> None:
        """Log a write as it is committed: who stands around may have changed it."""
        delta = commit.delta
        if self._around is not None and commit.event is not None:
            facts = self.leaf.facts(commit.event)
            delta = None if facts is None or facts.partial else facts.delta
        if delta:
            self.log.record(scope, delta)

    def _hear(self, heard: Heard, s: Strand, event: E, kept: Mapping[str, Any]) -> None:
        """Let what stands around a step know what it says and writes, but for our own keeping."""
        facts = self.leaf.facts(event)
        if facts is None or not facts.partial:
            delta = {} if facts is None or not facts.delta else dict(facts.delta)
            for key in kept:
                delta.pop(key, None)
            heard.take(delta, s.path, self.leaf.text(event) or "", s.attempt or "")

    # --- one strand ----------------------------------------------------------------------------

    def _advance(self, s: Strand, signal: Any) -> Operation | None:
        """Follow the rules to the next operation; None when the strand has ended."""
        frames, nodes = s.frames, s.nodes
        if isinstance(signal, Joined) and signal.error is not None and self.ends_run(s):
            s.outcome = signal.error
            return None
        while frames:
            node = nodes[-1]
            try:
                step = self._step(s, node, signal)
            except Exception as error:  # noqa: BLE001  # a value of the user's that a rule cannot take
                step = self.failed(s, add_place(error, node))
            if type(step) is int:
                s.push(step, self.child(node, step))
                signal = ENTER
            elif step is PAUSE:
                s.outcome = PAUSE
                return None
            elif isinstance(step, Signal | Exception):
                if isinstance(step, Exception):
                    if signal is Signal.FALSE:  # its own, not passed on
                        self.failed(s, step)
                    if self.ends_run(s):
                        s.outcome = step
                        return None
                self.abandon(frames[-1], close=True)
                s.pop()
                signal = step
            else:
                return cast("Operation", step)
        s.outcome = OK if signal is ENTER else signal  # it had ended before a restart
        return None

    def _step(self, s: Strand, node: Node, signal: Any) -> Step:
        """What comes next at a node, and around it."""
        if signal is ENTER:
            within = s.within and len(s.frames) == 1
            if self._encloses is not None and not within and self.is_enclosed(node):
                return Enclose()
            if ENDED in s.frames[-1]:  # only what stood around it had not
                return Signal(s.frames[-1][ENDED])
        elif isinstance(signal, Ended):
            return signal.signal
        return RULES.get(type(node), leaf_rule)(self, s, s.frames[-1], node, signal)

    async def drive(self, s: Strand) -> AsyncGenerator[Commit[E], None]:
        """Run one strand to its end, yielding what it commits."""
        signal: Any = ENTER
        done: Operation | None = None
        operations = self._operations
        while (todo := self._next(s, signal)) is not None:
            s.busy = isinstance(todo, Emit)  # what it writes is there already
            if s.cancelled or s.overdue:
                await _give_up(s)
            if self._moved(done, todo):
                await self.stepped()
                if self.journals_apart(s) and not isinstance(todo, Emit):
                    yield self.checkpoint(s)
            s.busy = True
            done, s.written = todo, isinstance(todo, Emit)
            node = s.nodes[-1]
            if isinstance(todo, Run):
                ending = operations.ending(s, node, s.frames[-1])
                async with aclosing(operations.run(s, node, s.frames[-1], ending)) as commits:
                    async for commit in commits:
                        yield commit
                signal = ending.signal
            elif isinstance(todo, Emit):
                yield operations.emit(s, node, todo)
                signal = Signal.EMITTED
            elif isinstance(todo, Fork | Enclose):
                part = self._part(s, node, todo)
                if isinstance(part, Exception):
                    signal = part
                    continue
                async with aclosing(part.run()) as commits:
                    async for commit in commits:
                        yield commit
                signal = part.result
            else:
                signal = await operations.call(s, node, todo)
            if signal is PAUSE:
                s.outcome = PAUSE
                return

    def _next(self, s: Strand, signal: Any) -> Operation | None:
        """Follow the rules to the next operation that is done here; None when there is none."""
        todo = self._advance(s, signal)
        if todo is None or self._segment is None or not self._is_elsewhere(s, todo):
            return todo
        self._stops[s.id] = s.part
        s.outcome = PAUSE
        return None

    def _is_elsewhere(self, s: Strand, todo: Operation) -> bool:
        """Whether a step is another segment's; a question that stays open is nobody's."""
        frame = s.frames[-1]
        part = s.part
        if isinstance(todo, Emit) or part == self._segment:
            return False
        if part in self._beside and s.is_beside_others:
            return False
        if isinstance(todo, Fork | Enclose) and (frame.get("strands") or INSIDE in frame):
            return False  # what has begun inside of it says for itself whose it is
        waits: dict[str, str] = frame.get("waits", {})
        return not waits or self._operations.is_answered(waits)

    def _moved(self, done: Operation | None, todo: Operation) -> bool:
        """Whether what was done brought a strand further than what is written down."""
        if isinstance(done, Call):  # where it wrote nothing, nothing else says that it was called
            return self._journal is not None and not isinstance(todo, Emit)
        return done is not None and not isinstance(done, Test)

    def _part(
        self, s: Strand, node: Node, todo: Fork | Enclose
    ) -> ForkRun[E] | Enclosed[E] | Exception:
        """What is done in strands of its own."""
        if isinstance(todo, Enclose):
            s.busy = False  # it is the strand inside that does the step
            return Enclosed(self, s, cast("Around", self._around))
        try:
            return ForkRun(self, s, node, s.frames[-1])
        except Exception as error:  # noqa: BLE001  # passed up as the step's failure
            return self.failed(s, add_place(error, node))


async def _give_up(s: Strand) -> None:
    """Go no further: a step swallowed that it was cancelled, or let no timer strike."""
    if not s.cancelled:
        await asyncio.get_running_loop().create_future()  # the timeout cancels this
    raise asyncio.CancelledError

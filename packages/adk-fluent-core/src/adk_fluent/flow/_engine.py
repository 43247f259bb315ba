"""The engine: drives strands through an IR, performs what the rules ask for, commits events.

Strand 0 runs in whoever drives `Engine.run`; every other strand runs from start to end in one task
of its own and hands its events, one at a time, to the main strand, which yields them. An event
counts as committed when the consumer asks for the next one.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from functools import partial
from itertools import pairwise
from typing import Any, Generic, NoReturn, cast

from adk_fluent.errors import (
    AgentReportedError,
    RunError,
    add_place,
)
from adk_fluent.flow._commit import Commit, Parcel
from adk_fluent.flow._ending import Ending
from adk_fluent.flow._fork import ForkRun, left_by
from adk_fluent.flow._functions import matches
from adk_fluent.flow._log import Scope, UndoLog
from adk_fluent.flow._port import E, Leaf
from adk_fluent.flow._steps import (
    ENTER,
    OK,
    PAUSE,
    RULES,
    Call,
    Emit,
    Fork,
    Returned,
    Run,
    Signal,
    Test,
    leaf_rule,
)
from adk_fluent.flow._strand import Frame, Strand
from adk_fluent.flow._targets import Targets
from adk_fluent.flow._view import StateView
from adk_fluent.ir import (
    Match,
    Node,
    Predicate,
    TransferNode,
)

Position = dict[str, Any]
OnStep = Callable[[Position], Awaitable[None]]


def new_position() -> Position:
    """The position of a run that has not begun."""
    return {"v": 1, "next": 1, "strands": {"0": [{"c": 0}]}}


class Engine(Generic[E]):
    """One run of a pipeline.

    Args:
        root: What runs.
        leaf: Who runs leaves and makes events.
        position: Where to go on; None starts at the beginning. It is changed in place.
        answers: Answers to calls that wait, by call id.
        on_step: Awaited with the position after every committed step.

    Attributes:
        position: Where the run stands: flat, JSON-shaped where state values are.
        outcome: How it ended: ``OK``, ``ESCALATE``, ``PAUSE`` or ``STOP``; None while it runs.
        pending: Calls that wait for an answer: call id to what is asked and by which node.
        log: The scopes that are still open.
    """

    def __init__(
        self,
        root: Node,
        leaf: Leaf[E],
        *,
        position: Position | None = None,
        answers: Mapping[str, Any] | None = None,
        on_step: OnStep | None = None,
    ) -> None:
        self.root = root
        self.leaf = leaf
        self.position: Position = new_position() if position is None else position
        self.answers: Mapping[str, Any] = answers or {}
        self.outcome: Signal | None = None
        self.pending: dict[str, dict[str, Any]] = {}
        self.log: UndoLog = UndoLog(self.position, leaf.state)
        self._on_step = on_step
        self.queue: asyncio.Queue[Parcel[E] | None] = asyncio.Queue()
        self._errors: dict[str, Exception] = {}
        self._targets: Targets | None = None

    async def run(self) -> AsyncGenerator[E, None]:
        """Run to the end, to a pause or to an error, yielding events as they happen.

        Raises:
            Exception: Whatever a leaf or function raised, with its own type, its place added as a
                note.
        """
        main = self.strand("0", self.root, parent=None)
        async with aclosing(self.drive(main)) as commits:
            async for commit in commits:
                event = commit.event if commit.make is None else commit.make()
                if event is not None:
                    yield event
                if commit.after is not None:
                    commit.after()
                elif commit.scope is not None and commit.delta:
                    self.log.record(commit.scope, commit.delta)
        if isinstance(main.outcome, Exception):
            _raise(main.outcome)
        self.outcome = main.outcome
        # what a branch asked that has lost since is no longer a question
        strands = self.position["strands"].values()
        open_calls = {
            call for frames in strands for frame in frames for call in frame.get("waits", ())
        }
        self.pending = {call: asked for call, asked in self.pending.items() if call in open_calls}

    # --- what rules may do ---------------------------------------------------------------------

    def open_scope(self, strand: Strand, frame: Frame) -> None:
        """From here on, what the strand does can be discarded."""
        frame["scope"] = self.new_id()
        strand.scope = self.log.enter(frame["scope"], strand.scope, strand.isolation)

    def close_scope(self, strand: Strand, frame: Frame) -> None:
        """What the strand did since then stays."""
        scope = self.log.open[frame.pop("scope")]
        strand.scope = scope.parent
        self.log.settle(scope)

    def abandon(self, frame: Frame) -> None:
        """A fork is over: forget where the branches stand that did not end."""
        todo = [frame]
        while todo:
            for id in todo.pop().pop("strands", {}).values():
                todo.extend(self.position["strands"].pop(id))

    def remember(self, frame: Frame, error: Exception) -> None:
        """Keep an error of an attempt or branch; after a restart only its text is known."""
        key = self.new_id()
        frame.setdefault("errors", []).append([key, f"{type(error).__name__}: {error}"])
        self._errors[key] = error

    def forget(self, frame: Frame) -> list[Exception]:
        """The errors remembered in a frame; it has none from here on."""
        errors: list[Exception] = []
        for key, text in frame.pop("errors", ()):
            error = self._errors.pop(key, None)
            errors.append(error or AgentReportedError(text, error_code="RESTARTED"))
        return errors

    def recall(self, frame: Frame) -> Exception:
        """The last remembered error, those before it chained as its context."""
        return _chained(self.forget(frame))

    # --- one strand ----------------------------------------------------------------------------

    def _advance(self, s: Strand, signal: Any) -> Run | Call | Test | Fork | Emit | None:
        """Follow the rules to the next operation; None when the strand has ended."""
        frames, nodes = s.frames, s.nodes
        while frames:
            node = nodes[-1]
            try:
                step = RULES.get(type(node), leaf_rule)(self, s, frames[-1], node, signal)
            except Exception as error:  # noqa: BLE001  # a value of the user's that a rule cannot take
                step = add_place(error, node)
            if type(step) is int:
                s.push(step, self._child(node, step))
                signal = ENTER
            elif step is PAUSE:
                s.outcome = PAUSE
                return None
            elif isinstance(step, Signal | Exception):
                s.pop()
                signal = step
            else:
                return cast("Run | Call | Test | Fork | Emit", step)
        s.outcome = OK if signal is ENTER else signal  # it had ended before a restart
        return None

    async def drive(self, s: Strand) -> AsyncGenerator[Commit[E], None]:
        """Run one strand to its end, yielding what it commits."""
        signal: Any = ENTER
        moved = False
        while (todo := self._advance(s, signal)) is not None:
            if s.cancelled or s.overdue:
                await _give_up(s)
            if moved:
                await self.stepped()
            moved = not isinstance(todo, Call | Test)  # these commit nothing
            node = s.nodes[-1]
            if isinstance(todo, Run):
                ending = Ending(s, node, s.frames[-1])
                async with aclosing(self._run_leaf(s, node, s.frames[-1], ending)) as commits:
                    async for commit in commits:
                        yield commit
                signal = ending.signal
                if signal is PAUSE:
                    s.outcome = PAUSE
                    return
            elif isinstance(todo, Emit):
                if s.scope is not None:
                    s.scope.data["t"] = 1
                yield Commit(None, make=partial(self._make, s, node, todo), after=todo.committed)
                signal = Signal.EMITTED
            elif isinstance(todo, Fork):
                try:
                    fork = ForkRun(self, s, node, s.frames[-1])
                except Exception as error:  # noqa: BLE001  # passed up as the step's failure
                    signal = add_place(error, node)
                    continue
                async with aclosing(fork.run()) as commits:
                    async for commit in commits:
                        yield commit
                signal = fork.joined
            else:
                signal = await self._call(s, node, todo)

    def _make(self, s: Strand, node: Node, todo: Emit) -> E | None:
        delta = todo.delta()
        return None if todo.optional and not delta else self.leaf.write(node, s, delta, todo.note)

    async def _call(self, s: Strand, node: Node, todo: Call | Test) -> Any:
        """Call a user's function or predicate."""
        try:
            if isinstance(todo, Call):
                value = self.leaf.call(node, todo.fn, s, StateView(s.state))
                if type(value) is not dict and inspect.isawaitable(value):
                    value = await value
                return Returned(value)
            return Signal.TRUE if await self._test(s, node, todo.predicate) else Signal.FALSE
        except asyncio.CancelledError as error:
            return _cancelled_inside(error, node)
        except Exception as error:  # noqa: BLE001  # passed up as the step's failure
            return _failure(error, node)

    async def _test(self, s: Strand, node: Node, predicate: Predicate) -> bool:
        if isinstance(predicate, Match):
            return matches(predicate, s.state)
        value = self.leaf.call(node, predicate, s, StateView(s.state))
        if inspect.isawaitable(value):
            value = await value
        return bool(value)

    async def _run_leaf(
        self, s: Strand, node: Node, frame: Frame, ending: Ending
    ) -> AsyncGenerator[Commit[E], None]:
        leaf, answers = self.leaf, self.answers
        waits: dict[str, Any] = frame.get("waits", {})
        open_calls = {call: asked for call, asked in waits.items() if call not in answers}
        if open_calls:
            self._wait(node, open_calls)
            ending.signal = PAUSE
            return
        try:
            async with aclosing(
                leaf.run(node, s, {call: answers[call] for call in waits})
            ) as events:
                async for event in events:
                    facts = leaf.facts(event)
                    if facts is not None:
                        if facts.partial and s.muted:
                            continue
                        ending.take(facts)
                    if s.scope is not None:
                        s.scope.data["t"] = 1
                        if s.scope.listens and (text := leaf.text(event)):
                            s.scope.say(s.path, text)
                    delta = None if facts is None or facts.partial else facts.delta
                    yield Commit(event, s.scope, delta)
        except asyncio.CancelledError as error:
            ending.signal = _cancelled_inside(error, node)
        except Exception as error:  # noqa: BLE001  # passed up as the step's failure
            ending.signal = _failure(error, node)
        ending.end()
        if ending.signal is PAUSE:
            self._wait(node, ending.waits)

    def _wait(self, node: Node, calls: Mapping[str, str]) -> None:
        self.pending.update(
            {call: {"node": node.name, "asked": asked} for call, asked in calls.items()}
        )

    async def stepped(self) -> None:
        """Tell whoever wants to know that the position has changed."""
        if self._on_step is not None:
            await self._on_step(self.position)

    # --- finding one's way ---------------------------------------------------------------------

    def scopes(self, frame: Frame) -> dict[int, Scope]:
        """The scopes of a fork's children, in declared order."""
        ids: dict[str, str] = frame["scopes"]
        found = {int(index): self.log.open.get(id) for index, id in ids.items()}
        return {index: scope for index, scope in sorted(found.items()) if scope is not None}

    def strand(self, id: str, root: Node, *, parent: Strand | None, **kwargs: Any) -> Strand:
        """A strand from the journal: its nodes by following positions, its scopes opened again."""
        frames: list[Frame] = self.position["strands"][id]
        nodes = [root]
        for frame in frames[1:]:
            nodes.append(self._child(nodes[-1], frame["c"]))
        s = Strand(id, frames, nodes, self.leaf.state, parent=parent, **kwargs)
        for frame in frames:
            if (scope := frame.get("scope")) is not None:
                s.scope = self.log.enter(scope, s.scope, s.isolation)
        return s

    def _child(self, node: Node, index: int) -> Node:
        if not isinstance(node, TransferNode):
            return node.children[index]
        if self._targets is None:
            self._targets = Targets(self.root)
        return self._targets.of(node)

    def new_id(self) -> str:
        number = self.position["next"]
        self.position["next"] = number + 1
        return str(number)


def _failure(error: Exception, node: Node) -> Exception:
    """The failure of a step, with its place; its type stays where a generator can raise it."""
    if isinstance(error, StopIteration | StopAsyncIteration):
        return left_by(error, node)
    return add_place(error, node)


def _cancelled_inside(error: asyncio.CancelledError, node: Node) -> Exception:
    """The failure of a step that something of its own cancelled; cancelling us is no failure."""
    task = asyncio.current_task()
    if task is None or task.cancelling():
        raise error
    failure = RunError(
        f"{node.name} was cancelled from inside",
        node=node,
        help="something that it waited for was cancelled; look at its cause",
    )
    failure.__cause__ = error
    return failure


async def _give_up(s: Strand) -> None:
    """Go no further: a step swallowed that it was cancelled, or let no timer strike."""
    if not s.cancelled:
        await asyncio.get_running_loop().create_future()  # the timeout cancels this
    raise asyncio.CancelledError


def _chained(errors: list[Exception]) -> Exception:
    """The last error, with each one before it as the context of the next."""
    for earlier, later in pairwise(errors):
        known = {id(each) for each in _contexts(earlier)}  # one raised twice must make no ring
        own = [each for each in _contexts(later) if id(each) not in known]
        if own:
            own[-1].__context__ = earlier
    return errors[-1]


def _raise(error: Exception) -> NoReturn:
    """Raise an error with its own chain, also while the caller handles another one."""
    before = error.__context__
    try:
        raise error
    finally:
        error.__context__ = before or error.__context__


def _contexts(error: BaseException) -> list[BaseException]:
    found: dict[int, BaseException] = {}
    here: BaseException | None = error
    while here is not None and id(here) not in found:
        found[id(here)] = here
        here = here.__context__
    return list(found.values())

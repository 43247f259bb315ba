"""The engine: drives strands through an IR, performs what the rules ask for, commits events.

Strand 0 runs in whoever drives `Engine.run`; every other strand runs from start to end in one task
of its own and hands its events, one at a time, to the main strand, which yields them. An event
counts as committed when the consumer asks for the next one.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from functools import partial
from types import MappingProxyType
from typing import Any, Generic, cast

from adk_fluent.errors import AgentReportedError, BuildError, StepTimeoutError, UsageError, add_place
from adk_fluent.flow._fork import Commit, Parcel, Running, settled
from adk_fluent.flow._functions import matches
from adk_fluent.flow._log import Isolation, Scope, UndoLog, differs
from adk_fluent.flow._port import E, Leaf
from adk_fluent.flow._steps import (
    ENTER,
    ESCALATE,
    OK,
    PAUSE,
    RULES,
    STOP,
    Call,
    Emit,
    Fork,
    Joined,
    Returned,
    Run,
    Signal,
    Test,
    leaf_rule,
)
from adk_fluent.flow._strand import POSITIONS, Frame, Strand
from adk_fluent.ir import (
    FallbackNode,
    LoopNode,
    MapOverNode,
    Match,
    Node,
    ParallelNode,
    Predicate,
    RaceNode,
    TimeoutNode,
    TransferNode,
    walk,
)
from adk_fluent.protocol._answer import compose_answer

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
        discarded: Scopes whose events no longer count.
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
        self.position = new_position() if position is None else position
        self.answers: Mapping[str, Any] = answers or {}
        self.outcome: Signal | None = None
        self.pending: dict[str, dict[str, Any]] = {}
        self.log = UndoLog(self.position, leaf.state)
        self.discarded: set[str] = set(self.position.get("discarded", ()))
        self._on_step = on_step
        self._queue: asyncio.Queue[Parcel[E] | None] = asyncio.Queue()
        self._errors: dict[int, list[Exception]] = {}
        self._targets: dict[str, Node] | None = None

    async def run(self) -> AsyncGenerator[E, None]:
        """Run to the end, to a pause or to an error, yielding events as they happen.

        Raises:
            Exception: Whatever a leaf or function raised, with its own type, its place added as a
                note.
        """
        main = self._restore("0", self.root, parent=None)
        async with aclosing(self._drive(main)) as commits:
            async for commit in commits:
                event = commit.event if commit.make is None else commit.make()
                if event is not None:
                    yield event
                if commit.after is not None:
                    commit.after()
                elif commit.scope is not None and commit.delta:
                    self.log.record(commit.scope, commit.delta)
        if isinstance(main.outcome, Exception):
            raise main.outcome
        self.outcome = main.outcome

    # --- what rules may do ---------------------------------------------------------------------

    def recorder(self, strand: Strand, delta: Mapping[str, Any]) -> Callable[[], None]:
        """What logs a write of the strand once it is committed."""
        scope = strand.scope
        return _nothing if scope is None else lambda: self.log.record(scope, delta)

    def open_scope(self, strand: Strand, frame: Frame) -> None:
        """From here on, what the strand does can be discarded."""
        frame["scope"] = self._new_id()
        strand.scope = self.log.enter(frame["scope"], strand.scope, strand.isolation)

    def close_scope(self, strand: Strand, frame: Frame) -> None:
        """What the strand did since then stays."""
        scope = self.log.open[frame.pop("scope")]
        strand.scope = scope.parent
        self.log.settle(scope)

    def discard(self, scopes: list[Scope]) -> None:
        """These scopes never happened; their writes are already compensated."""
        ids = [scope.id for scope in scopes]
        self.discarded.update(ids)
        self.position.setdefault("discarded", []).extend(ids)
        self.log.discard(scopes)

    def remember(self, frame: Frame, error: Exception) -> None:
        """Keep an error of an attempt or branch; after a restart only its text is known."""
        frame.setdefault("errors", []).append(f"{type(error).__name__}: {error}")
        self._errors.setdefault(id(frame), []).append(error)

    def recall(self, frame: Frame) -> Exception:
        """The last remembered error, those before it chained as its context."""
        live = self._errors.pop(id(frame), [])
        texts: list[str] = frame["errors"]
        lost = texts[: len(texts) - len(live)]
        errors = [AgentReportedError(text, error_code="RESTARTED") for text in lost] + live
        for earlier, later in zip(errors, errors[1:], strict=False):
            innermost: BaseException = later
            while innermost.__context__ is not None and innermost.__context__ is not earlier:
                innermost = innermost.__context__
            if innermost is not earlier:
                innermost.__context__ = earlier
        return errors[-1]

    def join(self, strand: Strand, frame: Frame, node: Node) -> Join:
        """What puts the writes of branches in declared order when they meet."""
        return Join(self, strand, frame, node)

    def settle_race(
        self, strand: Strand, frame: Frame
    ) -> tuple[list[Scope], Callable[[], None]]:
        """The losers of a race, and what follows when they are undone."""
        scopes = self.scopes(frame)
        winner = scopes.get(frame.get("won", -1))
        losers = [scope for scope in scopes.values() if scope is not winner]

        def committed() -> None:
            self.discard(losers)
            if winner is None:
                return
            if strand.isolation is not None:
                final = winner.final()
                strand.isolation.writes.update({key: entry[1] for key, entry in final.items()})
            self.log.settle(winner)

        return losers, committed

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
        s.outcome = signal
        return None

    async def _drive(self, s: Strand) -> AsyncGenerator[Commit[E], None]:
        """Run one strand to its end, yielding what it commits."""
        signal: Any = ENTER
        begun = False
        while (todo := self._advance(s, signal)) is not None:
            if begun and self._on_step is not None:
                await self._on_step(self.position)
            begun = True
            node = s.nodes[-1]
            if isinstance(todo, Run):
                ended = _Ended()
                async with aclosing(self._run_leaf(s, node, s.frames[-1], ended)) as commits:
                    async for commit in commits:
                        yield commit
                signal = ended.signal
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
                    running = self._fork(s, node, s.frames[-1])
                except Exception as error:  # noqa: BLE001  # passed up as the step's failure
                    signal = add_place(error, node)
                    continue
                async with aclosing(self._run_fork(s, running)) as commits:
                    async for commit in commits:
                        yield commit
                signal = running.joined
            else:
                signal = await self._call(s, node, todo)

    def _make(self, s: Strand, node: Node, todo: Emit) -> E | None:
        delta = todo.delta()
        return None if todo.optional and not delta else self.leaf.write(node, s, delta, todo.note)

    async def _call(self, s: Strand, node: Node, todo: Call | Test) -> Any:
        """Call a user's function or predicate."""
        try:
            if isinstance(todo, Call):
                value = self.leaf.call(node, todo.fn, s, MappingProxyType(_mapping(s.state)))
                if type(value) is not dict and inspect.isawaitable(value):
                    value = await value
                return Returned(value)
            return Signal.TRUE if await self._test(s, node, todo.predicate) else Signal.FALSE
        except Exception as error:  # noqa: BLE001  # passed up as the step's failure
            return add_place(error, node)

    async def _test(self, s: Strand, node: Node, predicate: Predicate) -> bool:
        if isinstance(predicate, Match):
            return matches(predicate, s.state)
        value = self.leaf.call(node, predicate, s, MappingProxyType(_mapping(s.state)))
        if inspect.isawaitable(value):
            value = await value
        return bool(value)

    async def _run_leaf(
        self, s: Strand, node: Node, frame: Frame, ended: _Ended
    ) -> AsyncGenerator[Commit[E], None]:
        leaf, answers = self.leaf, self.answers
        waits: dict[str, Any] = frame.get("waits", {})
        open_calls = {call: asked for call, asked in waits.items() if call not in answers}
        if open_calls:
            self._wait(node, open_calls)
            ended.signal = PAUSE
            return
        signal: Any = OK
        waiting: dict[str, str] = {}
        try:
            async with aclosing(
                leaf.run(node, s, {call: answers[call] for call in waits})
            ) as events:
                async for event in events:
                    facts = leaf.facts(event)
                    delta = None
                    if facts is not None:
                        if facts.partial and s.muted:
                            continue
                        delta = facts.delta
                        if facts.escalate and s.inside(LoopNode):
                            signal = ESCALATE
                        if facts.stop:
                            signal = STOP
                        if facts.waits:
                            waiting.update(facts.waits)
                        if facts.error and s.inside(FallbackNode, RaceNode):
                            signal = _reported(node, facts.error)
                    if s.scope is not None:
                        s.scope.data["t"] = 1
                    if s.texts is not None and (text := leaf.text(event)):
                        s.texts.append((s.path, text))
                    yield Commit(event, s.scope, delta)
        except Exception as error:  # noqa: BLE001  # passed up as the step's failure
            signal = add_place(error, node)
        if waiting and not isinstance(signal, Exception):
            frame["waits"] = waiting
            self._wait(node, waiting)
            signal = PAUSE
        else:
            frame.pop("waits", None)
        ended.signal = signal

    def _wait(self, node: Node, calls: Mapping[str, str]) -> None:
        self.pending.update(
            {call: {"node": node.name, "asked": asked} for call, asked in calls.items()}
        )

    # --- forks ---------------------------------------------------------------------------------

    def _fork(self, s: Strand, node: Node, frame: Frame) -> Running[E]:
        for key in ("strands", "scopes", "done"):
            frame.setdefault(key, {})
        if isinstance(node, MapOverNode):
            frame.setdefault("results", {})
            if "items" not in frame:
                frame["items"] = _items(node, s.state)
        running = Running[E](node, frame, self._plan(s, node, frame))
        for index, ended in frame["done"].items():
            running.joined.ended[int(index)] = _outcome(ended)
        return running

    def _plan(self, s: Strand, node: Node, frame: Frame) -> Iterator[tuple[int, Strand]]:
        """The children still to run, made when they start."""
        mapping = isinstance(node, MapOverNode)
        racing = is_race(node)
        kids = node.children
        count = len(frame["items"]) if mapping else len(kids)
        letter = "w" if racing else POSITIONS[type(node)][0]
        names = _segments(node)
        base = (
            self.log.isolate(s.state, s.isolation, frame["scopes"].values())
            if mapping or racing
            else None
        )
        for index in range(count):
            key = str(index)
            if key in frame["done"]:
                if key in frame["scopes"]:  # ended before a restart: its writes are still to join
                    self.log.enter(frame["scopes"][key], s.scope, None)
                continue
            isolation = s.isolation
            if base is not None:
                fixed = {node.item_key: frame["items"][index]} if mapping else {}
                isolation = Isolation(base, fixed)
            id, scope_id = frame["strands"].get(key), frame["scopes"].get(key)
            if id is None or scope_id is None:
                id, scope_id = self._new_id(), self._new_id()
                frame["strands"][key], frame["scopes"][key] = id, scope_id
                self.position["strands"][id] = [{"c": 0 if mapping else index}]
            strand = self._restore(
                id,
                kids[0 if mapping else index],
                parent=s,
                position=f"{letter}{index}",
                segment=names(index),
                scope=self.log.enter(scope_id, s.scope, isolation),
                isolation=isolation,
                muted=s.muted or racing,
            )
            if mapping and node.result_key is None:
                strand.texts = []
            yield index, strand

    async def _run_fork(self, s: Strand, fork: Running[E]) -> AsyncGenerator[Commit[E], None]:
        node = fork.node
        timer: asyncio.TimerHandle | None = None
        limit = node.concurrency if isinstance(node, MapOverNode) else None
        try:
            while (limit is None or len(fork.tasks) < limit) and self._start(fork):
                continue
            if not fork.tasks:
                self._finish(fork)
            if isinstance(node, TimeoutNode):
                loop = asyncio.get_running_loop()
                timer = loop.call_later(node.seconds, self._expire, fork, node)
            if s.parent is not None:
                await fork.over
            while not fork.over.done():
                parcel = await self._queue.get()
                if parcel is None or parcel.dropped:
                    continue
                parcel.taken = True
                try:
                    yield parcel.commit
                finally:
                    parcel.acknowledge()
        finally:
            if timer is not None:
                timer.cancel()
            tasks = list(fork.tasks.values())
            for task in tasks:
                task.cancel()
            await settled(tasks)

    def _start(self, fork: Running[E]) -> bool:
        """Start the next child, if there is one and it is still needed."""
        if fork.over.done() or (planned := next(fork.plan, None)) is None:
            return False
        index, strand = planned
        task = asyncio.get_running_loop().create_task(self._run_child(fork, index, strand))
        fork.tasks[index] = task
        return True

    async def _run_child(self, fork: Running[E], index: int, strand: Strand) -> None:
        try:
            async with aclosing(self._drive(strand)) as commits:
                async for commit in commits:
                    parcel = Parcel(commit)
                    self._queue.put_nowait(parcel)
                    await parcel.delivered()
            outcome = strand.outcome
        except Exception as error:  # noqa: BLE001  # a fault of the engine's own must not hang the fork
            outcome = error
        except BaseException:
            fork.tasks.pop(index, None)
            raise
        fork.tasks.pop(index, None)
        self._ended(fork, index, strand, outcome)

    def _ended(self, fork: Running[E], index: int, strand: Strand, outcome: Any) -> None:
        """Note how a child ended and decide whether the fork goes on."""
        node, frame, joined = fork.node, fork.frame, fork.joined
        joined.ended[index] = outcome
        if outcome is not PAUSE:
            self._forget(frame, index, strand, outcome)
            if isinstance(node, MapOverNode) and not isinstance(outcome, Exception):
                frame["results"][str(index)] = _result(node, strand)
        if fork.over.done():
            return
        if isinstance(outcome, Exception):
            if not is_race(node):
                joined.error = _at_item(node, index, outcome)
                self._finish(fork)
                return
        elif outcome is STOP or (outcome is not PAUSE and is_race(node)):
            joined.winner = index if is_race(node) else None
            self._finish(fork)
            return
        if not self._start(fork) and not fork.tasks:
            self._finish(fork)

    def _forget(self, frame: Frame, index: int, strand: Strand, outcome: Any) -> None:
        self.position["strands"].pop(strand.id, None)
        frame["strands"].pop(str(index), None)
        failed = isinstance(outcome, Exception)
        frame["done"][str(index)] = f"!{outcome!r}" if failed else outcome.value

    def _expire(self, fork: Running[E], node: TimeoutNode) -> None:
        if not fork.over.done():
            fork.joined.error = StepTimeoutError(
                f"{node.name}: no result within {node.seconds:g} s",
                seconds=node.seconds,
                node=node,
                help="allow more time, or look at what was slow",
            )
            self._finish(fork)

    def _finish(self, fork: Running[E]) -> None:
        if fork.finish():
            self._queue.put_nowait(None)  # wakes the main strand if it waits

    def scopes(self, frame: Frame) -> dict[int, Scope]:
        """The scopes of a fork's children, in declared order."""
        ids: dict[str, str] = frame["scopes"]
        found = {int(index): self.log.open.get(id) for index, id in ids.items()}
        return {index: scope for index, scope in sorted(found.items()) if scope is not None}

    # --- finding one's way ---------------------------------------------------------------------

    def _restore(self, id: str, root: Node, *, parent: Strand | None, **kwargs: Any) -> Strand:
        """A strand from the journal: its nodes by following positions, its scopes opened again."""
        frames: list[Frame] = self.position["strands"][id]
        nodes = [root]
        for frame in frames[1:]:
            nodes.append(self._child(nodes[-1], frame["c"]))
        s = Strand(id, frames, nodes, self.leaf.state, parent=parent, **kwargs)
        if parent is not None:
            s.texts = parent.texts
        if s.scope is not None:
            self.log.replay(s.scope)
        for frame in frames:
            if (scope := frame.get("scope")) is not None:
                s.scope = self.log.enter(scope, s.scope, s.isolation)
                self.log.replay(s.scope)
        return s

    def _child(self, node: Node, index: int) -> Node:
        if not isinstance(node, TransferNode):
            return node.children[index]
        if self._targets is None:
            self._targets = {}
            for other in walk(self.root):
                self._targets.setdefault(other.name, other)
        target = self._targets.get(node.target)
        if target is None:
            raise BuildError(
                f"transfer to {node.target!r}, which is not part of this pipeline",
                node=node,
                help="name an agent of the same pipeline",
            )
        return target

    def _new_id(self) -> str:
        number = self.position["next"]
        self.position["next"] = number + 1
        return str(number)


class Join:
    """The end of a parallel or map: what its branches wrote counts in declared order.

    `delta` is what must still be written for that, `committed` closes the branches' scopes.
    """

    def __init__(self, engine: Engine[Any], strand: Strand, frame: Frame, node: Node) -> None:
        self.engine = engine
        self.strand = strand
        self.frame = frame
        self.node = node
        self.final: dict[str, Any] = {}
        self.written: dict[str, Any] = {}

    def delta(self) -> dict[str, Any]:
        """The write that restores declared order, and the results of a map; {} after a failure."""
        if self.frame.get("errors"):
            return {}
        newest: dict[str, int] = {}
        order: dict[str, int] = {}
        for scope in self.engine.scopes(self.frame).values():
            for key, (seq, value) in scope.final().items():
                self.final[key], order[key] = value, seq
                newest[key] = max(seq, newest.get(key, 0))
        state = self.engine.leaf.state
        self.written = {
            key: value
            for key, value in self.final.items()
            if order[key] != newest[key] and differs(state.get(key), value)
        }
        if isinstance(self.node, MapOverNode):
            results, count = self.frame["results"], len(self.frame["items"])
            self.written[self.node.output_key] = [results.get(str(i)) for i in range(count)]
        return self.written

    def committed(self) -> None:
        """What the branches wrote is now the strand's own."""
        log, strand = self.engine.log, self.strand
        for scope in self.engine.scopes(self.frame).values():
            log.settle(scope)
        if strand.isolation is not None:
            strand.isolation.writes.update(self.final)
        if strand.scope is not None and self.written:
            log.record(strand.scope, self.written)


class _Ended:
    """How a leaf ended; filled by the generator that ran it."""

    __slots__ = ("signal",)

    def __init__(self) -> None:
        self.signal: Any = OK


def is_race(node: Node) -> bool:
    """Whether only the first branch to succeed counts."""
    return isinstance(node, RaceNode) or (
        isinstance(node, ParallelNode) and node.merge == "first_complete"
    )


def _nothing() -> None:
    """What a write outside every scope leads to."""


def _mapping(state: Mapping[str, Any]) -> Any:
    return state


def _reported(node: Node, error: str) -> AgentReportedError:
    code, _, message = error.partition(": ")
    return AgentReportedError(
        f"{node.name} reported an error: {error}",
        error_code=code,
        error_message=message,
        node=node,
    )


def _items(node: MapOverNode, state: Mapping[str, Any]) -> list[Any]:
    value: Any = state.get(node.list_key)
    if value is None:
        return []
    if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
        raise UsageError(
            f"map_over {node.name!r} needs a list under {node.list_key!r}",
            node=node,
            found=f"a {type(value).__name__}",
            help="write a list to that key before this step",
        )
    return list(cast("Iterable[Any]", value))


def _result(node: MapOverNode, strand: Strand) -> Any:
    if node.result_key is not None:
        return strand.state.get(node.result_key)
    return compose_answer(strand.texts or ())


def _segments(node: Node) -> Callable[[int], str]:
    """Branch names of a fork's children, each different from its siblings'."""
    kids = node.children
    if isinstance(node, TimeoutNode):
        return lambda index: ""
    if isinstance(node, MapOverNode):
        return lambda index: f"{node.name}.{kids[0].name}[{index}]"
    names = [kid.name for kid in kids]
    twice = {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else set[str]()
    return lambda index: f"{node.name}.{names[index]}" + (f"[{index}]" if names[index] in twice else "")


def _at_item(node: Node, index: int, error: Exception) -> Exception:
    if isinstance(node, MapOverNode):
        note = f"in item {index} of map_over {node.name!r}"
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
    return error


def _outcome(value: str) -> Any:
    if value.startswith("!"):
        return AgentReportedError(value[1:], error_code="RESTARTED")
    return Signal(value)


__all__ = ["Engine", "Joined", "Position", "new_position"]

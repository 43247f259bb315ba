"""A fork while it runs: its children's tasks, and the rules by which it ends.

A child runs from start to end in one task. It hands its events to the main strand through the
engine's one queue, one at a time, whatever the nesting, and waits until each is committed.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from contextvars import copy_context
from math import inf
from typing import TYPE_CHECKING, Any, Generic, cast

from adk_fluent._words import describe
from adk_fluent.errors import AgentReportedError, RunError, StepTimeoutError, UsageError
from adk_fluent.flow._commit import Commit, settled
from adk_fluent.flow._failures import left_by, tell_left_out
from adk_fluent.flow._log import Isolation
from adk_fluent.flow._port import E
from adk_fluent.flow._position import new_id
from adk_fluent.flow._signals import PAUSE, STOP, Joined, Signal
from adk_fluent.flow._strand import POSITIONS, Frame, Strand, is_race
from adk_fluent.ir import MapOverNode, Node, TimeoutNode
from adk_fluent.protocol import compose_value

if TYPE_CHECKING:
    from adk_fluent.flow._run_state import RunState


class ForkRun(Generic[E]):
    """One execution of a parallel, race, map or timeout.

    The frame keeps, by child index: ``strands`` and ``scopes`` (ids), ``done`` (how ended children
    ended), for a map ``items`` and ``results``, for a timeout ``spent`` (seconds before it paused).

    Attributes:
        result: How it ends; the signal for the forking node's rule.
        expired: What ended it is its own timeout.
    """

    def __init__(self, run_state: RunState[E], strand: Strand, node: Node, frame: Frame) -> None:
        for key in ("strands", "scopes", "done"):
            frame.setdefault(key, {})
        if isinstance(node, MapOverNode):
            frame.setdefault("results", {})
            if "items" not in frame:
                frame["items"] = _items(node, strand.state)
        self.run_state = run_state
        self.strand = strand
        self.node = node
        self.frame = frame
        self.racing = is_race(node)
        self._survives = isinstance(node, MapOverNode) and node.on_error != "raise"
        self.expired = False
        self.result = Joined({int(i): _outcome(ended) for i, ended in frame["done"].items()})
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._running: dict[int, Strand] = {}
        self._fatal: BaseException | None = None
        self._context = copy_context()  # a branch that starts late starts in the same one
        self._closing = False
        self._deadline = inf
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._plan = self._children()

    async def run(self) -> AsyncGenerator[Commit[E], None]:
        """Run to the end; the main strand's fork also yields what all branches commit."""
        node, over = self.node, self._over
        limit = node.concurrency if isinstance(node, MapOverNode) else None
        timer: asyncio.TimerHandle | asyncio.Task[None] | None = None
        if isinstance(node, TimeoutNode) and not self.run_state.keeps_time:
            now = asyncio.get_running_loop().time()
            self._deadline = now + node.seconds - self.frame.get("spent", 0.0)
        try:
            for index, outcome in self.result.ended.items():
                self._judge(index, outcome)
            while (limit is None or len(self._tasks) < limit) and self._start():
                continue
            if not self._tasks:
                self._finish()
            timer = self._timer(node)
            if self.strand.parent is not None:
                await over
            while not over.done():
                parcel = await self.run_state.queue.get()
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
            await self._close()
        if self._fatal is not None:
            raise self._fatal

    def _timer(self, node: Node) -> asyncio.TimerHandle | asyncio.Task[None] | None:
        """What lets a timeout strike."""
        if not isinstance(node, TimeoutNode):
            return None
        loop = asyncio.get_running_loop()
        if self.run_state.keeps_time:
            return loop.create_task(self._expire_in_time(node))
        return loop.call_at(self._deadline, self._expire, node)

    async def _close(self) -> None:
        """Cancel the branches that still run; one that swallows that goes no step further."""
        self._closing = True
        for child in self._running.values():
            child.life.over = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await settled(tasks)
        if self._deadline != inf and PAUSE in self.result.ended.values():
            left = self._deadline - asyncio.get_running_loop().time()
            self.frame["spent"] = round(
                cast("TimeoutNode", self.node).seconds - left, 3
            )  # nobody is timed for waiting
        if self.expired and self.result.error is not None:  # after the steps that it cut off
            self.run_state.failed(self.strand, self.result.error)

    # --- starting children ---------------------------------------------------------------------

    def _children(self) -> Iterator[tuple[int, Strand]]:
        """The children still to run, each made when it starts."""
        run_state, s, node, frame = self.run_state, self.strand, self.node, self.frame
        mapping = isinstance(node, MapOverNode)
        kids = node.children
        letter = "w" if self.racing else POSITIONS[type(node)][0]
        segment = _segments(node)
        base = None
        if mapping or self.racing:  # these work on a snapshot
            base = run_state.log.isolate(s.state, s.isolation, frame["scopes"].values())
        for index in range(len(frame["items"]) if mapping else len(kids)):
            key = str(index)
            if key in frame["done"]:
                continue
            isolation = s.isolation
            if base is not None:
                fixed = {node.item_key: frame["items"][index]} if mapping else {}
                isolation = Isolation(base, fixed)
            if key not in frame["strands"]:
                frame["strands"][key] = new_id(run_state.position)
                if not isinstance(node, TimeoutNode):  # its body is all there is: nothing to join
                    frame["scopes"][key] = new_id(run_state.position)
                start = {"c": 0 if mapping else index}
                run_state.position["strands"][frame["strands"][key]] = [start]
            child = run_state.strand(
                frame["strands"][key],
                kids[0 if mapping else index],
                parent=s,
                position="" if node is run_state.limit else f"{letter}{index}",
                segment=segment(index),
                scope=s.scope
                if key not in frame["scopes"]
                else run_state.log.enter(
                    frame["scopes"][key],
                    s.scope,
                    isolation,
                    listen=mapping and node.result_key is None,
                ),
                isolation=isolation,
                muted=s.muted or self.racing,
                deadline=self._deadline,
            )
            yield index, child

    def _start(self) -> bool:
        """Start the next child, if there is one and it is still needed."""
        if self._over.done() or (planned := next(self._plan, None)) is None:
            return False
        index, child = planned
        run = self._run_child(index, child)
        self._running[index] = child
        self._tasks[index] = asyncio.get_running_loop().create_task(
            run, context=self._context.copy()
        )
        return True

    async def _run_child(self, index: int, child: Strand) -> None:
        try:
            await self._deliver(child)
            outcome = child.outcome
            await self.run_state.branch_over(self.node, child, decides=self._decides(outcome))
            ends_run = isinstance(outcome, Exception) and self.run_state.ends_run(child)
            if outcome is not PAUSE and not ends_run:
                self._note(index, child, outcome)
                await self.run_state.stepped()
                if self.run_state.journals_apart(child):
                    await self._commit(child, self.run_state.checkpoint(child))
        except asyncio.CancelledError as error:
            if self._closing:
                raise
            outcome = RunError("a branch was cancelled by somebody else", node=self.node)
            outcome.__cause__ = error
        except Exception as error:  # noqa: BLE001  # a fault of the engine's own must not hang the fork
            outcome = error
        except GeneratorExit as error:  # a step's own: ours ends in `drive`
            outcome = left_by(error, self.node)
        except (KeyboardInterrupt, SystemExit):  # asyncio ends the loop with these
            raise
        except BaseException as error:  # noqa: BLE001  # raised again where the fork was made
            self._fatal = error
            self._finish()
            return
        finally:
            del self._tasks[index], self._running[index]
        self.result.ended[index] = outcome
        if self._survives and isinstance(outcome, Exception):
            outcome = _at_item(self.node, index, outcome)
            tell_left_out(cast("MapOverNode", self.node), index, outcome)
        self._judge(index, outcome)
        if not self._over.done() and not self._start() and not self._tasks:
            self._finish()

    async def _deliver(self, child: Strand) -> None:
        try:
            async with aclosing(self.run_state.drive(child)) as commits:
                async for commit in commits:
                    await self._commit(child, commit)
        except BaseException as error:
            self.run_state.cut_off(child, error)
            raise

    async def _commit(self, child: Strand, commit: Commit[E]) -> None:
        if child.cancelled:  # nobody is there any more to take it
            raise asyncio.CancelledError
        await self.run_state.hand_in(commit, child.life)

    # --- ending --------------------------------------------------------------------------------

    def _judge(self, index: int, outcome: Any) -> None:
        """Decide whether the end of a child ends the fork."""
        node, joined = self.node, self.result
        failed = isinstance(outcome, Exception)
        if self._over.done() or outcome is PAUSE:
            return
        if failed and self._survives:
            return
        if failed and not self.racing:
            joined.error = _at_item(node, index, outcome)
            self._finish()
        elif not failed and isinstance(node, TimeoutNode) and self._late():
            self._expire(node)  # its functions never waited, so that nobody could tell it before
        elif not failed and (outcome is STOP or self.racing):
            joined.winner = index if self.racing else None
            self._finish()

    def _late(self) -> bool:
        return self._deadline < asyncio.get_running_loop().time()

    def _decides(self, outcome: Any) -> bool:
        """Whether a child that ends so ends the fork."""
        if outcome is PAUSE:
            return False
        failed = isinstance(outcome, Exception) and not self._survives
        return (failed or outcome is STOP) != self.racing or (outcome is STOP and self.racing)

    def _note(self, index: int, child: Strand, outcome: Any) -> None:
        key, node, frame = str(index), self.node, self.frame
        del self.run_state.position["strands"][child.id]
        del frame["strands"][key]
        if isinstance(outcome, Exception):
            frame["done"][key] = f"!{type(outcome).__name__}: {outcome}"
            return
        frame["done"][key] = outcome.value
        if not isinstance(node, MapOverNode) or child.isolation is None or child.scope is None:
            return
        # what an item did not write is not its result, even if the key is set
        frame["results"][key] = (
            compose_value(
                (path.removeprefix(child.start).removeprefix("."), said)
                for path, said in child.scope.said
            )
            if node.result_key is None
            else child.isolation.writes.get(node.result_key)
        )

    async def _expire_in_time(self, node: TimeoutNode) -> None:
        await self.run_state.time_is_up(node, self.strand)
        self._expire(node)

    def _expire(self, node: TimeoutNode) -> None:
        if not self._over.done():
            self.expired = True
            self.run_state.note_expired(node, self.strand)
            self.result.error = StepTimeoutError(
                f"{node.name}: no result within {node.seconds:g} s",
                seconds=node.seconds,
                node=node,
                help="allow more time, or look at what was slow",
            )
            self._finish()

    def _finish(self) -> None:
        if not self._over.done():
            self._over.set_result(None)
            self.run_state.queue.put_nowait(None)  # wakes the main strand if it waits


def _items(node: MapOverNode, state: Mapping[str, Any]) -> list[Any]:
    value: Any = state.get(node.list_key)
    if value is None:
        return []
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | dict):
        raise UsageError(
            f"map_over {node.name!r} needs a list under {node.list_key!r}",
            node=node,
            found=describe(value),
            help="write a list to that key before this step",
        )
    return list(cast("Iterable[Any]", value))


def _segments(node: Node) -> Callable[[int], str]:
    """Branch names of a fork's children, each different from its siblings'."""
    names = [kid.name for kid in node.children]
    if isinstance(node, TimeoutNode):
        return lambda _: ""
    if isinstance(node, MapOverNode):
        return lambda index: f"{node.name}.{names[0]}[{index}]"
    counts = Counter(names)

    def segment(index: int) -> str:
        name = names[index]
        return f"{node.name}.{name}" if counts[name] == 1 else f"{node.name}.{name}[{index}]"

    return segment


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

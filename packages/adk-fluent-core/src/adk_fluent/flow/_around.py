"""Steps that hooks stand around: they act before a step, after it, or in its place.

The hooks of a step are one coroutine, and what they call to go on runs the step in the same task,
as a strand of its own. So whatever they do to a coroutine (a time limit, a context variable, a
second try) they do to the step.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol

from adk_fluent.errors import RunError, UsageError
from adk_fluent.flow._commit import Commit, settled
from adk_fluent.flow._failures import failure, left_by, raise_error
from adk_fluent.flow._port import E, Note
from adk_fluent.flow._position import ENDED, INSIDE, new_id
from adk_fluent.flow._signals import OK, PAUSE, Ended, Signal
from adk_fluent.flow._strand import Heard, Life
from adk_fluent.ir import LoopNode
from adk_fluent.protocol._calls import AgentReply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from adk_fluent.flow._run_state import RunState
    from adk_fluent.flow._strand import Frame, Strand
    from adk_fluent.ir import Node

_REPLY: Final = "reply"  # the text, the keys that were written, and whether hooks have answered
_DEEP: Final = 16  # steps inside each other in one task; Python's stack has an end


class Around(Protocol):
    """Stands around steps.

    Attributes:
        has_steps: Whether there is anything around any step: `encloses`.
    """

    has_steps: bool

    def encloses(self, node: Node) -> bool:
        """Whether there is anything around a step."""
        ...

    async def call(self, step: Enclosed[Any]) -> AgentReply:
        """Do what is around a step, and in the middle of it the step: `Enclosed.go_on`."""
        ...

    def ended(self, *, paused: bool) -> None:
        """Take note that the run has come to its end, or waits for an answer."""


class Enclosed(Generic[E]):
    """One execution of a step and of what stands around it.

    Args:
        run_state: The run it is part of.
        strand: Stands at the step.
        around: What stands around it.

    Attributes:
        node: The step.
        strand: Stands at the step.
        resumed: It was begun before the run was interrupted.
        signal: How it ended; an exception if it failed.
    """

    def __init__(self, run_state: RunState[E], strand: Strand, around: Around) -> None:
        self.node: Node = strand.nodes[-1]
        self.strand: Strand = strand
        self.signal: Signal | Exception = OK
        self._run_state = run_state
        self._around = around
        self._frame: Frame = strand.frames[-1]
        self.resumed: bool = INSIDE in self._frame or ENDED in self._frame
        self._reply: AgentReply | None = None
        self._failure: Exception | None = None
        self._life: Life = strand.life
        self._begun = False
        self._over = False
        self._driver: asyncio.Task[Any] | None = None

    @property
    def result(self) -> Ended:
        """The signal that ends it."""
        return Ended(self.signal)

    @property
    def iteration(self) -> int:
        """The iteration of the nearest loop around it, from 0."""
        return iteration_at(self.strand)

    async def run(self) -> AsyncGenerator[Commit[E], None]:
        """Run it; where it stands in the main strand, yield what all inside it commits."""
        strand, queue = self.strand, self._run_state.queue
        if strand.parent is not None and (strand.depth == 0 or strand.depth % _DEEP):
            await self._call()
            return
        self._life = Life()
        task = asyncio.get_running_loop().create_task(self._call_apart())
        if strand.parent is None:
            task.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            if strand.parent is not None:
                await asyncio.wait([task])
            while not task.done():
                parcel = await queue.get()
                if parcel is None or parcel.dropped:
                    continue
                parcel.taken = True
                try:
                    yield parcel.commit
                finally:
                    parcel.acknowledge()
        finally:
            self._life.over = True
            task.cancel()
            await settled([task])
        if (stopped := task.result()) is not None:
            raise stopped

    # --- what hooks may do ---------------------------------------------------------------------

    @property
    def is_settled(self) -> bool:
        """Whether what it amounts to was put out before the run was interrupted."""
        return ENDED in self._frame and self._reply is None and self._frame[_REPLY][2]

    async def go_on(self) -> AgentReply:
        """Run the step itself; a second time, from its beginning.

        Returns:
            What it said and wrote, or that it waits.

        Raises:
            UsageError: It is still running, or what is around it has come to its end.
            Exception: What the step raised.
        """
        if self._over or self._driver is not None:
            what = "its hooks have come to their end" if self._over else "it is still running"
            raise UsageError(
                f"{self.node.name} cannot be run: {what}",
                node=self.node,
                help="await next(call), one after the other, before the hook returns",
            )
        self._driver = asyncio.current_task()
        try:
            return await self._go_on()
        finally:
            self._driver = None

    async def _go_on(self) -> AgentReply:
        if ENDED in self._frame and not self._begun:  # before the run was interrupted
            self._begun = True
            return self.before()
        if self._begun and self.signal is not PAUSE:
            self._failure, self._run_state.failed_at = None, None
            self.signal = OK
            self._drop()
        self._begun = True
        inner = self._strand()
        heard = inner.heard = Heard()
        await self._deliver(inner)
        outcome = inner.outcome
        if isinstance(outcome, Exception):
            self._failure = outcome
            raise_error(outcome)
        self.signal, text = outcome, heard.text
        if outcome is not PAUSE:
            if self.strand.heard is not None:
                self.strand.heard.merge(heard)
            self._drop()
            self._end(text, heard.delta)
        self._reply = AgentReply(text, heard.delta, paused=outcome is PAUSE)
        return self._reply

    def before(self) -> AgentReply:
        """What it said and wrote before the run was interrupted."""
        text, keys, _ = self._frame[_REPLY]
        state = self.strand.state
        self.signal = Signal(self._frame[ENDED])
        self._reply = AgentReply(text, {key: state.get(key) for key in keys})
        return self._reply

    async def settle(self, reply: AgentReply) -> None:
        """Say and write what has been put in the place of what the step did, or besides.

        Args:
            reply: What the step amounts to, as seen from outside.

        Raises:
            UsageError: It waits, and the reply says that it does not, or the other way round.
        """
        await self._end_driver()
        if self._failure is not None:  # somebody made it good
            self._failure, self._run_state.failed_at = None, None
            self.signal, self._reply = OK, None
            self._drop()
        waits = self.signal is PAUSE
        if waits is not reply.paused:
            raise UsageError(
                f"{self.node.name} {'waits for an answer' if waits else 'does not wait'}, "
                "and what a hook returned says something else",
                node=self.node,
                found=f"paused={reply.paused}",
                help="return what next(call) gave, or dataclasses.replace(reply, text=...)",
            )
        done, self._reply = self._reply or AgentReply(), reply
        if waits:
            return
        if reply is not done:
            delta = {
                key: value
                for key, value in reply.state_delta.items()
                if key not in done.state_delta or done.state_delta[key] is not value
            }
            text = reply.text if reply.text != done.text else ""
            if delta or text:
                note = Note("around", text=text or None)
                made = self._run_state.leaf.write(self.node, self.strand, delta, note)
                await self.put(made, reply)
        self._end(reply.text, reply.state_delta, settled=True)

    async def _end_driver(self) -> None:
        """End what a hook has begun and does not wait for."""
        driver = self._driver
        if driver is not None and driver is not asyncio.current_task():
            driver.cancel()
            await settled([driver])

    def _end(self, text: str, delta: Mapping[str, Any], *, settled: bool = False) -> None:
        """Keep what the step amounts to, for a run that goes on from here."""
        self._frame[ENDED] = self.signal.value if isinstance(self.signal, Signal) else OK.value
        self._frame[_REPLY] = [text, sorted(delta), settled]

    async def put(self, event: E, reply: AgentReply | None = None) -> None:
        """Put out an event of the step's.

        Args:
            event: The event.
            reply: What the step amounts to with it, if it does not do anything more.
        """
        leaf, strand = self._run_state.leaf, self.strand
        self._run_state.keep(strand, self.node, event)
        facts, scope = leaf.facts(event), strand.scope
        if scope is not None:
            scope.data["t"] = 1
            if scope.listens and (said := leaf.answer(event)):
                scope.say(strand.path, said)
        delta = None if facts is None else facts.delta
        commit = Commit(event, scope, delta, strand=strand)
        if reply is not None:  # it is true in the moment the event is committed
            record = partial(self._run_state.log.record, scope, delta) if scope and delta else None
            commit.after = partial(self._settled, reply, record)
        await self._commit(commit)

    def _settled(self, reply: AgentReply, record: Callable[[], None] | None) -> None:
        if record is not None:
            record()
        self._end(reply.text, reply.state_delta, settled=True)

    def answered(self, reply: AgentReply) -> AgentReply:
        """Let what was put out already be what the step amounts to."""
        self._begun, self._reply = True, reply
        return reply

    # --- the step itself -----------------------------------------------------------------------

    async def _call_apart(self) -> BaseException | None:
        """Do it in a task of its own; what would end the event loop there is given back."""
        try:
            await self._call()
        except (KeyboardInterrupt, SystemExit) as stopped:
            return stopped
        return None

    async def _call(self) -> None:
        try:
            await self.settle(await self._around.call(self))
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling() or self._life.over:
                raise
            raised: Exception = RunError(f"{self.node.name} was cancelled from inside its hooks")
            raised.__cause__ = error
        except GeneratorExit as error:
            raised = left_by(error, self.node)
        except Exception as error:  # noqa: BLE001  # passed up as the step's failure
            raised = error
        else:
            return
        finally:
            self._over = True
        await self._end_driver()
        if raised is not self._failure:  # else it was told of where it failed
            raised = self._run_state.failed(self.strand, failure(raised, self.node))
        self.signal = raised

    def _drop(self) -> None:
        self._frame.pop(ENDED, None)
        self._frame.pop(_REPLY, None)
        self._run_state.abandon(self._frame, close=True)

    def _strand(self) -> Strand:
        run_state, above, frame = self._run_state, self.strand, self._frame
        if INSIDE not in frame:
            frame[INSIDE] = new_id(run_state.position)
            run_state.position["strands"][frame[INSIDE]] = [{"c": frame["c"]}]
        return run_state.strand(
            frame[INSIDE],
            self.node,
            parent=above,
            scope=above.scope,
            isolation=above.isolation,
            muted=above.muted,
            within=True,
            life=self._life,
        )

    async def _deliver(self, inner: Strand) -> None:
        try:
            async with aclosing(self._run_state.drive(inner)) as commits:
                async for commit in commits:
                    await self._commit(commit)
        except BaseException as error:
            self._run_state.cut_off(inner, error)
            raise

    async def _commit(self, commit: Commit[E]) -> None:
        if self._life.over:  # nobody is there any more to take it
            raise asyncio.CancelledError
        await self._run_state.hand_in(commit)


# --- where it stands ------------------------------------------------------------------------------


def iteration_at(strand: Strand) -> int:
    """The iteration of the nearest loop around the step where a strand stands, from 0."""
    here, nodes = strand, strand.nodes[:-1]
    while True:
        for at in range(len(nodes) - 1, -1, -1):
            if isinstance(nodes[at], LoopNode):
                return here.frames[at].get("n", 0)
        if here.parent is None:
            return 0
        here = here.parent
        nodes = here.nodes

"""The engine ``dbos``: durable runs, with workers that may die at any moment."""

from __future__ import annotations

import asyncio
import math
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from adk_fluent.distributed._call import SegmentCall, status_of
from adk_fluent.distributed._checkers import memory_of
from adk_fluent.distributed._database import Address, Database, unusable
from adk_fluent.distributed._deploy import is_container_of
from adk_fluent.distributed._engine import EngineCapabilities
from adk_fluent.distributed._errors import BoundaryError, DistributedRunError, EngineError
from adk_fluent.distributed._runs import (
    answering,
    checked_id,
    checked_user,
    error_in,
    failed_run,
    new_id,
    refuse_other,
    unknown_run,
)
from adk_fluent.distributed._segments import node_of
from adk_fluent.errors import UsageError
from adk_fluent.extend import LOG, describe
from adk_fluent.ir import ScalingConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from dbos import DBOSClient, WorkflowStatus

    from adk_fluent.distributed._call import RunStatus
    from adk_fluent.distributed._processes import ProcessIsolation
    from adk_fluent.distributed._runtime import Runtime
    from adk_fluent.distributed._segments import Pipeline, SegmentPlan
    from adk_fluent.distributed._station_adk import Station
    from adk_fluent.distributed._summaries import RunSummary, WorkerSummary
    from adk_fluent.ir import ExecutionConfig, Node
    from adk_fluent.protocol import Answer, RunResult

_LOOK: Final = 1.0  # seconds between two looks at a run, at most; its end here is told
_SOON: Final = 0.002  # seconds between two looks at a run whose end was told
_RARER: Final = 1.25  # how much longer each pause between two looks is than the one before
_CALLS: Final = 8  # calls of a run that are read at once


class DbosEngine:
    """Runs pipelines as durable workflows of DBOS, on a SQLite file or on Postgres.

    `run` runs a pipeline in this process, each segment a durable step. `submit` puts it into the
    queues of its segments, from which workers take it: `serve`, or ``adk-fluent worker``. When a
    process dies, another goes on where the run's session stands.

    Sessions and artifacts are in tables of their own; with SQLite in a file beside that of the
    calls: ``runs.sqlite`` has ``runs.sessions.sqlite``.

    Args:
        url: The database: ``sqlite:///runs.sqlite``, a file that is made if it is not there and
            serves processes of one machine; or ``postgresql://user@host/runs``, for any number.
        config: How pipelines run; None is each pipeline's own configuration. It is refused where
            segments with ``isolation="process"`` are served, which it would not reach.
        concurrency: Calls of one segment that run in this process at the same time, where
            ``ScalingConfig(concurrency=)`` of the segment says nothing.
        lease_seconds: Seconds without a sign of life after which this process counts as dead on
            another machine; on this one, its process is looked for.
        poll_seconds: Seconds between two looks into a queue.
        isolation: How segments with ``isolation="process"`` run here; without it this process
            serves none.
        max_queued: Calls that may wait in a queue before `submit` refuses another run; None is any
            number. Runs that were begun go on in any case.

    Raises:
        EngineError: The url is none of SQLite or Postgres.
        UsageError: A number is not positive.

    Example:
        >>> async with DbosEngine("sqlite:///runs.sqlite") as engine:
        ...     result = await engine.run(pipeline, "Order A1 is broken.", run_id="A1")
    """

    def __init__(
        self,
        url: str,
        *,
        config: ExecutionConfig | None = None,
        concurrency: int = 4,
        lease_seconds: float = 30.0,
        poll_seconds: float = 0.1,
        isolation: ProcessIsolation | None = None,
        max_queued: int | None = None,
    ) -> None:
        self._isolation = isolation
        if max_queued is not None:
            _check_number("max_queued", max_queued, whole=True)
        self._max_queued = max_queued
        _check_number("concurrency", concurrency, whole=True)
        _check_number("lease_seconds", lease_seconds)
        _check_number("poll_seconds", poll_seconds)
        self._address = Address.of(url)
        self._database = Database(self._address)
        self.url: str = self._address.shown
        self._config = config
        self._concurrency = concurrency
        self._lease, self._poll = lease_seconds, poll_seconds
        self._stations: dict[str, Station] = {}
        self._runtime: Runtime | None = None
        self._control: DBOSClient | None = None
        self._launching, self._connecting = asyncio.Lock(), asyncio.Lock()
        self._serving = False

    async def __aenter__(self) -> Self:
        """Return the engine; leaving closes it."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        await self.aclose()

    @property
    def capabilities(self) -> EngineCapabilities:
        """What it can do."""
        return EngineCapabilities(
            durable=True, multi_process=True, enforces_max_instances=True, cancel=True
        )

    def register(self, pipeline: Pipeline | Node) -> SegmentPlan:
        """Take a pipeline that `serve` serves, and return its segments.

        Raises:
            BoundaryError: It cannot be cut, a segment not be hosted, or the engine has another
                pipeline with the same steps.
        """
        return self._station(pipeline).plan

    async def submit(
        self,
        pipeline: Pipeline | Node,
        message: Any,
        *,
        run_id: str | None = None,
        state: Mapping[str, Any] | None = None,
        user_id: str = "user",
    ) -> RunStatus:
        """Put a run into the queue of its first segment; one with this id is not begun again.

        Args:
            pipeline: The pipeline.
            message: What the user says: text, a Part, a Content, or a list of those.
            run_id: The run's id, and that of its session; None makes one.
            state: What the session's state starts with.
            user_id: Whose run it is.

        Raises:
            BoundaryError: The pipeline cannot be cut, or a segment not be hosted.
            DistributedRunError: A run of another pipeline has this id, or too many calls wait in
                the queue; then nothing was begun.
            EngineError: The database cannot be used.
            UsageError: The message or the id is none, or the state cannot cross.
        """
        call = await self._call(pipeline, message, run_id, state, user_id)
        known = await self._last(call.run_id)
        if known is None:
            await self._check_room(call)
            if await self._enqueue(call, whole=False):
                return status_of(call.to_dict(), None)
            known = await self._found(call.run_id)
        return self._known(known, call)

    async def run(
        self,
        pipeline: Pipeline | Node,
        message: Any,
        *,
        run_id: str | None = None,
        state: Mapping[str, Any] | None = None,
        user_id: str = "user",
    ) -> RunResult:
        """Run here until the run ends or waits; arguments and errors as for `submit`.

        A run with this id is not begun again: its result is returned, once it has one. One of `run`
        whose process died goes on here; one of `submit` waits for its workers.

        Returns:
            The events of the whole run, with its answer, state and questions.

        Raises:
            DistributedRunError: A step failed, or the run was cancelled; see `answer`.
            EngineError: The engine was closed meanwhile, or could not reach its database for so
                long that others take it for dead; `run` with the same id goes on.
        """
        call = await self._call(pipeline, message, run_id, state, user_id)
        station = self._stations[call.fingerprint]
        runtime = await self._launched()
        with runtime.waiting(call.run_id) as over:
            found, pause = await self._last(call.run_id), self._poll
            if found is None:
                try:
                    await runtime.begin(call)
                except Exception as error:
                    raise unusable(error, self._address) from error
                pause = _LOOK  # its end is told, unless another process has begun it meanwhile
            while found is None or not self._known(found, call).is_over:
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await over.wait()
                pause = _SOON if over.is_set() else min(_RARER * pause, _LOOK)
                if self._runtime is None or self._runtime.is_lost:
                    lost = self._runtime is not None
                    raise EngineError(
                        f"the engine was closed while run {call.run_id!r} went on",
                        found="it could not tell others in time that it is alive" if lost else None,
                        help="run(...) with the same run_id goes on with it",
                    )
                over.clear()
                found = await self._last(call.run_id, found)
        stands = self._known(found, call)
        if stands.status in ("failed", "cancelled"):
            raise failed_run(stands)
        return await station.recall(call.run_id, user_id, found.notes)

    async def status(self, run_id: str) -> RunStatus:
        """Return how a run stands.

        Raises:
            DistributedRunError: There is no such run.
            EngineError: The database cannot be used.
        """
        return _status(await self._found(run_id))

    async def answer(self, run_id: str, *answers: Answer) -> RunStatus:
        """Answer questions of a run, from any process; workers, or `run`, go on with it.

        Args:
            run_id: The run.
            *answers: Answers, as of ``status.pending[0].answer(True)``. Without one, the step that
                failed is run again.

        Raises:
            DistributedRunError: There is no such run or question, nothing to run again, or
                somebody else has answered in the same moment.
            UsageError: An answer does not fit its question, which stays open.
            EngineError: The database cannot be used.
        """
        found = await self._found(run_id)
        row, stands = found.row, _status(found)
        given = answering(stands, answers)
        call = replace(
            _call_in(row),
            segment=stands.segment,
            number=_call_in(row).number + 1,
            answers=given,
        )
        await self._enqueue(call, whole=row.name == _whole())
        taken = await self._found(run_id)
        now = _call_in(taken.row)
        if now.number == call.number and now.answers != given:
            answering(_status(taken), answers)  # somebody else was faster; this says so
        return _status(taken)

    async def cancel(self, run_id: str) -> RunStatus:
        """End a run: a step that is running is cancelled, and nothing after it runs.

        A run that has ended stays as it is.

        Raises:
            DistributedRunError: There is no such run.
            EngineError: The database cannot be used.
        """
        from adk_fluent.distributed._runtime import workflow_id  # noqa: PLC0415  # imports DBOS

        found = await self._found(run_id)
        row, stands = found.row, _status(found)
        client = await self._client()
        if stands.status in ("waiting", "failed"):  # its last call is over: one more says so
            call = replace(_call_in(row), number=_call_in(row).number + 1, answers={})
            await self._enqueue(call, whole=row.name == _whole(), delay=True)
            await client.cancel_workflow_async(workflow_id(run_id, call.number))
        elif not stands.is_over:
            await client.cancel_workflow_async(row.workflow_id)
        return _status(await self._found(run_id))

    async def serve(
        self,
        segments: Sequence[str] | None = None,
        *,
        ready: Callable[[], object] | None = None,
        drain_seconds: float = 0.0,
    ) -> None:
        """Take calls of registered pipelines from their queues until cancelled.

        Args:
            segments: Names of the segments to serve; None is all of them, and then runs of `run`
                whose process died, too.
            ready: Called once calls are taken.
            drain_seconds: Seconds that calls which run get to come to their ends, once this is
                cancelled; those that still run then are left to other workers.

        Raises:
            BoundaryError: There is no such segment, or it has all the workers it may have.
            EngineError: Nothing is registered, it serves already, the database cannot be used, or
                it could not be reached for so long that others take this worker for dead.
            UsageError: The segments are no names, or `drain_seconds` is no number.
        """
        _check_number("drain_seconds", drain_seconds, least=0.0)
        if not self._stations:
            raise EngineError("there is nothing to serve", help="register(pipeline) before serve()")
        if segments is not None and (isinstance(segments, str) or not segments):
            raise UsageError(
                "serve(...) takes the names of segments",
                found=repr(segments),
                help='such as ["heavy"]; without names it serves all',
            )
        if self._serving:
            raise EngineError("this engine serves already", help="name all segments at once")
        self._serving = True
        try:
            runtime = await self._launched(segments, serving=True)
            if ready is not None:
                ready()
            while not (self._runtime or runtime).is_lost:  # noqa: ASYNC110  # a thread finds out
                await asyncio.sleep(_LOOK)
            drain_seconds = 0.0
            raise EngineError(
                "this worker has ended what it ran",
                found="it could not tell others in time that it is alive",
                help="see that the database can be reached, and start it again; runs go on",
            )
        finally:
            self._serving = False
            await self.aclose(drain_seconds=drain_seconds)

    async def aclose(self, *, drain_seconds: float = 0.0) -> None:
        """Take no more calls in this process; runs go on in others, or when it is opened again.

        Args:
            drain_seconds: Seconds that calls which run get to come to their ends.
        """
        runtime, self._runtime = self._runtime, None
        control, self._control = self._control, None
        with ExitStack() as parts:  # one that fails does not keep the others open
            parts.callback(self._database.close)
            if control is not None:
                parts.callback(control.destroy)
            if runtime is not None:
                parts.callback(runtime.close, drain_seconds)
            close = parts.pop_all().close
        await asyncio.to_thread(close)  # goes on where this is cancelled

    async def runs(self, *, limit: int = 1000, run_id: str | None = None) -> list[RunSummary]:
        """Return the runs whose calls were submitted last, those that changed last first.

        Args:
            limit: How many at most.
            run_id: Only the run with this id.

        Raises:
            EngineError: The database cannot be used.
            UsageError: The limit is no number above 0, or the id is none.
        """
        from adk_fluent.distributed import _overview as overview  # noqa: PLC0415  # imports DBOS

        _check_number("limit", limit, whole=True)
        prefix = None if run_id is None else f"{checked_id(run_id)}#"
        client = await self._client()
        try:
            return await overview.runs_in(client, limit, prefix)
        except Exception as error:
            raise unusable(error, self._address) from error

    async def prune(self, older_than: timedelta, *, dry_run: bool = False) -> list[RunSummary]:
        """Remove runs that are completed, rejected or cancelled, with all that is kept of them.

        That is their calls, transcripts, state and artifacts; state of users and of the app stays.
        A run that waits or failed can go on and stays, too: `cancel` it first. With the id of a run
        that was removed, `submit` and `run` begin another one.

        Args:
            older_than: How long ago they ended, at least.
            dry_run: Remove nothing.

        Returns:
            The runs that were removed, or would be.

        Raises:
            EngineError: The database cannot be used; what was not removed is found again.
            UsageError: It is no time, or a negative one.
        """
        from adk_fluent.distributed import _pruning as pruning  # noqa: PLC0415  # imports DBOS

        if not isinstance(older_than, timedelta) or older_than < timedelta(0):  # pyright: ignore[reportUnnecessaryIsInstance]  # of untyped code
            raise UsageError(
                "prune(...) takes how long ago runs ended",
                found=describe(older_than),
                help="such as timedelta(days=30)",
            )
        before = time.time() - older_than.total_seconds()
        client = await self._client()
        try:
            found = await pruning.ended_before(client, before)
            if not dry_run:
                await pruning.remove(client, self._database, found)
        except Exception as error:
            raise unusable(error, self._address) from error
        return found

    async def workers(self) -> list[WorkerSummary]:
        """Return the workers of the database; one that died is among them until it is noticed.

        Raises:
            EngineError: The database cannot be used.
        """
        from adk_fluent.distributed._workers import Workers  # noqa: PLC0415  # as with `serve`

        return await asyncio.to_thread(Workers(self._database, lease=self._lease).summaries)

    # --- what is served ------------------------------------------------------------------------

    def _station(self, pipeline: Pipeline | Node) -> Station:
        from adk_fluent.distributed import _station_adk as adk  # noqa: PLC0415  # imports ADK

        node = node_of(pipeline)
        for each in self._stations.values():
            if each.source == node:
                return each
        sessions, artifacts = adk.stores(self._database)
        station = adk.Station(node, self._config, sessions, artifacts, url=self._address.url)
        known = self._stations.setdefault(station.plan.fingerprint, station)
        known.refuse_other(station)
        for each in memory_of(node) if known is station else ():
            LOG.warning("a run that goes on in another process begins anew there: %s", each)
        return known

    async def _launched(
        self, segments: Sequence[str] | None = (), *, serving: bool = False
    ) -> Runtime:
        """DBOS with the queues of what is registered.

        Raises:
            BoundaryError: There is no such segment, or it has all the workers it may have.
            EngineError: It cannot be launched.
        """
        from adk_fluent.distributed import _runtime as dbos  # noqa: PLC0415  # imports DBOS

        async with self._launching:
            queues: dict[str, int] = {}
            most: dict[str, int | None] = {}
            for fingerprint, station in self._stations.items():
                names = station.plan.entered if segments is None else tuple(segments)
                for name in names:
                    boundary = station.plan[name].boundary
                    scaling = None if boundary is None else boundary.scaling
                    queue = dbos.queue_of(fingerprint, name)
                    given = (scaling or ScalingConfig()).concurrency
                    queues[queue] = given if scaling is not None else self._concurrency
                    most[queue] = None if scaling is None else scaling.max_instances
                if segments is None or not serving:
                    names = station.plan.names
                    queues[dbos.queue_of(fingerprint, dbos.ALL)] = self._concurrency
                self._check_isolation(station.plan, names)
            runtime = self._runtime
            if runtime is not None and not runtime.is_lost:
                if queues.keys() <= runtime.queues.keys() or not queues:
                    return runtime
                while not runtime.is_idle:  # noqa: ASYNC110  # threads
                    await asyncio.sleep(self._poll)
            if runtime is not None:
                queues = {**runtime.queues, **queues}
                await self.aclose()
            made = await asyncio.to_thread(self._new_runtime)
            launching = asyncio.ensure_future(asyncio.to_thread(made.launch, queues, most))
            try:
                await asyncio.shield(launching)
            except asyncio.CancelledError:  # the thread goes on: nobody else would close it
                await asyncio.wait([launching])
                if launching.exception() is None:
                    await asyncio.to_thread(made.close)
                raise
            self._runtime = made
            return made

    def _check_isolation(self, plan: SegmentPlan, names: Sequence[str]) -> None:
        """Refuse segments that are to be kept apart, where this process does not.

        Raises:
            BoundaryError: There is one.
        """
        for name in names:
            boundary = plan[name].boundary
            asked = "none" if boundary is None else boundary.isolation
            if asked == "process" and self._isolation is None:
                found = "nothing says what its process imports"
                help = (
                    "DbosEngine(..., isolation=ProcessIsolation('path.py:pipeline')), or "
                    "adk-fluent worker"
                )
            elif asked == "process" and self._config is not None:
                found = "config= of the engine, which does not reach the process"
                help = "give the pipeline its configuration: App(...)"
            elif asked == "container" and not (len(names) == 1 and is_container_of(name)):
                found = "this process is not its container"
                help = "`adk-fluent deploy` writes what runs it; submit(...) works everywhere"
            else:
                continue
            raise BoundaryError(
                f"this engine cannot host segment {name!r}",
                found=f"isolation={asked!r}, and {found}",
                help=help,
            )

    def _new_runtime(self) -> Runtime:
        from adk_fluent.distributed._runtime import Runtime  # noqa: PLC0415  # imports DBOS

        return Runtime(
            self._database,
            self._stations,
            lease=self._lease,
            poll=self._poll,
            isolation=self._isolation,
        )

    # --- calls ---------------------------------------------------------------------------------

    async def _call(
        self,
        pipeline: Pipeline | Node,
        message: Any,
        run_id: str | None,
        state: Mapping[str, Any] | None,
        user_id: str,
    ) -> SegmentCall:
        from adk_fluent.distributed import _station_adk as adk  # noqa: PLC0415  # imports ADK

        station = self._station(pipeline)
        plan, given = station.plan, station.state_of(state)
        run_id = new_id() if run_id is None else checked_id(run_id)
        said, names = await station.message_of(message, run_id, checked_user(user_id))
        return SegmentCall(
            run_id,
            plan.first,
            0,
            plan.fingerprint,
            user_id,
            said,
            given,
            trace=adk.trace_now(),
            bytes=names,
        )

    async def _check_room(self, call: SegmentCall) -> None:
        """Refuse a run that would have to wait behind too many others.

        Raises:
            DistributedRunError: It would.
            EngineError: The database cannot be used.
        """
        from adk_fluent.distributed._runtime import options_of  # noqa: PLC0415  # imports DBOS

        if self._max_queued is None:
            return
        client, queue = await self._client(), options_of(call, whole=False)["queue_name"]
        try:
            waiting = await client.list_workflows_async(
                queue_name=queue,
                status="ENQUEUED",
                limit=self._max_queued,
                load_input=False,
                load_output=False,
            )
        except Exception as error:
            raise unusable(error, self._address) from error
        if len(waiting) >= self._max_queued:
            raise DistributedRunError(
                f"run {call.run_id!r} was not begun: the queue of {call.segment!r} is full",
                run_id=call.run_id,
                found=f"{self._max_queued} calls or more wait in it",
                help="submit it again later, or start workers",
            )

    async def _enqueue(self, call: SegmentCall, *, whole: bool, delay: bool = False) -> bool:
        """Put a call into its queue; False where the run has a call of this number already.

        Raises:
            EngineError: The database cannot be used.
        """
        from dbos import error as reasons  # noqa: PLC0415  # slow

        from adk_fluent.distributed._runtime import options_of  # noqa: PLC0415  # imports DBOS

        client, options = await self._client(), options_of(call, whole=whole)
        options["workflow_id_reuse_policy"] = "reject"
        if delay:
            options["delay_seconds"] = 3600.0
        try:
            await client.enqueue_async(options, call.to_dict())
        except reasons.DBOSWorkflowIDInUseError:
            return False
        except Exception as error:
            raise unusable(error, self._address) from error
        return True

    async def _last(self, run_id: str, known: _Found | None = None) -> _Found | None:
        """The last call of a run, its last rest, and the notes of all its calls.

        Calls are found by their ids, one after the other: a search for what ids begin with would
        read the calls of all runs.

        Args:
            run_id: The run.
            known: What was found before; only what came after that is read.
        """
        from adk_fluent.distributed._runtime import number_of, workflow_id  # noqa: PLC0415  # DBOS

        checked_id(run_id)
        client = await self._client()
        rest, notes = (None, {}) if known is None else (known.rest, dict(known.noted))
        number = 0 if known is None else number_of(known.row)
        while True:
            ids = [workflow_id(run_id, at) for at in range(number, number + _CALLS)]
            try:
                rows = await client.list_workflows_async(workflow_ids=ids)
            except Exception as error:
                raise unusable(error, self._address) from error
            for row in sorted(rows, key=number_of):
                result = _result_in(row) if row.status == "SUCCESS" else None
                rest = result if result is not None and result["next"] is None else rest
                notes[number_of(row)] = [] if result is None else result.get("notes", [])
                known = _Found(row, rest, notes)
            if len(rows) < _CALLS:
                return known
            number += _CALLS

    async def _found(self, run_id: str) -> _Found:
        found = await self._last(run_id)
        if found is None:
            raise unknown_run(run_id)
        return found

    def _known(self, found: _Found, call: SegmentCall) -> RunStatus:
        refuse_other(_call_in(found.row), call, self._stations[call.fingerprint].plan)
        return _status(found)

    async def _client(self) -> DBOSClient:
        from adk_fluent.distributed._runtime import new_client  # noqa: PLC0415  # imports DBOS

        async with self._connecting:
            if self._control is None:
                self._control = await asyncio.to_thread(new_client, self._address)
            return self._control


def _whole() -> str:
    from adk_fluent.distributed._runtime import WHOLE  # noqa: PLC0415  # imports DBOS

    return WHOLE


def _call_in(row: WorkflowStatus) -> SegmentCall:
    from adk_fluent.distributed._runtime import call_in  # noqa: PLC0415  # imports DBOS

    return call_in(row)


def _result_in(row: WorkflowStatus) -> dict[str, Any]:
    from adk_fluent.distributed._runtime import result_in  # noqa: PLC0415  # imports DBOS

    return result_in(row)


class _Found(NamedTuple):
    row: WorkflowStatus
    rest: dict[str, Any] | None
    noted: dict[int, list[dict[str, Any]]]  # by number of the call

    @property
    def notes(self) -> list[dict[str, Any]]:
        return [note for each in self.noted.values() for note in each]


def _status(found: _Found) -> RunStatus:
    row, rest = found.row, found.rest
    call = _call_in(row).to_dict()
    match row.status:
        case "SUCCESS":
            result = _result_in(row)
        case "CANCELLED":
            result = {"status": "cancelled"}
        case "ERROR" | "MAX_RECOVERY_ATTEMPTS_EXCEEDED":
            result = {"status": "failed", "error": error_in(row)}
        case _:
            result = None
    return status_of(call, result, rest)


def _check_number(
    name: str, number: Any, *, whole: bool = False, least: float | None = None
) -> None:
    good = isinstance(number, int if whole else (int, float)) and not isinstance(number, bool)
    if not (good and (number > 0 or number == least) and number < math.inf):
        kind = "a whole number" if whole else "a number"
        above = "above 0" if least is None else "that is not negative"
        raise UsageError(f"{name}= is {kind} {above}", found=describe(number))

"""DBOS in this process: the two workflows that run segments, and the signs of life of a worker.

DBOS allows one instance a process; this module is the only one that launches it.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from dbos import DBOS, DBOSClient, SetWorkflowID
from sqlalchemy.exc import SQLAlchemyError

from adk_fluent.distributed._call import SegmentCall, SegmentResult
from adk_fluent.distributed._database import ready_for_dbos, unusable
from adk_fluent.distributed._errors import EngineError
from adk_fluent.distributed._json import JsonSerializer
from adk_fluent.distributed._processes import Processes
from adk_fluent.distributed._workers import Workers
from adk_fluent.extend import LOG, describe

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from dbos import DBOSConfig, EnqueueOptions, WorkflowStatus

    from adk_fluent.distributed._database import Address, Database
    from adk_fluent.distributed._processes import ProcessIsolation
    from adk_fluent.distributed._segments import Segment
    from adk_fluent.distributed._station_adk import Station

APP: Final = "adk_fluent"
#: Version of what calls and results look like; DBOS gives a call to workers of its version alone.
VERSION: Final = "adk-fluent-distributed-1"
SEGMENT: Final = "adk_fluent_segment"
WHOLE: Final = "adk_fluent_run"
#: Stands for all segments of a pipeline in the name of a queue.
ALL: Final = "*"
_WATCH: Final = 0.25  # seconds between two looks at what was cancelled
_REAP: Final = 1.0  # seconds between two looks at who has died
_PATIENCE: Final = 0.7  # the part of a lease after which a worker without signs of life gives up
_RARELY: Final = 10  # looks into the other queues of a worker for one into that of whole runs
_TAKERS: Final = "queue-worker-"  # names of DBOS's threads that look into queues
_PARTING: Final = 10.0  # seconds that one of them gets to end


def queue_of(fingerprint: str, segment: str) -> str:
    """The queue of a segment of a pipeline; pipelines of other steps have others."""
    return f"{fingerprint[:16]}/{segment}"


def _is_rare(queue: str, queues: Mapping[str, int]) -> bool:
    """Whether a worker's queue gets only whole runs whose process died, or that were answered."""
    return queue.endswith(f"/{ALL}") and len(queues) > 1


def workflow_id(run_id: str, number: int) -> str:
    """The id of a call of a run in DBOS."""
    return f"{run_id}#{number:06d}"


def number_of(row: WorkflowStatus) -> int:
    """The number of the call that a row is of."""
    return int(row.workflow_id.rpartition("#")[2])


def options_of(call: SegmentCall, *, whole: bool) -> EnqueueOptions:
    """How a call is put into its queue."""
    return {
        "workflow_name": WHOLE if whole else SEGMENT,
        "workflow_id": workflow_id(call.run_id, call.number),
        "queue_name": queue_of(call.fingerprint, ALL if whole else call.segment),
        "app_version": VERSION,
        "application_name": APP,
    }


def call_in(row: WorkflowStatus) -> SegmentCall:
    """The call that a row holds.

    Raises:
        EngineError: It holds none.
    """
    found: Any = row.input
    try:
        (data,) = found["args"]
        return SegmentCall.from_dict(data)
    except (TypeError, ValueError, KeyError) as error:
        raise EngineError(
            f"the row of call {row.workflow_id!r} holds no call of a segment",
            found=describe(found),
            help="only adk-fluent writes these rows; a newer version may have written this one",
        ) from error


def result_in(row: WorkflowStatus) -> dict[str, Any]:
    """What came of the call that a row holds.

    Raises:
        EngineError: It holds no result.
    """
    found: Any = row.output
    try:
        return SegmentResult(**found).to_dict()
    except TypeError as error:
        raise EngineError(
            f"the row of call {row.workflow_id!r} holds no result of a segment",
            found=describe(found),
            help="only adk-fluent writes these rows; a newer version may have written this one",
        ) from error


@DBOS.step(name="adk_fluent_advance")
async def _advance(data: dict[str, Any], whole: bool) -> dict[str, Any]:  # DBOS
    """Run one call; recorded, so that it is not run again once it has come to its end."""
    runtime = Runtime.current()
    call = SegmentCall.from_dict(data)
    with runtime.at_work(call):
        try:
            result = await runtime.advance(call, whole=whole)
        except asyncio.CancelledError as error:
            if runtime.is_closed:
                raise _ClosedError from error
            raise
    if result.status == "failed":
        error = result.error or {}
        what = f"{error.get('type')}: {error.get('message')}"
        LOG.error("run %s failed in segment %s: %s", call.run_id, call.segment, what)
    return result.to_dict()


class _ClosedError(BaseException):
    """The call is left to others; DBOS would keep an Exception, also a cancellation, as its end."""


async def _check_ours(data: dict[str, Any], *, whole: bool) -> None:
    """Give a call back that is in the queue of another version.

    Raises:
        _ClosedError: It is.
    """
    runtime, call = Runtime.current(), SegmentCall.from_dict(data)
    if not runtime.serves(call):
        LOG.warning("a call of run %s goes back to the queue of its version", call.run_id)
        await asyncio.to_thread(runtime.give_back, call, whole=whole)
        raise _ClosedError


@DBOS.workflow(name=SEGMENT)
async def _segment(data: dict[str, Any]) -> dict[str, Any]:
    """Run one segment, and put what comes next into its queue."""
    runtime = Runtime.current()
    await _check_ours(data, whole=False)
    result = await _advance(data, False)
    if result["next"] is None:
        runtime.tell_end(data["run_id"])
    else:
        call = SegmentCall.from_dict(data).next(result["next"])
        await DBOS.enqueue_workflow_with_options_async(
            options_of(call, whole=False), call.to_dict()
        )
    return result


@DBOS.workflow(name=WHOLE)
async def _whole(data: dict[str, Any]) -> dict[str, Any]:
    """Run segment after segment in this process, each a durable step."""
    runtime = Runtime.current()  # a closing engine is there no more when it cancels this
    runtime.tell_end(data["run_id"])
    await _check_ours(data, whole=True)
    try:
        while True:
            result = await _advance(data, True)
            if result["next"] is None:
                return result
            data = {**data, "segment": result["next"], "answers": {}}
    except asyncio.CancelledError as error:
        if runtime.is_closed:
            raise _ClosedError from error
        raise


def _keep_quiet() -> None:
    """Let DBOS log as a library does: without a console handler, to whoever sets up logging."""
    log = logging.getLogger("dbos")
    log.handlers[:] = [logging.NullHandler()]  # with none it would add its own again
    log.propagate = True


class Runtime:
    """DBOS, launched; there is one a process.

    Args:
        database: The database.
        stations: What is served, by fingerprint; may grow.
        lease: Seconds without a sign of life after which this process counts as dead elsewhere.
        poll: Seconds between two looks into a queue.
        isolation: How segments run that are to have processes of their own.
    """

    _current: Runtime | None = None

    def __init__(
        self,
        database: Database,
        stations: Mapping[str, Station],
        *,
        lease: float,
        poll: float,
        isolation: ProcessIsolation | None = None,
    ) -> None:
        self.address = database.address
        self.workers = Workers(database, lease=lease)
        self.queues: dict[str, int] = {}
        self.client = new_client(database.address)
        self._stations = stations
        self._processes: Processes | None = None
        if isolation is not None:
            self._processes = Processes(isolation, database.address.url, lease=lease)
        self._lease, self._poll = lease, poll
        self._over = threading.Event()
        self._dbos: DBOS | None = None
        self._watchers: list[threading.Thread] = []
        self._until = math.inf
        self._beaten = time.monotonic()
        self.is_lost = False
        self._tasks: dict[str, tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = {}
        self._waiting: dict[str, list[Callable[[], object]]] = {}

    @classmethod
    def current(cls) -> Runtime:
        """The one of this process.

        Raises:
            _ClosedError: It was closed as a call of it began.
        """
        if cls._current is None:
            raise _ClosedError
        return cls._current

    def launch(self, queues: Mapping[str, int], most: Mapping[str, int | None]) -> None:
        """Begin to take calls from queues.

        Args:
            queues: Their names, and how many calls of each run here at the same time.
            most: How many workers may serve a queue.

        Raises:
            BoundaryError: A segment has as many workers as it may have.
            EngineError: Another engine works in this process.
        """
        if Runtime._current is not None:
            raise EngineError(
                "this process runs a DbosEngine already",
                found=Runtime._current.address.shown,
                help="use that one, or `await engine.aclose()` it first: DBOS allows one a process",
            )
        self.workers.join({name: most.get(name) for name in queues})
        try:
            for name, concurrency in queues.items():
                self.client.register_queue(
                    name,
                    worker_concurrency=concurrency,
                    polling_interval_sec=self._poll * (_RARELY if _is_rare(name, queues) else 1),
                    application_name=APP,
                )
            Runtime._current = self
            _keep_quiet()
            self._dbos = DBOS(config=self._config())
            DBOS.listen_queues([*queues])
            DBOS.launch()
        except BaseException:
            self._stop()
            raise
        self.queues = dict(queues)
        self._over.clear()
        self._beaten = time.monotonic()
        for work in (self._watch, self._guard):
            name = f"adk-fluent{work.__name__}"
            self._watchers.append(threading.Thread(target=work, name=name, daemon=True))
            self._watchers[-1].start()

    def close(self, drain: float = 0) -> None:
        """Take no more calls; those that still run after some seconds are left to other workers.

        Args:
            drain: Seconds that they get to come to their ends.
        """
        if drain > 0 and not self.is_lost:
            self._until = time.monotonic() + drain
            DBOS.destroy(workflow_completion_timeout_sec=math.ceil(drain))
        self._over.set()
        for each in self._watchers:
            each.join()
        self._stop()

    async def advance(self, call: SegmentCall, *, whole: bool) -> SegmentResult:
        """Run a call here, or in a process of its own.

        Args:
            call: The call.
            whole: All segments of the run are run here, whatever their queues.
        """
        station = self._stations[call.fingerprint]
        boundary = station.plan[call.segment].boundary
        if self._processes is not None and boundary is not None and boundary.isolation == "process":
            return await self._processes.advance(call)
        beside = [each.name for each in station.plan.segments if self._may_join(call, each, whole)]
        return await station.advance(
            call, self.workers.is_at_work, beside=beside, is_left=lambda: self.is_closed
        )

    def _may_join(self, call: SegmentCall, segment: Segment, whole: bool) -> bool:
        """Whether branches of a segment run here beside those of a call."""
        boundary = segment.boundary
        if boundary is not None and boundary.isolation != "none":
            return False
        if whole:
            return True
        counted = boundary is not None and boundary.scaling is not None  # its queue counts calls
        return not counted and queue_of(call.fingerprint, segment.name) in self.queues

    def serves(self, call: SegmentCall) -> bool:
        """Whether a call is one of a pipeline that is served here."""
        return call.fingerprint in self._stations

    def give_back(self, call: SegmentCall, *, whole: bool) -> None:
        """Put a call that was begun back into its queue."""
        queue = options_of(call, whole=whole)["queue_name"]
        self.client.resume_workflows([workflow_id(call.run_id, call.number)], queue_name=queue)

    @property
    def is_closed(self) -> bool:
        """Whether what it runs is given back to others."""
        return Runtime._current is not self or self.is_lost or time.monotonic() >= self._until

    @property
    def is_idle(self) -> bool:
        """Whether no call runs here."""
        return not self._tasks

    def at_work(self, call: SegmentCall) -> _AtWork:
        """While a call runs in this task, so that it can be cancelled."""
        return _AtWork(self._tasks, workflow_id(call.run_id, call.number))

    @contextmanager
    def waiting(self, run_id: str) -> Generator[asyncio.Event]:
        """An event that is set when a run comes to rest in this process, or the process closes."""
        loop, over = asyncio.get_running_loop(), asyncio.Event()

        def tell() -> None:
            loop.call_soon_threadsafe(over.set)

        self._waiting.setdefault(run_id, []).append(tell)
        try:
            yield over
        finally:
            self._waiting[run_id].remove(tell)
            if not self._waiting[run_id]:
                del self._waiting[run_id]

    async def begin(self, call: SegmentCall) -> None:
        """Begin to run all of a run here, on DBOS's event loop; one that was begun goes on there.

        DBOS's async functions are not called in the caller's loop: they would give it a pool of
        threads that ends with DBOS.
        """
        await asyncio.to_thread(self._begin, workflow_id(call.run_id, call.number), call)

    def tell_end(self, run_id: str) -> None:
        """Let those who wait for a run know when the workflow of this task has ended.

        DBOS has written then what came of it, or is about to.
        """
        task = asyncio.current_task()
        if task is not None:
            task.add_done_callback(lambda _: self._ended(run_id))

    def _ended(self, run_id: str) -> None:
        for tell in [*self._waiting.get(run_id, ())]:
            with suppress(RuntimeError):  # its loop is closed
                tell()

    @staticmethod
    def _begin(id: str, call: SegmentCall) -> None:
        with SetWorkflowID(id):
            DBOS.start_workflow(_whole, call.to_dict())

    def _take_no_more(self) -> None:
        """End the threads that take calls, before the event loop they hand them to is closed."""
        if self._dbos is None:
            return
        for over in self._dbos.background_thread_stop_events:
            over.set()
        for each in threading.enumerate():
            if each.name.startswith(_TAKERS):
                with suppress(RuntimeError):  # one that is being started takes nothing any more
                    each.join(_PARTING)

    def _stop(self) -> None:
        for run_id in [*self._waiting]:  # nothing ends here any more
            self._ended(run_id)
        self._take_no_more()
        Runtime._current = None
        DBOS.destroy(workflow_completion_timeout_sec=0)
        if self._processes is not None:
            self._processes.close()
        try:
            self._hand_over(self.workers.id)
            self.workers.leave()
        except Exception:  # noqa: BLE001  # others hand it over once this process has ended
            LOG.warning("a worker could not hand over what it ran", exc_info=True)
        self.client.destroy()

    def _config(self) -> DBOSConfig:
        return {
            "name": APP,
            "system_database_url": self.address.url,
            "executor_id": self.workers.id,
            "application_version": VERSION,
            "serializer": JsonSerializer(),
            "notification_listener_polling_interval_sec": self._poll,
            "log_level": "ERROR",
            "enable_otlp": False,
        }

    def _watch(self) -> None:
        """Give signs of life, hand over the work of the dead, and end what was cancelled."""
        reaped, told = -_REAP, None
        while not self._over.wait(min(_WATCH, self._lease / 4)):
            try:
                self._end_cancelled()
                if time.monotonic() - reaped >= min(_REAP, self._lease / 4):
                    reaped = time.monotonic()
                    self._beat()
                    self._reap()
                told = None
            except Exception as error:  # noqa: BLE001  # it goes on, and is told once
                ours = isinstance(error, EngineError)
                is_bug = not (ours or isinstance(error, SQLAlchemyError | OSError))
                if told is not is_bug:
                    said = error.found if ours else unusable(error, self.address).found
                    what = "a worker could not look after its database, %s"
                    LOG.warning(what, said, exc_info=error if is_bug else None)
                told = is_bug

    def _beat(self) -> None:
        before = time.monotonic()
        if self.workers.beat():
            self._beaten = before
        else:
            self._lose("another worker took this one for dead")

    def _guard(self) -> None:
        """End what runs before others may begin it, where no sign of life reaches them."""
        while self.workers.has_others and not self._over.wait(self._lease / 16):
            silent = time.monotonic() - self._beaten
            if silent > self._lease * _PATIENCE and not self.is_lost:
                self._lose(f"it could give no sign of life for {silent:.1f} s")

    def _lose(self, why: str) -> None:
        LOG.error("this worker ends what it runs: %s", why)
        self.is_lost = True
        for loop, task in [*self._tasks.values()]:
            loop.call_soon_threadsafe(task.cancel)

    def _end_cancelled(self) -> None:
        tasks = dict(self._tasks)
        if not tasks:
            return
        for row in self.client.list_workflows(
            workflow_ids=[*tasks], status="CANCELLED", load_input=False, load_output=False
        ):
            loop, task = tasks[row.workflow_id]
            loop.call_soon_threadsafe(task.cancel)

    def _reap(self) -> None:
        for dead in self.workers.take_dead():
            for run_id in self._hand_over(dead):
                LOG.warning("run %s goes on: worker %s has died", run_id, dead)
            self.workers.bury(dead)

    def _hand_over(self, worker: str) -> list[str]:
        """Put the calls that a worker has begun back into their queues, and return their runs."""
        runs: list[str] = []
        for row in self.client.list_workflows(
            status="PENDING", executor_id=worker, load_input=True, load_output=False
        ):
            try:
                call = call_in(row)
            except EngineError:  # one that cannot be read must not keep the others
                LOG.warning("a call of worker %s is left as it is", worker, exc_info=True)
                continue
            self.give_back(call, whole=row.name == WHOLE)
            runs.append(call.run_id)
        return runs


class _AtWork:
    """Notes the task of a call."""

    def __init__(self, tasks: dict[str, Any], id: str) -> None:
        self._tasks, self._id = tasks, id

    def __enter__(self) -> None:
        task = asyncio.current_task()
        self._tasks[self._id] = (asyncio.get_running_loop(), task)

    def __exit__(self, *_: object) -> None:
        self._tasks.pop(self._id, None)


def new_client(address: Address) -> DBOSClient:
    """A client of the database, whose tables are made if they are not there.

    Raises:
        EngineError: It cannot be opened, or is no database of DBOS's.
    """
    _keep_quiet()
    try:
        ready_for_dbos(address)
        DBOS.migrate(address.url)
        return DBOSClient(
            system_database_url=address.url,
            serializer=JsonSerializer(),
            application_name=APP,
            retry_connection_errors=False,
        )
    except Exception as error:
        raise unusable(error, address) from error

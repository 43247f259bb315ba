"""A discrete-event simulation of runs that cross segments, on workers that die and freeze.

Each call of a segment waits for a worker to look into the queue, takes processor time of that
worker, waits for its models, and writes to the one database. A worker that dies loses what it runs;
after its lease others begin that again. One that freezes for longer than its lease is taken for
dead: what it ran is begun elsewhere, and what it still does outside of state may happen twice.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from dataclasses import dataclass, field
from itertools import count
from statistics import quantiles
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable


#: The share of a core that is left for calls, however many workers look into queues.
_LEAST: Final = 0.05


@dataclass(frozen=True, slots=True)
class Costs:
    """What one call of a segment costs, as measured.

    Attributes:
        cpu_seconds: Processor time of its worker, one core each.
        writes: Transactions that change the database.
        write_seconds: How long the database is busy with one.
        writers: How many it does at the same time: 1 for SQLite.
        look_seconds: Processor time of a look into all queues, which nothing is in.
    """

    cpu_seconds: float
    writes: float
    write_seconds: float
    writers: int = 1
    look_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked of the fleet.

    Attributes:
        runs_per_second: Runs that begin, at random moments; 0: all `runs` begin at once.
        segments: Segments of a run, one after the other.
        wait_seconds: What the models of a segment take, on average; exponentially spread.
        is_fixed: They take exactly so long.
        runs: How many runs begin.
    """

    runs_per_second: float
    segments: int = 3
    wait_seconds: float = 1.0
    is_fixed: bool = False
    runs: int = 1000


@dataclass(frozen=True, slots=True)
class Fleet:
    """The workers; each serves all segments.

    Attributes:
        workers: How many there are.
        concurrency: Calls of each segment that each runs at the same time.
        poll_seconds: Seconds between two looks into the queue.
        lease_seconds: Seconds without a sign of life after which a worker counts as dead.
        deaths_per_hour: How often one of them dies, on average.
        restart_seconds: How long it is away then.
        freezes_per_hour: How often one of them freezes.
        freeze_seconds: For how long, on average; exponentially spread.
        cores: Processor cores that all of them share; None: each has one of its own.
    """

    workers: int
    concurrency: int = 8
    poll_seconds: float = 0.1
    lease_seconds: float = 30.0
    deaths_per_hour: float = 0.0
    restart_seconds: float = 10.0
    freezes_per_hour: float = 0.0
    freeze_seconds: float = 5.0
    cores: int | None = None


@dataclass(slots=True)
class Outcome:
    """What became of the runs.

    Attributes:
        begun: Runs that began.
        latencies: Seconds from begin to end of each run that ended, in the order of their ends.
        ends: When each ended, in seconds.
        seconds: When the last one ended.
        repeated: Calls that were begun again.
        false_reaps: Calls that were begun elsewhere while a frozen worker still had them.
        writes: Transactions that changed the database.
        database_busy: The share of its time that the database was busy.
        workers_busy: The share of their processor time that workers were busy.
    """

    begun: int = 0
    latencies: list[float] = field(default_factory=list[float])
    ends: list[float] = field(default_factory=list[float])
    seconds: float = 0.0
    repeated: int = 0
    false_reaps: int = 0
    writes: float = 0.0
    database_busy: float = 0.0
    workers_busy: float = 0.0

    @property
    def lost(self) -> int:
        """Runs that began and did not end."""
        return self.begun - len(self.latencies)

    @property
    def runs_per_second(self) -> float:
        """Runs that ended, for each second until the last did."""
        return len(self.latencies) / self.seconds if self.seconds else 0.0

    @property
    def steady(self) -> float:
        """Runs that ended, for each second between the first tenth of the ends and the last."""
        first, last = len(self.ends) // 10, len(self.ends) * 9 // 10
        return (last - first) / (self.ends[last] - self.ends[first])

    def latency(self, percent: int) -> float:
        """Seconds that so many per cent of the runs were within."""
        if len(self.latencies) < 2:  # of one there are no quantiles
            return self.latencies[0] if self.latencies else 0.0
        return quantiles(self.latencies, n=100)[percent - 1]


class _Server:
    """Does one thing after the other, or several at a time."""

    def __init__(self, clock: _Clock, places: int) -> None:
        self._clock, self._free = clock, places
        self._queue: deque[tuple[float, Callable[[], object]]] = deque()
        self.busy = 0.0

    def take(self, seconds: float, then: Callable[[], object]) -> None:
        """Do something that takes so long, and say when it is done."""
        self._queue.append((seconds, then))
        self._next()

    def _next(self) -> None:
        while self._free and self._queue:
            seconds, then = self._queue.popleft()
            self._free -= 1
            self.busy += seconds
            self._clock.after(seconds, lambda then=then: self._done(then))

    def _done(self, then: Callable[[], object]) -> None:
        self._free += 1
        then()
        self._next()


class _Clock:
    """Time, and what happens when it has come."""

    def __init__(self) -> None:
        self.now = 0.0
        self._order = count()
        self._events: list[tuple[float, int, Callable[[], object]]] = []

    def after(self, seconds: float, then: Callable[[], object]) -> None:
        """Let something happen later."""
        heapq.heappush(self._events, (self.now + seconds, next(self._order), then))

    def step(self) -> None:
        """Go on to what happens next."""
        self.now, _, happens = heapq.heappop(self._events)
        happens()


@dataclass(slots=True, eq=False)
class _Run:
    began: float
    segment: int = 0


@dataclass(slots=True, eq=False)
class _Worker:
    core: _Server
    life: int = 0  # grows when it dies, or when what it runs is taken from it
    frozen_until: float = 0.0
    is_up: bool = True
    is_waiting: bool = False  # to look into the queues, or for something to be in them
    runs: dict[_Run, int] = field(default_factory=dict["_Run", int])


class Simulation:
    """Runs on a fleet, until each has ended.

    Args:
        load: What is asked.
        fleet: The workers.
        costs: What a call costs.
        seed: Of what is random.
    """

    def __init__(self, load: Load, fleet: Fleet, costs: Costs, *, seed: int = 0) -> None:
        self._load, self._fleet, self._costs = load, fleet, costs
        self._random = random.Random(seed)  # noqa: S311  # nothing secret
        self._clock = _Clock()
        looking = costs.look_seconds / fleet.poll_seconds if costs.look_seconds else 0.0
        if fleet.cores is not None:
            looking *= fleet.workers / fleet.cores
        #: A core has so much less for calls as workers look into queues.
        self._cpu_seconds = costs.cpu_seconds / max(1 - looking, _LEAST)
        self._database = _Server(self._clock, costs.writers)
        self._queues: list[deque[_Run]] = [deque() for _ in range(load.segments)]
        self._idle: deque[_Worker] = deque()
        own = None if fleet.cores is None else _Server(self._clock, fleet.cores)
        self._cores = [own] if own else [_Server(self._clock, 1) for _ in range(fleet.workers)]
        self._workers = [_Worker(self._cores[at % len(self._cores)]) for at in range(fleet.workers)]
        self.outcome = Outcome()

    def run(self) -> Outcome:
        """Let all runs begin and end."""
        load, fleet, clock, made = self._load, self._fleet, self._clock, self.outcome
        self._arrive()
        for worker in self._workers:
            self._look(worker, self._random.uniform(0, fleet.poll_seconds))
            self._plan(fleet.deaths_per_hour, worker, self._die)
            self._plan(fleet.freezes_per_hour, worker, self._freeze)
        while len(made.latencies) < load.runs:
            clock.step()
        made.seconds = clock.now
        made.database_busy = self._database.busy / (clock.now * self._costs.writers)
        made.workers_busy = sum(each.busy for each in self._cores)
        made.workers_busy /= clock.now * (fleet.cores or fleet.workers)
        return made

    # --- runs and calls ------------------------------------------------------------------------

    def _arrive(self) -> None:
        while self.outcome.begun < self._load.runs:
            self.outcome.begun += 1
            self._enqueue(_Run(self._clock.now))
            if self._load.runs_per_second:
                pause = self._random.expovariate(self._load.runs_per_second)
                self._clock.after(pause, self._arrive)
                return

    def _enqueue(self, run: _Run) -> None:
        self._queues[run.segment].append(run)
        if self._idle:
            self._look(self._idle.popleft(), self._random.uniform(0, self._fleet.poll_seconds))

    def _look(self, worker: _Worker, pause: float) -> None:
        worker.is_waiting = True
        self._clock.after(pause, lambda: self._looked(worker))

    def _looked(self, worker: _Worker) -> None:
        worker.is_waiting = False
        now = self._clock.now
        if not worker.is_up:
            return
        if worker.frozen_until > now:
            self._look(worker, worker.frozen_until - now)
            return
        for queue in self._queues:
            while queue and self._has_room(worker, queue[0]):
                self._begin(worker, queue.popleft())
        if not any(self._queues):
            worker.is_waiting = True
            self._idle.append(worker)  # it looks again when there is something
        elif len(worker.runs) < self._fleet.concurrency * len(self._queues):
            self._look(worker, self._fleet.poll_seconds)

    def _has_room(self, worker: _Worker, run: _Run) -> bool:
        beside = sum(each.segment == run.segment for each in worker.runs)
        return beside < self._fleet.concurrency

    def _begin(self, worker: _Worker, run: _Run) -> None:
        life = worker.runs[run] = worker.life
        load, costs = self._load, self._costs
        wait = load.wait_seconds
        if not load.is_fixed:
            wait = self._random.expovariate(1 / wait) if wait else 0.0

        def is_mine() -> bool:
            return worker.life == life

        def waited() -> None:
            if worker.frozen_until > self._clock.now:
                self._clock.after(worker.frozen_until - self._clock.now, waited)
            elif is_mine():
                self.outcome.writes += costs.writes
                self._database.take(costs.writes * costs.write_seconds, written)

        def written() -> None:
            if is_mine():
                self._ended(worker, run)

        worker.core.take(
            self._cpu_seconds, lambda: self._clock.after(wait, waited) if is_mine() else None
        )

    def _ended(self, worker: _Worker, run: _Run) -> None:
        del worker.runs[run]
        run.segment += 1
        if run.segment < self._load.segments:
            self._enqueue(run)
        else:
            self.outcome.ends.append(self._clock.now)
            self.outcome.latencies.append(self._clock.now - run.began)
        if worker.is_up and not worker.is_waiting:
            self._look(worker, self._random.uniform(0, self._fleet.poll_seconds))

    # --- what goes wrong -----------------------------------------------------------------------

    def _plan(self, per_hour: float, worker: _Worker, happens: Callable[[_Worker], object]) -> None:
        if per_hour:
            pause = self._random.expovariate(per_hour / 3600)
            self._clock.after(pause, lambda: happens(worker))

    def _die(self, worker: _Worker) -> None:
        lost = [*worker.runs]
        self._lose(worker)
        worker.is_up = False
        # signs of life are looked for each quarter of a lease
        noticed = self._fleet.lease_seconds * self._random.uniform(1, 1.25)
        self._clock.after(noticed, lambda: self._again(lost))
        self._clock.after(self._fleet.restart_seconds, lambda: self._restart(worker))

    def _restart(self, worker: _Worker) -> None:
        worker.is_up = True
        if not worker.is_waiting:
            self._look(worker, 0)
        self._plan(self._fleet.deaths_per_hour, worker, self._die)

    def _freeze(self, worker: _Worker) -> None:
        now, fleet = self._clock.now, self._fleet
        seconds = self._random.expovariate(1 / fleet.freeze_seconds)
        worker.frozen_until = max(worker.frozen_until, now + seconds)
        noticed = fleet.lease_seconds * self._random.uniform(1, 1.25)
        if seconds > noticed and worker.is_up:
            self._clock.after(noticed, lambda: self._reap(worker))
        self._plan(fleet.freezes_per_hour, worker, self._freeze)

    def _reap(self, worker: _Worker) -> None:
        lost = [*worker.runs]
        self.outcome.false_reaps += len(lost)
        self._lose(worker)
        self._again(lost)

    def _lose(self, worker: _Worker) -> None:
        worker.life += 1
        worker.runs.clear()

    def _again(self, lost: list[_Run]) -> None:
        self.outcome.repeated += len(lost)
        for run in lost:
            self._enqueue(run)

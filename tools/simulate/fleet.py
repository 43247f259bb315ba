"""A discrete-event simulation of runs that cross segments, on workers that die and freeze.

Each call of a segment waits for a worker to look into the queue, takes processor time of that
worker, waits for its models, and writes to the one database. A worker that dies loses what it runs;
after its lease others begin that again. One that freezes for longer than its lease is taken for
dead: what it ran is begun elsewhere, and what it still does outside of state may happen twice.

Workers that share the cores of one machine slow each other down, and the database on it: what
writes takes a core, too, and keeps others from writing for as long as it waits for one.
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
    from collections.abc import Callable, Sequence


#: The share of a core that is left for calls, however many workers look into queues.
_LEAST: Final = 0.05
#: Seconds that SQLite sleeps for, one after the other, where somebody else writes.
_SLEEPS: Final = tuple(each / 1000 for each in (1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100))
#: Files of SQLite's: that of the calls, and that of the sessions.
_FILES: Final = 2
_TINY: Final = 1e-9  # seconds


@dataclass(frozen=True, slots=True)
class Costs:
    """What one call of a segment costs, as measured.

    Attributes:
        cpu_seconds: Processor time of its worker, one core each.
        writes: Transactions that change the database.
        write_seconds: How long the database is busy with one.
        writers: How many it does at the same time.
        look_seconds: Processor time of a look into all queues, which nothing is in.
        idle_writes: Transactions that each worker writes a second, whatever it runs.
        is_file: It is SQLite's: one writes to a file, and who finds it busy sleeps and tries again.
    """

    cpu_seconds: float
    writes: float
    write_seconds: float
    writers: int = 1
    look_seconds: float = 0.0
    idle_writes: float = 0.0
    is_file: bool = False


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
            self._wait(seconds, lambda then=then: self._done(then))

    def _wait(self, seconds: float, then: Callable[[], object]) -> None:
        self._clock.after(seconds, then)

    def _done(self, then: Callable[[], object]) -> None:
        self._free += 1
        then()
        self._next()


class _Machine:
    """Cores that workers share evenly, each of which does one thing at a time (the GIL).

    Args:
        clock: Time.
        cores: How many there are.
        workers: How many share them.
        looking: The share of a core that each takes for looks into queues.
    """

    def __init__(self, clock: _Clock, cores: int, workers: int, looking: float) -> None:
        self._clock = clock
        self._all = max(cores - workers * looking, cores * _LEAST)
        self._each = max(1 - looking, _LEAST)
        self._left: dict[object, dict[Callable[[], object], float]] = {}
        self._since, self._turn = 0.0, 0
        self.busy = 0.0

    def take(self, seconds: float, then: Callable[[], object], owner: object) -> None:
        """Let an owner do something that takes so long alone, and say when it is done."""
        self._pass()
        self._left.setdefault(owner, {})[then] = seconds
        self.busy += seconds
        self._plan()

    def _pass(self) -> None:
        """Let all have done what they could since the last time."""
        passed, self._since = (self._clock.now - self._since) * self._rate(), self._clock.now
        for jobs in self._left.values():
            for job in jobs:
                jobs[job] -= passed / len(jobs)

    def _rate(self) -> float:
        return min(self._each, self._all / max(len(self._left), 1))

    def _plan(self) -> None:
        """Go on when the next one is done."""
        self._turn += 1
        if self._left:
            turn, least = self._turn, min(min(m.values()) * len(m) for m in self._left.values())
            self._clock.after(max(least, 0.0) / self._rate(), lambda: self._done(turn))

    def _done(self, turn: int) -> None:
        if turn != self._turn:
            return
        self._pass()
        done = [(w, job) for w, jobs in self._left.items() for job in jobs if jobs[job] < _TINY]
        for owner, job in done:
            del self._left[owner][job]
            if not self._left[owner]:
                del self._left[owner]
        self._plan()
        for _, job in done:
            job()


class _File:
    """A file of SQLite's on a machine whose cores are shared."""

    def __init__(self, clock: _Clock, machine: _Machine) -> None:
        self._clock, self._machine, self._is_free = clock, machine, True
        self.busy = 0.0

    def take(self, seconds: float, then: Callable[[], object], tries: int = 0) -> None:
        """Write, as soon as a try finds that nobody else does."""
        if not self._is_free:
            pause = _SLEEPS[min(tries, len(_SLEEPS) - 1)]
            self._clock.after(pause, lambda: self.take(seconds, then, tries + 1))
            return
        self._is_free, began = False, self._clock.now

        def done() -> None:
            self._is_free = True
            self.busy += self._clock.now - began
            then()

        self._machine.take(seconds, done, done)


class _Near(_Server):
    """A server of the database on a machine whose cores are shared."""

    def __init__(self, clock: _Clock, places: int, machine: _Machine) -> None:
        super().__init__(clock, places)
        self._machine = machine

    def _wait(self, seconds: float, then: Callable[[], object]) -> None:
        self._machine.take(seconds, then, then)


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
    core: _Machine
    life: int = 0  # grows when it dies, or when what it runs is taken from it
    frozen_until: float = 0.0
    is_up: bool = True
    waiting: set[int] = field(
        default_factory=set[int]
    )  # to look into queues, or for what is in them
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
        shared = fleet.cores is not None
        cores, sharing = (fleet.cores, fleet.workers) if fleet.cores is not None else (1, 1)
        self._machines = [
            _Machine(self._clock, cores, sharing, looking)
            for _ in range(1 if shared else fleet.workers)
        ]
        self._database: Sequence[_Server | _File] = [_Server(self._clock, costs.writers)]
        if shared and costs.is_file:
            self._database = [_File(self._clock, self._machines[0]) for _ in range(_FILES)]
        elif shared:
            self._database = [_Near(self._clock, costs.writers, self._machines[0])]
        idle = fleet.workers * costs.idle_writes * costs.write_seconds / costs.writers
        #: A database has so much less for calls as workers say that they live.
        self._write_seconds = costs.write_seconds / max(1 - idle / len(self._database), _LEAST)
        #: Where cores are shared, it matters how short each write is.
        self._parts = max(round(costs.writes), 1) if shared else 1
        self._queues: list[deque[_Run]] = [deque() for _ in range(load.segments)]
        self._idle: list[deque[_Worker]] = [deque() for _ in range(load.segments)]
        self._workers = [
            _Worker(self._machines[at % len(self._machines)]) for at in range(fleet.workers)
        ]
        self.outcome = Outcome()

    def run(self) -> Outcome:
        """Let all runs begin and end."""
        load, fleet, clock, made = self._load, self._fleet, self._clock, self.outcome
        self._arrive()
        for worker in self._workers:
            for at in range(load.segments):  # each queue has a thread of its own
                self._look(worker, at)
            self._plan(fleet.deaths_per_hour, worker, self._die)
            self._plan(fleet.freezes_per_hour, worker, self._freeze)
        while len(made.latencies) < load.runs:
            clock.step()
        made.seconds = clock.now
        places = len(self._database) * self._costs.writers
        made.database_busy = sum(each.busy for each in self._database) / (clock.now * places)
        made.workers_busy = sum(each.busy for each in self._machines)
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
        if self._idle[run.segment]:
            self._look(self._idle[run.segment].popleft(), run.segment)

    def _look(self, worker: _Worker, at: int, pause: float | None = None) -> None:
        """Look into a queue, at some time before the next look is over or after a pause."""
        worker.waiting.add(at)
        if pause is None:
            pause = self._random.uniform(0, self._fleet.poll_seconds)
        self._clock.after(pause, lambda: self._looked(worker, at))

    def _looked(self, worker: _Worker, at: int) -> None:
        worker.waiting.discard(at)
        now, queue = self._clock.now, self._queues[at]
        if not worker.is_up:
            return
        if worker.frozen_until > now:
            self._look(worker, at, worker.frozen_until - now)
            return
        while queue and self._has_room(worker, queue[0]):
            self._begin(worker, queue.popleft())
        if not queue:
            worker.waiting.add(at)
            self._idle[at].append(worker)  # it looks again when there is something

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

        parts = self._parts

        def waited() -> None:
            if worker.frozen_until > self._clock.now:
                self._clock.after(worker.frozen_until - self._clock.now, waited)
            elif is_mine():
                self.outcome.writes += costs.writes
                write(0)

        def write(at: int) -> None:
            database = self._database[at % len(self._database)]
            seconds = costs.writes * self._write_seconds / parts
            database.take(seconds, lambda: written(at + 1) if is_mine() else None)

        def written(at: int) -> None:
            if at == parts:
                self._ended(worker, run)
            else:
                compute(lambda: write(at))

        def compute(then: Callable[[], object]) -> None:
            worker.core.take(
                costs.cpu_seconds / parts, lambda: then() if is_mine() else None, worker
            )

        compute(lambda: self._clock.after(wait, waited))

    def _ended(self, worker: _Worker, run: _Run) -> None:
        del worker.runs[run]
        done = run.segment
        run.segment += 1
        if run.segment < self._load.segments:
            self._enqueue(run)
        else:
            self.outcome.ends.append(self._clock.now)
            self.outcome.latencies.append(self._clock.now - run.began)
        if worker.is_up and done not in worker.waiting:
            self._look(worker, done)

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
        for at in range(self._load.segments):
            if at not in worker.waiting:
                self._look(worker, at, 0)
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

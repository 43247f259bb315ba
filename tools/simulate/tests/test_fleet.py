"""The simulation of workers: what it counts, and that its small scales are real ones."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from simulate.fleet import Costs, Fleet, Load, Simulation

if TYPE_CHECKING:
    from pathlib import Path

    from simulate.fleet import Outcome

CHEAP = Costs(cpu_seconds=0.001, writes=6, write_seconds=0.0001)
LOAD = Load(50, wait_seconds=0.2, runs=500)


def simulated(load: Load = LOAD, costs: Costs = CHEAP, **fleet: float) -> Outcome:
    made: dict[str, Any] = {"workers": 10, **fleet}
    return Simulation(load, Fleet(**made), costs, seed=3).run()


def test_one_run_takes_what_its_calls_take() -> None:
    load = Load(0, segments=2, wait_seconds=1.0, is_fixed=True, runs=1)
    made = Simulation(load, Fleet(1, poll_seconds=0), CHEAP).run()
    assert made.seconds == pytest.approx(2 * (0.001 + 1.0 + 6 * 0.0001))
    assert (made.lost, made.repeated, made.writes) == (0, 0, 12)


def test_what_is_asked_is_done_where_there_is_room() -> None:
    assert simulated().steady == pytest.approx(LOAD.runs_per_second, rel=0.1)


def test_the_same_seed_gives_the_same() -> None:
    assert simulated(deaths_per_hour=60) == simulated(deaths_per_hour=60)


def test_nothing_is_lost_when_workers_die() -> None:
    made = simulated(deaths_per_hour=600, lease_seconds=5, restart_seconds=1)
    assert (made.begun, made.lost) == (500, 0)
    assert made.repeated > 0
    assert made.false_reaps == 0
    calm, longer = simulated(), simulated(deaths_per_hour=600, lease_seconds=60, restart_seconds=1)
    assert calm.repeated == 0
    assert calm.latency(99) < made.latency(99) < longer.latency(99)


def test_a_freeze_within_the_lease_delays_and_a_longer_one_begins_twice() -> None:
    short = simulated(freezes_per_hour=1200, freeze_seconds=1, lease_seconds=60)
    assert (short.lost, short.false_reaps, short.repeated) == (0, 0, 0)
    assert short.latency(99) > simulated().latency(99)
    long = simulated(freezes_per_hour=1200, freeze_seconds=10, lease_seconds=2)
    assert long.lost == 0
    assert 0 < long.false_reaps == long.repeated


def test_throughput_grows_with_workers_until_the_database_is_busy() -> None:
    load = Load(0, wait_seconds=0.2, runs=400)
    slow = replace(CHEAP, write_seconds=0.002)
    fleets = [{"workers": n, "concurrency": 2} for n in (1, 2, 4, 8, 64)]
    rates = [simulated(load, slow, **fleet).runs_per_second for fleet in fleets]
    assert rates[1] > 1.8 * rates[0]
    most = 1 / (3 * slow.writes * slow.write_seconds)  # runs a second that the database can write
    assert 0.85 * most < rates[-1] <= most
    assert simulated(load, slow, workers=64).database_busy > 0.85


def test_a_worker_is_bound_by_its_core() -> None:
    made = simulated(Load(0, wait_seconds=0, runs=100), replace(CHEAP, cpu_seconds=0.05), workers=1)
    assert made.runs_per_second <= 1 / (3 * 0.05)
    assert made.workers_busy > 0.9


def test_looking_into_queues_takes_from_the_cores() -> None:
    load = Load(0, wait_seconds=0, runs=100)
    costs = replace(CHEAP, cpu_seconds=0.05, look_seconds=0.05)  # at 0.1 s, half a core
    free = simulated(load, replace(costs, look_seconds=0), workers=1)
    assert simulated(load, costs, workers=1).seconds == pytest.approx(2 * free.seconds, rel=0.1)


def test_workers_of_one_machine_share_its_cores() -> None:
    load, costs = Load(0, wait_seconds=0, runs=100), replace(CHEAP, cpu_seconds=0.05)
    alone, shared = simulated(load, costs, workers=8), simulated(load, costs, workers=8, cores=2)
    assert alone.runs_per_second > 3 * shared.runs_per_second
    assert shared.workers_busy > 0.9


def test_a_worker_is_bound_by_one_core_of_those_it_shares() -> None:
    load, costs = Load(0, wait_seconds=0, runs=50), replace(CHEAP, cpu_seconds=0.05)
    assert simulated(load, costs, workers=1, cores=4).runs_per_second <= 1 / (3 * 0.05)
    assert simulated(load, costs, workers=2, cores=4).runs_per_second > 1 / (3 * 0.05)


def test_what_writes_takes_a_core_of_the_machine() -> None:
    load, costs = Load(0, wait_seconds=0, runs=50), replace(CHEAP, write_seconds=0.01, writers=8)
    most = 2 / (3 * costs.writes * costs.write_seconds)  # runs a second that two cores can write
    assert simulated(load, costs, workers=8).runs_per_second > 1.5 * most
    assert 0.7 * most < simulated(load, costs, workers=8, cores=2).runs_per_second <= most


def test_who_finds_a_file_busy_sleeps() -> None:
    load, costs = Load(0, wait_seconds=0, runs=50), replace(CHEAP, write_seconds=0.005, writers=2)
    file = replace(costs, writers=1, is_file=True)  # two of them, and on each one at a time
    server, own = (simulated(load, each, workers=8, cores=8) for each in (costs, file))
    assert own.runs_per_second < 0.9 * server.runs_per_second
    assert own.database_busy < server.database_busy
    assert (own.lost, own.writes) == (0, server.writes)


def test_what_idle_workers_write_takes_from_the_database() -> None:
    load = Load(0, wait_seconds=0, runs=50)
    costs = replace(CHEAP, write_seconds=0.01, idle_writes=5.0)  # of 10 workers, half of its time
    free = simulated(load, replace(costs, idle_writes=0))
    assert simulated(load, costs).seconds == pytest.approx(2 * free.seconds, rel=0.1)


@pytest.mark.full
def test_small_scales_are_those_of_real_workers(tmp_path: Path) -> None:
    """Measured and simulated on this machine, within a third: it is shared."""
    from simulate.measure import POLL, SEGMENTS, measure, run_all

    costs = measure(runs=20)
    for concurrency in (1, 4):
        url = f"sqlite:///{tmp_path / f'runs{concurrency}.sqlite'}"
        real = asyncio.run(run_all(url, runs=16, concurrency=concurrency, wait_seconds=0.2))
        load = Load(0, SEGMENTS, 0.2, is_fixed=True, runs=16)
        told = Simulation(load, Fleet(1, concurrency, POLL), costs).run().seconds
        assert 0.67 < told / real < 1.5, (concurrency, told, real)

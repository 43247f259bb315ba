"""Who counts as a worker, and as a dead one; and what becomes of a call that two workers have."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from dbos import DBOS
from sqlalchemy import create_engine, text

from adk_fluent import Agent
from adk_fluent.builders import Pipeline, State
from adk_fluent.distributed import (
    BoundaryError,
    DbosEngine,
    DistributedRunError,
    EngineError,
    SegmentCall,
    _runtime,
    split,
)
from adk_fluent.distributed._database import Address, Database
from adk_fluent.distributed._runtime import Runtime
from adk_fluent.distributed._station_adk import Station, stores
from adk_fluent.distributed._workers import Workers
from adk_fluent.extend import this_process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x
]
SECONDS = 120


@pytest.fixture
def database(any_url: str) -> Iterator[Database]:
    made = Database(Address.of(any_url))
    yield made
    made.close()


def moved(database: Database, worker: Workers, ago: float) -> None:
    """Let a worker be one of another machine, that gave its last sign of life some time ago."""
    with database.begin() as db:
        db.execute(
            text(
                "update adk_fluent_workers set process = 'far/7/1 pid:[1]', beat = beat - :ago"
                " where id = :id"
            ),
            {"ago": ago, "id": worker.id},
        )


def test_who_is_dead(database: Database) -> None:
    living, gone, third = (Workers(database, lease=30) for _ in range(3))
    for each in (living, gone):
        each.join({"q": None})
    assert living.take_dead() == []
    moved(database, gone, 29)
    assert living.take_dead() == []
    assert living.is_at_work("far/7/1/abc")
    moved(database, gone, 2)
    assert not living.is_at_work("far/7/1/abc")
    assert not living.is_at_work("far/7/12/abc")
    assert living.is_at_work(f"{this_process()}/abc")
    assert living.take_dead() == [gone.id]
    assert third.take_dead() == []  # somebody looks after it
    living.bury(gone.id)
    assert living.take_dead() == []
    assert (living.beat(), gone.beat()) == (True, False)


def test_no_more_workers_than_a_segment_may_have(database: Database) -> None:
    first, second = Workers(database, lease=30), Workers(database, lease=30)
    first.join({"p/heavy": 1, "p/light": None})
    second_join = {"p/heavy": 1}
    with pytest.raises(BoundaryError, match="'heavy' has all the workers it may have"):
        second.join(second_join)
    moved(database, first, 60)
    second.join(second_join)  # the dead do not count


async def test_a_call_that_two_workers_have_is_run_by_one(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a worker was taken for dead that is not."""
    monkeypatch.setattr("adk_fluent.distributed._station_adk._AGAIN", 0.01)
    began, go, calls = asyncio.Event(), asyncio.Event(), list[str]()

    async def slow(state: State) -> dict[str, object]:
        calls.append("slow")
        began.set()
        await go.wait()
        return {"n": len(calls)}

    pipeline = Agent("a").mock("A") >> Pipeline("far", slow).execution_boundary()

    def station() -> Station:
        return Station(pipeline, None, *stores(database), url=database.address.url)

    here, there = station(), station()
    said, _ = await here.message_of("Go.", "r", "user")
    first = SegmentCall("r", "pipeline", 0, here.plan.fingerprint, "user", said)
    assert (await here.advance(first)).next == "far"
    call, asked = first.next("far"), list[str]()

    def at_work(owner: str) -> bool:
        asked.append(owner)
        if len(asked) == 2:
            go.set()
        return True

    running = asyncio.create_task(here.advance(call, at_work))
    await asyncio.wait_for(began.wait(), SECONDS)
    other = await asyncio.wait_for(there.advance(call, at_work), SECONDS)
    result = await asyncio.wait_for(running, SECONDS)
    assert (result.status, result.state) == ("completed", {"n": 1})
    assert (other.status, other.state) == ("completed", {"n": 1})
    assert calls == ["slow"]
    assert {owner.rpartition("/")[0] for owner in asked} == {this_process()}


async def test_who_was_taken_for_dead_writes_nothing_more(database: Database) -> None:
    began, go, calls = asyncio.Event(), asyncio.Event(), list[int]()

    async def slow(state: State) -> dict[str, object]:
        calls.append(len(calls))
        if len(calls) == 1:
            began.set()
            await go.wait()
        return {"by": len(calls)}

    pipeline = Agent("a").mock("A") >> Pipeline("far", slow).execution_boundary()

    def station() -> Station:
        return Station(pipeline, None, *stores(database), url=database.address.url)

    here, there = station(), station()
    said, _ = await here.message_of("Go.", "r", "user")
    first = SegmentCall("r", "pipeline", 0, here.plan.fingerprint, "user", said)
    await here.advance(first)
    call = first.next("far")
    running = asyncio.create_task(here.advance(call, lambda _: True))
    await asyncio.wait_for(began.wait(), SECONDS)
    other = await asyncio.wait_for(there.advance(call, lambda _: False), SECONDS)
    assert (other.status, other.state, other.error) == ("completed", {"by": 2}, None)
    go.set()
    result = await asyncio.wait_for(running, SECONDS)
    assert (result.status, result.state) == ("completed", {"by": 2})
    assert len(calls) == 2


async def test_a_worker_that_cannot_say_that_it_lives_ends_what_it_runs(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, ended = asyncio.Event(), list[str]()
    loop = asyncio.get_running_loop()

    async def hang(state: State) -> None:
        loop.call_soon_threadsafe(began.set)
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    pipeline = Agent("a").mock("A") >> hang
    async with DbosEngine(postgres, poll_seconds=0.02, lease_seconds=8) as engine:
        engine.register(pipeline)
        serving = asyncio.create_task(engine.serve())
        await engine.submit(pipeline, "Go.", run_id="r")
        await asyncio.wait_for(began.wait(), SECONDS)

        def unreachable(workers: Workers) -> bool:
            raise EngineError("the database cannot be reached")

        monkeypatch.setattr(Workers, "beat", unreachable)
        monkeypatch.setattr("adk_fluent.distributed._runtime._PATIENCE", 0.05)  # is 0.7
        with pytest.raises(EngineError, match="this worker has ended what it ran"):
            await asyncio.wait_for(serving, SECONDS)
        assert ended == ["cancelled"]
        assert (await engine.status("r")).status == "running"  # for others


async def test_a_worker_that_is_told_to_end_lets_calls_end_first(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go, ran = asyncio.Event(), asyncio.Event(), list[str]()
    loop = asyncio.get_running_loop()

    async def slow(state: State) -> dict[str, object]:
        loop.call_soon_threadsafe(began.set)
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(go.wait(), loop))
        ran.append("slow")
        return {"done": True}

    def after(state: State) -> None:
        ran.append("after")

    pipeline = Pipeline("job", slow) >> Pipeline("far", after).execution_boundary()
    async with DbosEngine(postgres, poll_seconds=0.02) as engine:
        engine.register(pipeline)
        serving = asyncio.create_task(engine.serve(drain_seconds=SECONDS))
        await engine.submit(pipeline, "Go.", run_id="r")
        await asyncio.wait_for(began.wait(), SECONDS)
        destroy = DBOS.destroy

        def destroyed(**options: Any) -> None:  # not before: it would take the next call
            loop.call_soon_threadsafe(go.set)
            destroy(**options)

        monkeypatch.setattr(DBOS, "destroy", destroyed)
        serving.cancel()
        await asyncio.wait([serving], timeout=SECONDS)
        stands = await engine.status("r")
        assert (stands.status, stands.segment, ran) == ("running", "far", ["slow"])


async def test_a_queue_that_is_full(tmp_path: Path) -> None:
    pipeline = Agent("a").mock("A")
    async with DbosEngine(f"sqlite:///{tmp_path / 'r.sqlite'}", max_queued=2) as engine:
        for id in ("r1", "r2", "r2"):
            await engine.submit(pipeline, "Go.", run_id=id)
        with pytest.raises(DistributedRunError, match="the queue of 'a' is full"):
            await engine.submit(pipeline, "Go.", run_id="r3")
        assert (await engine.submit(pipeline, "Go.", run_id="r1")).status == "running"
        with pytest.raises(DistributedRunError, match="there is no run 'r3'"):
            await engine.status("r3")


async def test_versions_side_by_side(postgres: str) -> None:
    """Each worker takes the calls of its own version, from one database."""

    def version(*more: Any) -> Pipeline:
        return Pipeline("job", Agent("a").mock("A"), Pipeline("far", *more).execution_boundary())

    one, two = (
        version(Agent("b").mock("One")),
        version(Agent("b").mock("B"), Agent("c").mock("Two")),
    )
    async with DbosEngine(postgres, poll_seconds=0.02) as engine:
        for pipeline in (two, one):
            await engine.submit(pipeline, "Go.", run_id=f"r{pipeline is two:d}")
    for pipeline, id, said in ((one, "r0", "One"), (two, "r1", "Two")):
        async with DbosEngine(postgres, poll_seconds=0.02) as engine:
            engine.register(pipeline)
            serving = asyncio.create_task(engine.serve())
            async with asyncio.timeout(SECONDS):
                while not (stands := await engine.status(id)).is_over:  # noqa: ASYNC110  # of a thread
                    await asyncio.sleep(0.02)
            assert (stands.status, stands.answer) == ("completed", said)
            other = await engine.status("r1" if id == "r0" else "r0")
            assert other.status == ("running" if id == "r0" else "completed")
            with pytest.raises(DistributedRunError, match="of another version of job"):
                await engine.submit(two if pipeline is one else one, "Go.", run_id=id)
            serving.cancel()
            await asyncio.wait([serving])


async def test_a_call_in_the_queue_of_another_version_goes_back(
    postgres: str, caplog: pytest.LogCaptureFixture
) -> None:
    mine, its = Agent("mine").mock("Mine"), Agent("other").mock("Other")
    calls = create_engine(postgres.replace("postgresql:", "postgresql+psycopg:"))
    async with DbosEngine(postgres, poll_seconds=0.02) as engine:
        await engine.submit(its, "Go.", run_id="r")
        queue = f"{split(mine).fingerprint[:16]}/mine"
        table = "dbos.workflow_status"
        with calls.begin() as db:
            own = db.execute(text(f"select queue_name from {table}")).scalar_one()  # of ours
            db.execute(text(f"update {table} set queue_name = :queue"), {"queue": queue})  # of ours
    async with DbosEngine(postgres, poll_seconds=0.02) as engine:
        engine.register(mine)
        serving = asyncio.create_task(engine.serve())
        async with asyncio.timeout(SECONDS):
            while "goes back to the queue of its version" not in caplog.text:  # noqa: ASYNC110  # of a thread
                await asyncio.sleep(0.02)
        await engine.submit(mine, "Go.", run_id="after")
        async with asyncio.timeout(SECONDS):
            while not (await engine.status("after")).is_over:  # noqa: ASYNC110  # of a thread
                await asyncio.sleep(0.02)
        serving.cancel()
        await asyncio.wait([serving])
        with calls.begin() as db:
            found = text(
                f"select queue_name from {table} where workflow_uuid like 'r#%'"
            )  # of ours
            assert db.execute(found).scalar_one() == own
        assert (await engine.status("r")).status == "running"
    calls.dispose()


async def test_a_bug_in_a_workers_watch_is_logged_once_with_its_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    looks: list[Exception] = []
    errors = {2: OSError("the disk is full"), 3: KeyError("row"), 4: KeyError("row")}

    def look(_: Runtime) -> None:
        looks.append(errors.get(len(looks) + 1, ValueError()))
        if len(looks) in errors:
            raise looks[-1]

    monkeypatch.setattr(Runtime, "_end_cancelled", look)
    monkeypatch.setattr(_runtime, "_WATCH", 0.01)
    pipeline = Agent("a").mock("A")
    async with DbosEngine(f"sqlite:///{tmp_path / 'e.db'}", poll_seconds=0.02) as engine:
        engine.register(pipeline)
        serving = asyncio.create_task(engine.serve())
        async with asyncio.timeout(SECONDS):
            while len(looks) < 5:  # noqa: ASYNC110  # of a thread
                await asyncio.sleep(0.01)
        serving.cancel()
        await asyncio.wait([serving])
    told = [each for each in caplog.records if "look after its database" in each.msg]
    assert [bool(each.exc_info) for each in told] == [False, True]
    assert "KeyError: 'row'" in told[1].getMessage()

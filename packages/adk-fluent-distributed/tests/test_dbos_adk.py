"""Runs on DBOS and SQLite: durable, begun once, answered and cancelled from anywhere."""

from __future__ import annotations

import asyncio
import json
import socket
import sqlite3
import sys
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any, cast

import pytest
from distributed_jobs import asks
from pydantic import create_model
from sqlalchemy import Engine, event

from adk_fluent import Agent, FanOut, Middleware
from adk_fluent.builders import Pipeline, State
from adk_fluent.distributed import (
    BoundaryError,
    DbosEngine,
    DistributedRunError,
    EngineError,
    RunStatus,
    ScalingConfig,
    SegmentEngine,
    _dbos,
    idempotency_key,
)
from adk_fluent.distributed._runtime import Runtime
from adk_fluent.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x
]
SECONDS = 120


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'runs.sqlite'}"


@pytest.fixture
async def engine(url: str) -> AsyncIterator[DbosEngine]:
    async with DbosEngine(url, poll_seconds=0.02) as made:
        yield made


async def over(engine: DbosEngine, run_id: str) -> RunStatus:
    async with asyncio.timeout(SECONDS):
        while not (stands := await engine.status(run_id)).is_over:  # noqa: ASYNC110  # of another process
            await asyncio.sleep(0.02)
    return stands


def doubled(calls: list[str]) -> Pipeline:
    def note(state: State) -> dict[str, object]:
        calls.append(idempotency_key())
        return {"noted": len(calls)}

    heavy = Pipeline("heavy", Agent("b").mock("B").writes("b"), note).execution_boundary()
    return Agent("a").mock("A").writes("a") >> heavy >> Agent("c").mock("C")


async def test_a_run_in_this_process(engine: DbosEngine) -> None:
    calls: list[str] = []
    pipeline = doubled(calls)
    assert isinstance(engine, SegmentEngine)
    result = await engine.run(pipeline, "Go.", run_id="r", state={"given": {"deep": [1]}})
    assert (result.text, result.state) == (
        "C",
        {"given": {"deep": [1]}, "a": "A", "b": "B", "noted": 1},
    )
    assert [event.node for event in result] == ["a", "b", "note", "c"]
    again = await engine.run(pipeline, "Go.", run_id="r")
    assert ([e.content for e in again], calls) == (
        [e.content for e in result],
        ["r:heavy:s1.s1/note"],
    )
    with pytest.raises(DistributedRunError, match="of another pipeline"):
        await engine.run(Agent("z").mock("Z"), "Go.", run_id="r")
    with pytest.raises(DistributedRunError, match="of another user"):
        await engine.run(pipeline, "Go.", run_id="r", user_id="bob")
    with pytest.raises(DistributedRunError, match="there is no run 'R'"):
        await engine.status("R")
    with pytest.raises(UsageError, match="run_id= is a text"):
        await engine.status("a%")
    for names in (list[str](), "heavy"):
        with pytest.raises(UsageError, match="takes the names of segments"):
            await engine.serve(names)


def meeting(keys: list[str]) -> FanOut:
    """Branches of three segments that wait for each other, and note their keys."""
    there = asyncio.Barrier(3)

    def branch(name: str) -> Pipeline:
        async def meet(state: State) -> None:
            keys.append(idempotency_key())
            async with asyncio.timeout(SECONDS):
                await there.wait()

        return Pipeline(name, meet)

    one, two = branch("one").execution_boundary(), branch("two").execution_boundary()
    return FanOut(one, two, branch("three")).named("job")


@pytest.mark.parametrize("queued", [False, True])
async def test_branches_of_different_segments_run_at_once(engine: DbosEngine, queued: bool) -> None:
    keys: list[str] = []
    pipeline = meeting(keys)
    if queued:
        await engine.submit(pipeline, "Go.", run_id="r")
        serving = asyncio.ensure_future(engine.serve())
        stands = await over(engine, "r")
        serving.cancel()
        assert stands.status == "completed"
    else:
        await engine.run(pipeline, "Go.", run_id="r")
    assert sorted(keys) == ["r:job:p2.s0/meet", "r:one:p0.s0/meet", "r:two:p1.s0/meet"]


async def test_a_branch_whose_calls_are_counted_goes_through_its_queue(engine: DbosEngine) -> None:
    """A worker takes calls of a scaled segment from its queue alone, and the key is the same."""
    keys: list[str] = []

    def note(state: State) -> None:
        keys.append(idempotency_key())

    one = Pipeline("one", note).execution_boundary(scaling=ScalingConfig())
    pipeline = FanOut(one, Pipeline("two", note).execution_boundary()).named("job")
    await engine.submit(pipeline, "Go.", run_id="r")
    serving = asyncio.ensure_future(engine.serve())
    stands = await over(engine, "r")
    serving.cancel()
    assert (stands.status, stands.segment) == ("completed", "one")
    assert keys == ["r:two:p1.s0/note", "r:one:p0.s0/note"]


async def test_questions_are_answered_from_anywhere(engine: DbosEngine, url: str) -> None:
    asked = await engine.run(asks, "Go.", run_id="r")
    assert [each.message for each in asked.pending] == ["Go on?"]
    other = DbosEngine(url)
    (question,) = (await other.status("r")).pending
    assert (await other.answer("r", question.answer(True))).status == "running"
    result = await engine.run(asks, "Go.", run_id="r")
    assert (result.text, result.pending) == ("Two.", [])
    with pytest.raises(DistributedRunError, match="does not wait for an answer"):
        await other.answer("r", question.answer(True))


async def test_nothing_is_kept_as_pickle(engine: DbosEngine, tmp_path: Path) -> None:
    await engine.run(doubled([]), "Grüß dich.", run_id="r", state={"n": 2**60})
    with closing(sqlite3.connect(tmp_path / "runs.sqlite")) as db:
        codecs = db.execute("select serialization from workflow_status").fetchall()
        texts = [
            text
            for column, table in (
                ("inputs", "workflow_input"),
                ("output", "workflow_output"),
                ("output", "operation_outputs"),
            )
            for (text,) in db.execute(f"select {column} from {table}")  # ours
        ]
    assert codecs == [("adk_fluent_json",)]
    kept = [json.loads(text) for text in texts]
    assert len(kept) == 5  # the call, its result, and three segments
    assert "Grüß dich." in str(kept[0])


async def test_a_failed_step_is_run_again(engine: DbosEngine) -> None:
    calls: list[str] = []

    def flaky(state: State) -> None:
        calls.append("")
        if len(calls) == 1:
            raise ConnectionError("no network")

    pipeline = Agent("a").mock("A") >> flaky
    with pytest.raises(DistributedRunError, match="run 'r' failed") as raised:
        await engine.run(pipeline, "Go.", run_id="r")
    assert "ConnectionError: no network" in str(raised.value)
    await engine.answer("r")
    assert (await engine.run(pipeline, "Go.", run_id="r")).text == "A"
    assert len(calls) == 2


async def test_workers_take_segments_from_queues(url: str) -> None:
    calls: list[str] = []
    pipeline = doubled(calls)
    async with DbosEngine(url, poll_seconds=0.02) as engine:
        engine.register(pipeline)
        ready = asyncio.Event()
        serving = asyncio.create_task(engine.serve(ready=ready.set))
        await asyncio.wait_for(ready.wait(), SECONDS)
        submitter = DbosEngine(url)
        await asyncio.gather(*(submitter.submit(pipeline, "Go.", run_id="r") for _ in range(3)))
        stands = await over(submitter, "r")
        assert (stands.status, stands.answer) == ("completed", "C")
        assert stands.state == {"a": "A", "b": "B", "noted": 1}
        assert calls == ["r:heavy:s1.s1/note"]
        with pytest.raises(EngineError, match="runs a DbosEngine already"):
            await submitter.run(pipeline, "Go.", run_id="other")
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


async def test_a_run_of_another_schema_waits_for_its_own_worker(url: str) -> None:
    """Two versions that differ in nothing but the type of an answer."""

    def version(kind: Any) -> Pipeline:
        asked = Agent("a").output_schema(create_model("Answer", n=(kind, ...))).mock('{"n": 1}')
        return Pipeline("job", asked.execution_boundary(), Agent("b").mock("Done"))

    old, new = version(int), version(int | str)
    async with DbosEngine(url, poll_seconds=0.02) as engine:
        await engine.submit(old, "Go.", run_id="old")
    async with DbosEngine(url, poll_seconds=0.02) as engine:
        for pipeline, run_id, status in ((new, "new", "running"), (old, "last", "completed")):
            await engine.submit(pipeline, "Go.", run_id=run_id)
            serving = asyncio.create_task(engine.serve())
            assert (await over(engine, run_id)).status == "completed"
            if status == "completed":
                await over(engine, "old")
            assert (await engine.status("old")).status == status
            serving.cancel()
            await asyncio.wait([serving])


async def test_a_worker_of_one_segment_leaves_the_others(url: str) -> None:
    calls: list[str] = []
    pipeline = doubled(calls)
    async with DbosEngine(url, poll_seconds=0.02) as engine:
        engine.register(pipeline)
        await engine.submit(pipeline, "Go.", run_id="r")
        for segment, until in (("pipeline", "heavy"), ("heavy", "pipeline")):
            serving = asyncio.create_task(engine.serve([segment]))
            async with asyncio.timeout(SECONDS):
                while (await engine.status("r")).segment != until:  # noqa: ASYNC110  # of another process
                    await asyncio.sleep(0.02)
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
        assert (await engine.status("r")).status == "running"
        assert len(calls) == 1
        with pytest.raises(BoundaryError, match="has no segment 'light'"):
            await engine.serve(["light"])


async def test_a_running_step_is_cancelled(engine: DbosEngine) -> None:
    began, ended = asyncio.Event(), list[str]()
    loop = asyncio.get_running_loop()

    async def hang(state: State) -> None:
        loop.call_soon_threadsafe(began.set)
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    def after(state: State) -> None:
        ended.append("after")

    pipeline = Agent("a").mock("A") >> hang >> after
    running = asyncio.create_task(engine.run(pipeline, "Go.", run_id="r"))
    await asyncio.wait_for(began.wait(), SECONDS)
    assert (await engine.cancel("r")).status == "cancelled"
    with pytest.raises(DistributedRunError, match="run 'r' was cancelled"):
        await asyncio.wait_for(running, SECONDS)
    assert ended == ["cancelled"]
    assert (await engine.cancel("r")).status == "cancelled"


def hanging_once(began: asyncio.Event, calls: list[str]) -> Pipeline:
    loop = asyncio.get_running_loop()

    async def hang(state: State) -> dict[str, object]:
        calls.append(idempotency_key())
        loop.call_soon_threadsafe(began.set)
        if len(calls) == 1:
            await asyncio.sleep(3600)
        return {"done": True}

    return Agent("a").mock("A") >> hang


async def test_a_run_goes_on_when_its_engine_was_closed(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_dbos, "_LOOK", 3600.0)  # who waits is told at once
    began, calls = asyncio.Event(), list[str]()
    pipeline = hanging_once(began, calls)
    async with DbosEngine(url, poll_seconds=0.02) as engine:
        running = asyncio.create_task(engine.run(pipeline, "Go.", run_id="r"))
        await asyncio.wait_for(began.wait(), SECONDS)
    with pytest.raises(EngineError, match="the engine was closed while run 'r' went on"):
        await asyncio.wait_for(running, SECONDS)
    async with DbosEngine(url, poll_seconds=0.02) as other:
        result = await asyncio.wait_for(other.run(pipeline, "Go.", run_id="r"), SECONDS)
    assert (result.text, result.state) == ("A", {"done": True})
    assert calls == ["r:pipeline:s1/hang"] * 2


async def test_a_worker_that_stops_hands_over_what_it_runs(url: str) -> None:
    began, calls = asyncio.Event(), list[str]()
    pipeline = hanging_once(began, calls)
    for until in ("began", "over"):
        engine = DbosEngine(url, poll_seconds=0.02)
        engine.register(pipeline)
        serving = asyncio.create_task(engine.serve())
        await engine.submit(pipeline, "Go.", run_id="r")
        await asyncio.wait_for(began.wait(), SECONDS)
        if until == "over":
            assert (await over(engine, "r")).status == "completed"
        with pytest.raises(EngineError, match="serves already"):
            await engine.serve()
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
    assert calls == ["r:pipeline:s1/hang"] * 2


async def test_a_run_that_two_begin_at_once(engine: DbosEngine) -> None:
    calls: list[str] = []
    runs = [engine.run(doubled(calls), "Go.", run_id="r") for _ in range(3)]
    async with asyncio.timeout(SECONDS):
        assert [each.text for each in await asyncio.gather(*runs)] == ["C"] * 3
    assert len(calls) == 1


async def test_who_waits_for_a_run_is_told_when_it_ends_here(
    engine: DbosEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody looks for its end in the meantime; calls are found one after the other.

    A queue that nothing is put into, of a segment without a step, is not looked into.
    """
    monkeypatch.setattr(_dbos, "_LOOK", 3600.0)
    monkeypatch.setattr(_dbos, "_CALLS", 1)
    pipeline, ready = doubled([]), asyncio.Event()
    steps = [Agent(name).mock(name.upper()).execution_boundary() for name in ("d", "e")]
    hollow = Pipeline("desk", *steps)
    engine.register(hollow)
    async with asyncio.timeout(SECONDS):
        assert (await engine.run(pipeline, "Go.", run_id="here")).text == "C"
        assert (await engine.submit(pipeline, "Go.", run_id="queued")).status == "running"
        serving = asyncio.create_task(engine.serve(ready=ready.set))
        await ready.wait()
        monkeypatch.setattr(engine, "_poll", 3600.0)  # of its queues it is another one
        assert (await engine.run(pipeline, "Go.", run_id="queued")).text == "C"
        await engine.submit(hollow, "Go.", run_id="hollow")
        assert (await engine.run(hollow, "Go.", run_id="hollow")).text == "E"
        runtime = engine._runtime
        assert runtime is not None
        served = {queue.partition("/")[2] for queue in runtime.queues}
        assert served == {"pipeline", "heavy", "d", "e", "*"}
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


async def test_a_look_at_a_run_reads_no_others(engine: DbosEngine) -> None:
    """A search for what ids begin with would read the calls of all runs."""
    await engine.run(doubled([]), "Go.", run_id="r")
    heard: list[str] = []

    def hear(*given: Any) -> None:
        heard.append(given[2])

    event.listen(Engine, "before_cursor_execute", hear)
    try:
        await engine.status("r")
    finally:
        event.remove(Engine, "before_cursor_execute", hear)
    assert any("workflow_uuid IN" in each for each in heard)
    assert not any("LIKE" in each for each in heard)  # of what the worker here says neither


async def test_a_waiting_run_is_cancelled(engine: DbosEngine) -> None:
    await engine.run(asks, "Go.", run_id="r", state={"n": 1})
    stands = await engine.cancel("r")
    assert (stands.status, stands.answer, stands.state) == ("cancelled", "One.", {"n": 1})
    with pytest.raises(DistributedRunError, match="does not wait for an answer"):
        await engine.answer("r")


async def test_no_more_workers_than_a_segment_may_have(url: str, tmp_path: Path) -> None:
    from adk_fluent.distributed._database import Address, Database
    from adk_fluent.distributed._runtime import queue_of  # imports DBOS
    from adk_fluent.distributed._workers import Workers  # with it

    step = Agent("heavy").mock("H").execution_boundary(scaling=ScalingConfig(max_instances=1))
    async with DbosEngine(url) as engine:
        plan = engine.register(Agent("a").mock("A") >> step)
        other = Workers(Database(Address.of(url)), lease=30)
        other.join({queue_of(plan.fingerprint, "heavy"): None})
        with pytest.raises(BoundaryError, match="'heavy' has all the workers it may have"):
            await engine.serve()
        other.leave()
        ready = asyncio.Event()
        serving = asyncio.create_task(engine.serve(ready=ready.set))
        await asyncio.wait_for(ready.wait(), SECONDS)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: DbosEngine("mysql://u:pa55@host/db"), EngineError),
        (lambda: DbosEngine("postgresql://"), EngineError),
        (lambda: DbosEngine("sqlite:///"), EngineError),
        (lambda: DbosEngine("sqlite:///:memory:"), EngineError),
        (lambda: DbosEngine(cast("Any", 3)), EngineError),
        (lambda: DbosEngine("sqlite:///r", concurrency=0), UsageError),
        (lambda: DbosEngine("sqlite:///r", lease_seconds=-1), UsageError),
    ],
)
def test_arguments_of_no_use(make: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as raised:
        make()
    assert "pa55" not in str(raised.value)


async def test_a_database_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "runs.sqlite").write_text("This is no database, but a text of some length.\n" * 99)
    engine = DbosEngine(f"sqlite:///{tmp_path / 'runs.sqlite'}")
    with pytest.raises(EngineError, match="the database of the engine cannot be used") as raised:
        await engine.submit(Agent("a").mock("A"), "Go.")
    assert "file is not a database" in str(raised.value)
    nowhere = DbosEngine(f"sqlite:///{tmp_path / 'no' / 'such' / 'folder.sqlite'}")
    with pytest.raises(EngineError, match="the database of the engine cannot be used"):
        await nowhere.status("r")


async def test_a_server_that_does_not_run() -> None:
    pipeline = Agent("a").mock("A")
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        engine = DbosEngine(f"postgresql://u:pa55@127.0.0.1:{nobody.getsockname()[1]}/runs")
        engine.register(pipeline)
        for call in (
            lambda: engine.submit(pipeline, "Go.", run_id="r"),
            lambda: engine.run(pipeline, "Go.", run_id="r"),
            lambda: engine.answer("r"),
            engine.serve,
        ):
            with pytest.raises(EngineError, match="see that the server runs") as raised:
                await call()
            assert "pa55" not in str(raised.value)


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of a file's size")
async def test_a_full_disk(engine: DbosEngine, tmp_path: Path) -> None:
    import resource

    def grow(state: State) -> dict[str, object]:
        return {"big": "x" * 300_000}

    pipeline = Agent("a").mock("A") >> Agent("b").mock("B").execution_boundary()
    await engine.run(pipeline, "Go.", run_id="before")
    await engine.run(Pipeline("grow", grow), "Go.", run_id="grown")
    written = [tmp_path / f"{name}.sqlite-wal" for name in ("runs.sessions", "runs")]
    grown, calls = (each.stat().st_size for each in written)
    assert grown > calls + 300_000  # it is the sessions that have no room
    was = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (grown + 4096, was[1]))
    try:
        with pytest.raises(EngineError, match="the database of the engine cannot be used"):
            await engine.submit(pipeline, "z" * grown, run_id="none")
        with pytest.raises(DistributedRunError, match="OperationalError"):
            await engine.run(pipeline, "Go.", run_id="r")
        assert (await engine.status("r")).status == "failed"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, was)
    await engine.answer("r")
    assert (await engine.run(pipeline, "Go.", run_id="r")).text == "B"
    with pytest.raises(DistributedRunError, match="there is no run 'none'"):
        await engine.status("none")


async def test_a_corrupt_row(engine: DbosEngine, tmp_path: Path) -> None:
    await engine.run(Agent("a").mock("A"), "Go.", run_id="r")
    with closing(sqlite3.connect(tmp_path / "runs.sqlite")) as db, db:
        (kept,) = db.execute("select output from workflow_output").fetchone()
        db.execute('update workflow_output set output = "[1]"')
    with pytest.raises(EngineError, match="holds no result of a segment"):
        await engine.status("r")
    with closing(sqlite3.connect(tmp_path / "runs.sqlite")) as db, db:
        db.execute("update workflow_output set output = ?", (kept,))
    assert (await engine.status("r")).answer == "A"
    with closing(sqlite3.connect(tmp_path / "runs.sqlite")) as db, db:
        db.execute('update workflow_input set inputs = \'{"args": [{"newer": 1}]}\'')
    with pytest.raises(EngineError, match="holds no call of a segment"):
        await engine.status("r")


@pytest.mark.parametrize("run_id", ["", "a/b", "x" * 201, "a#1", 3])
async def test_an_id_of_no_use(engine: DbosEngine, run_id: Any) -> None:
    with pytest.raises(UsageError, match="run_id= is a text"):
        await engine.run(Agent("a").mock("A"), "Go.", run_id=run_id)


async def test_there_is_nothing_to_serve(engine: DbosEngine) -> None:
    with pytest.raises(EngineError, match="nothing to serve"):
        await engine.serve()
    with pytest.raises(DistributedRunError, match="there is no run 'r'"):
        await engine.status("r")


async def test_another_pipeline_with_the_same_steps_is_refused(engine: DbosEngine) -> None:
    def says(text: str, scaling: ScalingConfig | None = None) -> Pipeline:
        b = Agent("b").instruct(text).mock("B").execution_boundary(scaling=scaling)
        return Agent("a").mock("A") >> b

    first = says("Be kind.")
    assert (await engine.run(first, "Go.", run_id="r1")).text == "B"
    assert (await engine.run(says("Be kind."), "Go.", run_id="r2")).text == "B"  # built anew
    with pytest.raises(BoundaryError, match="another pipeline with the steps of 'pipeline'"):
        await engine.run(says("Be rude."), "Go.", run_id="r3")
    with pytest.raises(BoundaryError, match="other settings"):
        engine.register(says("Be kind.", ScalingConfig(max_instances=1)))
    assert engine.register(says("Be rude.").named("rude")).name == "rude"


async def test_closing_waits_for_who_takes_a_call(
    engine: DbosEngine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from dbos._event_loop import BackgroundEventLoop

    taking, stopped = threading.Event(), threading.Event()
    submit, stop = BackgroundEventLoop.submit_coroutine, BackgroundEventLoop.stop

    def late(self: BackgroundEventLoop, coroutine: Any) -> Any:
        taking.set()
        stopped.wait(0.3)
        return submit(self, coroutine)

    def stopping(self: BackgroundEventLoop, timeout: float | None = 10.0) -> None:
        stop(self, timeout)
        stopped.set()

    with monkeypatch.context() as patched:
        patched.setattr(BackgroundEventLoop, "submit_coroutine", late)
        patched.setattr(BackgroundEventLoop, "stop", stopping)
        pipeline = doubled([])
        await engine.submit(pipeline, "Go.", run_id="r")
        serving = asyncio.ensure_future(engine.serve())
        assert await asyncio.to_thread(taking.wait, SECONDS)
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
    assert [each.getMessage() for each in caplog.records if each.name == "dbos"] == []
    stands = await engine.status("r")
    assert (stands.status, stands.error) == ("running", None)


async def test_a_call_that_begins_as_its_engine_closes_is_left_to_others(
    engine: DbosEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dbos._event_loop import BackgroundEventLoop

    taking, closing, taken = threading.Event(), threading.Event(), threading.Event()
    submit, stop = BackgroundEventLoop.submit_coroutine, BackgroundEventLoop.stop

    def go_on(_: Runtime) -> None:
        """Let threads take calls on."""

    def late(self: BackgroundEventLoop, coroutine: Any) -> Any:
        taking.set()
        closing.wait(SECONDS)
        try:
            return submit(self, coroutine)
        finally:
            taken.set()

    def stopping(self: BackgroundEventLoop, timeout: float | None = 10.0) -> None:
        closing.set()
        taken.wait(SECONDS)
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0.05), self._loop).result()
        stop(self, timeout)

    pipeline = doubled([])
    with monkeypatch.context() as patched:
        patched.setattr(BackgroundEventLoop, "submit_coroutine", late)
        patched.setattr(BackgroundEventLoop, "stop", stopping)
        patched.setattr(Runtime, "_take_no_more", go_on)
        await engine.submit(pipeline, "Go.", run_id="r")
        serving = asyncio.ensure_future(engine.serve())
        assert await asyncio.to_thread(taking.wait, SECONDS)
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
    stands = await engine.status("r")
    assert (stands.status, stands.error) == ("running", None)


async def test_an_engine_whose_launch_is_cancelled_is_closed(
    engine: DbosEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    launching, go_on = threading.Event(), threading.Event()
    launch = Runtime.launch

    def slow(self: Runtime, *given: Any) -> None:
        launching.set()
        go_on.wait(SECONDS)
        launch(self, *given)

    monkeypatch.setattr(Runtime, "launch", slow)
    pipeline = doubled([])
    running = asyncio.ensure_future(engine.run(pipeline, "Go.", run_id="r"))
    assert await asyncio.to_thread(launching.wait, SECONDS)
    running.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await engine.run(pipeline, "Go.", run_id="r")).text == "C"  # one works at a time


def test_what_lives_in_one_process_alone_is_told_of_runs_without_boundaries(
    engine: DbosEngine, caplog: pytest.LogCaptureFixture
) -> None:
    class Counts(Middleware):
        __process_memory__ = "what it counted; keep it in a file"

    engine.register(Agent("a").mock("A").middleware(Counts()))
    (told,) = caplog.messages
    assert told.startswith("a run that goes on in another process begins anew there: ")
    assert "warning[DST005]: `Counts` keeps in the memory of each process what it counted" in told
    engine.register(Agent("b").mock("B").middleware(Counts()).allow("DST005"))
    assert len(caplog.messages) == 1

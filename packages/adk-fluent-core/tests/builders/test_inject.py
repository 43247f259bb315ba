"""Resources: what a pipeline is given, who gets it, and when it is tidied up. Without ADK."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent, FanOut, Loop, Pipeline, Resource, injected
from adk_fluent.builders import State, tap
from adk_fluent.errors import UsageError
from adk_fluent.ir import AppNode, assert_legal
from adk_fluent.testing import mock_backend

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator


class Log(list[str]):
    """What happened, in order; makes things that note their beginning and end."""

    def sync(self, name: str) -> Callable[[], Generator[str]]:
        def make() -> Generator[str]:
            self.append(f"open {name}")
            try:
                yield name
            finally:
                self.append(f"close {name}")

        return make

    def later(self, name: str) -> Callable[[], AsyncGenerator[str]]:
        async def make() -> AsyncGenerator[str]:
            self.append(f"open {name}")
            try:
                yield name
            finally:
                await asyncio.sleep(0)
                self.append(f"close {name}")

        return make


@pytest.fixture
def log() -> Log:
    return Log()


def use(state: State, db: Any) -> dict[str, Any]:
    """A step that writes what it was given."""
    return {"db": str(db)}


async def run(pipeline: Any, **options: Any) -> Any:
    return await pipeline.run("go", backend=mock_backend({"a": "A"}), **options)


# --- who gets what -------------------------------------------------------------------------------


async def test_an_object_is_injected_as_it_is() -> None:
    here = object()
    seen: list[object] = []

    def step(state: State, *, thing: object) -> None:
        seen.append(thing)

    await run((Agent("a") >> step).inject(thing=here))
    assert seen == [here]
    assert seen[0] is here


async def test_steps_predicates_taps_and_async_functions_get_it() -> None:
    seen: list[str] = []

    async def step(state: State, db: str) -> dict[str, str]:
        seen.append(f"step {db}")
        return {"k": db}

    def done(state: State, db: str) -> bool:
        seen.append(f"until {db}")
        return True

    def look(state: State, db: str) -> None:
        seen.append(f"tap {db}")

    body = Pipeline(step, tap(look))
    loop = (body * 3).inject(db="D")
    await run(Loop(body, until=done, max=3).inject(db="D"))
    assert seen == ["step D", "tap D", "until D"]
    assert isinstance(loop.to_ir(), AppNode)


def plain(state: State) -> dict[str, int]:
    return {"plain": 1}


async def test_who_names_none_gets_none_and_defaults_are_overridden() -> None:
    def default(state: State, db: str = "mine") -> dict[str, str]:
        return {"default": db}

    def greedy(state: State, **rest: Any) -> dict[str, Any]:
        return {"greedy": len(rest)}

    result = await run((Pipeline(plain, default, greedy)).inject(db="D"))
    assert result.state == {"plain": 1, "default": "D", "greedy": 0}
    assert (await run(Pipeline(default))).state == {"default": "mine"}


async def test_parts_bring_theirs_along() -> None:
    one = Pipeline("one", use).inject(db="D")
    other = Agent("a").inject(other=1)
    whole = (other >> one) | Pipeline(plain)
    node = whole.to_ir()
    assert isinstance(node, AppNode)
    assert [each.name for each in node.resources] == ["other", "db"]
    assert_legal(node)
    assert (await run(whole)).state["db"] == "D"
    assert (await run(Pipeline("again", node))).state["db"] == "D"  # IR as a step


async def test_a_snapshot_keeps_what_it_had() -> None:
    part = Pipeline("part", use).inject(db="first")
    whole = Agent("a") >> part
    part.inject(late=1)
    node = whole.to_ir()
    assert isinstance(node, AppNode)
    assert [each.name for each in node.resources] == ["db"]


async def test_branches_share_one(log: Log) -> None:
    def other(state: State, db: str) -> dict[str, str]:
        return {"other": db}

    result = await run(FanOut(use, other).inject(db=Resource(log.sync("db"))))
    assert result.state == {"db": "db", "other": "db"}
    assert log == ["open db", "close db"]


async def test_it_is_never_in_state(log: Log) -> None:
    result = await run(Pipeline(use).inject(db=Resource(log.sync("db"), scope="session")))
    assert result.state == {"db": "db"}


async def test_code_that_nothing_is_handed_to_asks_for_it() -> None:
    def step(state: State) -> dict[str, Any]:
        return {"found": injected("db")}

    def asks(state: State) -> None:
        injected("nothing")

    assert (await run(Pipeline(step).inject(db="D"))).state == {"found": "D"}
    with pytest.raises(UsageError, match="no resource 'nothing' here") as caught:
        await run(Pipeline(asks).inject(db="D"))
    assert "'db'" in str(caught.value.found)
    with pytest.raises(UsageError, match="no resource 'db' here"):
        injected("db")


# --- factories -----------------------------------------------------------------------------------


class Connection:
    """A context manager, as drivers of databases have it."""

    def __init__(self, log: Log) -> None:
        self.log = log

    def __enter__(self) -> str:
        self.log.append("enter")
        return "entered"

    def __exit__(self, *error: object) -> None:
        self.log.append("exit")


def factories(log: Log) -> dict[str, tuple[Any, str]]:
    async def awaited() -> str:
        await asyncio.sleep(0)
        return "awaited"

    return {
        "function": (lambda: "made", "made"),
        "async": (awaited, "awaited"),
        "generator": (log.sync("x"), "x"),
        "async generator": (log.later("x"), "x"),
        "context manager": (lambda: Connection(log), "entered"),
        "async context manager": (contextlib.asynccontextmanager(log.later("x")), "x"),
    }


@pytest.mark.parametrize("kind", factories(Log()))
@pytest.mark.parametrize("scope", ["invocation", "session", "app"])
async def test_every_kind_of_factory(log: Log, kind: str, scope: Any) -> None:
    factory, value = factories(log)[kind]
    pipeline = Pipeline(use).inject(db=Resource(factory, scope=scope))
    assert (await run(pipeline)).state == {"db": value}
    closed = len(log) == 2
    assert closed == (scope == "invocation" and kind not in ("function", "async"))
    await pipeline.aclose()
    assert len(log) in (0, 2)


@pytest.mark.parametrize("how", ["sync", "async"])
async def test_cleanup_gets_the_instance(log: Log, how: str) -> None:
    async def later(value: str) -> None:
        await asyncio.sleep(0)
        log.append(f"cleaned {value}")

    def now(value: str) -> None:
        log.append(f"cleaned {value}")

    resource = Resource(lambda: "made", cleanup=later if how == "async" else now)
    await run(Pipeline(use).inject(db=resource))
    assert log == ["cleaned made"]


async def test_factories_get_other_resources_whatever_the_order(log: Log) -> None:
    def repository(db: str, prefix: str) -> str:
        return f"{prefix}/{db}"

    resources = {"repo": Resource(repository), "db": Resource(log.sync("db")), "prefix": "p"}

    def step(state: State, repo: str) -> dict[str, str]:
        return {"repo": repo}

    assert (await run(Pipeline(step).inject(**resources))).state == {"repo": "p/db"}


def of_cache(cache: Any) -> Any:
    return cache


def of_db(db: Any) -> Any:
    return db


async def test_resources_that_need_each_other_are_refused() -> None:
    pipeline = Pipeline(use).inject(db=Resource(of_cache), cache=Resource(of_db))
    with pytest.raises(UsageError, match="the resources 'db', 'cache' need each other"):
        await run(pipeline)


async def test_what_lives_longer_cannot_need_what_lives_shorter() -> None:
    pipeline = Pipeline(use).inject(db=Resource(of_cache, scope="app"), cache=Resource(lambda: 1))
    with pytest.raises(UsageError, match="'db' lives as long as its app, and needs 'cache'"):
        await run(pipeline)


# --- scopes --------------------------------------------------------------------------------------


async def test_scopes(log: Log) -> None:
    pipeline = Pipeline(use).inject(
        db=Resource(log.sync("run")),
        session=Resource(log.sync("session"), scope="session"),
        app=Resource(log.later("app"), scope="app"),
    )
    backend = mock_backend()
    for session in ("s1", "s1", "s2"):
        await pipeline.run("go", backend=backend, session_id=session)
    opened = [each for each in log if each.startswith("open")]
    assert opened.count("open run") == 3
    assert opened.count("open session") == 2
    assert opened.count("open app") == 1
    log.clear()
    await pipeline.aclose()
    assert sorted(log) == ["close app", "close session", "close session"]
    log.clear()
    await pipeline.run("go", backend=backend, session_id="s1")
    assert "open app" in log  # closed is not forbidden
    await pipeline.aclose()


async def test_runs_at_the_same_time_share_what_is_made_once(log: Log) -> None:
    async def slow() -> str:
        log.append("begin")
        await asyncio.sleep(0.01)
        return "slow"

    pipeline = Pipeline(use).inject(db=Resource(slow, scope="app"))
    results = await asyncio.gather(*[run(pipeline) for _ in range(5)])
    assert [each.state["db"] for each in results] == ["slow"] * 5
    assert log == ["begin"]
    await pipeline.aclose()


async def test_a_failure_to_make_it_is_told_and_tried_again(log: Log) -> None:
    def flaky() -> str:
        log.append("try")
        if len(log) == 1:
            raise ConnectionError("down")
        return "up"

    pipeline = Pipeline(use).inject(db=Resource(flaky, scope="app"))
    with pytest.raises(ConnectionError) as caught:
        await run(pipeline)
    assert any("test_inject.py" in note for note in caught.value.__notes__)
    assert (await run(pipeline)).state == {"db": "up"}
    await pipeline.aclose()


class Slow:
    """Makes something of the app when it may; a run that comes to it makes itself known."""

    def __init__(self, log: Log) -> None:
        self.log, self.come, self.may = log, asyncio.Event(), asyncio.Event()

    async def make(self) -> str:
        self.log.append("begin")
        await self.may.wait()
        return "slow"

    def pipeline(self) -> Pipeline:
        # made in their order, so that a run that has come is at `db` when it first waits
        return Pipeline(use).inject(
            come=Resource(self.come.set, scope="invocation"), db=Resource(self.make, scope="app")
        )

    async def start(self, pipeline: Pipeline) -> asyncio.Task[Any]:
        """A run that makes it, or waits for it."""
        self.come.clear()
        task = asyncio.create_task(run(pipeline))
        await self.come.wait()
        return task


async def test_who_waits_makes_it_when_the_maker_is_cancelled(log: Log) -> None:
    slow = Slow(log)
    pipeline = slow.pipeline()
    first, second = await slow.start(pipeline), await slow.start(pipeline)
    assert log == ["begin"]
    first.cancel()
    slow.may.set()
    assert (await second).state == {"db": "slow"}
    assert log == ["begin", "begin"]
    await pipeline.aclose()


async def test_who_stops_waiting_for_it_does_not_stop_the_maker(log: Log) -> None:
    slow = Slow(log)
    pipeline = slow.pipeline()
    first, second = await slow.start(pipeline), await slow.start(pipeline)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    slow.may.set()
    assert (await first).state == {"db": "slow"}
    assert (await run(pipeline)).state == {"db": "slow"}
    assert log == ["begin"]
    await pipeline.aclose()


async def test_closing_waits_for_what_is_being_made(log: Log) -> None:
    begun, may = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncGenerator[str]:
        begun.set()
        await may.wait()
        log.append("open")
        yield "slow"
        log.append("close")

    pipeline = Pipeline(use).inject(db=Resource(slow, scope="app"))
    running = asyncio.create_task(run(pipeline))
    await begun.wait()
    closing = asyncio.create_task(pipeline.aclose())
    await asyncio.sleep(0)  # it begins, and waits
    may.set()
    await closing
    assert log == ["open", "close"]
    await running


def test_an_async_one_is_made_for_each_event_loop(log: Log) -> None:
    pipeline = Pipeline(use).inject(
        db=Resource(log.later("async"), scope="app"), other=Resource(log.sync("sync"), scope="app")
    )
    for _ in range(2):
        asyncio.run(run(pipeline))
    assert log.count("open async") == 2
    assert log.count("open sync") == 1
    asyncio.run(pipeline.aclose())
    assert log.count("close sync") == 1


# --- tidying up ----------------------------------------------------------------------------------


async def test_it_is_tidied_up_in_reverse_whatever_happens(log: Log) -> None:
    def fails(state: State, db: str, other: str) -> None:
        log.append("boom")
        raise ValueError("boom")

    async def hangs(state: State) -> None:
        await asyncio.Event().wait()

    resources = {"db": Resource(log.sync("db")), "other": Resource(log.later("other"))}
    every = ["open db", "open other", "boom", "close other", "close db"]
    with pytest.raises(ValueError, match="boom"):
        await run(Pipeline(fails).inject(**resources))
    assert log == every
    log.clear()
    task = asyncio.create_task(run(Pipeline(hangs).inject(**resources)))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log == [each for each in every if each != "boom"]
    log.clear()
    stream = Pipeline(use, fails).inject(**resources).stream("go", backend=mock_backend())
    await anext(stream)
    await stream.aclose()
    assert log == [each for each in every if each != "boom"]


async def test_what_was_made_before_a_failure_is_tidied_up(log: Log) -> None:
    def down() -> None:
        raise ConnectionError("down")

    resources = {"db": Resource(log.sync("db")), "other": Resource(down)}
    with pytest.raises(ConnectionError):
        await run(Pipeline(use).inject(**resources))
    assert log == ["open db", "close db"]


async def test_an_error_of_tidying_up_says_whose_it_is() -> None:
    def made() -> Generator[int]:
        yield 1
        raise OSError("cannot close")

    def fail(value: object) -> None:
        raise OSError("cannot close")

    for db in (Resource(made), Resource(lambda: 1, cleanup=fail)):
        with pytest.raises(OSError, match="cannot close") as caught:
            await run(Pipeline(use).inject(db=db))
        [note] = caught.value.__notes__
        assert note.startswith("in node 'db' at ")


async def test_what_a_factory_catches_is_raised_all_the_same(log: Log) -> None:
    def quiet() -> Generator[int]:
        try:
            yield 1
        except ZeroDivisionError:
            log.append("caught")

    async def fails(state: State, db: Any) -> dict[str, Any]:
        return {"n": db / 0}

    with pytest.raises(ZeroDivisionError) as caught:
        await run(Pipeline(fails).inject(db=Resource(quiet)))
    assert log == ["caught"]
    assert not any("'db'" in note for note in caught.value.__notes__)


async def test_an_error_of_tidying_up_is_raised_and_the_rest_is_done(log: Log) -> None:
    def fail(value: object) -> None:
        raise OSError("cannot close")

    pipeline = Pipeline(use).inject(
        first=Resource(log.sync("first"), scope="app"),
        db=Resource(lambda: 1, scope="app", cleanup=fail),
    )
    await run(pipeline)
    with pytest.raises(OSError, match="cannot close"):
        await pipeline.aclose()
    assert log[-1] == "close first"


def test_close_for_code_that_is_not_async(log: Log) -> None:
    pipeline = Pipeline(use).inject(db=Resource(log.sync("db"), scope="app"))
    pipeline.ask("go", backend=mock_backend())
    pipeline.close()
    assert log == ["open db", "close db"]

    async def inside() -> None:
        pipeline.close()

    with pytest.raises(UsageError, match="cannot wait inside a running event loop") as caught:
        asyncio.run(inside())
    assert caught.value.help == "write: await aclose(...)"


# --- misuse --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["state", "tool_context", "ctx", "_db", "class", "callback_context", "self"]
)
def test_names_that_cannot_be(name: str) -> None:
    with pytest.raises(UsageError, match=f"no resource can be injected as '{name}'") as caught:
        Agent("a").inject(**{name: 1})
    assert str(caught.value.location).startswith(__file__)


def test_two_of_one_name() -> None:
    agent = Agent("a").inject(db=1)
    agent.inject(db=1)  # the same again
    with pytest.raises(UsageError, match="two different resources are injected as 'db'") as caught:
        agent.inject(db=2)
    assert "test_inject.py" in str(caught.value.what)
    with pytest.raises(UsageError, match="two different resources"):
        _ = agent >> Agent("b").inject(db=2)


def test_a_resource_tells_its_scope() -> None:
    assert repr(Resource(dict, scope="app")) == "<Resource dict per app>"


async def test_what_cannot_be_tidied_up_is_logged(
    log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    pipeline = Pipeline(use).inject(db=Resource(log.later("db"), scope="app"))
    await asyncio.to_thread(lambda: asyncio.run(run(pipeline)))
    with caplog.at_level(logging.WARNING, logger="adk_fluent"):
        await pipeline.aclose()
    assert "resource 'db' is left as it is: its loop is closed" in caplog.text

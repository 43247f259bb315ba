"""The stores of the cache, against a model of what they keep, and against what files go through."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections import OrderedDict
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from kit import Time

from adk_fluent.errors import UsageError
from adk_fluent.middleware import CacheStore, DiskStore, MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

# ruff: noqa: ASYNC240  # files of a test, and nobody else is waiting

KEYS = [f"key {n}" for n in range(6)]
keys = st.sampled_from(KEYS)
POSIX = pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")


@pytest.fixture(params=["memory", "disk"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., CacheStore]:
    """Makes a store of either kind; on disk, always of the same file."""

    def on_disk(**options: Any) -> CacheStore:
        return DiskStore(tmp_path / "made" / "cache.db", **options)

    return MemoryStore if request.param == "memory" else on_disk


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache.db"


# --- against a model -----------------------------------------------------------------------------


class Stores(RuleBasedStateMachine):
    """Both stores, and a dict that does the same in the plainest way."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.path = Path(self.folder.name) / "cache.db"
        self.loop = asyncio.new_event_loop()
        self.time = Time()
        self.kept: OrderedDict[str, tuple[bytes, float]] = OrderedDict()

    def do(self, what: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(what)

    @initialize(entries=st.integers(1, 5), size=st.integers(1, 40))
    def begin(self, entries: int, size: int) -> None:
        self.limits = {"max_entries": entries, "max_bytes": size}
        self.stores: list[CacheStore] = [
            MemoryStore(**self.limits, clock=self.time),
            DiskStore(self.path, **self.limits, clock=self.time),
        ]

    def fresh(self) -> None:
        for key in [k for k, (_, expires) in self.kept.items() if expires <= self.time.time]:
            del self.kept[key]

    @rule(key=keys, value=st.binary(max_size=15), ttl=st.none() | st.integers(1, 30))
    def set(self, key: str, value: bytes, ttl: int | None) -> None:
        for each in self.stores:
            self.do(each.set(key, value, ttl))
        self.fresh()
        self.kept.pop(key, None)
        if len(value) > self.limits["max_bytes"]:
            return
        self.kept[key] = (value, float("inf") if ttl is None else self.time.time + ttl)
        while (
            len(self.kept) > self.limits["max_entries"]
            or sum(len(value) for value, _ in self.kept.values()) > self.limits["max_bytes"]
        ):
            self.kept.popitem(last=False)

    @rule(key=keys)
    def get(self, key: str) -> None:
        self.fresh()
        expected = self.kept.get(key, (None,))[0]
        if key in self.kept:
            self.kept.move_to_end(key)
        assert [self.do(each.get(key)) for each in self.stores] == [expected] * 2

    @rule(seconds=st.integers(1, 20))
    def later(self, seconds: int) -> None:
        self.time.time += seconds

    @rule()
    def clear(self) -> None:
        for each in self.stores:
            self.do(each.clear())
        self.kept.clear()

    @rule(anew=st.booleans())
    def reopen(self, anew: bool) -> None:
        self.do(self.stores[1].close())
        if anew:
            self.stores[1] = DiskStore(self.path, **self.limits, clock=self.time)

    @invariant()
    def totals(self) -> None:
        """What is counted is what is there."""
        if not self.path.exists():
            return
        with closing(sqlite3.connect(self.path)) as database:
            there = database.execute(
                "SELECT COUNT(*), COALESCE(SUM(LENGTH(value)), 0) FROM replies"
            )
            assert (
                there.fetchone() == database.execute("SELECT entries, bytes FROM totals").fetchone()
            )

    def teardown(self) -> None:
        for each in getattr(self, "stores", ()):
            self.do(each.close())
        self.do(self.loop.shutdown_default_executor())
        self.loop.close()
        self.folder.cleanup()


Stores.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
test_stores_do_what_a_dict_does = Stores.TestCase


# --- what both promise ---------------------------------------------------------------------------


async def test_happy(make: Callable[..., CacheStore]) -> None:
    store = make()
    assert isinstance(store, CacheStore)
    assert await store.get("a") is None
    await store.set("a", b"\x00\xff")
    assert await store.get("a") == b"\x00\xff"
    await store.clear()
    assert await store.get("a") is None
    await store.close()


async def test_time_is_over_at_the_second(make: Callable[..., CacheStore]) -> None:
    time = Time()
    store = make(clock=time)
    await store.set("a", b"1", ttl=10)
    time.time += 9.9
    assert await store.get("a") == b"1"
    time.time += 0.1
    assert await store.get("a") is None


async def test_an_answer_that_a_clock_wrote_that_was_ahead_is_over(path: Path) -> None:
    time = Time()
    store = DiskStore(path, clock=time)
    time.time += 1_000_000
    await store.set("a", b"1", ttl=10)
    await store.set("b", b"2", ttl=10)
    await store.set("for ever", b"3")
    time.time -= 1_000_000
    assert [await store.get(key) for key in ("a", "b", "for ever")] == [None, None, b"3"]
    await store.set("c", b"4", ttl=10)
    time.time += 1_000_000  # what is over has not come back
    assert [await store.get(key) for key in ("a", "b", "for ever")] == [None, None, b"3"]
    await store.close()


async def test_what_is_over_goes_before_what_was_not_used(make: Callable[..., CacheStore]) -> None:
    time = Time()
    store = make(max_entries=2, clock=time)
    await store.set("old", b"1")
    await store.set("over", b"2", ttl=1)
    time.time += 2
    await store.set("new", b"3")
    assert [await store.get(key) for key in ("old", "over", "new")] == [b"1", None, b"3"]


async def test_what_was_not_used_for_longest_goes_first(make: Callable[..., CacheStore]) -> None:
    store = make(max_entries=2)
    await store.set("used", b"1")
    await store.set("unused", b"2")
    assert await store.get("used") == b"1"
    await store.set("new", b"3")
    assert [await store.get(key) for key in ("used", "unused", "new")] == [b"1", None, b"3"]


async def test_what_is_too_large_drives_nothing_out(make: Callable[..., CacheStore]) -> None:
    store = make(max_bytes=10)
    await store.set("a", b"1")
    await store.set("b", b"2" * 11)
    assert [await store.get(key) for key in ("a", "b")] == [b"1", None]


@pytest.mark.parametrize("limit", ["max_entries", "max_bytes"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "3", True])
def test_limits_have_to_leave_room(
    make: Callable[..., CacheStore], limit: str, value: object
) -> None:
    with pytest.raises(UsageError, match=limit):
        make(**{limit: value})


async def test_concurrent(make: Callable[..., CacheStore]) -> None:
    """Event loops of several threads, one store."""
    store = make(max_entries=10)
    failures: list[BaseException] = []

    def work(name: str) -> None:
        async def all_of_it() -> None:
            for n in range(20):
                key = f"{n % 7}"
                await store.set(key, f"{name} {n}".encode() * 3)
                found = await store.get(key)
                assert found is None or found[: len(found) // 3] * 3 == found

        try:
            asyncio.run(all_of_it())
        except BaseException as error:  # noqa: BLE001  # a thread's would be lost
            failures.append(error)

    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        await asyncio.to_thread(each.join)
    assert failures == []
    assert all([await store.get(str(n)) for n in range(7)])
    await store.close()


async def test_cancelled(make: Callable[..., CacheStore]) -> None:
    """Who gives up waiting leaves the store as good as it was."""
    store = make()
    for n in range(5):
        task = asyncio.ensure_future(store.set("a", b"%d" % n))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
    await store.set("b", b"2")
    assert await store.get("b") == b"2"
    await store.close()


# --- the file ------------------------------------------------------------------------------------

#: A process of its own: writes, or reads, or does both against others.
PROCESS = """
import asyncio, sys
from adk_fluent.middleware import DiskStore
from adk_fluent.middleware._cache import _disk

_disk._PATIENCE = 30.0  # nothing is to be lost here, however slow the machine

async def main(path, name, rounds):
    store = DiskStore(path)
    print(await store.get("left"))
    for n in range(int(rounds)):
        key = str(n % 5)
        await store.set(key, f"{name}{n}.".encode() * 3)
        found = await store.get(key)
        assert found is None or found[: len(found) // 3] * 3 == found, found
    await store.set(name, b"was here")
    await store.close()

asyncio.run(main(*sys.argv[1:]))
"""


def process(path: Path, name: str, rounds: int = 0) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROCESS, str(path), name, str(rounds)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


async def test_it_outlives_the_process(path: Path) -> None:
    store = DiskStore(path)
    await store.set("left", b"for you")
    out, err = await asyncio.to_thread(process(path, "other").communicate)
    assert (out.strip(), err) == ("b'for you'", "")
    assert await store.get("other") == b"was here"
    await store.close()


async def test_several_processes_begin_and_write_at_once(path: Path) -> None:
    others = [process(path, f"p{n}", rounds=40) for n in range(3)]
    for each in others:
        _, err = await asyncio.to_thread(each.communicate)
        assert (each.returncode, err) == (0, "")
    store = DiskStore(path)
    assert [await store.get(f"p{n}") for n in range(3)] == [b"was here"] * 3
    await store.close()


FORK = """
import asyncio, os, sys
from adk_fluent.middleware import DiskStore

store = DiskStore(sys.argv[1])
asyncio.run(store.set("a", b"parent"))
child = os.fork()
if child == 0:
    found = asyncio.run(store.get("a"))
    asyncio.run(store.set("b", b"child"))
    own = set(store._databases) == {os.getpid(), os.getppid()}  # not the connection of its parent
    os._exit(0 if own and found == b"parent" else 3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert asyncio.run(store.get("b")) == b"child"
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_it_goes_on_in_a_fork(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK, str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@POSIX
async def test_only_its_owner_can_read_it(path: Path) -> None:
    before = os.umask(0)
    try:
        store = DiskStore(path)
        await store.set("a", b"secret")
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert modes
    assert set(modes.values()) == {0o600}
    await store.close()


async def test_what_is_forgotten_is_not_left_in_the_file(path: Path) -> None:
    store = DiskStore(path)
    await store.set("a", b"a very secret answer" * 50)
    await store.close()
    assert b"a very secret answer" in path.read_bytes()
    await store.clear()
    await store.close()
    assert b"a very secret answer" not in path.read_bytes()


@pytest.mark.parametrize(
    "content",
    [b"my diary\n" * 100, b"SQLite format 3\0" + bytes(4080), b"x"],
    ids=["text", "sqlite", "short"],
)
async def test_a_file_that_is_not_ours_is_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    store = DiskStore(path)
    for doing in (store.get("a"), store.set("a", b"1"), store.clear()):
        with pytest.raises(FileExistsError, match=r"is no cache.*left as it is"):
            await doing
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]
    path.unlink()
    await store.set("a", b"1")  # and as soon as it is away, all is well
    assert await store.get("a") == b"1"
    await store.close()


async def test_the_database_of_another_program_is_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE replies (mine TEXT)")
    before = path.read_bytes()
    with pytest.raises(FileExistsError):
        await DiskStore(path).set("a", b"1")
    assert path.read_bytes() == before


async def test_the_file_of_another_version_is_left_alone(path: Path) -> None:
    store = DiskStore(path)
    await store.set("a", b"1")
    await store.close()
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 2")
    with pytest.raises(FileExistsError, match="this version"):
        await store.get("a")


ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r"
VIEW = f"""CREATE VIEW replies AS
    SELECT 'k' || n AS key, n AS value, 0 AS written, NULL AS expires, 0 AS used FROM ({ENDLESS})"""


@pytest.mark.parametrize(
    "change",
    [
        ["DROP TABLE replies", VIEW],
        ["CREATE TRIGGER more AFTER INSERT ON replies BEGIN DELETE FROM replies; END"],
        ["CREATE TABLE more (a)"],
        ["DROP TRIGGER added"],
        ["DROP INDEX by_use"],
    ],
    ids=["view", "trigger", "table", "no trigger", "no index"],
)
async def test_a_file_with_something_else_in_it_is_left_alone(
    path: Path, change: list[str]
) -> None:
    """It says that it is ours, and is not: a view may never come to an end."""
    store = DiskStore(path)
    await store.set("a", b"1")
    await store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        for statement in change:
            other.execute(statement)
    before = path.read_bytes()
    for doing in (store.get("a"), store.set("a", b"1"), store.clear()):
        with pytest.raises(FileExistsError, match=r"is no cache.*left as it is"):
            await doing
    assert path.read_bytes() == before


async def test_what_takes_too_long_is_given_up(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Such as a file that somebody has changed while it was open."""
    from adk_fluent.middleware._cache import _disk

    monkeypatch.setattr(_disk, "_DEADLINE", 0.1)
    clock = Time()
    store = DiskStore(path, clock=clock)
    await store.set("a", b"1")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("DROP TABLE replies")
        other.execute(VIEW)
    async with asyncio.timeout(20):
        for _ in range(100):  # and then it is left alone
            assert await store.get("a") is None
            await store.set("a", b"1")
    (record,) = caplog.records
    assert "takes too long" in record.message
    clock.time += 5
    path.unlink()
    await store.set("a", b"2")
    assert await store.get("a") == b"2"
    await store.close()


async def test_totals_that_somebody_else_has_changed_are_counted_again(path: Path) -> None:
    store = DiskStore(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        await store.set("a", b"1")
        other.execute("UPDATE totals SET entries = 1000000000")
    async with asyncio.timeout(20):
        await store.set("b", b"2")
    await store.set("c", b"3")
    assert await store.get("c") == b"3"
    await store.close()


async def test_many_whose_time_is_over_go_before_those_that_are_good(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few of them go at once."""
    from adk_fluent.middleware._cache import _disk

    monkeypatch.setattr(_disk, "_BATCH", 2)
    clock = Time()
    store = DiskStore(path, max_entries=10, clock=clock)
    await store.set("good", b"1")
    for n in range(9):
        await store.set(f"{n}", b"2", ttl=1)
    clock.time += 2
    for n in range(9):
        await store.set(f"new {n}", b"3")
    assert await store.get("good") == b"1"
    assert all([await store.get(f"new {n}") for n in range(9)])
    await store.close()


async def test_an_empty_file_becomes_ours(path: Path) -> None:
    path.touch()
    store = DiskStore(path)
    await store.set("a", b"1")
    assert await store.get("a") == b"1"
    await store.close()


async def test_a_damaged_file_is_put_aside(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """By who finds out; others that have it open go on with the new one."""
    store, other = DiskStore(path), DiskStore(path)
    for n in range(50):
        await store.set(f"{n}", b"answer" * 500)
    assert await other.get("1")
    await store.close()
    damaged = path.read_bytes()[:100] + b"\xa5" * 100_000
    path.write_bytes(damaged)
    with caplog.at_level(logging.WARNING, "adk_fluent"):
        assert await store.get("1") is None
        await store.set("1", b"new")
        assert await other.get("1") == b"new"
        await other.close()
        assert await store.get("1") == b"new"
    assert Path(f"{path}.damaged-1").read_bytes() == damaged  # nothing is lost
    (record,) = caplog.records
    assert "is damaged" in record.message
    assert "cache.db.damaged-1" in record.message
    await store.close()


async def test_a_file_is_not_put_aside_twice(path: Path) -> None:
    """Two find out at the same time."""
    store = DiskStore(path)
    await store.set("1", b"1")
    (database,) = store._databases.values()
    path.rename(f"{path}.damaged-1")  # the other one was first
    await DiskStore(path).set("1", b"new")
    database._put_aside(sqlite3.DatabaseError("malformed"))
    assert await store.get("1") == b"new"
    assert not Path(f"{path}.damaged-2").exists()
    await store.close()


async def test_who_deletes_the_file_has_cleared_it(path: Path) -> None:
    store = DiskStore(path)
    await store.set("a", b"1")
    path.unlink()
    assert await store.get("a") is None
    await store.set("a", b"2")
    assert await DiskStore(path).get("a") == b"2"
    await store.close()


async def test_a_file_that_is_locked_is_left_alone_for_some_seconds(
    path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits for it waits once, and all who wait do so at the same time."""
    clock = Time()
    store = DiskStore(path, clock=clock)
    await store.set("a", b"1")
    (database,) = store._databases.values()
    wait, together = database._do, threading.Barrier(4, timeout=60)
    waits: list[int] = []

    def counted(*args: Any) -> Any:
        waits.append(together.wait())
        return wait(*args)

    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        monkeypatch.setattr(database, "_do", counted)
        await asyncio.gather(*(store.get(f"{n}") for n in range(4)))
        for n in range(100):  # and now nobody waits
            assert await store.get("a") is None
            await store.set(f"{n}", b"lost")
        assert sorted(waits) == [0, 1, 2, 3]
        monkeypatch.undo()
        other.execute("ROLLBACK")
    assert await store.get("a") is None
    clock.time += 5
    assert await store.get("a") == b"1"
    assert await store.get("0") is None
    assert [each.message for each in caplog.records] == [
        f"the cache {path} is locked: models are called without it"
    ]
    await store.close()


async def test_who_waits_for_a_locked_file_keeps_nobody_else_waiting(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept can be read while another process is about to write."""
    from adk_fluent.middleware._cache import _disk

    monkeypatch.setattr(_disk, "_PATIENCE", 30.0)
    store = DiskStore(path)
    await store.set("a", b"1")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        writing = asyncio.ensure_future(store.set("b", b"2"))
        await asyncio.sleep(0.05)
        async with asyncio.timeout(10):
            assert await store.get("a") == b"1"
        assert not writing.done()
        other.execute("ROLLBACK")
    await writing
    assert await store.get("b") == b"2"
    await store.close()


async def test_what_cannot_be_written_while_somebody_reads_is_tried_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from adk_fluent.middleware._cache import _disk

    monkeypatch.setattr(_disk, "_PATIENCE", 30.0)
    store = DiskStore(path)
    await store.set("a", b"1")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT * FROM replies").fetchone()
        writing = asyncio.ensure_future(store.set("b", b"2"))
        await asyncio.sleep(0.05)
        assert not writing.done()
        other.execute("COMMIT")
    await writing
    assert await store.get("b") == b"2"
    await store.close()


async def test_who_empties_a_locked_file_is_told(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from adk_fluent.middleware._cache import _disk

    monkeypatch.setattr(_disk, "_LONG_PATIENCE", 0.01)
    store = DiskStore(path)
    await store.set("a", b"1")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            await store.clear()
    await store.close()


async def test_a_full_disk_takes_nothing_away(path: Path) -> None:
    store = DiskStore(path)
    await store.set("a", b"1")
    (database,) = store._databases.values()
    assert database._open is not None
    database._open.execute("PRAGMA max_page_count = 1")  # no more than there are
    for _ in range(2):
        with pytest.raises(sqlite3.OperationalError, match="full"):
            await store.set("a", b"2" * 100_000)
    assert await store.get("a") == b"1"
    database._open.execute("PRAGMA max_page_count = 1000000")
    await store.set("a", b"3")
    assert await store.get("a") == b"3"
    assert [each.name for each in path.parent.glob("*damaged*")] == []
    await store.close()


async def test_what_can_be_read_is_read_where_nothing_can_be_written(path: Path) -> None:
    """Not even what was used last."""
    store = DiskStore(path)
    await store.set("a", b"1")
    (database,) = store._databases.values()
    assert database._open is not None
    database._open.execute("PRAGMA query_only = ON")
    with pytest.raises(sqlite3.OperationalError):
        await store.set("b", b"2")
    assert await store.get("a") == b"1"
    await store.close()


@pytest.mark.parametrize("value", [10**15, "text", None, 1.5])
async def test_what_somebody_else_has_put_there_is_nothing(path: Path, value: object) -> None:
    store = DiskStore(path)
    await store.set("a", b"1")
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("DROP TRIGGER removed")
        database.execute("CREATE TABLE odd (key, value, written, expires, used)")
        database.execute("INSERT INTO odd VALUES ('a', ?, 0, NULL, 1)", (value,))
        database.execute("DROP TABLE replies")
        database.execute("ALTER TABLE odd RENAME TO replies")
    assert await store.get("a") is None
    await store.close()


async def test_a_path_is_where_it_was_when_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = DiskStore("cache.db")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    await store.set("a", b"1")
    assert (tmp_path / "cache.db").exists()
    assert repr(store) == f"DiskStore({str(tmp_path / 'cache.db')!r})"
    await store.close()

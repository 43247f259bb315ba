"""Ledgers: money is reserved once, whoever asks, in how many processes, and however they end."""

from __future__ import annotations

import asyncio
import os
import pickle
import random
import signal
import sqlite3
import subprocess
import sys
import time
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.cost import (
    Balance,
    Ledger,
    LedgerError,
    MemoryLedger,
    Money,
    Reservation,
    SqliteLedger,
)
from adk_fluent.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Random schedules: by default, and with --full.
FEW, MANY = 200, 10_000
LIMIT = Money.of(10)


class Time:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.at = 1_000_000.0

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.at += seconds


@pytest.fixture
def clock() -> Time:
    return Time()


@pytest.fixture
def opened(tmp_path: Path, clock: Time) -> Iterator[list[SqliteLedger]]:
    """Two ledgers on one file, as two processes have them."""
    made = [SqliteLedger(tmp_path / "l.db", ttl=60, wait=0.05, clock=clock) for _ in range(2)]
    yield made
    for each in made:
        each.close()


@pytest.fixture(params=["memory", "sqlite"])
def ledger(request: pytest.FixtureRequest, opened: list[SqliteLedger]) -> Ledger:
    return MemoryLedger() if request.param == "memory" else opened[0]


async def reserved(ledger: Ledger, usd: Any, account: str = "a") -> Reservation:
    made = await ledger.reserve(account, Money.of(usd), LIMIT)
    assert made is not None
    return made


# --- what every ledger does ----------------------------------------------------------------------


async def test_what_is_reserved_is_gone_until_it_is_settled(ledger: Ledger) -> None:
    first = await reserved(ledger, 6)
    assert await ledger.reserve("a", Money.of(5), LIMIT) is None
    assert ledger.balance("a") == Balance(Money(), Money.of(6))
    ledger.settle(first, Money.of("0.25"))
    ledger.settle(first, Money.of(9))  # once
    assert ledger.balance("a") == Balance(Money.of("0.25"), Money())
    assert (await reserved(ledger, "9.75")).amount == Money.of("9.75")
    assert await ledger.reserve("b", LIMIT, LIMIT) is not None  # another account
    assert isinstance(ledger, Ledger)


async def test_without_a_limit_it_is_reserved_in_any_case(ledger: Ledger) -> None:
    made = await ledger.reserve("a", Money.of(11), None)
    assert made is not None
    ledger.settle(made, Money.of(12))
    assert ledger.balance("a").spent == Money.of(12)
    assert await ledger.reserve("a", Money(), LIMIT) is None


async def test_sums_of_tiny_amounts_are_exact(ledger: Ledger) -> None:
    for _ in range(1000):
        ledger.settle(await reserved(ledger, "0.01"), Money.of("0.0000000375"))
    assert ledger.balance("a").spent == Money.of("0.0000375")


async def test_a_ledger_in_memory_keeps_a_new_run_beside_many_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("adk_fluent.cost._ledger._RUNS", 2)
    ledger = MemoryLedger()
    names = [f'["invocation", {n}]' for n in range(3)]
    for name in names:
        await reserved(ledger, 6, name)
    for name in names:
        assert await ledger.reserve(name, Money.of(6), LIMIT) is None


def test_a_ledger_in_memory_keeps_what_is_not_of_a_run() -> None:
    ledger = MemoryLedger()

    async def fill() -> None:
        for n in range(10_050):
            ledger.settle(await reserved(ledger, 1, f'["invocation", "b", "{n}"]'), Money.of(1))
        ledger.settle(await reserved(ledger, 1, '["user", "b", "u"]'), Money.of(1))

    asyncio.run(fill())
    assert len(ledger._runs) == 10_000
    assert ledger.balance('["user", "b", "u"]').spent == Money.of(1)
    assert pickle.loads(pickle.dumps(ledger)).balance('["user", "b", "u"]') == Balance()


# --- random schedules ----------------------------------------------------------------------------


async def _schedule(draw: random.Random, ledgers: list[Any], account: str, clock: Time) -> None:
    """Calls of two processes at once, each of which ends in some way; the money is right then.

    A process that was killed settles nothing, and nobody renews what it has reserved.
    """
    limit = Money.of(draw.randint(1, 8))
    true, alive, crashed = Money(), dict.fromkeys(ledgers, 0), 0

    async def call(ledger: Any) -> None:
        nonlocal true, crashed
        most = Money.of(draw.randint(0, 4))
        await asyncio.sleep(0)
        held = await ledger.reserve(account, most, limit)
        for _ in range(draw.randint(0, 3)):
            await asyncio.sleep(0)
        balance = ledger.balance(account)
        assert (balance.spent + balance.held).usd <= limit.usd
        if held is None:
            return
        end = draw.choice(("whole", "streamed", "cancelled", "failed", "killed"))
        if end == "killed" and isinstance(ledger, SqliteLedger):
            ledger._open.pop(held.id)
            crashed += 1
            return
        cost = Money() if end == "failed" else Money(most.usd * draw.randint(0, 4) / 4)
        try:
            if end == "cancelled":
                raise asyncio.CancelledError
        except asyncio.CancelledError:
            pass
        finally:
            ledger.settle(held, cost)
            true += cost

    await asyncio.gather(*(call(draw.choice(ledgers)) for _ in range(draw.randint(1, 12))))
    assert ledgers[0].balance(account).spent == true
    if crashed:
        for each in alive:
            each.renew()  # of the living
        clock.at += 61
    assert ledgers[0].balance(account) == Balance(true, Money())
    assert true.usd <= limit.usd


def test_no_schedule_overspends_or_leaks(
    opened: list[SqliteLedger], clock: Time, pytestconfig: pytest.Config
) -> None:
    option = pytestconfig.option
    count = option.examples or (MANY if option.full else FEW)
    draw = random.Random(option.seed)

    async def all_of_them() -> None:
        for at in range(count):
            ledgers: list[Any] = list(opened) if at % 2 else [MemoryLedger()]
            await _schedule(draw, ledgers, f"a{at}", clock)

    asyncio.run(all_of_them())


# --- a file, and processes -----------------------------------------------------------------------


async def test_processes_share_a_file(opened: list[SqliteLedger]) -> None:
    one, other = opened
    held = await reserved(one, 6)
    assert await other.reserve("a", Money.of(5), LIMIT) is None
    one.settle(held, Money.of(1))
    assert other.balance("a") == Balance(Money.of(1), Money())
    again = pickle.loads(pickle.dumps(other))
    assert again.balance("a").spent == Money.of(1)
    again.close()


async def test_a_living_process_keeps_its_reservation_however_long_the_call(
    opened: list[SqliteLedger], clock: Time
) -> None:
    one, other = opened
    held = await reserved(one, 6)
    for _ in range(10):
        clock.at += 50
        one.renew()  # its thread does so
    assert await other.reserve("a", Money.of(5), LIMIT) is None
    clock.at += 1000  # suspended: it is taken for killed, and comes back
    assert other.balance("a").held == Money()
    one.renew()
    assert other.balance("a").held == Money.of(6)
    one.settle(held, Money.of(2))
    assert other.balance("a") == Balance(Money.of(2), Money())


async def test_a_thread_renews_what_is_open(tmp_path: Path) -> None:
    renewed = asyncio.Event()
    loop = asyncio.get_running_loop()

    class Told(SqliteLedger):
        def renew(self) -> None:
            super().renew()
            loop.call_soon_threadsafe(renewed.set)

    ledger = Told(tmp_path / "l.db", ttl=0.03)
    held = await reserved(ledger, 6)
    async with asyncio.timeout(10):
        await renewed.wait()
    assert ledger.balance("a").held == Money.of(6)
    ledger.settle(held, Money())
    ledger.close()


def test_what_a_killed_process_has_reserved_expires(tmp_path: Path, clock: Time) -> None:
    path = tmp_path / "l.db"
    program = """
    import asyncio, sys
    from adk_fluent.cost import Money, SqliteLedger
    ledger = SqliteLedger(sys.argv[1], ttl=60)
    async def go():
        spent = await ledger.reserve("a", Money.of(3), Money.of(10))
        ledger.settle(spent, Money.of(2))
        await ledger.reserve("a", Money.of(6), Money.of(10))
    asyncio.run(go())
    print("held", flush=True)
    sys.stdin.read()
    """
    child = subprocess.Popen(  # this very interpreter
        [sys.executable, "-c", dedent(program), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
    finally:
        child.send_signal(signal.SIGKILL) if os.name == "posix" else child.kill()
        child.communicate()
    here = SqliteLedger(path, ttl=60)
    assert here.balance("a") == Balance(Money.of(2), Money.of(6))
    later = Time()
    later.at = time.time() + 61
    there = SqliteLedger(path, ttl=60, clock=later)
    assert asyncio.run(there.reserve("a", Money.of(8), LIMIT)) is not None
    here.close()
    there.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
async def test_a_forked_process_settles_nothing_of_its_parents(opened: list[SqliteLedger]) -> None:
    ledger = opened[0]
    await reserved(ledger, 6)
    ledger._process -= 1  # as it looks in the child
    ledger.renew()
    assert ledger._open == {}


async def test_a_file_that_others_hold_too_long_is_an_error_and_nothing_is_lost(
    opened: list[SqliteLedger],
) -> None:
    ledger = opened[0]
    held = await reserved(ledger, 6)
    with_lock = sqlite3.connect(ledger.path, isolation_level=None)
    with_lock.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match="is locked") as caught:
        await ledger.reserve("a", Money.of(1), LIMIT)
    assert "no model was called" in str(caught.value)
    ledger.settle(held, Money.of(2))
    assert ledger.balance("a") == Balance(Money(), Money.of(6))  # it stays reserved
    with_lock.execute("ROLLBACK")
    with_lock.close()
    await reserved(ledger, 1)
    assert opened[1].balance("a") == Balance(Money.of(2), Money.of(1))


async def test_a_reservation_that_was_not_committed_is_never_renewed(
    opened: list[SqliteLedger],
) -> None:
    ledger = opened[0]
    ledger.settle(await reserved(ledger, 1), Money.of(1))
    mode = ledger._connected().execute("PRAGMA journal_mode = DELETE").fetchone()
    assert mode == ("delete",)  # as on file systems that cannot do WAL
    reader = sqlite3.connect(ledger.path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM accounts").fetchall()  # without WAL, that holds commits up
    with pytest.raises(LedgerError, match="is locked"):
        await ledger.reserve("a", Money.of(6), LIMIT)
    reader.close()
    ledger.renew()
    assert ledger.balance("a") == Balance(Money.of(1), Money())


async def test_a_closed_ledger_renews_what_is_open(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")
    held = await reserved(ledger, 6)
    renewing = ledger._renewing
    ledger.close()
    assert renewing is not None
    assert not renewing.is_set()
    ledger.settle(held, Money.of(2))
    ledger.close()
    assert renewing.is_set()


def test_what_is_late_is_written_before_the_process_ends(tmp_path: Path) -> None:
    code = """
        import asyncio, sqlite3, sys
        from adk_fluent.cost import Money, SqliteLedger

        ledger = SqliteLedger(sys.argv[1])
        held = asyncio.run(ledger.reserve("a", Money.of(6), None))
        other = sqlite3.connect(sys.argv[1], isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        ledger.settle(held, Money.of(2))
        assert ledger.balance("a").held == Money.of(6)
        other.rollback()
    """
    path = tmp_path / "l.db"
    subprocess.run([sys.executable, "-c", dedent(code), str(path)], check=True)
    assert SqliteLedger(path).balance("a") == Balance(Money.of(2), Money())


async def test_what_is_no_ledger_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("no database " * 100)
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE mine (x)")
    other.commit()
    other.close()
    older = sqlite3.connect(tmp_path / "older.db")
    older.execute("CREATE TABLE accounts (x)")
    older.execute(f"PRAGMA application_id = {0x61666C63}")
    older.commit()
    older.close()
    for name, says in (
        ("older.db", "cannot be used"),
        ("text.db", "not a database"),
        ("other.db", "is no ledger but another database"),
        ("absent/l.db", "unable to open"),
    ):
        ledger = SqliteLedger(tmp_path / name, wait=0.05)
        with pytest.raises(LedgerError, match=says):
            await ledger.reserve("a", Money.of(1), LIMIT)
        with pytest.raises(LedgerError, match=says):
            ledger.balance("a")
    assert (tmp_path / "text.db").read_text().startswith("no database")


async def test_many_ledgers_make_one_file_at_once(tmp_path: Path) -> None:
    ledgers = [SqliteLedger(tmp_path / "l.db") for _ in range(8)]

    def reserve(each: SqliteLedger) -> Reservation | None:
        return asyncio.run(each.reserve("a", Money.of(3), LIMIT))

    made = await asyncio.gather(*(asyncio.to_thread(reserve, each) for each in ledgers))
    assert len([each for each in made if each is not None]) == 3
    for each in ledgers:
        each.close()


@pytest.mark.parametrize(
    "options", [{"ttl": 0}, {"wait": -1}, {"ttl": float("nan")}, {"ttl": True}, {"wait": "5"}]
)
def test_seconds_are_seconds(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="seconds above 0"):
        SqliteLedger(tmp_path / "l.db", **options)
    nothing: Any = None
    with pytest.raises(UsageError, match="takes the path of a file"):
        SqliteLedger(nothing)
    with pytest.raises(UsageError, match="a file, not of a folder"):
        SqliteLedger(tmp_path)
    no_clock: Any = 3
    with pytest.raises(UsageError, match="takes a clock"):
        SqliteLedger(tmp_path / "l.db", clock=no_clock)

"""A ledger in a file, which several processes share."""

from __future__ import annotations

import atexit
import os
import sqlite3
import threading
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from adk_fluent.cost._errors import LedgerError, clock_or_system
from adk_fluent.cost._ledger import Balance, Reservation, money, units
from adk_fluent.errors import UsageError
from adk_fluent.extend import LOG, must_be, must_be_number

if TYPE_CHECKING:
    from collections.abc import Generator

    from adk_fluent.protocol import Clock, Money

#: What the file says it is, so that no other database is taken for a ledger: "aflc".
_APPLICATION: Final = 0x61666C63
_SCHEMA: Final = (
    "CREATE TABLE accounts (account TEXT PRIMARY KEY, spent INTEGER NOT NULL) WITHOUT ROWID",
    """CREATE TABLE reservations (
        id TEXT PRIMARY KEY, account TEXT NOT NULL, amount INTEGER NOT NULL, expires REAL NOT NULL
    ) WITHOUT ROWID""",
    "CREATE INDEX reservations_of_account ON reservations (account)",
)
#: Seconds for which SQLite itself waits for another process, holding the event loop up.
_BUSY: Final = 0.05
_PAUSE: Final = 0.005
_MOST: Final = 2**63 - 1
_LOCKED: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class SqliteLedger:
    """A ledger in a file, for several processes of one machine; two of one file are equal.

    A reservation is renewed as long as its process lives, however long the call takes; when that
    was killed, its reservations expire after `ttl` seconds. What could not be written when a call
    ended is kept, and written later; until then its reservation stays.

    Attributes:
        path: The file; it is made when it is first used.
        ttl: Seconds after which the reservations of a killed process expire.
        wait: Seconds to wait for other processes before a call is refused.
    """

    def __init__(
        self, path: str | Path, *, ttl: float = 60.0, wait: float = 5.0, clock: Clock | None = None
    ) -> None:
        """Make a ledger.

        Args:
            path: The file.
            ttl: Seconds after which the reservations of a killed process expire.
            wait: Seconds to wait for other processes before a call is refused.
            clock: What time it is; all processes need the same time.

        Raises:
            UsageError: The path is none of a file, or a number of seconds or the clock is none.
        """
        must_be(str | Path, path or None, "SqliteLedger takes the path of a file")
        for name, seconds in (("ttl", ttl), ("wait", wait)):
            what = f"SqliteLedger({name}=...) takes seconds above 0"
            must_be_number(seconds, what, above_0=True)
        self.path: Path = Path(path)
        self._file = self.path.resolve()
        if self._file.is_dir():
            what = "SqliteLedger takes the path of a file, not of a folder"
            raise UsageError(what, found=str(self._file), help="SqliteLedger('budgets.db')")
        self.ttl = ttl
        self.wait = wait
        self._given_clock = clock
        self._clock: Clock = clock_or_system(clock, "SqliteLedger")
        self._lock = threading.RLock()
        self._db: sqlite3.Connection | None = None
        self._process = os.getpid()
        self._open: dict[str, Reservation] = {}
        self._late: dict[str, tuple[Reservation, Money]] = {}
        self._renewing: threading.Event | None = None
        self._at_exit = False

    async def reserve(self, account: str, amount: Money, limit: Money | None) -> Reservation | None:
        """Set money aside; see `Ledger.reserve`.

        Raises:
            LedgerError: The file is no ledger, or others hold it for too long.
        """
        import asyncio  # noqa: PLC0415  # slow to import; whoever runs has it

        until = time.monotonic() + self.wait
        while True:
            try:
                return self._reserve(account, amount, limit)
            except sqlite3.Error as error:
                if not _is_locked(error) or time.monotonic() > until:
                    raise self._failed(error) from error
            await asyncio.sleep(_PAUSE)

    def _reserve(self, account: str, amount: Money, limit: Money | None) -> Reservation | None:
        wanted = units(amount)
        made = Reservation(account, amount, os.urandom(16).hex())
        with self._lock:
            with self._transaction() as db:
                now = self._clock.now()
                self._write_late(db)
                db.execute("DELETE FROM reservations WHERE expires < ?", (now,))
                if limit is not None and sum(_gone(db, account, now)) + wanted > units(limit):
                    return None
                row = (made.id, account, min(wanted, _MOST), now + self.ttl)
                db.execute("INSERT INTO reservations VALUES (?, ?, ?, ?)", row)
            self._open[made.id] = made  # committed; else it would be renewed for ever
        self._renew_in_time()
        return made

    def settle(self, reservation: Reservation, cost: Money) -> None:
        """Give a reservation back, and note the cost; when the file is locked, some time later."""
        with self._lock:
            if self._open.pop(reservation.id, None) is None:
                return
            self._late[reservation.id] = (reservation, cost)
            try:
                with self._transaction() as db:
                    self._write_late(db)
            except (sqlite3.Error, LedgerError) as error:
                LOG.warning("%s cannot note that a call cost %s yet: %s", self, cost, error)
        if self._late:
            self._renew_in_time()
            if not self._at_exit:
                self._at_exit = True
                atexit.register(self._write_at_exit)

    def _write_at_exit(self) -> None:
        """Write what is late, before nobody knows it any more."""
        until = time.monotonic() + self.wait
        while self._late:
            try:
                self.close()
            except (sqlite3.Error, LedgerError) as error:
                if time.monotonic() > until:
                    LOG.error("%s cannot note what calls cost: %s", self, error)
                    return
                time.sleep(_PAUSE)

    def balance(self, account: str) -> Balance:
        """Return what is gone of an account, reservations that have expired left out.

        Raises:
            LedgerError: The file is no ledger, or others hold it for too long.
        """
        try:
            with self._lock:
                spent, held = _gone(self._connected(), account, self._clock.now())
        except sqlite3.Error as error:
            raise self._failed(error) from error
        return Balance(money(spent), money(held))

    def close(self) -> None:
        """Write what is late, and close the file; calls under way and later ones open it again."""
        with self._lock:
            if self._renewing is not None and not self._open:
                self._renewing.set()
                self._renewing = None
            if self._late:
                with self._transaction() as db:
                    self._write_late(db)
            if self._db is not None:
                self._db.close()
                self._db = None

    # --- the file ------------------------------------------------------------------------------

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        """A transaction that nobody else's comes between; under the lock only."""
        db = self._connected()
        db.execute("BEGIN IMMEDIATE")
        late = self._late
        try:
            yield db
            db.execute("COMMIT")
        except BaseException:
            self._late = {**late, **self._late}
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise

    def _connected(self) -> sqlite3.Connection:
        if self._process != os.getpid():  # forked: that connection and those calls are the parent's
            self._process, self._db, self._renewing = os.getpid(), None, None
            self._open, self._late = {}, {}
        if self._db is None:
            self._db = self._opened()
        return self._db

    def _opened(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, _BUSY, isolation_level=None, check_same_thread=False)
        try:
            db.execute("BEGIN IMMEDIATE")  # another process may be making it
            (kind,) = db.execute("PRAGMA application_id").fetchone()
            (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if kind != _APPLICATION:
                if tables:
                    raise LedgerError(
                        f"{self.path} is no ledger but another database",
                        help="give the ledger a path of its own",
                    )
                for statement in _SCHEMA:
                    db.execute(statement)
                db.execute(f"PRAGMA application_id = {_APPLICATION}")
            db.execute("COMMIT")
            with suppress(sqlite3.OperationalError):  # whoever opens it next tries that again
                db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")  # with WAL, a killed process loses nothing
        except BaseException:
            db.close()
            raise
        return db

    def _failed(self, error: sqlite3.Error) -> LedgerError:
        how, found, help = "cannot be used", str(error), "give the ledger another path"
        if _is_locked(error):
            found = f"another process has held it for more than {self.wait:g} seconds"
            how, help = "is locked", "end that process, or SqliteLedger(wait=...)"
        help += "; no model was called"
        return LedgerError(f"the ledger {self.path} {how}", found=found, help=help)

    def _write_late(self, db: sqlite3.Connection) -> None:
        """Note what calls cost that have ended; in a transaction."""
        late, self._late = self._late, {}  # a call that is collected meanwhile adds to the new one
        for reservation, cost in late.values():
            db.execute("DELETE FROM reservations WHERE id = ?", (reservation.id,))
            db.execute(
                "INSERT INTO accounts VALUES (?, ?) "
                "ON CONFLICT (account) DO UPDATE SET spent = spent + excluded.spent",
                (reservation.account, min(units(cost), _MOST)),
            )

    # --- reservations of calls that take long --------------------------------------------------

    def _renew_in_time(self) -> None:
        """Renew what is open in a thread, as long as anything is."""
        with self._lock:
            if self._renewing is not None:
                return
            stop = self._renewing = threading.Event()
        threading.Thread(
            target=self._renew_until, args=(stop,), name="adk_fluent_ledger", daemon=True
        ).start()

    def _renew_until(self, stop: threading.Event) -> None:
        while not stop.wait(self.ttl / 3):
            with self._lock:
                if stop.is_set():
                    return
                if not self._open and not self._late:
                    self._renewing = None
                    return
                self.renew()

    def renew(self) -> None:
        """Let what this process has reserved last for another `ttl` seconds; a thread does so."""
        expires = self._clock.now() + self.ttl
        try:
            with self._lock, self._transaction() as db:
                self._write_late(db)
                for each in tuple(self._open.values()):
                    # one that was taken for a killed process's is back
                    db.execute(
                        "INSERT INTO reservations VALUES (?, ?, ?, ?) "
                        "ON CONFLICT (id) DO UPDATE SET expires = excluded.expires",
                        (each.id, each.account, min(units(each.amount), _MOST), expires),
                    )
        except (sqlite3.Error, LedgerError) as error:
            LOG.debug("%s is renewed later: %s", self, error)

    def __reduce__(self) -> tuple[object, ...]:
        options = {"ttl": self.ttl, "wait": self.wait, "clock": self._given_clock}
        return (partial(SqliteLedger, self.path, **options), ())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SqliteLedger) and self._file == other._file

    def __hash__(self) -> int:
        return hash(self._file)

    def __repr__(self) -> str:
        return f"SqliteLedger({str(self.path)!r})"


def _gone(db: sqlite3.Connection, account: str, now: float) -> tuple[int, int]:
    row = db.execute("SELECT spent FROM accounts WHERE account = ?", (account,)).fetchone()
    (held,) = db.execute(
        "SELECT coalesce(sum(amount), 0) FROM reservations WHERE account = ? AND expires >= ?",
        (account, now),
    ).fetchone()
    return (0 if row is None else row[0]), held


def _is_locked(error: sqlite3.Error) -> bool:
    # the low byte: the others say how it is locked
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _LOCKED

"""Where tasks and sessions are kept."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from a2a.server.context import ServerCallContext
from a2a.server.tasks import InMemoryPushNotificationConfigStore, InMemoryTaskStore

from adk_fluent.errors import SessionStoreError, UsageError
from adk_fluent.extend import describe, public_address
from adk_fluent.serve._logs import one_line
from adk_fluent.serve._tasks import OVER, WORKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from a2a.server.tasks import PushNotificationConfigStore
    from a2a.types import Task

    from adk_fluent.serve._limits import Limits

#: What a URL begins with -> the driver, and the extra that installs it.
_DRIVERS: Final = {
    "sqlite": ("sqlite+aiosqlite", "sqlite"),
    "postgresql": ("postgresql+asyncpg", "postgresql"),
}
_POLL_SECONDS: Final = 0.2  # between two looks for what other servers did
_TRIES: Final = 5


class Stores:
    """What a server keeps, in memory.

    Args:
        limits: How much that is.

    Attributes:
        tasks: The SDK's task store.
        stream: What carries events between servers; None where there is but one.
        sessions: ADK's session service; None keeps sessions in memory.
        configs: Who asked for push notifications.
        longest_id: Characters of a context's id.
    """

    longest_id = 255

    def __init__(self, limits: Limits) -> None:
        self.configs: Any = InMemoryPushNotificationConfigStore()
        self.tasks: Any = MemoryTaskStore(limits.kept_tasks, limits.kept_bytes, self.configs)
        self.stream: Any = None
        self.sessions: Any = None

    async def open(self) -> None:
        """Make what is not there yet; may be called again.

        Raises:
            SessionStoreError: It cannot be read or written.
        """

    async def check(self) -> None:
        """Raise if the store cannot be reached."""

    async def close(self) -> None:
        """Let go of it."""


class _Database(Stores):
    """What servers keep in a database that they may share.

    Args:
        address: Its URL, with a driver.
        sessions: Whether sessions are kept there, too.

    Raises:
        ImportError: The driver is not installed.
    """

    def __init__(self, address: str, *, sessions: bool) -> None:
        import sqlalchemy.exc  # noqa: PLC0415  # of an extra
        from a2a.server.cluster import (  # noqa: PLC0415  # needs sqlalchemy
            DatabaseTaskEventStream,
            VersionedDatabaseTaskStore,
        )
        from a2a.server.tasks import DatabasePushNotificationConfigStore  # noqa: PLC0415
        from sqlalchemy.ext.asyncio import create_async_engine  # noqa: PLC0415

        self._sqlalchemy = sqlalchemy
        file = address.partition(":///")[2].partition("?")[0]
        self._shown = file if address.startswith("sqlite") else public_address(address)
        options = _options(address)
        self._engine = create_async_engine(address, **options)
        self.tasks = VersionedDatabaseTaskStore(self._engine)
        self.configs = DatabasePushNotificationConfigStore(self._engine)
        self.stream = DatabaseTaskEventStream(self._engine, poll_interval_s=_POLL_SECONDS)
        if not address.startswith("sqlite"):
            self.longest_id = 36  # the SDK's column, which SQLite does not bound
        self.sessions = None
        if sessions:
            from google.adk.sessions.database_session_service import (  # noqa: PLC0415
                DatabaseSessionService,
            )

            self.sessions = DatabaseSessionService(address, **options)

    async def open(self) -> None:
        """Make the tables, which another server may do at the same time.

        Raises:
            SessionStoreError: The database cannot be read or written.
        """
        try:
            await self._made()
        except (self._sqlalchemy.exc.SQLAlchemyError, OSError) as error:
            raise store_error(f"the database {self._shown} cannot be used", error) from error

    async def _made(self) -> None:
        for left in reversed(range(_TRIES)):
            try:
                await self._keep_log()
                await self.tasks.initialize()
                await self.stream.initialize()
                await self.configs.initialize()
                if self.sessions is not None:  # which makes its tables when it is first asked
                    await self.sessions.get_session(app_name="_", user_id="_", session_id="_")
                await self.tasks.get("_", ServerCallContext())  # of another program, perhaps
            except self._sqlalchemy.exc.SQLAlchemyError:
                if not left:
                    raise
                await asyncio.sleep(_POLL_SECONDS)
            else:
                return

    async def _keep_log(self) -> None:
        """Let a SQLite file have a write-ahead log: who looks keeps nobody from writing."""
        if self._engine.dialect.name == "sqlite":
            async with self._engine.connect() as connection:
                await connection.exec_driver_sql("pragma journal_mode = wal")

    async def check(self) -> None:
        """Raise if the database does not answer."""
        async with self._engine.connect() as connection:
            await connection.execute(self._sqlalchemy.text("SELECT 1"))

    async def close(self) -> None:
        """Close all connections."""
        await self._engine.dispose()
        if self.sessions is not None:
            await self.sessions.close()


def open_stores(url: str | None, limits: Limits, *, sessions: bool) -> Stores:
    """Open what a server keeps.

    Args:
        url: A database, such as ``sqlite:///tasks.db``; None is memory.
        limits: How much is kept in memory.
        sessions: Whether sessions are kept in the database, too.

    Raises:
        UsageError: It is not such a URL, or its driver is not installed.
    """
    if url is None:
        return Stores(limits)
    address, extra = _address(url)
    try:
        return _Database(address, sessions=sessions)
    except (ValueError, TypeError) as error:  # of what stands behind the driver
        raise UsageError(
            "task_store= takes the URL of a database",
            found=f"{public_address(address)}, which cannot be read",
            help='such as "postgresql://user:password@host:5432/tasks"',
        ) from error
    except ImportError as error:
        raise UsageError(
            "task_store= needs a database driver that is not installed",
            found=str(error),
            help=f"pip install 'adk-fluent-a2a[{extra}]'",
        ) from error


def store_error(what: str, error: BaseException) -> SessionStoreError:
    """An error of a database, without its SQL."""
    return SessionStoreError(
        what,
        found=one_line(error),
        help="see that it is there, that its user may write, and that no other program's tables "
        "have the names of ours; a damaged one is restored from a backup, or moved away",
    )


def _address(url: object) -> tuple[str, str]:
    """The URL with its driver, and the extra for it."""
    scheme, found, rest = url.partition("://") if isinstance(url, str) else ("", "", "")
    kind = scheme.partition("+")[0]
    if not found or not rest or kind not in _DRIVERS:
        raise UsageError(
            "task_store= takes the URL of a database",
            found=public_address(url) if isinstance(url, str) and found else describe(url),
            help=f'such as "sqlite:///tasks.db"; known: {", ".join(_DRIVERS)}',
        )
    if kind == "sqlite" and (rest.strip("/") in ("", ":memory:") or "mode=memory" in rest):
        raise UsageError(
            "task_store= takes a database in a file",
            found="one in memory",
            help="leave task_store= out to keep tasks in memory",
        )
    path = Path(rest.removeprefix("/").partition("?")[0])
    if kind == "sqlite" and not path.parent.is_dir():
        raise UsageError(
            "task_store= takes a database in a directory that is there",
            found=f"no directory {path.parent}",
            help="create it first",
        )
    if kind == "sqlite" and path.is_dir():
        raise UsageError(
            "task_store= takes a database in a file",
            found=f"the directory {path}",
            help=f'name a file in it, such as "sqlite:///{path / "tasks.db"}"',
        )
    driver, extra = _DRIVERS[kind]
    return f"{driver}://{rest}", extra


def _options(address: str) -> dict[str, Any]:
    """How a database is connected to."""
    if address.startswith("sqlite"):  # how long to wait for another process that writes
        return {"connect_args": {"timeout": 15}}
    return {"pool_pre_ping": True}  # a server that was started anew has ended all connections


class MemoryTaskStore(InMemoryTaskStore):
    """Keeps tasks in memory, as many and as large as the limits allow.

    Where it is too much, the principal that takes most loses its oldest task: nobody loses theirs
    to another who sends more. Tasks that are over go before those that wait for an answer, and
    those that run stay.

    Args:
        kept: Tasks.
        kept_bytes: Bytes of all of them.
        configs: Push configs, which go with their task.

    Attributes:
        forget: Called with the principal and context of which the last task was dropped.
    """

    def __init__(self, kept: int, kept_bytes: int, configs: PushNotificationConfigStore) -> None:
        super().__init__()
        self._configs = configs
        self.forget: Callable[[str, str], Awaitable[None]] | None = None
        self._kept = kept
        self._kept_bytes = kept_bytes
        self._count = 0
        self._bytes = 0
        self._owners: dict[str, _Owned] = {}

    async def save(self, task: Task, context: ServerCallContext) -> None:
        """Keep a task."""
        await super().save(task, context)
        name = context.user.user_name
        if (owned := self._owners.get(name)) is None:
            owned = self._owners[name] = _Owned(ServerCallContext(user=context.user))
        before = owned.sizes.get(task.id)
        size = owned.sizes[task.id] = task.ByteSize()
        if before is None:
            self._count += 1
            owned.contexts[task.context_id] += 1
        self._bytes += size - (before or 0)
        owned.bytes += size - (before or 0)
        owned.waiting.pop(task.id, None)
        if task.status.state in OVER:
            owned.over[task.id] = task.context_id
        elif task.status.state not in WORKING:
            owned.waiting[task.id] = task.context_id
        while (self._count > self._kept or self._bytes > self._kept_bytes) and (
            await self._drop(task.id, by_bytes=self._bytes > self._kept_bytes)
        ):
            pass

    async def _drop(self, spared: str, *, by_bytes: bool) -> bool:
        """Drop one task; False if there is none that may go."""
        able = [each for each in self._owners.items() if each[1].oldest(spared) is not None]
        if not able:
            return False
        name, owned = max(able, key=lambda each: each[1].taken(by_bytes=by_bytes))
        id = owned.oldest(spared)
        assert id is not None  # noqa: S101  # it is able
        where = owned.over.pop(id, None) or owned.waiting.pop(id)
        size = owned.sizes.pop(id)
        owned.bytes -= size
        self._bytes -= size
        self._count -= 1
        await self.delete(id, owned.context)
        if await self._configs.get_info(id, owned.context):
            await self._configs.delete_info(id, owned.context)
        owned.contexts[where] -= 1
        if not owned.contexts[where]:
            del owned.contexts[where]
            if self.forget is not None:
                await self.forget(name, where)
        if not owned.sizes:
            del self._owners[name]
        return True


@dataclass(slots=True)
class _Owned:
    """What a principal has: its tasks, oldest first, and how much they take."""

    context: ServerCallContext  # without its headers
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    contexts: Counter[str] = field(default_factory=Counter[str])
    over: dict[str, str] = field(default_factory=dict[str, str])
    waiting: dict[str, str] = field(default_factory=dict[str, str])
    bytes: int = 0

    def oldest(self, spared: str) -> str | None:
        """The task that goes first; None if all have to stay."""
        return next((each for each in chain(self.over, self.waiting) if each != spared), None)

    def taken(self, *, by_bytes: bool) -> int:
        """How much there is."""
        return self.bytes if by_bytes else len(self.sizes)

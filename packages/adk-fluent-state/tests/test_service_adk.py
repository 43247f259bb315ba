"""A service that is held to a schema is in all else like the service in it."""

from __future__ import annotations

import asyncio
import copy
import inspect
import pickle
import subprocess
import sys
import textwrap
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self, cast

import pytest
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.sessions.vertex_ai_session_service import VertexAiSessionService
from service_kit import IDS, Desk, ids, values

from adk_fluent.errors import UnknownNameError, UsageError
from adk_fluent.extend import merges_dicts
from adk_fluent.state import SchemaSessionService, StateTypeError

if TYPE_CHECKING:
    from pathlib import Path

    from google.adk.sessions.session import Session

pytestmark = pytest.mark.adk


def guarded(inner: BaseSessionService | None = None, **options: Any) -> SchemaSessionService:
    return SchemaSessionService(inner or InMemorySessionService(), Desk, **options)


# --- what it is -----------------------------------------------------------------------------------


def test_it_is_a_session_service_and_one_of_the_kind_in_it(tmp_path: Path) -> None:
    service = guarded(SqliteSessionService(str(tmp_path / "a.db")))
    assert isinstance(service, BaseSessionService)
    assert issubclass(SchemaSessionService, BaseSessionService)
    assert isinstance(service, SchemaSessionService)
    assert type(service) is SchemaSessionService
    assert isinstance(service, SqliteSessionService)
    assert not isinstance(service, InMemorySessionService)
    assert merges_dicts(service) is merges_dicts(service.inner)
    assert isinstance(guarded(service, extra="allow"), SqliteSessionService)


def test_adk_takes_it_where_it_checks_types() -> None:
    service = guarded()
    field = InvocationContext.model_fields["session_service"]
    assert field.annotation is BaseSessionService
    from pydantic import ConfigDict, TypeAdapter

    adapter = TypeAdapter[Any](BaseSessionService, config=ConfigDict(arbitrary_types_allowed=True))
    assert adapter.validate_python(service) is service


def test_it_says_what_it_is() -> None:
    service = guarded()
    assert repr(service) == f"SchemaSessionService({service.inner!r}, Desk)"


def pickled(service: Any) -> Any:
    return pickle.loads(pickle.dumps(service))


@pytest.mark.parametrize("copied", [copy.deepcopy, pickled])
async def test_it_can_be_copied_and_pickled_as_far_as_the_service_can(copied: Any) -> None:
    service = guarded(extra="allow", enforce="warn")
    await service.create_session(**IDS, state={"count": 1})
    other = copied(service)
    assert type(other) is SchemaSessionService
    assert other.inner is not service.inner
    session = await other.get_session(**IDS)
    assert session is not None
    assert session.state == {"count": 1}
    await append(other, {"count": "x", "more": 1})  # its options are the same
    session = await service.get_session(**IDS)
    assert session is not None
    assert session.state == {"count": 1}
    assert copy.copy(service).inner is service.inner


@pytest.mark.parametrize("wrong", [None, InMemorySessionService, "sqlite:///a.db", Desk])
def test_it_takes_session_services_only(wrong: Any) -> None:
    with pytest.raises(UsageError, match="wraps a session service"):
        SchemaSessionService(wrong, Desk)


def test_it_takes_schemas_only() -> None:
    class Plain:
        intent: str

    for wrong in (Plain, "Desk", None, Desk.bind({})):
        with pytest.raises(UsageError, match="takes a state schema"):
            SchemaSessionService(InMemorySessionService(), wrong)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("option", [{"extra": "ignore"}, {"enforce": "off"}])
def test_it_knows_its_options(option: dict[str, Any]) -> None:
    with pytest.raises(UnknownNameError):
        guarded(**option)


# --- what it forwards -----------------------------------------------------------------------------


def public(kind: type) -> list[str]:
    names = [name for name in dir(kind) if not name.startswith("_")]
    return [name for name in names if callable(getattr(kind, name))]


@pytest.mark.parametrize(
    "kind",
    [InMemorySessionService, SqliteSessionService, DatabaseSessionService, VertexAiSessionService],
)
def test_it_has_every_public_method_of_every_service_of_adk(kind: type) -> None:
    names = {*public(kind), *public(BaseSessionService)}
    assert {"append_event", "create_session", "get_session"} <= names
    inner: Any = cast("Any", object).__new__(kind)
    service = SchemaSessionService(inner, Desk)
    for name in names:
        assert callable(getattr(service, name))
    own = {"append_event", "create_session", "delete_session", "get_session", "list_sessions"}
    bare = {name for name in names - own if not takes_state(getattr(inner, name))}
    assert {name: getattr(service, name) for name in bare} == {
        name: getattr(inner, name) for name in bare
    }


def takes_state(method: Any) -> bool:
    return bool(inspect.signature(method).parameters.keys() & {"state", "event"})


async def test_it_forwards_what_the_base_class_only_says_it_has() -> None:
    """`get_user_state` and `flush` of newer versions stand in the base class, too."""

    class Own(InMemorySessionService):
        flushed = 0

        async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
            return {"of": (app_name, user_id)}

        async def flush(self) -> None:
            self.flushed += 1

    service: Any = guarded(Own())
    assert await service.get_user_state(app_name="a", user_id="u") == {"of": ("a", "u")}
    await service.flush()
    assert service.flushed == 1


class Later(InMemorySessionService):
    """A service of an ADK to come."""

    @abstractmethod
    async def archive_session(self, *, session_id: str) -> str: ...

    @abstractmethod
    async def update_session(
        self, session: Session, state_delta: dict[str, Any], why: str = ""
    ) -> dict[str, Any]: ...

    @abstractmethod
    async def append_events(self, session: Session, events: list[Event]) -> list[Event]: ...

    @abstractmethod
    def count(self) -> int: ...


class LaterMade(Later):
    async def archive_session(self, *, session_id: str) -> str:
        return f"archived {session_id}"

    async def update_session(
        self, session: Session, state_delta: dict[str, Any], why: str = ""
    ) -> dict[str, Any]:
        return {**state_delta, "why": why}

    async def append_events(self, session: Session, events: list[Event]) -> list[Event]:
        return [await self.append_event(session, each) for each in events]

    def count(self) -> int:
        return 7


async def test_what_adk_adds_is_forwarded_and_what_writes_there_is_checked() -> None:
    service: Any = guarded(LaterMade())
    assert isinstance(service, Later)
    assert await service.archive_session(session_id="1") == "archived 1"
    assert service.count() == 7
    session = await service.create_session(**IDS)
    when = values()["when"]
    written = await service.update_session(session, {"when": when}, why="so")
    assert written == {"when": "2024-02-29T12:00:00Z", "why": "so"}
    for call in (
        lambda: service.update_session(session, {"inten": 1}),
        lambda: service.update_session(session, state_delta={"count": "x"}),
        lambda: service.append_events(session, [event({"count": 1}), event({"inten": 1})]),
    ):
        with pytest.raises(StateTypeError):
            await call()
    assert session.events == []
    await service.append_events(session, [event({"when": when})])
    assert session.state == {"when": "2024-02-29T12:00:00Z"}


def test_the_old_methods_of_the_service_in_memory_are_checked() -> None:
    service: Any = guarded()
    with pytest.raises(StateTypeError, match=r"create_session_sync\(state=...\) writes 'inten'"):
        service.create_session_sync(**IDS, state={"inten": 1})
    assert service.get_session_sync(**IDS) is None
    session = service.create_session_sync(**IDS, state={"when": values()["when"]})
    assert session.state == {"when": "2024-02-29T12:00:00Z"}


async def test_attributes_and_options_of_the_service_are_there() -> None:
    service: Any = guarded()
    await service.create_session(**IDS, state={"count": 1})
    assert service.sessions is service.inner.sessions
    for at in range(3):
        await append(service, {"count": at})
    config = GetSessionConfig(num_recent_events=1)
    session = await service.get_session(**IDS, config=config)
    assert [each.actions.state_delta for each in session.events] == [{"count": 2}]
    listed = await service.list_sessions(app_name="shop", user_id="ann")
    assert [each.id for each in listed.sessions] == ["1"]
    await service.delete_session(**IDS)
    assert await service.get_session(**IDS) is None
    with pytest.raises(AttributeError, match="no_such"):
        _ = service.no_such


async def test_options_of_create_session_reach_the_service() -> None:
    """Such as `ttl` of the one on Vertex AI."""

    class Own(InMemorySessionService):
        async def create_session(self, *, ttl: str = "", **asked: Any) -> Session:
            self.ttl = ttl
            return await super().create_session(**asked)

    service: Any = guarded(Own())
    await service.create_session(**IDS, ttl="60s")
    assert service.ttl == "60s"


# --- how it ends ----------------------------------------------------------------------------------


async def test_it_closes_the_service(tmp_path: Path) -> None:
    inner = DatabaseSessionService(f"sqlite+aiosqlite:///{tmp_path / 'a.db'}")
    async with guarded(inner) as service:
        assert type(service) is SchemaSessionService
        await service.create_session(**IDS)
        pool = inner.db_engine.pool
    assert inner.db_engine.pool is not pool  # which `dispose` replaces


@pytest.mark.parametrize("kind", ["async", "sync", "none"])
async def test_it_closes_a_service_that_can_only_be_closed(kind: str) -> None:
    closed: list[str] = []

    class Async(InMemorySessionService):
        async def close(self) -> None:
            closed.append("async")

    class Sync(InMemorySessionService):
        def close(self) -> None:
            closed.append("sync")

    inner = {"async": Async, "sync": Sync, "none": InMemorySessionService}[kind]()
    async with guarded(inner):
        assert closed == []
    assert closed == [each for each in [kind] if each != "none"]


async def test_it_enters_and_leaves_a_service_that_is_a_context_manager() -> None:
    done: list[Any] = []

    class Entered(InMemorySessionService):
        async def __aenter__(self) -> Self:
            done.append("in")
            return self

        async def __aexit__(self, kind: object, error: object, trace: object) -> None:
            done.append(kind)

    with pytest.raises(KeyError):
        async with guarded(Entered()):
            raise KeyError
    assert done == ["in", KeyError]


# --- on a machine ---------------------------------------------------------------------------------

WRITER = """
    import asyncio, sys
    from google.adk.events.event import Event
    from google.adk.events.event_actions import EventActions
    from google.adk.sessions.sqlite_session_service import SqliteSessionService
    from adk_fluent.state import SchemaSessionService, SessionScoped, StateSchema, UserScoped

    class Desk(StateSchema):
        count: SessionScoped[int]
        tier: UserScoped[str]

    async def main(path, name):
        service = SchemaSessionService(SqliteSessionService(path), Desk)
        ids = {"app_name": "shop", "user_id": "ann", "session_id": name}
        session = await service.create_session(**ids, state={"count": 0})
        refused = 0
        for at in range(20):
            delta = {"count": at, "user:tier": name}
            if at % 2:
                delta["inten"] = "x"
            event = Event(author=name, actions=EventActions(state_delta=delta))
            try:
                await service.append_event(session=session, event=event)
            except TypeError:
                refused += 1
        print(refused)

    asyncio.run(main(*sys.argv[1:]))
"""


async def test_two_processes_on_one_file(tmp_path: Path) -> None:
    script = tmp_path / "writer.py"
    script.write_text(textwrap.dedent(WRITER), "utf-8")
    path = str(tmp_path / "sessions.db")
    await guarded(SqliteSessionService(path)).create_session(**IDS)  # makes the tables
    command = (sys.executable, "-W", "ignore", str(script), path)
    started = [
        await asyncio.create_subprocess_exec(*command, name, stdout=subprocess.PIPE)
        for name in ("one", "two")
    ]
    said = [(await each.communicate())[0].decode().strip() for each in started]
    assert said == ["10", "10"]
    service = guarded(SqliteSessionService(path))
    for name in ("one", "two"):
        session = await service.get_session(**ids(name))
        assert session is not None
        assert session.state["count"] == 18
        assert session.state["user:tier"] in ("one", "two")
        assert len(session.events) == 10


def event(delta: dict[str, Any]) -> Event:
    return Event(author="clerk", actions=EventActions(state_delta=delta))


async def append(service: Any, delta: dict[str, Any]) -> Session:
    session = await service.get_session(**IDS)
    await service.append_event(session=session, event=event(delta))
    return session

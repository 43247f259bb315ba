"""Sessions of an older version of the schema are upgraded when they are read, on every service."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any, ClassVar, cast

import pytest
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from service_kit import IDS, KINDS, ids, opening

from adk_fluent import Agent
from adk_fluent.state import (
    AppScoped,
    SchemaSessionService,
    SchemaUpgradeError,
    SessionScoped,
    StateSchema,
    StateTypeError,
    UserScoped,
)
from adk_fluent.state._service_patch import patched

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from google.adk.sessions.base_session_service import BaseSessionService
    from google.adk.sessions.session import Session

pytestmark = pytest.mark.adk

STAMP = "_adkf_version:Order"
STAMPS = {STAMP: 2, f"user:{STAMP}": 2}
#: What version 1 wrote: `item` for `items`, and a level that was a number.
OLD: dict[str, Any] = {"item": "pen", "user:level": 2, "box": {"a": 1, "b": {"c": 2, "d": 3}}}
NEW: dict[str, Any] = {"items": ["pen"], "user:tier": "gold", "box": {"b": {"d": 3, "e": 4}}}


class Order(StateSchema):
    __version__: ClassVar[int] = 2

    items: SessionScoped[list[str]]
    box: SessionScoped[dict[str, Any]]
    tier: UserScoped[str]

    calls: ClassVar[list[int]] = []
    fails: ClassVar[list[Exception]] = []

    @classmethod
    def upgrade(cls, state: dict[str, Any], from_version: int) -> None:
        cls.calls.append(from_version)
        if cls.fails:
            raise cls.fails[0]
        if "item" in state:
            state["items"] = [state.pop("item")]
        if "box" in state:
            state["box"] = {"b": {"d": 3, "e": 4}}
        if "user:level" in state:
            state["user:tier"] = "gold" if state.pop("user:level") > 1 else "free"


@pytest.fixture(autouse=True)
def calls() -> list[int]:
    Order.calls.clear()
    Order.fails.clear()
    return Order.calls


@pytest.fixture(params=KINDS)
async def opened(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[Callable[[], BaseSessionService]]:
    async with opening(request.param, tmp_path) as open_:
        yield open_


def guarded(service: BaseSessionService) -> SchemaSessionService:
    return SchemaSessionService(service, Order)


async def old_session(service: BaseSessionService, **more: Any) -> None:
    """A session as version 1 has left it."""
    session = await service.create_session(**IDS | more, state={"box": OLD["box"]})
    delta = {"item": "pen", "user:level": 2}
    event = Event(author="clerk", actions=EventActions(state_delta=delta))
    await service.append_event(session=session, event=event)


async def read(service: BaseSessionService, **more: Any) -> Session:
    session = await service.get_session(**IDS | more)
    assert session is not None
    return session


def held(session: Session) -> dict[str, Any]:
    return {key: value for key, value in session.state.items() if value is not None}


async def test_a_session_is_upgraded_once_when_it_is_read(
    opened: Callable[[], BaseSessionService], calls: list[int]
) -> None:
    await old_session(opened())
    session = await read(guarded(opened()))
    assert held(session) == NEW | STAMPS
    assert Order.bind(session).items == ["pen"]
    assert calls == [1, 1]  # the keys of the session, and those of the user
    stored = await read(opened())
    assert held(stored) == NEW | STAMPS
    [_, event] = stored.events
    assert event.author == "user"
    assert event.content is None
    assert event.custom_metadata == {"adk_fluent_state": "upgrade"}
    assert event.invocation_id.startswith("upgrade-")
    again = await read(guarded(opened()))
    assert calls == [1, 1]
    assert len(again.events) == 2


async def test_it_can_be_gone_on_with_at_once(opened: Callable[[], BaseSessionService]) -> None:
    await old_session(opened())
    service = guarded(opened())
    session = await read(service)
    event = Event(author="clerk", actions=EventActions(state_delta={"items": ["pen", "ink"]}))
    await service.append_event(session=session, event=event)
    assert (await read(opened())).state["items"] == ["pen", "ink"]


async def test_a_run_goes_on_in_an_old_session(opened: Callable[[], BaseSessionService]) -> None:
    service = guarded(opened())
    agent = Agent("clerk").mock("done")
    first = await agent.run("hi", session_service=opened(), state=OLD)
    where: dict[str, Any] = {"session_id": first.session_id, "user_id": first.user_id}
    then = await agent.run("and?", session_service=service, **where)
    assert then.text == "done"
    assert Order.bind(then).items == ["pen"]
    assert Order.bind(then).tier == "gold"


async def test_as_many_events_are_given_as_were_asked_for(
    opened: Callable[[], BaseSessionService],
) -> None:
    await old_session(opened())
    session = await read(guarded(opened()), config=GetSessionConfig(num_recent_events=1))
    assert len(session.events) == 1
    assert session.state["items"] == ["pen"]


async def test_sessions_of_a_user_upgrade_what_they_share_once(
    opened: Callable[[], BaseSessionService], calls: list[int]
) -> None:
    await old_session(opened(), session_id="1")
    await old_session(opened(), session_id="2")
    service = guarded(opened())
    await read(service, session_id="1")
    assert calls == [1, 1]
    session = await read(service, session_id="2")
    assert calls == [1, 1, 1]
    assert held(session) == NEW | STAMPS


async def test_a_new_session_is_of_this_version(
    opened: Callable[[], BaseSessionService], calls: list[int]
) -> None:
    service = guarded(opened())
    session = await service.create_session(**IDS, state={"items": ["a"], "user:tier": "gold"})
    assert held(session) == {"items": ["a"], "user:tier": "gold"} | STAMPS
    for at in range(2):
        session = await service.create_session(**ids(f"more {at}"))
        assert session.state == {"user:tier": "gold"} | STAMPS
        assert session.events == []
    assert held(await read(service)) == {"items": ["a"], "user:tier": "gold"} | STAMPS
    assert calls == []


async def test_a_new_session_brings_the_state_of_its_user_to_this_version(
    opened: Callable[[], BaseSessionService], calls: list[int]
) -> None:
    await old_session(opened())
    service = guarded(opened())
    session = await service.create_session(**ids("2"), state={"items": ["a"]})
    assert held(session) == {"items": ["a"], "user:tier": "gold"} | STAMPS
    assert calls == [1]
    other = await service.create_session(**ids("3"), state={"user:tier": "free"})
    assert held(other) == {"user:tier": "free"} | STAMPS
    assert held(await read(opened(), session_id="3")) == {"user:tier": "free"} | STAMPS
    assert calls == [1]


async def test_a_new_session_that_breaks_the_schema_is_none(
    opened: Callable[[], BaseSessionService],
) -> None:
    with pytest.raises(StateTypeError):
        await guarded(opened()).create_session(**IDS, state={"item": "pen"})
    assert await opened().get_session(**IDS) is None


async def test_an_upgrade_that_fails_loses_nothing(
    opened: Callable[[], BaseSessionService],
) -> None:
    await old_session(opened())
    before = await read(opened())
    service = guarded(opened())
    Order.fails.append(KeyError("level"))
    with pytest.raises(SchemaUpgradeError, match=r"Order.upgrade\(...\) from version 1 failed"):
        await service.get_session(**IDS)
    with pytest.raises(SchemaUpgradeError):
        await service.create_session(**ids("2"), state={"items": []})
    assert await opened().get_session(**ids("2")) is None
    assert await read(opened()) == before
    Order.fails.clear()
    assert held(await read(service)) == NEW | STAMPS


async def test_a_session_of_a_newer_version_is_refused(
    opened: Callable[[], BaseSessionService],
) -> None:
    await opened().create_session(**IDS, state={STAMP: 3, "items": ["a"]})
    with pytest.raises(SchemaUpgradeError, match="state is of version 3 of Order"):
        await guarded(opened()).get_session(**IDS)


async def test_a_schema_without_versions_reads_sessions_as_they_are(
    opened: Callable[[], BaseSessionService],
) -> None:
    class Plain(StateSchema):
        items: SessionScoped[list[str]]

    await old_session(opened())
    before = await read(opened())
    assert await read(SchemaSessionService(opened(), Plain)) == before


async def test_who_reads_at_the_same_time_upgrades_once(
    opened: Callable[[], BaseSessionService],
) -> None:
    await old_session(opened())
    services = [guarded(opened()) for _ in range(6)]
    sessions = await asyncio.gather(*map(read, services))
    assert [held(each) for each in sessions] == [NEW | STAMPS] * 6
    stored = await read(opened())
    assert held(stored) == NEW | STAMPS
    upgrades = [each for each in stored.events if each.author == "user"]
    assert {str(each.actions.state_delta["items"]) for each in upgrades} == {"['pen']"}


class Interrupted(InMemorySessionService):
    """Somebody else is always faster, as often as it says."""

    times = 0

    async def append_event(self, session: Session, event: Event) -> Event:
        if self.times and event.author == "user":
            self.times -= 1
            other = await self.get_session(**IDS)
            assert other is not None
            actions = EventActions(state_delta={"item": "ink"})
            await super().append_event(other, Event(author="other", actions=actions))
            raise ValueError("stale")
        return await super().append_event(session, event)


async def test_what_others_write_meanwhile_is_not_lost() -> None:
    inner = Interrupted()
    await old_session(inner)
    inner.times = 3
    assert (await read(guarded(inner))).state["items"] == ["ink"]


async def test_a_store_that_never_takes_the_upgrade_says_why() -> None:
    inner = Interrupted()
    await old_session(inner)
    inner.times = 100
    with pytest.raises(ValueError, match="stale"):
        await guarded(inner).get_session(**IDS)
    assert inner.times == 95


READER = """
    import asyncio, sys
    from typing import Any, ClassVar
    from google.adk.sessions.sqlite_session_service import SqliteSessionService
    from adk_fluent.state import SchemaSessionService, SessionScoped, StateSchema, UserScoped

    class Order(StateSchema):
        __version__: ClassVar[int] = 2
        items: SessionScoped[list[str]]
        tier: UserScoped[str]

        @classmethod
        def upgrade(cls, state: dict[str, Any], from_version: int) -> None:
            if "item" in state:
                state["items"] = [state.pop("item")]
            if "user:level" in state:
                state["user:tier"] = "gold"
                del state["user:level"]

    async def main(path):
        service = SchemaSessionService(SqliteSessionService(path), Order)
        for at in range(10):
            session = await service.get_session(app_name="shop", user_id="ann", session_id=str(at))
            assert Order.bind(session).items == ["pen"], session.state
            assert Order.bind(session).tier == "gold", session.state

    asyncio.run(main(*sys.argv[1:]))
"""


async def test_two_processes_upgrade_the_same_sessions(tmp_path: Path) -> None:
    script = tmp_path / "reader.py"
    script.write_text(textwrap.dedent(READER), "utf-8")
    path = str(tmp_path / "sessions.db")
    inner = SqliteSessionService(path)
    for at in range(10):
        await old_session(inner, session_id=str(at))
    command = (sys.executable, "-W", "ignore", str(script), path)
    started = [
        await asyncio.create_subprocess_exec(*command, stderr=subprocess.PIPE) for _ in range(2)
    ]
    errors = [(await each.communicate())[1].decode() for each in started]
    assert [each.returncode for each in started] == [0, 0], errors
    for at in range(10):
        session = await read(inner, session_id=str(at))
        assert session.state["items"] == ["pen"]
        # a file is looked at and then written, so two may do the same, which is no harm
        upgrades = [each.actions.state_delta for each in session.events if each.author == "user"]
        assert len(upgrades) in (1, 2)
        assert all(each["items"] == ["pen"] and each["item"] is None for each in upgrades)


async def test_keys_of_the_app(opened: Callable[[], BaseSessionService]) -> None:
    class Shop(StateSchema):
        __version__: ClassVar[int] = 2
        rates: AppScoped[list[int]]

        @classmethod
        def upgrade(cls, state: dict[str, Any], from_version: int) -> None:
            if "app:rate" in state:
                state["app:rates"] = [state.pop("app:rate")]

    await opened().create_session(**IDS, state={"app:rate": 7})
    session = await read(SchemaSessionService(opened(), Shop))
    assert Shop.bind(session).rates == [7]


def merged(old: Any, patch: Any) -> Any:
    """As RFC 7396 says, and SQL's ``json_patch`` does."""
    if not isinstance(patch, dict):
        return patch
    made: dict[str, Any] = dict(cast("dict[str, Any]", old)) if isinstance(old, dict) else {}
    for key, value in cast("dict[str, Any]", patch).items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = merged(made.get(key), value)
    return made


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"a": 1, "b": 2}, {"b": 3}),
        ({"a": {"b": {"c": 1, "d": 2}}}, {"a": {"b": {"c": 1}}}),
        ({"a": {"b": 1}}, {"a": {}}),
        ({"a": {"b": 1}}, {"a": 1}),
        ({"a": 1}, {"a": {"b": 1}}),
        ([1], {"a": 1}),
        ({"a": 1}, [1]),
        (None, {"a": {"b": 1}}),
        ({"a": 1}, {}),
    ],
)
def test_a_dict_is_replaced_where_it_would_be_merged(old: Any, new: Any) -> None:
    assert merged(old, patched(old, new)) == new

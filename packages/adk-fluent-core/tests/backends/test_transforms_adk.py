"""`S` on ADK: across turns, stores and versions, and the same as without ADK."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService

from adk_fluent import Agent, Route, S, map_over, race, timeout, until
from adk_fluent.errors import ExpectationError
from adk_fluent.testing import ScriptedModel, mock_backend

if TYPE_CHECKING:
    from pathlib import Path

    from google.adk.sessions.base_session_service import BaseSessionService

    from adk_fluent.builders import Builder, State
    from adk_fluent.protocol import RunResult

pytestmark = pytest.mark.adk

APP, USER, SESSION = "adk_fluent_app", "user", "s"


def fresh(service: BaseSessionService, path: Path) -> BaseSessionService:
    """Another service object on the same store; what is in memory is nowhere else."""
    if isinstance(service, InMemorySessionService):
        return service
    if isinstance(service, SqliteSessionService):
        return SqliteSessionService(str(path))
    return DatabaseSessionService(f"sqlite+aiosqlite:///{path}")


class Turns:
    """Runs of one session, each from a new service object."""

    def __init__(self, service: BaseSessionService, path: Path) -> None:
        self.service = service
        self.path = path

    async def run(self, step: Builder, **options: Any) -> RunResult:
        service = fresh(self.service, self.path)
        try:
            return await step.run("hi", session_service=service, session_id=SESSION, **options)
        finally:
            await self.close(service)

    async def stored(self) -> dict[str, Any]:
        """What a service that has just been opened reads."""
        service = fresh(self.service, self.path)
        try:
            session = await service.get_session(app_name=APP, user_id=USER, session_id=SESSION)
        finally:
            await self.close(service)
        assert session is not None
        return {key: value for key, value in session.state.items() if value is not None}

    async def close(self, service: BaseSessionService) -> None:
        close = getattr(service, "close", None)
        if close is not None and service is not self.service:
            await close()


@pytest.fixture
def turns(service: BaseSessionService, path: Path) -> Turns:
    return Turns(service, path)


async def test_a_dict_is_replaced_by_a_smaller_one(turns: Turns) -> None:
    first = await turns.run(S.set(d={"a": 1, "b": {"x": 1, "y": 2}}, l=[1, {"z": None}]))
    assert (
        await turns.stored()
        == first.state
        == {
            "d": {"a": 1, "b": {"x": 1, "y": 2}},
            "l": [1, {"z": None}],
        }
    )
    second = await turns.run(S.set(d={"b": {"y": 3}}, l=[]))
    assert await turns.stored() == second.state == {"d": {"b": {"y": 3}}, "l": []}
    third = await turns.run(S.set(d={}) >> S.transform("l", lambda rows: {"n": len(rows)}))
    assert await turns.stored() == third.state == {"d": {}, "l": {"n": 0}}
    fourth = await turns.run(S.rename(d="l"))
    assert await turns.stored() == fourth.state == {"l": {}}


async def test_a_dict_of_the_user_or_the_app_is_replaced_too(turns: Turns) -> None:
    await turns.run(S.user.set(d={"a": 1, "b": 2}) >> S.app.set(d={"a": 1, "b": 2}))
    second = await turns.run(S.user.set(d={"b": 3}) >> S.app.compute(d=lambda state: {"c": 3}))
    assert await turns.stored() == second.state == {"user:d": {"b": 3}, "app:d": {"c": 3}}


async def test_what_was_removed_is_gone_in_the_next_turn(turns: Turns) -> None:
    await turns.run(
        S.set(a=1, b={"x": 1}, c=3, d=4) >> S.user.set(u=1) >> S.app.set(a=1) >> S.temp.set(t=1)
    )
    await turns.run(S.drop("d") >> S.rename(b="e") >> S.pick("a", "e"))
    kept = {"a": 1, "e": {"x": 1}, "user:u": 1, "app:a": 1}
    assert await turns.stored() == kept
    seen: list[dict[str, Any]] = []

    def look(state: State) -> None:
        seen.append(dict(state))

    third = await turns.run(look >> S.default(a=2, b=2, d=5) >> S.rename(c="a", b="f"))
    assert seen == [kept]
    assert await turns.stored() == third.state == {**kept, "d": 5, "f": 2}
    await turns.run(S.user.drop("u") >> S.app.rename(a="b"))
    assert await turns.stored() == {"a": 1, "e": {"x": 1}, "d": 5, "f": 2, "app:b": 1}


async def test_an_agent_does_not_find_what_was_dropped(turns: Turns) -> None:
    model = ScriptedModel(default="ok")
    agent = Agent("a", model).instruct("topic={topic?} tier={user:tier?} draft={draft?}.")
    await turns.run(S.set(topic="x", draft="y") >> S.user.set(tier="gold"))
    await turns.run(S.pick("topic") >> agent)
    await turns.run(agent >> S.drop("topic") >> agent)
    assert [call.system.splitlines()[0] for call in model.calls] == [
        "topic=x tier=gold draft=.",
        "topic=x tier=gold draft=.",
        "topic= tier=gold draft=.",
    ]


async def kept_by_adk(turns: Turns, value: object) -> bool:
    """Whether ADK reads what ADK wrote: its SQLite service of 2.8 rounds numbers."""
    service = fresh(turns.service, turns.path)
    try:
        session = await service.create_session(app_name=APP, user_id=USER, session_id="raw")
        actions = EventActions(state_delta={"n": value})
        await service.append_event(session, Event(author="x", invocation_id="i", actions=actions))
        again = await service.get_session(app_name=APP, user_id=USER, session_id="raw")
    finally:
        await turns.close(service)
    assert again is not None
    return again.state["n"] == value


async def test_every_value_of_json_comes_back(turns: Turns) -> None:
    values: dict[str, Any] = {
        "none": [None],
        "yes": True,
        "one": 1,
        "half": 0.5,
        "round": 1.0,
        "large": 2**70,
        "text": 'ü\u2028"\\\n😀',
        "empty": {"": [{}, [], ""]},
        "deep": [[[[{"a": [{"b": None}]}]]]],
    }
    if not await kept_by_adk(turns, values["large"]):
        values["large"] = 2**40
    await turns.run(S.set(**values))
    found = await turns.stored()
    assert found == values
    assert {key: type(value) for key, value in found.items()} == {
        key: type(value) for key, value in values.items()
    }


async def test_guard_stops_before_the_next_agent(turns: Turns) -> None:
    model = ScriptedModel(default="ok")
    desk = S.set(a=1) >> S.guard("topic", "no topic") >> Agent("a", model)
    with pytest.raises(ExpectationError, match="no topic"):
        await turns.run(desk)
    assert (await turns.stored(), model.calls) == ({"a": 1}, ())
    assert (await turns.run(S.set(topic="x") >> desk)).text == "ok"


# --- the same without ADK ------------------------------------------------------------------------


async def later(state: State) -> int:
    await asyncio.sleep(0.001)
    return len(state)


async def wait(state: State) -> None:
    await asyncio.sleep(0.001)


def fail(state: State) -> None:
    raise ValueError("no")


def joined(*values: Any) -> str:
    return "+".join(str(value) for value in values)


ARRANGED: dict[str, Builder] = {
    "pipeline": S.set(a=1) >> S.compute(n=later) >> S.rename(a="b") >> S.pick("b", "k"),
    "parallel": S.set(a=1) | S.set(a=2, b=1) | S.default(a=3, c=3) | S.user.set(u=1),
    "loop": (S.compute(n=lambda s: s.get("n", 0) + 1) >> S.set(x=[])) * until(lambda s: s["n"] > 2),
    "route": S.set(t="x") >> Route("t").eq("x", S.set(r=1)).otherwise(S.set(r=2)) >> S.drop("t"),
    "branches": S.set(t="y") >> {"x": S.set(r=1), "y": S.set(r=2)},
    "fallback": (S.set(k=5, d={}) >> S.drop("e") >> fail) // (S.set(f=1) >> S.merge("k", into="l")),
    "race": race(S.set(w=1) >> wait >> S.drop("k"), S.pick("d") >> S.set(w=2) >> fail),
    "map": map_over(
        "rows", S.transform("row", str) >> S.merge("row", "k", into="one", fn=joined),
        item_key="row", result_key="one",
    ),
    "timeout": timeout(S.set(a=1) >> S.guard("a") >> S.temp.set(t=1) >> S.temp.rename(t="u"), 9),
    "either side": fail // S.set(a=1) >> S.log("a") >> (S.log("a") | fail // S.set(b=1)),
}  # fmt: skip
STATE: dict[str, Any] = {"k": 1, "d": {"x": 1}, "e": [1], "rows": [1, 2], "user:u": 0}


@pytest.mark.parametrize("name", ARRANGED)
async def test_the_same_as_on_the_mock_backend(name: str, turns: Turns) -> None:
    step = ARRANGED[name]
    mocked = await step.run("hi", backend=mock_backend({}), state=STATE)
    ran = await turns.run(step, state=STATE)
    assert ran.state == mocked.state
    assert await turns.stored() == mocked.state
    if name not in {"parallel", "race", "map"}:  # whose branches go on as they like
        assert writes(ran) == writes(mocked)


def writes(ran: RunResult) -> list[dict[str, Any]]:
    """What each event wrote that outlives the run.

    A dict that a store would merge into the old one is removed first, in an event of its own.
    """
    found = [
        {key: value for key, value in event.state_delta.items() if not key.startswith("temp:")}
        for event in ran
    ]
    clearing = ({"d": None},)
    return [each for each in found if each and each not in clearing]

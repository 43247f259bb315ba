"""Rewinding: state, what agents see, and what a session was created with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from adk_programs import agent, by_runner, fn, par, seq, turns, writer

from adk_fluent.backends.adk import ADKBackend, to_agent
from adk_fluent.errors import SessionError

if TYPE_CHECKING:
    from google.adk.sessions.base_session_service import BaseSessionService

pytestmark = pytest.mark.adk

APP = "adk_fluent_app"


class Desk:
    """One session, a program, and the runs made in it."""

    def __init__(self, service: BaseSessionService, *steps: Any) -> None:
        self.service = service
        self.backend = ADKBackend(session_service=service)
        self.program = self.backend.compile(seq(*steps))

    async def open(self, **state: Any) -> None:
        await self.service.create_session(app_name=APP, user_id="user", session_id="s", state=state)

    async def run(self, message: str = "hi") -> str:
        result = await self.backend.run(self.program, message, session_id="s")
        return result.invocation_id

    async def rewind(self, before: str) -> dict[str, Any]:
        await self.backend.rewind(self.program, session_id="s", before_invocation_id=before)
        return await self.state()

    async def state(self) -> dict[str, Any]:
        session = await self.service.get_session(app_name=APP, user_id="user", session_id="s")
        assert session is not None
        return {key: value for key, value in session.state.items() if value is not None}


def counting() -> Any:
    return fn("count", lambda s: {"n": (s.get("n") or 0) + 1, f"k{s.get('n') or 0}": True})


async def test_state_is_what_it_was_before_the_run(service: BaseSessionService) -> None:
    desk = Desk(service, counting())
    first, second, _ = [await desk.run() for _ in range(3)]
    assert await desk.rewind(second) == {"n": 1, "k0": True}
    assert await desk.rewind(first) == {}
    await desk.run()
    assert await desk.state() == {"n": 1, "k0": True}


async def test_what_the_session_was_created_with_is_kept(service: BaseSessionService) -> None:
    desk = Desk(service, writer("w", x=1))
    await desk.open(tier="gold", limits={"a": 1})
    first = await desk.run()
    assert await desk.rewind(first) == {"tier": "gold", "limits": {"a": 1}}


async def test_a_first_value_that_was_written_over_comes_back(service: BaseSessionService) -> None:
    desk = Desk(service, counting())
    await desk.open(n=10)
    first, second = await desk.run(), await desk.run()
    assert await desk.rewind(second) == {"n": 11, "k10": True}
    await desk.run()
    assert await desk.rewind(first) == {"n": 10}
    await desk.run()
    assert (await desk.state())["n"] == 11


async def test_a_first_dict_comes_back_as_it_was(service: BaseSessionService) -> None:
    desk = Desk(service, writer("w", d={"b": {"y": 2}}))
    await desk.open(d={"a": 1, "b": {"x": 1}})
    first = await desk.run()
    assert await desk.state() == {"d": {"b": {"y": 2}}}
    assert await desk.rewind(first) == {"d": {"a": 1, "b": {"x": 1}}}


async def test_values_written_in_branches_and_by_agents_come_back(
    service: BaseSessionService,
) -> None:
    desk = Desk(service, par(writer("w", a="new"), agent("x", "new", writes="b")))
    await desk.open(a="old", b="old", c="old")
    first = await desk.run()
    assert await desk.state() == {"a": "new", "b": "new", "c": "old"}
    assert await desk.rewind(first) == {"a": "old", "b": "old", "c": "old"}


async def test_keys_of_users_and_apps_stay(service: BaseSessionService) -> None:
    desk = Desk(service, writer("w", **{"user:u": 1, "app:a": 2, "x": 3}))
    first = await desk.run()
    assert await desk.rewind(first) == {"user:u": 1, "app:a": 2}


async def test_agents_see_nothing_of_what_was_taken_back(service: BaseSessionService) -> None:
    z = agent("z")
    desk = Desk(service, z)
    await desk.run("one")
    second = await desk.run("two")
    await desk.rewind(second)
    await desk.run("three")
    assert turns(z) == ["one", "z", "three"]


async def test_a_session_made_by_a_foreign_runner_is_rewound_alike(
    service: BaseSessionService,
) -> None:
    await service.create_session(app_name="x", user_id="u", session_id="s", state={"n": 5})
    events = await by_runner(to_agent(counting()), service=service, session_id="s")
    backend = ADKBackend(session_service=service)
    from adk_fluent.ir import ExecutionConfig

    compiled = backend.compile(counting(), ExecutionConfig(app_name="x"))
    await backend.rewind(
        compiled, user_id="u", session_id="s", before_invocation_id=events[0].invocation_id
    )
    session = await service.get_session(app_name="x", user_id="u", session_id="s")
    assert session is not None
    assert {k: v for k, v in session.state.items() if v is not None} == {"n": 5}


async def test_rewinding_what_does_not_exist_is_explained(service: BaseSessionService) -> None:
    desk = Desk(service, writer("w", x=1))
    with pytest.raises(SessionError, match="there is no session 's' of user 'user'"):
        await desk.rewind("e-1")
    await desk.run()
    with pytest.raises(SessionError, match="has no run 'e-1'"):
        await desk.rewind("e-1")
    assert await desk.state() == {"x": 1}

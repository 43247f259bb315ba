"""Runs that are cut off after each of their events in turn, with pipelines below pipelines."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.sessions.in_memory_session_service import InMemorySessionService

from adk_fluent import Agent, FanOut, Loop, Pipeline, gate
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import SessionError, SessionStoreError
from adk_fluent.testing import Call

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session

    from adk_fluent.builders import Builder

pytestmark = [
    pytest.mark.adk,
    # ADK says so of what lets `run_async(invocation_id=...)` in
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
]

DURABLE = ExecutionConfig(resumable=True)


class Cutting(InMemorySessionService):
    """Ends a run when so many events are committed.

    Attributes:
        after: How many; 0 never does.
        error: With what.
    """

    after = 0
    error: type[BaseException] = asyncio.CancelledError

    async def append_event(self, session: Session, event: Event) -> Event:
        event = await super().append_event(session, event)
        if not event.partial and self.after:
            self.after -= 1
            if not self.after:
                raise self.error
        return event


def bump(name: str) -> Any:
    def step(state: Any) -> dict[str, int]:
        return {name: (state.get(name) or 0) + 1}

    step.__name__ = name
    return step


def in_a_step() -> Builder:
    inner = Pipeline("inner", bump("x"), Agent("i").mock("I"), bump("y"))
    return Pipeline("pipe", bump("a"), inner.to_agent(DURABLE), bump("z"))


def without_a_configuration_of_its_own() -> Builder:
    inner = Pipeline("inner", bump("x"), Agent("i").mock("I"), bump("y"))
    return Pipeline("pipe", bump("a"), inner.to_agent(), bump("z"))


def ending_with_an_agent() -> Builder:
    inner = Pipeline("inner", bump("x"), Agent("i").mock("I"))
    return Pipeline("pipe", bump("a"), inner.to_agent(DURABLE), bump("z"))


def two_levels() -> Builder:
    lowest = Pipeline("lowest", bump("x"), Agent("i").mock("I"), bump("y"))
    middle = Pipeline("middle", bump("m"), lowest.to_agent(), bump("n"))
    return Pipeline("pipe", bump("a"), middle.to_agent(), bump("z"))


def in_branches() -> Builder:
    one = Pipeline("one", bump("x"), Agent("i").mock("I"))
    two = Pipeline("two", bump("y"), Agent("j").mock("J"))
    return Pipeline("pipe", bump("a"), FanOut("both", one.to_agent(), two.to_agent()), bump("z"))


def in_a_loop() -> Builder:
    inner = Pipeline("inner", bump("x"), Agent("i").mock("I"), bump("y"))
    loop = Loop("loop", bump("l"), inner.to_agent(), max=3)
    return Pipeline("pipe", bump("a"), loop, bump("z"))


def below_an_agent() -> Builder:
    inner = Pipeline("inner", bump("x"), Agent("i").mock("I"), bump("y"))
    boss = Agent("boss").mock(Call("transfer_to_agent", {"agent_name": "inner"})).delegates(inner)
    return Pipeline("pipe", bump("a"), boss, bump("z"))


SHAPES = {
    each.__name__: each
    for each in (
        in_a_step,
        without_a_configuration_of_its_own,
        ending_with_an_agent,
        two_levels,
        in_branches,
        in_a_loop,
        below_an_agent,
    )
}


async def finished(shape: str, after: int, error: type[BaseException]) -> dict[str, Any] | None:
    """State at the end of a run that was cut off once; None if it was over before."""
    service = Cutting()
    options: Any = {"session_id": "s", "session_service": service, "config": DURABLE}
    service.after, service.error = after, error
    with suppress(error, SessionStoreError):
        await SHAPES[shape]().run("hi", **options)
    if service.after:
        return None
    with suppress(SessionError):  # nothing had begun, or the end was written down
        await SHAPES[shape]().resume(**options)
    where: Any = {"app_name": "adk_fluent_app", "user_id": "user", "session_id": "s"}
    session = await service.get_session(**where)
    assert session is not None
    kept = {key for key, value in session.state.items() if value is not None}
    assert not {key for key in kept if key.startswith("_adk_fluent")}, after
    return session.state


@pytest.mark.parametrize("error", [asyncio.CancelledError, ConnectionError])
@pytest.mark.parametrize("shape", SHAPES)
async def test_wherever_a_run_is_cut_off_nothing_is_done_twice(
    shape: str, error: type[BaseException]
) -> None:
    options: Any = {"session_service": InMemorySessionService(), "config": DURABLE}
    end = (await SHAPES[shape]().run("hi", **options)).state
    assert end["a"] == end["z"] == 1
    for after in range(3, 100):  # the message and the first of the journal begin it
        state = await finished(shape, after, error)
        if state is None:
            break
        assert {key: state.get(key) for key in end} == end, after
    else:
        raise AssertionError("it never ended")
    assert after > 8


async def test_a_gate_below_is_not_asked_again_after_its_pipeline_was_over() -> None:
    paid: list[str] = []

    def pay(state: Any) -> dict[str, int]:
        paid.append("pay")
        return {"paid": (state.get("paid") or 0) + 1}

    def pipeline() -> Builder:
        inner = (Agent("i").mock("I") >> gate(name="ok") >> pay).named("inner")
        return (Agent("first").mock("F") >> inner.to_agent() >> Agent("last").mock("L")).named("p")

    for after in range(1, 100):
        paid.clear()
        service = Cutting()
        options: Any = {"session_id": "s", "session_service": service, "config": DURABLE}
        answer = (await pipeline().run("hi", **options)).pending[0].answer(True)
        service.after = after
        with suppress(asyncio.CancelledError):
            await pipeline().resume(answer, **options)
        if service.after:
            break
        where: Any = {"app_name": "adk_fluent_app", "user_id": "user", "session_id": "s"}
        with suppress(SessionError):  # what was answered counts, or it was over
            await pipeline().resume(**options)
        session = await service.get_session(**where)
        assert session is not None
        if "paid" not in session.state:  # the answer was cut off
            await pipeline().resume(answer, **options)
        else:
            assert session.state["paid"] == 1, after
        assert len(paid) == 1, after
    else:
        raise AssertionError("it never ended")
    assert after > 6

"""Time travel: forks of sessions in ADK's session services, and going on from them."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent, gate
from adk_fluent.debug import TimeTravel
from adk_fluent.errors import SessionError, UsageError
from adk_fluent.ir import ExecutionConfig
from adk_fluent.testing import Call, ScriptedModel, rule

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from google.adk.sessions.base_session_service import BaseSessionService

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings("ignore:.*EXPERIMENTAL.*:UserWarning"),
]

RESUMABLE = ExecutionConfig(resumable=True)


@pytest.fixture(params=["memory", "sqlite", "database"])
async def service(request: Any, tmp_path: Path) -> AsyncIterator[BaseSessionService]:
    if request.param == "memory":
        from google.adk.sessions.in_memory_session_service import InMemorySessionService

        yield InMemorySessionService()
    elif request.param == "sqlite":
        from google.adk.sessions.sqlite_session_service import SqliteSessionService

        yield SqliteSessionService(str(tmp_path / "sessions.db"))
    else:
        from google.adk.sessions.database_session_service import DatabaseSessionService

        made = DatabaseSessionService(f"sqlite+aiosqlite:///{tmp_path / 'all.db'}")
        yield made
        await made.close()


@pytest.fixture
def memory() -> BaseSessionService:
    from google.adk.sessions.in_memory_session_service import InMemorySessionService

    return InMemorySessionService()


class Shop:
    """A pipeline of two agents, branches and functions, which notes what is executed."""

    def __init__(self, service: BaseSessionService) -> None:
        self.service = service
        self.ran: list[str] = []
        rules = [
            rule("[result refund", reply="A1 is refunded."),
            rule("A1", reply=Call("refund", {"order": "A1"})),
        ]
        self.clerk = ScriptedModel(rules=rules)
        self.last = ScriptedModel(default="Bye.")
        clerk = Agent("clerk", self.clerk).tool(self._tool()).writes("said")
        legal, sales = (Agent(each).mock(f"{each} agrees") for each in ("legal", "sales"))
        last = Agent("last", self.last).instruct("{said}")
        self.pipeline = clerk >> self.count >> (legal | sales) >> self.close >> last
        self.options: dict[str, Any] = {"session_service": service, "config": RESUMABLE}

    def _tool(self) -> Any:
        def refund(order: str, tool_context: Any) -> str:
            """Pay an order back."""
            self.ran.append("refund")
            tool_context.state["user:orders"] = tool_context.state.get("user:orders", 0) + 1
            tool_context.state["paid"] = {"order": order}
            return "done"

        return refund

    def count(self, state: Any) -> dict[str, int]:
        self.ran.append("count")
        return {"n": (state.get("n") or 0) + 1}

    def close(self, state: Any) -> dict[str, bool]:
        self.ran.append("close")
        return {"closed": True}

    async def run(self) -> Any:
        state = {"keep": "as created", "n": 10}
        return await self.pipeline.run("Refund A1", state=state, session_id="s", **self.options)

    async def resume(self, fork: Any, **more: Any) -> Any:
        return await self.pipeline.resume(session_id=fork.id, **self.options, **more)


def named(result: Any, name: str) -> Any:
    """The last event of a step."""
    return [each for each in result if each.node == name][-1]


async def test_a_fork_goes_on_in_the_middle_and_executes_nothing_before(
    service: BaseSessionService,
) -> None:
    shop = Shop(service)
    result = await shop.run()
    travel = TimeTravel(service)
    before = await service.get_session(app_name=result.app_name, user_id="user", session_id="s")
    fork = await travel.fork(result, at=named(result, "count").id)
    assert "said" in fork.state
    assert "closed" not in fork.state
    shop.ran.clear()
    asked = len(shop.clerk.calls)
    again = await shop.resume(fork)
    assert shop.ran == ["close"]
    assert len(shop.clerk.calls) == asked
    assert (again.text, again.state) == (result.text, result.state)
    assert {each.node for each in again} == {"legal", "sales", "close", "last"}
    after = await service.get_session(app_name=result.app_name, user_id="user", session_id="s")
    assert after == before


async def test_state_is_what_it_was_and_what_it_began_with(service: BaseSessionService) -> None:
    shop = Shop(service)
    result = await shop.run()
    travel = TimeTravel(service)
    began = {"keep": "as created", "n": 10, "user:orders": 1}
    assert await travel.state_at(result, 0) == began
    assert (await travel.state_at(result, named(result, "count").id))["n"] == 11
    assert await travel.state_at(result, -1) == result.state
    fork = await travel.fork(result, at=0)
    assert await travel.state_at(fork, 0) == began
    await shop.resume(fork)
    assert shop.ran == ["refund", "count", "close"] * 2
    assert (await travel.state_at(fork, -1))["n"] == 11


@pytest.mark.parametrize("name", ["clerk", "count", "legal", "sales", "close", "last"])
async def test_a_fork_at_each_step_ends_as_the_run_did(
    memory: BaseSessionService, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    shop = Shop(memory)
    result = await shop.run()
    ran = ["refund", "count", "close"]
    fork = await TimeTravel(memory).fork(result, at=named(result, name).id)
    shop.ran.clear()
    if name == "last":
        assert not [each for each in caplog.records if "fork" in each.message]
        with pytest.raises(SessionError, match="no run to go on with"):
            await shop.resume(fork)
        return
    again = await shop.resume(fork)
    assert again.state == {**result.state}
    done = {"clerk": 1, "count": 2, "legal": 2, "sales": 2, "close": 3}[name]
    assert shop.ran == ran[done:]
    steps = ["count", "legal", "sales", "close", "last"]
    first = {"clerk": 0, "count": 1, "legal": 1, "sales": 3, "close": 4}  # beside legal is sales
    assert {each.node for each in again} == {*steps[first[name] :]}


async def test_shared_state_stays_as_it_is_unless_it_is_named(
    service: BaseSessionService,
) -> None:
    shop = Shop(service)
    result = await shop.run()
    travel = TimeTravel(service)
    await shop.pipeline.run("Refund A1", session_id="t", **shop.options)
    fork = await travel.fork(result, at=0)
    assert fork.state["user:orders"] == 2
    fork = await travel.fork(result)  # with the event that wrote 1
    assert fork.state["user:orders"] == 2
    patch = {"user:orders": 7, "paid": {"other": 1}, "keep": None, "new": [1]}
    fork = await travel.fork(result, at=named(result, "clerk").id, state=patch)
    state = await travel.state_at(fork, -1)
    assert state["user:orders"] == 7
    assert (state["paid"], state["new"]) == ({"other": 1}, [1])
    assert "keep" not in state
    assert (await travel.state_at(result, 0))["user:orders"] == 7
    shop.ran.clear()
    assert (await shop.resume(fork)).state["paid"] == {"other": 1}
    assert shop.ran == ["count", "close"]


async def test_what_was_said_can_be_edited(memory: BaseSessionService) -> None:
    shop = Shop(memory)
    result = await shop.run()
    said = named(result, "clerk").id
    travel = TimeTravel(memory)
    fork = await travel.fork(result, at=said, edit={0: "Refund B2", said: "B2 is refunded."})
    await shop.resume(fork)
    assert "B2 is refunded." in str(shop.last.calls[-1].system)
    texts = str(shop.last.calls[-1].turns)
    assert "Refund B2" in texts
    assert "A1 is refunded" not in texts


async def test_a_call_that_was_not_answered_is_made_again(memory: BaseSessionService) -> None:
    shop = Shop(memory)
    result = await shop.run()
    call = next(each for each in result if each.tool_calls)
    answered = next(each for each in result if each.tool_responses)
    fork = await TimeTravel(memory).fork(result, at=answered.id)
    shop.ran.clear()
    await shop.resume(fork)
    assert shop.ran == ["count", "close"]  # the model is asked again and sees the result
    fork = await TimeTravel(memory).fork(result, at=call.id)
    shop.ran.clear()
    await shop.resume(fork)
    assert shop.ran == ["refund", "count", "close"]


async def test_that_a_step_is_executed_again_is_said(
    memory: BaseSessionService, caplog: pytest.LogCaptureFixture
) -> None:
    shop = Shop(memory)
    result = await shop.run()
    call = next(each for each in result if each.tool_calls)
    with caplog.at_level(logging.WARNING, "adk_fluent"):
        await TimeTravel(memory).fork(result, at=call.id)
    assert "step 'clerk', or a branch beside it, had more to do" in caplog.text


@pytest.mark.parametrize("writes", [False, True])
async def test_a_fork_of_branches_leaves_out_none_that_is_not_kept(
    memory: BaseSessionService, caplog: pytest.LogCaptureFixture, writes: bool
) -> None:
    def branch(name: str) -> Agent:
        agent = Agent(name).mock(f"{name}!")
        return agent.writes(name) if writes else agent

    pipeline = (branch("a") | branch("b")) >> Agent("c").mock("end")
    options: dict[str, Any] = {"session_service": memory, "config": RESUMABLE}
    result = await pipeline.run("x", **options)
    for at, then, is_told in (("a", ["a", "b", "c"], True), ("b", ["c"], False)):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "adk_fluent"):
            fork = await TimeTravel(memory).fork(result, at=named(result, at).id)
        assert (f"step {at!r}, or a branch beside it" in caplog.text) is is_told
        again = await pipeline.resume(session_id=fork.id, **options)
        assert [each.author for each in again] == then


async def test_a_waiting_run_is_forked_and_answered_twice(service: BaseSessionService) -> None:
    pipeline = Agent("a").mock("Pay 10?") >> gate(name="approve") >> Agent("b").mock("Paid.")
    options: dict[str, Any] = {"session_service": service}
    asked = await pipeline.run("x", session_id="s", **options)
    fork = await TimeTravel(service).fork(asked)
    yes = await pipeline.resume(asked.pending[0].answer(True), session_id=fork.id, **options)
    no = await pipeline.resume(asked.pending[0].answer(False), session_id="s", **options)
    assert (yes.text, yes.status, no.status) == ("Paid.", "completed", "rejected")


async def test_a_run_and_its_fork_go_on_at_the_same_time(memory: BaseSessionService) -> None:
    begun, release = asyncio.Event(), asyncio.Event()

    async def wait(state: Any) -> None:
        begun.set()
        await release.wait()

    pipeline = Agent("a").mock("one") >> wait >> Agent("b").mock("late")
    options: dict[str, Any] = {"session_service": memory, "config": RESUMABLE}
    running = asyncio.create_task(pipeline.run("x", session_id="s", **options))
    await begun.wait()
    [listed] = (await memory.list_sessions(app_name="adk_fluent_app", user_id="user")).sessions
    fork = await TimeTravel(memory).fork(listed)
    forked = asyncio.create_task(pipeline.resume(session_id=fork.id, **options))
    begun.clear()
    await begun.wait()
    release.set()
    assert (await forked).text == (await running).text == "late"


async def test_without_a_position_a_fork_begins_a_new_run(memory: BaseSessionService) -> None:
    shop = Shop(memory)
    shop.options.pop("config")
    result = await shop.run()
    fork = await TimeTravel(memory).fork(result, at=named(result, "clerk").id)
    with pytest.raises(SessionError, match="no run to go on with"):
        await shop.resume(fork)
    again = await shop.pipeline.run("Refund A1", session_id=fork.id, **shop.options)
    assert again.state["n"] == 11


async def test_attempts_that_are_discarded_after_the_fork_are_rolled_back(
    memory: BaseSessionService,
) -> None:
    def write(state: Any) -> dict[str, str]:
        return {"draft": "first"}

    def fail(state: Any) -> None:
        raise ConnectionError("down")

    model = ScriptedModel(default="other")
    pipeline = (Agent("one").mock("I try.") >> write >> fail) // Agent("two", model)
    options: dict[str, Any] = {"session_service": memory, "config": RESUMABLE}
    result = await pipeline.run("x", session_id="s", state={"draft": "begun"}, **options)
    assert result.state["draft"] == "begun"
    fork = await TimeTravel(memory).fork(result, at=named(result, "write").id)
    assert fork.state["draft"] == "first"
    again = await pipeline.resume(session_id=fork.id, **options)
    assert (again.text, again.state) == ("other", result.state)
    assert "I try." not in str(model.calls[-1].turns)


async def test_a_fork_can_be_rewound(service: BaseSessionService) -> None:
    shop = Shop(service)
    result = await shop.run()
    fork = await TimeTravel(service).fork(result, state={"keep": "changed"})
    await shop.pipeline.rewind(
        session_id=fork.id,
        before_invocation_id=result.invocation_id,
        session_service=service,
    )
    state = await TimeTravel(service).state_at(fork, -1)
    assert (state["keep"], state["n"]) == ("as created", 10)


async def test_what_cannot_be_is_refused_and_leaves_no_session(
    memory: BaseSessionService, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(memory)
    result = await shop.run()
    travel = TimeTravel(memory)
    wrong: Any
    for wrong, words in (
        ({"at": 99}, "no event 99"),
        ({"at": "x"}, "no event of id 'x'"),
        ({"at": 1.5}, "by index or id"),
        ({"state": {"temp:x": 1}}, "temp: keys last"),
        ({"state": {"x": {1}}}, "is a set"),
        ({"state": [1]}, "takes a mapping"),
        ({"edit": {-1: "x"}, "at": 0}, "which comes after"),
        ({"edit": {1: "x"}}, "has no content"),
        ({"edit": {0: 3}}, "text, or a Content"),
        ({"edit": {None: "x"}}, "edit= name events by index or id"),
        ({"edit": "x"}, "takes a mapping"),
    ):
        with pytest.raises(UsageError, match=words):
            await travel.fork(result, **wrong)
    with pytest.raises(UsageError, match="a session service"):
        TimeTravel(wrong)
    with pytest.raises(UsageError, match="takes a session"):
        await travel.state_at(wrong, 0)
    lost: Any = type("Lost", (), {"id": "zz", "app_name": "a", "user_id": "u"})()
    with pytest.raises(SessionError, match="no session 'zz'"):
        await travel.fork(lost)

    async def full(**_: Any) -> None:
        raise OSError("disk is full")

    monkeypatch.setattr(memory, "append_event", full)
    with pytest.raises(OSError, match="full"):
        await travel.fork(result)
    listed = await memory.list_sessions(app_name=result.app_name, user_id="user")
    assert [each.id for each in listed.sessions] == ["s"]

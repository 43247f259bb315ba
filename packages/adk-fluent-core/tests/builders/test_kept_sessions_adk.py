"""Sessions in memory of runs that were given no id: how long they are there."""

from __future__ import annotations

import asyncio
import copy
import gc
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai.types import Part

from adk_fluent import Agent, Pipeline, Resource, gate
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import SessionError, UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator

    from adk_fluent.builders import Builder, State
    from adk_fluent.builders._base import BuilderBase
    from adk_fluent.protocol import Pending

pytestmark = [pytest.mark.adk, pytest.mark.filterwarnings("ignore:.EXPERIMENTAL")]


def counted() -> Pipeline:
    def count(state: State) -> dict[str, int]:
        return {"n": state.get("n", 0) + 1}

    return Agent("a").mock("Hello.") >> count


def asks() -> Pipeline:
    return gate(message="Go on?", name="ask") >> counted()


def kept(pipeline: BuilderBase) -> list[str]:
    """The ids of the sessions that a builder keeps."""
    gc.collect()
    return held(pipeline)


def held(pipeline: BuilderBase) -> list[str]:
    """The same before any cycle of references is looked for."""
    service: Any = pipeline._kept().adk.session_service
    users: list[Any] = [each for app in service.sessions.values() for each in app.values()]
    return [id for sessions in users for id in sessions]


async def test_memory_is_flat_over_many_runs(pytestconfig: pytest.Config) -> None:
    pipeline, most = counted(), 0
    for _ in range(1000 if pytestconfig.option.full else 50):
        await pipeline.run("Hello.")
        async for _ in pipeline.stream("Hello."):
            pass
        most = max(most, len(held(pipeline)))
    assert most == 0
    runs = pipeline._kept()
    assert len(runs._leases) == len(runs._asking) == 0


async def test_ask_and_map_keep_nothing() -> None:
    pipeline = counted()
    await pipeline.ask_async("Hello.")
    await pipeline.map_async(["a", "b"])
    assert kept(pipeline) == []


async def test_a_session_lives_as_long_as_any_result_of_it() -> None:
    pipeline = counted()
    result = await pipeline.run("One.")
    for n in range(2, 5):  # the one before is gone when the next is there
        result = await pipeline.run("And one.", session_id=result.session_id)
        assert result.state["n"] == n
        assert kept(pipeline) == [result.session_id]
    assert await pipeline.ask_async("And.", session_id=result.session_id) == "Hello."
    assert (await pipeline.run("Last.", session_id=result.session_id)).state["n"] == 6
    del result
    assert kept(pipeline) == []


async def test_runs_beside_each_other_keep_a_session_each() -> None:
    pipeline = counted()
    results = await asyncio.gather(*(pipeline.run("One.") for _ in range(8)))
    assert len(kept(pipeline)) == 8
    del results[1:]
    await asyncio.sleep(0)  # gather has them, too
    assert kept(pipeline) == [results[0].session_id]


async def test_a_session_that_nobody_kept_is_an_error_and_never_a_new_one() -> None:
    pipeline = counted()
    id = (await pipeline.run("One.")).session_id
    gc.collect()
    calls: tuple[Callable[[], Awaitable[object]], ...] = (
        lambda: pipeline.run("Two.", session_id=id),
        lambda: pipeline.ask_async("Two.", session_id=id),
        lambda: pipeline.resume(session_id=id),
        lambda: anext(pipeline.stream("Two.", session_id=id)),
    )
    for again in calls:
        with pytest.raises(SessionError, match="keep the result, or give session_id=") as caught:
            await again()
        assert id in str(caught.value)
    with pytest.raises(SessionError, match="there is no session"):
        await pipeline.pending(session_id=id)
    assert kept(pipeline) == []


async def test_a_session_of_another_user_or_builder_is_an_error_too() -> None:
    pipeline = counted()
    mine = await pipeline.run("One.", user_id="ann")
    with pytest.raises(SessionError, match="of user 'ben' is not there"):
        await pipeline.run("Two.", user_id="ben", session_id=mine.session_id)
    with pytest.raises(SessionError, match="is not there"):
        await counted().run("Two.", user_id="ann", session_id=mine.session_id)
    again = await pipeline.run("Two.", user_id="ann", session_id=mine.session_id)
    assert again.state["n"] == 2


async def test_a_question_keeps_its_session_when_the_result_is_gone() -> None:
    pipeline = asks()
    id = (await pipeline.run("Go.")).session_id
    assert kept(pipeline) == [id]
    held = await pipeline.run("Yes.", session_id=id)  # which answers nothing
    assert held.status == "waiting"
    del held
    (question,) = await pipeline.pending(session_id=id)
    assert kept(pipeline) == [id]
    done = await pipeline.resume(question.answer(True), session_id=id)
    assert (done.status, done.state["n"]) == ("completed", 1)
    assert kept(pipeline) == [id]
    del done
    assert kept(pipeline) == []


async def test_what_failed_behind_an_answer_can_be_gone_on_with() -> None:
    fails = [False, True]

    def once(state: State) -> None:
        if fails.pop():
            raise ValueError("no")

    pipeline = gate(message="Go on?", name="ask") >> once >> counted()
    first = await pipeline.run("Go.")
    id, answer = first.session_id, first.pending[0].answer(True)
    del first
    with pytest.raises(ValueError, match="no"):
        await pipeline.resume(answer, session_id=id)
    assert kept(pipeline) == [id]
    assert (await pipeline.resume(session_id=id)).state["n"] == 1
    assert kept(pipeline) == []


async def test_a_question_of_a_stream_keeps_its_session() -> None:
    pipeline = asks()
    async for _ in pipeline.stream("Go."):
        pass
    (id,) = kept(pipeline)
    (question,) = await pipeline.pending(session_id=id)
    assert (await pipeline.resume(question.answer(True), session_id=id)).state["n"] == 1
    assert kept(pipeline) == []


@pytest.mark.parametrize("ends", ["read", "closed", "dropped"])
async def test_a_stream_keeps_its_session_as_long_as_it_is_there(ends: str) -> None:
    pipeline = counted()
    stream = pipeline.stream("Hello.")
    await anext(stream)
    assert len(kept(pipeline)) == 1
    if ends == "read":
        async for _ in stream:
            pass
    elif ends == "closed":
        await stream.aclose()
    del stream
    gc.collect()
    for _ in range(50):  # the loop closes what was dropped, one generator after the other
        await asyncio.sleep(0)
    assert kept(pipeline) == []


async def test_a_run_that_fails_keeps_nothing() -> None:
    def fails(state: State) -> None:
        raise ValueError("no")

    pipeline = counted() >> fails
    config = ExecutionConfig(resumable=True)
    with pytest.raises(ValueError, match="no"):
        await pipeline.run("Hello.", config=config)
    assert kept(pipeline) == []
    with pytest.raises(UsageError, match="needs a session_id= from the start"):
        await pipeline.resume(config=config)


async def test_ids_that_users_make_up_are_theirs() -> None:
    pipeline, id = counted(), f"run-{uuid4().hex}"
    for n in (1, 2):
        assert (await pipeline.run("Hello.", session_id=id)).state["n"] == n


async def test_what_a_run_saved_goes_with_its_session() -> None:
    async def save(tool_context: Any) -> str:
        """Save a report."""
        await tool_context.save_artifact("report.txt", Part(text="Done."))
        await tool_context.save_artifact("user:card.txt", Part(text="Mine."))
        tool_context.state["user:visits"] = 1
        return "saved"

    agent = (
        Agent("a")
        .tool(save)
        .mock([Part.from_function_call(name="save", args={}), "Saved.", "Again."])
    )
    result = await agent.run("Save.")
    files: Any = agent._kept().adk.artifact_service
    assert len(files.artifacts) == 2
    del result
    assert kept(agent) == []
    assert ["user:card.txt" in each for each in files.artifacts] == [True]
    assert (await agent.run("Again.")).state["user:visits"] == 1


async def test_sessions_with_a_name_and_those_of_a_service_stay() -> None:
    pipeline, service = counted(), InMemorySessionService()
    await pipeline.run("One.", session_id="mine")
    id = (await pipeline.run("One.", session_service=service)).session_id
    assert kept(pipeline) == ["mine"]
    assert (await pipeline.run("Two.", session_id="mine")).state["n"] == 2
    again = await pipeline.run("Two.", session_id=id, session_service=service)
    assert again.state["n"] == 2


async def test_copies_of_a_result_are_results() -> None:
    pipeline = counted()
    result = await pipeline.run("One.")
    assert copy.deepcopy(result).session_id == result.session_id


# --- what was injected for them ------------------------------------------------------------------


class Opened:
    """A factory of resources that notes what becomes of each, by its number."""

    def __init__(self) -> None:
        self.open: list[int] = []
        self.made = 0
        self.fails = False

    def make(self) -> Generator[int]:
        self.made += 1
        mine = self.made
        self.open.append(mine)
        yield mine
        self.open.remove(mine)
        if self.fails:
            raise ConnectionError

    async def later(self) -> AsyncGenerator[int]:
        for each in self.make():
            yield each

    def pipeline(self, first: Builder | None = None, *, later: bool = False) -> Pipeline:
        def use(state: State, db: int) -> dict[str, int]:
            return {"db": db}

        steps = Pipeline(use) if first is None else first >> use
        return steps.inject(db=Resource(self.later if later else self.make, scope="session"))


@pytest.mark.parametrize("later", [False, True])
async def test_what_was_injected_for_a_session_goes_with_it(later: bool) -> None:
    opened = Opened()
    pipeline = opened.pipeline(later=later)
    await pipeline.run("go", session_id="named")
    for n in range(2, 6):
        assert (await pipeline.run("go")).state["db"] == n
        assert opened.open == [1, n]
        async for _ in pipeline.stream("go", session_id="named"):
            pass
        gc.collect()
    kept = await pipeline.run("go")
    again = await pipeline.run("go", session_id=kept.session_id)
    assert again.state["db"] == kept.state["db"]
    await pipeline.aclose()
    assert opened.open == []


@pytest.mark.parametrize("later", [False, True])
async def test_what_ask_and_map_had_injected_is_gone_when_they_return(later: bool) -> None:
    opened = Opened()
    pipeline = opened.pipeline(Agent("a").mock("Hello."), later=later)
    assert await pipeline.ask_async("Hi.") == "Hello."
    assert (opened.open, opened.made) == ([], 1)
    assert await pipeline.map_async(["a", "b"]) == ["Hello."] * 2
    assert (opened.open, opened.made) == ([], 3)
    assert await pipeline.ask_async("Hi.", session_id="named") == "Hello."
    assert opened.open == [4]
    await pipeline.aclose()


async def test_what_a_failed_ask_had_injected_is_gone_too() -> None:
    opened = Opened()

    def fails(state: State) -> None:
        raise ConnectionError

    pipeline = opened.pipeline() >> fails
    with pytest.raises(ConnectionError):
        await pipeline.ask_async("Hi.")
    assert (opened.open, opened.made) == ([], 1)


async def test_what_was_injected_lasts_as_long_as_a_question_is_open() -> None:
    opened = Opened()
    pipeline = opened.pipeline(gate(message="Go on?", name="ask"))
    id, [question] = await waits(pipeline)
    await pipeline.run("go", session_id="named")
    assert opened.open == [1, 2]
    answered = await pipeline.resume(question.answer(True), session_id=id)
    assert answered.state["db"] == 1
    await pipeline.aclose()


async def test_tidying_up_for_others_fails_no_run(caplog: pytest.LogCaptureFixture) -> None:
    opened = Opened()
    pipeline = opened.pipeline()
    await pipeline.run("go")
    gc.collect()
    opened.fails = True
    assert (await pipeline.run("go", session_id="named")).state["db"] == 2
    assert "tidying up resource 'db' failed" in caplog.text
    opened.fails = False
    await pipeline.aclose()


async def waits(pipeline: Pipeline) -> tuple[str, list[Pending]]:
    """A run whose result nobody keeps: its session, and what it asks."""
    result = await pipeline.run("go")
    return result.session_id, list(result.pending)

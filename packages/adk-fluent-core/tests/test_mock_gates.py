"""Gates and runs that go on, on the mock backend."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent, gate, map_over
from adk_fluent.backends.mock import mock_backend
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import BuildError, PlanChangedError, SessionError, UsageError
from adk_fluent.protocol import Answer, Resume

if TYPE_CHECKING:
    from adk_fluent.backends.mock import MockBackend
    from adk_fluent.builders import Pipeline
    from adk_fluent.protocol import RunResult

YES = {"approved": True, "note": ""}
DURABLE = ExecutionConfig(resumable=True)


def shop() -> Pipeline:
    return Agent("clerk") >> gate(message="refund?") >> Agent("bank")


@pytest.fixture
def mock() -> MockBackend:
    return mock_backend({"clerk": "it costs 7", "bank": "paid"})


def asked(mock: MockBackend) -> list[str | None]:
    return [each.agent for each in mock.calls]


async def test_a_gate_waits_and_an_answer_goes_on(mock: MockBackend) -> None:
    ran = await shop().run("refund", backend=mock, session_id="s")
    [question] = ran.pending
    assert (question.kind, question.name, question.message) == ("gate", "gate", "refund?")
    assert question.author == "pipeline"
    assert (ran.text, asked(mock)) == ("it costs 7", ["clerk"])
    ran = await shop().resume(question.answer(), backend=mock, session_id="s")
    assert (ran.text, ran.pending, ran.state) == ("paid", [], {"gate": YES})
    assert asked(mock) == ["clerk", "bank"]
    assert mock.calls[-1].prompt.endswith("it costs 7")


async def test_a_refusal_ends_the_run_and_says_so(mock: MockBackend) -> None:
    ran = await shop().run("refund", backend=mock, session_id="s")
    ran = await shop().run(ran.pending[0].answer("no"), backend=mock, session_id="s")
    assert ran.reason == "gate was refused. Nothing after it was run."
    assert (ran.text, ran.status, ran.step) == ("", "rejected", "gate")
    assert ran.state["gate"]["approved"] is False
    assert asked(mock) == ["clerk"]
    ran = await shop().run("again", backend=mock, session_id="s")
    assert len(ran.pending) == 1


async def test_what_is_said_meanwhile_is_no_answer(mock: MockBackend) -> None:
    [question] = (await shop().run("refund", backend=mock, session_id="s")).pending
    ran = await shop().run("yes", backend=mock, session_id="s")
    assert (ran.text, ran.status) == ("", "waiting")
    assert ran.reason.startswith("Nothing was run: the run in this session waits for an answer.")
    assert [each.id for each in ran.pending] == [question.id]
    for answer, error in (
        (question.answer("hmm"), UsageError),
        (Resume(), SessionError),
    ):
        with pytest.raises(error):
            await shop().run(answer, backend=mock, session_id="s")
    assert asked(mock) == ["clerk"]
    await shop().resume(question.answer(), backend=mock, session_id="s")
    with pytest.raises(SessionError, match="is not open any more"):
        await shop().resume(question.answer(), backend=mock, session_id="s")
    with pytest.raises(SessionError, match="no run to go on with"):
        await shop().resume(backend=mock, session_id="s")


async def test_a_changed_pipeline_does_not_go_on(mock: MockBackend) -> None:
    [question] = (await shop().run("refund", backend=mock, session_id="s")).pending
    changed = shop() >> Agent("more")
    with pytest.raises(PlanChangedError, match="was changed since its run paused"):
        await changed.resume(question.answer(), backend=mock, session_id="s")
    ran = await shop().resume(question.answer(), backend=mock, session_id="s")
    assert ran.text == "paid"


@pytest.mark.parametrize(
    ("first", "then"), [(None, 60.0), (60.0, None), (60.0, 30.0)], ids=["on", "off", "other"]
)
async def test_how_long_a_run_may_take_is_no_part_of_the_pipeline(
    mock: MockBackend, first: float | None, then: float | None
) -> None:
    async def run(message: Any, seconds: float | None) -> RunResult:
        config = ExecutionConfig(timeout_seconds=seconds)
        return await shop().run(message, backend=mock, session_id="s", config=config)

    [question] = (await run("refund", first)).pending
    ran = await run(question.answer(), then)
    assert (ran.text, ran.state, asked(mock)) == ("paid", {"gate": YES}, ["clerk", "bank"])


def test_a_gate_in_a_race_is_refused() -> None:
    from adk_fluent import race

    with pytest.raises(BuildError, match="inside the race"):
        mock_backend().compile(race(Agent("a"), Agent("b") >> gate()).to_ir())


async def test_gates_of_items_are_answered_in_any_order() -> None:
    mock = mock_backend({"a": lambda prompt: "done"})
    pipeline = map_over("items", gate() >> Agent("a").writes("out"), output_key="done")
    ran = await pipeline.run("go", backend=mock, session_id="s", state={"items": [1, 2, 3]})
    first, second, third = ran.pending
    ran = await pipeline.resume(third.answer(), backend=mock, session_id="s")
    assert not asked(mock)[1:]
    assert ran.pending == [first, second]
    ran = await pipeline.resume(first.answer(), second.answer(), backend=mock, session_id="s")
    assert ran.pending == []
    assert len(ran.state["done"]) == 3


async def test_a_failed_step_is_done_once_more_and_no_other(mock: MockBackend) -> None:
    tries: list[int] = []

    def pays(state: Any) -> dict[str, int]:
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionError("bank is closed")
        return {"paid": 7}

    pipeline = Agent("clerk") >> pays >> Agent("bank")
    options: dict[str, Any] = {"backend": mock, "session_id": "s", "config": DURABLE}
    with pytest.raises(ConnectionError):
        await pipeline.run("go", **options)
    ran = await pipeline.resume(**options)
    assert (ran.text, ran.state) == ("paid", {"paid": 7})
    assert asked(mock) == ["clerk", "bank"]


async def test_a_run_that_was_cancelled_goes_on(mock: MockBackend) -> None:
    entered = asyncio.Event()

    async def slow(state: Any) -> dict[str, int]:
        if not entered.is_set():
            entered.set()
            await asyncio.Event().wait()
        return {"slow": 1}

    pipeline = Agent("clerk") >> slow >> Agent("bank")
    options: dict[str, Any] = {"backend": mock, "session_id": "s", "config": DURABLE}
    task = asyncio.create_task(pipeline.run("go", **options))
    await entered.wait()
    with pytest.raises(SessionError, match="still going on"):
        await pipeline.resume(**options)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    ran = await pipeline.resume(**options)
    assert (ran.text, ran.state) == ("paid", {"slow": 1})
    assert asked(mock) == ["clerk", "bank"]


async def test_of_gates_of_one_name_each_has_its_own_form_of_answer(mock: MockBackend) -> None:
    days = {"type": "object", "properties": {"days": {"type": "integer"}}, "required": ["days"]}
    pipeline = gate(key="ok") >> Agent("clerk") >> gate(response_schema=days, key="days")
    ran = await pipeline.run("go", backend=mock, session_id="s")
    ran = await pipeline.resume(ran.pending[0].answer("yes"), backend=mock, session_id="s")
    [question] = ran.pending
    ran = await pipeline.resume(question.answer({"days": 2}), backend=mock, session_id="s")
    assert ran.state == {"ok": YES, "days": {"days": 2}}


async def test_functions_see_nothing_of_what_is_kept_to_go_on(mock: MockBackend) -> None:
    seen: list[list[str]] = []

    def look(state: Any) -> None:
        seen.append(sorted(state))

    pipeline = Agent("clerk") >> gate() >> look
    state = {"_adk_fluent_flow:x": "kept", "mine": 1}
    ran = await pipeline.run("go", backend=mock, session_id="s", state=state)
    await pipeline.resume(ran.pending[0].answer(), backend=mock, session_id="s")
    assert seen == [["gate", "mine"]]


async def test_where_one_answer_counts_for_nothing_none_is_taken() -> None:
    mock = mock_backend({"a": "one", "b": "two"})
    pipeline = (gate(name="x") >> Agent("a")) | (gate(name="y") >> Agent("b"))
    x, y = (await pipeline.run("go", backend=mock, session_id="s")).pending
    for other, error in ((y.answer("hmm"), UsageError), (Answer("z-1", True), SessionError)):
        with pytest.raises(error):
            await pipeline.resume(x.answer(), other, backend=mock, session_id="s")
    assert asked(mock) == []
    ran = await pipeline.resume(x.answer(), y.answer(), backend=mock, session_id="s")
    assert ran.pending == []

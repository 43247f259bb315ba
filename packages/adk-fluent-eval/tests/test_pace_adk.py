"""Suites against a service that has no time: real HTTP, real ADK."""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest
from eval_judges import HAS_EXTRA, NO_EXTRA
from eval_programs import case, says, scripted
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.events.event import Event
from google.genai import types

from adk_fluent import Agent, Fallback
from adk_fluent.eval import FluentEvalSuite, Status, UserSimulation
from adk_fluent.eval._running import _pace
from adk_fluent.testing import Asked, GeminiEmulator, reply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from contextlib import AbstractContextManager

    from google.adk.agents.invocation_context import InvocationContext

    from adk_fluent.eval import FluentCase, FluentEvalReport

pytestmark = pytest.mark.adk

ENGINES = ["light", pytest.param("local", marks=pytest.mark.skipif(not HAS_EXTRA, reason=NO_EXTRA))]


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was waited, in place of waiting."""
    waited: list[float] = []
    now = [0.0]

    class Clock:
        @staticmethod
        def monotonic() -> float:
            return now[0]

    class Sleep:
        Future = asyncio.Future
        CancelledError = asyncio.CancelledError
        get_running_loop = staticmethod(asyncio.get_running_loop)

        @staticmethod
        async def sleep(seconds: float) -> None:
            waited.append(round(seconds, 3))
            now[0] += seconds
            await asyncio.sleep(0)

    monkeypatch.setattr(_pace, "time", Clock)
    monkeypatch.setattr(_pace, "asyncio", Sleep)
    return waited


def cases(count: int) -> list[FluentCase]:
    """Cases that every answer fits."""
    return [case(f"Hi {at}", id=f"c{at}") for at in range(count)]


async def run(pipeline: Any, count: int = 1, **options: Any) -> FluentEvalReport:
    """A run of some cases."""
    return await FluentEvalSuite("s", pipeline, cases(count)).run(**options)


def busy(times: int, seconds: float | None = None, then: str = "done") -> GeminiEmulator:
    """A service that has no time for some calls."""
    return GeminiEmulator(*[reply(status=429, retry_after=seconds)] * times, default=then)


async def test_no_more_cases_run_than_are_allowed() -> None:
    inside, most = 0, 0

    class Counting(BaseAgent):
        async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.001)
            inside -= 1
            content = types.Content(role="model", parts=[types.Part(text="done")])
            yield Event(author=self.name, invocation_id=ctx.invocation_id, content=content)

    report = await run(Counting(name="a"), 30, parallelism=4)
    assert report.ok, report.outcomes[0].reasons
    assert most == 4
    assert [each.id for each in report.outcomes] == [f"c{at}" for at in range(30)]


async def test_a_case_is_run_again_when_the_service_has_time(waits: list[float]) -> None:
    with busy(2, 7) as gemini:
        report = await run(Agent("a", gemini.model()))
    outcome = report.outcomes[0]
    assert outcome.status is Status.PASSED, outcome.reasons
    assert outcome.attempts == 3
    assert outcome.error is None
    assert len(outcome.turns) == 1
    assert waits == [7, 7]
    assert len(gemini.script.calls) == 3


async def test_all_cases_wait_when_one_is_refused(waits: list[float]) -> None:
    with busy(1, 7) as gemini:
        report = await run(Agent("a", gemini.model()), 5, parallelism=1)
    assert [each.attempts for each in report.outcomes] == [2, 1, 1, 1, 1]
    assert report.ok
    assert sum(waits) == 7


async def test_many_cases_at_once_get_through(waits: list[float]) -> None:
    with busy(15, 1) as gemini:
        report = await run(Agent("a", gemini.model()), 20, parallelism=10)
    assert report.ok, [each.reasons for each in report.outcomes if each.reasons]
    assert len(gemini.script.calls) == 35
    assert sum(each.attempts for each in report.outcomes) == 35
    assert waits


async def test_after_six_times_it_is_an_error(waits: list[float]) -> None:
    with busy(100) as gemini:
        report = await run(Agent("a", gemini.model()))
    outcome = report.outcomes[0]
    assert outcome.status is Status.ERROR
    assert outcome.attempts == 6
    assert "429" in (outcome.error or "")
    assert len(gemini.script.calls) == 6
    assert len(waits) == 5
    assert waits == sorted(waits)


async def test_a_quota_of_the_day_is_not_waited_for(waits: list[float]) -> None:
    with busy(100, 7200) as gemini:
        report = await run(Agent("a", gemini.model()))
    assert report.outcomes[0].status is Status.ERROR
    assert len(gemini.script.calls) == 1
    assert not waits


async def test_a_service_that_wants_to_be_left_alone_is_not_asked_again(
    waits: list[float],
) -> None:
    with busy(100, 7200) as gemini:
        report = await run(Agent("a", gemini.model()), 4, parallelism=1)
    assert len(gemini.script.calls) == 1
    assert {each.status for each in report.outcomes} == {Status.ERROR}
    assert "429" in (report.outcomes[0].error or "")
    left_alone = "the service wants to be left alone for 7,200 s"
    assert [each.error for each in report.outcomes[1:]] == [left_alone] * 3
    assert report.outcomes[1].reasons == [left_alone]
    assert not waits


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("code", ["429", "RESOURCE_EXHAUSTED", "503", "UNAVAILABLE"])
async def test_a_refusal_that_is_reported_is_waited_for(
    waits: list[float], code: str, engine: Any
) -> None:
    said = iter([reply(error_code=code, error_message="too many calls"), "done"])

    def answer(asked: Asked) -> Any:
        return next(said)

    report = await run(Agent("a", says(answer)), engine=engine)
    assert report.outcomes[0].status is Status.PASSED, report.outcomes[0].reasons
    assert report.outcomes[0].attempts == 2
    assert len(waits) == 1


async def test_models_that_all_report_a_refusal_are_waited_for(waits: list[float]) -> None:
    said = iter([*[reply(error_code="429")] * 2, "done"])

    def answer(asked: Asked) -> Any:
        return next(said)

    model = says(answer)
    report = await run(Fallback("f", Agent("a", model), Agent("b", model)))
    assert report.outcomes[0].status is Status.PASSED, report.outcomes[0].reasons
    assert report.outcomes[0].attempts == 2
    assert len(waits) == 1


async def test_other_errors_that_are_reported_are_not_waited_for(waits: list[float]) -> None:
    report = await run(Agent("a", says(reply(error_code="SAFETY", error_message="429"))))
    assert report.outcomes[0].status is Status.ERROR
    assert report.outcomes[0].attempts == 1
    assert not waits


async def test_an_expected_failure_that_is_refused_is_run_again(waits: list[float]) -> None:
    known = case("Hi", id="a", expected_response_contains="x", xfail="a bug")
    with busy(1, 7) as gemini:
        report = await FluentEvalSuite("s", Agent("a", gemini.model()), [known]).run()
    assert report.outcomes[0].status is Status.XFAILED
    assert report.outcomes[0].attempts == 2
    assert waits == [7]


@pytest.mark.parametrize("status", [400, 401, 404, 500])
async def test_other_errors_are_not_waited_for(waits: list[float], status: int) -> None:
    with GeminiEmulator(default=reply(status=status)) as gemini:
        report = await run(Agent("a", gemini.model()))
    assert report.outcomes[0].status is Status.ERROR
    assert report.outcomes[0].attempts == 1
    assert len(gemini.script.calls) == 1
    assert not waits


async def test_a_refusal_that_the_pipeline_made_good_is_none(waits: list[float]) -> None:
    with busy(1) as gemini:
        pipeline = Fallback("f", Agent("a", gemini.model()), Agent("b", says("instead")))
        report = await run(pipeline)
    assert report.outcomes[0].status is Status.PASSED, report.outcomes[0].reasons
    assert report.outcomes[0].attempts == 1
    assert not waits


async def test_agents_side_by_side_are_refused_together(waits: list[float]) -> None:
    with busy(2, 3) as gemini:
        report = await run(Agent("a", gemini.model()) | Agent("b", gemini.model()))
    assert report.outcomes[0].status is Status.PASSED, report.outcomes[0].reasons
    assert report.outcomes[0].attempts >= 2
    assert set(waits) == {3}


async def test_a_played_user_who_is_refused_is_waited_for(waits: list[float]) -> None:
    with busy(1, 3, then="</finished>") as gemini:
        played = case("Hi", id="a", simulation=UserSimulation(gemini.model()))
        report = await FluentEvalSuite("s", Agent("a", says("x")), [played]).run()
    assert report.outcomes[0].status is Status.PASSED, report.outcomes[0].reasons
    assert report.outcomes[0].attempts == 2
    assert report.outcomes[0].stop_reason == "stop_signal"
    assert waits == [3]


async def test_nothing_of_a_refused_attempt_is_left(waits: list[float]) -> None:
    with GeminiEmulator("one", reply(status=429, retry_after=1), default="two") as gemini:
        pipeline = Agent("a", gemini.model()).writes("k") >> Agent("b", gemini.model())
        report = await run(pipeline)
    outcome = report.outcomes[0]
    assert outcome.attempts == 2
    assert outcome.state == {"k": "two"}
    assert outcome.tokens.total > 0
    assert outcome.turns[0].model_calls == 2


def slow(kind: str) -> FluentEvalSuite:
    """A suite in which somebody takes his time."""
    late = says(reply("x", latency=30))
    if kind == "agent":
        return FluentEvalSuite("s", Agent("a", late), cases(20))
    if kind == "judge":
        compared = [case(each.input, id=each.id, reference_response="x") for each in cases(20)]
        metrics = ["final_response_match_v2"]
        return FluentEvalSuite("s", Agent("a", says("x")), compared, metrics, judge_model=late)
    return FluentEvalSuite("s", Agent("a", says("x")), cases(20), simulation=UserSimulation(late))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", ["agent", "judge", "user"])
async def test_whoever_ends_a_run_leaves_no_task(engine: Any, kind: str) -> None:
    before = asyncio.all_tasks()
    running = asyncio.create_task(slow(kind).run(parallelism=5, engine=engine))
    await asyncio.sleep(0.3)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", ["agent", "judge", "user"])
async def test_a_case_that_took_too_long_leaves_no_task(engine: Any, kind: str) -> None:
    before = asyncio.all_tasks()
    report = await slow(kind).run(timeout_s=0.3, engine=engine, parallelism=20)
    assert {each.status for each in report.outcomes} == {Status.ERROR}
    assert "took longer than" in report.outcomes[0].reasons[0]
    assert report.outcomes[0].turns[0].input == "Hi 0"
    assert asyncio.all_tasks() == before


async def test_whoever_closes_a_stream_leaves_no_task() -> None:
    before = asyncio.all_tasks()

    def answer(asked: Any) -> Any:
        return reply("x", latency=0 if asked.number == 0 else 30)

    stream = FluentEvalSuite("s", Agent("a", says(answer)), cases(20)).stream(parallelism=5)
    first = await anext(stream)
    assert first.passed
    await stream.aclose()
    assert asyncio.all_tasks() == before


async def test_one_failure_ends_a_run_that_is_to_fail_fast() -> None:
    before = asyncio.all_tasks()
    failing = [*cases(1), case("Hi", id="x", expected_response_contains="y"), *cases(20)[1:]]
    model = says("x")
    suite = FluentEvalSuite("s", Agent("a", model), failing)
    report = await suite.run(fail_fast=True, parallelism=1)
    assert [each.id for each in report.outcomes] == ["c0", "x"]
    assert report.interrupted
    assert list(report.notes) == ["it was stopped after the first case that did not pass"]
    assert len(model.calls) <= 3
    assert asyncio.all_tasks() == before


async def test_what_is_under_way_is_not_lost_to_one_failure() -> None:
    def answer(asked: Any) -> Any:
        return reply("x", latency=0 if asked.prompt == "bad" else 0.05)

    failing = [case("bad", id="bad", expected_response_contains="y"), *cases(20)]
    report = await FluentEvalSuite("s", Agent("a", says(answer)), failing).run(
        fail_fast=True, parallelism=4
    )
    assert [each.id for each in report.outcomes] == ["bad", "c0", "c1", "c2"]
    assert [each.passed for each in report.outcomes] == [False, True, True, True]


class Cancelling(BaseAgent):
    """An agent in which something cancels what it runs in, as libraries do by mistake."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        raise asyncio.CancelledError
        yield  # pyright: ignore[reportUnreachable]  # makes it a generator


async def test_an_agent_that_cancels_itself_is_an_error_of_its_case() -> None:
    report = await asyncio.wait_for(run(Cancelling(name="a"), 3), 20)
    assert [each.status for each in report.outcomes] == [Status.ERROR] * 3
    assert "cancelled" in report.outcomes[0].reasons[0]


async def test_a_judge_who_is_refused_for_good_slows_all_cases(
    waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    from adk_fluent.eval._scoring import _judges_adk

    monkeypatch.setattr(_judges_adk, "_TRIES", 1)
    verdict = '{"reasoning": "same", "is_the_agent_response_valid": "valid"}'
    with busy(1, 3, then=verdict) as gemini:
        compared = case("Hi", id="a", reference_response="x")
        metrics = ["final_response_match_v2"]
        suite = FluentEvalSuite(
            "s", Agent("a", says("x")), [compared], metrics, judge_model=gemini.model(),
            judge_samples=1,
        )  # fmt: skip
        report = await suite.run()
    outcome = report.outcomes[0]
    assert outcome.status is Status.PASSED, outcome.reasons
    assert outcome.attempts == 2
    assert waits == [3]


async def test_what_a_refused_attempt_took_is_told(waits: list[float]) -> None:
    with GeminiEmulator("one", reply(status=429, retry_after=1), default="two") as gemini:
        pipeline = Agent("a", gemini.model()) >> Agent("b", gemini.model())
        report = await run(pipeline)
    outcome = report.outcomes[0]
    assert outcome.attempts == 2
    assert outcome.eval_tokens.total > 0
    assert outcome.eval_tokens.total < outcome.tokens.total


# --- ADK's own service, which tells its log alone what was raised --------------------------------


@contextmanager
def _disabled() -> Generator[None]:
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


@contextmanager
def _configured() -> Generator[None]:
    """As ``dictConfig`` leaves a logger that was there before, and is not told of."""
    _ADKS_LOG.disabled = True
    try:
        yield
    finally:
        _ADKS_LOG.disabled = False


@contextmanager
def _quiet() -> Generator[None]:
    _ADKS_LOG.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        _ADKS_LOG.setLevel(logging.NOTSET)


_ADKS_LOG: Final = logging.getLogger("google_adk.google.adk.evaluation.local_eval_service")


@pytest.mark.parametrize("off", [_disabled, _configured, _quiet])
@pytest.mark.parametrize("engine", ENGINES)
async def test_a_log_that_is_off_changes_nothing(
    waits: list[float],
    engine: Any,
    off: Callable[[], AbstractContextManager[None]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    refused = scripted(reply(status=429, retry_after=2), default="done")
    with off():
        before = _ADKS_LOG.disabled, _ADKS_LOG.level
        report = await run(LlmAgent(name="a", model=refused), engine=engine)
        raised = await run(LlmAgent(name="a", model=says(KeyError("no"))), engine=engine)
        assert (_ADKS_LOG.disabled, _ADKS_LOG.level) == before
        assert not _ADKS_LOG.isEnabledFor(logging.ERROR)
    assert [each.status for each in report.outcomes] == [Status.PASSED]
    assert waits == [2.0]
    assert raised.outcomes[0].reasons == ["KeyError: 'no'"]
    assert not [each for each in caplog.records if each.name == _ADKS_LOG.name]


@pytest.mark.parametrize("engine", ENGINES)
async def test_suites_at_the_same_time_share_the_log(waits: list[float], engine: Any) -> None:
    async def one(times: int) -> FluentEvalReport:
        model = scripted(*[reply(status=429, retry_after=1)] * times, default="done")
        return await run(LlmAgent(name="a", model=model), engine=engine)

    reports = await asyncio.gather(one(0), one(1), one(3))
    assert [each.outcomes[0].status for each in reports] == [Status.PASSED] * 3
    assert "isEnabledFor" not in vars(_ADKS_LOG)
    assert not _ADKS_LOG.filters

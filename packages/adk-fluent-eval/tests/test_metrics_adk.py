"""Every metric on real ADK: computed, or refused before a model is called; no pass by chance."""

from __future__ import annotations

import asyncio
import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from eval_judges import HAS_EXTRA, NO_EXTRA, NONSENSE, judge
from eval_programs import agent, desk, lookup, says, scripted
from google.adk.evaluation.eval_case import IntermediateData, Invocation, InvocationEvents
from google.adk.evaluation.eval_metrics import EvalMetric, EvalStatus, PrebuiltMetrics
from google.adk.evaluation.evaluator import EvaluationResult, PerInvocationResult
from google.adk.evaluation.trajectory_evaluator import TrajectoryEvaluator
from google.adk.models.llm_response import LlmResponse
from google.adk.models.registry import LLMRegistry
from google.adk.version import __version__ as adk_version
from google.genai import types

from adk_fluent import Agent
from adk_fluent.errors import UsageError
from adk_fluent.eval import (
    EvalError,
    FluentCase,
    FluentEvalSuite,
    FluentJudge,
    MetricScore,
    MetricStatus,
    Rubric,
    Status,
    ToolCall,
    Turn,
    UserSimulation,
)
from adk_fluent.eval import _metrics as known
from adk_fluent.eval._errors import MetricUnavailableError
from adk_fluent.eval._metrics import METRICS, metric_table
from adk_fluent.eval._scoring import _cloud_adk, _judges_adk
from adk_fluent.testing import Call, GeminiEmulator, Thought, reply, rule

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_request import LlmRequest

    from adk_fluent.eval import CaseOutcome

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]"),  # ADK 1.x says so of what tests use
    # of Google Cloud's libraries
    pytest.mark.filterwarnings("ignore:Using `@model_validator`"),
    pytest.mark.filterwarnings("ignore:You are using a Python version:FutureWarning"),
]

VERSION = tuple(int(each) for each in adk_version.split(".")[:2])
ENGINES = ["light", pytest.param("local", marks=pytest.mark.skipif(not HAS_EXTRA, reason=NO_EXTRA))]
JUDGED = [each.name for each in METRICS.values() if each.by == "judge" and each.since <= VERSION]
CLOUD = [each.name for each in METRICS.values() if each.by == "cloud"]
MATCH = "final_response_match_v2"
QUALITY = "rubric_based_final_response_quality_v1"
TOOL_USE = "rubric_based_tool_use_quality_v1"
GROUNDED = "hallucinations_v1"
PLAYED = "per_turn_user_simulator_quality_v1"
WHOLE = "rubric_based_multi_turn_trajectory_quality_v1"
POLITE = "It is polite."


@pytest.fixture(autouse=True)
def no_cloud(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is signed in to Google Cloud."""
    for name in ("GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judges that are busy are asked again at once."""
    monkeypatch.setattr(_judges_adk, "_FIRST_WAIT", 0.0)


def fitting(metric: str, **fields: Any) -> FluentCase:
    """A case that a metric applies to."""
    if metric in METRICS and METRICS[metric].needs == "simulation":
        fields.setdefault("simulation", UserSimulation(script=["And?"]))
    defaults: dict[str, Any] = {
        "expected_trajectory": ["lookup"],
        "reference_response": "It is shipped.",
        "rubrics": [POLITE],
    }
    return FluentCase("Where is A1?", id="a", **{**defaults, **fields})


async def scored(
    metric: str,
    model: Any = None,
    *cases: FluentCase,
    pipeline: Any = None,
    engine: str = "light",
    samples: int = 1,
    **fields: Any,
) -> list[tuple[CaseOutcome, MetricScore]]:
    """What a metric comes to in each of some cases."""
    suite = FluentEvalSuite(
        "s",
        desk() if pipeline is None else pipeline,
        cases or [fitting(metric, expected_trajectory=None)],
        [metric],
        judge_model=model,
        judge_samples=samples,
        **fields,
    )
    report = await suite.run(engine=engine)  # pyright: ignore[reportArgumentType]
    return [
        (
            each,
            next(
                (s for s in each.scores if s.name == metric), MetricScore("", MetricStatus.FAILED)
            ),
        )
        for each in report.outcomes
    ]


async def scored_once(*args: Any, **options: Any) -> tuple[CaseOutcome, MetricScore]:
    """The same of one case."""
    return (await scored(*args, **options))[0]


# --- all of them ---------------------------------------------------------------------------------


def test_every_metric_of_adk_is_known() -> None:
    assert {each.value for each in PrebuiltMetrics} <= set(METRICS)
    assert {each.value for each in known.PrebuiltMetrics} == set(METRICS)
    newer = set(METRICS) - {each.value for each in PrebuiltMetrics}
    assert all(METRICS[each].by == "own" or METRICS[each].since > VERSION for each in newer)


@pytest.mark.parametrize("metric", METRICS)
async def test_every_metric_is_computed_or_refused_before_a_model_is_called(metric: str) -> None:
    model, judging = says("It is shipped."), judge(rubrics={POLITE: True})
    case = fitting(metric, expected_trajectory=[])
    suite = FluentEvalSuite("s", Agent("a", model), [case], [metric], judge_model=judging)
    it = METRICS[metric]
    if it.since > VERSION:
        with pytest.raises(MetricUnavailableError, match=r"install google-adk>=2\.0") as caught:
            await suite.run()
        assert caught.value.metric == metric
        assert not model.calls
    elif it.by == "cloud" and not HAS_EXTRA:
        with pytest.raises(MetricUnavailableError, match=r'pip install "adk-fluent-eval\[adk\]"'):
            await suite.run()
        assert not model.calls
    elif it.by == "cloud":
        with pytest.raises(MetricUnavailableError, match="set GOOGLE_API_KEY"):
            await suite.run()
        assert not model.calls
    else:
        outcome = (await suite.run()).outcomes[0]
        score = next(each for each in outcome.scores if each.name == metric)
        assert outcome.status is Status.PASSED, outcome.reasons
        assert score.score is not None
        assert bool(judging.calls) == (it.by == "judge")


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Google Cloud's libraries are installed, as far as is looked."""
    for name in ("vertexai", "google.adk.evaluation.safety_evaluator"):
        made = ModuleType(name)
        made.__spec__ = ModuleSpec(name, None)
        made.SafetyEvaluatorV1 = object  # pyright: ignore[reportAttributeAccessIssue]
        monkeypatch.setitem(sys.modules, name, made)


@pytest.mark.usefixtures("libraries")
@pytest.mark.parametrize(
    ("signed_in", "missing"),
    [
        ({}, "there is neither GOOGLE_API_KEY nor GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION"),
        ({"GOOGLE_API_KEY": ""}, "there is neither"),
        ({"GOOGLE_CLOUD_PROJECT": "p"}, "there is no GOOGLE_CLOUD_LOCATION"),
        ({"GOOGLE_CLOUD_LOCATION": "l"}, "there is no GOOGLE_CLOUD_PROJECT"),
        ({"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "l"}, None),
        ({"GOOGLE_API_KEY": "k"}, None),
        ({"GOOGLE_API_KEY": "k", "GOOGLE_CLOUD_PROJECT": "p"}, None),
    ],
)
def test_who_is_not_signed_in_is_told_before_a_model_is_called(
    signed_in: dict[str, str], missing: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in signed_in.items():
        monkeypatch.setenv(name, value)
    suite = FluentEvalSuite("s", desk(), [fitting("")], ["safety_v1"])
    if missing is None:
        suite.check()
        return
    with pytest.raises(MetricUnavailableError) as caught:
        suite.check()
    assert caught.value.metric == "safety_v1"
    assert missing in (caught.value.found or "")
    assert "GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION" in (caught.value.help or "")


@pytest.mark.skipif(not HAS_EXTRA, reason=NO_EXTRA)
async def test_what_google_cloud_refuses_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Signed in for the look of it, and then not."""
    monkeypatch.setenv("GOOGLE_API_KEY", "k")
    monkeypatch.setattr(_cloud_adk, "adk_evaluator", _signed_out)
    outcome, score = await scored_once("safety_v1")
    assert outcome.status is Status.ERROR
    assert score.status is MetricStatus.NOT_EVALUATED
    assert score.reason == "PermissionError: no such key"
    assert score.reason in outcome.reasons[0]


def _signed_out(*_: Any) -> Any:
    def evaluate(*_: Any) -> None:
        raise PermissionError("no such key")

    return SimpleNamespace(evaluate_invocations=evaluate)


@pytest.mark.parametrize("metric", JUDGED)
async def test_no_judge_is_told_before_a_model_is_called(metric: str) -> None:
    model = says("x")
    suite = FluentEvalSuite(
        "s", Agent("a", model), [fitting(metric, expected_trajectory=[])], [metric]
    )
    with pytest.raises(MetricUnavailableError, match="judge_model="):
        await suite.run()
    assert not model.calls


@pytest.mark.parametrize("metric", [each for each in METRICS if METRICS[each].needs])
async def test_a_metric_without_a_case_is_refused(metric: str) -> None:
    model = says("x")
    case = FluentCase("Hi", expected_response_contains="x")
    suite = FluentEvalSuite("s", Agent("a", model), [case], [metric], judge_model=judge())
    with pytest.raises(EvalError, match="applies to no case") as caught:
        await suite.run()
    assert "no case has" in (caught.value.found or "")
    assert not model.calls


async def test_a_metric_that_only_other_cases_have_is_no_error_when_they_are_left_out() -> None:
    cases = [
        FluentCase("Hi", id="a", expected_response_contains="x", tags=["t"]),
        FluentCase("Hi", id="b", reference_response="x"),
    ]
    suite = FluentEvalSuite("s", agent("a", "x"), cases, ["response_match_score"])
    report = await suite.run(filter_tags=["t"])
    assert [each.id for each in report.outcomes] == ["a"]
    assert report.ok


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("tool_trajectory_avg_scores", "tool_trajectory_avg_score"),
        ("safety_v2", "safety_v1"),
        ("hallucination_v1", "hallucinations_v1"),
    ],
)
def test_an_unknown_metric_names_the_nearest(name: str, near: str) -> None:
    suite = FluentEvalSuite("s", agent("a"), [fitting("")], [name])
    with pytest.raises(EvalError, match=f"did you mean '{near}'"):
        suite.check()


def test_a_judge_of_ones_own_may_be_named_among_the_metrics() -> None:
    made = FluentJudge("short", lambda: True)
    FluentEvalSuite("s", agent("a"), [FluentCase("Hi")], ["short"], custom_judges=[made]).check()


@pytest.mark.parametrize(
    ("thresholds", "message"),
    [
        ({"final_response_match_v3": 0.5}, "did you mean 'final_response_match_v2'"),
        ({MATCH: 0.5}, "is no metric of the suite"),
        ({"token_usage_v1": 0.5}, "only informs"),
        ({"adk_fluent_state": 0.5}, "is fixed"),
        ({"response_match_score": "0.5"}, "no number"),
        ({"response_match_score": True}, "no number"),
        ({"response_match_score": None}, "no number"),
        ({"response_match_score": float("nan")}, "from 0 to 1"),
        ({"response_match_score": float("inf")}, "from 0 to 1"),
        ({"response_match_score": 80}, "from 0 to 1"),
        ({"response_match_score": -0.1}, "from 0 to 1"),
        ({"response_match_score": 0}, "every score reaches"),
        ({"response_match_score": 0.0}, "above 0"),
        ({"response_evaluation_score": 1}, "above 1"),
        ({"tool_trajectory_avg_score": 0}, "every score reaches"),
        ({"short": 0.5}, "the judge's own"),
    ],
)
def test_a_threshold_without_a_meaning_is_refused(thresholds: Any, message: str) -> None:
    suite = FluentEvalSuite(
        "s",
        agent("a"),
        [fitting("")],
        ["response_match_score", "response_evaluation_score"],
        thresholds,
        custom_judges=[FluentJudge("short", lambda: True)],
    )
    with pytest.raises(EvalError, match=message):
        suite.check()


def test_the_threshold_of_the_trajectory_needs_no_metric() -> None:
    case = fitting("", trajectory_match="f1")
    suite = FluentEvalSuite("s", desk(), [case], thresholds={"tool_trajectory_avg_score": 0.5})
    assert suite.run_sync().outcomes[0].scores[0].threshold == 0.5


def test_the_threshold_of_a_trajectory_that_no_case_has_is_refused() -> None:
    case = FluentCase("Hi", expected_response_contains="x")
    suite = FluentEvalSuite("s", desk(), [case], thresholds={"tool_trajectory_avg_score": 0.5})
    with pytest.raises(EvalError, match="applies to no case") as caught:
        suite.check()
    assert caught.value.found == "no case has an expected_trajectory"


def test_the_table_has_a_row_for_each_metric() -> None:
    rows = metric_table().splitlines()
    assert len(rows) == len(METRICS) + 2
    assert len({row.count("|") for row in rows}) == 1
    by_name = {
        row.split("|")[1].strip(" `"): [c.strip() for c in row.split("|")[2:]] for row in rows
    }
    assert by_name["safety_v1"][:4] == ["", "yes", "needed", ""]
    assert by_name[MATCH][:5] == ["yes", "yes", "", "needed", "`reference_response`"]
    assert by_name["response_evaluation_score"][5] == "3.5 of 1-5"
    assert by_name["token_usage_v1"][5] == "informs"
    assert by_name[WHOLE][6] == "2.0"


@pytest.mark.parametrize("metric", METRICS)
def test_what_the_table_says_of_a_metric_is_so(
    metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is had alone is importable without the extra; what needs it is not."""
    it = METRICS[metric]
    if it.by == "own" or it.since > VERSION:
        return
    module = it.evaluator.partition(":")[0]
    suite = FluentEvalSuite("s", agent("a"), [fitting(metric)], [metric], judge_model=judge())
    monkeypatch.setenv("GOOGLE_API_KEY", "k")
    if it.by == "judge" or HAS_EXTRA:
        suite.pipeline = desk()
        suite.check()
        assert find_spec(module) is not None
    else:
        with pytest.raises(MetricUnavailableError):
            suite.check()


# --- the same as ADK's own -----------------------------------------------------------------------


def _told(tools: list[tuple[str, dict[str, Any]]]) -> Invocation:
    uses = [types.FunctionCall(name=name, args=args) for name, args in tools]
    return Invocation(
        user_content=types.Content(role="user", parts=[types.Part(text="Hi")]),
        intermediate_data=IntermediateData(tool_uses=uses),
    )


A1, A2 = ("lookup", {"order": "A1"}), ("lookup", {"order": "A2"})


@pytest.mark.parametrize("match", ["EXACT", "IN_ORDER", "ANY_ORDER"])
@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ([A1], [A1]),
        ([A1], [A2]),
        ([A1, A2], [A2, A1]),
        ([A1, A2], [A1]),
        ([A1], [A1, A2]),
        ([A1, A1], [A1, A2]),
        ([], []),
        ([], [A1]),
        ([A1], []),
    ],
)
async def test_trajectories_are_scored_as_adk_scores_them(
    match: str, expected: list[Any], actual: list[Any]
) -> None:
    from google.adk.evaluation.eval_metrics import ToolTrajectoryCriterion

    criterion = ToolTrajectoryCriterion(threshold=1.0, match_type=match)  # pyright: ignore[reportArgumentType]
    metric = EvalMetric(metric_name="t", threshold=1.0, criterion=criterion)
    theirs = TrajectoryEvaluator(eval_metric=metric).evaluate_invocations(
        [_told(actual)], [_told(expected)]
    )
    case = FluentCase(
        "Hi",
        expected_trajectory=[ToolCall(*each) for each in expected],
        trajectory_match=match.lower(),  # pyright: ignore[reportArgumentType]
    )
    pipeline = desk(*(Call(*each) for each in actual)) if actual else agent("a", tool=lookup)
    report = await FluentEvalSuite("s", pipeline, [case]).run()
    score = report.outcomes[0].scores[0].score
    if not expected and actual:  # to ADK any calls hold none, in some ways; to us none is none
        assert (score, theirs.overall_score) == (0.0, 0.0 if match == "EXACT" else 1.0)
    else:
        assert score == theirs.overall_score


@pytest.mark.skipif(not HAS_EXTRA, reason=NO_EXTRA)
@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("It is shipped.", "It is shipped."),
        ("Your order was shipped yesterday", "The order is shipped"),
        ("no", "yes"),
        ("Running runners ran", "run"),
        ("a a b", "a b b"),
    ],
)
async def test_response_match_is_scored_as_adk_scores_it(answer: str, reference: str) -> None:
    from google.adk.evaluation.response_evaluator import ResponseEvaluator

    def told(text: str) -> Invocation:
        content = types.Content(role="model", parts=[types.Part(text=text)])
        return Invocation(user_content=content, final_response=content)

    theirs = ResponseEvaluator(threshold=0.8, metric_name="response_match_score")
    found: Any = theirs.evaluate_invocations([told(answer)], [told(reference)])
    case = FluentCase("Hi", reference_response=reference)
    _, score = await scored_once("response_match_score", None, case, pipeline=agent("a", answer))
    assert score.score == pytest.approx(found.overall_score)
    assert (score.status is MetricStatus.PASSED) == (found.overall_eval_status == EvalStatus.PASSED)


INFORMS = [each.name for each in METRICS.values() if each.informational]


@pytest.mark.parametrize("engine", ENGINES)
async def test_metrics_that_inform_never_decide(engine: str) -> None:
    case = FluentCase(["Where is A1?", "And?"], id="a", expected_response_contains="nowhere")
    suite = FluentEvalSuite("s", desk(), [case], INFORMS)
    report = await suite.run(engine=engine)  # pyright: ignore[reportArgumentType]
    outcome = report.outcomes[0]
    informed = {each.name: each for each in outcome.scores if each.threshold is None}
    assert set(informed) == set(INFORMS)
    assert outcome.status is Status.FAILED
    assert len(outcome.reasons) == 1
    for each in informed.values():
        assert each.status is MetricStatus.INFORMATIONAL
        assert each.score is not None
        assert len(each.turns) == 2
    assert informed["tool_call_count_v1"].turns == [1, 1]
    assert informed["inference_call_count_v1"].score == 2
    assert informed["token_usage_v1"].score == outcome.tokens.total / 2
    assert {each.unit for each in informed.values()} == {"calls", "tokens", "s"}


async def test_metrics_that_inform_alone_are_no_expectation() -> None:
    suite = FluentEvalSuite("s", agent("a"), [FluentCase("Hi")], INFORMS)
    with pytest.raises(EvalError, match="it expects nothing"):
        await suite.run()


@pytest.mark.skipif(VERSION < (2, 13), reason="this google-adk has no such metrics")
@pytest.mark.parametrize("said", ["usage", "none", "some"])
async def test_metrics_that_inform_are_those_of_adk(said: str) -> None:
    from google.adk.evaluation import _efficiency_evaluators as theirs

    silent = LlmResponse(
        content=types.Content(role="model", parts=[types.Part(text="x")]), model_version="m-1"
    )
    answers = {"usage": ["x", "y"], "none": [silent, silent], "some": ["x", silent]}[said]
    seen: list[Invocation] = []

    def look(invocations: list[Invocation]) -> bool:
        seen.extend(invocations)
        return True

    suite = FluentEvalSuite(
        "s",
        Agent("a", scripted(*answers)),
        [FluentCase(["a", "b"])],
        INFORMS,
        custom_judges=[FluentJudge("look", look)],
    )
    outcome = (await suite.run()).outcomes[0]
    for name, kind in {
        "tool_call_count_v1": "_ToolCallCountV1Evaluator",
        "inference_call_count_v1": "_InferenceCallCountV1Evaluator",
        "token_usage_v1": "_TokenUsageV1Evaluator",
    }.items():
        ours = next(each for each in outcome.scores if each.name == name)
        found = getattr(theirs, kind)().evaluate_invocations(seen)
        assert ours.score == found.overall_score, name
        assert ours.turns == [each.score for each in found.per_invocation_results], name


# --- judges --------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("metric", JUDGED)
@pytest.mark.parametrize("ok", [True, False])
async def test_a_verdict_is_kept_with_its_reason(engine: str, metric: str, ok: bool) -> None:
    model = judge(ok, {POLITE: ok}, why="I have looked twice")
    outcome, score = await scored_once(metric, model, engine=engine, samples=2)
    assert outcome.status is (Status.PASSED if ok else Status.FAILED), outcome.reasons
    assert score.status is (MetricStatus.PASSED if ok else MetricStatus.FAILED)
    # the first turn of a played user is what it was told to say
    assert score.score == (1.0 if ok else 0.5 if metric == PLAYED else 0.0)
    if ok and metric == PLAYED:
        assert not score.reason
    else:
        assert "I have looked twice" in score.reason
    assert score.threshold == METRICS[metric].threshold
    assert [each.ok for each in score.findings][-1] is ok
    if not ok:
        assert "I have looked twice" in outcome.reasons[0]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("metric", JUDGED)
async def test_a_judge_that_talks_nonsense_passes_nothing(engine: str, metric: str) -> None:
    outcome, score = await scored_once(metric, judge(None), engine=engine)
    assert score.status is MetricStatus.NOT_EVALUATED
    assert score.score is None
    assert outcome.status is Status.ERROR
    assert "no verdict" in score.reason
    assert NONSENSE in score.reason


@pytest.mark.parametrize("metric", JUDGED)
@pytest.mark.parametrize("answer", [ValueError("no"), reply(), "", reply(error_code="SAFETY")])
async def test_a_judge_that_fails_passes_nothing(metric: str, answer: Any) -> None:
    outcome, score = await scored_once(metric, says(answer), samples=3)
    assert score.status is MetricStatus.NOT_EVALUATED
    assert outcome.status is Status.ERROR
    assert "the judge's model" in score.reason
    if isinstance(answer, ValueError):
        assert "ValueError: no" in score.reason


async def test_the_end_of_a_played_conversation_is_judged_too() -> None:
    """ADK says nothing of a question about the end that was answered with nonsense."""
    simulation = UserSimulation(script=[], stop_signal="<bye>")
    case = fitting(PLAYED, simulation=simulation, expected_trajectory=None)
    model = judge(lambda prompt: None if "<bye>" in prompt else True)
    outcome, score = await scored_once(PLAYED, model, case, pipeline=agent("a"))
    assert [each.prompt for each in model.calls]
    assert outcome.status is Status.ERROR
    assert "no verdict" in score.reason
    _, score = await scored_once(PLAYED, judge(False), case, pipeline=agent("a"))
    assert score.score == 0.0


@pytest.mark.parametrize("metric", JUDGED)
async def test_one_failed_sample_of_several_is_tolerated(metric: str) -> None:
    broken = [rule(reply=ValueError("once"), times=1)]
    model = judge(True, {POLITE: True}, rules=broken)
    outcome, score = await scored_once(metric, model, samples=3)
    if metric == GROUNDED:  # has no samples: what failed is missing
        assert score.status is MetricStatus.NOT_EVALUATED
        assert "ValueError: once" in score.reason
    else:
        assert outcome.status is Status.PASSED, outcome.reasons
        assert score.score == 1.0


@pytest.mark.parametrize("metric", JUDGED)
async def test_a_sample_that_may_succeed_is_taken_again(metric: str) -> None:
    busy = [rule(reply=reply(status=503), times=2), rule(reply=ConnectionError("lost"), times=1)]
    model = judge(True, {POLITE: True}, rules=busy)
    outcome, score = await scored_once(metric, model)
    assert outcome.status is Status.PASSED, outcome.reasons
    assert score.score == 1.0
    assert outcome.attempts == 1


async def test_most_samples_decide_and_say_why() -> None:
    verdicts = iter([True, False, True, True, False])
    model = judge(lambda _: next(verdicts), why="so")
    outcome, score = await scored_once(MATCH, model, samples=5)
    assert outcome.status is Status.PASSED
    assert score.score == 1.0
    assert score.reason.startswith("3 of 5 samples: ")
    assert '"valid"' in score.reason
    assert len(model.calls) == 5


async def test_samples_without_a_majority_do_not_pass() -> None:
    verdicts = iter([True, False])
    outcome, _ = await scored_once(MATCH, judge(lambda _: next(verdicts)), samples=2)
    assert outcome.status is Status.FAILED


async def test_thoughts_of_a_judge_are_no_verdict() -> None:
    thought = Thought('{"is_the_agent_response_valid": "valid"\n}')
    verdict = '{"is_the_agent_response_valid": "invalid"\n}'
    outcome, score = await scored_once(MATCH, says(reply(thought, verdict)))
    assert outcome.status is Status.FAILED
    assert score.reason == verdict


class TestBusyJudges:
    """A judge on the other side of a real connection."""

    @pytest.fixture
    def waits(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        """How long was waited, in place of waiting."""
        waited: list[float] = []
        really = asyncio.sleep

        async def sleep(seconds: float, *args: Any) -> None:
            if seconds > 0.9:  # what is slept elsewhere is no wait
                waited.append(seconds)
                seconds = 0
            await really(seconds, *args)

        monkeypatch.setattr(asyncio, "sleep", sleep)
        return waited

    def _gemini(self, *replies: Any, **fields: Any) -> GeminiEmulator:
        return GeminiEmulator(*replies, default=judge().script._default, **fields)  # its answers

    async def test_what_the_service_says_is_waited(self, waits: list[float]) -> None:
        with self._gemini(reply(status=429, retry_after=7), reply(status=429, retry_after=3)) as g:
            outcome, score = await scored_once(MATCH, g.model())
        assert outcome.status is Status.PASSED, outcome.reasons
        assert score.score == 1.0
        assert waits == [7, 3]
        assert len(g.script.calls) == 3

    async def test_in_the_end_it_is_given_up(
        self, waits: list[float], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from adk_fluent.eval._running import _schedule_adk

        monkeypatch.setattr(_schedule_adk, "_ATTEMPTS", 1)
        with self._gemini(*[reply(status=429, retry_after=2)] * 4) as gemini:
            outcome, score = await scored_once(MATCH, gemini.model())
        assert outcome.status is Status.ERROR
        assert "429" in score.reason
        assert waits == [2, 2, 2]
        assert outcome.attempts == 1

    async def test_a_wait_of_hours_is_not_worth_it(self, waits: list[float]) -> None:
        with self._gemini(reply(status=429, retry_after=7200)) as gemini:
            outcome, _ = await scored_once(MATCH, gemini.model())
        assert outcome.status is Status.ERROR
        assert not waits

    async def test_what_will_fail_again_is_not_tried_again(self, waits: list[float]) -> None:
        with self._gemini(reply(status=400)) as gemini:
            outcome, score = await scored_once(MATCH, gemini.model())
        assert outcome.status is Status.ERROR
        assert "400" in score.reason
        assert len(gemini.script.calls) == 1
        assert not waits


@pytest.fixture
def registered() -> Iterator[list[BaseLlm]]:
    """A class of judges under the name ``my-judge``, and the objects that were made of it."""
    from google.adk.models import registry
    from google.adk.models.base_llm import BaseLlm

    made: list[BaseLlm] = []

    class MyJudge(BaseLlm):
        @classmethod
        def supported_models(cls) -> list[str]:
            return ["my-judge"]

        def model_post_init(self, context: Any, /) -> None:
            made.append(self)

        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            assert llm_request.model == "my-judge"
            async for each in judge().generate_content_async(llm_request, stream):
                yield each

    LLMRegistry.register(MyJudge)
    yield made
    registry._llm_registry_dict.pop("my-judge")  # nothing else takes it out again
    LLMRegistry.resolve.cache_clear()


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_judge_by_name_is_made_once(registered: list[BaseLlm], engine: str) -> None:
    cases = [FluentCase("Hi", id=f"c{n}", reference_response="x") for n in range(4)]
    found = await scored(MATCH, "my-judge", *cases, pipeline=agent("a", "x"), engine=engine)
    assert [score.score for _, score in found] == [1.0] * 4
    assert len(registered) <= 2  # one to look whether it can be had, one to judge


async def test_a_judge_that_cannot_be_had_is_told_before_a_model_is_called() -> None:
    model = says("x")
    suite = FluentEvalSuite(
        "s",
        Agent("a", model),
        [fitting(MATCH, expected_trajectory=None)],
        [MATCH],
        judge_model="nobody-1",
    )
    with pytest.raises(EvalError, match="the model that judges cannot be had"):
        await suite.run()
    assert not model.calls


@pytest.mark.parametrize("metrics", [[], [MATCH]])
@pytest.mark.parametrize(
    "model", [5, "", "  ", object(), ["gemini-2.5-pro"]], ids=lambda each: str(type(each).__name__)
)
def test_what_is_no_model_does_not_judge(model: Any, metrics: list[str]) -> None:
    suite = FluentEvalSuite("s", agent("a"), [fitting("")], metrics, judge_model=model)
    suite.pipeline = desk()
    with pytest.raises(EvalError) as caught:
        suite.check()
    assert caught.value.what == "the model that judges cannot be had"
    assert "where:" not in (caught.value.found or "")  # one message, not one in another
    assert "BaseLlm" in (caught.value.help or "")
    assert isinstance(caught.value.__cause__, UsageError)


async def test_a_judge_that_nobody_needs_is_not_made() -> None:
    suite = FluentEvalSuite(
        "s",
        agent("a", "x"),
        [FluentCase("Hi", expected_response_contains="x")],
        judge_model="nobody-1",
    )
    assert (await suite.run()).ok


async def test_a_judge_may_be_the_model_of_the_agents() -> None:
    """Also when another model answers in the place of the agents'."""
    shared = scripted(
        rules=[rule(reply=judge().script._default, when="agent_response")],  # its answers
        default="It is shipped.",
    )
    other = says("It is shipped!")
    case = fitting(MATCH, expected_trajectory=None)
    suite = FluentEvalSuite(
        "s", Agent("a", shared), [case], [MATCH], judge_model=shared, judge_samples=1
    )
    outcome = (await suite.run(model=other)).outcomes[0]
    assert outcome.status is Status.PASSED, outcome.reasons
    assert outcome.response == "It is shipped!"
    assert (len(shared.calls), len(other.calls)) == (1, 1)


async def test_the_stand_in_is_nobody_by_itself() -> None:
    model = LLMRegistry.new_llm(_judges_adk.JUDGE)
    with pytest.raises(Exception, match="stand-in for the judge"):
        [each async for each in model.generate_content_async(None)]  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("engine", ENGINES)
async def test_adks_result_names_the_judge(engine: str) -> None:
    case = fitting(MATCH, expected_trajectory=None)
    suite = FluentEvalSuite("s", desk(), [case], [MATCH], judge_model=judge(), judge_samples=3)
    report = await suite.run(engine=engine)  # pyright: ignore[reportArgumentType]
    native = report.native_results["a", 1].overall_eval_metric_results[0]
    criterion: Any = native.criterion
    options = getattr(criterion, "judge_model_options", None)
    if options is not None:  # ADK's own service drops it in 1.25
        told = dict(options)
        assert told["judge_model"] == "judge"
        assert told["num_samples"] == 3
    assert (native.score, native.eval_status) == (1.0, EvalStatus.PASSED)


# --- of some turns -------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
async def test_answers_are_compared_where_there_is_a_reference(engine: str) -> None:
    case = FluentCase(["one", Turn("two", reference_response="2!"), "three"], id="a")
    model = judge()
    pipeline = Agent("a", scripted("1", "2", "3", "1", "2", "3"))
    _, score = await scored_once(MATCH, model, case, pipeline=pipeline, engine=engine)
    assert score.turns == [None, 1.0, None]
    assert len(model.calls) == 1
    assert '"Agent response": 2' in model.calls[0].prompt
    assert '"Reference response": 2!' in model.calls[0].prompt
    assert [(each.expected, each.actual, each.turn) for each in score.findings] == [("2!", "2", 2)]


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_turn_without_a_verdict_is_not_made_good_by_others(engine: str) -> None:
    """ADK takes the mean of the turns that it could judge."""
    case = FluentCase(
        [Turn("one", reference_response="1"), Turn("two", reference_response="2")], id="a"
    )
    model = judge(lambda prompt: None if '"User prompt": two' in prompt else True)
    outcome, score = await scored_once(
        MATCH, model, case, pipeline=Agent("a", scripted("1", "2")), engine=engine
    )
    assert score.status is MetricStatus.NOT_EVALUATED
    assert outcome.status is Status.ERROR
    assert "of turn 2" in score.reason


@pytest.mark.parametrize("engine", ENGINES)
async def test_rubrics_are_of_the_case_and_of_turns(engine: str) -> None:
    case = FluentCase(
        ["one", Turn("two", rubrics=["It is short.", Rubric("It is kind.", "kind")])],
        id="a",
        rubrics=[POLITE],
    )
    model = judge(rubrics={POLITE: True, "It is short.": False, "It is kind.": True}, why="so")
    _, score = await scored_once(QUALITY, model, case, pipeline=agent("a"), engine=engine)
    assert score.turns == [1.0, pytest.approx(2 / 3)]
    assert score.score == pytest.approx(3 / 4)  # of all verdicts, as ADK has it
    assert [(each.what, each.ok, each.turn) for each in score.findings] == [
        (f'rubric "{POLITE}"', True, 1),
        (f'rubric "{POLITE}"', True, 2),
        ('rubric "It is short."', False, 2),
        ('rubric "It is kind."', True, 2),
    ]
    assert "rubric_1_of_turn_2: no, so" in score.reason
    assert "kind_of_turn_2: yes, so" in score.reason
    first, second = (each.prompt for each in model.calls)
    assert "It is short." not in first
    assert "It is short." in second


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("metric", [QUALITY, TOOL_USE])
async def test_rubrics_may_be_of_some_turns_alone(engine: str, metric: str) -> None:
    case = FluentCase(["one", Turn("two", rubrics=[POLITE]), "three"], id="a")
    model = judge(rubrics={POLITE: True})
    outcome, score = await scored_once(metric, model, case, pipeline=agent("a"), engine=engine)
    assert outcome.status is Status.PASSED, outcome.reasons
    assert score.turns == [None, 1.0, None]
    assert len(model.calls) == 1


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_rubric_that_the_judge_forgot_is_not_passed(engine: str) -> None:
    case = FluentCase("one", id="a", rubrics=[POLITE, "It is short."])
    model = judge(rubrics={POLITE: True, "It is short.": None})
    outcome, score = await scored_once(QUALITY, model, case, pipeline=agent("a"), engine=engine)
    assert outcome.status is Status.ERROR
    assert score.status is MetricStatus.NOT_EVALUATED
    assert 'on rubric "It is short."' in score.reason


@pytest.mark.skipif(METRICS[WHOLE].since > VERSION, reason="this google-adk has no such metric")
@pytest.mark.parametrize("engine", ENGINES)
async def test_rubrics_of_the_whole_conversation_are_judged_once(engine: str) -> None:
    case = FluentCase(["one", Turn("two", rubrics=["It is short."])], id="a", rubrics=[POLITE])
    model = judge(rubrics={POLITE: True, "It is short.": False}, why="so")
    _, score = await scored_once(WHOLE, model, case, pipeline=agent("a"), engine=engine)
    assert score.score == 0.5
    assert score.turns == [None, 0.5]
    assert len(model.calls) == 1
    assert "USER TURN 1: one" in model.calls[0].prompt
    assert "It is short." in score.findings[1].what
    assert score.findings[1].turn is None


@pytest.mark.parametrize(
    "rubrics",
    [[POLITE, POLITE], [Rubric("a", "x"), Rubric("b", "x")], [Rubric(POLITE, "x"), POLITE]],
)
def test_rubrics_that_cannot_be_told_apart_are_refused(rubrics: list[Any]) -> None:
    case = FluentCase("one", id="a", rubrics=rubrics)
    suite = FluentEvalSuite("s", agent("a"), [case], [QUALITY], judge_model=judge())
    with pytest.raises(EvalError, match="two of its rubrics are the same"):
        suite.check()


@pytest.mark.parametrize("engine", ENGINES)
async def test_judges_of_facts_are_told_what_the_agents_were_told(engine: str) -> None:
    pipeline = desk(instruct="Be brief about orders.")
    model = judge()
    case = fitting(GROUNDED, expected_trajectory=None)
    outcome, score = await scored_once(GROUNDED, model, case, pipeline=pipeline, engine=engine)
    assert outcome.status is Status.PASSED, outcome.reasons
    assert "label: supported" in score.reason
    asked = model.calls[1].prompt
    assert "Be brief about orders." in asked
    assert "Look an order up." in asked
    assert '"shipped"' in asked


async def test_an_answer_that_says_nothing_claims_nothing() -> None:
    """Of one silent turn among others there is nothing to judge; of silence alone neither."""
    case = FluentCase(["one", "two"], id="a")
    silent = LlmResponse(content=types.Content(role="model", parts=[types.Part(text="")]))
    outcome, score = await scored_once(
        GROUNDED, judge(), case, pipeline=Agent("a", scripted(silent, "It is."))
    )
    assert outcome.status is Status.PASSED, outcome.reasons
    assert score.turns == [None, 1.0]
    outcome, score = await scored_once(
        GROUNDED, judge(), FluentCase("one"), pipeline=Agent("a", scripted(silent))
    )
    assert outcome.status is Status.ERROR
    assert score.reason == "nothing was judged"


@pytest.mark.parametrize("engine", ENGINES)
async def test_of_a_played_user_the_last_answer_is_compared(engine: str) -> None:
    case = FluentCase(
        "one", id="a", reference_response="3!", simulation=UserSimulation(script=["two", "three"])
    )
    model = judge()
    outcome, score = await scored_once(
        MATCH, model, case, pipeline=Agent("a", scripted("1", "2", "3")), engine=engine
    )
    assert outcome.status is Status.PASSED, outcome.reasons
    assert score.turns == [None, None, 1.0]
    assert '"Agent response": 3' in model.calls[0].prompt


# --- of one's own --------------------------------------------------------------------------------


async def _slowly(actual_response: str) -> tuple[float, str]:
    await asyncio.sleep(0)
    return 0.25, f"it says {actual_response}"


def _raising() -> float:
    msg = "no idea"
    raise RuntimeError(msg)


def _of_all(**given: Any) -> float:
    return len(given) / 100


def _of_tools(tool_trajectory: list[str]) -> bool:
    return tool_trajectory == ["lookup"]


def _of_adk(invocations: list[Invocation]) -> EvaluationResult:
    return EvaluationResult(
        overall_score=0.5,
        overall_eval_status=EvalStatus.PASSED,
        per_invocation_results=[
            PerInvocationResult(actual_invocation=each, score=0.5) for each in invocations
        ],
    )


@pytest.mark.parametrize("engine", ENGINES)
async def test_judges_of_ones_own(engine: str) -> None:
    suite = FluentEvalSuite(
        "s",
        desk(),
        [FluentCase("Where?", id="a", reference_response="r")],
        custom_judges=[
            FluentJudge("yes", lambda: True),
            FluentJudge("slow", _slowly, threshold=0.3, lower_is_better=True),
            FluentJudge("raises", _raising),
            FluentJudge("none", lambda: None),
            FluentJudge("nan", lambda: float("nan")),
            FluentJudge("adk", _of_adk),
            FluentJudge("all", _of_all),
            FluentJudge("tools", _of_tools),
        ],
    )
    report = await suite.run(engine=engine)  # pyright: ignore[reportArgumentType]
    outcome = report.outcomes[0]
    found = {each.name: each for each in outcome.scores}
    statuses = {name: each.status.value for name, each in found.items()}
    assert statuses == {
        "yes": "passed",
        "slow": "passed",
        "raises": "not_evaluated",
        "none": "not_evaluated",
        "nan": "not_evaluated",
        "adk": "passed",
        "all": "failed",
        "tools": "passed",
    }
    assert found["slow"].reason.startswith("it says")
    assert "RuntimeError: no idea" in found["raises"].reason
    assert found["adk"].turns == [0.5]
    assert outcome.status is Status.ERROR
    natives = {
        str(each.metric_name): each.eval_status
        for each in report.native_results["a", 1].overall_eval_metric_results
    }
    assert natives["yes"] == EvalStatus.PASSED
    assert natives["raises"] == EvalStatus.NOT_EVALUATED
    assert natives["all"] == EvalStatus.FAILED


async def test_adks_invocations_tell_what_models_took() -> None:
    seen: list[Invocation] = []

    def look(invocations: list[Invocation], expected: list[Invocation]) -> bool:
        seen.extend([*invocations, *expected])
        return True

    suite = FluentEvalSuite("s", desk(), [fitting("")], custom_judges=[FluentJudge("look", look)])
    await suite.run()
    assert isinstance(seen[0].intermediate_data, InvocationEvents)
    assert seen[1].final_response is not None

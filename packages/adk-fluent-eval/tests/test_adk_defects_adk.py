"""What ADK's own evaluation gets wrong, so that we learn when it is mended, and what ours does.

Each test shows ADK's behaviour first, on every version that has it, and then ours.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from eval_judges import HAS_EXTRA, NO_EXTRA, judge
from eval_programs import agent, case, desk, outcome_of, report_of, says, scripted
from google.adk.agents.llm_agent import LlmAgent
from google.adk.evaluation.base_eval_service import (
    EvaluateConfig,
    EvaluateRequest,
    InferenceConfig,
    InferenceRequest,
    InferenceResult,
    InferenceStatus,
)
from google.adk.evaluation.conversation_scenarios import ConversationScenario
from google.adk.evaluation.eval_case import (
    EvalCase,
    IntermediateData,
    Invocation,
    SessionInput,
)
from google.adk.evaluation.eval_metrics import (
    EvalMetric,
    EvalStatus,
    JudgeModelOptions,
    LlmAsAJudgeCriterion,
    RubricsBasedCriterion,
    ToolTrajectoryCriterion,
)
from google.adk.evaluation.eval_rubrics import Rubric as AdkRubric
from google.adk.evaluation.eval_rubrics import RubricContent
from google.adk.evaluation.final_response_match_v2 import FinalResponseMatchV2Evaluator
from google.adk.evaluation.in_memory_eval_sets_manager import InMemoryEvalSetsManager
from google.adk.evaluation.local_eval_set_results_manager import LocalEvalSetResultsManager
from google.adk.evaluation.rubric_based_final_response_quality_v1 import (
    RubricBasedFinalResponseQualityV1Evaluator,
)
from google.adk.evaluation.simulation.llm_backed_user_simulator import (
    LlmBackedUserSimulatorConfig,
)
from google.adk.evaluation.simulation.user_simulator_provider import UserSimulatorProvider
from google.adk.evaluation.trajectory_evaluator import TrajectoryEvaluator
from google.adk.models import registry
from google.adk.models.registry import LLMRegistry
from google.adk.version import __version__ as adk_version
from google.genai import types
from pydantic import ValidationError

from adk_fluent import Agent
from adk_fluent.eval import (
    EvalError,
    FluentCase,
    FluentEvalSuite,
    FluentJudge,
    MetricStatus,
    Status,
    ToolCall,
    Turn,
    UserSimulation,
)
from adk_fluent.testing import Asked, Call, ScriptedModel, Thought, reply, rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from google.adk.evaluation.eval_result import EvalCaseResult
    from google.adk.models.base_llm import BaseLlm

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]"),  # ADK says so of what tests use
]

MENDED = not adk_version.startswith("1.")  # what 2.13 has mended
needs_extra = pytest.mark.skipif(not HAS_EXTRA, reason=NO_EXTRA)
MATCH = "final_response_match_v2"
TRAJECTORY = "tool_trajectory_avg_score"
POLITE, SHORT = "It is polite.", "It is short."


# --- ADK's own way -------------------------------------------------------------------------------


def content(text: str, role: str = "user") -> types.Content:
    """What somebody says."""
    return types.Content(role=role, parts=[types.Part(text=text)])


def turn(text: str = "Hi", answer: str = "x", *calls: tuple[str, dict[str, Any]]) -> Invocation:
    """A turn as ADK expects it."""
    uses = [types.FunctionCall(name=name, args=args) for name, args in calls]
    return Invocation(
        user_content=content(text),
        final_response=content(answer, "model"),
        intermediate_data=IntermediateData(tool_uses=uses),
    )


def eval_case(id: str = "a", *turns: Invocation, **fields: Any) -> EvalCase:
    """A case of ADK's."""
    fields.setdefault("session_input", SessionInput(app_name="app", user_id="user"))
    return EvalCase(eval_id=id, conversation=list(turns) or [turn()], **fields)


def metric(name: str = TRAJECTORY, **fields: Any) -> EvalMetric:
    """A metric of ADK's."""
    fields.setdefault("threshold", 0.5)
    return EvalMetric(metric_name=name, **fields)


@dataclass
class Theirs:
    """What ADK's own service comes to.

    Attributes:
        inferences: Its first half.
        results: Its second.
    """

    inferences: list[InferenceResult] = field(default_factory=list[InferenceResult])
    results: list[EvalCaseResult] = field(default_factory=list["EvalCaseResult"])

    @property
    def status(self) -> EvalStatus:
        """That of the one case."""
        return self.results[0].final_eval_status


async def theirs(
    root: Any, cases: Sequence[EvalCase], metrics: Sequence[EvalMetric] = (), **service: Any
) -> Theirs:
    """ADK's own service over some cases."""
    from google.adk.evaluation.local_eval_service import LocalEvalService

    manager = InMemoryEvalSetsManager()
    eval_set = service.pop("eval_set", "set")
    manager.create_eval_set(app_name="app", eval_set_id=eval_set)
    for each in cases:
        manager.add_eval_case(app_name="app", eval_set_id=eval_set, eval_case=each)
    at_once = InferenceConfig(parallelism=service.pop("parallelism", 1))
    made = LocalEvalService(root_agent=root, eval_sets_manager=manager, **service)
    request = InferenceRequest(app_name="app", eval_set_id=eval_set, inference_config=at_once)
    found = Theirs([each async for each in made.perform_inference(request)])
    config = EvaluateConfig(eval_metrics=list(metrics or [metric()]))
    asked = EvaluateRequest(inference_results=found.inferences, evaluate_config=config)
    async for each in made.evaluate(asked):
        found.results.append(each)
    return found


@pytest.fixture
def judging() -> Iterator[list[BaseLlm]]:
    """A model ``their-judge`` in ADK's registry, which is whatever is put into the list."""
    models: list[BaseLlm] = []

    class TheirJudge(ScriptedModel):
        def __init__(self, **fields: Any) -> None:
            super().__init__(script=models[0].script, **fields)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownMemberType]

        @classmethod
        def supported_models(cls) -> list[str]:
            return ["their-judge"]

    LLMRegistry.register(TheirJudge)
    yield models
    registry._llm_registry_dict.pop("their-judge")
    LLMRegistry.resolve.cache_clear()


def asking(samples: int = 1) -> JudgeModelOptions:
    """How ADK asks a judge."""
    return JudgeModelOptions(
        judge_model="their-judge",
        num_samples=samples,
        judge_model_config=types.GenerateContentConfig(),
    )


def compared(samples: int = 1, **fields: Any) -> FinalResponseMatchV2Evaluator:
    """ADK's evaluator that compares answers."""
    criterion = LlmAsAJudgeCriterion(threshold=0.5, judge_model_options=asking(samples))
    return FinalResponseMatchV2Evaluator(metric(MATCH, criterion=criterion, **fields))


# --- the thirteen of the research ----------------------------------------------------------------


def _crash() -> float:
    msg = "no idea"
    raise RuntimeError(msg)


@needs_extra
@pytest.mark.parametrize("name", ["nonexistent_v1", "response_match_scores"])
async def test_01_a_metric_that_could_not_be_computed_is_passed_over(name: str) -> None:
    root = LlmAgent(name="a", model=says("x"))
    found = await theirs(root, [eval_case()], [metric(name), metric()])
    first = found.results[0].overall_eval_metric_results[0]
    assert (str(first.metric_name), first.eval_status) == (name, EvalStatus.NOT_EVALUATED)
    assert found.status == EvalStatus.PASSED

    model = says("x")
    suite = FluentEvalSuite("s", Agent("a", model), [case()], [name])
    with pytest.raises(EvalError, match="there is no metric"):
        await suite.run()
    assert not model.calls


async def test_01_a_judge_of_ours_that_crashes_is_an_error() -> None:
    suite = FluentEvalSuite("s", agent("a"), [case()], custom_judges=[FluentJudge("j", _crash)])
    outcome = (await suite.run()).outcomes[0]
    assert outcome.status is Status.ERROR
    assert "RuntimeError: no idea" in outcome.reasons[0]


@needs_extra
@pytest.mark.skipif(not MENDED, reason="there it ends the run; see 03")
async def test_02_a_run_that_failed_has_no_reason() -> None:
    root = LlmAgent(name="a", model=says(RuntimeError("the model is gone")))
    found = await theirs(root, [eval_case()])
    assert found.status == EvalStatus.FAILED
    assert not found.results[0].overall_eval_metric_results
    told = found.results[0].model_dump_json(exclude={"session_details"})
    assert "the model is gone" not in told
    assert found.inferences[0].error_message == "the model is gone"

    outcome = await outcome_of(Agent("a", says(RuntimeError("the model is gone"))))
    assert outcome.status is Status.ERROR
    assert outcome.reasons == ["RuntimeError: the model is gone"]
    assert outcome.turns[0].input == "Hi"


@needs_extra
async def test_03_a_run_that_failed_ends_all_others() -> None:
    root = LlmAgent(name="a", model=scripted(RuntimeError("gone"), default="x"))
    cases = [eval_case("a"), eval_case("b")]
    if MENDED:
        found = await theirs(root, cases)
        statuses = [each.final_eval_status for each in found.results]
        assert set(statuses) == {EvalStatus.PASSED, EvalStatus.FAILED}
    else:
        with pytest.raises(TypeError, match="NoneType"):
            await theirs(root, cases)

    for engine in ("light", "local"):
        pipeline = Agent("a", scripted(RuntimeError("gone"), default="x"))
        report = await report_of(pipeline, case(id="a"), case(id="b"), engine=engine, parallelism=1)
        assert [each.status for each in report.outcomes] == [Status.ERROR, Status.PASSED]


@needs_extra
async def test_04_a_case_without_a_session_of_its_own_loses_its_state() -> None:
    root = LlmAgent(name="a", model=says("x"), output_key="k")
    lost = await theirs(root, [eval_case(session_input=None)])
    assert lost.results[0].session_details is None
    kept = (await theirs(root, [eval_case()])).results[0].session_details
    assert kept is not None
    assert kept.state["k"] == "x"

    outcome = await outcome_of(root)
    assert outcome.state == {"k": "x"}


def _bill(asked: Asked) -> str:
    return asked.system


@needs_extra
async def test_05_state_of_users_leaks_from_case_to_case() -> None:
    def made() -> LlmAgent:
        return LlmAgent(
            name="a", model=says(_bill), instruction="Seen: {user:seen?}.", output_key="user:seen"
        )

    alike = [eval_case(id, session_input=None) for id in "ab"]
    found = await theirs(made(), alike)
    second = (found.inferences[1].inferences or [])[0].final_response
    assert "Seen: Seen:" in str(second)

    report = await report_of(made(), case(id="a"), case(id="b"), num_runs=2)
    assert all("Seen: ." in each.response for each in report.outcomes)
    assert len({each.user_id for each in report.outcomes}) == 4


@needs_extra
async def test_06_a_key_of_adks_own_stays_in_state() -> None:
    root = LlmAgent(name="a", model=says("x"), output_key="k")
    kept = (await theirs(root, [eval_case()])).results[0].session_details
    assert kept is not None
    assert set(kept.state) == {"k", "__llm_request_key__"}

    for engine in ("light", "local"):
        outcome = await outcome_of(root, options={"engine": engine})
        assert outcome.state == {"k": "x"}


async def test_06_judges_leave_nothing_in_state() -> None:
    written = Agent("a", says("x")).writes("k")
    one = case(reference_response="x")
    suite = FluentEvalSuite("s", written, [one], [MATCH], judge_model=judge(), judge_samples=1)
    assert (await suite.run()).outcomes[0].state == {"k": "x"}


@needs_extra
async def test_07_results_come_in_no_order_and_without_their_run() -> None:
    waits = {"a": 0.1, "b": 0.05, "c": 0.0}

    def slowly(asked: Asked) -> Any:
        return reply("x", latency=waits[asked.prompt])

    root = LlmAgent(name="a", model=says(slowly))
    cases = [eval_case(id, turn(id)) for id in waits]
    found = await theirs(root, cases, parallelism=3)
    assert [each.eval_case_id for each in found.inferences] != ["a", "b", "c"]
    assert "run" not in type(found.results[0]).model_fields

    report = await report_of(root, *(case(id, id=id) for id in waits), num_runs=2)
    keys = [(id, run) for id in waits for run in (1, 2)]
    assert [each.key for each in report.outcomes] == keys
    assert [each.eval_id for each in report.case_results] == [id for id, _ in keys]
    assert list(report.native_results) != []


@needs_extra
async def test_08_what_state_should_be_in_the_end_is_never_looked_at() -> None:
    root = LlmAgent(name="a", model=says("x"), output_key="k")
    found = await theirs(root, [eval_case(final_session_state={"k": "something else"})])
    assert found.status == EvalStatus.PASSED

    outcome = await outcome_of(root, state_assertions={"k": "something else"})
    assert outcome.status is Status.FAILED
    assert "something else" in outcome.reasons[0]


async def test_09_judges_want_a_threshold_beside_their_criterion(judging: list[BaseLlm]) -> None:
    judging.append(judge())
    evaluator = compared(threshold=None)
    if MENDED:
        assert (await evaluator.evaluate_invocations([turn()], [turn()])).overall_score == 1.0
    else:
        with pytest.raises(TypeError, match="not supported between"):
            await evaluator.evaluate_invocations([turn()], [turn()])

    one = FluentCase("Hi", reference_response="x")
    suite = FluentEvalSuite("s", agent("a", "x"), [one], [MATCH], judge_model=judge())
    assert (await suite.run()).ok


async def test_10_one_failed_sample_is_the_end_of_all(judging: list[BaseLlm]) -> None:
    def failing_once() -> Any:
        return judge(rules=[rule(reply=ValueError("once"), times=1)])

    judging.append(failing_once())
    if MENDED:
        found = await compared(5).evaluate_invocations([turn()], [turn()])
        assert found.overall_score is None
        assert found.overall_eval_status == EvalStatus.NOT_EVALUATED
    else:
        with pytest.raises(ValueError, match="once"):
            await compared(5).evaluate_invocations([turn()], [turn()])

    one = FluentCase("Hi", reference_response="x")
    suite = FluentEvalSuite("s", agent("a", "x"), [one], [MATCH], judge_model=failing_once())
    assert (await suite.run()).ok


@needs_extra
async def test_11_a_name_with_a_slash_fails_after_everything_ran(tmp_path: Path) -> None:
    manager = LocalEvalSetResultsManager(str(tmp_path))
    model = says("x")
    root = LlmAgent(name="a", model=model)
    saved: dict[str, Any] = {"eval_set": "my/set", "eval_set_results_manager": manager}
    if MENDED:
        with pytest.raises(ValueError, match="path separator"):
            await theirs(root, [eval_case()], **saved)
    else:
        await theirs(root, [eval_case()], **saved)
    assert model.calls

    suite = FluentEvalSuite("my/set: a 'test'", root, [case(id="odd/id")])
    report = await suite.run(results_manager=LocalEvalSetResultsManager(str(tmp_path / "ours")))
    assert report.ok
    assert len(_saved(tmp_path / "ours")) == 1


@needs_extra
async def test_12_files_of_results_are_of_a_case_or_of_a_set(tmp_path: Path) -> None:
    root, cases = LlmAgent(name="a", model=says("x")), [eval_case("a"), eval_case("b")]
    manager = LocalEvalSetResultsManager(str(tmp_path / "theirs"))
    await theirs(root, cases, eval_set_results_manager=manager)
    assert len(_saved(tmp_path / "theirs")) == (1 if MENDED else 2)

    manager = LocalEvalSetResultsManager(str(tmp_path / "ours"))
    suite = FluentEvalSuite("s", root, [case(id="a"), case(id="b")])
    await suite.run(results_manager=manager)
    [file] = _saved(tmp_path / "ours")
    data: Any = json.loads(file.read_text())
    data = json.loads(data) if isinstance(data, str) else data  # 1.x writes a text in a text
    assert [each["eval_id"] for each in data["eval_case_results"]] == ["a", "b"]


def _saved(folder: Path) -> list[Path]:
    return list(folder.rglob("*.evalset_result.json"))


async def test_13_a_judge_is_a_name_and_no_model() -> None:
    with pytest.raises(ValidationError):
        JudgeModelOptions(judge_model=judge())  # pyright: ignore[reportArgumentType]

    model = judge()
    one = FluentCase("Hi", reference_response="x")
    suite = FluentEvalSuite("s", agent("a", "x"), [one], [MATCH], judge_model=model)
    assert (await suite.run()).ok
    assert len(model.calls) == 5


# --- more that the research names ----------------------------------------------------------------


@needs_extra
async def test_trajectories_of_played_users_are_never_evaluated() -> None:
    model = scripted("</finished>", default="</finished>", model="user")
    scenario = ConversationScenario(starting_prompt="Hi", conversation_plan="Ask for the order.")
    played = EvalCase(
        eval_id="a",
        conversation_scenario=scenario,
        session_input=SessionInput(app_name="app", user_id="user"),
    )
    evaluator = TrajectoryEvaluator(eval_metric=metric())
    with pytest.raises(ValueError, match="expected_invocations is needed"):
        evaluator.evaluate_invocations([turn()], played.conversation)

    simulation = UserSimulation(model)
    outcome = await outcome_of(desk(), expected_trajectory=["lookup"], simulation=simulation)
    assert outcome.status is Status.PASSED, outcome.reasons
    outcome = await outcome_of(desk(), expected_trajectory=[], simulation=simulation)
    assert outcome.status is Status.FAILED


@needs_extra
async def test_why_a_played_user_stopped_is_lost(judging: list[BaseLlm]) -> None:
    judging.append(says("more"))
    scenario = ConversationScenario(starting_prompt="Hi", conversation_plan="Go on for ever.")
    played = EvalCase(
        eval_id="a",
        conversation_scenario=scenario,
        session_input=SessionInput(app_name="app", user_id="user"),
    )
    config = LlmBackedUserSimulatorConfig(
        model="their-judge",
        model_configuration=types.GenerateContentConfig(),
        max_allowed_invocations=1,
    )
    provider = UserSimulatorProvider(config)
    root = LlmAgent(name="a", model=says("x"))
    inferences = (
        await theirs(root, [played], [metric(TRAJECTORY)], user_simulator_provider=provider)
    ).inferences
    assert inferences[0].status == InferenceStatus.SUCCESS
    assert "limit" not in inferences[0].model_dump_json(exclude={"inferences"})

    outcome = await outcome_of(root, simulation=UserSimulation(says("more"), max_turns=1))
    assert outcome.stop_reason == "max_turns"


@needs_extra
async def test_nothing_at_all_is_no_failure() -> None:
    found = await theirs(LlmAgent(name="a", model=says("x")), [])
    assert found.results == []

    with pytest.raises(EvalError, match="has no cases"):
        await FluentEvalSuite("s", agent("a")).run()


def test_trajectories_by_names_alone_need_a_newer_adk() -> None:
    assert ("ignore_args" in ToolTrajectoryCriterion.model_fields) == MENDED
    evaluator = TrajectoryEvaluator(eval_metric=metric())
    by_name = evaluator.evaluate_invocations(
        [turn("Hi", "x", ("lookup", {"order": "A1"}))], [turn("Hi", "x", ("lookup", {}))]
    )
    assert by_name.overall_score == 0.0


async def test_trajectories_by_names_alone_are_ours_everywhere() -> None:
    pipeline = desk(Call("lookup", {"order": "A1"}))
    assert (await outcome_of(pipeline, expected_trajectory=["lookup"])).passed
    expected = [ToolCall("lookup", {"order": "A2"})]
    assert not (await outcome_of(pipeline, expected_trajectory=expected)).passed


# --- others that were found since ----------------------------------------------------------------


def _only_first(prompt: str) -> bool | None:
    return None if '"Agent response": second' in prompt else True


async def test_a_turn_that_could_not_be_judged_is_left_out_of_the_mean(
    judging: list[BaseLlm],
) -> None:
    judging.append(judge(_only_first))
    turns = [turn("Hi", "first"), turn("Ho", "second")]
    found = await compared().evaluate_invocations(turns, turns)
    assert found.overall_score == 1.0
    assert found.overall_eval_status == EvalStatus.PASSED

    one = FluentCase(
        [Turn("Hi", reference_response="first"), Turn("Ho", reference_response="second")]
    )
    suite = FluentEvalSuite(
        "s", Agent("a", scripted("first", "second")), [one], [MATCH], judge_model=judge(_only_first)
    )
    outcome = (await suite.run()).outcomes[0]
    assert outcome.status is Status.ERROR
    assert "of turn 2" in outcome.reasons[0]


async def test_a_rubric_that_the_judge_forgot_is_left_out_of_the_mean(
    judging: list[BaseLlm],
) -> None:
    def forgetful() -> Any:
        return judge(rubrics={POLITE: True, SHORT: None})

    judging.append(forgetful())
    rubrics = [
        AdkRubric(rubric_id=text, rubric_content=RubricContent(text_property=text))
        for text in (POLITE, SHORT)
    ]
    criterion = RubricsBasedCriterion(threshold=1.0, judge_model_options=asking(), rubrics=rubrics)
    name = "rubric_based_final_response_quality_v1"
    evaluator = RubricBasedFinalResponseQualityV1Evaluator(
        metric(name, threshold=1.0, criterion=criterion)
    )
    found = await evaluator.evaluate_invocations([turn()])
    assert found.overall_score == 1.0

    one = FluentCase("Hi", rubrics=[POLITE, SHORT])
    suite = FluentEvalSuite("s", agent("a", "x"), [one], [name], judge_model=forgetful())
    score = (await suite.run()).outcomes[0].scores[0]
    assert score.status is MetricStatus.NOT_EVALUATED
    assert SHORT in score.reason


async def test_what_a_judge_thinks_counts_as_what_it_says(judging: list[BaseLlm]) -> None:
    def thinking() -> Any:
        thought = Thought('{"is_the_agent_response_valid": "valid"\n}')
        return says(reply(thought, '{"is_the_agent_response_valid": "invalid"\n}'))

    judging.append(thinking())
    found = await compared().evaluate_invocations([turn()], [turn()])
    assert found.overall_score == 1.0

    one = FluentCase("Hi", reference_response="x")
    suite = FluentEvalSuite("s", agent("a", "x"), [one], [MATCH], judge_model=thinking())
    assert (await suite.run()).outcomes[0].status is Status.FAILED


@needs_extra
@pytest.mark.skipif(not MENDED, reason="this google-adk has no graphs")
async def test_agents_without_an_instruction_end_a_run() -> None:
    from google.adk.workflow import START, Workflow

    def made() -> Any:
        step = LlmAgent(name="step", model=says("x"), mode="single_turn")
        return Workflow(name="flow", edges=[(START, step)])

    found = await theirs(made(), [eval_case()])
    assert found.inferences[0].status == InferenceStatus.FAILURE
    assert "AgentDetails" in (found.inferences[0].error_message or "")

    one = FluentCase("Hi", reference_response="x")
    suite = FluentEvalSuite("s", made(), [one], [MATCH], judge_model=judge())
    assert (await suite.run()).ok

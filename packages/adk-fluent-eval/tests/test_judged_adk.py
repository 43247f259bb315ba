"""ADK's judges and simulated users: a score only where the judge gave a verdict."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest
from eval_desk import NONSENSE, answer, desk, judge, verdict
from google.adk.evaluation.eval_case import EvalCase, Invocation
from google.adk.evaluation.eval_set import EvalSet
from google.adk.models.base_llm import BaseLlm
from google.adk.models.registry import LLMRegistry
from google.adk.version import __version__ as adk_version

from adk_fluent import Agent
from adk_fluent.eval import (
    CaseOutcome,
    EvalError,
    FluentCase,
    FluentEvalSuite,
    MetricScore,
    MetricStatus,
    MetricUnavailableError,
    PrebuiltMetrics,
    Status,
    Turn,
    UserSimulation,
)
from adk_fluent.eval._metrics import METRICS
from adk_fluent.testing import ScriptedModel, reply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse

pytestmark = pytest.mark.adk

MAJOR = int(adk_version.partition(".")[0])
JUDGED = [each.name for each in METRICS.values() if each.by == "judge" and each.since <= MAJOR]
CLOUD = [each.name for each in METRICS.values() if each.by == "cloud"]
MATCH = "final_response_match_v2"
QUALITY = "rubric_based_final_response_quality_v1"
PLAYED = "per_turn_user_simulator_quality_v1"
POLITE, BRIEF = "It is polite.", "It is brief."


def fitting(metric: str, **fields: Any) -> FluentCase:
    """A case that a metric applies to."""
    if METRICS[metric].needs == "simulation":
        fields.setdefault("simulation", UserSimulation(script=["my order"]))
    fields = {"reference_response": "it is shipped", "rubrics": [POLITE], **fields}
    return FluentCase(fields.pop("input", "my order"), id="a", **fields)


def scored(
    metric: str, model: Any, case: FluentCase | None = None, samples: int = 1, **fields: Any
) -> tuple[CaseOutcome, MetricScore]:
    suite = FluentEvalSuite(
        "s",
        desk(),
        [case or fitting(metric)],
        [metric],
        judge_model=model,
        judge_samples=samples,
        **fields,
    )
    [outcome] = suite.run_sync().outcomes
    score = outcome.score(metric)
    assert score is not None
    return outcome, score


def test_every_metric_of_adk_is_known() -> None:
    from google.adk.evaluation import eval_metrics

    theirs = {each.value for each in eval_metrics.PrebuiltMetrics}
    assert theirs <= set(METRICS) == {each.value for each in PrebuiltMetrics}
    newer = [METRICS[each] for each in set(METRICS) - theirs]
    assert all(each.by == "own" or each.since > MAJOR for each in newer)


def metric_table() -> str:
    """Return the metrics as a table in Markdown."""
    rows = [
        ("metric", "light", "`[adk]`", "Google Cloud", "judge model", "a case has", "threshold"),
        ("---",) * 7,
    ]
    for each in METRICS.values():
        cloud = each.by == "cloud"
        since = f" (google-adk {each.since}.x)" if each.since > 1 else ""
        threshold = "informational" if each.threshold is None else f"{each.threshold:g}"
        rows.append(
            (
                f"`{each.name}`{since}",
                "" if cloud else "yes",
                "needed" if cloud else "yes",
                "needed" if cloud else "",
                "needed" if each.by == "judge" else "",
                f"`{each.needs}`" if each.needs else "",
                threshold + (f" of {each.unit}" if each.unit == "1-5" else ""),
            )
        )
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def test_the_page_has_the_table() -> None:
    from pathlib import Path

    page = Path(__file__).parents[1] / "docs" / "metrics.md"
    assert metric_table() in page.read_text("utf-8")


@pytest.mark.parametrize("metric", JUDGED)
@pytest.mark.parametrize("ok", [True, False])
def test_a_judge_of_adks_passes_or_fails_a_case(metric: str, ok: bool) -> None:
    outcome, score = scored(metric, judge(ok, {POLITE: ok}))
    assert outcome.status is (Status.PASSED if ok else Status.FAILED), outcome.reasons
    assert score.score == (1.0 if ok else pytest.approx(0.0, abs=0.5))
    assert score.threshold == METRICS[metric].threshold
    assert outcome.eval_calls > 0
    assert outcome.eval_tokens.total > 0
    if not ok:
        assert score.findings
        assert outcome.reasons


class House(BaseLlm):
    """A judge that is found by its name, and approves of everything."""

    @classmethod
    def supported_models(cls) -> list[str]:
        return ["house-judge"]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        async for each in judge(True).generate_content_async(llm_request):
            yield each


def test_a_judge_is_named_as_a_text() -> None:
    LLMRegistry.register(House)
    outcome, score = scored(MATCH, "house-judge")
    assert (outcome.passed, score.score) == (True, 1.0)


@pytest.mark.parametrize("metric", JUDGED)
def test_a_judge_that_gives_no_verdict_is_an_error_with_its_words(metric: str) -> None:
    outcome, score = scored(metric, judge(None))
    assert (outcome.status, score.status) == (Status.ERROR, MetricStatus.NOT_EVALUATED)
    assert score.score is None
    assert NONSENSE in score.reason
    outcome, score = scored(metric, ScriptedModel(default=reply(error_code="SAFETY")))
    assert score.status is MetricStatus.NOT_EVALUATED
    assert "SAFETY" in outcome.reasons[0]


@pytest.mark.parametrize("metric", JUDGED)
def test_no_judge_model_is_told_before_any_model_call(metric: str) -> None:
    def never(_: Any) -> str:
        raise AssertionError

    suite = FluentEvalSuite("s", desk(answer=never), [fitting(metric)], [metric])
    with pytest.raises(MetricUnavailableError, match="it needs a judge model") as caught:
        suite.run_sync()
    assert caught.value.metric == metric


def test_the_majority_of_samples_decides_and_a_failed_one_does_not_count() -> None:
    yes, no = (f'{{"is_the_agent_response_valid": "{each}"}}' for each in ("valid", "invalid"))
    assert scored(MATCH, ScriptedModel(yes, no, yes), samples=3)[0].passed
    model = ScriptedModel(reply(error_code="SAFETY"), yes)
    assert scored(MATCH, model, samples=2)[0].passed


def test_a_rubric_that_the_judge_forgot_is_no_score() -> None:
    case = fitting(QUALITY, rubrics=[POLITE, BRIEF])
    outcome, score = scored(QUALITY, judge(True, {POLITE: True}), case)
    assert score.status is MetricStatus.NOT_EVALUATED
    assert f'no readable verdict on rubric "{BRIEF}"' in outcome.reasons[0]
    outcome, score = scored(QUALITY, judge(True, {POLITE: True, BRIEF: False}), case)
    assert (outcome.status, score.score) == (Status.FAILED, 0.5)
    assert outcome.reasons == [f'rubric "{BRIEF}" of turn 1: because']
    turns = [Turn("hi", rubrics=[BRIEF]), "my order"]
    case = FluentCase(turns, id="a", rubrics=[POLITE])
    _, score = scored(QUALITY, judge(True, {POLITE: True, BRIEF: False}), case)
    assert score.turns == [0.5, 1.0]


def test_a_judge_reads_what_the_agent_was_told() -> None:
    seen: list[str] = []

    def says(asked: Any) -> str:
        seen.append(asked.prompt)
        return verdict(asked.prompt, True, {})

    scored("hallucinations_v1", ScriptedModel(default=says))
    assert any("Look up an order." in each for each in seen)


@pytest.mark.parametrize("metric", CLOUD)
def test_google_cloud_is_asked_for_only_with_its_library_and_an_account(
    metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"):
        monkeypatch.delenv(name, raising=False)
    suite = FluentEvalSuite("s", desk(), [fitting(metric)], [metric])
    with pytest.raises(MetricUnavailableError, match="cannot be computed here") as caught:
        suite.check()
    if METRICS[metric].since > MAJOR:
        assert "google-adk>=2" in str(caught.value)
    elif find_spec("vertexai") is None:
        assert "adk-fluent-eval[adk]" in str(caught.value)
    else:
        assert "set GOOGLE_API_KEY" in str(caught.value)
        monkeypatch.setenv("GOOGLE_API_KEY", "not-a-key")
        suite.check()


# --- simulated users -----------------------------------------------------------------------------


def simulated(simulation: UserSimulation, answer: Any = answer, **fields: Any) -> CaseOutcome:
    case = FluentCase("my order", id="a", simulation=simulation, max_tokens=9999, **fields)
    [outcome] = FluentEvalSuite("s", desk(answer=answer), [case]).run_sync().outcomes
    return outcome


def test_a_model_goes_on_with_the_conversation_until_its_stop_signal() -> None:
    told: list[Any] = []

    def user(asked: Any) -> str:
        told.append(asked)
        return ["my other order", "thanks, DONE."][len(told) - 1] if len(told) < 2 else "Done."

    simulation = UserSimulation(
        ScriptedModel(default=user),
        persona="A hurried merchant.",
        success_criteria="Both orders are known.",
        stop_signal="done",
        include_function_calls=True,
    )
    outcome = simulated(
        simulation,
        expected_trajectory=["look_up", "look_up"],
        expected_response_contains="shipped",
    )
    assert outcome.passed, outcome.reasons
    assert [turn.input for turn in outcome.turns] == ["my order", "my other order"]
    assert (outcome.stop_reason, outcome.eval_calls) == ("stop_signal", 2)
    assert "A hurried merchant." in str(told[0].raw.config.system_instruction)
    assert "Both orders are known." in str(told[0].raw.config.system_instruction)
    assert "Assistant: it is shipped" in told[0].prompt
    assert "[the assistant calls look_up" in told[0].prompt


def test_scripts_and_limits_end_a_conversation() -> None:
    outcome = simulated(UserSimulation(script=["hello", "my order"]))
    assert [turn.response for turn in outcome.turns] == [
        "it is shipped",
        "good morning",
        "it is shipped",
    ]
    assert (outcome.stop_reason, outcome.passed) == ("script_end", True)
    outcome = simulated(UserSimulation(ScriptedModel(default="more"), max_turns=3))
    assert (len(outcome.turns), outcome.stop_reason) == (3, "max_turns")


@pytest.mark.parametrize(
    ("said", "ends"),
    [
        ("</finished>", True),
        ("Thanks!</FINISHED>", True),
        ("I am finished.", False),
        ("", None),
        (reply(error_code="SAFETY"), None),
    ],
)
def test_stop_signals_and_users_that_cannot_be_simulated(said: Any, ends: bool | None) -> None:
    outcome = simulated(UserSimulation(ScriptedModel(default=said), max_turns=2))
    if ends is None:
        assert outcome.status is Status.ERROR
        assert "simulate" in str(outcome.error)
    else:
        assert len(outcome.turns) == (1 if ends else 2)
        assert outcome.stop_reason == ("stop_signal" if ends else "max_turns")


def test_a_suite_simulates_the_users_of_cases_with_one_message() -> None:
    suite = FluentEvalSuite(
        "s",
        desk(),
        [
            FluentCase("my order", id="a", max_tokens=999),
            FluentCase(["hi", "my order"], id="b", max_tokens=999),
            FluentCase("x", id="c", max_tokens=999, simulation=UserSimulation(script=[])),
        ],
        simulation=UserSimulation(script=["hello", "bye"]),
    )
    assert [len(each.turns) for each in suite.run_sync().outcomes] == [3, 2, 1]


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (UserSimulation, "by a model or by a script"),
        (lambda: UserSimulation("m", script=["x"]), "found: both"),
        (lambda: UserSimulation(script="x"), "script= must be a list"),
        (lambda: UserSimulation(script=[""]), "script= must be a list of texts"),
        (lambda: UserSimulation("m", stop_signal=" "), "stop_signal= must be a text"),
        (lambda: UserSimulation("m", max_turns=0), "max_turns= must be"),
        (lambda: UserSimulation("m", persona=3), "persona= must be"),
        (
            lambda: FluentCase(["a", "b"], simulation=UserSimulation(script=["x"])),
            "takes one message",
        ),
        (lambda: FluentCase("a", simulation=3), "takes a UserSimulation"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        (lambda: FluentCase("a", rubrics="x"), "rubrics= must be a list"),
        (lambda: FluentEvalSuite(simulation=3), "takes a UserSimulation"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        (lambda: FluentEvalSuite(judge_samples=0), "judge_samples= must be"),
    ],
)
def test_what_cannot_be_meant_is_refused(make: Any, what: str) -> None:
    with pytest.raises(EvalError, match=what):
        make()


# --- files ---------------------------------------------------------------------------------------


def test_rubrics_simulations_and_judges_survive_files(tmp_path: Path) -> None:
    played = UserSimulation("gemini-2.5-flash", "A merchant.", "It is known.", max_turns=3)
    suite = FluentEvalSuite(
        "s",
        desk(),
        [
            FluentCase("a", id="a", rubrics=[POLITE], simulation=played),
            FluentCase([Turn("b", rubrics=[BRIEF]), "c"], id="b", rubrics=[POLITE]),
            FluentCase("d", id="d", reference_response="x"),
        ],
        [MATCH, QUALITY],
        judge_model="gemini-2.5-pro",
        judge_samples=3,
        simulation=UserSimulation(script=["x"]),
    )
    suite.to_yaml(tmp_path / "s.yaml")
    config = tmp_path / "test_config.json"
    suite.to_eval_set_file(tmp_path / "s.evalset.json", config_path=config)
    for again in (
        FluentEvalSuite.from_yaml(tmp_path / "s.yaml", desk()),
        FluentEvalSuite.from_eval_set(tmp_path / "s.evalset.json", desk()),
    ):
        assert again.cases == suite.cases
        assert (again.judge_model, again.judge_samples) == ("gemini-2.5-pro", 3)
        assert again.simulation == suite.simulation
    eval_set = EvalSet.model_validate_json((tmp_path / "s.evalset.json").read_text("utf-8"))
    first, second, third = eval_set.eval_cases
    assert first.conversation_scenario is not None
    assert first.conversation_scenario.starting_prompt == "a"
    assert (second.conversation_scenario, third.conversation) == (None, None)
    foreign = FluentEvalSuite.from_eval_set(eval_set, desk(), config_path=config)
    assert foreign.cases[0].simulation is not None
    assert "It is known." in str(foreign.cases[0].simulation.success_criteria)
    assert foreign.cases[1].turns[0].rubrics == [BRIEF]
    assert foreign.cases[1].rubrics == [POLITE]
    assert (foreign.judge_model, foreign.judge_samples) == ("gemini-2.5-pro", 3)


def test_adk_reads_rubrics_of_its_own_set() -> None:
    from google.adk.evaluation.eval_rubrics import Rubric, RubricContent
    from google.genai import types

    said = types.Content(role="user", parts=[types.Part(text="hi")])
    rubric = Rubric(rubric_id="r", rubric_content=RubricContent(text_property=POLITE))
    case = EvalCase(eval_id="a", conversation=[Invocation(user_content=said)], rubrics=[rubric])
    suite = FluentEvalSuite.from_eval_set(
        EvalSet(eval_set_id="s", eval_cases=[case]), Agent("a", ScriptedModel(default="x"))
    )
    assert suite.cases[0].rubrics == [POLITE]

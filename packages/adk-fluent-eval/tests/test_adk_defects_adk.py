"""Defects of ADK's own evaluation: what it does alone, and what the same case does here.

A test that fails on a newer google-adk at the part about ADK says that a defect was mended there.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from eval_desk import judge, verdict
from google.adk.agents.llm_agent import LlmAgent
from google.adk.evaluation import base_eval_service as base
from google.adk.evaluation import eval_metrics
from google.adk.evaluation.eval_metrics import BaseCriterion, EvalMetric
from google.adk.evaluation.in_memory_eval_sets_manager import InMemoryEvalSetsManager
from google.adk.evaluation.local_eval_set_results_manager import LocalEvalSetResultsManager
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.models.registry import LLMRegistry
from google.adk.version import __version__ as adk_version
from google.genai import types
from pydantic import ValidationError

from adk_fluent.cli import main
from adk_fluent.eval import (
    EvalError,
    FluentCase,
    FluentEvalReport,
    FluentEvalSuite,
    FluentJudge,
    Status,
    UserSimulation,
)
from adk_fluent.testing import Call, ScriptedModel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from pathlib import Path

    from google.adk.evaluation.eval_case import EvalCase

HAS_EXTRA = all(find_spec(name) for name in ("pandas", "rouge_score", "vertexai"))
pytestmark = [
    pytest.mark.adk,
    pytest.mark.skipif(not HAS_EXTRA, reason="LocalEvalService needs google-adk[eval]"),
    pytest.mark.filterwarnings("ignore"),  # of the libraries of the extra
]
BARE = adk_version.startswith("1.")
TRAJECTORY, MATCH = "tool_trajectory_avg_score", "final_response_match_v2"
JUDGE = "judge-of-defects"


class Judge(BaseLlm):
    """A judge that ADK finds by its name; it says the verdicts in turn."""

    verdicts: ClassVar[list[bool]] = []

    @classmethod
    def supported_models(cls) -> list[str]:
        return [JUDGE]

    async def generate_content_async(
        self, llm_request: Any, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        text = next_verdict(self.verdicts)
        content = types.Content(role="model", parts=[types.Part(text=text)])
        yield LlmResponse(content=content)


def next_verdict(verdicts: list[bool]) -> str:
    """The next verdict; the judge fails where it would be no."""
    if not verdicts.pop(0):
        raise TimeoutError("the judge does not answer")
    return verdict("is_the_agent_response_valid", True, {})


def agent(says: Any = "good morning", **fields: Any) -> LlmAgent:
    return LlmAgent(name="desk", model=ScriptedModel(default=says), **fields)


def adk_cases(*cases: FluentCase, **changed: Any) -> list[EvalCase]:
    """Cases as ADK has them."""
    made = FluentEvalSuite("s", agent(), cases).to_eval_set().eval_cases
    return [each.model_copy(update=changed) for each in made]


async def by_adk(
    root: LlmAgent,
    cases: Sequence[EvalCase],
    *metrics: str | EvalMetric,
    set_id: str = "s",
    parallelism: int = 4,
    came: list[str] | None = None,
    **services: Any,
) -> list[Any]:
    """ADK's results, without anything of ours; `came` gets the cases in the order of their runs."""
    from google.adk.evaluation.local_eval_service import LocalEvalService

    sets = InMemoryEvalSetsManager()
    sets.create_eval_set(app_name="app", eval_set_id=set_id)
    for case in cases:
        if case.session_input is not None:
            case.session_input.app_name = "app"
        sets.add_eval_case("app", set_id, case)
    service = LocalEvalService(root_agent=root, eval_sets_manager=sets, **services)
    inference = base.InferenceConfig(parallelism=parallelism)
    request = base.InferenceRequest(app_name="app", eval_set_id=set_id, inference_config=inference)
    inferences = [each async for each in service.perform_inference(request)]
    if came is not None:
        came += [each.eval_case_id for each in inferences]
    asked = [
        EvalMetric(metric_name=each, threshold=1.0, criterion=BaseCriterion(threshold=1.0))
        if isinstance(each, str)
        else each
        for each in metrics
    ]
    config = base.EvaluateConfig(eval_metrics=asked)
    evaluation = base.EvaluateRequest(inference_results=inferences, evaluate_config=config)
    return [each async for each in service.evaluate(evaluation)]


def ours(root: LlmAgent, *cases: FluentCase, **fields: Any) -> FluentEvalReport:
    """The report of both engines, which must agree."""
    light, local = (
        FluentEvalSuite("s", root, cases, **fields).run_sync(engine=engine)
        for engine in ("light", "local")
    )
    for one, other in zip(light.outcomes, local.outcomes, strict=True):
        assert (one.key, one.status, one.state) == (other.key, other.status, other.state)
    return local


HI = FluentCase("hi", id="hi", expected_trajectory=[], reference_response="good morning")


async def test_adk_passes_a_case_with_a_metric_that_it_does_not_know() -> None:
    [result] = await by_adk(agent(), adk_cases(HI), TRAJECTORY, "no_such_metric")
    assert result.final_eval_status.name == "PASSED"
    with pytest.raises(EvalError, match="unknown metric"):
        FluentEvalSuite("s", agent(), [HI], ["no_such_metric"]).check()


def test_adk_passes_a_case_with_a_metric_that_crashes(monkeypatch: pytest.MonkeyPatch) -> None:
    from google.adk.evaluation.final_response_match_v1 import RougeEvaluator

    def crash(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError

    def crashes() -> float:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(RougeEvaluator, "evaluate_invocations", crash)
        [result] = asyncio.run(by_adk(agent(), adk_cases(HI), TRAJECTORY, "response_match_score"))
    assert result.final_eval_status.name == "PASSED"
    [outcome] = ours(agent(), HI, custom_judges=[FluentJudge("crash", crashes)]).outcomes
    assert outcome.status is Status.ERROR
    assert "ZeroDivisionError" in outcome.reasons[0]


def test_adk_drops_the_reason_of_a_failed_run_or_breaks_off() -> None:
    def broken(_: Any) -> Any:
        raise ValueError("no model")

    if BARE:  # and with it every other case
        with pytest.raises(TypeError, match="NoneType"):
            asyncio.run(by_adk(agent(broken), adk_cases(HI), TRAJECTORY))
    else:
        [result] = asyncio.run(by_adk(agent(broken), adk_cases(HI), TRAJECTORY))
        assert (result.final_eval_status.name, result.overall_eval_metric_results) == ("FAILED", [])
        assert "no model" not in result.model_dump_json(exclude={"session_details"})
    [outcome] = ours(agent(broken), HI).outcomes
    assert outcome.status is Status.ERROR
    assert "no model" in str(outcome.error)


def test_adk_loses_the_session_of_a_case_without_one() -> None:
    [result] = asyncio.run(by_adk(agent(), adk_cases(HI, session_input=None), TRAJECTORY))
    assert result.session_details is None
    [result] = ours(agent(), HI).case_results
    assert result.session_details is not None


def test_adk_shares_a_user_between_cases() -> None:
    seen: list[Any] = []

    def note(order: str, tool_context: Any) -> str:
        """Note an order."""
        seen.append(tool_context.state.get("user:bill"))
        tool_context.state["user:bill"] = order
        return "noted"

    def calls(asked: Any) -> Any:
        return "done" if "[result" in asked.prompt else Call("note", {"order": "A1"})

    desk = agent(calls, tools=[note])
    cases = [FluentCase(f"order {n}", id=str(n), expected_trajectory=["note"]) for n in range(2)]
    made = adk_cases(*cases, session_input=None)
    asyncio.run(by_adk(desk, made, TRAJECTORY, parallelism=1))
    assert seen == [None, "A1"]
    seen.clear()
    assert ours(desk, *cases).ok
    assert seen == [None] * 4


def test_adk_leaves_a_key_of_its_own_in_the_state() -> None:
    [result] = asyncio.run(by_adk(agent(output_key="answer"), adk_cases(HI), TRAJECTORY))
    assert "__llm_request_key__" in result.session_details.state
    [outcome] = ours(agent(output_key="answer"), HI).outcomes
    assert outcome.state == {"answer": "good morning"}


def test_adk_gives_results_as_they_come_and_without_their_run() -> None:
    done: asyncio.Event

    async def says(asked: Any) -> str:
        if "first" in asked.prompt:
            await done.wait()
        else:
            done.set()
        return "good morning"

    came: list[str] = []

    async def both(cases: list[EvalCase]) -> list[Any]:
        nonlocal done
        done = asyncio.Event()
        return await by_adk(agent(says), cases, TRAJECTORY, came=came)

    cases = [FluentCase(each, id=each, expected_trajectory=[]) for each in ("first", "second")]
    results = asyncio.run(both(adk_cases(*cases)))
    assert came == ["second", "first"]
    assert "run" not in str(type(results[0]).__annotations__)
    report = ours(agent(), *cases, num_runs=2)
    keys = [("first", 1), ("first", 2), ("second", 1), ("second", 2)]
    assert [each.key for each in report.outcomes] == keys
    assert [each.eval_id for each in report.case_results] == [key[0] for key in keys]


def test_adk_does_not_look_at_the_final_state_of_a_case() -> None:
    case = FluentCase(
        "hi", id="a", expected_trajectory=[], state_assertions={"answer": "it is lost"}
    )
    desk = agent(output_key="answer")
    [made] = adk_cases(case)
    assert made.final_session_state == {"answer": "it is lost"}
    [result] = asyncio.run(by_adk(desk, [made], TRAJECTORY))
    assert result.final_eval_status.name == "PASSED"
    suite = FluentEvalSuite("s", desk, [case])
    for engine in ("light", "local"):
        [outcome] = suite.run_sync(engine=engine).outcomes  # type: ignore[arg-type]
        assert outcome.status is Status.FAILED
        assert "it is lost" in outcome.reasons[0]


def judged(samples: int = 1, **fields: Any) -> EvalMetric:
    """ADK's metric that asks a judge."""
    LLMRegistry.register(Judge)
    options = eval_metrics.JudgeModelOptions(judge_model=JUDGE, num_samples=samples)
    criterion = eval_metrics.LlmAsAJudgeCriterion(threshold=0.5, judge_model_options=options)
    return EvalMetric(metric_name=MATCH, criterion=criterion, **fields)


def test_adk_1_x_needs_the_threshold_twice() -> None:
    given: dict[str, Any]
    for given, expected in (
        ({}, "NOT_EVALUATED" if BARE else "PASSED"),
        ({"threshold": 0.5}, "PASSED"),
    ):
        Judge.verdicts[:] = [True]
        [result] = asyncio.run(by_adk(agent(), adk_cases(HI), judged(**given)))
        assert result.final_eval_status.name == expected
    fields = {"metrics": [MATCH], "thresholds": {MATCH: 0.5}, "judge_samples": 1}
    assert ours(agent(), HI, judge_model=judge(), **fields).ok


def test_adk_gives_up_a_turn_when_one_sample_of_a_judge_fails() -> None:
    Judge.verdicts[:] = [True, False, True]
    metric = judged(3, threshold=0.5)
    [result] = asyncio.run(by_adk(agent(), adk_cases(HI), TRAJECTORY, metric))
    assert result.overall_eval_metric_results[1].eval_status.name == "NOT_EVALUATED"
    assert result.final_eval_status.name == "PASSED"  # and the gate does not count it
    verdicts = [True, False, True] * 2  # for each engine
    model = ScriptedModel(default=lambda _: next_verdict(verdicts))
    report = ours(agent(), HI, metrics=[MATCH], judge_model=model, judge_samples=3)
    score = report.outcomes[0].score(MATCH)
    assert score is not None
    assert score.score == 1.0


def test_adk_runs_everything_before_it_refuses_the_name_of_a_set(tmp_path: Path) -> None:
    asked: list[str] = []

    def says(asked_of: Any) -> str:
        asked.append(asked_of.prompt)
        return "good morning"

    if not BARE:
        more: Any = {"eval_set_results_manager": LocalEvalSetResultsManager(str(tmp_path))}
        with pytest.raises(ValueError, match="path separators"):
            asyncio.run(
                by_adk(agent(says), adk_cases(HI), TRAJECTORY, set_id="desk/billing", **more)
            )
        assert asked
    (tmp_path / "desk").mkdir()
    (tmp_path / "desk" / "agent.py").write_text("", "utf-8")
    report = FluentEvalSuite("desk/billing", agent(), [HI]).run_sync(engine="local")
    assert report.save_adk_results(tmp_path, "desk")


def test_adk_1_x_writes_a_file_for_each_case(tmp_path: Path) -> None:
    cases = [FluentCase(each, id=each, expected_trajectory=[]) for each in ("a", "b")]
    manager = LocalEvalSetResultsManager(str(tmp_path))
    asyncio.run(by_adk(agent(), adk_cases(*cases), TRAJECTORY, eval_set_results_manager=manager))
    assert len(list(tmp_path.rglob("*.evalset_result.json"))) == (2 if BARE else 1)
    (tmp_path / "desk").mkdir()
    (tmp_path / "desk" / "agent.py").write_text("", "utf-8")
    report = FluentEvalSuite("s", agent(), cases).run_sync(engine="local")
    [_] = report.save_adk_results(tmp_path, "desk")


def test_adk_takes_judges_by_name_alone() -> None:
    model: Any = judge()
    with pytest.raises(ValidationError):
        eval_metrics.JudgeModelOptions(judge_model=model)
    assert ours(agent(), HI, metrics=[MATCH], judge_model=model, judge_samples=1).ok


def test_adk_does_not_tell_why_a_simulated_conversation_ended_nor_compares_its_calls() -> None:
    from google.adk.evaluation.simulation.llm_backed_user_simulator import (
        LlmBackedUserSimulatorConfig,
    )
    from google.adk.evaluation.simulation.user_simulator_provider import UserSimulatorProvider

    user = UserSimulation(model=ScriptedModel("go on"), success_criteria="a greeting", max_turns=1)
    case = FluentCase("hi", id="a", expected_trajectory=[], simulation=user)
    by_name = UserSimulation(model=JUDGE, success_criteria="a greeting")
    [made] = adk_cases(replace(case, simulation=by_name))
    provider = UserSimulatorProvider(LlmBackedUserSimulatorConfig(max_allowed_invocations=1))
    more: Any = {"user_simulator_provider": provider}
    [result] = asyncio.run(by_adk(agent(), [made], TRAJECTORY, **more))
    assert result.final_eval_status.name == "NOT_EVALUATED"
    assert "limit" not in result.model_dump_json().lower()
    [outcome] = ours(agent(), case).outcomes
    assert (outcome.status, outcome.stop_reason) == (Status.PASSED, "max_turns")


AGENT = """\
from google.adk.agents.llm_agent import LlmAgent

from adk_fluent.eval import FluentCase, FluentEvalSuite
from adk_fluent.testing import ScriptedModel

root_agent = LlmAgent(name="desk", model=ScriptedModel(default="good morning"))
cases = [FluentCase("hi", id="hi", expected_trajectory=CALLS)]
suite = FluentEvalSuite("s", root_agent, cases, METRICS)
"""


@pytest.mark.parametrize(
    ("calls", "metrics", "codes"),
    [
        ("[]", "['no_such_metric']", (0, 2)),
        ("['transfer_to_agent']", "[]", (0 if BARE else 1, 1)),
    ],
)
def test_adk_eval_ends_well_with_a_misspelt_metric_and_on_1_x_with_a_failed_case(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    calls: str,
    metrics: str,
    codes: tuple[int, int],
) -> None:
    folder = tmp_path / "desk"
    folder.mkdir()
    (folder / "__init__.py").write_text("from . import agent\n", "utf-8")
    text = AGENT.replace("CALLS", calls).replace("METRICS", metrics)
    (folder / "agent.py").write_text(text, "utf-8")
    trajectory: list[str] = json.loads(calls.replace("'", '"'))
    case = FluentCase("hi", id="hi", expected_trajectory=trajectory)
    file, config = folder / "desk.evalset.json", tmp_path / "config.json"
    FluentEvalSuite("s", agent(), [case]).to_eval_set_file(file, config_path=config)
    criteria: Any = json.loads(config.read_text("utf-8"))
    if metrics != "[]":
        criteria["criteria"]["no_such_metric"] = 1.0
    config.write_text(json.dumps(criteria), "utf-8")
    program = "from google.adk.cli import main; main()"
    done = subprocess.run(
        [
            *(sys.executable, "-W", "ignore", "-c", program, "eval", "desk", str(file)),
            *("--config_file_path", str(config)),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "Tests passed" in done.stdout, done.stdout + done.stderr
    assert done.returncode == codes[0], done.stdout + done.stderr
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["eval", "run", "desk/agent.py:suite"])
    assert ended.value.code == codes[1]

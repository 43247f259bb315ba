"""Results as ADK writes them and `adk web` shows them. Importing this imports ADK."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from google.adk.evaluation.eval_metrics import (
    BaseCriterion,
    EvalMetricResult,
    EvalMetricResultDetails,
    EvalMetricResultPerInvocation,
    EvalStatus,
)
from google.adk.evaluation.eval_result import EvalCaseResult, EvalSetResult
from google.adk.evaluation.eval_rubrics import RubricScore
from google.adk.evaluation.local_eval_set_results_manager import LocalEvalSetResultsManager

from adk_fluent._keys import secrets, without_keys
from adk_fluent.eval._errors import EvalError, EvalFileError
from adk_fluent.eval._files._names import run_ids, set_id
from adk_fluent.eval._files._transcript_adk import expected_invocations, invocations, session_of
from adk_fluent.eval._outcome import MetricStatus, Status

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from google.adk.evaluation.eval_case import Invocation
    from google.adk.evaluation.eval_set_results_manager import EvalSetResultsManager

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._outcome import CaseOutcome, MetricScore
    from adk_fluent.eval._report._report import FluentEvalReport

#: The metric that tells why a run could not be evaluated; ADK's results have no place for that.
ERROR: Final = "adk_fluent_error"

_STATUS: Final = {
    Status.PASSED: EvalStatus.PASSED,
    Status.FAILED: EvalStatus.FAILED,
    Status.ERROR: EvalStatus.FAILED,  # as ADK has it where an agent raised
    Status.SKIPPED: EvalStatus.NOT_EVALUATED,
    Status.XFAILED: EvalStatus.NOT_EVALUATED,
}
_METRIC_STATUS: Final = {
    MetricStatus.PASSED: EvalStatus.PASSED,
    MetricStatus.FAILED: EvalStatus.FAILED,
    MetricStatus.NOT_EVALUATED: EvalStatus.NOT_EVALUATED,
    # google-adk 1.25 knows no metrics that only inform
    MetricStatus.INFORMATIONAL: getattr(EvalStatus, "INFORMATIONAL", EvalStatus.NOT_EVALUATED),
}


def case_results(report: FluentEvalReport) -> list[EvalCaseResult]:
    """ADK's results of a report, in its order; runs of a case have the case's id.

    Args:
        report: The report.
    """
    cases = _cases(report)
    return [_case_result(report, each, each.id, cases.get(each.id)) for each in report.outcomes]


def to_eval_set_result(report: FluentEvalReport, app_name: str) -> EvalSetResult:
    """ADK's result of a whole suite; runs have the ids that an exported EvalSet gives them.

    Args:
        report: The report.
        app_name: The app that was evaluated.
    """
    now = time.time()
    name = f"{app_name}_{_set_id(report)}_{now}"
    return EvalSetResult(
        eval_set_result_id=name,
        eval_set_result_name=name,
        eval_set_id=_set_id(report),
        eval_case_results=_run_results(report, app_name),
        creation_timestamp=now,
    )


def save_with(manager: EvalSetResultsManager, report: FluentEvalReport, app_name: str) -> None:
    """Hands results to a manager of ADK's, which keeps them where it keeps them.

    Args:
        manager: The manager.
        report: The report.
        app_name: The app that was evaluated.
    """
    manager.save_eval_set_result(app_name, _set_id(report), _run_results(report, app_name))


def write_eval_set_result(
    report: FluentEvalReport, agents_dir: str | os.PathLike[str], app_name: str
) -> list[Path]:
    """Writes results where `adk web` looks for them, with ADK's own manager of results.

    Args:
        report: The report.
        agents_dir: The folder of agents that `adk web` is started with.
        app_name: The agent's folder in it.

    Returns:
        The files, in ``<agents_dir>/<app_name>/.adk/eval_history``.

    Raises:
        EvalError: The name of the app is no name of a folder.
        EvalFileError: There is no such agent, or the files cannot be written.
    """
    if not app_name or Path(app_name).name != app_name or app_name in {".", ".."}:
        raise EvalError(
            "an app is named by its folder", found=repr(app_name), help='such as "support"'
        )
    agent = Path(agents_dir) / app_name
    if not agent.is_dir():
        raise EvalFileError(
            "there is no folder of this agent",
            path=str(agent),
            help="give agents_dir= and app_name= as `adk web` has them",
        )
    try:
        return _saved(agent, report)
    except OSError as error:
        raise EvalFileError(
            f"the results cannot be written: {error.strerror or error}",
            path=str(agent / ".adk"),
            help="nothing is lost: write them again to another place, or when there is room",
        ) from error


def _saved(agent: Path, report: FluentEvalReport) -> list[Path]:
    """Lets ADK write into a folder beside, and moves what is whole: readers see no half files."""
    kept = agent / ".adk"
    kept.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept, prefix=".eval-") as folder:
        save_with(LocalEvalSetResultsManager(folder), report, agent.name)
        made = sorted(each for each in Path(folder).rglob("*") if each.is_file())
        moved: list[Path] = []
        for each in made:
            target = agent / each.relative_to(Path(folder, agent.name))
            target.parent.mkdir(parents=True, exist_ok=True)
            moved.append(each.replace(target))
        return moved


def _run_results(report: FluentEvalReport, app_name: str) -> list[EvalCaseResult]:
    cases = _cases(report)
    ids = list(dict.fromkeys(each.id for each in report.outcomes))
    runs = max((each.run for each in report.outcomes), default=1)
    names = {(case, run): name for case, run, name in run_ids(ids, runs)}
    return [
        _case_result(report, each, names[each.key], cases.get(each.id), app_name)
        for each in report.outcomes
    ]


def _cases(report: FluentEvalReport) -> Mapping[str, FluentCase]:
    return {case.name: case for case in report.fluent_cases}


def _set_id(report: FluentEvalReport) -> str:
    return set_id(report.suite)


# --- one run of a case -------------------------------------------------------------------------


def _case_result(
    report: FluentEvalReport,
    outcome: CaseOutcome,
    eval_id: str,
    case: FluentCase | None,
    app_name: str = "",
) -> EvalCaseResult:
    session = session_of(outcome, app_name, report.started_at.timestamp())
    return EvalCaseResult(
        eval_set_id=_set_id(report),
        eval_id=eval_id,
        final_eval_status=_STATUS[outcome.status],
        overall_eval_metric_results=[*_errors(outcome), *map(_metric_result, outcome.scores)],
        eval_metric_result_per_invocation=list(_per_invocation(outcome, case)),
        session_id=session.id,
        session_details=session,
        user_id=session.user_id,
    )


def _errors(outcome: CaseOutcome) -> Iterator[EvalMetricResult]:
    """Why there is no verdict, where nothing else says it."""
    why = outcome.error or outcome.note
    if why:
        yield EvalMetricResult(
            metric_name=ERROR,
            eval_status=EvalStatus.NOT_EVALUATED,
            details=EvalMetricResultDetails(
                rubric_scores=[RubricScore(rubric_id=outcome.status.value, rationale=why)]
            ),
        )


def _metric_result(score: MetricScore) -> EvalMetricResult:
    return EvalMetricResult(
        **_metric(score),
        score=score.score,
        eval_status=_METRIC_STATUS[score.status],
        details=EvalMetricResultDetails(rubric_scores=list(_reasons(score)) or None),
    )


def _metric(score: MetricScore) -> dict[str, Any]:
    made: dict[str, Any] = {"metric_name": score.name, "threshold": score.threshold}
    if score.threshold is not None:
        made["criterion"] = BaseCriterion(threshold=score.threshold)
    return made


def _reasons(score: MetricScore) -> Iterator[RubricScore]:
    """What a metric looked at, as rubrics: the one place where ADK's results hold words."""
    for found in score.findings:
        yield RubricScore(
            rubric_id=found.what, rationale=found.reason or None, score=1.0 if found.ok else 0.0
        )
    if score.reason:
        yield RubricScore(rubric_id=score.name, rationale=score.reason, score=score.score)


def _per_invocation(
    outcome: CaseOutcome, case: FluentCase | None
) -> Iterator[EvalMetricResultPerInvocation]:
    actual = invocations(outcome)
    known = secrets()
    expected = [_without(known, each) for each in expected_invocations(case)] if case else []
    for n, each in enumerate(actual):
        yield EvalMetricResultPerInvocation(
            actual_invocation=each,
            expected_invocation=expected[n] if n < len(expected) else None,
            eval_metric_results=[
                _turn_result(score, score.turns[n])
                for score in outcome.scores
                if n < len(score.turns)
            ],
        )


def _without(known: Mapping[str, str], expected: Invocation | None) -> Invocation | None:
    """What a case expects without secrets: outcomes have none by now, and cases may."""
    if expected is None or not known:
        return expected
    text = expected.model_dump_json()
    cleaned = without_keys(text, known)
    return expected if cleaned == text else type(expected).model_validate_json(cleaned)


def _turn_result(score: MetricScore, turn: float | None) -> EvalMetricResult:
    return EvalMetricResult(
        **_metric(score), score=turn, eval_status=_METRIC_STATUS[_turn_status(score, turn)]
    )


def _turn_status(score: MetricScore, turn: float | None) -> MetricStatus:
    if turn is None:
        return MetricStatus.NOT_EVALUATED
    if score.threshold is None:
        return MetricStatus.INFORMATIONAL
    ok = turn <= score.threshold if score.lower_is_better else turn >= score.threshold
    return MetricStatus.PASSED if ok else MetricStatus.FAILED

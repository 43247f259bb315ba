"""Results as ADK keeps them in ``.evalset_result.json``, which ``adk web`` shows."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from google.adk.evaluation.eval_metrics import EvalMetricResult, EvalMetricResultDetails, EvalStatus
from google.adk.evaluation.eval_result import EvalCaseResult
from google.adk.evaluation.eval_rubrics import RubricScore
from google.adk.evaluation.local_eval_set_results_manager import LocalEvalSetResultsManager

from adk_fluent.eval._errors import EvalError, EvalFileError
from adk_fluent.eval._text import replace_secrets

if TYPE_CHECKING:
    import os

    from adk_fluent.eval._outcome import CaseOutcome
    from adk_fluent.eval._report._figures import ReportFigures


#: The metric that says why a run has no others; ADK's results have no place for that.
ERROR: Final = "adk_fluent_error"


def set_id(name: str) -> str:
    """Return a suite's name as the id of an eval set."""
    return re.sub(r"[^a-zA-Z0-9_]+", "_", name).strip("_") or "suite"


def save_results(
    report: ReportFigures, agents_dir: str | os.PathLike[str], app_name: str
) -> list[Path]:
    """Write a report where ``adk web`` looks, through ADK's own manager of results."""
    agent = Path(agents_dir) / app_name
    if not app_name or agent.name != app_name:
        raise EvalError("app_name= is the name of an agent's folder", found=repr(app_name))
    if not agent.is_dir():
        raise EvalFileError(
            "there is no such agent", path=str(agent), help="give the folder that adk web is given"
        )
    results = [_result(report, each, app_name) for each in report.outcomes]
    try:
        kept = agent / ".adk"
        kept.mkdir(exist_ok=True)
        # ADK writes beside, and what is whole is moved: readers see no half file
        with tempfile.TemporaryDirectory(dir=kept, prefix=".eval-") as folder:
            manager = LocalEvalSetResultsManager(folder)
            manager.save_eval_set_result(app_name, set_id(report.suite), results)
            moved: list[Path] = []
            for file in sorted(each for each in Path(folder).rglob("*.json") if each.is_file()):
                target = agent / file.relative_to(Path(folder, app_name))
                target.parent.mkdir(parents=True, exist_ok=True)
                moved.append(file.replace(target))
            return moved
    except OSError as error:
        what = f"the results cannot be written: {error.strerror or error}"
        help = "report.save(path) keeps them elsewhere"
        raise EvalFileError(what, path=str(agent / ".adk"), help=help) from error


def _result(report: ReportFigures, outcome: CaseOutcome, app_name: str) -> EvalCaseResult:
    run = "" if outcome.run == 1 else f"__run{outcome.run}"
    made = report.adk_results.get(outcome.key)
    changes: dict[str, Any] = {"eval_set_id": set_id(report.suite), "eval_id": f"{outcome.id}{run}"}
    changes["final_eval_status"] = _status(outcome)
    if made is None:
        why = outcome.error or "; ".join(outcome.reasons) or outcome.note
        score = RubricScore(rubric_id=outcome.status.value, rationale=why)
        details, none = EvalMetricResultDetails(rubric_scores=[score]), EvalStatus.NOT_EVALUATED
        metric = EvalMetricResult(metric_name=ERROR, eval_status=none, details=details)
        changes |= {"session_id": outcome.session_id or outcome.id, "user_id": outcome.user_id}
        changes["overall_eval_metric_results"] = [metric]
        changes["eval_metric_result_per_invocation"] = []
        return EvalCaseResult(**changes)
    if made.session_details is not None:
        session = made.session_details.model_copy(update={"app_name": app_name})
        changes["session_details"] = session
    made = made.model_copy(update=changes)
    plain = replace_secrets(made.model_dump(mode="json", exclude_none=True))
    return EvalCaseResult.model_validate(plain)


def _status(outcome: CaseOutcome) -> EvalStatus:
    if not outcome.status.counts:
        return EvalStatus.NOT_EVALUATED
    return EvalStatus.PASSED if outcome.passed else EvalStatus.FAILED  # also of an error

"""Suites as ADK's EvalSets, and files of them. Importing this imports ADK."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from google.adk.evaluation.eval_config import EvalConfig
from google.adk.evaluation.eval_set import EvalSet

from adk_fluent.eval._errors import EvalError
from adk_fluent.eval._files._criteria import RUBRIC_TYPES, config_data, shared_rubrics
from adk_fluent.eval._files._eval_case_adk import to_eval_case
from adk_fluent.eval._files._evalset_block import BLOCK, block_of, held_state
from adk_fluent.eval._files._evalset_read_adk import read_eval_set
from adk_fluent.eval._files._names import APP_NAME, run_ids, set_id
from adk_fluent.eval._files._plain import checked
from adk_fluent.eval._write import write_whole

if TYPE_CHECKING:
    import os

    from adk_fluent.eval._files._content import SuiteData

__all__ = ["read_eval_set", "to_eval_case", "to_eval_config", "to_eval_set", "write_eval_set"]

#: A folder with one of these is an agent's; ADK calls the app after the folder.
_AGENT_FILES: Final = ("agent.py", "root_agent.yaml")


def to_eval_set(data: SuiteData, *, app_name: str | None = None) -> EvalSet:
    """ADK's EvalSet of a suite; ADK knows no runs, so each run of a case is a case of its own.

    Args:
        data: The suite.
        app_name: The app of the sessions; None is the suite's, or ``adk_fluent``.

    Raises:
        EvalError: Two cases have one id, or a case holds something that ADK cannot.
    """
    app = app_name or data.app_name or APP_NAME
    by_name = {case.name: case for case in data.cases}
    if len(by_name) < len(data.cases):
        names = [case.name for case in data.cases]
        twice = next(name for name in names if names.count(name) > 1)
        raise EvalError(f"there are two cases {twice!r}", help="give them different ids")
    types = _rubric_types(data)
    return EvalSet(
        eval_set_id=set_id(data.name),
        name=data.name,
        description=data.description or None,
        eval_cases=[
            to_eval_case(by_name[name], app_name=app, eval_id=eval_id, rubric_types=types)
            for name, _, eval_id in run_ids(by_name, data.num_runs)
        ],
    )


def to_eval_config(data: SuiteData) -> EvalConfig:
    """ADK's configuration of a suite's metrics; those that ADK does not know are left out.

    Calls that cases expect are compared, whether or not the suite names the metric. ADK compares
    them in one way for a whole set: the strictest that a case with calls asks for. It compares
    arguments of all calls or of none: of all where each names some, and values alone. So a wrong
    argument of one call passes there if another one is expected by its name. google-adk 1.25 always
    compares arguments, so calls that are expected by name alone fail there.
    """
    return EvalConfig.model_validate(config_data(data))


def write_eval_set(
    data: SuiteData,
    path: str | os.PathLike[str],
    config_path: str | os.PathLike[str] | None = None,
    *,
    app_name: str | None = None,
) -> None:
    """Writes a suite as ``.evalset.json``, which `adk eval` runs and `adk web` shows.

    What ADK has no place for stands in a block ``adk_fluent``, which ADK passes over.

    Args:
        data: The suite.
        path: The file.
        config_path: Where the metrics go, as `adk eval --config_file_path` takes them; None writes
            none.
        app_name: The app of the sessions; None is the suite's, or the folder's where an agent is in
            it, or ``adk_fluent``.

    Raises:
        EvalError: A case holds something that cannot be written; the error names case and field.
        EvalFileError: A file cannot be written; it stays as it was.
    """
    block = block_of(data)  # also tells what cannot be written
    for case in data.cases:
        checked(case, "state_assertions", held_state(case))
    eval_set = to_eval_set(data, app_name=app_name or data.app_name or _app_around(path))
    held = eval_set.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    if config_path is not None:
        write_whole(config_path, [_json(config_data(data))])
    write_whole(path, [_json({**held, BLOCK: block})])


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _app_around(path: str | os.PathLike[str]) -> str | None:
    folder = Path(path).resolve().parent
    return folder.name if any((folder / name).is_file() for name in _AGENT_FILES) else None


def _rubric_types(data: SuiteData) -> tuple[str, ...]:
    """The types that rubrics of cases need for the suite's metrics.

    Rubrics of all cases stand in the configuration. They have no type in the cases then, or ADK
    would take them twice.
    """
    if shared_rubrics(data):
        return ()
    return tuple(kind for name, kind in RUBRIC_TYPES.items() if name in data.metrics)

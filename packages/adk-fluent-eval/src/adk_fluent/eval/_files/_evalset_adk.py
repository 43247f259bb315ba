"""Suites as eval sets of ADK: ``.evalset.json``, ``.test.json`` and ``test_config.json``.

Our own form of the cases, which has what ADK has no field for, is in a block ``adk_fluent`` at the
top of the file, which ADK ignores.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from google.adk.evaluation.eval_case import EvalCase, Invocation, get_all_tool_calls
from google.adk.evaluation.eval_metrics import ToolTrajectoryCriterion
from google.adk.evaluation.eval_set import EvalSet
from google.adk.evaluation.local_eval_sets_manager import convert_eval_set_to_pydantic_schema

from adk_fluent.eval._cases._turn import Turn, UserSimulation
from adk_fluent.eval._errors import EvalFileError
from adk_fluent.eval._files import _codec as codec
from adk_fluent.eval._files._cases_adk import UNKNOWN, simulation_from, to_eval_case
from adk_fluent.eval._files._codec import Reader, Registry, SuiteData
from adk_fluent.eval._files._results_adk import set_id
from adk_fluent.eval._files._session_adk import answer_text, text_or_content, tool_calls
from adk_fluent.eval._files._source import Source
from adk_fluent.eval._metrics import METRICS, TRAJECTORY

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from google.adk.evaluation.eval_rubrics import Rubric

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._cases._suite import Suite
    from adk_fluent.extend import At


_BLOCK: Final = "adk_fluent"
_SCHEMA: Final = 1
_CONFIG: Final = "test_config.json"
_APP: Final = "adk_fluent"
#: A folder with one of these is an agent's, whose name is the app's.
_AGENT_FILES: Final = ("agent.py", "root_agent.yaml")
_ENDING: Final = re.compile(r"(\.evalset|\.test)?\.json$")


# --- writing -------------------------------------------------------------------------------------


def to_eval_set(suite: Suite, app_name: str = _APP) -> EvalSet:
    """Return the eval set of a suite."""
    # each case has a user of its own: no case sees what another writes for the user
    cases = [
        to_eval_case(case, app_name=app_name, user_id=case.name, simulation=suite.simulation)
        for case in suite.cases
    ]
    id, about = set_id(suite.name), suite.description or None
    return EvalSet(eval_set_id=id, name=suite.name, description=about, eval_cases=cases)


def write_eval_set(
    suite: Suite, path: str | os.PathLike[str], config_path: str | os.PathLike[str] | None
) -> None:
    """Write a suite as an eval set, and its metrics as ADK's configuration."""
    cases = {case.name: codec.case_data(case) for case in suite.cases}
    block = {"schema": _SCHEMA, **codec.suite_data(suite), "cases": cases}
    folder = Path(path).resolve().parent
    is_agent = any((folder / name).is_file() for name in _AGENT_FILES)
    held = _dumped(to_eval_set(suite, folder.name if is_agent else _APP))
    if config_path is not None:
        Source.write(config_path, [_json(_config(suite))])
    Source.write(path, [_json({**held, _BLOCK: block})])


def _dumped(model: EvalSet | EvalCase) -> dict[str, Any]:
    return model.model_dump(mode="json", exclude_unset=True, exclude_none=True)


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _config(suite: Suite) -> dict[str, Any]:
    """ADK's configuration of the metrics.

    ADK compares trajectories in one way for the whole set: exactly if the cases differ, and with
    arguments only if every call names some.
    """
    every = [turn.trajectory for case in suite.cases for turn in case.turns]
    compared = [calls for calls in every if calls is not None]
    criteria: dict[str, Any] = {}
    has_references = any(t.reference_response for case in suite.cases for t in case.turns)
    names: list[str] = [*([TRAJECTORY] if compared else []), *suite.metrics]
    for name in dict.fromkeys(names):
        metric = METRICS.get(name)
        if metric is None or metric.threshold is None:
            continue
        if metric.needs == "reference_response" and not has_references:
            continue  # ADK fails every case
        criteria[name] = suite.thresholds.get(name, metric.threshold)
        if metric.by == "judge":
            named = isinstance(suite.judge_model, str)
            options: dict[str, Any] = {"judge_model": suite.judge_model} if named else {}
            options |= {"num_samples": suite.judge_samples}
            criteria[name] = {"threshold": criteria[name], "judge_model_options": options}
            if metric.needs == "rubrics":  # each case has its rubrics; ADK wants some here
                criteria[name]["rubrics"] = []
    if compared:
        asked = {case.trajectory_match for case in suite.cases}
        match = asked.pop().upper() if len(asked) == 1 else "EXACT"
        known = ToolTrajectoryCriterion.MatchType.__members__
        criteria[TRAJECTORY] = {
            "threshold": criteria[TRAJECTORY],
            "match_type": match if match in known else "EXACT",
            "ignore_args": not all(call.args for calls in compared for call in calls),
        }
    return {"criteria": criteria}


# --- reading -------------------------------------------------------------------------------------


def read_eval_set(
    source: str | os.PathLike[str] | EvalSet,
    registry: Registry | None = None,
    config_path: str | os.PathLike[str] | None = None,
) -> SuiteData:
    """Return the suite of an eval set or of a file with one, also in ADK's format before 1.0."""
    if isinstance(source, EvalSet):
        eval_set, block, place = source, {}, Source(f"EvalSet {source.eval_set_id!r}")
    else:
        if Path(source).suffix.lower() in {".yaml", ".yml"}:
            help = "read it with FluentEvalSuite.from_yaml(path)"
            raise EvalFileError("eval sets of ADK are JSON", path=str(source), help=help)
        place, raw = Source.read_json(source)
        eval_set, block = _parsed(place, raw)
        beside = Path(source).with_name(_CONFIG)
        if config_path is None and not block and beside.is_file():
            config_path = beside
    reader = Reader(place, registry)
    own = place.mapping((_BLOCK, "cases"), block.pop("cases", {}))
    for name in own.keys() - {each.eval_id for each in eval_set.eval_cases}:  # as of a renamed case
        what = f"case {name!r} is in the block {_BLOCK!r}, and not in eval_cases"
        help = "give it the same id in both, or remove it from the block"
        raise place.error((_BLOCK, "cases", name), what, help=help)
    fields = reader.fields((_BLOCK,), block, codec.SUITE_FIELDS, f"the block {_BLOCK!r}")
    fields.setdefault("name", eval_set.name or eval_set.eval_set_id)
    fields.setdefault("description", eval_set.description or "")
    user = fields.get("simulation")
    made = (
        _case(reader, ("eval_cases", n), case, own.get(case.eval_id), user)
        for n, case in enumerate(eval_set.eval_cases)
    )
    cases = reader.distinct(("eval_cases",), "eval_id", made)
    data = SuiteData(fields, cases, place, (_BLOCK,))
    return data if config_path is None else _configured(data, config_path)


def _parsed(source: Source, raw: Any) -> tuple[EvalSet, dict[str, Any]]:
    """The eval set and our block in a file."""
    name = _ENDING.sub("", Path(source.path).name)
    if isinstance(raw, list):  # ADK's format before 1.0: queries, or cases
        items = cast("list[Any]", raw)
        first = source.mapping((0,), items[0] if items else None)
        whole: dict[str, Any] = {"name": name, "data": items, "initial_session": {}}
        cases: list[Any] = [whole] if "query" in first else items
        try:
            old = convert_eval_set_to_pydantic_schema(name, cases)
        except (KeyError, TypeError, ValueError) as error:
            what = f"{type(error).__name__}: {error}"
            raise source.error((), "not an eval set of ADK", found=what) from None
        return old, {}
    value = source.mapping((), raw)
    block = source.mapping((_BLOCK,), value.pop(_BLOCK, {}))
    source.check_schema((_BLOCK,), block.pop("schema", _SCHEMA), _SCHEMA)
    if "eval_id" in value or "evalId" in value:  # a single case
        value = {"eval_set_id": name, "eval_cases": [value]}
    elif "eval_cases" not in value and "evalCases" not in value:
        raise source.error((), "not an eval set of ADK: it has no eval_cases")
    return source.validated(EvalSet, value, unknown=UNKNOWN), block


def _case(
    reader: Reader, at: At, case: EvalCase, own: Any, simulation: UserSimulation | None
) -> FluentCase:
    """A case from our block, or from ADK's fields."""
    if own is not None:
        where: At = (_BLOCK, "cases", case.eval_id)
        made = reader.case(where, {**reader.source.mapping(where, own), "id": case.eval_id})
        session = case.session_input
        app, user = (session.app_name, session.user_id) if session else ("", "")
        again = to_eval_case(made, app_name=app, user_id=user, simulation=simulation)
        if _dumped(again) != _dumped(case):
            place = f"in eval_cases, and not in the block {_BLOCK!r}"
            help = "make the same change in both, or remove the case from the block"
            raise reader.source.error(where, f"case {made.name!r} was changed {place}", help=help)
        return made
    conversation, scenario = case.conversation or [], getattr(case, "conversation_scenario", None)
    if scenario is not None:
        fields = {"input": scenario.starting_prompt, "simulation": simulation_from(scenario)}
    elif not conversation:
        raise reader.source.error((*at, "conversation"), "the conversation is empty")
    else:
        turns = [_turn(each) for each in conversation]
        said = [each["input"] if len(each) == 1 else Turn(**each) for each in turns]
        fields: dict[str, Any] = turns[0] if len(turns) == 1 else {"input": said}
    if texts := _texts(case.rubrics):
        fields["rubrics"] = [*texts, *fields.get("rubrics", ())]
    fields["id"] = case.eval_id
    if case.session_input is not None and case.session_input.state:
        fields["initial_state"] = dict(case.session_input.state)
    if case.final_session_state:
        fields["state_assertions"] = dict(case.final_session_state)
    return reader.build(at, fields)


def _texts(rubrics: Sequence[Rubric] | None) -> list[str]:
    return [each.rubric_content.text_property or each.rubric_id for each in rubrics or ()]


def _turn(invocation: Invocation) -> dict[str, Any]:
    made: dict[str, Any] = {"input": text_or_content(invocation.user_content)}
    if invocation.intermediate_data is not None:
        made["expected_trajectory"] = tool_calls(get_all_tool_calls(invocation.intermediate_data))
    if reference := answer_text(invocation.final_response):
        made["reference_response"] = reference
    if texts := _texts(invocation.rubrics):
        made["rubrics"] = texts
    return made


def _configured(data: SuiteData, path: str | os.PathLike[str]) -> SuiteData:
    """A suite with the metrics of ADK's configuration."""
    source, raw = Source.read_json(path)
    config = source.mapping((), raw)
    if "criteria" not in config:
        raise source.error(("criteria",), "not a configuration of ADK: it has no criteria")
    criteria = source.mapping(("criteria",), config["criteria"] or {})
    thresholds: dict[str, Any] = {}
    match, ignore_args = "", False
    fields = dict(data.fields)
    for name, value in criteria.items():
        given = cast("dict[str, Any]", value) if isinstance(value, dict) else {"threshold": value}
        if "threshold" in given:
            thresholds[name] = given["threshold"]
        judge: Any = given.get("judge_model_options", given.get("judgeModelOptions")) or {}
        fields["judge_model"] = judge.get("judge_model", fields.get("judge_model"))
        fields["judge_samples"] = judge.get("num_samples", fields.get("judge_samples"))
        if name == TRAJECTORY and isinstance(value, dict):
            asked = source.validated(ToolTrajectoryCriterion, given, ("criteria", name))
            match, ignore_args = asked.match_type.name.lower(), getattr(asked, "ignore_args", False)
    if not any(turn.trajectory is not None for case in data.cases for turn in case.turns):
        criteria.pop(TRAJECTORY, None)  # ADK skips it; here, a metric without a case is refused
        thresholds.pop(TRAJECTORY, None)
    cases = tuple(_matched(case, match, ignore_args=ignore_args) for case in data.cases)
    fields |= {"metrics": list(criteria), "thresholds": thresholds}
    fields = {name: value for name, value in fields.items() if value is not None}
    return SuiteData(fields, cases, source)


def _matched(case: FluentCase, match: str, *, ignore_args: bool) -> FluentCase:
    """A case whose trajectories are compared as ADK's configuration says."""
    changed = replace(case, trajectory_match=cast("Any", match or case.trajectory_match))
    if ignore_args:
        changed.input = [_without_arguments(turn) for turn in case.turns]
        changed.expected_trajectory = changed.reference_response = None
        changed.expected_response_contains = None
    return changed


def _without_arguments(turn: Turn) -> Turn:
    if (calls := turn.trajectory) is None:
        return turn
    return replace(turn, expected_trajectory=[call.name for call in calls])

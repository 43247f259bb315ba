"""Suites as eval sets of ADK: ``.evalset.json``, ``.test.json`` and ``test_config.json``.

What ADK has no field for is in a block ``adk_fluent`` at the top of the file, which ADK ignores.
The conversation is not repeated there, so that editing the file with ADK's tools edits the case.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from google.adk.evaluation.eval_case import get_all_tool_calls
from google.adk.evaluation.eval_set import EvalSet
from google.adk.evaluation.local_eval_sets_manager import convert_eval_set_to_pydantic_schema
from pydantic import ValidationError

from adk_fluent.eval._cases._turn import ToolCall, Turn
from adk_fluent.eval._files._data import SuiteData, case_data, suite_data, turn_data
from adk_fluent.eval._files._eval_case_adk import (
    answer_text,
    invalid,
    text_or_content,
    to_eval_case,
)
from adk_fluent.eval._files._reader import CASE_FIELDS, TURN_FIELDS, Reader
from adk_fluent.eval._files._source import Source, parse_json, read_text, write_whole
from adk_fluent.eval._metrics import METRICS, TRAJECTORY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.evaluation.eval_case import EvalCase, Invocation

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._files._reader import Registry
    from adk_fluent.eval._files._source import At

_BLOCK: Final = "adk_fluent"
_SCHEMA: Final = 1
_CONFIG: Final = "test_config.json"
_APP: Final = "adk_fluent"
#: A folder with one of these is an agent's, whose name is the app's.
_AGENT_FILES: Final = ("agent.py", "root_agent.yaml")
_ENDINGS: Final = (".evalset.json", ".test.json", ".json")
_MATCHES: Final = ("exact", "in_order", "any_order")  # in the order of ADK's enum
#: Fields of a case that ADK holds.
_HELD: Final = ("id", "input", "expected_trajectory", "reference_response", "initial_state")
_TURN_EXTRAS: Final = ("expected_response_contains", "state_assertions")


# --- writing -------------------------------------------------------------------------------------


def to_eval_set(data: SuiteData, app_name: str = _APP) -> EvalSet:
    """Return the eval set of a suite.

    Raises:
        EvalError: A case has invalid state.
    """
    name = str(data.fields["name"])
    return EvalSet(
        eval_set_id=re.sub(r"[^a-zA-Z0-9_]+", "_", name).strip("_") or "suite",
        name=name,
        description=data.fields.get("description") or None,
        # each case has a user of its own: no case sees what another writes for the user
        eval_cases=[
            to_eval_case(case, app_name=app_name, user_id=case.name) for case in data.cases
        ],
    )


def write_eval_set(
    data: SuiteData,
    path: str | os.PathLike[str],
    config_path: str | os.PathLike[str] | None,
) -> None:
    """Write a suite as an eval set, and its metrics as ADK's configuration.

    Raises:
        EvalError: A case has a value that files cannot hold.
        EvalFileError: A file cannot be written.
    """
    cases = {case.name: _extras(case) for case in data.cases}
    block = {"schema": _SCHEMA, **suite_data(data), "cases": cases}
    folder = Path(path).resolve().parent
    is_agent = any((folder / name).is_file() for name in _AGENT_FILES)
    held = to_eval_set(data, folder.name if is_agent else _APP)
    value = held.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    if config_path is not None:
        write_whole(config_path, [_json(_config(data))])
    write_whole(path, [_json({**value, _BLOCK: block})])


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _extras(case: FluentCase) -> dict[str, Any]:
    """What ADK does not hold of a case."""
    made = case_data(case)
    for name in _HELD:
        made.pop(name, None)
    given = case.input if isinstance(case.input, list | tuple) else [case.input]
    turns: list[dict[str, Any]] = []
    for turn, own in zip(case.turns, given, strict=True):
        extras: dict[str, Any] = {}
        if isinstance(own, Turn):
            extras = {k: v for k, v in turn_data(case, own).items() if k in _TURN_EXTRAS}
        if any(callable(each) for call in turn.trajectory or () for each in _args(call).values()):
            extras["expected_trajectory"] = turn_data(case, turn)["expected_trajectory"]
        turns.append(extras)
    return {**made, "turns": turns} if any(turns) else made


def _args(call: ToolCall) -> Mapping[str, Any]:
    return call.args or {}


def _config(data: SuiteData) -> dict[str, Any]:
    """ADK's configuration of the metrics that it can compute from the file.

    ADK compares trajectories in one way for the whole set: the strictest that a case asks for, and
    arguments only if every call names some.
    """
    calls = [call for case in data.cases for turn in case.turns for call in turn.trajectory or ()]
    criteria: dict[str, Any] = {}
    for name in dict.fromkeys([*([TRAJECTORY] if calls else []), *data.fields["metrics"]]):
        if name not in METRICS or METRICS[name].threshold is None:
            continue
        threshold = data.fields["thresholds"].get(name, METRICS[name].threshold)
        criteria[name] = threshold
        if name == TRAJECTORY:
            asked = {case.trajectory_match for case in data.cases}
            match = asked.pop() if len(asked) == 1 else "exact"
            criteria[name] = {
                "threshold": threshold,
                "match_type": (match if match in _MATCHES else "exact").upper(),
                "ignore_args": not all(_args(call) for call in calls),
            }
    return {"criteria": criteria}


# --- reading -------------------------------------------------------------------------------------


def read_eval_set(
    source: str | os.PathLike[str] | EvalSet,
    registry: Registry | None = None,
    config_path: str | os.PathLike[str] | None = None,
) -> SuiteData:
    """Return the suite of an eval set or of a file with one, also in ADK's format before 1.0.

    Raises:
        EvalFileError: The file is missing, invalid, or of a newer version.
    """
    if isinstance(source, EvalSet):
        reader = Reader(Source(f"EvalSet {source.eval_set_id!r}"), registry)
        data = _suite(reader, source, {})
        return data if config_path is None else _configured(data, config_path)
    path = os.fspath(source)
    reader = Reader(Source(path), registry)
    raw = parse_json(read_text(path), path)
    if isinstance(raw, list):
        raw = _converted(reader, cast("list[Any]", raw))
    value = reader.mapping((), raw)
    block = _block(reader, value.pop(_BLOCK)) if _BLOCK in value else {}
    if "eval_id" in value or "evalId" in value:  # a single case
        value = {"eval_set_id": _stem(path), "eval_cases": [value]}
    elif "eval_cases" not in value and "evalCases" not in value:
        raise reader.source.error((), "not an eval set of ADK: it has no eval_cases")
    try:
        eval_set = EvalSet.model_validate_json(json.dumps(value))
    except ValidationError as error:
        raise invalid(reader.source, (), error) from None
    data = _suite(reader, eval_set, block)
    if config_path is None and not block:
        beside = Path(path).with_name(_CONFIG)
        config_path = beside if beside.is_file() else None
    return data if config_path is None else _configured(data, config_path)


def _stem(path: str) -> str:
    name = Path(path).name
    return next((name.removesuffix(each) for each in _ENDINGS if name.endswith(each)), name)


def _converted(reader: Reader, items: list[Any]) -> Any:
    """The eval set of ADK's format before 1.0: a list of queries, or of cases."""
    first = reader.mapping((0,), items[0] if items else None)
    name = _stem(reader.source.path)
    cases = [{"name": name, "data": items, "initial_session": {}}] if "query" in first else items
    try:
        return json.loads(
            convert_eval_set_to_pydantic_schema(name, cases).model_dump_json(exclude_none=True)
        )
    except (KeyError, TypeError, ValueError) as error:
        raise reader.source.error(
            (), "not an eval set of ADK", found=f"{type(error).__name__}: {error}"
        ) from None


def _block(reader: Reader, value: Any) -> dict[str, Any]:
    block = reader.mapping((_BLOCK,), value)
    schema = reader.positive((_BLOCK, "schema"), block.get("schema"))
    if schema > _SCHEMA:
        raise reader.source.error(
            (_BLOCK, "schema"),
            f"schema {schema} is newer than this version reads ({_SCHEMA})",
            help="upgrade adk-fluent-eval",
        )
    return block


def _suite(reader: Reader, eval_set: EvalSet, block: dict[str, Any]) -> SuiteData:
    fields = reader.suite_fields((_BLOCK,), block)
    fields.setdefault("name", eval_set.name or eval_set.eval_set_id)
    fields.setdefault("description", eval_set.description or "")
    extras = reader.mapping((_BLOCK, "cases"), block.get("cases") or {})
    cases = (
        (("eval_cases", n), _case(reader, ("eval_cases", n), case, extras.get(case.eval_id) or {}))
        for n, case in enumerate(eval_set.eval_cases)
    )
    return SuiteData(fields, reader.distinct(cases))


def _case(reader: Reader, at: At, case: EvalCase, extras: Any) -> FluentCase:
    where: At = (_BLOCK, "cases", case.eval_id)
    given = reader.mapping(where, extras)
    kept = reader.items((*where, "turns"), given.pop("turns", None) or [])
    fields = reader.fields(where, given, CASE_FIELDS, "a case")
    fields["id"] = case.eval_id
    if getattr(case, "conversation_scenario", None) is not None:
        raise reader.source.error(
            (*at, "conversation_scenario"), "user simulation is not supported yet"
        )
    if case.session_input is not None and case.session_input.state:
        fields["initial_state"] = dict(case.session_input.state)
    if final := case.final_session_state:
        fields["state_assertions"] = {**final, **(fields.get("state_assertions") or {})}
    conversation = case.conversation or []
    if not conversation or len(kept) not in {0, len(conversation)}:
        raise reader.source.error(
            (*at, "conversation"),
            "the conversation is empty"
            if not conversation
            else f"it has {len(conversation)} turns, and the block {_BLOCK!r} has {len(kept)}",
        )
    turns = [_turn(each) for each in conversation]
    for n, each in enumerate(kept):
        turns[n] |= reader.fields((*where, "turns", n), each, TURN_FIELDS, "a turn")
    last = turns[-1]
    for name in ("expected_trajectory", "reference_response"):
        if name in last:
            fields[name] = last.pop(name)
    said = [each["input"] if len(each) == 1 else Turn(**each) for each in turns]
    fields["input"] = said[0] if len(said) == 1 else said
    return reader.build(at, fields)


def _turn(invocation: Invocation) -> dict[str, Any]:
    made: dict[str, Any] = {"input": text_or_content(invocation.user_content)}
    if invocation.intermediate_data is not None:
        calls = get_all_tool_calls(invocation.intermediate_data)
        made["expected_trajectory"] = [
            ToolCall(each.name or "", dict(each.args)) if each.args else each.name or ""
            for each in calls
        ]
    if reference := answer_text(invocation.final_response):
        made["reference_response"] = reference
    return made


def _configured(data: SuiteData, path: str | os.PathLike[str]) -> SuiteData:
    """A suite with the metrics of ADK's configuration."""
    name = os.fspath(path)
    reader = Reader(Source(name))
    config = reader.mapping((), parse_json(read_text(name), name))
    criteria = reader.mapping(("criteria",), config.get("criteria") or {})
    thresholds: dict[str, float] = {}
    changes: dict[str, Any] = {}
    for metric, value in criteria.items():
        at: At = ("criteria", metric)
        given: dict[str, Any] = (
            dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}
        )
        if (threshold := given.get("threshold") if given else value) is not None:
            thresholds[metric] = reader.number(at, threshold)
        if metric == TRAJECTORY and given:
            match = given.get("match_type", given.get("matchType", 0))
            index = match if isinstance(match, int) else -1
            changes["trajectory_match"] = (
                _MATCHES[index] if 0 <= index < len(_MATCHES) else str(match).lower()
            )
            if changes["trajectory_match"] not in _MATCHES:
                raise reader.source.error((*at, "match_type"), f"unknown match_type {match!r}")
            if given.get("ignore_args", given.get("ignoreArgs")):
                changes["ignore_args"] = True
    expecting = any(turn.trajectory is not None for case in data.cases for turn in case.turns)
    if not expecting:  # ADK skips such cases; a metric that applies to no case is refused here
        criteria.pop(TRAJECTORY, None)
        thresholds.pop(TRAJECTORY, None)
    cases = tuple(_matched(case, changes) for case in data.cases)
    fields = {**data.fields, "metrics": list(criteria), "thresholds": thresholds}
    return SuiteData(fields, cases)


def _matched(case: FluentCase, changes: Mapping[str, Any]) -> FluentCase:
    """A case whose trajectories are compared as ADK's configuration says."""
    changed = replace(case, trajectory_match=changes.get("trajectory_match", case.trajectory_match))
    if changes.get("ignore_args"):
        changed.expected_trajectory = _names(changed.expected_trajectory)
        if isinstance(changed.input, list | tuple):
            changed.input = [
                replace(each, expected_trajectory=_names(each.expected_trajectory))
                if isinstance(each, Turn)
                else each
                for each in cast("Sequence[Any]", changed.input)
            ]
    return changed


def _names(calls: Sequence[str | ToolCall] | None) -> list[str | ToolCall] | None:
    return None if calls is None else [ToolCall.of(each).name for each in calls]

"""ADK's EvalSets and files of them as suites. Importing this imports ADK."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from google.adk.errors.not_found_error import NotFoundError
from google.adk.evaluation.eval_case import get_all_tool_calls
from google.adk.evaluation.eval_set import EvalSet
from google.adk.evaluation.simulation.llm_backed_user_simulator import LlmBackedUserSimulatorConfig
from pydantic import ValidationError

from adk_fluent.errors import nearest_name
from adk_fluent.eval._cases._case import Rubric
from adk_fluent.eval._cases._simulation import UserSimulation
from adk_fluent.eval._cases._turn import ToolCall, Turn
from adk_fluent.eval._files._content import SuiteData
from adk_fluent.eval._files._criteria import Criteria, numbered, read_config
from adk_fluent.eval._files._eval_case_adk import typed_id
from adk_fluent.eval._files._evalset_block import BLOCK, CONFIG, call_of, folded, read_block
from adk_fluent.eval._files._evalset_old import read_old, set_name
from adk_fluent.eval._files._json_lines import JsonLines
from adk_fluent.eval._files._json_text import parse_json
from adk_fluent.eval._files._native_adk import answer_text, text_or_content, validation_error
from adk_fluent.eval._files._place import At, Source, read_text
from adk_fluent.eval._files._read import Reader, distinct
from adk_fluent.eval._files._suite_data import suite_fields
from adk_fluent.eval._files._warned import warn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from google.adk.evaluation.conversation_scenarios import ConversationScenario
    from google.adk.evaluation.eval_case import EvalCase, Invocation
    from google.adk.evaluation.eval_rubrics import Rubric as AdkRubric

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._files._marked import Registry

_SET_FIELDS: Final = {
    re.sub("_(.)", lambda found: found[1].upper(), name): name for name in EvalSet.model_fields
}
_CASE_IDS: Final = ("eval_id", "evalId")


def read_eval_set(
    source: str | os.PathLike[str] | EvalSet,
    registry: Registry | None = None,
    *,
    config_path: str | os.PathLike[str] | None = None,
) -> SuiteData:
    """The suite of an EvalSet, or of a file of ADK's: ``.evalset.json``, ``.test.json``, also old.

    Metrics are the file's own where this package wrote it, or those of ``test_config.json`` beside
    it. Rubrics of metrics become rubrics of the cases. Uses of tools in other files are expected in
    the way that the configuration says; ones without arguments are expected with any.

    Args:
        source: The file or the EvalSet.
        registry: Functions by the names that the file calls them by.
        config_path: The configuration of its metrics; None is as above.

    Raises:
        EvalFileError: The file cannot be read, is no eval set, or was written by a newer version.
    """
    if isinstance(source, EvalSet):
        reader = Reader(Source(f"EvalSet {source.eval_set_id!r}"), registry)
        return _Reading(reader, source, {}, _config(config_path)).suite()
    path = os.fspath(source)
    text = read_text(path)
    raw = parse_json(text, path)
    block_given = isinstance(raw, Mapping) and BLOCK in raw
    if config_path is None and not block_given and Path(path).with_name(CONFIG).is_file():
        config_path = Path(path).with_name(CONFIG)
    config = _config(config_path)
    reader = Reader(Source(path, JsonLines(text, way=_way_in(raw))), registry)
    if isinstance(raw, list):
        return _configured(read_old(reader, cast("list[Any]", raw)), config)
    value = _as_set(reader, raw)
    block = read_block(reader.source, value.pop(BLOCK)) if block_given else {}
    eval_set = _validated(reader.source, value)
    ids = [case.eval_id for case in eval_set.eval_cases]
    lines = JsonLines(text, _lines(text, ids), _way_in(raw))
    reading = _Reading(Reader(Source(path, lines), registry), eval_set, block, config)
    reading.warn_of_lost(block_given=block_given)
    return reading.suite()


def _config(path: str | os.PathLike[str] | None) -> Criteria | None:
    if path is None:
        return None
    name = os.fspath(path)
    text = read_text(name)
    return read_config(Reader(Source(name, JsonLines(text))), parse_json(text, name))


def _way_in(raw: Any) -> Callable[[At], At]:
    """From ways in an EvalSet to those in the file, which may be one case, or spelt otherwise."""
    top = cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}
    one = any(name in top for name in _CASE_IDS)
    spelt = {_SET_FIELDS[key]: key for key in top if key in _SET_FIELDS}

    def way(at: At) -> At:
        if one:
            return at if at[:1] == (BLOCK,) else at[2:]
        return (spelt.get(str(at[0]), at[0]), *at[1:]) if at else at

    return way


def _as_set(reader: Reader, raw: Any) -> dict[str, Any]:
    """The fields of the EvalSet that a file holds, also if it holds one case."""
    value = reader.mapping((), raw, "the file")
    if any(name in value for name in _CASE_IDS):
        name = set_name(reader.source.path)
        block = {BLOCK: value.pop(BLOCK)} if BLOCK in value else {}
        return {"eval_set_id": name, "name": name, "eval_cases": [value], **block}
    made = {_SET_FIELDS.get(key, key): each for key, each in value.items()}
    if "eval_cases" not in made:
        raise reader.source.error(
            (),
            "this is no eval set of ADK's: it has no eval_cases",
            found=f"keys {', '.join(value)}" if value else "an empty mapping",
        )
    made.setdefault("eval_set_id", set_name(reader.source.path))
    return made


def _validated(source: Source, value: dict[str, Any]) -> EvalSet:
    try:
        return EvalSet.model_validate_json(json.dumps(value))  # base64 is understood only in JSON
    except ValidationError as error:
        raise validation_error(source, (), error, value) from error
    except NotFoundError as error:  # a persona by an id
        raise source.error(("eval_cases",), f"ADK does not know a persona: {error}") from error


def _lines(text: str, ids: Sequence[str]) -> dict[At, int]:
    """The lines in which cases say their ids."""
    lines: dict[At, int] = {}
    line, end = 1, 0
    for n, eval_id in enumerate(ids):
        shown = "|".join(
            re.escape(json.dumps(eval_id, ensure_ascii=each)) for each in (True, False)
        )
        found = re.compile(rf'"eval_?[iI]d"\s*:\s*(?:{shown})').search(text, end)
        if found is None:
            break
        line += text.count("\n", end, found.start())
        end = found.end()  # another case may say the same id
        lines[("eval_cases", n)] = line
    return lines


def _configured(data: SuiteData, config: Criteria | None) -> SuiteData:
    """A suite with the metrics of a configuration."""
    if config is None:
        return data
    for case in data.cases:
        if config.match is not None:
            case.trajectory_match = cast("Any", config.match)
        if config.ignore_args:
            _forget_arguments(case)
        known = {each.text if isinstance(each, Rubric) else each for each in case.rubrics}
        added = [each for each in config.rubrics if each.text not in known]
        if added:
            case.rubrics = [*case.rubrics, *added]
    return replace(data, metrics=config.metrics, thresholds=config.thresholds, **config.judge)


def _forget_arguments(case: FluentCase) -> None:
    """Expect calls of a case with any arguments."""
    case.expected_trajectory = _names(case.expected_trajectory)
    if isinstance(case.input, list | tuple):
        case.input = [
            replace(each, expected_trajectory=_names(each.expected_trajectory))
            if isinstance(each, Turn)
            else each
            for each in cast("Sequence[Any]", case.input)
        ]


def _names(calls: Sequence[str | ToolCall] | None) -> list[str | ToolCall] | None:
    return None if calls is None else [ToolCall.of(each).name for each in calls]


class _Reading:
    """Makes a suite of an EvalSet.

    Args:
        reader: Knows the file.
        eval_set: What ADK reads of it.
        block: What we wrote into it.
        config: The configuration of its metrics.
    """

    def __init__(
        self, reader: Reader, eval_set: EvalSet, block: dict[str, Any], config: Criteria | None
    ) -> None:
        self._reader = reader
        self._set = eval_set
        self._block = block
        self._extras: Mapping[str, Mapping[str, Any]] = block.get("cases", {})
        self._config = config
        self._by_id = {case.eval_id: case for case in eval_set.eval_cases}

    def suite(self) -> SuiteData:
        fields = suite_fields(self._reader, (BLOCK,), self._block)
        fields.setdefault("name", self._set.name or self._set.eval_set_id)
        fields.setdefault("description", self._set.description or "")
        inputs = (case.session_input for case in self._set.eval_cases)
        app = next((each.app_name for each in inputs if each is not None), None)
        if not self._block and app:
            fields["app_name"] = app
        made = SuiteData(**fields, cases=distinct(self._cases()))
        if self._block and self._config is None:
            return made
        return _configured(made, self._config)

    def warn_of_lost(self, *, block_given: bool) -> None:
        """Warn of what an editor has cut off from the cases that it belongs to."""
        source = self._reader.source
        if not block_given:
            if any(map(_written_here, self._set.eval_cases)):
                warn(
                    source,
                    (),
                    f"the block {BLOCK!r} is gone, which this package wrote into "
                    "the file; ADK's own editors leave it out. Tags, mocks, texts in answers, "
                    "budgets and all else that ADK has no field for are not read: export the "
                    "suite again, or put the block back",
                )
            return
        used = {self._extras[name].get("run_of") for name in self._by_id if name in self._extras}
        for name, extras in self._extras.items():
            lost = [key for key in extras if key not in {"run_of", "run"}]
            if not lost or name in self._by_id or name in used:
                continue
            near = nearest_name(name, [each for each in self._by_id if each not in self._extras])
            renamed = f"; if it is called {near!r} now, rename it here, too" if near else ""
            warn(
                source,
                (BLOCK, "cases", name),
                f"{', '.join(lost)} of a case that the file does not have{renamed}",
            )

    def _cases(self) -> Iterator[tuple[Source, At, FluentCase]]:
        for n, case in enumerate(self._set.eval_cases):
            at: At = ("eval_cases", n)
            extras = self._extras.get(case.eval_id, {})
            of = extras.get("run_of")
            if isinstance(of, str):
                if of in self._by_id and _same(case, self._by_id[of]):
                    continue  # another run of a case, as it was written
                extras = self._extras.get(of, {})
            yield self._reader.source, at, self._case(at, case, extras)

    def _case(self, at: At, case: EvalCase, extras: Mapping[str, Any]) -> FluentCase:
        where = (BLOCK, "cases", case.eval_id)
        given = {key: each for key, each in extras.items() if key not in ("turns", "run_of", "run")}
        fields = self._reader.case_fields(where, given)
        if case.model_extra:  # fields that others have added
            fields["metadata"] = {**case.model_extra, **fields.get("metadata", {})}
        fields["id"] = case.eval_id
        if case.session_input is not None and case.session_input.state:
            fields["initial_state"] = dict(case.session_input.state)
        if case.rubrics:
            fields["rubrics"] = _rubrics(case.rubrics)
        asserted = {**(case.final_session_state or {}), **fields.pop("state_assertions", {})}
        if asserted:
            fields["state_assertions"] = asserted
        if "simulation" not in fields:
            fields |= self._conversation(at, case, where, extras)
        return self._reader.build(at, fields)

    def _conversation(
        self, at: At, case: EvalCase, where: At, extras: Mapping[str, Any]
    ) -> dict[str, Any]:
        if case.conversation_scenario is not None:
            return self._scenario(case.conversation_scenario)
        conversation = case.conversation or []
        if not conversation:
            raise self._reader.source.error(
                (*at, "conversation"), "the conversation is empty", found="an empty list"
            )
        turns = [_turn(each, n) for n, each in enumerate(conversation, 1)]
        if (kept := extras.get("turns")) is not None:
            items = self._reader.items((*where, "turns"), kept)
            if len(items) != len(turns):
                raise self._reader.source.error(
                    (*where, "turns"),
                    "the turns of the block are not those of the conversation",
                    found=f"{len(items)}, and the conversation has {len(turns)}",
                    help="add or remove turns in both places",
                )
            for n, each in enumerate(items):
                turns[n] |= self._reader.turn_fields((*where, "turns", n), each)
        return folded(turns)

    def _scenario(self, scenario: ConversationScenario) -> dict[str, Any]:
        usual = LlmBackedUserSimulatorConfig()
        config = self._config or Criteria()
        played = UserSimulation(
            model=config.simulator or usual.model,
            persona=getattr(scenario, "user_persona", None),
            success_criteria=scenario.conversation_plan,
            max_turns=config.max_turns or usual.max_allowed_invocations,
        )
        return {"input": scenario.starting_prompt, "simulation": played}


def _written_here(case: EvalCase) -> bool:
    """Whether a case has the ids that this package gives, and ADK does not."""
    given = case.session_input
    turns = [each.invocation_id for each in case.conversation or ()]
    return (
        given is not None
        and given.user_id == case.eval_id
        and turns == [f"turn-{n}" for n in range(1, len(turns) + 1)]
    )


def _turn(invocation: Invocation, number: int) -> dict[str, Any]:
    """The fields of a turn."""
    made: dict[str, Any] = {"input": text_or_content(invocation.user_content)}
    if invocation.intermediate_data is not None:
        calls = get_all_tool_calls(invocation.intermediate_data)
        made["expected_trajectory"] = [call_of(call.name or "", call.args) for call in calls]
    if reference := answer_text(invocation.final_response):
        made["reference_response"] = reference
    if invocation.rubrics:
        made["rubrics"] = _rubrics(invocation.rubrics, f"turn_{number}_")
    return made


def _rubrics(given: Sequence[AdkRubric], prefix: str = "") -> list[str | Rubric]:
    """Rubrics, without ids that only number them; one that is there for each type is one."""
    found: dict[tuple[str, str], None] = {}
    for each in given:
        text = each.rubric_content.text_property or each.description or each.rubric_id
        ending = typed_id("", each.type) if each.type else ""
        found[each.rubric_id.removesuffix(ending), text] = None
    usual = numbered([text for _, text in found], prefix)
    return [
        text if rubric_id == counted else Rubric(text, rubric_id)
        for (rubric_id, text), (counted, _) in zip(found, usual, strict=True)
    ]


def _same(one: EvalCase, other: EvalCase) -> bool:
    """Whether two cases differ only by their ids."""
    return all(
        getattr(one, name) == getattr(other, name)
        for name in ("conversation", "conversation_scenario", "rubrics", "final_session_state")
    ) and (one.session_input and one.session_input.state) == (
        other.session_input and other.session_input.state
    )

"""What ADK's EvalSet has no place for: the block ``adk_fluent`` at the top of the file.

`adk eval` and `adk web` pass over it. What ADK does hold is not repeated in it, so that whoever
edits the conversation in the file has edited the case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent._words import describe
from adk_fluent.eval._cases._case import FluentCase, ToolCall, Turn
from adk_fluent.eval._cases._state import asserted_state
from adk_fluent.eval._errors import EvalFileError
from adk_fluent.eval._files._names import run_ids
from adk_fluent.eval._files._plain import call_data, case_data, turn_data
from adk_fluent.eval._files._suite_data import suite_data

if TYPE_CHECKING:
    from adk_fluent.eval._files._content import SuiteData
    from adk_fluent.eval._files._place import Source

BLOCK: Final = "adk_fluent"
#: The configuration that ADK looks for beside a file.
CONFIG: Final = "test_config.json"
SCHEMA: Final = 1

#: Of a case that ADK holds; of a case with a user who is played, it holds only some.
_HELD: Final = ("input", "expected_trajectory", "reference_response")
_HELD_ALWAYS: Final = ("id", "initial_state", "rubrics")


def block_of(data: SuiteData) -> dict[str, Any]:
    """The block of a suite.

    Raises:
        EvalError: A case holds something that cannot be written; the error names case and field.
    """
    cases: dict[str, dict[str, Any]] = {}
    by_name = {case.name: case for case in data.cases}
    for name, run, eval_id in run_ids(by_name, data.num_runs):
        cases[eval_id] = _extras(by_name[name]) if eval_id == name else {"run_of": name, "run": run}
    return {"schema": SCHEMA, **suite_data(data), "cases": cases}


def held_state(case: FluentCase) -> dict[str, Any]:
    """Values that a case asserts of the state at the end; functions have no place in ADK's files.

    Keys with a dot may name the step that wrote them, which ADK does not know.

    Raises:
        EvalError: A value is none of its field.
    """
    return {
        key: value
        for key, value in asserted_state(case, case.state_assertions or {}).items()
        if not callable(value) and "." not in key
    }


def held_calls(expected: Sequence[str | ToolCall]) -> bool:
    """Whether ADK can hold the calls that are expected: it knows values, and no functions."""
    return not any(
        callable(value) for call in expected for value in (ToolCall.of(call).args or {}).values()
    )


def _extras(case: FluentCase) -> dict[str, Any]:
    """What is left of a case without what ADK holds."""
    made = case_data(case)
    for name in _HELD_ALWAYS:
        made.pop(name, None)
    held = held_state(case)
    if asserted := made.pop("state_assertions", None):
        kept = {key: value for key, value in asserted.items() if key not in held}
        made |= {"state_assertions": kept} if kept else {}
    if case.simulation is not None:
        return made
    for name in _HELD:
        made.pop(name, None)
    turns = [_turn_extras(case, *each) for each in zip(case.turns, _given(case), strict=True)]
    return {**made, "turns": turns} if any(turns) else made


def _turn_extras(case: FluentCase, turn: Turn, given: Any) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if turn.expected_trajectory is not None and not held_calls(turn.expected_trajectory):
        made["expected_trajectory"] = [call_data(case, call) for call in turn.expected_trajectory]
    if isinstance(given, Turn):  # the last of `turns` has what the case says, too
        own = turn_data(case, given)
        for name in ("expected_response_contains", "state_assertions"):
            if name in own:
                made[name] = own[name]
    return made


def _given(case: FluentCase) -> Sequence[Any]:
    given = case.input
    return cast("Sequence[Any]", given) if isinstance(given, list | tuple) else [given]


# --- reading -----------------------------------------------------------------------------------


def read_block(source: Source, value: Any) -> dict[str, Any]:
    """The block of a file.

    Raises:
        EvalFileError: It is none, or of a newer version.
    """
    if not isinstance(value, Mapping):
        raise source.error((BLOCK,), "the block is no mapping", found=describe(value))
    block = dict(cast("Mapping[str, Any]", value))
    schema = block.get("schema")
    if isinstance(schema, bool) or not isinstance(schema, int) or schema < 1:
        raise source.error(
            (BLOCK, "schema"), "the block has no version", found=describe(schema), help="schema: 1"
        )
    if schema > SCHEMA:
        raise EvalFileError(
            "the file was written by a newer adk-fluent-eval",
            path=source.path,
            field=f"{BLOCK}.schema",
            found=f"schema {schema}; this one reads schema {SCHEMA}",
            help="upgrade adk-fluent-eval",
        )
    cases = block.setdefault("cases", {})
    if not isinstance(cases, Mapping):
        raise source.error((BLOCK, "cases"), "cases: is no mapping of ids", found=describe(cases))
    for eval_id, each in cast("Mapping[str, Any]", cases).items():
        if not isinstance(each, Mapping):
            raise source.error(
                (BLOCK, "cases", eval_id), "the case is no mapping", found=describe(each)
            )
    return block


def folded(turns: list[dict[str, Any]]) -> dict[str, Any]:
    """The input of a case and what it expects of its last turn, from the fields of its turns."""
    made = {
        name: turns[-1].pop(name)
        for name in ("expected_trajectory", "reference_response")
        if name in turns[-1]
    }
    said = [each["input"] if len(each) == 1 else Turn(**each) for each in turns]
    alone = len(said) == 1 and not isinstance(said[0], Turn)
    return {"input": said[0] if alone else said, **made}


def call_of(name: str, args: Mapping[str, Any] | None) -> str | ToolCall:
    """An expected call: ADK's files have no word for any arguments but none at all."""
    return ToolCall(name, dict(args)) if args else name

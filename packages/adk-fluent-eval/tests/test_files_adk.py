"""Suites in YAML and in ADK's eval sets."""

# Lambdas in parameters of tests have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.evaluation.eval_set import EvalSet
from google.genai import types

from adk_fluent.eval import (
    EvalError,
    EvalFileError,
    FluentCase,
    FluentEvalSuite,
    Gate,
    ToolCall,
    Turn,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.adk

#: Section 6.11 of the specification, with what this version computes.
SPEC = """
name: billing_pipeline_v2
metrics: [tool_trajectory_avg_score, response_match_score]
thresholds:
  tool_trajectory_avg_score: 1.0
  response_match_score: 0.7
num_runs: 2
cases:
  - input: "My bill is $200 too high"
    expected_trajectory: [classify_intent, create_ticket]
    tags: [billing, dispute]
  - input: "I want a refund"
    expected_trajectory: [classify_intent, process_refund]
    tags: [billing, refund]
"""


def is_order(order: str) -> bool:
    """A condition that files name."""
    return order.startswith("A")


def everything() -> FluentEvalSuite:
    image = types.Part(inline_data=types.Blob(data=b"\x89png", mime_type="image/png"))
    return FluentEvalSuite(
        "a suite",
        cases=[
            FluentCase(
                "where is my order?\nsay é",
                id="one",
                expected_trajectory=["a", ToolCall("b", {"x": 1, "y": is_order})],
                trajectory_match="any_order",
                expected_response_contains=["x", re.compile("^T-[0-9]+$", re.IGNORECASE)],
                reference_response="yes",
                mock_tool_outputs={
                    "a": [1, ValueError("no"), {"literal": 2}],
                    "b": is_order,
                    "c": {"call": "not a function"},
                },
                initial_state={"user:tier": "gold", "n": [1, None, True]},
                state_assertions={"n": 1, "b.k": is_order, "date": "2026-01-01"},
                target_node="desk",
                tags=["t"],
                metadata={"k": {"deep": [1.5]}},
                max_tokens=10,
                max_cost_usd=0.5,
                timeout_s=3,
                xfail="issue 7",
            ),
            FluentCase(
                ["hi", Turn(["see", image], expected_response_contains="b"), "bye"],
                id="two",
                expected_trajectory=[],
                skip="later",
            ),
        ],
        metrics=["response_match_score"],
        thresholds={"response_match_score": 0.5},
        num_runs=3,
        gate=Gate(0.5, {"t": 0.25}, {"response_match_score": 0.1}, None, allow_flaky=False),
        description="about orders",
    )


REGISTRY = {f"{__name__}:is_order": is_order}


def same(made: FluentEvalSuite, suite: FluentEvalSuite) -> None:
    for name in ("name", "metrics", "thresholds", "num_runs", "gate", "description"):
        assert getattr(made, name) == getattr(suite, name)
    for case, other in zip(made.cases, suite.cases, strict=True):
        for name in FluentCase.__dataclass_fields__:
            if name not in {"location", "input", "mock_tool_outputs"}:
                assert getattr(case, name) == getattr(other, name), name
        assert repr(case.mock_tool_outputs) == repr(other.mock_tool_outputs)
        assert len(case.turns) == len(other.turns)
        for turn, expected in zip(case.turns, other.turns, strict=True):
            assert turn.expected_response_contains == expected.expected_response_contains


def test_the_yaml_of_the_specification(tmp_path: Path) -> None:
    path = tmp_path / "cases.yaml"
    path.write_text(SPEC, "utf-8")
    suite = FluentEvalSuite.from_yaml(path, num_runs=4)
    assert (suite.name, suite.num_runs, len(suite.cases)) == ("billing_pipeline_v2", 4, 2)
    assert suite.thresholds["response_match_score"] == 0.7
    assert suite.cases[1].tags == ["billing", "refund"]
    assert suite.cases[1].place == f"{path}:12"


def test_round_trips(tmp_path: Path) -> None:
    suite = everything()
    suite.to_yaml(tmp_path / "s.yaml")
    same(FluentEvalSuite.from_yaml(tmp_path / "s.yaml", registry=REGISTRY), suite)
    suite.to_eval_set_file(tmp_path / "s.evalset.json")
    same(FluentEvalSuite.from_eval_set(tmp_path / "s.evalset.json", registry=REGISTRY), suite)


def test_a_case_in_yaml_begins_with_its_id_and_input(tmp_path: Path) -> None:
    everything().to_yaml(tmp_path / "s.yaml")
    head, _, cases = (tmp_path / "s.yaml").read_text("utf-8").partition("cases:\n")
    assert head.startswith("name: ")
    texts = cases.removeprefix("- ").split("\n- ")
    assert [each.split("\n  input:")[0] for each in texts] == ["id: one", "id: two"]


def test_yaml_keeps_every_line_break(tmp_path: Path) -> None:
    text = "a\r\nb\x85c\u2028d\re\n"
    case = FluentCase(text, id="a", expected_trajectory=[], tags=[text], metadata={text: text})
    FluentEvalSuite(cases=[case]).to_yaml(tmp_path / "s.yaml")
    assert FluentEvalSuite.from_yaml(tmp_path / "s.yaml").cases == [case]


def test_adk_reads_what_is_written(tmp_path: Path) -> None:
    path, config = tmp_path / "s.evalset.json", tmp_path / "c.json"
    everything().to_eval_set_file(path, config_path=config)
    made = EvalSet.model_validate_json(path.read_text("utf-8"))
    assert made.eval_set_id == "a_suite"
    assert [each.eval_id for each in made.eval_cases] == ["one", "two"]
    conversation = made.eval_cases[0].conversation or []
    calls: Any = conversation[0].intermediate_data
    assert [(each.name, each.args) for each in calls.tool_uses] == [("a", {}), ("b", {"x": 1})]
    assert made.eval_cases[0].session_input
    assert made.eval_cases[0].session_input.state["n"] == [1, None, True]
    criteria = json.loads(config.read_text("utf-8"))["criteria"]
    assert criteria["response_match_score"] == 0.5
    assert criteria["tool_trajectory_avg_score"]["match_type"] == "EXACT"
    assert everything().to_eval_set().eval_cases[1].eval_id == "two"


def test_an_argument_that_files_cannot_hold_is_named(tmp_path: Path) -> None:
    case = FluentCase("a", expected_trajectory=[ToolCall("t", {"k": lambda _: True})])
    with pytest.raises(EvalError, match="expected_trajectory: argument 'k' has a value"):
        FluentEvalSuite(cases=[case]).to_yaml(tmp_path / "s.yaml")


@pytest.mark.parametrize("value", [lambda: 1, object(), {1: 2}, float("nan"), KeyError(1)])
def test_what_files_cannot_hold_is_refused(tmp_path: Path, value: Any) -> None:
    case = FluentCase("a", expected_trajectory=[], mock_tool_outputs={"t": value})
    with pytest.raises(EvalError, match="files cannot hold"):
        FluentEvalSuite(cases=[case]).to_yaml(tmp_path / "s.yaml")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "line", "field", "what"),
    [
        ("cases: [", 1, "", "invalid YAML"),
        ("a: 1\na: 2", 2, "", "duplicate key 'a'"),
        ("1: 2", 1, "", "a key must be a text"),
        ("cases:\n\t- a", 2, "", "spaces, not tabs"),
        ("!!python/object:os.system {}", 1, "", "invalid YAML"),
        ("name: x", 1, "cases", "no list of cases"),
        ("nam: x\ncases: []", 1, "nam", "did you mean 'name'"),
        ("cases:\n- inputt: a", 2, "cases[0].inputt", "did you mean 'input'"),
        ("cases:\n- tags: [a]", 2, "cases[0]", "a case has no input"),
        ("cases:\n- input: a\n  tags: x", 3, "cases[0].tags", "must be a list"),
        ("cases:\n- input: a\n  max_tokens: x", 3, "cases[0].max_tokens", "whole number"),
        ("cases:\n- input: [a, {input: b, x: 1}]", 2, "cases[0].input[1].x", "a turn has no field"),
        ("cases:\n- input: {text: a}", 2, "cases[0].input.text", "Extra inputs"),
        (
            "cases:\n- {input: a, id: x}\n- {input: b, id: x}",
            3,
            "cases[1].id",
            "two cases have the id 'x'",
        ),
        (
            "cases:\n- input: a\n  mock_tool_outputs:\n    t: {call: f}",
            4,
            "cases[0].mock_tool_outputs.t.call",
            "the registry has no function 'f'",
        ),
        (
            "cases:\n- input: a\n  mock_tool_outputs: {t: {raise: 'Foo: x'}}",
            3,
            "cases[0].mock_tool_outputs.t.raise",
            "not a built-in exception",
        ),
        (
            "cases:\n- input: a\n  expected_response_contains: {regex: '('}",
            3,
            "cases[0].expected_response_contains",
            "invalid pattern",
        ),
        (
            "cases:\n- input: a\n  expected_response_contains: [yes]",
            3,
            "cases[0].expected_response_contains[0]",
            'in quotes: "yes"',
        ),
        ("cases: []\ngate: {min_pass: 1}", 2, "gate.min_pass", "did you mean 'min_pass_rate'"),
        ("cases: []\ngate:\n  min_pass_rate: 2", 3, "gate.min_pass_rate", "between 0 and 1"),
        ("num_runs: 0\ncases:\n- input: a", 1, "num_runs", "must be a whole number"),
    ],
)
def test_a_fault_in_yaml_has_its_line_and_field(
    tmp_path: Path, text: str, line: int, field: str, what: str
) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(EvalFileError, match=what) as caught:
        FluentEvalSuite.from_yaml(path)
    assert (caught.value.line, caught.value.field) == (line, field)


@pytest.mark.parametrize("letter", "aimsx")
def test_a_flag_that_is_written_twice_is_one_flag(tmp_path: Path, letter: str) -> None:
    path = tmp_path / "s.yaml"
    text = f"cases:\n- input: hi\n  expected_response_contains: {{regex: a, flags: {letter * 2}}}"
    path.write_text(text, "utf-8")
    [case] = FluentEvalSuite.from_yaml(path).cases
    assert case.expected_response_contains == re.compile("a", re.RegexFlag[letter.upper()])


def test_a_trajectory_that_is_no_list_is_called_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("cases:\n- input: hi\n  expected_trajectory: {tool: a}", "utf-8")
    with pytest.raises(EvalFileError, match="must be a list") as caught:
        FluentEvalSuite.from_yaml(path)
    assert caught.value.found == "a dict"


def test_yaml_cannot_grow_without_bound(tmp_path: Path) -> None:
    levels = "\n".join(f"x-{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9))
    path = tmp_path / "s.yaml"
    path.write_text(f"x-0: &a0 [1, 2]\n{levels}\ncases: []", "utf-8")
    with pytest.raises(EvalFileError, match="over 500,000 values"):
        FluentEvalSuite.from_yaml(path)


def test_missing_and_binary_files(tmp_path: Path) -> None:
    with pytest.raises(EvalFileError, match="No such file"):
        FluentEvalSuite.from_yaml(tmp_path / "s.yaml")
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(EvalFileError, match="not UTF-8"):
        FluentEvalSuite.from_yaml(tmp_path / "b.yaml")


TURN: dict[str, Any] = {
    "user_content": {"parts": [{"text": "hi"}]},
    "final_response": {"parts": [{"text": "hello"}]},
    "intermediate_data": {"tool_uses": [{"name": "t", "args": {"a": 1}}]},
}


def written(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value), "utf-8")
    return path


def test_a_set_in_which_no_tool_may_be_called_has_its_criterion(tmp_path: Path) -> None:
    suite = FluentEvalSuite("s", cases=[FluentCase("hi", id="hi", expected_trajectory=[])])
    suite.metrics = ("response_match_score",)  # ADK fails what has no reference
    suite.to_eval_set_file(tmp_path / "s.evalset.json", config_path=tmp_path / "config.json")
    config: Any = json.loads((tmp_path / "config.json").read_text("utf-8"))
    criterion = {"threshold": 1.0, "match_type": "EXACT", "ignore_args": False}
    assert config == {"criteria": {"tool_trajectory_avg_score": criterion}}


def test_eval_sets_of_adk_and_its_configuration(tmp_path: Path) -> None:
    path = written(
        tmp_path / "desk.test.json",
        {
            "eval_set_id": "e",
            "eval_cases": [
                {
                    "eval_id": "one",
                    "conversation": [TURN, {"user_content": {"parts": [{"text": "bye"}]}}],
                    "session_input": {"app_name": "x", "user_id": "u", "state": {"k": 1}},
                }
            ],
        },
    )
    [case] = FluentEvalSuite.from_eval_set(path).cases
    assert case.turns[0].trajectory == (ToolCall("t", {"a": 1}),)
    assert (case.turns[0].reference_response, case.initial_state) == ("hello", {"k": 1})
    assert case.turns[1].input == "bye"
    criterion = {"threshold": 0.5, "match_type": "IN_ORDER", "ignore_args": True}
    written(
        tmp_path / "test_config.json",
        {"criteria": {"tool_trajectory_avg_score": criterion, "response_match_score": 0.3}},
    )
    suite = FluentEvalSuite.from_eval_set(path)
    assert suite.metrics == ("tool_trajectory_avg_score", "response_match_score")
    assert suite.thresholds == {"tool_trajectory_avg_score": 0.5, "response_match_score": 0.3}
    assert suite.cases[0].trajectory_match == "in_order"
    assert suite.cases[0].turns[0].trajectory == (ToolCall("t"),)
    criterion |= {"match_type": "loose"}
    written(tmp_path / "test_config.json", {"criteria": {"tool_trajectory_avg_score": criterion}})
    with pytest.raises(EvalFileError) as caught:
        FluentEvalSuite.from_eval_set(path)
    assert caught.value.field == "criteria.tool_trajectory_avg_score.match_type"


def test_the_format_of_adk_before_1_0(tmp_path: Path) -> None:
    turn = {
        "query": "hi",
        "expected_tool_use": [{"tool_name": "t", "tool_input": {"a": 1}}],
        "reference": "hello",
    }
    [case] = FluentEvalSuite.from_eval_set(written(tmp_path / "old.test.json", [turn])).cases
    assert (case.name, case.turns[0].trajectory) == ("old", (ToolCall("t", {"a": 1}),))
    whole = [{"name": "n", "data": [turn], "initial_session": {"state": {"k": 1}}}]
    [case] = FluentEvalSuite.from_eval_set(written(tmp_path / "old2.test.json", whole)).cases
    assert (case.name, case.initial_state) == ("n", {"k": 1})


CASE = '{"eval_id": "a", "conversation": [{"user_content": {"parts": [{"text": "hi"}]}}]}'
NEWER = {"user_content": {"parts": [{"text": "hi"}]}, "brand_new": 1}


@pytest.mark.parametrize(
    ("value", "field", "what"),
    [
        ([], "[0]", "expected a mapping"),
        ({"x": 1}, "", "it has no eval_cases"),
        ({"eval_set_id": "e", "eval_cases": [{"eval_id": 3}]}, "eval_cases[0].eval_id", "string"),
        (
            {"eval_set_id": "e", "eval_cases": [], "adk_fluent": {"schema": 9}},
            "adk_fluent.schema",
            "upgrade adk-fluent-eval",
        ),
        (
            {"eval_set_id": "e", "eval_cases": [], "adk_fluent": {"threshold": {}}},
            "adk_fluent.threshold",
            "did you mean 'thresholds'",
        ),
        (
            {"eval_set_id": "e", "eval_cases": [{"eval_id": "a", "conversation": []}]},
            "eval_cases[0].conversation",
            "the conversation is empty",
        ),
        (
            {"eval_set_id": "e", "eval_cases": [{"eval_id": "a", "conversation": [NEWER]}]},
            "eval_cases[0].conversation[0].brand_new",
            "upgrade google-adk",
        ),
    ],
)
def test_a_broken_eval_set_names_its_fault(
    tmp_path: Path, value: Any, field: str, what: str
) -> None:
    with pytest.raises(EvalFileError, match=what) as caught:
        FluentEvalSuite.from_eval_set(written(tmp_path / "s.json", value))
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("text", "line", "field", "what"),
    [
        ('{\n "eval_set_id": "e",\n "eval_cases": [}', 3, "", "invalid JSON"),
        ('{\n "eval_cases": [],\n "eval_cases": []}', None, "", "duplicate key"),
        (
            '{"eval_set_id": "e", "eval_cases": [\n{"eval_id":\n3}]}',
            2,
            "eval_cases[0].eval_id",
            "valid string",
        ),
        (
            '{"eval_set_id": "e", "eval_cases": [], "adk_fluent": {\n"num_runs": 0}}',
            2,
            "adk_fluent.num_runs",
            "must be a whole number",
        ),
        (
            f'{{"eval_set_id": "e", "eval_cases": [{CASE},\n{CASE}]}}',
            2,
            "eval_cases[1].eval_id",
            "two cases have the id 'a'",
        ),
    ],
)
def test_a_fault_in_an_eval_set_has_its_line_and_field(
    tmp_path: Path, text: str, line: int | None, field: str, what: str
) -> None:
    path = tmp_path / "s.evalset.json"
    path.write_text(text, "utf-8")
    with pytest.raises(EvalFileError, match=what) as caught:
        FluentEvalSuite.from_eval_set(path)
    assert (caught.value.line, caught.value.field) == (line, field)


def test_a_case_that_was_edited_in_one_place_only_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.evalset.json"
    case = FluentCase("hi", id="a", expected_trajectory=[])
    FluentEvalSuite(cases=[case]).to_eval_set_file(path)
    value = json.loads(path.read_text("utf-8"))
    value["eval_cases"][0]["conversation"][0]["user_content"]["parts"][0]["text"] = "hello"
    with pytest.raises(EvalFileError, match="was changed in eval_cases, and not in the block"):
        FluentEvalSuite.from_eval_set(written(path, value))
    value["eval_cases"][0]["eval_id"] = "b"  # its expectations would be lost
    with pytest.raises(EvalFileError, match="case 'a' is in the block 'adk_fluent', and not in"):
        FluentEvalSuite.from_eval_set(written(path, value))
    del value["adk_fluent"]["cases"]["a"]
    assert FluentEvalSuite.from_eval_set(written(path, value)).cases[0].input == "hello"
    with pytest.raises(EvalFileError, match="it has no criteria"):
        FluentEvalSuite.from_eval_set(path, config_path=written(tmp_path / "c.json", {"x": 1}))


def test_a_file_of_the_other_kind_is_told_where_to_go(tmp_path: Path) -> None:
    path = tmp_path / "s.evalset.json"
    FluentEvalSuite("s", cases=[FluentCase("hi")]).to_eval_set_file(path)
    with pytest.raises(EvalFileError, match="from_eval_set"):
        FluentEvalSuite.from_yaml(path)
    with pytest.raises(EvalFileError, match="from_yaml"):
        FluentEvalSuite.from_eval_set(tmp_path / "s.yaml")

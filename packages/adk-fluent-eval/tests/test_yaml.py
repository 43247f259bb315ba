from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from adk_fluent.eval import (
    EvalError,
    EvalFileError,
    EvalFileWarning,
    FluentCase,
    FluentEvalSuite,
    Rubric,
    ToolCall,
    Turn,
)
from adk_fluent.eval._cases._simulation import UserSimulation
from adk_fluent.eval._files._content import SuiteData
from adk_fluent.eval._files._yaml import dump_yaml, load_yaml

REGISTRY = {"json:dumps": json.dumps, "shlex:quote": shlex.quote}

# --- what is written is read -------------------------------------------------------------------

SPEC = """\
name: billing_pipeline_v2
metrics: [tool_trajectory_avg_score, response_evaluation_score]
thresholds:
  tool_trajectory_avg_score: 1.0
  response_evaluation_score: 0.7
num_runs: 2
cases:
  - input: "My bill is $200 too high"
    expected_trajectory: [classify_intent, create_ticket]
    tags: [billing, dispute]
  - input: "I want a refund"
    expected_trajectory: [classify_intent, process_refund]
    tags: [billing, refund]
"""


def _load(tmp_path: Path, text: str, registry: Any = None, name: str = "cases.yaml") -> SuiteData:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    return load_yaml(file, registry)


def test_the_example_of_the_specification(tmp_path: Path) -> None:
    suite = _load(tmp_path, SPEC)
    assert suite.name == "billing_pipeline_v2"
    assert suite.metrics == ("tool_trajectory_avg_score", "response_evaluation_score")
    assert suite.thresholds == {"tool_trajectory_avg_score": 1.0, "response_evaluation_score": 0.7}
    assert suite.num_runs == 2
    first, second = suite.cases
    assert first == FluentCase(
        "My bill is $200 too high",
        expected_trajectory=["classify_intent", "create_ticket"],
        tags=["billing", "dispute"],
    )
    assert second.input == "I want a refund"
    assert second.location == (str(tmp_path / "cases.yaml"), 11)


def test_every_field(tmp_path: Path) -> None:
    suite = _load(
        tmp_path,
        """\
description: All of it
app_name: desk
cases:
  - id: all
    input:
      - hello
      - input: and then?
        expected_trajectory: []
        reference_response: then this
        expected_response_contains: [this, {regex: "t-[0-9]+", flags: i}]
        state_assertions: {step.intent: bill, sure: {call: "shlex:quote"}}
        rubrics: [polite, {text: short, id: brevity}]
      - bye
    expected_trajectory: [greet, {tool: note, args: {text: bye, sure: {call: "shlex:quote"}}}]
    trajectory_match: in_order
    expected_response_contains: {regex: "bye|ciao"}
    reference_response: Bye.
    mock_tool_outputs:
      look: {call: "json:dumps"}
      fail: {raise: "ValueError: no order: 3"}
      bare: {raise: TimeoutError}
      steps: [1, {raise: "KeyError: x"}, {status: ok}]
      nothing: null
      shown: {literal: {call: me}}
    initial_state: {user:tier: gold, since: 2024-01-02, n: 3}
    state_assertions: {intent: bill}
    target_node: classifier
    tags: [a, b]
    metadata: {owner: me, deep: {list: [1, 2.5, true, null]}}
    rubrics: [kind]
    max_cost_usd: 0.5
    max_tokens: 1000
    max_latency_s: 2
    max_tool_calls: 3
    timeout_s: 30
    skip: not yet
    xfail: a bug
  - input: hi
    simulation: {model: gemini-2.5-flash, persona: angry, success_criteria: refund, max_turns: 4}
  - input: hi
    id: scripted
    simulation: {script: ["and then?", bye], starting_prompt: hello}
""",
        REGISTRY,
    )
    assert (suite.name, suite.description, suite.app_name) == ("cases", "All of it", "desk")
    case, simulated, scripted = suite.cases
    said: Any = case.input
    hello, then, bye = said
    assert (hello, bye) == ("hello", "bye")
    assert isinstance(then, Turn)
    assert then.input == "and then?"
    assert then.expected_trajectory == []
    text, pattern = then.contains
    assert text == "this"
    assert isinstance(pattern, re.Pattern)
    assert (pattern.pattern, pattern.flags & re.IGNORECASE) == ("t-[0-9]+", re.IGNORECASE)
    assert then.state_assertions == {"step.intent": "bill", "sure": shlex.quote}
    assert then.rubrics == ["polite", Rubric("short", "brevity")]
    assert case.expected_trajectory == [
        "greet",
        ToolCall("note", {"text": "bye", "sure": shlex.quote}),
    ]
    mocks = case.mock_tool_outputs
    assert mocks is not None
    assert mocks["look"] is json.dumps
    assert (type(mocks["fail"]), mocks["fail"].args) == (ValueError, ("no order: 3",))
    assert (type(mocks["bare"]), mocks["bare"].args) == (TimeoutError, ())
    assert mocks["steps"][0] == 1
    assert isinstance(mocks["steps"][1], KeyError)
    assert mocks["steps"][2] == {"status": "ok"}
    assert mocks["nothing"] is None
    assert mocks["shown"] == {"call": "me"}
    assert case.initial_state == {"user:tier": "gold", "since": "2024-01-02", "n": 3}
    assert scripted.simulation == UserSimulation(
        script=["and then?", "bye"], starting_prompt="hello"
    )
    assert simulated.simulation == UserSimulation(
        "gemini-2.5-flash", "angry", "refund", max_turns=4
    )
    assert (case.max_cost_usd, case.max_tokens, case.max_latency_s) == (0.5, 1000, 2)
    assert (case.max_tool_calls, case.timeout_s, case.skip, case.xfail) == (
        3,
        30,
        "not yet",
        "a bug",
    )
    assert case.rubrics == ["kind"]
    assert case.metadata["deep"] == {"list": [1, 2.5, True, None]}

    again = _load(tmp_path, dump_yaml(suite), REGISTRY)
    assert dump_yaml(again) == dump_yaml(suite)


def test_aliases_and_merges_are_understood(tmp_path: Path) -> None:
    suite = _load(
        tmp_path,
        """\
x-shared: &shared {tags: [all], max_tokens: 5}
x-more: &more {tags: [more], timeout_s: 3}
cases:
  - {<<: *shared, input: a}
  - {<<: [*shared, *more], input: b, max_tokens: 7}
""",
    )
    a, b = suite.cases
    assert (a.tags, a.max_tokens) == (["all"], 5)
    assert (b.tags, b.max_tokens, b.timeout_s) == (["all"], 7, 3)


def test_absent_and_null_are_the_same(tmp_path: Path) -> None:
    (case,) = _load(tmp_path, "cases:\n  - {input: a, tags: null, expected_trajectory: ~}").cases
    assert case == FluentCase("a")


def test_a_bom_and_windows_lines(tmp_path: Path) -> None:
    suite = _load(tmp_path, "\ufeff" + SPEC.replace("\n", "\r\n"))
    assert len(suite.cases) == 2


def test_texts_of_several_lines_are_written_so(tmp_path: Path) -> None:
    data = SuiteData("s", (FluentCase("one\ntwo\n", id="a"),))
    assert "|" in dump_yaml(data)
    assert _load(tmp_path, dump_yaml(data)).cases == data.cases


# --- what has no meaning -----------------------------------------------------------------------

CASE = "cases:\n  - input: a\n    "


@pytest.mark.parametrize(
    ("text", "line", "field", "words"),
    [
        (
            CASE + "expected_trajectroy: [a]",
            3,
            "cases[0].expected_trajectroy",
            "expected_trajectory",
        ),
        ("metrcs: []\ncases: []", 1, "metrcs", "metrics"),
        (CASE + "tags: billing", 3, "cases[0].tags", "[billing]"),
        (CASE + "tags: [a, no]", 3, "cases[0].tags[1]", "quotes"),
        (CASE + "tags: [a, '']", 3, "cases[0].tags[1]", "empty"),
        (CASE + "target_node: 1.0", 3, "cases[0].target_node", "quotes"),
        (CASE + "max_tokens: many", 3, "cases[0].max_tokens", "number"),
        (CASE + "max_tokens: 1.5", 3, "cases[0].max_tokens", "whole"),
        (CASE + "max_tokens: -1", 3, "cases[0].max_tokens", "0 up"),
        (CASE + "max_cost_usd: .inf", 3, "cases[0].max_cost_usd", "number"),
        (CASE + "max_cost_usd: .nan", 3, "cases[0].max_cost_usd", "number"),
        (CASE + "max_cost_usd: true", 3, "cases[0].max_cost_usd", "number"),
        (CASE + "trajectory_match: exactly", 3, "cases[0].trajectory_match", "in_order"),
        (CASE + "expected_trajectory: [{name: a}]", 3, "cases[0].expected_trajectory[0].name", ""),
        (CASE + "expected_trajectory: [{args: {}}]", 3, "cases[0].expected_trajectory[0]", "tool"),
        (CASE + "expected_trajectory: [[a]]", 3, "cases[0].expected_trajectory[0]", "text"),
        (CASE + "metadata: [a]", 3, "cases[0].metadata", "mapping"),
        (CASE + "mock_tool_outputs: []", 3, "cases[0].mock_tool_outputs", "mapping"),
        (CASE + "expected_response_contains: {regex: '['}", 3, "regex", "broken"),
        (CASE + "expected_response_contains: {regex: a, flags: q}", 3, "flags", "letters"),
        (CASE + "expected_response_contains: {regexp: a}", 3, "regexp", "regex"),
        (CASE + "expected_response_contains: 3", 3, "expected_response_contains", "quotes"),
        (CASE + "rubrics: [{id: a}]", 3, "cases[0].rubrics[0]", "text"),
        (CASE + "simulation: {persona: a}", 3, "cases[0].simulation", "model"),
        (CASE + "simulation: {modle: a}", 3, "cases[0].simulation.modle", "model"),
        (CASE + "simulation: {model: a, max_turns: 0}", 3, "cases[0].simulation", "max_turns"),
        (CASE + "simulation: {model: a, include_function_calls: 1}", 3, "include_function", "true"),
        (CASE + "mock_tool_outputs: {t: {raise: Oops}}", 3, "mock_tool_outputs.t.raise", "Python"),
        (CASE + "mock_tool_outputs: {t: {raise: 'ValueEror: x'}}", 3, "t.raise", "'ValueError'"),
        (CASE + "mock_tool_outputs: {t: {raise: SystemExit}}", 3, "t.raise", "Python"),
        (
            CASE + "mock_tool_outputs: {t: {raise: 'UnicodeDecodeError: x'}}",
            3,
            "t.raise",
            "message",
        ),
        (CASE + "mock_tool_outputs: {t: {raise: 3}}", 3, "t.raise", "Python"),
        (CASE + "mock_tool_outputs: {t: {call: f}}", 3, "t.call", "registry"),
        (CASE + "state_assertions: {s: {call: 3}}", 3, "state_assertions.s.call", "name"),
        (CASE + "input: b", 3, "cases[0].input", "twice"),
        (CASE + "initial_state: {a: 1, b: {c: 1, c: 2}}", 3, "cases[0].initial_state.b.c", "twice"),
        (CASE + "initial_state: {1: a}", 3, "initial_state", "quotes"),
        (CASE + "initial_state: {no: a}", 3, "initial_state", "quotes"),
        (CASE + "initial_state: {[a]: a}", 3, "initial_state", "no text"),
        (CASE + "initial_state: {a: !!python/name:os.system ''}", 3, "initial_state.a", "python"),
        (CASE + "initial_state: {a: !mine {}}", 3, "cases[0].initial_state.a", "!mine"),
        (CASE + "initial_state: {a: !!binary aGk=}", 3, "cases[0].initial_state.a", "binary"),
        (CASE + "initial_state: {a: !!int x}", 3, "cases[0].initial_state.a", "int"),
        (CASE + "<<: [a]", 3, "<<", "mapping"),
        ("cases:\n  - tags: [a]", 2, "cases[0]", "input"),
        ("cases:\n  - input: ''", 2, "cases[0]", "nothing"),
        ("cases:\n  - input: []", 2, "cases[0].input", "nothing"),
        ("cases:\n  - input: 7", 2, "cases[0].input", "quotes"),
        ("cases:\n  - input: [{tags: [a]}]", 2, "cases[0].input[0].tags", "turn"),
        ("cases:\n  - input: [{reference_response: a}]", 2, "cases[0].input[0]", "input"),
        ("cases:\n  - input: {text: a}", 2, "cases[0].input", "parts"),
        ("cases:\n  - hello", 2, "cases[0]", "mapping"),
        ("cases: {}", 1, "cases", "list"),
        ("name: a", 1, "", "cases"),
        ("name: a\ncases:", 1, "", "cases"),
        ("- input: a", 1, "", "mapping"),
        ("name: 3\ncases: []", 1, "name", "quotes"),
        ("num_runs: 0\ncases: []", 1, "num_runs", "1 up"),
        ("metrics: tool\ncases: []", 1, "metrics", "[tool]"),
        ("cases: []\nthresholds: {a: x}", 2, "thresholds.a", "number"),
        ("cases: []\nthresholds: {a: .nan}", 2, "thresholds.a", "number"),
        ("cases:\n  - {input: a, id: x}\n  - {input: b, id: x}", 3, "cases[1].id", "line 2"),
        ("cases:\n  - input: a\n\ttags: [a]", 3, "", "tabs"),
        ("cases: [", 1, "", "broken YAML"),
        ("cases: []\n---\ncases: []", 2, "", "broken YAML"),
        ("cases: *nobody", 1, "", "broken YAML"),
        ("cases: &a [*a]", 1, "cases[0]", "alias"),
        ("a: 1\x00", None, "", "broken YAML"),
    ],
)
def test_errors_name_line_and_field(
    tmp_path: Path, text: str, line: int | None, field: str, words: str
) -> None:
    with pytest.raises(EvalFileError) as caught:
        _load(tmp_path, text)
    error = caught.value
    assert error.line == line
    assert field in error.field
    assert words in str(error)
    assert str(tmp_path / "cases.yaml") in str(error)


def test_an_empty_file(tmp_path: Path) -> None:
    with pytest.raises(EvalFileError, match="mapping"):
        _load(tmp_path, "")


def test_errors_never_show_contents(tmp_path: Path) -> None:
    with pytest.raises(EvalFileError) as caught:
        _load(tmp_path, CASE + "metadata: s3cret")
    assert "s3cret" not in str(caught.value)


def test_functions_come_from_the_registry_alone(tmp_path: Path) -> None:
    text = CASE + "state_assertions: {s: {call: quoet}}"
    with pytest.raises(EvalFileError, match="did you mean 'quote'"):
        _load(tmp_path, text, {"quote": shlex.quote})
    with pytest.raises(EvalFileError, match="it has none"):
        _load(tmp_path, text, {})
    with pytest.raises(EvalFileError, match="is no function"):
        _load(tmp_path, text, {"quoet": 3})


def test_a_bomb_of_aliases_ends(tmp_path: Path) -> None:
    levels = ["a: &l0 [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    levels += [f"a{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 12)]
    with pytest.raises(EvalFileError, match="too large"):
        _load(tmp_path, "\n".join(levels))


def test_deep_nesting_ends(tmp_path: Path) -> None:
    with pytest.raises(EvalFileError, match="nested too deeply"):
        _load(tmp_path, "cases: " + "[" * 5000)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "billing.yaml").write_text(SPEC)
    with pytest.raises(EvalFileError, match=r"billing\.yaml"):
        load_yaml(tmp_path / "biling.yaml")
    with pytest.raises(OSError, match="cannot be read"):
        load_yaml(tmp_path)
    with pytest.raises(EvalFileError, match="cannot be read"):
        load_yaml("a\0b")
    (tmp_path / "latin.yaml").write_bytes(b"cases:\n  - input: caf\xe9\n")
    with pytest.raises(EvalFileError, match="UTF-8") as caught:
        load_yaml(tmp_path / "latin.yaml")
    assert caught.value.line == 2


# --- what cannot be written --------------------------------------------------------------------


def _made_here() -> Any:
    def nameless(value: Any) -> Any:
        return value

    return nameless


_nameless = _made_here()


class _Own(Exception):  # noqa: N818  # short
    pass


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"state_assertions": {"s": _nameless}}, "state_assertions['s'] cannot be written"),
        ({"mock_tool_outputs": {"t": _nameless}}, "give it a name in a module, or leave it out"),
        ({"mock_tool_outputs": {"t": [1, _nameless]}}, "mock_tool_outputs['t']"),
        ({"expected_trajectory": [ToolCall("t", {"a": _nameless})]}, "argument 'a' of t"),
        ({"mock_tool_outputs": {"t": _Own("x")}}, "Python's own"),
        ({"mock_tool_outputs": {"t": OSError(2, "x")}}, "Python's own"),
        ({"mock_tool_outputs": {"t": KeyboardInterrupt()}}, "Python's own"),
        ({"initial_state": {"a": object()}}, "initial_state cannot be written"),
        ({"initial_state": {"a": float("nan")}}, "initial_state cannot be written"),
        ({"initial_state": {"a": {1: 2}}}, "texts"),
        ({"metadata": {"a": b"x"}}, "metadata cannot be written"),
        ({"metadata": {"a": "\ud800"}}, "surrogate"),
        ({"simulation": UserSimulation(model=object())}, "by its name"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_what_cannot_be_written_is_told(fields: dict[str, Any], words: str) -> None:
    case = FluentCase("a", id="the-case", **fields)
    with pytest.raises(EvalError) as caught:
        dump_yaml(SuiteData("s", (case,)))
    assert words in str(caught.value)
    assert "'the-case'" in str(caught.value)
    assert Path(__file__).name in str(caught.value)


def test_what_holds_itself_is_told() -> None:
    state: dict[str, Any] = {}
    state["self"] = state
    with pytest.raises(EvalError, match="initial_state"):
        dump_yaml(SuiteData("s", (FluentCase("a", initial_state=state),)))


def test_functions_are_written_by_name(tmp_path: Path) -> None:
    case = FluentCase("a", state_assertions={"s": shlex.quote}, mock_tool_outputs={"t": ValueError})
    text = dump_yaml(SuiteData("s", (case,)))
    assert "call: shlex:quote" in text
    (again,) = _load(tmp_path, text, REGISTRY).cases
    assert again.state_assertions == {"s": shlex.quote}
    assert again.mock_tool_outputs is not None
    assert type(again.mock_tool_outputs["t"]) is ValueError


def test_flags_of_patterns_are_written(tmp_path: Path) -> None:
    pattern = re.compile("a.b", re.IGNORECASE | re.DOTALL)
    text = dump_yaml(SuiteData("s", (FluentCase("a", expected_response_contains=pattern),)))
    assert _load(tmp_path, text).cases[0].expected_response_contains == pattern


def test_the_package_does_not_bring_yaml() -> None:
    import subprocess

    code = (
        "import sys, adk_fluent.eval._files._content, adk_fluent.eval._cases._case\n"
        "assert not {'yaml', 'pydantic', 'csv'} & set(sys.modules), sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("head", "line", "field"),
    [
        ("metrics:\n- tool_trajectory_avg_score\n- response_match_scor", 3, "metrics[1]"),
        ("thresholds:\n  response_match_scor: 0.5", 2, "thresholds.response_match_scor"),
    ],
)
def test_a_metric_that_is_nearly_one_is_told_with_its_line(
    tmp_path: Path, head: str, line: int, field: str
) -> None:
    file = tmp_path / "cases.yaml"
    file.write_text(f"{head}\ncases: [{{input: a}}]\n", "utf-8")
    with pytest.warns(EvalFileWarning, match="did you mean 'response_match_score'") as told:
        FluentEvalSuite.from_yaml(file)
    (each,) = told
    assert str(each.message).startswith(f"{file}:{line} ({field}): ")
    assert each.filename == __file__  # whoever reads the file, and not what reads it for them


def test_judges_of_ones_own_are_no_reason_to_warn(tmp_path: Path) -> None:
    file = tmp_path / "cases.yaml"
    file.write_text("metrics: [politeness]\ncases: [{input: a}]\n", "utf-8")
    assert FluentEvalSuite.from_yaml(file).metrics == ("politeness",)

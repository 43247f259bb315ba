"""Reports: figures, gates, comparisons, and their formats."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

import pytest
from eval_desk import outcome, report

from adk_fluent.eval import (
    EvalError,
    EvalFailedError,
    EvalFileError,
    FluentCase,
    FluentEvalReport,
    Gate,
    MetricScore,
    MetricStatus,
    Status,
    Step,
    ToolUse,
    TurnOutcome,
)
from adk_fluent.protocol import Usage

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "<script>alert(1)</script> | `x` **b** [l](http://e) @team #1 \x1b[31m\u202e \ud800"


NO_SCORE = MetricScore("m", MetricStatus.NOT_EVALUATED, None, 0.5)
LOW = MetricScore("low", MetricStatus.PASSED, 0.1, 0.5, lower_is_better=True)
NO_LOW = MetricScore("low", MetricStatus.NOT_EVALUATED, None, 0.5, lower_is_better=True)


def test_figures() -> None:
    made = report(
        outcome("b", "failed", 1, tags=["t"], tokens=Usage(prompt=5)),
        outcome("a", "passed", 2, tags=["t", "u"], cost_usd=0.1),
        outcome("a", "error", 1, tags=["t"], cost_usd=0.2),
        outcome("c", "skipped"),
        outcome("d", "xfailed"),
    )
    assert [each.key for each in made.outcomes] == [
        ("b", 1),
        ("a", 1),
        ("a", 2),
        ("c", 1),
        ("d", 1),
    ]
    assert (made.counting, made.pass_rate) == (3, 1 / 3)
    assert made.flaky == ("a",)
    assert made.per_tag["t"].pass_rate == 1 / 3
    assert made.per_tag["u"].pass_rate == 1.0
    assert (made.per_metric["m"].evaluated, made.per_metric["m"].passed) == (3, 1)
    assert (made.tokens.total, made.cost_usd) == (5, 0.3)  # exact
    assert made.pass_at(1) == made.pass_hat(1) == 0.25
    with pytest.raises(EvalError, match="case 'b' has 1"):
        made.pass_at(2)
    assert made.outcome("a", 2).passed
    with pytest.raises(EvalError, match="no run 1 of case 'e'"):
        made.outcome("e")
    with pytest.raises(EvalError, match="two outcomes"):
        report(outcome("a"), outcome("a"))


@pytest.mark.parametrize(
    ("gate", "outcomes", "why"),
    [
        ({}, [], "no case was run"),
        ({}, [outcome("a", "skipped")], "no run counts"),
        ({}, [outcome("a"), outcome("b", "error")], "pass rate 50% .1 of 2 runs. is below 100%"),
        ({"min_pass_rate": 0.5}, [outcome("a"), outcome("b", "failed")], ""),
        ({"min_tag_pass_rate": {"t": 1}}, [outcome("a")], "no run of tag 't' counts"),
        ({"min_metric": {"m": 2}}, [outcome("a")], "mean of metric 'm', 1, is below 2"),
        ({"min_metric": {"n": 1}}, [outcome("a")], "metric 'n' has no score"),
        (
            {"min_pass_rate": 0, "min_metric": {"m": 0.6}},
            [outcome("a"), outcome("b", "error", scores=[NO_SCORE])],
            "metric 'm' has no score in 1 run",
        ),
        (
            {"min_pass_rate": 0, "min_metric": {"low": 0.6}},
            [outcome("a", scores=[LOW]), outcome("b", "error", scores=[NO_LOW])],
            "metric 'low' has no score in 1 run",
        ),
        (
            {"min_pass_rate": 0, "allow_flaky": False},
            [outcome("a"), outcome("a", "failed", 2)],
            "1 case flaky: a",
        ),
    ],
)
def test_gates(gate: Any, outcomes: Any, why: str) -> None:
    made = report(*outcomes, gate=Gate(**gate))
    assert made.ok is not bool(why)
    assert made.exit_code == int(bool(why))
    if why:
        with pytest.raises(EvalFailedError, match=why):
            made.assert_passed()
    else:
        made.assert_passed()


def test_an_interrupted_run_does_not_pass() -> None:
    made = report(outcome("a"), interrupted=True)
    assert made.failures == ["the run was interrupted after 1 run of cases"]


def test_comparisons_match_cases_by_id_and_runs_by_order() -> None:
    before = report(
        outcome("same"), outcome("worse"), outcome("better", "failed"), outcome("gone"),
        outcome("few"), outcome("skip", "skipped"),
    )  # fmt: skip
    now = report(
        outcome("better"), outcome("worse", "error"), outcome("same"), outcome("new"),
        outcome("few"), outcome("few", "failed", 2), outcome("skip"),
    )  # fmt: skip
    made = now.compare(before)
    assert [each.id for each in made.regressed] == ["worse"]
    assert [each.id for each in made.improved] == ["better"]
    assert (made.regressed[0].before, made.regressed[0].now) == (Status.PASSED, Status.ERROR)
    assert made.still_passing == ("same", "few")  # of few, only the first runs are compared
    assert (made.added, made.removed, made.not_compared) == (("new",), ("gone",), ("skip",))
    assert (made.p_value, made.significant, made.ok) == (1.0, False, False)
    assert made.metric_deltas["m"] == (0.75, pytest.approx(0.625))
    assert json.loads(made.to_json())["detectable"] is None
    assert "regressed: worse" in made.to_markdown()
    assert not report(outcome("x")).compare(report(outcome("y"))).ok
    with pytest.raises(EvalError, match="alpha="):
        now.compare(before, alpha=1)


def test_regressions_against_the_baseline_fail_the_gate(tmp_path: Path) -> None:
    before = report(*(outcome(f"c{n}") for n in range(10)))
    outcomes = [outcome(f"c{n}", "failed" if n < 2 else "passed") for n in range(10)]
    gate = Gate(min_pass_rate=0)
    made = report(*outcomes, gate=gate, baseline=before)
    assert made.failures == ["2 of 10 cases regressed, 0 allowed (p=0.5): c0, c1"]
    lenient = Gate(min_pass_rate=0, significant_only=True)
    assert report(*outcomes, gate=lenient, baseline=before).ok
    assert report(*outcomes, gate=Gate(0, max_regressions=2), baseline=before).ok
    assert report(*outcomes, gate=Gate(0, max_regressions=None), baseline=before).ok
    made.save(tmp_path / "r.json")
    assert FluentEvalReport.load(tmp_path / "r.json").failures == made.failures


def test_a_report_is_read_as_it_was_written(tmp_path: Path) -> None:
    turn = TurnOutcome(HOSTILE, "b", [Step("a", tool=ToolUse("t", {"x": [1, None]}, {"r": 1.5}))])
    score = MetricScore("m", MetricStatus.NOT_EVALUATED, None, 0.5, reason="why")
    made = report(
        outcome("a", "failed", turns=[turn], scores=[score], state={"k": {"n": True}}),
        gate=Gate(0.5, {"t": 0.25}),
        notes=["n"],
        duration_s=1.5,
    )
    made.save(tmp_path / "deep" / "r.json")
    again = FluentEvalReport.load(tmp_path / "deep" / "r.json")
    turn.input = turn.input.replace("\ud800", "\ufffd")
    assert list(again.outcomes) == list(made.outcomes)
    assert (again.gate, again.notes, again.started_at) == (made.gate, ["n"], made.started_at)
    assert [each.name for each in (tmp_path / "deep").iterdir()] == ["r.json"]


def _saved(**fields: Any) -> str:
    return json.dumps(json.loads(report(outcome("a")).to_json()) | fields)


@pytest.mark.parametrize(
    ("text", "field", "what"),
    [
        ("", "", "invalid JSON"),
        ("{\n  broken", "", "invalid JSON"),
        ('{"a": 1, "a": 2}', "", "duplicate key 'a'"),
        ("[]", "", "expected a mapping"),
        ("{}", "adk_fluent.kind", "not a report"),
        (
            '{"adk_fluent": {"kind": "eval-report", "schema": 9}}',
            "adk_fluent.schema",
            "newer than this version",
        ),
        (
            '{"adk_fluent": {"kind": "eval-report", "schema": 1}, "outcomes": []}',
            "suite",
            "a report has no suite",
        ),
        (_saved(outcomes=[{"id": 3}]), "outcomes[0].id", "valid string"),
        (_saved(x=1), "x", "no field 'x'"),
        (_saved(baseline={}), "baseline", "no field 'baseline'"),
        (_saved(fluent_cases=[1]), "fluent_cases", "no field"),
        (_saved(suite=5), "suite", "valid string"),
        (_saved(notes=[3]), "notes[0]", "valid string"),
        (_saved(interrupted="no"), "interrupted", "valid boolean"),
        (_saved(duration_s=None), "duration_s", "valid number"),
        (_saved(outcomes=[{"id": "a", "run": 1, "status": "passed"}] * 2), "outcomes", "two outc"),
    ],
)
def test_a_broken_file_names_its_fault(tmp_path: Path, text: str, field: str, what: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(text, "utf-8")
    with pytest.raises(EvalFileError, match=what) as caught:
        FluentEvalReport.load(path)
    if field:
        assert caught.value.field == field
    if "broken" in text:
        assert caught.value.line == 2


def test_a_file_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.json"
    path.write_text("old", "utf-8")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(EvalFileError, match="No space left"):
        report(outcome("a")).save(path)
    assert path.read_text("utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_hostile_texts_are_harmless_in_every_format() -> None:
    made = report(
        outcome(HOSTILE, "failed", input=HOSTILE, reasons=[HOSTILE], turns=[TurnOutcome(HOSTILE)])
    )
    made.suite = HOSTILE
    page = made.to_markdown()
    for text in ("<script", "http://", "@team", "**b**", "\x1b", "\u202e", "\ud800"):
        assert text not in page
    page.encode()
    root = ET.fromstring(made.to_junit())
    case = root.find(".//testcase")
    assert case is not None
    assert "<script>" in str(case.get("name"))


def test_junit_has_a_test_case_for_each_run() -> None:
    made = report(
        outcome("a"),
        outcome("a", "failed", 2),
        outcome("b", "error", error="ValueError: x", reasons=["ValueError: x"]),
        outcome("c", "skipped", note="later"),
        outcome("d", "xfailed", note="issue 7"),
    )
    suite = ET.fromstring(made.to_junit())[0]
    figures = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert figures == {"tests": "5", "failures": "1", "errors": "1", "skipped": "2"}
    cases = {str(each.get("name")): each for each in suite.iter("testcase")}
    assert list(cases) == ["a (run 1)", "a (run 2)", "b", "c", "d"]
    error = cases["b"].find("error")
    assert error is not None
    assert (error.get("type"), error.get("message")) == ("ValueError", "ValueError: x")
    failures = suite.find("system-err")
    assert failures is not None
    assert "pass rate" in str(failures.text)


def test_merged_reports_have_the_cases_of_all() -> None:
    parts = [FluentEvalReport([outcome(id)], fluent_cases=[FluentCase("hi", id=id)]) for id in "ba"]
    merged = FluentEvalReport.merge(parts)
    assert [each.id for each in merged.outcomes] == ["b", "a"]
    assert [each.id for each in merged.fluent_cases] == ["b", "a"]


def test_junit_keeps_the_lines_of_an_id() -> None:
    made = report(outcome("a\nb\tc"), outcome("a b c"))
    cases = ET.fromstring(made.to_junit()).iter("testcase")
    assert [each.get("name") for each in cases] == ["a\nb\tc", "a b c"]


def test_a_page_lists_a_bounded_number_of_runs() -> None:
    made = report(*(outcome(f"c{n}", "failed") for n in range(200)))
    page = made.to_markdown()
    assert "200 runs not passed" in page
    assert "and 150 more runs" in page

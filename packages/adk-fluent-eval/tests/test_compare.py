"""A report against a baseline."""

from __future__ import annotations

import json
import math
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adk_fluent.eval import (
    CaseOutcome,
    EvalError,
    EvalFailedError,
    FluentEvalReport,
    MetricScore,
    MetricStatus,
    RegressionReport,
    Status,
)

LETTERS = {
    "P": Status.PASSED,
    "F": Status.FAILED,
    "E": Status.ERROR,
    "S": Status.SKIPPED,
    "X": Status.XFAILED,
}


def report(**cases: str) -> FluentEvalReport:
    """A report of cases whose runs are given as letters."""
    return FluentEvalReport(
        CaseOutcome(
            id, run, LETTERS[letter], [f"{id} {run} {letter}"] if letter in "FE" else [], tags=["t"]
        )
        for id, letters in cases.items()
        for run, letter in enumerate(letters, 1)
    )


def scored(*scores: MetricScore, id: str = "a", **fields: Any) -> FluentEvalReport:
    return FluentEvalReport(
        [CaseOutcome(id, status=Status.PASSED, scores=list(scores), **fields)],
    )


def score(value: float | None, **fields: Any) -> MetricScore:
    return MetricScore("m", fields.pop("status", MetricStatus.PASSED), value, **fields)


# --- cases ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "now", "where"),
    [
        ("P", "P", "still_passing"),
        ("F", "E", "still_failing"),
        ("P", "F", "regressed"),
        ("P", "E", "regressed"),
        ("E", "P", "improved"),
        ("PPP", "PPF", "regressed"),
        ("PFF", "PPF", "improved"),
        ("PPFF", "PF", "regressed"),
        ("PFPF", "PF", "still_failing"),
        ("PPP", "P", "still_passing"),
        ("PFF", "P", "still_passing"),
        ("FPP", "P", "improved"),
        ("P", "PFF", "still_passing"),
        ("P", "SFP", "regressed"),
        ("PPF", "F", "regressed"),
        ("PF", "PS", "still_passing"),
        ("PS", "PX", "still_passing"),
        ("S", "P", "not_compared"),
        ("P", "X", "not_compared"),
        ("F", "S", "not_compared"),
        ("XX", "SS", "not_compared"),
    ],
)
def test_where_a_case_goes(before: str, now: str, where: str) -> None:
    found = report(a=now).compare(report(a=before))
    sizes = {
        "regressed": len(found.regressed),
        "improved": len(found.improved),
        "still_passing": found.still_passing,
        "still_failing": found.still_failing,
        "not_compared": len(found.not_compared),
    }
    assert sizes == {name: int(name == where) for name in sizes}
    assert found.compared == (where != "not_compared")


def test_a_flip_says_what_was_and_what_is() -> None:
    found = report(a="PFE", b="P", c="P").compare(report(a="PPP", b="FP", c="P"))
    worse, better = found.flips["a"], found.flips["b"]
    assert list(found.flips) == ["a", "b"]
    assert (worse.before, worse.passed_before, worse.runs_before) == (Status.PASSED, 3, 3)
    assert (worse.now, worse.passed_now, worse.runs_now) == (Status.ERROR, 1, 3)
    assert worse.reasons == ("a 2 F",)
    assert (better.before, better.now, better.reasons) == (Status.FAILED, Status.PASSED, ())


def test_cases_of_one_side_only_are_named() -> None:
    found = report(a="P", new="F").compare(report(old="P", a="P"))
    assert (found.added, found.removed) == (("new",), ("old",))
    assert found.ok


def test_the_order_of_cases_is_no_matter() -> None:
    assert report(b="P", a="F").compare(report(a="F", b="P")).ok


RUNS = st.text(alphabet="PFESX", min_size=1, max_size=4)
CASES = st.dictionaries(st.sampled_from("abcdefgh"), RUNS, max_size=8)


@given(CASES, CASES)
def test_every_case_is_somewhere_once(before: dict[str, str], now: dict[str, str]) -> None:
    found = report(**now).compare(report(**before))
    named = [*found.flips, *found.added, *found.removed, *found.not_compared]
    assert len(set(named)) == len(named)
    total = len(named) + found.still_passing + found.still_failing
    assert total == len(before.keys() | now.keys())


@given(CASES, CASES)
def test_the_other_way_round_is_the_opposite(before: dict[str, str], now: dict[str, str]) -> None:
    there, back = report(**now).compare(report(**before)), report(**before).compare(report(**now))
    assert {each.id for each in there.regressed} == {each.id for each in back.improved}
    assert (there.added, there.before) == (back.removed, back.now)
    assert there.p_value == back.p_value


@given(CASES)
def test_nothing_changed_against_itself(cases: dict[str, str]) -> None:
    found = report(**cases).compare(report(**cases))
    assert not found.flips
    assert found.p_value == 1.0
    assert found.before == found.now
    assert all(each.direction == "same" for each in found.tag_deltas.values())


def test_what_is_shown_is_of_all_runs() -> None:
    found = report(a="F", b="P", c="PP").compare(report(a="PPF", b="PF", c="PP"))
    (worse,) = found.regressed
    assert (worse.passed_before, worse.runs_before) == (2, 3)
    assert (worse.passed_now, worse.runs_now) == (0, 1)
    assert (found.still_passing, found.uneven) == (2, 2)
    assert found.before == pytest.approx((2 / 3 + 1 / 2 + 1) / 3)
    assert "the first of each case, as many as both have: 2 cases ran more" in found.to_markdown()
    assert json.loads(found.to_json())["uneven"] == 2
    even = report(c="PP").compare(report(c="PP"))
    assert even.uneven == 0
    assert "as many as both have" not in even.to_markdown()


# --- the test ------------------------------------------------------------------------------------


def flips(worse: int, better: int, same: int = 0) -> RegressionReport:
    ids = [f"c{n}" for n in range(worse + better + same)]
    before = {id: "F" if worse <= n < worse + better else "P" for n, id in enumerate(ids)}
    now = {id: "F" if n < worse else "P" for n, id in enumerate(ids)}
    return report(**now).compare(report(**before))


@pytest.mark.parametrize(
    ("worse", "better", "p", "significant"),
    [(6, 0, 0.03125, True), (5, 0, 0.0625, False), (5, 2, 0.453125, False), (0, 6, 0.03125, True)],
)
def test_flips_are_tested_in_pairs(worse: int, better: int, p: float, significant: bool) -> None:
    found = flips(worse, better, 10)
    assert found.p_value == p
    assert found.significant == significant
    assert found.ok == (worse == 0)


@pytest.mark.parametrize(("runs_before", "runs_now"), [(1, 3), (5, 1), (3, 3)])
def test_more_runs_than_before_are_no_change(runs_before: int, runs_now: int) -> None:
    random = Random(f"{runs_before} {runs_now}")

    def suite(runs: int) -> FluentEvalReport:
        """A hundred cases, each of which passes nine times of ten."""
        letters = random.choices("PF", (0.9, 0.1), k=100 * runs)
        return report(**{f"c{n}": "".join(letters[n * runs :][:runs]) for n in range(100)})

    trials = 150
    false = sum(suite(runs_now).compare(suite(runs_before)).significant for _ in range(trials))
    assert false <= 0.08 * trials


def test_what_counts_as_accident_can_be_said() -> None:
    before, now = report(a="P", b="P"), report(a="F", b="F")
    assert not now.compare(before, alpha=0.4).significant
    assert now.compare(before, alpha=0.5).significant


def test_what_the_test_would_notice() -> None:
    assert flips(0, 0, 100).detectable == pytest.approx(0.08, abs=0.01)
    assert flips(0, 0, 5).detectable == math.inf
    assert RegressionReport().detectable == math.inf


@pytest.mark.parametrize("alpha", [0, 1, -0.5, math.nan])
def test_an_alpha_that_is_none_is_refused(alpha: float) -> None:
    with pytest.raises(EvalError, match="alpha"):
        report(a="P").compare(report(a="P"), alpha=alpha)


@pytest.mark.parametrize("baseline", [None, "baseline.json", 3])
def test_a_baseline_that_is_none_is_refused(baseline: Any) -> None:
    with pytest.raises(EvalError, match=r"baseline|no report"):
        report(a="P").compare(baseline)


def test_no_shared_case_is_not_ok() -> None:
    found = report(a="P").compare(report(b="P"))
    assert not found.ok
    with pytest.raises(EvalFailedError, match=r"(?s)shares no case.*by id"):
        found.assert_ok()
    assert not report(a="S").compare(report(a="P")).ok


def test_regressions_are_told() -> None:
    flips(0, 3, 1).assert_ok()
    with pytest.raises(EvalFailedError) as error:
        flips(12, 0, 1).assert_ok()
    text = str(error.value)
    assert "12 of 13 cases regressed (p=0.000488)" in text
    assert "c0 (1 of 1 -> 0 of 1 runs passed): c0 1 F" in text
    assert text.splitlines()[-1].strip() == "and 2 more"


# --- figures -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "now", "fields", "direction"),
    [
        (0.5, 0.75, {}, "better"),
        (0.75, 0.5, {}, "worse"),
        (0.5, 0.5, {}, "same"),
        (0.3, 0.1 + 0.2, {}, "same"),
        (0.5, 0.75, {"lower_is_better": True}, "worse"),
        (0.75, 0.5, {"lower_is_better": True}, "better"),
        (100, 90, {"unit": "tokens", "status": MetricStatus.INFORMATIONAL}, "better"),
        (1, 2, {"unit": "s", "status": MetricStatus.INFORMATIONAL}, "worse"),
        (1, 2, {"unit": "1-5"}, "better"),
    ],
)
def test_which_way_is_better(
    before: float, now: float, fields: dict[str, Any], direction: str
) -> None:
    delta = scored(score(now, **fields)).compare(scored(score(before, **fields))).metric_deltas["m"]
    assert (delta.before, delta.now, delta.direction) == (before, now, direction)
    assert delta.change == pytest.approx(now - before)
    assert delta.unit == fields.get("unit", "")


@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_scores_that_are_none_are_not_compared(value: float | None) -> None:
    assert not scored(score(value)).compare(scored(score(0.5))).metric_deltas
    assert not scored(score(0.5)).compare(scored(score(value))).metric_deltas


def test_means_are_over_the_cases_that_have_the_metric_in_both() -> None:
    def run(id: str, run: int, value: float | None) -> CaseOutcome:
        return CaseOutcome(id, run, Status.PASSED, scores=[score(value)])

    before = FluentEvalReport([run("a", 1, 0.0), run("a", 2, 1.0), run("b", 1, 0.0)])
    now = FluentEvalReport([run("a", 1, 1.0), run("b", 1, None), run("c", 1, 0.0)])
    delta = now.compare(before).metric_deltas["m"]
    assert (delta.before, delta.now, delta.cases) == (0.5, 1.0, 1)


def test_tags_move_with_their_shared_cases() -> None:
    found = report(a="F", b="PF", new="F").compare(report(a="P", b="FF")).tag_deltas["t"]
    assert (found.before, found.now, found.cases) == (0.5, 0.25, 2)
    assert found.direction == "worse"


# --- forms ---------------------------------------------------------------------------------------


def test_json_has_all_of_it() -> None:
    found = report(a="F", b="P", new="F").compare(report(a="P", b="P", old="P"))
    data = json.loads(found.to_json())
    assert data["adk_fluent"] == {"kind": "eval-comparison", "schema": 1}
    assert data["regressed"] == [
        {
            "id": "a",
            "before": "passed",
            "now": "failed",
            "passed_before": 1,
            "runs_before": 1,
            "passed_now": 0,
            "runs_now": 1,
            "reasons": ["a 1 F"],
        }
    ]
    assert (data["added"], data["removed"], data["ok"]) == (["new"], ["old"], False)
    assert data["detectable"] is None
    assert data["tag_deltas"]["t"]["direction"] == "worse"
    assert "Infinity" not in found.to_json()


def test_markdown_has_all_of_it() -> None:
    now = report(a="F", b="P", c="P", new="F", skipped="S")
    page = now.compare(report(a="P", b="F", c="P", old="P", skipped="P")).to_markdown()
    assert page.startswith("# ❌ suite against its baseline\n")
    for part in (
        "### Got worse: 1 case",
        "| `a` | passed (1 of 1) | failed (0 of 1) | a 1 F |",
        "### Got better: 1 case",
        "p = 1: may be accident",
        "Only here: `new`",
        "Only in the baseline: `old`",
        "Not compared, as skipped or expected to fail: `skipped`",
        "too few cases",
    ):
        assert part in page
    assert now.compare(now)._repr_markdown_().startswith("# ✅")
    assert "**No case could be compared.**" in report(a="P").compare(report(b="P")).to_markdown()

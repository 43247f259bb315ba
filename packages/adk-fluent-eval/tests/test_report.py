"""The report of a suite: its figures, its gate, and its parts."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adk_fluent.eval import (
    CaseOutcome,
    EvalError,
    EvalFailedError,
    FluentCase,
    FluentEvalReport,
    Gate,
    MetricScore,
    MetricStatus,
    MetricSummary,
    PrebuiltMetrics,
    Status,
    TagSummary,
    Tokens,
)

if TYPE_CHECKING:
    import random

PASSED, FAILED, ERROR = Status.PASSED, Status.FAILED, Status.ERROR
SKIPPED, XFAILED = Status.SKIPPED, Status.XFAILED


def outcome(id: str, status: Status = PASSED, run: int = 1, **fields: Any) -> CaseOutcome:
    if status in {FAILED, ERROR}:
        fields.setdefault("reasons", [f"{id} is wrong"])
    return CaseOutcome(id, run, status, **fields)


def runs(id: str, *statuses: Status) -> list[CaseOutcome]:
    return [outcome(id, status, run) for run, status in enumerate(statuses, 1)]


def score(name: str, value: float | None, **fields: Any) -> MetricScore:
    status = MetricStatus.NOT_EVALUATED if value is None else MetricStatus.PASSED
    return MetricScore(name, fields.pop("status", status), value, **fields)


def report(*outcomes: CaseOutcome, **fields: Any) -> FluentEvalReport:
    return FluentEvalReport(outcomes, **fields)


STATUSES = st.lists(st.lists(st.sampled_from(Status), min_size=1, max_size=4), max_size=8)


def of(statuses: list[list[Status]], **fields: Any) -> FluentEvalReport:
    return report(
        *(each for number, found in enumerate(statuses) for each in runs(f"c{number}", *found)),
        **fields,
    )


# --- order and identity --------------------------------------------------------------------------


@given(st.randoms(use_true_random=False))
def test_outcomes_are_in_the_order_of_the_suite(shuffle: random.Random) -> None:
    given_ = [outcome(id, run=run) for id in "cab" for run in (1, 2, 3)]
    shuffled = given_.copy()
    shuffle.shuffle(shuffled)
    cases = [FluentCase("x", id=id) for id in "cab"]
    assert list(report(*shuffled, cases=cases).outcomes) == given_


def test_without_cases_the_first_that_is_given_comes_first() -> None:
    found = report(outcome("b", run=2), outcome("a"), outcome("b", run=1))
    assert [each.key for each in found.outcomes] == [("b", 1), ("b", 2), ("a", 1)]


def test_two_outcomes_of_one_run_are_refused() -> None:
    with pytest.raises(EvalError, match="two outcomes of run 2 of case 'a'"):
        report(outcome("a"), outcome("a", run=2), outcome("a", FAILED, 2))


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"started_at": datetime(2030, 1, 1)}, "no time zone"),  # noqa: DTZ001  # that is the point
        ({"shard": (0, 3)}, "no shard"),
        ({"shard": (4, 3)}, "no shard"),
        ({"shard": "1/3"}, "no shard"),
        ({"baseline": "old.json"}, r"(?s)no report.*a str.*FluentEvalReport\.load"),
    ],
)
def test_nonsense_is_refused(fields: dict[str, Any], what: str) -> None:
    with pytest.raises(EvalError, match=what):
        report(outcome("a"), **fields)


@pytest.mark.parametrize(
    ("given_", "what"),
    [("x", "a str"), (None, "None"), (CaseOutcome("a", 1, "passed"), "no Status")],  # pyright: ignore[reportArgumentType]
)
def test_outcomes_that_are_none_are_refused(given_: Any, what: str) -> None:
    with pytest.raises(EvalError, match=what):
        report(given_)


def test_times_are_in_utc() -> None:
    moment = datetime(2030, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    assert report(started_at=moment).started_at == moment
    assert report(started_at=moment).started_at.tzinfo is UTC
    assert report().started_at.tzinfo is UTC


def test_an_outcome_is_found_by_case_and_run() -> None:
    found = report(*runs("billing", PASSED, FAILED))
    assert found.outcome("billing").passed
    assert found.outcome("billing", 2).status is FAILED
    with pytest.raises(EvalError, match=r"(?s)no case 'biling'.*did you mean 'billing'\?"):
        found.outcome("biling")
    with pytest.raises(EvalError, match=r"(?s)no run 3.*runs 1, 2"):
        found.outcome("billing", 3)
    with pytest.raises(EvalError, match="no case 'zzz'") as error:
        found.outcome("zzz")
    assert error.value.help is None


# --- figures -------------------------------------------------------------------------------------


@given(STATUSES)
def test_the_pass_rate_counts_what_counts(statuses: list[list[Status]]) -> None:
    found = of(statuses)
    flat = [each for case in statuses for each in case]
    counting = [each for each in flat if each not in {SKIPPED, XFAILED}]
    assert found.counts == {each: flat.count(each) for each in Status}
    assert found.counting == len(counting)
    expected = counting.count(PASSED) / len(counting) if counting else 0.0
    assert found.pass_rate == expected
    low, high = found.pass_rate_ci()
    assert low <= expected <= high


@given(STATUSES)
def test_flaky_cases_passed_and_did_not(statuses: list[list[Status]]) -> None:
    mixed = [
        f"c{number}"
        for number, case in enumerate(statuses)
        if PASSED in case and {FAILED, ERROR} & set(case)
    ]
    assert list(of(statuses).flaky) == mixed


def test_pass_at_and_hat_are_means_over_cases() -> None:
    found = report(
        *runs("always", PASSED, PASSED),
        *runs("half", PASSED, FAILED),
        *runs("never", ERROR, FAILED),
        *runs("not", SKIPPED, XFAILED),
    )
    assert found.pass_at(1) == pytest.approx(0.5)
    assert found.pass_hat(1) == pytest.approx(0.5)
    assert found.pass_at(2) == pytest.approx(2 / 3)
    assert found.pass_hat(2) == pytest.approx(1 / 3)
    assert report().pass_at(3) == 0.0


@pytest.mark.parametrize("k", [3, 0, -1, 1.5, "2", True])
def test_a_k_without_so_many_runs_is_refused(k: Any) -> None:
    with pytest.raises(EvalError, match="k="):
        report(*runs("a", PASSED, PASSED), *runs("b", PASSED, SKIPPED, FAILED)).pass_at(k)


def test_a_k_too_large_names_the_case_that_has_too_few() -> None:
    with pytest.raises(EvalError, match=r"(?s)case 'b' has 1.*num_runs=2"):
        report(*runs("a", PASSED, PASSED), *runs("b", PASSED, SKIPPED)).pass_hat(2)


def test_figures_by_tag() -> None:
    found = report(
        outcome("a", tags=["x", "x"], cost_usd=0.5, tokens=Tokens(10, 2, 3, 1)),
        outcome("b", FAILED, tags=["x", "y"], scores=[score("m", 0.5)], tokens=Tokens(1)),
        outcome("c", ERROR, tags=["x"], scores=[score("m", 1.0), score("n", None)]),
        outcome("d", SKIPPED, tags=["x"]),
        outcome("e", XFAILED, tags=["x"], scores=[score("m", 0.0)]),
        outcome("f"),
    ).per_tag
    assert list(found) == ["x", "y"]
    x = found["x"]
    assert (x.passed, x.failed, x.errors, x.skipped, x.xfailed, x.total) == (1, 1, 1, 1, 1, 5)
    assert x.counting == 3
    assert x.pass_rate == pytest.approx(1 / 3)
    assert x.ci == report(outcome("a"), outcome("b", FAILED), outcome("c", ERROR)).pass_rate_ci()
    assert x.scores == {"m": 0.75}
    assert x.tokens == Tokens(11, 2, 3, 1)
    assert x.cost_usd == 0.5
    assert found["y"].cost_usd is None


def test_a_summary_of_nothing() -> None:
    found = TagSummary.from_results([])
    assert (found.total, found.pass_rate, found.ci, found.cost_usd) == (0, 0.0, (0.0, 1.0), 0.0)
    assert MetricSummary.from_scores("m", []) == MetricSummary("m")


def test_figures_by_metric() -> None:
    found = report(
        outcome("a", scores=[score("m", 0.5, threshold=0.8, status=MetricStatus.FAILED)]),
        outcome("b", scores=[score("m", 1.0, threshold=0.8)]),
        outcome("c", FAILED, scores=[score("m", None, threshold=0.8), score("t", 3.0, unit="s")]),
        outcome("d", FAILED, scores=[score("m", float("nan"), threshold=0.8)]),
        outcome("e", XFAILED, scores=[score("m", 0.0)]),
        metrics=[PrebuiltMetrics.SAFETY_V1, "m"],
    ).per_metric
    assert list(found) == ["safety_v1", "m", "t"]
    m = found["m"]
    assert (m.mean, m.min, m.max) == (0.75, 0.5, 1.0)
    assert m.stdev == pytest.approx(0.35355, abs=1e-5)
    assert (m.evaluated, m.not_evaluated, m.passed, m.failed) == (2, 2, 2, 1)
    assert m.threshold == 0.8
    assert found["safety_v1"] == MetricSummary("safety_v1")
    assert (found["t"].unit, found["t"].stdev, found["t"].threshold) == ("s", None, None)


def test_thresholds_that_differ_are_none() -> None:
    scores = [score("m", 1.0, threshold=0.5), score("m", 1.0, threshold=0.6)]
    assert MetricSummary.from_scores("m", scores).threshold is None


@pytest.mark.parametrize(
    ("costs", "total"),
    [([0.5, 0.25], 0.75), ([0.5, None], 0.5), ([None, None], None), ([], 0.0), ([0.0], 0.0)],
)
def test_the_cost_is_that_which_is_known(costs: list[float | None], total: float | None) -> None:
    each = [outcome(f"c{number}", cost_usd=cost) for number, cost in enumerate(costs)]
    assert report(*each).cost_usd == total


def test_what_was_not_run_costs_nothing() -> None:
    assert report(outcome("a", SKIPPED)).cost_usd == 0.0


def test_tokens_add_up() -> None:
    each = [outcome(id, tokens=Tokens(1, 2, 3, 4)) for id in "ab"]
    assert report(*each).tokens == Tokens(2, 4, 6, 8)


# --- the gate ------------------------------------------------------------------------------------


@given(STATUSES)
def test_nothing_but_passes_meets_the_plain_gate(statuses: list[list[Status]]) -> None:
    found = of(statuses)
    flat = {each for case in statuses for each in case}
    met = PASSED in flat and not {FAILED, ERROR} & flat
    assert found.ok == met
    assert found.exit_code == (0 if met else 1)
    assert bool(found.failures) != met
    if met:
        found.assert_passed()
    else:
        with pytest.raises(EvalFailedError):
            found.assert_passed()


FLAKY = [*runs("a", PASSED, FAILED), *runs("b", PASSED, PASSED)]


@pytest.mark.parametrize(
    ("outcomes", "fields", "line"),
    [
        ([], {}, "no case was run"),
        ([], {"interrupted": True}, "no case was run"),
        (
            [outcome("a", SKIPPED), outcome("b", XFAILED)],
            {},
            "no run counts: 1 skipped, 1 expected to fail",
        ),
        (FLAKY, {"gate": Gate(0.8)}, r"pass rate 75% \(3 of 4 runs\) is below 80%"),
        (
            [outcome(f"c{n}", FAILED if n else PASSED) for n in range(3)],
            {"gate": Gate(0.5)},
            r"pass rate 33.3% \(1 of 3 runs\) is below 50%",
        ),
        (FLAKY, {"gate": Gate(0.5, allow_flaky=False)}, "1 case passed in one run and not .*: a"),
        ([outcome("a")], {"interrupted": True}, "interrupted after 1 run of cases"),
        (
            [outcome("a", FAILED, tags=["x"]), outcome("b")],
            {"gate": Gate(0, {"x": 0.5})},
            r"pass rate of tag 'x', 0% \(0 of 1 runs\), is below 50%",
        ),
        (
            [outcome("a", tags=["billing"])],
            {"gate": Gate(0, {"biling": 0.5})},
            r"no run of tag 'biling' counts; did you mean 'billing'\?",
        ),
        (
            [outcome("a", SKIPPED, tags=["x"]), outcome("b")],
            {"gate": Gate(0, {"x": 0})},
            "no run of tag 'x' counts$",
        ),
        (
            [outcome("a", scores=[score("m", 0.5)])],
            {"gate": Gate(0, {}, {"m": 0.6})},
            r"mean of metric 'm', 0\.5, is below 0\.6",
        ),
        (
            [outcome("a", scores=[score("t", 3.0, lower_is_better=True, unit="s")])],
            {"gate": Gate(0, {}, {"t": 2})},
            r"mean of metric 't', 3\.0 s, is above 2\.0 s",
        ),
        (
            [outcome("a", scores=[score("safety_v1", None)])],
            {"gate": Gate(0, {}, {PrebuiltMetrics.SAFETY_V1: 0.1})},
            "metric 'safety_v1' has no score$",
        ),
        (
            [outcome("a", scores=[score("safety_v1", 1.0)])],
            {"gate": Gate(0, {}, {"safety": 0.1})},
            r"metric 'safety' has no score; did you mean 'safety_v1'\?",
        ),
        (
            [outcome("a", cost_usd=2.0)],
            {"gate": Gate(max_cost_usd=1)},
            r"the cost, \$2\.00, is above \$1\.00",
        ),
        ([outcome("a")], {"gate": Gate(max_cost_usd=1)}, "the cost of 1 run is not known"),
        (
            [outcome("a", cost_usd=0.5), outcome("b", tokens=Tokens(5))],
            {"gate": Gate(max_cost_usd=1)},
            "the cost of 1 run is not known",
        ),
    ],
)
def test_every_reason_why_the_gate_is_not_met(
    outcomes: list[CaseOutcome], fields: dict[str, Any], line: str
) -> None:
    found = report(*outcomes, **fields)
    assert any(re.search(line, each) for each in found.failures), found.failures
    assert not found.ok
    assert found.exit_code == 1


@pytest.mark.parametrize(
    ("outcomes", "gate"),
    [
        (FLAKY, Gate(0.75)),
        ([outcome("a"), outcome("b", SKIPPED), outcome("c", XFAILED)], Gate()),
        ([outcome("a", tags=["x"]), outcome("b", FAILED)], Gate(0.5, {"x": 1.0})),
        ([outcome(f"c{n}", scores=[score("m", 0.7)]) for n in range(3)], Gate(1, {}, {"m": 0.7})),
        ([outcome("a", scores=[score("t", 2.0, lower_is_better=True)])], Gate(1, {}, {"t": 2})),
        ([outcome("a", cost_usd=1.0), outcome("b", SKIPPED)], Gate(max_cost_usd=1)),
    ],
)
def test_a_gate_that_is_met(outcomes: list[CaseOutcome], gate: Gate) -> None:
    assert report(*outcomes, gate=gate).failures == []


def cases(passing: int, failing: int) -> list[CaseOutcome]:
    total = passing + failing
    return [outcome(f"c{n:03}", PASSED if n < passing else FAILED) for n in range(total)]


@pytest.mark.parametrize(
    ("gate", "now", "line"),
    [
        (Gate(0), cases(9, 1), r"1 case got worse .* of 10 \(p=1\), 0 allowed: c009"),
        (Gate(0, max_regressions=1), cases(8, 2), "2 cases got worse .* 1 allowed: c008, c009"),
        (Gate(0, max_regressions=1), cases(9, 1), None),
        (Gate(0, max_regressions=None), cases(0, 10), None),
        (Gate(0, significant_only=True), cases(5, 5), None),
        (Gate(0, significant_only=True), cases(4, 6), r"6 cases got worse .*p=0\.0312"),
        (Gate(0), [outcome("other")], "no case could be compared"),
        (Gate(0), [*cases(10, 0), outcome("new", FAILED)], None),
    ],
)
def test_regressions_count_as_the_gate_says(
    gate: Gate, now: list[CaseOutcome], line: str | None
) -> None:
    found = report(*now, gate=gate, baseline=report(*cases(10, 0)))
    if line is None:
        assert found.failures == []
    else:
        assert any(re.search(line, each) for each in found.failures), found.failures


def test_mostly_improvements_are_no_significant_regression() -> None:
    before = report(*cases(1, 20))
    now = report(outcome("c000", FAILED), *cases(21, 0)[1:], baseline=before)
    assert now.compare(before).significant
    now.gate = Gate(0, significant_only=True)
    assert now.ok


def test_many_ids_are_counted() -> None:
    found = report(*cases(0, 30), gate=Gate(0), baseline=report(*cases(30, 0))).failures
    assert found[0].endswith("c009, and 20 more")


def test_what_did_not_pass_is_told_the_worst_first() -> None:
    hostile = "why\nnot \x1b[31m" + "x" * 1_000
    found = report(
        *(outcome(f"f{n}", FAILED, reasons=[hostile]) for n in range(12)),
        outcome("e", ERROR, 2, reasons=[], error="ValueError: boom"),
    )
    with pytest.raises(AssertionError) as error:
        found.assert_passed()
    lines = str(error.value).splitlines()
    assert lines[0].startswith("suite 'suite' did not pass: pass rate 0% (0 of 13 runs)")
    assert lines[1] == "  found: error e run 2: ValueError: boom"
    assert lines[2].strip().startswith("failed f0: why not [31mxxx")
    assert "more characters)" in lines[2]
    assert lines[11].strip() == "and 3 more"
    assert len(str(error.value)) < 6_000


# --- shards --------------------------------------------------------------------------------------


def shard(which: int, of: int, *ids: str, **fields: Any) -> FluentEvalReport:
    return report(*(outcome(id) for id in ids), shard=(which, of), **fields)


def test_shards_are_merged_in_their_order() -> None:
    early, late = datetime(2030, 1, 1, tzinfo=UTC), datetime(2030, 1, 2, tzinfo=UTC)
    second = shard(2, 2, "b", started_at=early, duration_s=3, metrics=["m"], notes=["n"])
    first = shard(1, 2, "a", started_at=late, duration_s=5, metrics=["l", "m"], engine="light")
    merged = FluentEvalReport.merge(second, first)
    assert [each.id for each in merged.outcomes] == ["a", "b"]
    assert merged.ok
    assert (merged.started_at, merged.duration_s) == (early, 5)
    assert (merged.metrics, merged.notes, merged.engine) == (("l", "m"), ("n",), "light")
    assert (merged.shard, merged.missing_shards, merged.shard_count) == (None, (), 2)
    assert (first.shard, first.missing_shards, first.ok) == ((1, 2), (), True)


def test_a_merge_tells_what_is_missing_until_it_is_there() -> None:
    part = FluentEvalReport.merge(shard(4, 4, "d"), shard(1, 4, "a"))
    assert part.missing_shards == (2, 3)
    assert part.failures == ["shards 2, 3 of 4 missing"]
    more = FluentEvalReport.merge(part, shard(3, 4, "c"))
    assert more.failures == ["shard 2 of 4 missing"]
    assert FluentEvalReport.merge(more, shard(2, 4, "b")).ok
    assert FluentEvalReport.merge(shard(1, 2, "a")).failures == ["shard 2 of 2 missing"]


def test_an_empty_shard_is_no_harm_to_the_whole() -> None:
    assert FluentEvalReport.merge(shard(1, 2, "a"), shard(2, 2)).ok


def test_an_interrupted_part_makes_an_interrupted_whole() -> None:
    merged = FluentEvalReport.merge(shard(1, 2, "a"), shard(2, 2, "b", interrupted=True))
    assert merged.interrupted
    assert not merged.ok


def test_parts_that_are_no_shards_are_merged() -> None:
    merged = FluentEvalReport.merge(report(outcome("a")), report(outcome("b", FAILED)))
    assert merged.counts[FAILED] == 1
    assert merged.shards is None


@pytest.mark.parametrize(
    ("parts", "what"),
    [
        ([], "no report to merge"),
        ([report(outcome("a")), report(outcome("a"))], "two outcomes of run 1 of case 'a'"),
        ([shard(1, 2, "a"), shard(1, 2, "b")], "shard 1 of 2 is given more than once"),
        ([shard(1, 2, "a"), shard(2, 3, "b")], r"(?s)same number of shards.*2, 3"),
        ([shard(1, 2, "a"), report(outcome("b"))], "some of the reports"),
        ([report(suite="x"), report(suite="y")], r"(?s)different suites.*'x' and 'y'"),
        ([report(gate=Gate(0)), report()], "different gates"),
        ([report(model="x"), report()], "different models"),
        (["x"], "no report"),
    ],
)
def test_parts_that_do_not_belong_together_are_refused(parts: list[Any], what: str) -> None:
    with pytest.raises(EvalError, match=what):
        FluentEvalReport.merge(*parts)


def test_a_merge_keeps_the_baseline() -> None:
    baseline = report(outcome("a"), outcome("b"))
    bad = report(outcome("b", FAILED), gate=Gate(0), shard=(2, 2), baseline=baseline)
    merged = FluentEvalReport.merge(shard(1, 2, "a", gate=Gate(0), baseline=baseline), bad)
    assert merged.baseline is baseline
    assert len(merged.failures) == 1


def test_a_shard_is_not_judged_by_what_it_has_no_case_of() -> None:
    gate = Gate(0, {"x": 0.5, "y": 0.5, "z": 0.5}, {"m": 0.5})
    first = report(outcome("a", tags=["x"]), outcome("c", SKIPPED, tags=["z"]), gate=gate)
    first.shards = shard(1, 2).shards
    second = shard(2, 2, gate=gate)
    assert first.failures == []
    assert second.failures == ["no case was run"]
    assert FluentEvalReport.merge(first, second).failures == [
        "no run of tag 'y' counts",
        "no run of tag 'z' counts",
        "metric 'm' has no score",
    ]


def test_a_shard_is_judged_by_the_cases_that_it_has() -> None:
    gate = Gate(0, {"x": 0.5}, {"m": 0.5}, max_cost_usd=1)
    scores = [score("m", None)]
    found = report(outcome("a", FAILED, tags=["x"], cost_usd=2.0, scores=scores), gate=gate)
    found.shards = shard(1, 2).shards
    assert [each.split(",")[0] for each in found.failures] == [
        "pass rate of tag 'x'",
        "metric 'm' has no score",
        "the cost",
    ]


def test_a_shard_of_new_cases_has_nothing_to_compare() -> None:
    baseline = report(outcome("a"))
    first = shard(1, 2, "a", baseline=baseline)
    second = shard(2, 2, "new", baseline=baseline)
    assert second.failures == []
    assert FluentEvalReport.merge(first, second).ok
    others = [shard(which, 2, f"new {which}", baseline=baseline) for which in (1, 2)]
    assert FluentEvalReport.merge(*others).failures == [
        "no case could be compared with the baseline"
    ]


# --- forms ---------------------------------------------------------------------------------------


def test_a_report_says_in_short_what_it_is() -> None:
    assert repr(report(*cases(9, 1), suite="desk")) == (
        "<FluentEvalReport 'desk': 10 runs, 90% passed (59.6% to 98.2%), not ok>"
    )
    assert report(outcome("a"))._repr_markdown_().startswith("# ")


def test_reports_are_light_to_import() -> None:
    heavy = ["pydantic", "google.adk", "google.genai", "jinja2", "yaml", "xml", "statistics"]
    program = (
        "import sys\n"
        "from adk_fluent.eval import FluentEvalReport, ModelMatrix, CaseOutcome, Status\n"
        "report = FluentEvalReport([CaseOutcome('a', status=Status.PASSED)])\n"
        "assert report.ok\n"
        f"print([each for each in {heavy} if each in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_absurd_scores_of_a_judge_break_no_figure() -> None:
    scores = [MetricScore("j", MetricStatus.PASSED, each) for each in (1e200, -1e200, 1.7e308)]
    outcomes = [
        CaseOutcome(str(at), status=Status.PASSED, scores=[score])
        for at, score in enumerate(scores)
    ]
    found = FluentEvalReport(outcomes).per_metric["j"]
    assert found.mean is not None
    assert found.mean > 1e307
    assert found.stdev is not None
    assert found.stdev > 1e307

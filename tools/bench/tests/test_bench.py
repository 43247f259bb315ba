"""What makes figures of samples, and that processes measure; never how long anything takes."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench import cli
from bench.crew import Case, Samples, interleaved
from bench.environments import BenchError, Environments, sources
from bench.judges import (
    Finding,
    above,
    at_most,
    beside,
    duration,
    each,
    finding_each,
    flat_each,
    growing,
    level,
    linear,
    runs,
    shown,
    sorting,
    suite,
    under,
)
from bench.rows import ROWS, Row
from bench.stats import differences, estimate, ratios
from bench.table import report, verdict

HERE = Environments(Path(sys.executable), Path(sys.executable), sources())

# --- figures -----------------------------------------------------------------------------------


def test_an_estimate_has_the_median_of_all_samples_and_a_bound_above_it() -> None:
    noisy = estimate([[1.0, 2.0, 9.0], [2.0, 3.0, 2.0]])
    assert noisy.median == 2.0
    assert 2.0 < noisy.upper <= 9.0


@pytest.mark.parametrize(("all_of_them", "reached"), [(105_000.0, True), (120_000.0, False)])
def test_streams_are_flat_where_each_takes_as_much_with_all_as_with_some(
    all_of_them: float, reached: bool
) -> None:
    held = {"streams": 1000, "some": 100_000.0, "all": all_of_them}
    found = flat_each(1.1)(Samples(seconds={"ours": [[1.0]]}, results={"ours": held}))
    assert found.reached is reached


def test_equal_samples_leave_no_doubt() -> None:
    assert estimate([[5.0] * 4] * 3).upper == 5.0


def test_the_bound_is_the_same_each_time() -> None:
    groups = [[1.0, 4.0, 2.0], [3.0, 5.0]]
    assert estimate(groups) == estimate(groups)


def test_the_bound_knows_that_rounds_of_one_process_are_alike() -> None:
    every = [float(value) for value in range(100)]
    apart, mixed = [every[:50], every[50:]], [every[::2], every[1::2]]
    assert estimate(apart).median == estimate(mixed).median
    assert estimate(apart).upper > estimate(mixed).upper


def test_nothing_has_no_median() -> None:
    with pytest.raises((ValueError, IndexError)):
        estimate([])


def test_pairs_are_formed_round_by_round() -> None:
    assert ratios([[2.0, 9.0]], [[1.0, 3.0]]) == [[2.0, 3.0]]
    assert differences([[2.0], [9.0]], [[1.0], [3.0]]) == [[1.0], [6.0]]


def test_pairs_must_fit() -> None:
    with pytest.raises(ValueError, match="argument 2"):
        ratios([[1.0, 2.0]], [[1.0]])


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0000012, "1.2 us"), (0.0123, "12.3 ms"), (0.9996, "1 s"), (12.0, "12 s"), (-2e-6, "-2 us")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


# --- verdicts ----------------------------------------------------------------------------------


def samples(**seconds: float) -> Samples:
    each = {label.replace("_", " "): [[value] * 3] * 2 for label, value in seconds.items()}
    return Samples(each, results=dict.fromkeys(each, "ok"))


def test_under_a_limit() -> None:
    assert under(2.0)(samples(ours=1.0)).reached is True
    assert under(0.5)(samples(ours=1.0)).reached is False
    assert under(2.0, unless="ok")(samples(ours=1.0)).reached is False


def test_a_ratio_is_to_the_fastest_of_the_others() -> None:
    finding = at_most(1.1, "adk loop", "adk sequential")(
        samples(ours=1.05, adk_loop=1.0, adk_sequential=2.0, mono=0.1)
    )
    assert finding.reached is True
    assert finding.ratio == "1.05 (<= 1.05) x adk loop"
    assert at_most(1.1, "adk loop")(samples(ours=1.2, adk_loop=1.0)).reached is False


def test_without_the_others_nothing_is_reached() -> None:
    assert at_most(1.1, "mono")(samples(ours=1.0)).reached is False


def test_so_much_more_for_each_part() -> None:
    judged = above(0.02, 100, "adk")
    assert judged(samples(ours=2.0, adk=1.0)).reached is True
    assert judged(samples(ours=4.0, adk=1.0)).reached is False


def test_so_much_for_one_of_many() -> None:
    many = samples(ours=2.0, adk=1.0)
    finding = each(100, under(0.03))(many)
    assert finding.reached is True
    assert finding.cells == {"ours": "20 ms", "adk": "10 ms"}
    assert finding.ratio == "2 (<= 2) x adk"
    assert each(100, under(0.02))(many).reached is False
    assert many.seconds["ours"][0][0] == 2.0


def test_so_much_more_for_each_finding() -> None:
    found = samples(ours=2.0, ours_none=1.0)
    judged = finding_each(0.02, "ours none")
    found.results = {"ours": 110, "ours none": 10}
    assert judged(found).reached is True
    assert judged(found).numbers["findings"] == 100
    found.results = {"ours": 50, "ours none": 10}
    assert judged(found).reached is False
    found.results = {"ours": 10, "ours none": 10}
    found.seconds["ours"] = found.seconds["ours none"]
    assert judged(found).reached is False  # nothing was found


def test_a_ratio_without_a_goal() -> None:
    finding = beside("adk raw")(samples(ours=3.0, adk_raw=1.0, adk_by_hand=0.5))
    assert finding.reached is None
    assert finding.ratio == "3 (<= 3) x adk raw"


def test_what_gets_to_the_end_runs() -> None:
    assert runs(samples(ours=9.0)).reached is True
    assert runs(samples(adk=9.0)).reached is False


def test_a_suite_is_told_by_the_thousand() -> None:
    run = samples(ours=8.0)
    run.results["ours"] = "500 passed, 3 skipped in 9.10s"
    assert suite(10.0)(run).reached is True
    assert suite(10.0)(run).ratio == "500 tests, 16 s a 1 000"


def test_growth() -> None:
    grown = samples(ours=12.0, ours_small=1.0)
    assert growing(linear, 1000, 10_000, 1.25)(grown).reached is True
    assert growing(linear, 1000, 10_000, 1.1)(grown).reached is False
    assert growing(sorting, 1000, 10_000, 1.0)(grown).reached is True


def soaked(blocks: list[int], resident: list[int], *, reached: int = 1000) -> Samples:
    run = samples(ours=8.0)
    found = {"calls": 1000, "reached": reached, "blocks": blocks, "resident": resident}
    run.results["ours"] = found
    return run


def test_memory_stays_level() -> None:
    judged = level(0.01, 0.01)
    finding = judged(soaked([500, 900, 506], [1000, 1500, 1010]))
    assert finding.reached is True
    assert finding.ratio == "+0.0090 blocks a call, +1.00% memory"
    assert judged(soaked([500, 900, 400], [1000, 1500, 900])).reached is True
    assert judged(soaked([500, 900, 600], [1000, 1500, 1000])).reached is False
    assert judged(soaked([500, 500, 500], [1000, 1500, 1020])).reached is False
    assert judged(soaked([500, 500, 500], [0, 0, 0])).reached is True


def test_a_soak_that_did_not_reach_the_model_says_nothing() -> None:
    assert level(0.01, 0.01)(soaked([500] * 3, [1000] * 3, reached=900)).reached is False


def test_what_failed_is_shown_where_its_time_would_be() -> None:
    failed = samples(ours=0.001)
    failed.failed["adk sequential"] = "RecursionError: too deep"
    assert shown(failed).cells == {"ours": "1 ms", "adk": "RecursionError (sequential)"}


# --- the report --------------------------------------------------------------------------------


def test_every_budget_of_the_spec_has_a_row() -> None:
    budgets = {
        "IR compilation",
        "contract checking",
        "cost estimation",
        "backend compile",
        "dispatch",
        "OTel enrichment",
        "bind()",
        "FluentCase",
        "1 000 tests",
        "100 cases",
    }
    assert {b for b in budgets if any(row.budget.startswith(b) for row in ROWS)} == budgets


def test_ids_of_rows_are_their_own() -> None:
    assert len({row.id for row in ROWS}) == len(ROWS)


def test_verdicts() -> None:
    measured = Row("x", "x", cases={"ours": Case("ours", "build")})
    assert verdict(Row("y", "y", "< 1 ms"), None) == "not yet"
    assert verdict(measured, None) == "failed"
    assert verdict(measured, Finding(reached=False)) == "MISSED"
    assert verdict(measured, Finding(reached=True)) == "reached"
    assert verdict(measured, Finding()) == "-"


def test_the_table_names_what_does_not_exist_yet() -> None:
    lines = report([Row("y", "a thing", "< 1 ms", "thing < 1 s")], {}).splitlines()
    assert lines[2].split("  ")[0] == "a thing"
    assert "< 1 ms [thing < 1 s]" in lines[2]
    assert lines[2].endswith("not yet")


def test_listing_needs_no_environment(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(ROWS)


# --- processes ---------------------------------------------------------------------------------


def test_processes_measure_and_check_what_was_done() -> None:
    done: list[str] = []
    measured, versions = interleaved(
        HERE,
        {
            "build": {
                "ours": Case("ours", "build", 3, 3),
                "ours two": Case("ours", "check-chain", 4, 0),
            },
            "wrong": {"ours": Case("ours", "build", 3, 4)},
            "unknown": {"ours": Case("ours", "no such task", 3, 3)},
            "cold": {
                "ours": Case("ours", "import"),
                "ours names": Case("priced", "import-names"),
            },
        },
        rounds=lambda row, generation: int(row != "cold" or generation == 0) * 2,
        processes=2,
        progress=done.append,
    )
    assert [[len(group) for group in groups] for groups in measured["build"].seconds.values()] == [
        [2, 2],
        [2, 2],
    ]
    assert measured["wrong"].failed == {"ours": "returned 3, not 4"}
    assert measured["unknown"].failed["ours"].startswith("KeyError")
    assert measured["cold"].results == {"ours": "no google", "ours names": "no google"}
    assert len(measured["cold"].seconds["ours"]) == 1
    assert versions["ours"]["python"] == sys.version.split()[0]
    assert len(done) == 7


@pytest.mark.full
def test_what_stands_around_a_run_is_asked() -> None:
    """The rows say how often; what they measure says nothing otherwise."""
    rows = {
        row.id: {label: case for label, case in row.cases.items() if case.side != "mono"}
        for row in ROWS
        if row.id.startswith(("middleware-", "stream-", "enrichment"))
    }
    assert len(rows) == 11
    measured, _ = interleaved(
        HERE,
        {
            row: {label: replace(case, repeat=1) for label, case in cases.items()}
            for row, cases in rows.items()
        },
        rounds=lambda _row, _generation: 1,
        processes=1,
        progress=list[str]().append,
    )
    assert {row: found.failed for row, found in measured.items() if found.failed} == {}


def test_shapes_have_as_many_findings_as_their_rows_say() -> None:
    rows = {
        row.id: {label: replace(case, size=200, repeat=1) for label, case in row.cases.items()}
        for row in ROWS
        if row.id.startswith(("check-chain", "check-wide", "check-nested", "check-routed"))
        or row.id.startswith("check-deep")
    }
    rows = {
        row: {label: case for label, case in cases.items() if case.side != "mono"}
        for row, cases in rows.items()
    }
    assert len(rows) == 4 * 7 + 3
    measured, _ = interleaved(
        HERE,
        rows,
        rounds=lambda _row, _generation: 1,
        processes=1,
        progress=list[str]().append,
    )
    assert {row: found.failed for row, found in measured.items() if found.failed} == {}
    lost = {row: each.results["ours"] for row, each in measured.items() if "findings" in row}
    assert lost["check-chain-findings-100"] == 199
    assert lost["check-wide-findings-100"] == 198
    assert all(100 < count < 200 for count in lost.values())


@pytest.mark.full
def test_state_is_used_on_both_sides() -> None:
    rows = {
        row.id: {label: replace(case, repeat=1) for label, case in row.cases.items()}
        for row in ROWS
        if row.id.startswith(("bind", "state-", "effects-"))
    }
    assert len(rows) == 15
    measured, _ = interleaved(
        HERE,
        rows,
        rounds=lambda _row, _generation: 1,
        processes=1,
        progress=list[str]().append,
    )
    assert {row: found.failed for row, found in measured.items() if found.failed} == {}


@pytest.mark.full
@pytest.mark.parametrize("soak", ["soak-calls", "soak-runs"])
def test_a_soak_goes_through_what_it_is_to_go_through(soak: str) -> None:
    measured, _ = interleaved(
        HERE,
        {"soak": {"ours": Case("ours", soak, 200_000, quick=300).quickly()}},
        rounds=lambda _row, _generation: 1,
        processes=1,
        progress=list[str]().append,
    )
    assert measured["soak"].failed == {}
    found = measured["soak"].results["ours"]
    assert found["calls"] == 300
    assert found["reached"] == 303  # every hundredth is made again
    assert len(found["blocks"]) == len(found["resident"]) == 10


def test_a_worker_that_dies_says_why() -> None:
    with pytest.raises(BenchError, match=r"No module named 'bench\.side\.nobody'"):
        interleaved(
            HERE,
            {"row": {"ours": Case("nobody", "build", 3)}},
            rounds=lambda _row, _generation: 1,
            processes=1,
            progress=list[str]().append,
        )


def test_the_command_writes_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "figures.json"
    here = [each for side in ("ours", "mono", "local") for each in (f"--{side}", sys.executable)]
    small = ("--quick", "--processes", "1", "--rounds", "1")
    code = cli.main([*here, *small, "--rows", "check-chain-10000,estimate", "--json", str(out)])
    rows = json.loads(out.read_text())["rows"]
    assert code in (0, 1)
    assert rows["check-chain-10000"]["seconds"]["ours"]
    assert rows["estimate"]["seconds"]["ours"]
    assert "estimate_cost" in capsys.readouterr().out

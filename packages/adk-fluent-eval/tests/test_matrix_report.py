"""One suite, several models."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.eval import (
    CaseOutcome,
    EvalError,
    EvalFileError,
    FluentEvalReport,
    Gate,
    MetricScore,
    MetricStatus,
    ModelMatrix,
    Status,
    Tokens,
)

if TYPE_CHECKING:
    from pathlib import Path


def report(letters: str, cost: float | None = 1.0, **fields: Any) -> FluentEvalReport:
    statuses = {"P": Status.PASSED, "F": Status.FAILED, "S": Status.SKIPPED}
    score = MetricScore("m_x", MetricStatus.PASSED, 0.5)
    return FluentEvalReport(
        [
            CaseOutcome(
                f"c{n}",
                status=statuses[letter],
                cost_usd=cost,
                tokens=Tokens(fields.get("prompt", 100)),
                duration_s=n + 1.0,
                scores=[score],
            )
            for n, letter in enumerate(letters)
        ],
        gate=fields.get("gate", Gate()),
        interrupted=fields.get("interrupted", False),
        suite="desk",
    )


MATRIX = ModelMatrix({"flash": report("PPF"), "pro": report("PPP", 2.0), "lite": report("FFS")})


def test_a_row_has_the_figures_of_its_model() -> None:
    flash, pro, lite = MATRIX.table()
    assert (flash.model, pro.model, lite.model) == ("flash", "pro", "lite")
    assert flash.pass_rate == pytest.approx(2 / 3)
    assert flash.ci == MATRIX["flash"].pass_rate_ci()
    assert (flash.tokens, flash.cost_usd, flash.mean_duration_s) == (300, 3.0, 2.0)
    assert (lite.mean_duration_s, lite.counting) == (1.5, 2)
    assert flash.metrics == {"m_x": 0.5}
    assert (flash.ok, pro.ok) == (False, True)


def test_it_is_a_mapping() -> None:
    assert dict(MATRIX)["pro"].ok
    assert (len(MATRIX), list(MATRIX)) == (3, ["flash", "pro", "lite"])
    assert repr(MATRIX) == "<ModelMatrix of flash, pro, lite>"


@pytest.mark.parametrize(
    ("reports", "best"),
    [
        ({"a": report("PF"), "b": report("PP", 9.0)}, "b"),
        ({"a": report("PP", 2.0), "b": report("PP", 1.0)}, "b"),
        ({"a": report("PP", None), "b": report("PP", 9.0)}, "b"),
        ({"a": report("PP", None), "b": report("PP", None, prompt=5)}, "b"),
        ({"a": report("PP"), "b": report("PP")}, "a"),
        ({"a": report("PP", interrupted=True), "b": report("PF")}, "b"),
        ({"a": report("SS"), "b": report("FF")}, "b"),
    ],
)
def test_the_best_passes_most_and_then_costs_least(
    reports: dict[str, FluentEvalReport], best: str
) -> None:
    assert ModelMatrix(reports).best == best


def test_it_is_ok_if_all_are() -> None:
    assert not MATRIX.ok
    assert ModelMatrix({"pro": MATRIX["pro"]}).ok


def test_one_model_against_another() -> None:
    found = MATRIX.compare("flash", "pro")
    assert [each.id for each in found.regressed] == ["c2"]
    assert MATRIX.compare("pro", "flash").ok
    with pytest.raises(EvalError, match=r"(?s)no model 'flahs'.*flash, pro.*did you mean 'flash'"):
        MATRIX.compare("pro", "flahs")
    with pytest.raises(EvalError, match="alpha"):
        MATRIX.compare("pro", "flash", alpha=2)


@pytest.mark.parametrize("reports", [{}, {"a": "report.json"}, {"a": None}])
def test_what_is_no_matrix_is_refused(reports: Any) -> None:
    with pytest.raises(EvalError):
        ModelMatrix(reports)


def test_markdown_shows_the_table() -> None:
    page = MATRIX.to_markdown()
    lines = page.splitlines()
    assert lines[0] == "# Models: desk"
    assert lines[2].startswith("| Model |")
    assert "`m_x`" in lines[2]
    assert lines[5].startswith("| **`pro`** (best) | ✅ | 100% |")
    assert lines[4].startswith("| `flash` | ❌ | 66.7% |")
    assert page == MATRIX._repr_markdown_()


def test_markdown_of_hostile_names_stays_a_table() -> None:
    hostile = "a|b`<script>\n@me"
    page = ModelMatrix({hostile: report("SS", None)}).to_markdown()
    lines = page.splitlines()
    assert len({line.count("|") for line in lines[2:5]}) == 1
    assert "<script>" not in page
    assert "@me" not in page


def test_many_metrics_are_counted() -> None:
    scores = [MetricScore(f"m{n}", MetricStatus.PASSED, 1.0) for n in range(20)]
    found = FluentEvalReport([CaseOutcome("a", status=Status.PASSED, scores=scores)])
    assert "*and 8 more metrics*" in ModelMatrix({"x": found}).to_markdown()


def test_files_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    MATRIX.save(path)
    assert path.read_text(encoding="utf-8") == MATRIX.to_json()
    loaded = ModelMatrix.load(path)
    assert loaded.table() == MATRIX.table()
    assert loaded.to_json() == MATRIX.to_json()


def test_a_model_may_be_called_anything(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    ModelMatrix({'"\n\ud800': report("P")}).save(path)
    assert list(ModelMatrix.load(path)) == ['"\n\ufffd']


def test_bad_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    with pytest.raises(EvalFileError, match="no such file"):
        ModelMatrix.load(path)
    report("P").save(path)
    with pytest.raises(EvalFileError, match=r"(?s)no matrix of models.*FluentEvalReport\.load"):
        ModelMatrix.load(path)
    data = json.loads(MATRIX.to_json())
    data["reports"]["pro"]["outcomes"][1]["run"] = "x"
    path.write_text(json.dumps(data))
    with pytest.raises(EvalFileError) as error:
        ModelMatrix.load(path)
    assert error.value.field == "reports.pro.outcomes[1].run"
    data["reports"] = {"pro": json.loads(MATRIX["pro"].to_json())}
    data["reports"]["pro"]["outcomes"] *= 2
    path.write_text(json.dumps(data))
    with pytest.raises(EvalFileError, match="two outcomes") as error:
        ModelMatrix.load(path)
    assert error.value.field == "reports['pro']"
    data["reports"] = {}
    path.write_text(json.dumps(data))
    with pytest.raises(EvalFileError, match="no models"):
        ModelMatrix.load(path)

"""The page of metrics has the table that the metrics themselves give, and names all checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from adk_fluent.eval import PrebuiltMetrics
from adk_fluent.eval._cases._judge import _GIVEN
from adk_fluent.eval._metrics import (
    BUDGET,
    METRICS,
    RESPONSE,
    STATE,
    TRAJECTORY,
    metric_table,
)

PAGE = (Path(__file__).parents[1] / "docs" / "metrics.md").read_text("utf-8")


def test_the_table_is_what_the_metrics_say() -> None:
    begin, end = "<!-- BEGIN written by metric_table() -->\n\n", "\n<!-- END -->\n"
    assert PAGE.count(begin) == PAGE.count(end) == 1
    assert PAGE.partition(begin)[2].partition(end)[0] == metric_table()


def test_the_table_has_every_metric_once() -> None:
    rows = metric_table().splitlines()[2:]
    assert [row.split("`")[1] for row in rows] == list(METRICS) == list(PrebuiltMetrics)


@pytest.mark.parametrize("name", [TRAJECTORY, RESPONSE, STATE, BUDGET])
def test_the_page_names_every_check(name: str) -> None:
    assert f"| `{name}` |" in PAGE


def test_the_page_has_all_that_a_judge_may_ask_for() -> None:
    section = PAGE.partition("## Judges of your own")[2].partition("```python")[0]
    listed = [line.split("`")[1] for line in section.splitlines() if line.startswith("| `")]
    assert sorted(listed) == sorted(_GIVEN)

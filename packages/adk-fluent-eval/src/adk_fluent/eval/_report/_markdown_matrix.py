"""A matrix of models as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.eval._report._markdown_words import code, table, text
from adk_fluent.eval._report._words import NONE, count, dollars, measured, percent, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adk_fluent.eval._report._matrix import MatrixRow, ModelMatrix

#: Metrics that have a column; the rest is counted.
_COLUMNS = 12


def matrix_page(matrix: ModelMatrix) -> str:
    """The page of a matrix."""
    rows, best = matrix.table(), matrix.best
    units = {
        name: each.unit for report in matrix.values() for name, each in report.per_metric.items()
    }
    metrics = list(dict.fromkeys(name for row in rows for name in row.metrics))
    shown = {name: units[name] for name in metrics[:_COLUMNS]}
    heads = ("Model", "", "Pass rate:", "95%:", "Tokens:", "Cost:", "Mean time:")
    suites = dict.fromkeys(report.suite for report in matrix.values())
    lines = [
        f"# Models: {text(', '.join(suites), 120)}",
        "",
        *table(
            (*heads, *(f"{code(name)}:" for name in shown)),
            (list(_cells(row, best, shown)) for row in rows),
        ),
    ]
    if (more := len(metrics) - _COLUMNS) > 0:
        lines += [f"*and {more:,} more metrics*", ""]
    return "\n".join(lines).rstrip() + "\n"


def _cells(row: MatrixRow, best: str, metrics: Mapping[str, str]) -> Iterator[str]:
    name = code(row.model)
    yield f"**{name}** (best)" if row.model == best else name
    yield "✅" if row.ok else "❌"
    yield percent(row.pass_rate if row.counting else None)
    yield f"{percent(row.ci[0])} to {percent(row.ci[1])}" if row.counting else NONE
    yield count(row.tokens)
    yield dollars(row.cost_usd)
    yield seconds(row.mean_duration_s)
    yield from (measured(row.metrics.get(metric), unit) for metric, unit in metrics.items())

"""Reports of one suite with several models, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf

from adk_fluent.eval._report._lines import Escape, escaped, listed, plain_line, table
from adk_fluent.eval._report._report import FluentEvalReport
from adk_fluent.eval._report._statistics import mean
from adk_fluent.eval._text import dollars, interval, measured, percent, seconds


class ModelMatrix(Mapping[str, FluentEvalReport]):
    """The report of each model, by the model's name; see `FluentEvalSuite.matrix`."""

    def __init__(self, reports: Mapping[str, FluentEvalReport]) -> None:
        self._reports = dict(reports)

    def __getitem__(self, model: str) -> FluentEvalReport:
        return self._reports[model]

    def __iter__(self) -> Iterator[str]:
        return iter(self._reports)

    def __len__(self) -> int:
        return len(self._reports)

    @property
    def best(self) -> str:
        """The model with the highest pass rate; of equal ones the cheaper, then the faster.

        Interrupted runs, and those in which no run counts, come last.
        """

        def rank(model: str) -> tuple[bool, float, float, float]:
            report = self[model]
            cost = inf if report.cost_usd is None else report.cost_usd
            incomplete = report.interrupted or not report.counting
            return incomplete, -report.pass_rate, cost, _duration(report) or inf

        return min(self, key=rank)

    @property
    def differing(self) -> dict[str, list[str]]:
        """Case to the models with which all its runs passed, for cases where models differ."""
        passed: dict[str, dict[str, bool]] = {}
        for model, report in self.items():
            for each in report.outcomes:
                if each.status.counts:
                    known = passed.setdefault(each.id, {})
                    known[model] = known.get(model, True) and each.passed
        return {
            id: [model for model, ok in by_model.items() if ok]
            for id, by_model in passed.items()
            if len(set(by_model.values())) > 1
        }

    def to_markdown(self) -> str:
        """Return the comparison table as Markdown."""
        return "\n".join(self._lines(escaped)).strip() + "\n"

    def __str__(self) -> str:
        return "\n".join(self._lines(plain_line)).strip()

    def __repr__(self) -> str:
        rates = (f"{model} {percent(report.pass_rate)}" for model, report in self.items())
        return f"<ModelMatrix: {', '.join(rates)}>"

    def _lines(self, text: Escape) -> Iterator[str]:
        metrics = list(dict.fromkeys(name for each in self.values() for name in each.per_metric))
        heads = ["model", "pass rate", "95%", "runs", "mean time", "tokens", "cost", "gate"]
        rows: list[list[str]] = []
        for model, report in self.items():
            figures = report.per_metric
            row = [
                text(model),
                percent(report.pass_rate if report.counting else None),
                interval(report.pass_rate_ci()),
                f"{report.counting:,}",
                seconds(_duration(report)),
                f"{report.tokens.total:,}",
                dollars(report.cost_usd),
                "ok" if report.ok else "not ok",
            ]
            for name in metrics:
                metric = figures.get(name)
                row.append("-" if metric is None else measured(metric.mean, metric.unit))
            rows.append(row)
        yield from table([*heads, *map(text, metrics)], rows)
        if differing := self.differing:
            yield ""
            yield "Cases that not every model passes:"
            yield ""
            for id, models in differing.items():
                yield f"- {text(id)}: passed by {listed(models, text) or 'none'}"


def _duration(report: FluentEvalReport) -> float | None:
    """Mean seconds of the runs that count."""
    took = [each.duration_s for each in report.outcomes if each.status.counts]
    return mean(took) if took else None

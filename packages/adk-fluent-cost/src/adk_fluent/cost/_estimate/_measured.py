"""What runs did cost, for each agent, beside what was estimated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adk_fluent.cost._errors import must_be
from adk_fluent.cost._report import CostReport

if TYPE_CHECKING:
    from typing import Self

    from adk_fluent.cost._report import CostLine


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured of some runs.

    Attributes:
        runs: How many they were.
        report: All of them.
        agents: What each agent cost in all of them, by name.
    """

    runs: int
    report: CostReport
    agents: dict[str, CostLine]

    @classmethod
    def of(cls, reports: Iterable[CostReport]) -> Self:
        """Join the reports of runs, one for each.

        Raises:
            UsageError: They are none.
        """
        what = "measured= takes reports of costs, one for each run"
        help = "measured=[cost_of(result) for result in results]"
        must_be(Iterable, reports, what, help)
        rows = list(reports)
        for each in rows or [None]:
            must_be(CostReport, each, what, help)
        joined = CostReport(record for each in rows for record in each.records)
        return cls(len(rows), joined, {each.name: each for each in joined.by_agent()})

    @property
    def mean(self) -> float:
        """What a run cost on average, as far as prices are known."""
        return float(self.report.total.usd) / self.runs

    def usd(self, agent: str) -> float | None:
        """What an agent cost in a run; None where nobody knows."""
        line = self.agents.get(agent)
        if line is None:
            return 0.0
        return None if line.unpriced == line.calls else float(line.cost.usd) / self.runs

    def calls(self, agent: str) -> float:
        """How often an agent called a model in a run."""
        line = self.agents.get(agent)
        return line.calls / self.runs if line else 0.0

    def said(self, agent: str) -> str:
        """What an agent cost in a run, as text."""
        usd, line = self.usd(agent), self.agents.get(agent)
        if usd is None:
            return "unknown"
        some = f" + {line.unpriced} unpriced" if line and line.unpriced else ""
        return f"${usd:.6f}{some}"

    def summary(self) -> str:
        """Return what a run cost, and what is not in it, in lines of text."""
        runs = f"{self.runs} run{'' if self.runs == 1 else 's'}"
        text = f"${self.mean:.6f} a run, measured in {runs}"
        if self.report.estimated:
            text += f", {self.report.estimated} calls with estimated tokens"
        if self.report.unpriced:
            text += f"; not in it, since no price is known: {', '.join(self.report.unpriced)}"
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON data: averages of a run."""
        return {
            "runs": self.runs,
            "mean_usd": self.mean,
            "per_agent": {name: self.usd(name) for name in self.agents},
            "calls": {name: self.calls(name) for name in self.agents},
            "unpriced_models": {
                model: calls / self.runs for model, calls in self.report.unpriced.items()
            },
        }

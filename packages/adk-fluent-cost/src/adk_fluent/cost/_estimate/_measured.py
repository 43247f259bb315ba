"""What runs did cost, for each agent, beside what was estimated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from adk_fluent.cost._report import CostLine, CostReport
from adk_fluent.extend import must_be, plural
from adk_fluent.ir import AdkAgentNode, AgentNode, Node, RemoteAgentNode

if TYPE_CHECKING:
    from adk_fluent.cost._estimate._walk import Position


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
        line = self._line(agent)
        nobody_knows = line.calls and line.unpriced == line.calls
        return None if nobody_knows else float(line.cost.usd) / self.runs

    def calls(self, agent: str) -> float:
        """How often an agent called a model in a run."""
        return self._line(agent).calls / self.runs

    def said(self, agent: str) -> str:
        """What an agent cost in a run, as text."""
        usd, unpriced = self.usd(agent), self._line(agent).unpriced
        if usd is None:
            return "unknown"
        return f"${usd:.6f}" + (f" + {unpriced} unpriced" if unpriced else "")

    def _line(self, agent: str) -> CostLine:
        return self.agents.get(agent, CostLine(agent))

    def summary(self) -> str:
        """Return what a run cost, and what is not in it, in lines of text."""
        text = f"${self.mean:.6f} a run, measured in {plural(self.runs, 'run')}"
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
            "unpriced_models": {m: n / self.runs for m, n in self.report.unpriced.items()},
        }


@dataclass(slots=True)
class _Cost:
    """What a node costs in a run, in all of its places."""

    usd: float = 0.0
    calls: float = 0.0
    unpriced: list[str] = field(default_factory=list[str])


def picture(positions: Sequence[Position], text: str, measured: Measured | None) -> str:
    """Return a page with the pipeline, and the money in the boxes of its steps.

    Args:
        positions: The pipeline, each position before those inside it.
        text: What stands above it.
        measured: What runs did cost.
    """
    from adk_fluent.backends.viz import diagram, to_html  # noqa: PLC0415  # few draw

    costs: dict[int, _Cost] = {}
    for here in positions:
        cost, runs = costs.setdefault(id(here.node), _Cost()), here.runs.mean
        if isinstance(here.node, AgentNode):
            cost.usd += here.own.mean * runs if here.own else 0.0
            cost.calls += here.calls.mean * runs
            cost.unpriced += [model or "its model" for model, _, usd in here.asked if usd is None]
        else:
            cost.usd += here.cost.mean * runs

    def notes(node: Node) -> Iterator[str]:
        cost = costs.get(id(node))
        if isinstance(node, AdkAgentNode | RemoteAgentNode):
            yield "costs: nobody sees its models"
        elif isinstance(node, AgentNode) and cost is not None and node.mock is None:
            if cost.unpriced:
                yield f"no price is known of {', '.join(dict.fromkeys(cost.unpriced))}"
            if cost.usd or not cost.unpriced:
                yield f"${cost.usd:.6f} a run"
            yield f"{cost.calls:.2f} calls"
        elif cost is not None and cost.usd:
            yield f"${cost.usd:.6f} a run in all"
        is_agent = isinstance(node, AgentNode | AdkAgentNode | RemoteAgentNode)
        if measured is not None and is_agent:
            yield f"measured: {measured.said(node.name)}, {measured.calls(node.name):.2f} calls"

    return to_html(diagram(positions[0].node, notes=notes), text)

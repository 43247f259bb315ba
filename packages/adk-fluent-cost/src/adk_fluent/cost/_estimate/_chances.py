"""Which of a selector's models are asked, how often, and at least and at most."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.ir import ModelCandidate, ModelSelectorNode


class Range(NamedTuple):
    """A number as expected, at least, and at most."""

    mean: float = 0.0
    lo: float = 0.0
    hi: float = 0.0

    def plus(self, other: Range) -> Range:
        """Return the sum of both."""
        if self is NEVER:
            return other
        return Range(self.mean + other.mean, self.lo + other.lo, self.hi + other.hi)

    def times(self, other: Range) -> Range:
        """Return the product of both; nothing of something endless is nothing."""
        if other is ONCE:
            return self
        return Range(
            self.mean * other.mean,
            self.lo * other.lo,
            self.hi * other.hi if self.hi and other.hi else 0.0,
        )


ONCE = Range(1.0, 1.0, 1.0)
NEVER = Range()


class Chance(NamedTuple):
    """A model that may be asked.

    Attributes:
        model: The model.
        cost: What all calls cost if it takes them; None where nobody knows.
        share: How often it is asked for each call of the agent, on average.
        most: The same at most.
    """

    model: str
    cost: Range | None
    share: float
    most: float = 1.0


def chances_of(
    selector: ModelSelectorNode,
    cost: Callable[[str], Range | None],
    prompt: float,
    rate: float,
) -> list[Chance]:
    """Return the models that may be asked, the one that is preferred first.

    It is assumed that conditions hold. What stands behind a candidate without a condition is asked
    by adaptive selectors alone.

    Args:
        selector: The selector.
        cost: What all calls cost if one model takes them.
        prompt: Tokens of a prompt.
        rate: Share of the answers that a judge rejects.
    """
    costs = {at: cost(each.name) for at, each in enumerate(selector.candidates)}

    def dearness(row: tuple[int, ModelCandidate]) -> tuple[float, bool, float]:
        found = costs[row[0]]
        best = selector.strategy == "quality_optimized"
        return (-row[1].quality_tier if best else 0.0, found is None, found.mean if found else 0.0)

    rows = [
        (at, each)
        for at, each in enumerate(selector.candidates)
        if each.max_tokens is None or prompt <= each.max_tokens
    ]
    chances: list[Chance] = []
    tier = float("-inf")
    for at, each in sorted(rows, key=dearness):
        if selector.strategy != "adaptive":
            share = 0.0 if chances else 1.0
            chances.append(Chance(each.name, costs[at], share, share))
            if each.condition is None:
                break
        elif each.quality_tier >= tier:
            tier = each.quality_tier
            chances.append(Chance(each.name, costs[at], rate ** len(chances)))
    other = selector.fallback_model
    if other is not None:
        name = other if isinstance(other, str) else other.name
        chances.append(Chance(name, cost(name), 0.0 if chances else 1.0, 0.0))
    return chances or [
        Chance(each.name, costs[at], float(not at)) for at, each in enumerate(selector.candidates)
    ]


def total_of(selector: ModelSelectorNode, chances: list[Chance]) -> Range | None:
    """Return what the calls cost; None where nobody knows a price."""
    known = [(each.cost, each.share) for each in chances if each.cost is not None]
    if not known:
        return None
    ladder = selector.strategy == "adaptive"
    tops = [cost.hi for cost, _ in known]
    return Range(
        sum(cost.mean * share for cost, share in known),
        min(cost.lo for cost, _ in known),
        sum(tops) if ladder else max(tops),
    )

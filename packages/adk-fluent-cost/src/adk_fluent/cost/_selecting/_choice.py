"""Which of several models takes a call: by its price, its quality, and what it can take."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from adk_fluent.cost._errors import NoCandidateError, PriceError, said_by
from adk_fluent.cost._prices import _books as books
from adk_fluent.cost._requests import Models, Spent, quoted, service_tier
from adk_fluent.protocol import ModelCall, Money, Unknown, Usage, estimate_tokens

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence

    from adk_fluent.ir import ModelCandidate, ModelSelectorNode


def row_of(candidate: ModelCandidate) -> dict[str, float] | None:
    """Return the prices that a candidate brings, in USD per million tokens; None is none."""
    if candidate.prices:
        return dict(candidate.prices)
    usd = (candidate.cost_per_1k_input, candidate.cost_per_1k_output)
    if usd[0] is None or usd[1] is None:
        return None
    return {"input": usd[0] * 1000, "output": usd[1] * 1000}


def table_of(candidates: Iterable[ModelCandidate]) -> books.PriceTable | None:
    """Return the prices that candidates bring.

    Raises:
        PriceError: A price is none, or off by orders of magnitude from the one that is known, or
            another one than that of a candidate with the same name.
    """
    rows: dict[str, dict[str, float]] = {}
    for each in candidates:
        row = row_of(each)
        if row is not None and rows.setdefault(each.name, row) != row:
            raise PriceError(
                f"two candidates called {each.name!r} have different prices",
                found=f"{rows[each.name]} and {row}",
                help="what a call cost is told by the model's name: give one of them another name",
            )
    if not rows:
        return None
    table = books.PriceTable(rows, source="candidates")
    for name, row in rows.items():
        books.check_size(name, books.price_of(row, name), books.default_prices())
    return table


#: Answer tokens that a call is estimated with, where the request allows that many.
_ANSWER: Final = 500


class Option(NamedTuple):
    """A candidate that may take a call.

    Attributes:
        at: Its place among the candidates.
        usd: What the call will cost; None where nobody knows.
        tier: Its quality.
    """

    at: int
    usd: Decimal | None
    tier: int

    @property
    def dearness(self) -> tuple[bool, Decimal, int]:
        """Sorts the cheapest first, and those without a price last."""
        return (self.usd is None, self.usd or Decimal(), self.at)


class Choice:
    """The models of one selector, and how one is chosen.

    Args:
        selector: The selector.

    Attributes:
        strategy: How the choice is made.
        names: The models' names; last that of the fallback, if there is one.
        models: The models, in the same order.
        fallback: Place of the fallback; None if there is none.
        budget_key: State key that mirrors what is left of the budget.
        judge: Says whether an answer will do.
        prices: What the candidates bring.

    Raises:
        PriceError: A candidate's price is none.
    """

    def __init__(self, selector: ModelSelectorNode) -> None:
        self._candidates = selector.candidates
        self.strategy = selector.strategy
        self.budget_key = selector.budget_key
        self.judge: Any = None if selector.judge is None else selector.judge.value
        self.names: list[str] = [each.name for each in selector.candidates]
        given: list[Any] = [each.model for each in selector.candidates]
        self.fallback: int | None = None
        other = selector.fallback_model
        if other is not None:
            self.fallback = len(given)
            given.append(other)
            self.names.append(other if isinstance(other, str) else other.name)
        self.models = Models(given)
        self.prices = table_of(selector.candidates)
        self._books: books.PriceBooks = books.default_prices()

    def price(self, at: int, usage: Usage, tier: str | None) -> Money | Unknown:
        """Return what a call of one of the models costs."""
        now = datetime.now(UTC)
        return quoted(self._books, self.names[at], Spent(usage, tier=tier), now, self.prices).money

    async def fitting(self, call: ModelCall) -> AsyncGenerator[Option]:
        """Return the candidates that take a call, the one that is preferred first.

        Adaptive selectors climb: after the cheapest, none is worse than one before.

        Raises:
            NoCandidateError: None does.
        """
        best = self.strategy == "quality_optimized"
        options = list(self._options(call))
        options.sort(key=lambda each: (-each.tier if best else 0, each.dearness))
        last: Option | None = None
        for each in options:
            is_worse = self.strategy == "adaptive" and last is not None and each.tier < last.tier
            if not is_worse and await self._holds(each, call):
                yield (last := each)
        if last is None:
            raise self._none(call, options)

    def _options(self, call: ModelCall) -> Iterator[Option]:
        """The candidates whose limit a prompt is within."""
        request, tier = call.request, service_tier(call.request)
        prompt = estimate_tokens(request)
        most: int | None = getattr(request.config, "max_output_tokens", None)
        usage = Usage(prompt=prompt, output=_ANSWER if most is None else min(most, _ANSWER))
        for at, each in enumerate(self._candidates):
            if each.max_tokens is not None and prompt > each.max_tokens:
                continue
            cost = self.price(at, usage, tier)
            usd = None if isinstance(cost, Unknown) else cost.usd
            yield Option(at, usd, each.quality_tier)

    async def _holds(self, option: Option, call: ModelCall) -> bool:
        condition = self._candidates[option.at].condition
        if condition is None:
            return True
        what, form = f"the condition of {self.names[option.at]}", "lambda ctx, request: ..."
        return bool(await said_by(call, what, form, condition.value, call.ctx, call.request))

    def _none(self, call: ModelCall, fitting: Sequence[Option]) -> NoCandidateError:
        fit = {each.at for each in fitting}
        reasons = [
            f"{each.name}: "
            + ("its condition does not hold" if at in fit else f"takes {each.max_tokens} tokens")
            for at, each in enumerate(self._candidates)
        ]
        return NoCandidateError(
            f"no model of agent {call.agent} takes this call",
            node=call.node or call.agent,
            found=f"{'; '.join(reasons)}; the prompt has about {estimate_tokens(call.request)}",
            help="give a candidate without a condition or a limit, or a fallback_model",
        )

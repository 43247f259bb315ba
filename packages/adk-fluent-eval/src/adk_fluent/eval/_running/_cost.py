"""What model calls cost, by the price book of a suite."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.eval._checks._same import told
from adk_fluent.eval._outcome import Tokens
from adk_fluent.protocol import Money, Unknown, Usage

if TYPE_CHECKING:
    from adk_fluent.protocol import PriceBook

#: The counts of ``usage_metadata`` that tell what was asked and answered.
_COUNTS: Final = ("prompt_token_count", "candidates_token_count", "thoughts_token_count")
_UNTOLD: Final = "does not say what its answer took"


def usage_of(metadata: Any) -> Usage | None:
    """What a model's ``usage_metadata`` tells; None if it tells no counts, or only their sum.

    A sum has no price: what is asked and what is answered cost differently.
    """
    if metadata is None or all(getattr(metadata, name, None) is None for name in _COUNTS):
        return None
    return Usage.from_genai(metadata)


class Cost:
    """What some model calls took, added up.

    Args:
        prices: What tokens cost; None leaves them without a price.

    Attributes:
        tokens: All of them.
        usd: US dollars; None once there was something without a price.
        unpriced: Why there is no price; empty if there is one.
        untold: Why `tokens` are not all; empty if they are.
    """

    def __init__(self, prices: PriceBook | None) -> None:
        self._prices = prices
        self.tokens = Tokens()
        self.usd: float | None = None if prices is None else 0.0
        self.unpriced = "there is no price book" if prices is None else ""
        self.untold = ""

    def add(self, model: str, usage: Usage | None, at: datetime | None = None) -> Tokens:
        """Add a call.

        Args:
            model: Who answered.
            usage: What it took; None if nobody says, and then there is no sum any more.
            at: When; None is now.

        Returns:
            Its tokens.
        """
        if usage is None:
            self.untold = self.untold or f"{f'model {model!r}' if model else 'a model'} {_UNTOLD}"
            self.unpriced = self.unpriced or self.untold
            self.usd = None
            return Tokens()
        tokens = Tokens(usage.prompt + usage.tool, usage.cached, usage.output, usage.thoughts)
        self.tokens += tokens
        if self._prices is not None:
            self._add_price(self._prices, model, usage, at or datetime.now(UTC))
        return tokens

    def _add_price(self, prices: PriceBook, model: str, usage: Usage, at: datetime) -> None:
        try:
            price: Any = prices.price(model, usage, at)
        except Exception as error:  # noqa: BLE001  # it is the user's: anything may happen
            price = Unknown(f"the price book raised {told(error)}")
        if not isinstance(price, Money):
            self.unpriced = self.unpriced or getattr(price, "reason", "it has no price")
            self.usd = None
        elif self.usd is not None:
            self.usd += float(price.usd)

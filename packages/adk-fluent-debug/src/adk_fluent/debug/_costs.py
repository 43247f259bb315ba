"""What the model calls of a recorded run cost: as was noted then, or by an installed price book."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from adk_fluent.debug._diff import COST
from adk_fluent.extend import provided
from adk_fluent.protocol import Money, Unknown

if TYPE_CHECKING:
    from adk_fluent.debug._interactions import LLMInteraction
    from adk_fluent.debug._run import RecordedRun
    from adk_fluent.protocol import AgentEvent

Data = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cost:
    """What something cost.

    Attributes:
        usd: What is known of it, in US dollars.
        unknown: Why the rest is not known; "" if all is.
    """

    usd: Decimal = Decimal(0)
    unknown: str = ""

    def __add__(self, other: Cost) -> Cost:
        """What both cost."""
        return Cost(self.usd + other.usd, self.unknown or other.unknown)

    def __str__(self) -> str:
        if self.unknown and not self.usd:
            return "unknown"
        return f"{'at least ' if self.unknown else ''}{Money(self.usd)}"


class Costs:
    """What that cost which was done in a recording.

    Args:
        recorded_at: When it was made, as in its metadata.
    """

    def __init__(self, recorded_at: str) -> None:
        try:
            made = datetime.fromisoformat(recorded_at)
        except ValueError:
            made = datetime.now(UTC)
        self._at = made if made.tzinfo else made.replace(tzinfo=UTC)

    @cached_property
    def _book(self) -> Any:
        for each in provided("price_books"):
            found: Any = each.object
            return found if hasattr(found, "price") else found()
        return None

    def are_noted(self, run: RecordedRun) -> bool:
        """Whether adk-fluent-cost has noted on the events of a run what its calls cost."""
        return any(COST in each.custom_metadata for each in run.events)

    def of_event(self, event: AgentEvent) -> Cost | None:
        """What was noted on an event; None if nothing was."""
        text = event.custom_metadata.get(COST)
        if text is None:
            return None
        try:
            records: Any = json.loads(text)
            costs = [_of_record(each) for each in cast("list[Data]", records)]
        except (TypeError, ValueError, KeyError, AttributeError, InvalidOperation):
            return Cost(unknown="what was noted cannot be read")
        return sum(costs[1:], costs[0]) if costs else None

    def of_call(self, call: LLMInteraction) -> Cost | None:
        """What an installed price book says of a call; None if there is none, or no tokens."""
        if self._book is None or call.usage is None:
            return None
        try:
            price: Any = self._book.price(call.model, call.usage, self._at)
        except Exception as error:  # noqa: BLE001  # somebody else's
            price = Unknown(f"the price book raised {type(error).__name__}: {error}")
        if isinstance(price, Money):
            return Cost(price.usd)
        return Cost(unknown=str(getattr(price, "reason", "no price")))


def _of_record(record: Data) -> Cost:
    if "unknown" in record:
        return Cost(unknown=str(record["unknown"]) or "no price")
    usd = Decimal(record["usd"])
    if not usd.is_finite():
        raise InvalidOperation(usd)
    return Cost(usd)

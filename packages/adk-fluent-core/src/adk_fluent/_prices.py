"""What tokens cost, by the price book of an installed layer or one that was given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent._registry import missing_layer, provided
from adk_fluent._texts import error_line
from adk_fluent.protocol import Money, Unknown

if TYPE_CHECKING:
    from datetime import datetime

    from adk_fluent.protocol import PriceBook, Usage


def price_book(given: Any = None) -> PriceBook | None:
    """Return a price book: the one that was given, or one of an installed layer.

    Args:
        given: A price book, or prices that the book of a layer is made of: rows by model, or a file
            of them; None is the layer's own.

    Returns:
        The price book; None if nothing was given and no layer has one.

    Raises:
        MissingLayerError: Prices were given that only `adk-fluent-cost` reads.
        Exception: What the layer says of prices that it cannot read.
    """
    if hasattr(given, "price"):
        return given
    for each in provided("price_books"):
        found: Any = each.object
        is_book = hasattr(found, "price")
        if given is None:
            return found if is_book else found()
        if not is_book:
            return found(given)
    if given is not None:
        raise missing_layer("cost", "reading prices=")
    return None


def price_of(book: PriceBook, model: str, usage: Usage, at: datetime) -> Money | Unknown:
    """Return what a price book says that a model call cost; of one that raises, why it is unknown.

    Args:
        book: The price book.
        model: The model that answered, as the provider names it.
        usage: The tokens of this one call.
        at: When it was made.
    """
    try:
        price: Any = book.price(model, usage, at)
    except Exception as error:  # noqa: BLE001  # somebody else's
        return Unknown(f"the price book raised {error_line(error)}")
    known = isinstance(price, Money | Unknown)
    return price if known else Unknown(str(getattr(price, "reason", "no price")))

"""The prices of genai-prices, if that is installed (extra ``prices``)."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from adk_fluent.cost._prices._ids import model_id
from adk_fluent.cost._prices._rates import MULTIPLIERS
from adk_fluent.errors import UsageError
from adk_fluent.protocol import Money, Unknown

if TYPE_CHECKING:
    from adk_fluent.protocol import Usage


class GenaiPrices:
    """The prices of genai-prices, by pydantic: some fifty providers, offline.

    Attributes:
        source: What reports call it.
    """

    source: str = "genai-prices"

    def __init__(self) -> None:
        """Make the book; the library is imported when the first price is asked for.

        Raises:
            UsageError: The library is not installed.
        """
        if not _is_there():
            raise UsageError(
                "GenaiPrices needs genai-prices", help="pip install 'adk-fluent-cost[prices]'"
            )

    def price(
        self, model: str, usage: Usage, at: datetime, *, tier: str | None = None
    ) -> Money | Unknown:
        """Return what one model call cost; see `adk_fluent.protocol.PriceBook`."""
        times = MULTIPLIERS.get(tier or "standard")
        if times is None:
            return Unknown(f"no price for the service tier {tier!r}")
        library: Any = import_module("genai_prices")
        name = model_id(model)
        tokens = library.Usage(
            input_tokens=usage.prompt + usage.tool,
            output_tokens=usage.output + usage.thoughts,
            cache_read_tokens=usage.cached,
            cache_write_tokens=usage.cache_write,
            input_audio_tokens=usage.audio,
            cache_audio_read_tokens=usage.cached_audio,
            output_audio_tokens=usage.audio_output,
            output_image_tokens=usage.image_output,
        )
        moment = at if at.tzinfo else at.replace(tzinfo=UTC)
        try:
            made = library.calc_price(
                tokens, name.name, provider_id=name.provider, genai_request_timestamp=moment
            )
        except (LookupError, ValueError) as error:
            return Unknown(f"no price of {model!r}: {error}")
        return Money(made.total_price * times)


def _is_there() -> bool:
    return find_spec("genai_prices") is not None


def installed() -> tuple[GenaiPrices, ...]:
    """Return the book, if its library is installed."""
    return (GenaiPrices(),) if _is_there() else ()

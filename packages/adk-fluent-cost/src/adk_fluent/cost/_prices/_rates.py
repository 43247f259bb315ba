"""What one model's tokens cost, and what a call of so many comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.cost._errors import PriceError
from adk_fluent.errors import nearest_name
from adk_fluent.extend import must_be
from adk_fluent.protocol import Money, Unknown, Usage

if TYPE_CHECKING:
    from datetime import date


#: Nothing is near that price for a million tokens: it is meant for one token, or for all of them.
MOST: Final = Decimal(5_000)
LEAST: Final = Decimal("0.0001")
_MILLION: Final = Decimal(1_000_000)
#: Service tiers of Gemini, as multiples of the standard price.
MULTIPLIERS: Final = {
    "batch": Decimal("0.5"),
    "flex": Decimal("0.5"),
    "priority": Decimal("1.8"),
    "standard": Decimal(1),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Prices in USD for a million tokens of each kind; what is None has the price of another one.

    Attributes:
        input: Prompt tokens, and those of built-in tools' results.
        output: Answer tokens.
        cached: Prompt tokens read from a cache.
        cache_write: Prompt tokens written to a cache.
        thoughts: Thinking tokens; None is `output`.
        audio: Audio in a prompt; None is `input`.
        cached_audio: Audio read from a cache; None is `cached`, or else `audio`.
        audio_output: Audio in an answer; None is `output`.
        image_output: Images in an answer; None is `output`.
    """

    input: Decimal
    output: Decimal
    cached: Decimal | None = None
    cache_write: Decimal | None = None
    thoughts: Decimal | None = None
    audio: Decimal | None = None
    cached_audio: Decimal | None = None
    audio_output: Decimal | None = None
    image_output: Decimal | None = None

    def price(self, usage: Usage) -> Decimal:
        """Return what so many tokens cost, in USD."""
        if is_plain(usage):
            asked = usage.prompt + usage.tool
            return (self.input * asked + self.output * usage.output) / _MILLION
        cached = self.input if self.cached is None else self.cached
        audio = self.input if self.audio is None else self.audio
        cached_audio = self.cached_audio
        if cached_audio is None:
            cached_audio = audio if self.cached is None else cached
        plain_audio = max(0, usage.audio - usage.cached_audio)
        plain_cached = max(0, usage.cached - usage.cached_audio)
        special = usage.cached + plain_audio + usage.cache_write
        plain_output = max(0, usage.output - usage.audio_output - usage.image_output)
        total = (
            self.input * (max(0, usage.prompt - special) + usage.tool)
            + cached * plain_cached
            + audio * plain_audio
            + cached_audio * usage.cached_audio
            + self.output * plain_output
        )
        for tokens, rate, otherwise in (
            (usage.cache_write, self.cache_write, self.input),
            (usage.thoughts, self.thoughts, self.output),
            (usage.audio_output, self.audio_output, self.output),
            (usage.image_output, self.image_output, self.output),
        ):
            if tokens:
                total += (otherwise if rate is None else rate) * tokens
        return total / _MILLION


def is_plain(usage: Usage) -> bool:
    """Return whether no tokens have a price of their own, as those from a cache have."""
    asked = usage.cached or usage.audio or usage.cache_write
    return not (asked or usage.thoughts or usage.audio_output or usage.image_output)


#: The kinds of tokens that a row of prices may have.
KINDS: Final = tuple(each.name for each in fields(Rates))


@dataclass(frozen=True, slots=True)
class Price:
    """The prices of one model from a day on.

    Attributes:
        rates: The prices.
        since: The first day; None is always.
        above: Prices of calls with more prompt tokens than that, which hold for all their tokens.
        multipliers: Service tiers that are cheaper or dearer, as multiples.
    """

    rates: Rates
    since: date | None = None
    above: tuple[tuple[int, Rates], ...] = ()
    multipliers: Mapping[str, Decimal] = field(default_factory=lambda: MULTIPLIERS, hash=False)

    def price(self, usage: Usage, tier: str | None) -> Money | Unknown:
        """Return what one call costs."""
        times = self.multipliers.get(tier or "standard")
        if times is None:
            return Unknown(f"no price for the service tier {tier!r}")
        rates = self.rates
        for threshold, dearer in self.above:
            if usage.prompt + usage.tool > threshold:
                rates = dearer
        return Money(rates.price(usage) * times)


def at_day(prices: tuple[Price, ...], day: date) -> Price | None:
    """Return the price that holds on a day; rows are sorted by their first day."""
    return next((e for e in reversed(prices) if e.since is None or e.since <= day), None)


# --- what people write ---------------------------------------------------------------------------


def rates_of(row: object, where: str) -> Rates:
    """Return the prices that a mapping of kinds to numbers gives.

    Args:
        row: Such as ``{"input": 0.3, "output": 2.5, "cached": 0.03}``, USD per million tokens.
        where: What it belongs to, for errors.

    Raises:
        PriceError: A kind does not exist or is missing, or a number is no such price.
    """
    what = f"{where}: prices are a mapping of kinds of tokens to USD per million"
    must_be(Mapping, row, what, 'such as {"input": 0.30, "output": 2.50}', PriceError)
    given = cast("Mapping[str, Any]", row)
    for kind in given:
        if kind not in KINDS:
            near = nearest_name(str(kind), KINDS)
            raise PriceError(
                f"{where}: there is no kind of tokens {kind!r}",
                help=f"did you mean {near!r}?" if near else f"kinds are {', '.join(KINDS)}",
            )
    for kind in ("input", "output"):
        if kind not in given:
            raise PriceError(f"{where}: the price {kind!r} is missing", help="0 is free of charge")
    return Rates(**{kind: amount(value, f"{where}, {kind}") for kind, value in given.items()})


def number(value: Any, what: str, help: str | None = None) -> Decimal:
    """Return a number that is 0 or more, exact.

    Args:
        value: The number, also as text.
        what: What it is, for errors.
        help: How it is written, for errors.

    Raises:
        PriceError: It is none.
    """
    must_be(int | float | str | Decimal, value, f"{what} is a number", help, PriceError)
    try:
        made = Decimal(str(value))
    except InvalidOperation:
        raise PriceError(f"{what} is a number", found=repr(value)[:80], help=help) from None
    if not made.is_finite() or made < 0:
        raise PriceError(f"{what} is 0 or more", found=str(value)[:80], help=help)
    return made


def amount(value: Any, where: str) -> Decimal:
    """Return a price for a million tokens.

    Raises:
        PriceError: It is no such price: negative, or meant for another number of tokens.
    """
    made = number(value, f"{where}: a price")
    if made > MOST:
        raise PriceError(
            f"{where}: {made} USD for a million tokens is no price",
            found=f"{made} for a million, or {made / 1000} if it is the price of a billion",
            help="give USD for a million tokens, such as 0.30",
        )
    if 0 < made < LEAST:
        million, thousand = ((made * each).normalize() for each in (_MILLION, 1000))
        raise PriceError(
            f"{where}: {made} USD for a million tokens is no price",
            found=f"{made} for a million, or {million:f} if it is the price of one token, or "
            f"{thousand:f} if it is that of a thousand",
            help="give USD for a million tokens, such as 0.30",
        )
    return made

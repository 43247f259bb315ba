"""Price books: the built-in table, tables of the user's own, and several books in order."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from typing import Any, Final, NamedTuple, TypeAlias, cast

from adk_fluent.cost._errors import PriceError
from adk_fluent.cost._prices._ids import model_id
from adk_fluent.cost._prices._rates import MULTIPLIERS, Price, Rates, at_day, number, rates_of
from adk_fluent.cost._prices._table import CHECKED, ROWS
from adk_fluent.errors import UsageError
from adk_fluent.extend import describe, must_be
from adk_fluent.protocol import Money, PriceBook, Unknown, Usage

#: What a call costs, in so far as that is known.
Cost: TypeAlias = Money | Unknown
#: What may be given as prices: rows by model, a file of them, a price book, or several in order.
Prices: TypeAlias = "PriceBook | Mapping[str, Any] | str | os.PathLike[str] | Iterable[PriceBook]"

_MOST_TIMES: Final = 100
#: A price that is off from the known one by more is meant for another number of tokens.
_OFF: Final = 100
_SAMPLES: Final = {"input": Usage(prompt=100_000), "output": Usage(output=100_000)}
_EXTRA: Final = frozenset({"above", "since", "tiers"})
_HELP: Final = 'prices={"model": {"input": 0.30, "output": 2.50}}, a YAML file of them, or books'


class Quote(NamedTuple):
    """A price, and who says so.

    Attributes:
        money: The amount, or why there is none.
        source: The price book that knows it; "" when none does.
    """

    money: Money | Unknown
    source: str = ""


#: What `.mock(...)`, and a ScriptedModel that is not told which model it stands for, are called.
_STAND_IN: Final = "scripted"
_Rows: TypeAlias = tuple[Price, ...]


class PriceTable:
    """Prices of your own: models with USD per million tokens of each kind.

    ::

        PriceTable({"our-model": {"input": 0.20, "output": 0.80, "cached": 0.02}})

    A row may also have ``above`` (prompt tokens to prices that hold beyond them), ``tiers``
    (service tiers to multiples of the price) and ``since`` (the first day); several rows of one
    model, each with another day, stand in a list. Names are found as they are written, and by the
    other names of the same model.

    Attributes:
        source: What reports call it.
    """

    def __init__(self, rows: Mapping[str, Any], *, source: str = "table") -> None:
        """Make a table.

        Args:
            rows: The prices by model.
            source: What reports call it.

        Raises:
            PriceError: A row is none, or off by orders of magnitude from the price that the
                built-in table knows; the message names the model and the field.
        """
        help = 'PriceTable({"model": {"input": 0.30, "output": 2.50}})'
        what = "PriceTable takes a mapping of models to prices"
        must_be(Mapping, rows, what, help, PriceError)
        must_be(str, source, "PriceTable(source=...) takes text", error=PriceError)
        self.source = source
        self._rows: dict[str, _Rows] = {}
        for model, given in rows.items():
            text = model if str(model).strip() else None
            must_be(str, text, "a model's name is text", error=PriceError)
            self._rows[model] = _prices_of(model, given)
            for each in self._rows[model]:
                check_size(model, each, BuiltInPrices())
        self._by_name: dict[tuple[str | None, str], _Rows] = {}
        for model, each in self._rows.items():
            name = model_id(model)
            provider = name.provider if "/" in model else None  # else it is of any
            self._by_name[provider, name.name] = each

    @classmethod
    def from_yaml(cls, path: str | os.PathLike[str]) -> PriceTable:
        """Read a table from a YAML file with the same rows.

        Raises:
            PriceFileError: It cannot be read, or a row is invalid; it names line and field.
            PriceError: It is no path.
        """
        what = "PriceTable.from_yaml takes the path of a file"
        must_be(str | os.PathLike, path, what, error=PriceError)
        from pathlib import Path  # noqa: PLC0415  # slow to import

        from adk_fluent.cost._prices._file import read_rows  # noqa: PLC0415  # seldom needed

        return cls(read_rows(Path(path), cls), source=Path(path).name)

    def _row(self, model: str, day: date) -> Price | Unknown:
        rows = self._rows.get(model)
        if rows is None:
            name = model_id(model)
            keys = product((name.name, name.base), (name.provider, None))
            found = (self._by_name.get((provider, each)) for each, provider in keys)
            rows = next(filter(None, found), None)
        return _row_at(rows, model, day)

    def price(self, model: str, usage: Usage, at: datetime, *, tier: str | None = None) -> Cost:
        """Return what one model call cost; see `adk_fluent.protocol.PriceBook`."""
        row = self._row(model, at.date())
        return row if isinstance(row, Unknown) else row.price(usage, tier)

    def __repr__(self) -> str:
        return f"PriceTable({len(self._rows)} models, source={self.source!r})"


class BuiltInPrices:
    """The prices of Gemini and Gemma that this wheel brings; they need no network.

    Attributes:
        source: What reports call it, with the day on which it was checked.
    """

    source: str = f"built-in {CHECKED.isoformat()}"

    def _row(self, model: str, day: date) -> Price | Unknown:
        name = model_id(model)
        if name.provider not in (None, "google"):
            return Unknown(f"no price of {model!r}: the table has Google's models only")
        rows = _built_in().get(name.name) or _built_in().get(name.base)
        return _row_at(rows, model, day)

    def price(self, model: str, usage: Usage, at: datetime, *, tier: str | None = None) -> Cost:
        """Return what one model call cost; see `adk_fluent.protocol.PriceBook`."""
        if model == _STAND_IN:
            return Money()
        row = self._row(model, at.date())
        return row if isinstance(row, Unknown) else row.price(usage, tier)

    def __repr__(self) -> str:
        return f"BuiltInPrices({CHECKED.isoformat()})"


@cache
def _built_in() -> dict[str, _Rows]:
    return {name: _prices_of(name, rows) for name, rows in ROWS.items()}


def _row_at(rows: _Rows | None, model: str, day: date) -> Price | Unknown:
    if rows is None:
        return Unknown(f"no price of {model!r}")
    return at_day(rows, day) or Unknown(f"no price of {model!r} on {day.isoformat()}")


def _prices_of(model: str, given: Any) -> _Rows:
    rows = cast("list[Any]", given) if given and isinstance(given, list | tuple) else [given]
    made = [price_of(each, repr(model)) for each in rows]
    if len({each.since for each in made}) < len(made):
        raise PriceError(
            f"{model!r} has several prices for the same day",
            help="give each row another 'since', the first one none",
        )
    return tuple(sorted(made, key=lambda each: each.since or date.min))


def check_size(model: str, price: Price, books: PriceBook) -> None:
    """Refuse a price that is off by orders of magnitude from the one that is known.

    Args:
        model: The model.
        price: Its price.
        books: What is known.

    Raises:
        PriceError: It is meant for another number of tokens; the message has both readings.
    """
    at = datetime.combine(price.since or datetime.now(UTC).date(), time(), UTC)
    for kind, usage in _SAMPLES.items():
        given, known = price.price(usage, None), books.price(model, usage, at)
        if not (isinstance(given, Money) and isinstance(known, Money) and given.usd and known.usd):
            continue
        times, read, right = given.usd / known.usd, float(given.usd * 10), float(known.usd * 10)
        if not 1 / Decimal(_OFF) <= times <= _OFF:
            meant, factor = ("a thousand", 1000) if times < 1 else ("a billion", 0.001)
            raise PriceError(
                f"{model!r}, {kind}: this is {times:.4g} times what is known of it",
                found=f"${read:g} for a million tokens, or ${read * factor:g} if it is the price "
                f"of {meant}; it is known to be ${right:g}",
                help='prices={"input": ..., "output": ...} is USD per million tokens',
            )


def price_of(given: Any, where: str) -> Price:
    """Return the price that one row gives.

    Args:
        given: The row.
        where: What it belongs to, for errors.

    Raises:
        PriceError: It is none.
    """
    if not isinstance(given, Mapping):
        return Price(rates_of(given, where))
    row = cast("Mapping[str, Any]", given)
    rates = {kind: each for kind, each in row.items() if kind not in _EXTRA}
    above: Any = row.get("above") or {}
    tiers: Any = row.get("tiers") or {}
    for field, value in (("above", above), ("tiers", tiers)):
        must_be(Mapping, value, f"{where}, {field}: this is a mapping", error=PriceError)
    thresholds: dict[int, Rates] = {}
    for threshold, dearer in sorted(above.items(), key=lambda each: _tokens(each[0], where)):
        here = f"{where}, above {threshold}"
        must_be(Mapping, dearer, f"{here}: this is a mapping", error=PriceError)
        thresholds[threshold] = rates_of({**rates, **dearer}, here)
    times = {str(tier): _multiple(each, f"{where}, tiers, {tier}") for tier, each in tiers.items()}
    since, dearest = _day(row.get("since"), where), tuple(thresholds.items())
    return Price(rates_of(rates, where), since, dearest, {**MULTIPLIERS, **times})


def _tokens(value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise PriceError(f"{where}, above: prompt tokens are a number", found=repr(value))
    return value


def _multiple(value: object, where: str) -> Decimal:
    made = number(value, f"{where}: a price")
    if made > _MOST_TIMES:
        raise PriceError(f"{where}: this is no multiple of a price", found=str(made)[:40])
    return made


def _day(value: object, where: str) -> date | None:
    if value is None or (isinstance(value, date) and not isinstance(value, datetime)):
        return value
    try:
        return date.fromisoformat(cast("str", value))
    except (TypeError, ValueError):
        raise PriceError(
            f"{where}, since: this is no day", found=repr(value)[:40], help="such as 2026-12-01"
        ) from None


class PriceBooks:
    """Several price books: the first that knows a price has it.

    Attributes:
        books: The books, in order.
        source: What they are called.
    """

    def __init__(self, books: Iterable[PriceBook]) -> None:
        """Make one of several.

        Args:
            books: The books, in order.

        Raises:
            PriceError: One is none.
        """
        must_be(Iterable, books, "PriceBooks takes price books", error=PriceError)
        self.books: tuple[PriceBook, ...] = tuple(books)
        for each in self.books:
            if isinstance(each, type) or not callable(getattr(each, "price", None)):
                raise PriceError("PriceBooks takes price books", found=describe(each), help=_HELP)
        self._asked = [(each.price, source_of(each)) for each in self.books]
        self.source: str = ", ".join(source for _, source in self._asked)

    def with_own(self, book: PriceBook) -> PriceBooks:
        """Return the same books with one more, which is asked before the default ones."""
        default = default_books()
        own = [each for each in self.books if each not in default]
        return PriceBooks([*own, book, *default])

    def price(self, model: str, usage: Usage, at: datetime, *, tier: str | None = None) -> Cost:
        """Return what one model call cost; see `adk_fluent.protocol.PriceBook`."""
        return self.quote(model, usage, at, tier=tier).money

    def quote(self, model: str, usage: Usage, at: datetime, *, tier: str | None = None) -> Quote:
        """Return what one model call cost, and which book says so."""
        unknown: Unknown | None = None
        for price, source in self._asked:
            try:
                made: Any = price(model, usage, at, tier=tier)
            except Exception as error:  # noqa: BLE001  # an answer that is paid for is not lost
                return _failed(source, model, f"raised {type(error).__name__}: {error}")
            if isinstance(made, Money):
                return Quote(made, source)
            if not isinstance(made, Unknown):
                return _failed(source, model, f"gives {describe(made)}")
            unknown = unknown or made
        return Quote(unknown or Unknown(f"no price of {model!r}"))

    def of_day(self, model: str, day: date, tier: str | None) -> tuple[Price | None, str]:
        """Return the prices that a model has all day, and which book says so.

        None where there are none, or a book has to be asked each time: others than tables may say
        another price for each call, and whoever has made a class of their own may say anything.
        """
        if type(self) is not PriceBooks:
            return None, ""
        for book, (_, source) in zip(self.books, self._asked, strict=True):
            if type(book) not in (PriceTable, BuiltInPrices):
                break
            table = cast("PriceTable | BuiltInPrices", book)
            row = table._row(model, day)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            if isinstance(row, Price) and (tier or "standard") in row.multipliers:
                return row, source
        return None, ""


def _failed(source: str, model: str, how: str) -> Quote:
    """No price: what books behind a broken one say may be another one."""
    return Quote(Unknown(f"no price of {model!r}: the price book {source} {how}"))


def source_of(book: PriceBook) -> str:
    """Return what reports call a price book."""
    said: object = getattr(book, "source", None)
    return said if isinstance(said, str) and said else type(book).__name__


@cache
def default_books() -> tuple[PriceBook, ...]:
    """Return what is asked after the user's own prices: the table here, then genai-prices."""
    return (BuiltInPrices(), *([GenaiPrices()] if find_spec("genai_prices") else []))


def default_prices() -> PriceBooks:
    """Return the books that are asked where no prices are given: built in, then genai-prices."""
    return PriceBooks(default_books())


def price_books(given: Prices | None = None) -> PriceBooks:
    """Return the books that prices stand for; what they do not know, the default ones may.

    Raises:
        PriceError: They are none.
    """
    if isinstance(given, PriceBooks):
        return given
    own: list[Any] = list(given) if isinstance(given, Iterable) else [given]
    if isinstance(given, str | os.PathLike):
        own = [PriceTable.from_yaml(given)]
    elif isinstance(given, Mapping):
        own = [PriceTable(cast("Mapping[str, Any]", given))]
    return PriceBooks([*([] if given is None else own), *default_books()])


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
        if find_spec("genai_prices") is None:
            help = "pip install 'adk-fluent-cost[prices]'"
            raise UsageError("GenaiPrices needs genai-prices", help=help)

    def price(self, model: str, usage: Usage, at: datetime, *, tier: str | None = None) -> Cost:
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

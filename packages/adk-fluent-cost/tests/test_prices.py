"""Prices: the built-in table, tables of one's own, names of models, kinds of tokens, and tiers."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.cost import (
    BuiltInPrices,
    Money,
    PriceBooks,
    PriceError,
    PriceFileError,
    PriceTable,
    Unknown,
)
from adk_fluent.cost._prices._books import price_books
from adk_fluent.cost._prices._ids import model_id
from adk_fluent.cost._prices._table import CHECKED, ROWS
from adk_fluent.cost._requests import Spent, quoted
from adk_fluent.protocol import Usage

if TYPE_CHECKING:
    from pathlib import Path

    from adk_fluent.protocol import PriceBook

AT = datetime(2026, 11, 27, tzinfo=UTC)
MILLION = 1_000_000
OWN = {"input": 0.2, "output": 0.8}


def usd(book: PriceBook, model: str, tier: str | None = None, /, **tokens: int) -> Decimal | None:
    made = book.price(model, Usage(**tokens), AT, tier=tier)
    return None if isinstance(made, Unknown) else made.usd


# --- the built-in table --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tokens", "cost"),
    [
        ({"prompt": MILLION}, "0.30"),
        ({"output": MILLION}, "2.50"),
        ({"thoughts": MILLION}, "2.50"),
        ({"tool": MILLION}, "0.30"),
        ({"prompt": MILLION, "cached": MILLION}, "0.03"),
        ({"prompt": MILLION, "audio": MILLION}, "1"),
        (
            {"prompt": MILLION, "audio": MILLION, "cached": MILLION, "cached_audio": MILLION},
            "0.10",
        ),
        ({"prompt": MILLION, "audio": 400_000, "cached": 200_000}, "0.526"),
    ],
    ids=str,
)
def test_each_kind_of_token_has_its_price(tokens: dict[str, int], cost: str) -> None:
    assert usd(BuiltInPrices(), "gemini-2.5-flash", **tokens) == Decimal(cost)


def test_images_in_answers_have_their_own_price() -> None:
    made = usd(BuiltInPrices(), "gemini-2.5-flash-image", output=MILLION, image_output=400_000)
    assert made == Decimal("0.6") * Decimal("2.5") + Decimal("0.4") * 30


def test_a_long_prompt_moves_all_its_tokens_into_the_dearer_tier() -> None:
    book = BuiltInPrices()
    assert usd(book, "gemini-2.5-pro", prompt=200_000) == Decimal("0.25")
    assert usd(book, "gemini-2.5-pro", prompt=200_001) == Decimal("0.5000025")
    assert usd(book, "gemini-2.5-pro", prompt=200_001, cached=200_001) == Decimal("0.05000025")


@pytest.mark.parametrize(
    ("tier", "times"), [("flex", "0.5"), ("batch", "0.5"), ("priority", "1.8"), ("standard", "1")]
)
def test_service_tiers_multiply(tier: str, times: str) -> None:
    made = usd(BuiltInPrices(), "gemini-2.5-flash", tier, output=MILLION)
    assert made == Decimal("2.5") * Decimal(times)


def test_an_unknown_tier_has_no_price() -> None:
    made = BuiltInPrices().price("gemini-2.5-flash", Usage(prompt=1), AT, tier="turbo")
    assert made == Unknown("no price for the service tier 'turbo'")


def test_a_price_holds_from_its_first_day() -> None:
    tokens = Usage(prompt=MILLION)
    book = BuiltInPrices()
    assert book.price("gemini-3.8-flash", tokens, AT) == Money.of("0.75")
    assert book.price("gemini-3.8-flash", tokens, datetime(2027, 1, 1, tzinfo=UTC)) == Money.of(
        "1.5"
    )


def test_gemma_is_free_and_an_unknown_model_is_not() -> None:
    assert usd(BuiltInPrices(), "gemma-3-27b-it", prompt=MILLION) == 0
    assert BuiltInPrices().price("llama-9", Usage(prompt=1), AT) == Unknown("no price of 'llama-9'")


@pytest.mark.parametrize(
    "name", ["openai/scripted", "models/scripted", "scripted-001", " scripted"]
)
def test_only_the_stand_in_itself_is_free(name: str) -> None:
    assert isinstance(BuiltInPrices().price(name, Usage(prompt=1), AT), Unknown)
    for tier in (None, "off-peak"):
        assert BuiltInPrices().price("scripted", Usage(prompt=1), AT, tier=tier) == Money()


def test_the_built_in_table_is_no_table_of_ones_own() -> None:
    assert BuiltInPrices.source == BuiltInPrices().source == f"built-in {CHECKED}"
    assert repr(BuiltInPrices()) == f"BuiltInPrices({CHECKED})"
    assert not hasattr(BuiltInPrices, "from_yaml")
    assert not hasattr(PriceTable, "row")


def test_an_unknown_price_says_why_by_the_name_that_was_written() -> None:
    model = "openai/our-model"
    why = f"no price of {model!r}: the table has Google's models only"
    assert BuiltInPrices().price(model, Usage(prompt=1), AT) == Unknown(why)
    spent = Spent(Usage(prompt=1), served="our-model-2026-01")
    assert quoted(PriceBooks([BuiltInPrices()]), model, spent, AT).money == Unknown(why)


def test_the_table_agrees_with_genai_prices() -> None:
    library = pytest.importorskip("genai_prices")
    tokens = Usage(prompt=1000, cached=200, audio=100, cached_audio=50, output=300, thoughts=40)
    from adk_fluent.cost import GenaiPrices

    for model in ROWS:
        if model.startswith("gemini"):
            assert usd(BuiltInPrices(), model, **_fields(tokens)) == usd(
                GenaiPrices(), model, **_fields(tokens)
            ), model
    assert usd(GenaiPrices(), "openai/gpt-4o", prompt=MILLION) == Decimal("2.5")
    assert isinstance(GenaiPrices().price("llama-9", Usage(prompt=1), AT), Unknown)
    assert library


def _fields(usage: Usage) -> dict[str, int]:
    names = ("prompt", "cached", "audio", "cached_audio", "output", "thoughts")
    return {name: getattr(usage, name) for name in names}


# --- names of models -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "gemini-2.5-flash",
        "models/gemini-2.5-flash",
        "publishers/google/models/gemini-2.5-flash",
        "projects/p/locations/us-central1/publishers/google/models/gemini-2.5-flash",
        "vertex_ai/gemini-2.5-flash",
        "gemini/gemini-2.5-flash",
        "apigee/gemini-2.5-flash",
        "apigee/v1/gemini-2.5-flash",
        "apigee/vertex_ai/v1beta/gemini-2.5-flash",
        "gemini-2.5-flash-001",
        "gemini-2.5-flash@default",
        "gemini-2.5-flash-preview-09-2025",
    ],
)
def test_a_model_has_one_price_under_all_its_names(name: str) -> None:
    assert usd(BuiltInPrices(), name, prompt=MILLION) == Decimal("0.30")


@pytest.mark.parametrize(
    "name",
    [
        "openrouter/google/gemini-2.5-flash",
        "gemini-2.5-flash-preview-tts",
        "projects/p/locations/l/endpoints/123",
        "tunedModels/mine",
    ],
)
def test_what_another_provider_sells_has_another_price(name: str) -> None:
    assert usd(BuiltInPrices(), name, prompt=MILLION) is None


def test_the_provider_is_known_by_the_name() -> None:
    assert model_id("openai/gpt-5").provider == "openai"
    assert model_id("claude-haiku-4-5").provider == "anthropic"
    assert model_id("bedrock/anthropic.claude-v2").name == "anthropic.claude-v2"
    assert model_id("projects/p/locations/l/publishers/anthropic/models/c").provider == "anthropic"
    assert model_id("house-model").provider is None


# --- tables of one's own -------------------------------------------------------------------------


def test_a_table_has_prices_of_models() -> None:
    rows = {
        "house": {**OWN, "cached": "0.02", "tiers": {"turbo": 3}, "above": {1000: {"input": 1}}},
        "dated": [{**OWN}, {"input": 5, "output": 5, "since": "2026-11-27"}],
    }
    book = PriceTable(rows)
    assert usd(book, "house", prompt=1000) == Decimal("0.0002")
    assert usd(book, "models/house", prompt=1001) == Decimal("0.001001")
    assert usd(book, "house", "turbo", prompt=1000) == Decimal("0.0006")
    assert usd(book, "house", prompt=100, cached=100) == Decimal("0.000002")
    assert usd(book, "dated", prompt=MILLION) == 5
    assert usd(book, "absent", prompt=1) is None


def test_a_row_with_a_provider_is_no_price_of_another_one() -> None:
    book = PriceTable({"azure/gpt-5": OWN, "gemini/gemini-9": OWN, "house": OWN})
    assert usd(book, "azure/gpt-5-001", prompt=MILLION) == Decimal("0.2")
    assert usd(book, "openai/gpt-5", prompt=MILLION) is None
    assert usd(book, "gpt-5", prompt=MILLION) is None
    assert usd(book, "gemini-9", prompt=MILLION) == Decimal("0.2")
    assert usd(book, "openai/house", prompt=MILLION) == Decimal("0.2")  # a row without one is any's


def test_own_prices_come_before_the_built_in_ones() -> None:
    books = price_books({"gemini-2.5-flash": OWN})
    quote = books.quote("gemini-2.5-flash", Usage(prompt=MILLION), AT)
    assert (quote.money, quote.source) == (Money.of("0.2"), "table")
    assert books.quote("gemini-2.5-pro", Usage(prompt=1), AT).source.startswith("built-in")
    assert isinstance(books.price("llama-9", Usage(prompt=1), AT), Unknown)
    both = price_books([PriceTable({"a": OWN}, source="first"), PriceTable({"a": OWN})])
    assert both.quote("a", Usage(), AT).source == "first"
    assert price_books(both) is both
    assert PriceBooks([]).price("a", Usage(), AT) == Unknown("no price of 'a'")
    none: Any = [3]
    a_class: Any = [PriceTable]
    for each in (none, a_class):
        with pytest.raises(PriceError, match="PriceBooks takes price books"):
            PriceBooks(each)
    with pytest.raises(PriceError, match="source="):
        PriceTable({"a": OWN}, source=none)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"input": -1, "output": 1}, "'m', input: a price is 0 or more"),
        ({"input": float("nan"), "output": 1}, "'m', input: a price is 0 or more"),
        ({"input": "cheap", "output": 1}, "'m', input: a price is a number"),
        ({"input": True, "output": 1}, "'m', input: a price is a number"),
        ({"input": 1, "output": 90_000}, "'m', output: 90000 USD for a million tokens is no price"),
        ({"input": 3e-7, "output": 1}, "or 0.3 if it is the price of one token"),
        ({"inptu": 1, "output": 1}, "did you mean 'input'?"),
        ({"input": 1}, "the price 'output' is missing"),
        ([], "'m': prices are a mapping of kinds of tokens"),
        ([OWN, OWN], "several prices for the same day"),
        ({**OWN, "since": "soon"}, "'m', since: this is no day"),
        ({**OWN, "above": {"many": OWN}}, "'m', above: prompt tokens are a number"),
        ({**OWN, "above": {1000: 5}}, "'m', above 1000: this is a mapping"),
        ({**OWN, "tiers": [1]}, "'m', tiers: this is a mapping"),
        ({**OWN, "tiers": {"flex": 1e9}}, "'m', tiers, flex: this is no multiple"),
        ({**OWN, "tiers": {"flex": -2}}, "'m', tiers, flex: a price is 0 or more"),
        (0.3, "prices are a mapping"),
    ],
    ids=str,
)
def test_what_is_no_price_is_refused(row: Any, says: str) -> None:
    with pytest.raises(PriceError) as caught:
        PriceTable({"m": row})
    assert says in str(caught.value)


@pytest.mark.parametrize("prices", [5, [5], {"": OWN}, {"m": 5}])
def test_what_are_no_prices_is_refused(prices: Any) -> None:
    with pytest.raises(PriceError):
        price_books(prices)


# --- files ---------------------------------------------------------------------------------------


def test_a_file_has_the_same_rows(tmp_path: Path) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text(
        "house: {input: 0.2, output: 0.8}\nother:\n  - {input: 1, output: 1}\n"
        "  - {input: 2, output: 2, since: 2026-11-01}\n"
    )
    quote = price_books(path).quote("house", Usage(prompt=MILLION), AT)
    assert (quote.money, quote.source) == (Money.of("0.2"), "prices.yaml")
    assert usd(PriceTable.from_yaml(path), "other", prompt=MILLION) == 2


@pytest.mark.parametrize(
    ("text", "says", "place"),
    [
        ("a:\n  input: 1\n  output: -2\n", "'a', output: a price is 0 or more", ":3 (a.output)"),
        ("a: {input: 1, output: 1}\nb:\n  input: 1\n", "'b': the price 'output'", ":2 (b.output)"),
        ("a:\n  input: 1\n  output: 1\n  outptu: 1\n", "kind of tokens", ":4 (a.outptu)"),
        (
            '"a: b, c":\n  input: 1\n  output: 1\n  above:\n    10:\n      input: -1\n',
            "'a: b, c', above 10, input",
            ":6 (['a: b, c'].above['10'].input)",
        ),
        ("a: {input: 1, output: 1}\na: {input: 1, output: 1}\n", "duplicate key 'a'", ":2"),
        ("a:\n  input: 1\n  input: 3\n  output: 1\n", "duplicate key 'input'", ":3"),
        ("1: {input: 1, output: 1}\n", "a model's name is text", ":1 (['1'])"),
        ("a: [1,\n", "invalid YAML", ":2"),
        ("- a\n", "has no prices", ":1"),
        ("", "has no prices", ""),
        ("a: !!python/object:os.system {}\n", "invalid YAML", ":1"),
        ("a: [{input: 1, output: 1}, {input: 2, output: 2}]\n", "for the same day", ":1 (a)"),
        (
            "gemini-2.5-flash:\n  input: 0.30\n  output: 0.0025\n",
            "$0.0025 for a million tokens, or $2.5 if it is the price of a thousand",
            ":3 (['gemini-2.5-flash'].output)",
        ),
    ],
)
def test_a_broken_file_is_named_with_line_and_field(
    tmp_path: Path, text: str, says: str, place: str
) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text(text)
    with pytest.raises(PriceFileError) as caught:
        PriceTable.from_yaml(path)
    assert says in str(caught.value)
    assert f"prices.yaml{place}" in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PriceFileError, match="cannot be read"):
        PriceTable.from_yaml(tmp_path / "absent.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(PriceFileError, match="not UTF-8"):
        PriceTable.from_yaml(tmp_path / "bytes.yaml")
    nothing: Any = None
    with pytest.raises(PriceError, match="the path of a file"):
        PriceTable.from_yaml(nothing)

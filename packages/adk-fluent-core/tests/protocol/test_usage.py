from __future__ import annotations

import pickle
from dataclasses import astuple, dataclass, fields
from decimal import Decimal
from enum import Enum
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adk_fluent.protocol import Money, Unknown, Usage

usages = st.builds(Usage, *[st.integers(0, 10**9) for _ in fields(Usage)])
amounts = st.builds(Money, st.decimals(-(10**6), 10**6, places=8))


@given(usages, usages, usages)
def test_usages_add_up_field_by_field(a: Usage, b: Usage, c: Usage) -> None:
    assert astuple(a + b) == tuple(x + y for x, y in zip(astuple(a), astuple(b), strict=True))
    assert (a + b) + c == a + (b + c) == sum([a, b, c], Usage())
    assert (a + b).total == a.total + b.total


@dataclass(frozen=True)
class Billed(Usage):
    """Usage with a field of the user's."""

    pages: int = 0


def test_a_class_that_extends_it_keeps_its_fields() -> None:
    billed = Billed(1, pages=3)
    assert pickle.loads(pickle.dumps(billed)) == billed
    assert pickle.loads(pickle.dumps(billed)).pages == 3


def test_a_usage_adds_to_nothing_else() -> None:
    with pytest.raises(TypeError, match="unsupported operand"):
        Usage() + 1  # pyright: ignore[reportOperatorIssue, reportUnusedExpression]


def test_the_total_counts_each_token_once() -> None:
    usage = Usage(prompt=100, cached=40, output=20, thoughts=5, tool=3, audio=10, image_output=4)
    assert usage.total == 128


def test_of_a_stream_the_last_report_wins() -> None:
    first, last = Usage(prompt=3, output=1), Usage(prompt=3, output=9)
    assert Usage.last([first, last, None]) == last
    assert Usage.last(iter([None])) is None


class Modality(Enum):
    AUDIO = "AUDIO"
    IMAGE = "IMAGE"
    TEXT = "TEXT"


def tokens(modality: object, count: int | None) -> SimpleNamespace:
    return SimpleNamespace(modality=modality, token_count=count)


def test_it_reads_what_genai_reports() -> None:
    metadata = SimpleNamespace(
        prompt_token_count=100,
        cached_content_token_count=40,
        candidates_token_count=20,
        thoughts_token_count=5,
        tool_use_prompt_token_count=3,
        cache_creation_input_tokens=8,
        prompt_tokens_details=[tokens(Modality.TEXT, 90), tokens(Modality.AUDIO, 10)],
        cache_tokens_details=[tokens("AUDIO", 4)],
        candidates_tokens_details=[
            tokens(Modality.AUDIO, 2),
            tokens(Modality.IMAGE, 7),
            tokens(None, None),
        ],
    )
    assert Usage.from_genai(metadata) == Usage(100, 40, 20, 5, 3, 10, 4, 8, 2, 7)


@pytest.mark.parametrize(("total", "output"), [(120, 15), (125, 20), (None, 20)])
def test_thoughts_are_counted_once_by_whichever_total(total: int | None, output: int) -> None:
    """LiteLLM's completion tokens have the reasoning ones in them, genai's do not."""
    metadata = SimpleNamespace(
        prompt_token_count=100,
        candidates_token_count=20,
        thoughts_token_count=5,
        total_token_count=total,
    )
    assert Usage.from_genai(metadata) == Usage(prompt=100, output=output, thoughts=5)


def test_what_genai_leaves_out_is_zero_and_no_report_is_none() -> None:
    none = Usage.from_genai(SimpleNamespace(prompt_token_count=None))
    assert none == Usage()
    assert not hasattr(none, "__dict__")
    assert Usage.from_genai(None) is None


@given(amounts, amounts, amounts)
def test_money_is_exact(a: Money, b: Money, c: Money) -> None:
    assert (a + b) + c == a + (b + c)
    assert a + b - b == a
    assert a * 3 == 3 * a == a + a + a
    assert (a < b) == (a.usd < b.usd)


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        (0, "$0.00"),
        (0.1, "$0.10"),
        ("0.0042", "$0.0042"),
        (Decimal("12.50"), "$12.50"),
        (1200, "$1200.00"),
        (-3, "-$3.00"),
        ("0.000000075", "$0.000000075"),
    ],
)
def test_money_is_made_and_shown(usd: float | str | Decimal, text: str) -> None:
    assert str(Money.of(usd)) == text


def test_a_float_is_what_it_prints_as() -> None:
    assert Money.of(0.1) + Money.of(0.2) == Money.of("0.3")


def test_an_unknown_price_is_no_amount() -> None:
    assert Unknown("no such model") != Money()
    assert not isinstance(Unknown("no such model"), Money)

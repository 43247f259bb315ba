"""What candidates bring as prices of their own."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from adk_fluent.cost._errors import PriceError
from adk_fluent.cost._prices._books import PriceTable, default_prices
from adk_fluent.protocol import Unknown, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adk_fluent.ir import ModelCandidate

#: A price that is off from the known one by so much is meant for another number of tokens.
_OFF: Final = 100
_SAMPLE: Final = Usage(prompt=100_000, output=100_000)


def row_of(candidate: ModelCandidate) -> dict[str, float] | None:
    """Return the prices that a candidate brings, in USD per million tokens; None is none."""
    if candidate.prices:
        return dict(candidate.prices)
    usd = (candidate.cost_per_1k_input, candidate.cost_per_1k_output)
    if usd[0] is None or usd[1] is None:
        return None
    return {"input": usd[0] * 1000, "output": usd[1] * 1000}


def table_of(candidates: Iterable[ModelCandidate]) -> PriceTable | None:
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
    table = PriceTable(rows, source="candidates")
    for name in rows:
        _check_size(name, table)
    return table


def _check_size(name: str, table: PriceTable) -> None:
    now = datetime.now(UTC)
    given, known = (each.price(name, _SAMPLE, now) for each in (table, default_prices()))
    if isinstance(given, Unknown) or isinstance(known, Unknown) or not (given.usd and known.usd):
        return
    times = given.usd / known.usd
    if not 1 / Decimal(_OFF) < times < _OFF:
        meant = "a thousand" if times < 1 else "a billion"
        read, other, right = (float(each * 10) for each in (given.usd, given.usd, known.usd))
        other *= 1000 if times < 1 else 0.001
        raise PriceError(
            f"the candidate {name!r} costs {times:.4g} times what is known of it",
            found=f"${read:g} for a million tokens in and out, or ${other:g} if it "
            f"is the price of {meant}; it is known to be ${right:g}",
            help='prices={"input": ..., "output": ...} is USD per million tokens',
        )

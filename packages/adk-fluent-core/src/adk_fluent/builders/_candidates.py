"""What is checked of models that may be chosen at run time."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Any, Final, cast

from adk_fluent._words import describe
from adk_fluent.builders._models import as_model
from adk_fluent.builders._operands import some
from adk_fluent.errors import UsageError
from adk_fluent.ir import ModelCandidate, Ref

_ROLE: Final = ".model_select(candidates"
#: USD for a thousand tokens; what is dearer is mostly the price of a million.
_DEAREST_1K: Final = 0.1


def as_candidates(given: object) -> tuple[ModelCandidate, ...]:
    """Models that may be chosen, one at least.

    Raises:
        UsageError: There is none, or a call of one would fail, or a price of one is another one
            than is meant.
    """
    models = cast("Iterable[Any]", given)
    if isinstance(given, ModelCandidate) or not isinstance(given, Iterable):
        models = [given]
    made = some(tuple(models), f"{_ROLE}=...)", "a ModelCandidate")
    for each in made:
        if each is given or not isinstance(each, ModelCandidate):
            raise UsageError(
                f"{_ROLE}=...) takes ModelCandidates, in a list",
                found=describe(each),
                help=f'{_ROLE}=[ModelCandidate("gemini-2.5-flash", quality_tier=1)])',
            )
        _check(each)
    return made


def _check(candidate: ModelCandidate) -> None:
    as_model(candidate.model, "ModelCandidate(...)")
    where = f"ModelCandidate({candidate.name!r})"
    condition: Any = candidate.condition
    if condition is not None and not (isinstance(condition, Ref) and callable(condition.value)):
        raise UsageError(
            f"{where} has a condition that is no function",
            found=describe(condition),
            help='condition=lambda ctx, request: ctx.state.get("plan") == "pro"',
        )
    tier, most = cast("tuple[Any, Any]", (candidate.quality_tier, candidate.max_tokens))
    if isinstance(tier, bool) or not isinstance(tier, int):
        raise UsageError(
            f"{where} has a quality_tier that is no whole number",
            found=describe(tier),
            help="quality_tier=1 for the plainest; higher is better",
        )
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
        raise UsageError(
            f"{where} has a max_tokens that is no number of tokens",
            found=repr(most)[:40],
            help="max_tokens=200_000 is the largest prompt that it is given",
        )
    _check_prices(candidate, where)


def _check_prices(candidate: ModelCandidate, where: str) -> None:
    given: Any = candidate.prices
    pairs = cast("tuple[Any, ...]", given) if isinstance(given, tuple) else (given,)
    if not all(isinstance(each, tuple) for each in pairs):
        raise UsageError(
            f"{where} has prices that are no mapping of kinds of tokens to USD per million",
            found=describe(given),
            help='prices={"input": 0.3, "output": 2.5}',
        )
    old: dict[str, Any] = {
        "input": candidate.cost_per_1k_input,
        "output": candidate.cost_per_1k_output,
    }
    known = {kind: usd for kind, usd in old.items() if usd is not None}
    if known and (len(known) < len(old) or pairs):
        raise UsageError(
            f"{where} has prices of two kinds, or a part of them",
            found=", ".join(f"cost_per_1k_{kind}={usd!r}" for kind, usd in known.items()),
            help='prices={"input": ..., "output": ...}, USD per million tokens, and nothing else',
        )
    for kind, usd in (*known.items(), *cast("tuple[tuple[str, Any], ...]", pairs)):
        if isinstance(usd, bool) or not isinstance(usd, int | float) or not 0 <= usd < inf:
            raise UsageError(
                f"{where} has a price of {kind} tokens that is no number of 0 or more",
                found=repr(usd)[:40],
                help='prices={"input": 0.3, "output": 2.5}, USD per million tokens',
            )
    for kind, usd in known.items():
        if usd > _DEAREST_1K:
            raise UsageError(
                f"{where}: {usd:g} USD for a thousand {kind} tokens is no price",
                found=f"${usd * 1000:g} for a million, or ${usd:g} if it is meant for a million",
                help=f'prices={{"{kind}": {usd:g}, ...}} is USD per million tokens',
            )

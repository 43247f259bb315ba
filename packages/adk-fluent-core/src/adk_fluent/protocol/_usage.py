"""Tokens and money."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol

from adk_fluent.ir._record import record

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime


@record
class Usage:
    """Tokens that model calls took; ``a + b`` adds two of them, ``sum(usages, Usage())`` many.

    What is billed at its own rate has its own field; fields marked *part of* another one are
    counted there, too.

    Attributes:
        prompt: Prompt tokens.
        cached: Read from a cache; part of `prompt`.
        output: Answer tokens without thoughts.
        thoughts: Thinking tokens; not part of `output`.
        tool: Prompt tokens of built-in tools' results; not part of `prompt`.
        audio: Audio; part of `prompt`.
        cached_audio: Audio read from a cache; part of `audio` and `cached`.
        cache_write: Written to a cache; part of `prompt`.
        audio_output: Audio; part of `output`.
        image_output: Images; part of `output`.
    """

    prompt: int = 0
    cached: int = 0
    output: int = 0
    thoughts: int = 0
    tool: int = 0
    audio: int = 0
    cached_audio: int = 0
    cache_write: int = 0
    audio_output: int = 0
    image_output: int = 0

    @property
    def total(self) -> int:
        """All tokens, each counted once."""
        return self.prompt + self.tool + self.output + self.thoughts

    def __add__(self, other: Usage) -> Usage:
        if not isinstance(other, Usage):  # pyright: ignore[reportUnnecessaryIsInstance]  # operators meet anything
            return NotImplemented
        return Usage(*(getattr(self, name) + getattr(other, name) for name in _FIELDS))

    @staticmethod
    def last(reported: Iterable[Usage | None]) -> Usage | None:
        """The usage of one streamed call: each chunk repeats the total so far, so the last wins."""
        found: Usage | None = None
        for usage in reported:
            if usage is not None:
                found = usage
        return found

    @classmethod
    def from_genai(cls, metadata: Any) -> Usage | None:
        """What a `google.genai` ``usage_metadata`` says; None for None.

        Nothing is imported: any object with its attributes in a ``__dict__`` will do.
        """
        if metadata is None:
            return None
        # not by attribute: ADK sets one that genai does not have, and pydantic is slow to miss it
        read: Any = map(metadata.__dict__.get, _GENAI)
        asked, cached, output, thoughts, tool, total, prompt, details, cache, written = read
        output = output or 0
        if thoughts and (asked or 0) + (tool or 0) + output == total:
            output = max(0, output - thoughts)  # ADK's LiteLlm counts thoughts among the answer's
        counts = asked or 0, cached or 0, output, thoughts or 0, tool or 0
        if not (prompt or details or cache or written):  # as nearly always
            return cls(*counts)
        return cls(
            *counts,
            audio=_of_modality(prompt, "AUDIO"),
            cached_audio=_of_modality(cache, "AUDIO"),
            cache_write=written or 0,
            audio_output=_of_modality(details, "AUDIO"),
            image_output=_of_modality(details, "IMAGE"),
        )


_FIELDS = Usage.__match_args__
#: What genai calls the first of them, and what the others are read from.
_GENAI = (
    *("prompt_token_count", "cached_content_token_count", "candidates_token_count"),
    *("thoughts_token_count", "tool_use_prompt_token_count", "total_token_count"),
    *("prompt_tokens_details", "candidates_tokens_details", "cache_tokens_details"),
    "cache_creation_input_tokens",
)


def counts_of(usage: Usage) -> dict[str, int]:
    """Tokens by the names of the fields."""
    return {name: getattr(usage, name) for name in _FIELDS}


def _of_modality(details: Iterable[Any] | None, modality: str) -> int:
    if not details:
        return 0
    return sum(
        each.token_count or 0
        for each in details
        if getattr(each.modality, "value", each.modality) == modality
    )


@dataclass(frozen=True, slots=True, order=True)
class Money:
    """An amount in US dollars, exact.

    Attributes:
        usd: The amount.
    """

    usd: Decimal = Decimal(0)

    @classmethod
    def of(cls, usd: Decimal | float | str) -> Money:
        """An amount; a float counts as what it prints as, so ``Money.of(0.1)`` is ten cents."""
        return cls(usd if isinstance(usd, Decimal) else Decimal(str(usd)))

    def __add__(self, other: Money) -> Money:
        return Money(self.usd + other.usd)

    def __sub__(self, other: Money) -> Money:
        return Money(self.usd - other.usd)

    def __mul__(self, times: Decimal | int) -> Money:
        return Money(self.usd * times)

    __rmul__ = __mul__

    def __str__(self) -> str:
        """As in ``$0.0042``: cents at least, and as many digits as there are."""
        exact = self.usd.normalize()
        digits = max(2, -int(exact.as_tuple().exponent))
        return f"{'-' if exact < 0 else ''}${abs(exact):.{digits}f}"


@dataclass(frozen=True, slots=True)
class Unknown:
    """No price can be told; never to be taken for a price of zero.

    Attributes:
        reason: Why not.
    """

    reason: str


class PriceBook(Protocol):
    """Knows what tokens cost."""

    def price(
        self, model: str, usage: Usage, at: datetime, *, tier: str | None = None
    ) -> Money | Unknown:
        """What one model call cost.

        Args:
            model: The model that answered, as the provider names it.
            usage: The tokens of this one call; sums would be priced in the wrong tier.
            at: When it was made; prices change.
            tier: The service tier it was made in, such as ``"flex"``; None is the standard one.
        """
        ...

"""Microsoft Presidio as a detector."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.errors import UsageError
from adk_fluent.middleware._pii._finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adk_fluent.middleware._pii._finding import Scope

#: Kinds of ours by what Presidio calls them; others are called what they are there, in lower case.
_KINDS: Final[dict[str, str]] = {
    "EMAIL_ADDRESS": "email",
    "PHONE_NUMBER": "phone",
    "IBAN_CODE": "iban",
    "IP_ADDRESS": "ip",
}


class PresidioDetector:
    """Asks Presidio, in a thread of its own.

    Args:
        analyzer: An ``AnalyzerEngine``; one with Presidio's defaults, which needs its language
            model, when none is given.
        language: The language of the texts.
        entities: What to look for, in Presidio's names; all that it knows when none is given.
        threshold: How sure it has to be, from 0 to 1.
        scope: ``"line"`` gives it lines, so that streams are held back for a line; ``"text"`` all
            of a text, so that streams are held back to their end.
    """

    def __init__(
        self,
        analyzer: Any = None,
        *,
        language: str = "en",
        entities: Sequence[str] | None = None,
        threshold: float = 0.5,
        scope: Scope = "line",
    ) -> None:
        self._analyzer = _default() if analyzer is None else analyzer
        self._language = language
        self._entities = None if entities is None else list(entities)
        self._threshold = threshold
        self.scope = scope

    async def __call__(self, text: str) -> Iterable[Finding]:
        """What Presidio finds."""
        return await asyncio.to_thread(self._found, text)

    def _found(self, text: str) -> list[Finding]:
        results: list[Any] = self._analyzer.analyze(
            text=text,
            language=self._language,
            entities=self._entities,
            score_threshold=self._threshold,
        )
        return [
            Finding(_KINDS.get(each.entity_type) or each.entity_type.lower(), each.start, each.end)
            for each in results
            if each.start < each.end
        ]


def _default() -> Any:
    try:
        made: Any = import_module("presidio_analyzer")  # an extra
    except ImportError:
        raise UsageError(
            "presidio() needs Presidio",
            help="pip install 'adk-fluent-middleware[pii]'",
        ) from None
    return made.AnalyzerEngine()


#: `PresidioDetector` by its short name.
presidio = PresidioDetector

"""Presidio as a detector: a stand-in with its interface, and itself where it is installed."""

from __future__ import annotations

import asyncio
import sys
import threading
from dataclasses import dataclass
from typing import Any

import pytest

from adk_fluent.errors import RunError, UsageError
from adk_fluent.middleware._pii import Finding, presidio
from adk_fluent.middleware._pii._filter import Detectors, Filter


def hidden(text: str, detector: Any) -> str:
    filter = Filter(Detectors((), {}, (detector,)), {}, "redact", b"0123456789abcdef")
    return asyncio.run(filter.inbound().text(text))


@dataclass
class Result:
    """As Presidio's RecognizerResult."""

    entity_type: str
    start: int
    end: int
    score: float = 0.9


class StandIn:
    """As Presidio's AnalyzerEngine: finds names, and remembers what it was asked."""

    def __init__(self, error: Exception | None = None) -> None:
        self.asked: list[dict[str, Any]] = []
        self.threads: set[int] = set()
        self._error = error

    def analyze(self, **options: Any) -> list[Result]:
        self.asked.append(options)
        self.threads.add(threading.get_ident())
        if self._error is not None:
            raise self._error
        text: str = options["text"]
        at = text.find("Ann")
        return [Result("PERSON", at, at + 3), Result("EMAIL_ADDRESS", 0, 0)] if at >= 0 else []


def test_it_is_asked_line_by_line_in_a_thread() -> None:
    analyzer = StandIn()
    detector = presidio(analyzer, language="de", entities=["PERSON"], threshold=0.7)
    assert hidden("Hello Ann,\n\nit is Ann", detector) == "Hello [PERSON],\n\nit is [PERSON]"
    assert [each["text"] for each in analyzer.asked] == ["Hello Ann,", "it is Ann"]
    assert analyzer.asked[0] == {
        "text": "Hello Ann,",
        "language": "de",
        "entities": ["PERSON"],
        "score_threshold": 0.7,
    }
    assert threading.get_ident() not in analyzer.threads


def test_it_may_be_given_all_of_a_text() -> None:
    analyzer = StandIn()
    assert hidden("a\nAnn", presidio(analyzer, scope="text")) == "a\n[PERSON]"
    assert [each["text"] for each in analyzer.asked] == ["a\nAnn"]


def test_what_it_raises_is_not_told() -> None:
    with pytest.raises(RunError, match=r"ValueError in PresidioDetector") as caught:
        hidden("I am Ann", presidio(StandIn(ValueError("I am Ann"))))
    assert "Ann" not in str(caught.value)


def test_without_presidio_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "presidio_analyzer", None)
    with pytest.raises(UsageError, match=r"adk-fluent-middleware\[pii\]"):
        presidio()


@pytest.fixture
def engine() -> Any:
    """Presidio itself, with all its patterns, and a language model that knows no names."""
    analyzer = pytest.importorskip("presidio_analyzer")
    spacy = pytest.importorskip("spacy")
    nlp_engine = pytest.importorskip("presidio_analyzer.nlp_engine")

    blank = nlp_engine.SpacyNlpEngine()
    blank.nlp = {"en": spacy.blank("en")}
    registry = analyzer.RecognizerRegistry()
    registry.add_recognizer(analyzer.predefined_recognizers.CreditCardRecognizer())
    registry.add_recognizer(analyzer.predefined_recognizers.CryptoRecognizer())
    registry.add_recognizer(analyzer.predefined_recognizers.IbanRecognizer())
    return analyzer.AnalyzerEngine(nlp_engine=blank, registry=registry, supported_languages=["en"])


async def test_presidio_itself(engine: Any) -> None:
    wallet = "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"
    text = f"card 4111 1111 1111 1111, wallet {wallet}"
    found = await presidio(engine)(text)
    assert set(found) == {Finding("credit_card", 5, 24), Finding("crypto", 33, 67)}
    only = await presidio(engine, entities=["CRYPTO"])(text)
    assert [each.kind for each in only] == ["crypto"]


def test_presidio_itself_in_a_filter(engine: Any) -> None:
    text = "to DE89370400440532013000\nor 4111111111111111"
    assert hidden(text, presidio(engine)) == "to [IBAN]\nor [CREDIT_CARD]"

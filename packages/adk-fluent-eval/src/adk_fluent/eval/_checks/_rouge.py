"""ROUGE-1 as ADK's ``response_match_score`` computes it, without the packages of ADK's extra.

Scores equal those of google-adk 2.x, which reads every script; google-adk 1.25 knows ASCII only.

Source: C.-Y. Lin, "ROUGE: A package for automatic evaluation of summaries" (2004).
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from functools import lru_cache
from typing import Final

from adk_fluent.eval._checks._porter import stem

_STEMMED_FROM: Final = 4  # letters; shorter words stay as they are
_CACHED_UP_TO: Final = 40  # letters; longer ones are rarely words

# First and last letters of scripts that have no spaces between words.
_ONE_BY_ONE: Final = (
    ("\u3040", "\u30ff"),  # hiragana and katakana
    ("\u4e00", "\u9fff"),  # Chinese characters
    ("\uac00", "\ud7af"),  # syllables of Hangul
)
_WITH_MARKS: Final = (
    ("\u0e00", "\u0eff"),  # Thai and Lao
    ("\u1000", "\u109f"),  # Myanmar
    ("\u1780", "\u17ff"),  # Khmer
)


def rouge1(candidate: str, reference: str) -> float:
    """Return the ROUGE-1 F-measure of two texts, 0 to 1.

    Words count in any order; case and endings of English words are ignored. Chinese, Japanese and
    Korean count by character, Thai, Lao, Khmer and Myanmar by character with its marks.

    Args:
        candidate: The answer.
        reference: The reference answer.
    """
    have, want = Counter(_words(candidate)), Counter(_words(reference))
    common = (have & want).total()
    if not common:
        return 0.0
    precision, recall = common / have.total(), common / want.total()
    return 2 * precision * recall / (precision + recall)


def _words(text: str) -> list[str]:
    """The stems of a text's words."""
    text = unicodedata.normalize("NFKC", text).lower()
    if not text.isascii():
        text = "".join(map(_spaced, text))
        return [_root(each) if each.isascii() else each for each in text.split()]
    return [_root(each) for each in text.translate(_ASCII).split()]


def _spaced(letter: str) -> str:
    """A character with spaces around it where words end."""
    if _is_in(_ONE_BY_ONE, letter):
        return f" {letter} "
    is_mark = unicodedata.category(letter)[0] == "M"
    if _is_in(_WITH_MARKS, letter) and not is_mark:
        return f" {letter}"
    return letter if is_mark or letter.isalnum() else " "


def _is_in(ranges: tuple[tuple[str, str], ...], letter: str) -> bool:
    return any(first <= letter <= last for first, last in ranges)


def _root(word: str) -> str:
    if len(word) < _STEMMED_FROM:
        return word
    return _cached_stem(word) if len(word) <= _CACHED_UP_TO else stem(word)


_cached_stem = lru_cache(4096)(stem)
_ASCII: Final = {at: each if (each := chr(at)).isalnum() else " " for at in range(128)}

"""ROUGE-1 as ADK's ``response_match_score`` computes it, without the packages of ADK's extra.

Scores equal those of google-adk 2.x, which reads every script; google-adk 1.25 knows ASCII only.

Sources: C.-Y. Lin, "ROUGE: A package for automatic evaluation of summaries" (2004); M. F. Porter,
"An algorithm for suffix stripping" (1980), with the extensions that NLTK makes by default
(irregular words, "ie" in short words, "y" after one letter, endings of Porter's later version).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from typing import Final

# --- stems ---------------------------------------------------------------------------------------


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    """Pairs of an ending and its replacement, as ``ending:replacement``."""
    return tuple((ending, new) for ending, _, new in (each.partition(":") for each in text.split()))


_IRREGULAR: Final = dict(
    _pairs(
        "skies:sky sky:sky dying:die lying:lie tying:tie news:news inning:inning innings:inning "
        "outing:outing outings:outing canning:canning cannings:canning howe:howe "
        "proceed:proceed exceed:exceed succeed:succeed"
    )
)

# Of two endings that match, the longer one comes first.
_PLURALS: Final = _pairs("sses:ss ies:i ss:ss s:")
_STEP_2: Final = _pairs(
    "ational:ate ization:ize fulness:ful ousness:ous iveness:ive tional:tion biliti:ble "
    "entli:ent ousli:ous ation:ate alism:al aliti:al iviti:ive fulli:ful enci:ence "
    "anci:ance izer:ize alli:al ator:ate logi:log bli:ble eli:e"
)
_STEP_3: Final = _pairs("icate:ic ative: alize:al iciti:ic ical:ic ness: ful:")
_STEP_4: Final = _pairs(
    "ement: ance: ence: able: ible: ment: ant: ent: ion: ism: ate: iti: ous: ive: ize: "
    "al: er: ic: ou:"
)
#: Endings, and the measure that the rest must have to lose them.
_STEPS: Final = ((_STEP_2, 1), (_STEP_3, 1), (_STEP_4, 2))
_KINDS: Final = str.maketrans(
    {letter: "v" if letter in "aeiou" else "c" for letter in "abcdefghijklmnopqrstuvwxz0123456789"}
)


@lru_cache(4096)
def _stem(word: str) -> str:
    """Return the stem of a word of lower-case ASCII letters and digits."""
    if word in _IRREGULAR or len(word) < _STEMMED_FROM:
        return _IRREGULAR.get(word, word)
    is_short = len(word) == 4 and word.endswith("ies")  # "ties"
    word = _without_past(word[:-1] if is_short else _replaced(word, _PLURALS, 0))
    if word[-1] == "y" and len(word) > 2 and _shape(word)[-2] == "c":
        word = f"{word[:-1]}i"
    for endings, least in _STEPS:
        word = _replaced(word, endings, least)
    return _without_last_letter(word)


# --- shapes of words -----------------------------------------------------------------------------


def _shape(word: str) -> str:
    """Its letters as ``v`` for vowels and ``c`` for all others; y after a consonant is a vowel."""
    shape = word.translate(_KINDS)
    if "y" not in shape:
        return shape
    made = ""
    for kind in shape:
        made += kind if kind != "y" else "v" if made[-1:] == "c" else "c"
    return made


def _measure(word: str) -> int:
    """Porter's m: how often consonants follow vowels."""
    return _shape(word).count("vc")


def _ends_short(word: str) -> bool:
    r"""Porter's \*o, as in "hop" but not in "snow"; also a word of two letters, as "us"."""
    shape = _shape(word)
    return shape == "vc" or (shape[-3:] == "cvc" and word[-1] not in "wxy")


# --- the steps -----------------------------------------------------------------------------------


def _without_past(word: str) -> str:
    """Step 1b: "agreed", "tied", "plastered", "motoring"."""
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    rest = word.removesuffix("ed" if word.endswith("ed") else "ing")
    return _repaired(rest) if rest != word and "v" in _shape(rest) else word


def _repaired(word: str) -> str:
    """Repair the rest that step 1b leaves: "conflat", "hopp", "fil"."""
    if word.endswith(("at", "bl", "iz")):
        return f"{word}e"
    if len(word) > 1 and word[-1] == word[-2] and _shape(word)[-1] == "c":
        return word if word[-1] in "lsz" else word[:-1]
    return f"{word}e" if _measure(word) == 1 and _ends_short(word) else word


def _replaced(word: str, endings: tuple[tuple[str, str], ...], least: int) -> str:
    """Steps 1a and 2 to 4: "caresses", "relational", "triplicate", "revival"."""
    for ending, new in endings:
        if word.endswith(ending):
            rest = word.removesuffix(ending)
            # the "l" of "logi" belongs to what is measured
            measure = _measure(f"{rest}l" if ending == "logi" else rest)
            if measure < least or (ending == "ion" and rest[-1:] not in {"s", "t"}):
                return word
            # "functionalli" becomes "functional", whose ending goes as well
            made = f"{rest}{new}"
            return _replaced(made, endings, least) if ending == "alli" else made
    return word


def _without_last_letter(word: str) -> str:
    """Steps 5a and 5b: "probate", "rate", "controll"."""
    if word.endswith("e"):
        rest = word[:-1]
        measure = _measure(rest)
        if measure > 1 or (measure == 1 and not _ends_short(rest)):
            word = rest
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


# --- scores --------------------------------------------------------------------------------------

_STEMMED_FROM: Final = 4  # letters; shorter words stay as they are
_CACHED_UP_TO: Final = 40  # letters; longer ones are rarely words
# Scripts that have no spaces between words.
#: Hiragana and katakana, Chinese characters, syllables of Hangul.
_ONE_BY_ONE: Final = re.compile("[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
#: Thai and Lao, Myanmar, Khmer.
_WITH_MARKS: Final = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
_ASCII: Final = {at: each if (each := chr(at)).isalnum() else " " for at in range(128)}


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
    if _ONE_BY_ONE.match(letter):
        return f" {letter} "
    is_mark = unicodedata.category(letter)[0] == "M"
    if _WITH_MARKS.match(letter) and not is_mark:
        return f" {letter}"
    return letter if is_mark or letter.isalnum() else " "


def _root(word: str) -> str:
    return _stem(word) if len(word) <= _CACHED_UP_TO else _stem.__wrapped__(word)

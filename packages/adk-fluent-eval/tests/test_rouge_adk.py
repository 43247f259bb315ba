"""ROUGE-1 by ourselves beside that of ADK, wherever ADK's extra is installed."""

from __future__ import annotations

import re
import sysconfig
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adk_fluent.eval._checks._rouge import rouge1
from adk_fluent.eval._checks._stem import stem

HAS_EXTRA = all(find_spec(name) for name in ("nltk", "rouge_score"))

pytestmark = [
    pytest.mark.adk,
    pytest.mark.skipif(not HAS_EXTRA, reason="google-adk[eval] is not installed"),
    # importing what the extra brings warns about itself
    pytest.mark.filterwarnings("ignore"),
]

ENDINGS = [
    *("ational", "ization", "fulness", "ousness", "iveness", "tional", "biliti", "bility", "entli"),
    *("ently", "ousli", "ation", "alism", "aliti", "iviti", "fulli", "fully", "enci", "anci"),
    *("izer", "alli", "ally", "ator", "logi", "logy", "bli", "bly", "eli", "ely", "icate", "ative"),
    *("alize", "iciti", "ical", "ness", "ful", "ement", "ance", "ence", "able", "ible", "ment"),
    *("ant", "ent", "sion", "tion", "ism", "ate", "iti", "ous", "ive", "ize", "al", "er", "ic"),
    *("ou", "sses", "ies", "s", "ss", "ied", "eed", "ed", "ing", "y", "e", "ll", "lling"),
]


@pytest.fixture(scope="module")
def theirs() -> Any:
    """ADK's module; that of 1.25 reads ASCII alone."""
    return import_module("google.adk.evaluation.final_response_match_v1")


@pytest.fixture(scope="module")
def nltk_stem() -> Any:
    return import_module("nltk.stem").PorterStemmer().stem


def _check(theirs: Any, candidate: str, reference: str) -> None:
    expected = theirs._calculate_rouge_1_scores(candidate, reference).fmeasure
    assert rouge1(candidate, reference) == expected


# Sentences and scraps, which have something in common.
some_words = st.sampled_from(
    ["refund", "refunds", "Refunded", "the", "T-1042", "running", "ran", "42", "it's", "a_b", "\n"]
)
ascii_texts = st.lists(some_words | st.text(st.characters(max_codepoint=127)), max_size=12).map(
    " ".join
)
scripts = st.sampled_from(
    [
        "ไทยแลนด์",
        "กำ",
        "ລາວ",
        "ខ្មែរ",
        "မြန်မာ",
        "退款",
        "ありがとう",
        "カー",
        "감사",
        "हिन्दी",
        "مرحبا",
        "Größe",
        "ﬁn",
        "\uff21\uff22",
    ]
)
all_texts = st.lists(some_words | scripts | st.text(), max_size=12).map("".join)


@given(candidate=ascii_texts, reference=ascii_texts)
def test_ascii_scores_are_those_of_every_adk(theirs: Any, candidate: str, reference: str) -> None:
    _check(theirs, candidate, reference)


@given(candidate=all_texts, reference=all_texts)
@example(candidate="", reference="")
@example(candidate="\u0130", reference="i\u0307")
@example(candidate="\u3099\u304b", reference="\u304c")
@example(candidate="\u0e33x\u0e01", reference="\u0e4d \u0e32x\u0e01")
def test_scores_are_those_of_adk_2(theirs: Any, candidate: str, reference: str) -> None:
    if not hasattr(theirs, "_UnicodeAwareTokenizer"):
        pytest.skip("this google-adk reads ASCII alone")
    _check(theirs, candidate, reference)


def test_every_character_is_read_as_adk_2_reads_it(theirs: Any) -> None:
    if not hasattr(theirs, "_UnicodeAwareTokenizer"):
        pytest.skip("this google-adk reads ASCII alone")
    from adk_fluent.eval._checks._rouge import _words

    tokenizer = theirs._UnicodeAwareTokenizer(use_stemmer=True)
    for start in range(0, 0x20000, 64):
        text = "".join(f"x{chr(at)}ings " for at in range(start, start + 64))
        assert _words(text) == tokenizer.tokenize(text)


def test_roots_of_a_large_vocabulary_are_those_of_nltk(nltk_stem: Any) -> None:
    folder = Path(sysconfig.get_path("stdlib"))
    vocabulary = {
        word
        for path in [*folder.glob("*.py"), *folder.glob("pydoc_data/*.py")]
        for word in re.findall(r"[a-z0-9]+", path.read_text("utf-8", "ignore").lower())
    }
    assert len(vocabulary) > 10_000
    assert {word: stem(word) for word in vocabulary} == {
        word: nltk_stem(word) for word in vocabulary
    }


@given(
    word=st.builds(
        "{}{}".format,
        st.text("aeiouybcdlstwxz0", max_size=6),
        st.lists(st.sampled_from(ENDINGS), max_size=3).map("".join),
    )
)
def test_roots_of_made_up_words_are_those_of_nltk(nltk_stem: Any, word: str) -> None:
    assert stem(word) == nltk_stem(word)

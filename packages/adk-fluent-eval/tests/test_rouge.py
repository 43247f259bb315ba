"""ROUGE-1 by ourselves: values that are known, and what holds for every text."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adk_fluent.eval._checks._rouge import rouge1
from adk_fluent.eval._checks._stem import stem

words = st.lists(st.sampled_from(["cat", "cats", "running", "run", "ไทย", "中", "7", "é"]))


@pytest.mark.parametrize(
    ("candidate", "reference", "score"),
    [
        ("the cat sat", "the cat sat", 1.0),
        ("The CAT, sat!", "the cat sat", 1.0),
        ("sat cat the", "the cat sat", 1.0),  # in any order
        ("a b", "c d", 0.0),
        ("", "", 0.0),
        ("", "word", 0.0),
        ("?!", "?!", 0.0),  # no words
        ("a a a b", "a b", 2 * 0.5 * 1.0 / 1.5),  # each as often as it occurs
        ("a b c d", "a", 2 * 0.25 * 1.0 / 1.25),
        ("connection", "connected", 1.0),
        ("refunds were issued", "refund was issuing", 2 / 3),
        ("bus", "bu", 0.0),  # three letters stay as they are
        ("boxes", "boxed", 1.0),
        ("it's", "it s", 1.0),
        ("snake_case", "snake case", 1.0),
        ("T-1042", "t 1042", 1.0),
    ],
)
def test_known_values(candidate: str, reference: str, score: float) -> None:
    assert rouge1(candidate, reference) == score


@pytest.mark.parametrize(
    ("candidate", "reference", "score"),
    [
        ("退款已处理", "退款处理", 8 / 9),  # by character
        ("ありがとう", "ありがとう", 1.0),
        ("カー", "カ", 2 * 0.5 / 1.5),  # the long mark is a letter by itself
        ("감사합니다", "감사", 4 / 7),
        ("กา", "ก", 2 * 0.5 / 1.5),  # this vowel is a letter, not a mark
        ("กี", "ก", 0.0),  # a letter with its mark is one
        ("မြ", "မ", 0.0),
        ("ភា", "ភ", 0.0),
        ("हिन्दी", "हिन्दी", 1.0),  # marks stay with their word
        ("مرحبا بك", "مرحبا", 2 * 0.5 / 1.5),
        ("Größe", "GRÖSSE", 0.0),  # lower case, no folding
        ("ÉTÉ", "été", 1.0),
        ("e\u0301te\u0301", "\u00e9t\u00e9", 1.0),  # composed and not
        ("\uff21\uff22\uff11", "ab1", 1.0),  # full width
        ("ﬁnding", "finds", 1.0),  # a ligature
        ("crêpes", "crêpe", 0.0),  # only ASCII words lose their endings
        ("Москва зовёт", "москва", 2 * 0.5 / 1.5),
        ("ok 👍", "ok", 1.0),
        ("\ud800", "\ud800", 0.0),  # half a character is none
    ],
)
def test_scripts_of_the_world(candidate: str, reference: str, score: float) -> None:
    assert rouge1(candidate, reference) == pytest.approx(score)


@given(words, words)
def test_it_is_symmetric_and_a_share(left: list[str], right: list[str]) -> None:
    score = rouge1(" ".join(left), " ".join(right))
    assert score == rouge1(" ".join(right), " ".join(left))
    assert 0 <= score <= 1


@given(words.filter(bool).flatmap(lambda each: st.tuples(st.just(each), st.permutations(each))))
def test_order_makes_no_difference(texts: tuple[list[str], list[str]]) -> None:
    assert rouge1(" ".join(texts[0]), " ".join(texts[1])) == 1.0


@given(st.text())
@example("\u0130stanbul")  # its lower case has a mark of its own
@example("\u0e33")  # NFKC makes two of it
def test_a_text_has_everything_in_common_with_itself_or_nothing(text: str) -> None:
    has_words = any(
        each.isalnum() or unicodedata.category(each)[0] == "M"
        for each in unicodedata.normalize("NFKC", text).lower()
    )
    assert rouge1(text, text) == float(has_words)


def test_more_in_common_is_more() -> None:
    scores = [rouge1(text, "a b c d") for text in ("x", "a x y z", "a b y z", "a b c d")]
    assert scores == sorted(set(scores))


# --- endings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "root"),
    [
        # the examples of Porter's paper, step by step
        *(("caresses", "caress"), ("ponies", "poni"), ("caress", "caress"), ("cats", "cat")),
        *(("feed", "feed"), ("agreed", "agre"), ("plastered", "plaster"), ("bled", "bled")),
        *(("motoring", "motor"), ("sing", "sing"), ("conflated", "conflat"), ("sized", "size")),
        *(("troubled", "troubl"), ("hopping", "hop"), ("tanned", "tan"), ("falling", "fall")),
        *(("hissing", "hiss"), ("fizzed", "fizz"), ("failing", "fail"), ("filing", "file")),
        *(("happy", "happi"), ("relational", "relat"), ("conditional", "condit")),
        *(("rational", "ration"), ("digitizer", "digit"), ("differently", "differ")),
        *(("vietnamization", "vietnam"), ("operator", "oper"), ("feudalism", "feudal")),
        *(("decisiveness", "decis"), ("hopefulness", "hope"), ("sensibility", "sensibl")),
        *(("triplicate", "triplic"), ("formative", "form"), ("electrical", "electr")),
        *(("goodness", "good"), ("revival", "reviv"), ("allowance", "allow")),
        *(("replacement", "replac"), ("adoption", "adopt"), ("bowdlerize", "bowdler")),
        *(("probate", "probat"), ("rate", "rate"), ("cease", "ceas"), ("controll", "control")),
        *(("roll", "roll"), ("oscillators", "oscil"), ("generalizations", "gener")),
        # where NLTK departs from it
        *(("skies", "sky"), ("dying", "die"), ("dies", "die"), ("died", "die"), ("flies", "fli")),
        *(("spied", "spi"), ("enjoy", "enjoy"), ("say", "say"), ("by", "by"), ("using", "use")),
        *(("news", "news"), ("innings", "inning"), ("succeed", "succeed"), ("geology", "geolog")),
        *(("possibly", "possibl"), ("fulfully", "ful"), ("functionally", "function")),
        # no words of English
        *(("", ""), ("a", "a"), ("as", "as"), ("1s", "1s"), ("2001s", "2001"), ("sss", "sss")),
        *(("yyyy", "yyyi"), ("x86ing", "x86ing"), ("y" * 3000 + "s", "y" * 2999 + "i")),
    ],
)
def test_roots_of_words(word: str, root: str) -> None:
    assert stem(word) == root


@given(st.text("abcdeilnosuyzt01", min_size=1))
def test_something_is_always_left(word: str) -> None:
    assert stem(word)


@pytest.mark.parametrize("letter", ["a", "y", "s", "e", "ing", "7"])
def test_long_words_are_no_trouble(letter: str) -> None:
    long = letter * 200_000
    assert rouge1(f"{long} b", f"{long} c") == 0.5

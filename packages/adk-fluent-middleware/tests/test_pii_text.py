"""What finds personal data in texts, and what replaces it; ADK takes no part in it."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from adk_fluent.errors import RunError, UsageError
from adk_fluent.middleware import PersonalDataError, pii_filter
from adk_fluent.middleware._pii import Finding
from adk_fluent.middleware._pii._checksums import IBAN_LENGTHS, is_card, is_iban, is_ssn, luhn
from adk_fluent.middleware._pii._filter import Detectors, Filter, Stream
from adk_fluent.middleware._pii._finding import check_kind, merged
from adk_fluent.middleware._pii._patterns import BUILT_IN
from adk_fluent.middleware._pii._strategies import Placeholders, hashed, mask

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.middleware._pii._filter import Change

#: More examples with ``--full``.
FULL = settings.get_current_profile_name() == "full"
KEY = b"0123456789abcdef"
KINDS = tuple(BUILT_IN)
#: Numbers that banks and card schemes publish as examples.
CARDS = (
    "4111111111111111",
    "4222222222222",
    "5555555555554444",
    "2223003122003222",
    "378282246310005",
    "6011111111111117",
    "30569309025904",
    "3530111333300000",
    "6759649826438453",
    "6240008631401148",
)
IBANS = (
    "DE89370400440532013000",
    "GB82WEST12345698765432",
    "FR1420041010050500013M02606",
    "NL91ABNA0417164300",
    "NO9386011117947",
    "MT84MALT011000012345MTLCAST001S",
    "SC18SSCB11010000000000001497USD",
    "CH9300762011623852957",
    "PL61109010140000071219812874",
    "SA0380000000608010167519",
)
PEMS = tuple(
    f"-----BEGIN {name}-----\n{head}{'MIIEvQ+/ab8K' * 5}\nAgEAAoIBAQ==\n-----END {name}-----"
    for name, head in (
        ("PRIVATE KEY", ""),
        ("RSA PRIVATE KEY", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,3F17\n\n"),
        ("OPENSSH PRIVATE KEY", ""),
        ("PGP PRIVATE KEY BLOCK", "Version: 1 (a)\n\n"),
    )
)


def made(
    strategy: Any = "redact", *, default: Any = "redact", patterns: Any = None, others: Any = ()
) -> Filter:
    strategies: Any = {} if isinstance(strategy, str) else strategy
    default = strategy if isinstance(strategy, str) else default
    return Filter(Detectors(KINDS, patterns or {}, others), strategies, default, KEY)


def hidden(text: str, filter: Filter | None = None) -> str:
    return asyncio.run((filter or made()).inbound().text(text))


def as_it_is(text: str, filter: Filter | None = None) -> str:
    """What a text becomes that may be JSON."""
    return asyncio.run((filter or made()).inbound().string(text))


def found(text: str) -> list[tuple[str, str]]:
    detectors = Detectors(KINDS, {}, ())
    return [(each.kind, text[each.start : each.end]) for each in merged(detectors.built_in(text))]


async def streamed(change: Change, pieces: list[str], *, of_json: bool = False) -> list[str]:
    stream = change.stream(of_json=of_json)
    return [*[await stream.feed(each) for each in pieces], await stream.end()]


def cut(text: str, at: list[int]) -> list[str]:
    places = sorted({each % (len(text) + 1) for each in at})
    return [text[i:j] for i, j in zip([0, *places], [*places, len(text)], strict=True)]


def in_groups(text: str, by: str = " ") -> str:
    return by.join(text[at : at + 4] for at in range(0, len(text), 4))


# --- what is found -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "what"),
    [
        ("mail ann@example.com.", "email", "ann@example.com"),
        ("<ann.b+c@mail.example.co.uk>", "email", "ann.b+c@mail.example.co.uk"),
        ("mailto:o'brien@example.ie", "email", "o'brien@example.ie"),
        ("'ann@example.com' said", "email", "ann@example.com"),
        ("jörg@müller.de", "email", "jörg@müller.de"),
        ("иван@пример.рф", "email", "иван@пример.рф"),
        ("请联系ann@example.com谢谢", "email", "ann@example.com"),
        ("ann@example.com's", "email", "ann@example.com"),
        ("a@b.xn--p1ai", "email", "a@b.xn--p1ai"),
        ("call +49 30 901820, now", "phone", "+49 30 901820"),
        ("+1 (415) 555-2671", "phone", "+1 (415) 555-2671"),
        ("tel:+442079460958", "phone", "+442079460958"),
        ("0049 30 901820", "phone", "0049 30 901820"),
        ("(415) 555-2671", "phone", "(415) 555-2671"),
        ("415-555-2671", "phone", "415-555-2671"),
        ("+33.1.42.68.53.00", "phone", "+33.1.42.68.53.00"),
        *[(f"card {each} ok", "credit_card", each) for each in CARDS],
        ("4111 1111 1111 1111", "credit_card", "4111 1111 1111 1111"),
        ("4111-1111-1111-1111", "credit_card", "4111-1111-1111-1111"),
        ("4111.1111.1111.1111.", "credit_card", "4111.1111.1111.1111"),
        ("no.4111.1111.1111.1111 ok", "credit_card", "4111.1111.1111.1111"),
        ("378282 or 3782.822463.10005", "credit_card", "3782.822463.10005"),
        ("3056.930902.5904", "credit_card", "3056.930902.5904"),
        ("1.4111.1111.1111.1111.2", "credit_card", "4111.1111.1111.1111"),
        ("12 4111 1111 1111 1111 2nd", "credit_card", "4111 1111 1111 1111"),
        *[(f"to {each}, please", "iban", each) for each in IBANS],
        *[(f"to {in_groups(each)} and", "iban", in_groups(each)) for each in IBANS],
        ("de89370400440532013000", "iban", "de89370400440532013000"),
        ("from 192.168.10.4.", "ip", "192.168.10.4"),
        ("10.1.2.3-10.1.2.3", "ip", "10.1.2.3"),
        ("[2001:db8::8a2e:370:7334]:80", "ip", "2001:db8::8a2e:370:7334"),
        ("fe80::1.", "ip", "fe80::1"),
        ("ssn 536-90-4399", "us_ssn", "536-90-4399"),
        ("ssn 536 90 4399", "us_ssn", "536 90 4399"),
        ("key=sk-" + "a1B2" * 6, "api_key", "sk-" + "a1B2" * 6),
        ("AKIA" + "Q" * 16, "api_key", "AKIA" + "Q" * 16),
        ("AIza" + "x" * 35, "api_key", "AIza" + "x" * 35),
        ("ghp_" + "a" * 36, "api_key", "ghp_" + "a" * 36),
        (f"eyJ{'a' * 9}.eyJ{'b' * 9}.c-d", "api_key", f"eyJ{'a' * 9}.eyJ{'b' * 9}.c-d"),
        ("sk_live_" + "9" * 20, "api_key", "sk_live_" + "9" * 20),
        ("postgres://ann:s3cr!et@db.example.com/x", "url_credentials", "ann:s3cr!et"),
        ("redis://:hunter2@cache:6379", "url_credentials", ":hunter2"),
        ("postgres://ann:sec@ret@db/x", "url_credentials", "ann:sec@ret"),
        ("postgres://a:b@c.d@e@db.example.com/x", "url_credentials", "a:b@c.d@e"),
        ("ann%40example.com", "email", "ann%40example.com"),
        ("https://x.de/?mail=a.b%2Bc%40example.com&x=1", "email", "a.b%2Bc%40example.com"),
        ("100%ann%40example.com", "email", "100%ann%40example.com"),
        *[(f"the key:\n{each}\nthat is it", "private_key", each) for each in PEMS],
        (f"{PEMS[0]}\n{PEMS[1]}", "private_key", PEMS[0]),
        (f"broken: {PEMS[0][:60]}", "private_key", PEMS[0][:60]),
        (f"broken: {PEMS[0][:60]}. So", "private_key", PEMS[0][:60]),
        (
            f"-----BEGIN PRIVATE KEY-----! {PEMS[0]}",
            "private_key",
            f"-----BEGIN PRIVATE KEY-----! {PEMS[0]}",
        ),
    ],
)
def test_what_is_personal_is_found(text: str, kind: str, what: str) -> None:
    assert (kind, what) in found(text)
    assert {each for each, _ in found(text)} == {kind}


@pytest.mark.parametrize(
    "text",
    [
        "2024-01-31 12:30:45.123456",
        "2024-01-31T12:30:45+01:00",
        "31.12.2024 and 12/31/2024",
        "order 100200300400, invoice 2024-000123",
        "ORD-415-555-2671",
        "build 1234567890123456",
        "1.2.3 and 12.4.0.rc1 and v1.2.3.4",
        "300.1.1.1 and 127.0.0.1 and ::1",
        "std::vector<int> a::b dead::beef 12:30:45",
        "000-12-3456 666-12-3456 900-12-3456 123-00-4567 123-45-0000 078-05-1120",
        "4111111111111112",
        "d41d8cd98f00b204e9800998ecf8427e",
        "a4111111111111111f 0.4111111111111111",
        "4111.111111111111 41111111.11111111 4111.1111.1111.1112 x4111.1111.1111.1111",
        "4111.1111.1111.1111x 4111.1111.11111111 41.11.11.11.11.11.11.11",
        "DE88370400440532013000 XX89370400440532013000",
        "numpy@1.26.4 @decorator user@ @example.com ann@localhost",
        "https://example.com/a?b=c https://ann@",
        "3.14159265358979323846 +49 +1 234",
        "50%40 ann%40localhost %40example.com https%3A%2F%2Fexample.com",
        "-----BEGIN CERTIFICATE-----\nMIIabc\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\nMIIabc\n-----END PUBLIC KEY----- -----END PRIVATE KEY-----",
        "sk-short hf_x AKIA123",
        "<EMAIL_1f8a3c5e> [EMAIL] [EMAIL:0123456789ab]",
    ],
)
def test_what_is_not_is_left_alone(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("card 4111 1111 1111 1111.", "card [CREDIT_CARD]."),
        ("ann\u200b@exam\u200bple.com!", "[EMAIL]!"),
        ("ann＠example．com", "[EMAIL]"),  # noqa: RUF001
        ("４１１１１１１１１１１１１１１１", "[CREDIT_CARD]"),  # noqa: RUF001
        ("536\u201190\u20114399", "[US_SSN]"),
        ("4111\u00a01111\u00a01111\u00a01111", "[CREDIT_CARD]"),
        ("\u200bx \ufeff4111\u00ad111111111111 y\u200b", "\u200bx \ufeff[CREDIT_CARD] y\u200b"),
        ("٤١١١١١١١١١١١١١١١", "[CREDIT_CARD]"),
    ],
)
def test_tricks_with_characters_are_seen_through(text: str, after: str) -> None:
    assert hidden(text) == after


def test_findings_that_overlap_are_one_and_no_end_is_left() -> None:
    findings = [Finding("a", 0, 5), Finding("b", 3, 20), Finding("c", 18, 22), Finding("d", 30, 31)]
    assert merged(findings) == [Finding("b", 0, 22), Finding("d", 30, 31)]
    assert merged([Finding("first", 0, 4), Finding("second", 0, 4)]) == [Finding("first", 0, 4)]
    pin = made(patterns={"pin": r"\d{6}"})
    assert hidden("4111111111111111", pin) == "[CREDIT_CARD]"


@pytest.mark.parametrize("card", [CARDS[0], in_groups(CARDS[0]), in_groups(CARDS[0], "-")])
@pytest.mark.parametrize("at", ["@", "%40"])
def test_a_card_and_an_e_mail_without_a_space_between_them_are_found(card: str, at: str) -> None:
    email = "ann@example.com".replace("@", at)
    for between in ("", "-", "_", "."):
        both = [("email", email), ("credit_card", card)]
        assert found(f"of {email}{between}{card}, ok") == both
    ((_, both_as_one),) = found(f"of {card}{email}, ok")
    assert both_as_one == f"{card}{email}"


@pytest.mark.parametrize(
    "text",
    [
        "tool@1.2.rc1",
        "pkg@build.nightly20240101",
        f"ann@example.com{CARDS[0][:-1]}2",  # no card
        f"order{CARDS[0]}",
        f"{CARDS[0]}order",
        f"example.com{CARDS[0]}",
        f"{CARDS[0]}order@home",
    ],
)
def test_other_words_with_digits_are_left_alone(text: str) -> None:
    assert found(text) == []


def test_a_password_in_an_address_is_no_e_mail() -> None:
    assert hidden("https://ann:pw@example.com/x") == "https://[URL_CREDENTIALS]@example.com/x"


# --- checksums -----------------------------------------------------------------------------------


def test_numbers_that_are_valid() -> None:
    assert all(is_card(each) for each in CARDS)
    assert all(is_iban(each) for each in IBANS)
    assert is_ssn("536904399")
    assert len(IBAN_LENGTHS) > 80


@given(st.sampled_from(CARDS), st.data())
def test_a_card_with_another_digit_is_none(card: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(card) - 1))
    digit = data.draw(st.sampled_from([each for each in "0123456789" if each != card[at]]))
    assert not luhn(card[:at] + digit + card[at + 1 :])
    assert not is_card(card[:at] + digit + card[at + 1 :])


@given(st.sampled_from(IBANS), st.data())
def test_an_iban_with_another_character_is_none(iban: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(iban) - 1))
    same = "0123456789" if iban[at].isdigit() else "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    other = data.draw(st.sampled_from([each for each in same if each != iban[at]]))
    assert not is_iban(iban[:at] + other + iban[at + 1 :])


@given(st.sampled_from(IBANS), st.integers(0, 20))
def test_an_iban_with_two_characters_exchanged_is_none(iban: str, at: int) -> None:
    at %= len(iban) - 1
    assume(iban[at].isdigit() == iban[at + 1].isdigit())
    changed = iban[:at] + iban[at + 1] + iban[at] + iban[at + 2 :]
    assert changed == iban or not is_iban(changed)


@given(st.text("0123456789", min_size=1, max_size=18))
def test_every_number_has_one_check_digit(digits: str) -> None:
    assert sum(luhn(digits + each) for each in "0123456789") == 1


# --- streams -------------------------------------------------------------------------------------

#: Texts made of what is found, of what resembles it, and of anything.
PIECES = st.one_of(
    st.sampled_from(
        [
            *CARDS,
            *("4111.1111.1111.1111", "3782.822463.10005", "4111.1111.1111."),
            *IBANS,
            *map(in_groups, CARDS + IBANS),
            *("ann@example.com", "+49 30 901820", "+1 (415) 555-2671", "536-90-4399", "10.1.2.3"),
            *("2001:db8::1", "https://ann:pw@h.example/", "sk-" + "ab" * 12, "ann@example.c"),
            *("0049 30 901820", "415-555-2671", "'o'b@x.io'", "<EMAIL_1f8a3c5e>", "ann＠x．de"),  # noqa: RUF001
            *("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "-----BEGIN RSA PRIV"),
            *(PEMS[0], PEMS[1].replace("\n", "\\n"), "ann%40example.com", "a://b:c@d@ann@x.io"),
            *("ann@example.com4111 1111 1111 1111", "4111-1111-1111-1111ann@example.com"),
            *("DE89 3704 0044", "4111 1111", "(415)", "AB12 WEST", "你好", "jörg", "\u200b"),
        ]
    ),
    st.text(" \n.,-+()<>@:/0123456789aAbE\u200b\u00a0", max_size=6),
    st.text(max_size=4),
)
TEXTS = st.lists(PIECES, max_size=8).map("".join) | st.lists(PIECES, max_size=8).map(" ".join)
CUTS = st.lists(st.integers(0, 400), max_size=12)


@settings(max_examples=400 if FULL else 40)
@given(TEXTS, CUTS)
@example("to ann@example.com now", list(range(23)))
@example("4111 1111 1111 1111 4111 1111 1111 1111", [3, 5, 20])
def test_a_stream_is_what_the_whole_would_be(text: str, at: list[int]) -> None:
    pieces = asyncio.run(streamed(made().inbound(), cut(text, at)))
    assert "".join(pieces) == as_it_is(text)


@settings(max_examples=150 if FULL else 15)
@given(TEXTS, CUTS, st.sampled_from([None, "text"]))
def test_so_it_is_with_detectors_of_ones_own(text: str, at: list[int], scope: Any) -> None:
    def twos(text: str) -> list[Finding]:
        return [Finding("twos", each, each + 2) for each in range(0, len(text) - 1, 7)]

    if scope:
        vars(twos)["scope"] = scope
    filter = made(patterns={"line": r"^\d+.*$"}, others=(twos,))
    pieces = asyncio.run(streamed(filter.inbound(), cut(text, at)))
    assert "".join(pieces) == as_it_is(text, filter)


@settings(max_examples=150 if FULL else 15)
@given(
    st.recursive(
        TEXTS | st.integers() | st.none(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    ),
    CUTS,
)
def test_json_stays_json_also_in_a_stream(value: Any, at: list[int]) -> None:
    text = json.dumps([value], ensure_ascii=False)
    pieces = asyncio.run(streamed(made().inbound(), cut(text, at), of_json=True))
    assert "".join(pieces) == asyncio.run(made().inbound().json(text))
    after = json.loads("".join(pieces))
    assert shape(after) == shape([value])


VALUES = st.recursive(
    TEXTS | st.integers() | st.floats() | st.booleans() | st.none(),
    lambda x: st.lists(x) | st.dictionaries(st.text(), x),
)


@settings(max_examples=150 if FULL else 15)
@given(VALUES, CUTS, st.booleans(), st.sampled_from([None, 1]), st.sampled_from(["", " \n"]))
@example({"n": 4111111111111111, "to": ["ann@example.com"]}, list(range(60)), True, None, "")
@example([float("nan"), float("-inf"), -1.5e300, True, None], list(range(60)), True, None, "")
def test_what_turns_out_to_be_json_stays_json_in_a_stream(
    value: Any, at: list[int], is_ascii: bool, indent: int | None, around: str
) -> None:
    text = f"{around}{json.dumps([value], ensure_ascii=is_ascii, indent=indent)}{around}"
    pieces = asyncio.run(streamed(made().outbound(), cut(text, at)))
    assert "".join(pieces) == asyncio.run(made().outbound().json(text))
    assert shape(json.loads("".join(pieces))) == shape([json.loads(json.dumps(value))])


@settings(max_examples=300 if FULL else 30)
@given(VALUES, CUTS, TEXTS, st.integers(0, 30))
def test_what_looks_like_json_for_a_while_is_what_the_whole_would_be(
    value: Any, at: list[int], rest: str, end: int
) -> None:
    text = json.dumps([value], ensure_ascii=False)
    for each in (f"{text}{rest}", f"{text[:end]}{rest}"):
        pieces = asyncio.run(streamed(made().inbound(), cut(each, at)))
        assert "".join(pieces) == as_it_is(each)


@pytest.mark.parametrize(
    "pieces",
    [
        ["[1] According to", " Ann"],
        ["[Note", "] Hi"],
        ['["ann" ', "said ", "to us"],
        ["{a: ", "1, "],
        ["[1, true, nulx, "],
        ["[1 2 "],
        ["] or "],
    ],
)
async def test_what_cannot_be_json_is_not_held_back_for_it(pieces: list[str]) -> None:
    change = made().outbound()
    usual = Stream(change.filter.detectors.splitter(), change.text)
    wanted = "".join([await usual.feed(each) for each in pieces])
    stream = change.stream()
    assert "".join([await stream.feed(each) for each in pieces]) == wanted != ""


async def test_what_may_be_json_is_held_back() -> None:
    stream = made().outbound().stream()
    for each in (' {"a": ', "1, ", '"b": "', "x ", '", "c": [-1.5e3, tr', "ue]}", " "):
        assert await stream.feed(each) == ""
    assert await stream.end() == ' {"a": 1, "b": "x ", "c": [-1.5e3, true]} '


async def test_a_placeholder_of_a_number_is_one_again_in_a_stream_of_json() -> None:
    filter = made("placeholder")
    away = await filter.inbound().value({"card": 4111111111111111})
    text = json.dumps(away)
    pieces = await streamed(filter.outbound(), [text[:5], text[5:20], text[20:]])
    assert json.loads("".join(pieces)) == {"card": 4111111111111111}


# --- what is allowed -----------------------------------------------------------------------------


def allowing(*allow: str, patterns: Any = None) -> Filter:
    return Filter(Detectors(KINDS, patterns or {}, (), allow), {}, "redact", KEY)


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("support@acme.com or ann@acme.com", "support@acme.com or [EMAIL]"),
        ("Support@ACME.com", "Support@ACME.com"),
        ("sup\u200bport@acme.com", "sup\u200bport@acme.com"),
        ("xsupport@acme.com support@acme.com.au", "[EMAIL] [EMAIL]"),
        ("a@shop.example, a@xshop.example", "a@shop.example, [EMAIL]"),
        ("+1 415-555-2671 and 415-555-2672", "+1 415-555-2671 and [PHONE]"),
        ("4111111111111111@shop.example", "[CREDIT_CARD]@shop.example"),
        ("E12345 E99999", "[STAFF] E99999"),
    ],
)
def test_what_is_allowed_stays_and_nothing_else(text: str, after: str) -> None:
    allow = ("support@acme.com", "*@shop.example", "+1 415-555-2671", "E99999")
    assert hidden(text, allowing(*allow, patterns={"staff": r"\bE\d{5}\b"})) == after


@settings(max_examples=150 if FULL else 15)
@given(TEXTS, CUTS)
def test_so_it_is_in_a_stream(text: str, at: list[int]) -> None:
    filter = allowing("ann@*", "4111 1111 1111 1111", "*.2.3")
    pieces = asyncio.run(streamed(filter.inbound(), cut(text, at)))
    assert "".join(pieces) == as_it_is(text, filter)


def test_a_dot_of_what_is_allowed_is_a_dot() -> None:
    assert hidden("supportXacme@acmeXcom.de", allowing("support.acme@acme.com.de")) == "[EMAIL]"


@settings(max_examples=200 if FULL else 20)
@given(TEXTS, CUTS)
@example('{"to": ann@example.com, "tel": +49 30 901820, "ip": 2001:db8::1}', [30, 50])
@example("Write to ann@example.com, \"or 5' to bob@example.com", [3])
def test_what_was_to_be_json_and_is_not_is_filtered_nevertheless(text: str, at: list[int]) -> None:
    text = f"{text} ann@example.com {text}"
    pieces = "".join(asyncio.run(streamed(made().inbound(), cut(text, at), of_json=True)))
    assert pieces == asyncio.run(made().inbound().json(text))
    assert "@example.com" not in pieces or "@example.com" in hidden(text)
    assert "901820" not in pieces or "901820" in hidden(text)


def shape(value: Any) -> Any:
    """A value without what its texts say; numbers may have become texts."""
    if isinstance(value, list):
        return [shape(each) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: shape(each) for key, each in cast("dict[str, Any]", value).items()}
    return None if value is None else "scalar"


async def test_words_are_let_through_when_they_are_over() -> None:
    pieces = await streamed(made().inbound(), ["Wri", "te to a", "nn@exam", "ple.com", " now", "."])
    assert pieces == ["", "Write to ", "", "", "[EMAIL] ", "", "now."]
    pieces = await streamed(made().inbound(), ["请联系", "ann@example.com", "谢"])
    assert pieces == ["请联系", "", "[EMAIL]谢", ""]


async def test_a_private_key_is_held_back_to_its_end() -> None:
    text = f"Here you are: {PEMS[1]}\nKeep it. "
    pieces = await streamed(made().inbound(), list(text))
    assert (
        "".join(pieces)
        == await made().inbound().text(text)
        == "Here you are: [PRIVATE_KEY]\nKeep it. "
    )
    assert not any("-" in each or "MII" in each for each in pieces)
    assert "".join(pieces[: text.index("Keep")]) == "Here you are: [PRIVATE_KEY]\n"


@pytest.mark.parametrize("length", [10, 16_000, 16_384, 17_000, 40_000])
async def test_a_private_key_without_an_end_holds_a_stream_for_so_long_only(length: int) -> None:
    text = (
        f"-----BEGIN PRIVATE KEY-----\n{'MIIEvQ+ ' * (length // 8)}. So much for that. {PEMS[0]} ok"
    )
    pieces = await streamed(made().inbound(), cut(text, list(range(0, len(text), 97))))
    assert "".join(pieces) == await made().inbound().text(text)
    long = await streamed(made().inbound(), ["-----BEGIN PRIVATE KEY-----\n", "word, " * 4000, "b"])
    assert long[1]


async def test_what_is_only_put_back_is_held_back_for_words() -> None:
    filter = made("placeholder", patterns={"x": "x"})
    assert await streamed(filter.outbound(), ["One ", "two"]) == ["", "One ", "two"]
    assert await streamed(made(patterns={"x": "x"}).outbound(), ["One ", "two"]) == [
        "",
        "",
        "One two",
    ]


# --- strategies ----------------------------------------------------------------------------------


@settings(max_examples=300 if FULL else 30)
@given(TEXTS)
def test_redacting_twice_changes_nothing(text: str) -> None:
    once = hidden(text)
    assert hidden(once) == once
    assert found(once) == []


@settings(max_examples=300 if FULL else 30)
@given(TEXTS, CUTS)
def test_placeholders_are_restored_exactly(text: str, at: list[int]) -> None:
    filter = made("placeholder")
    away = hidden(text, filter)
    assert found(away) == []
    assert asyncio.run(filter.outbound().text(away)) == text
    assert "".join(asyncio.run(streamed(filter.outbound(), cut(away, at)))) == text


def test_placeholders_are_the_same_for_the_same_and_of_one_run() -> None:
    first, second = made("placeholder"), made("placeholder")
    assert hidden("ann@example.com", first) == hidden("ann@example.com", second)
    away = hidden("ann@example.com bob@example.com", first)
    assert len(set(away.split())) == 2
    assert asyncio.run(second.outbound().text(away)).split() == ["ann@example.com", away.split()[1]]
    bare = away.replace("<", "").replace(">", "")
    assert asyncio.run(first.outbound().text(bare)) == "ann@example.com bob@example.com"
    assert "example" not in repr(first)


def test_placeholders_whose_hashes_begin_alike_are_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    from adk_fluent.middleware._pii import _strategies

    def alike(_key: bytes, _kind: str, text: str) -> str:
        return "12345678" + text.encode().hex().ljust(56, "0")

    monkeypatch.setattr(_strategies, "digest", alike)
    placeholders = Placeholders(KEY)
    first, second = placeholders.make("email", "a@x.de"), placeholders.make("email", "b@x.de")
    assert (first, second) == ("<EMAIL_12345678>", "<EMAIL_123456786>")
    assert placeholders.restore(f"{first} {second}") == "a@x.de b@x.de"


def test_what_is_masked_and_hashed() -> None:
    assert mask("4111 1111 1111 1234") == "**** **** **** 1234"
    assert mask("ann@example.com") == "***@******e.com"
    assert mask("10.1.2.3") == "**.*.*.*"  # four of five would be too many
    one = hashed(KEY, "credit_card", "4111 1111 1111 1234")
    assert one == hashed(KEY, "credit_card", "4111-1111-1111-1234")
    assert one != hashed(b"another key, secret", "credit_card", "4111-1111-1111-1234")
    assert hashed(KEY, "email", "Ann@Example.com") == hashed(KEY, "email", "ann@example.com")


def test_blocking_names_kinds_and_nothing_else() -> None:
    filter = made({"email": "block", "ip": "block"})
    with pytest.raises(PersonalDataError) as caught:
        hidden("ann@example.com 10.1.2.3 4111111111111111", filter)
    assert caught.value.kinds == ("email", "ip")
    assert "ann" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_each_kind_may_have_its_own() -> None:
    filter = made({"email": "mask", "credit_card": "hash", "ip": "placeholder"})
    after = hidden("ann@example.com 4111111111111111 10.1.2.3 536-90-4399", filter)
    assert after.startswith("***@******e.com ")
    assert "[CREDIT_CARD:" in after
    assert "<IP_" in after
    assert after.endswith("[US_SSN]")


def test_numbers_that_hang_together_do_not_get_past() -> None:
    """Each is one only when the one before it is gone."""
    assert hidden("+4930123456" * 3) == "[PHONE]" * 3
    assert "123" not in hidden("a +4930123456" + "+4930123456" * 99 + '", b')
    assert hidden('"' + "+4930123456" * 99 + '", b').endswith('[PHONE]", b')


# --- values --------------------------------------------------------------------------------------


async def test_values_are_filtered_one_by_one() -> None:
    value = {
        "to": ["ann@example.com", {"cc": "bob@example.com"}],
        "n": 3,
        "x": 1.5,
        "pair": (1, "ann@example.com"),
        "large": [10**5000, float("inf"), 1e300, -2.0],
        "ok": True,
        "none": None,
        "card": 4111111111111111,
        "raw": b"ann@example.com",
        "json": '{"a": "x\\nann@example.com", "n": [1,  2]}',
        "ann@example.com": 1,
        "bob@example.com": 2,
    }
    assert await made().inbound().value(value) == {
        "to": ["[EMAIL]", {"cc": "[EMAIL]"}],
        "n": 3,
        "x": 1.5,
        "pair": (1, "[EMAIL]"),
        "large": [10**5000, float("inf"), 1e300, -2.0],
        "ok": True,
        "none": None,
        "card": "[CREDIT_CARD]",
        "raw": b"ann@example.com",
        "json": '{"a": "x\\n[EMAIL]", "n": [1,  2]}',
        "[EMAIL]": 1,
        "[EMAIL]_2": 2,
    }


async def test_what_is_nested_too_deeply_to_be_json_is_a_text() -> None:
    text = "[" * 200_000
    assert await made().inbound().string(f"{text}ann@example.com") == f"{text}[EMAIL]"


async def test_a_number_is_one_again_when_it_is_restored() -> None:
    filter = made("placeholder")
    away = await filter.inbound().value({"card": 4111111111111111, "to": "ann@example.com"})
    assert isinstance(away["card"], str)
    back = await filter.outbound().value(away)
    assert back == {"card": 4111111111111111, "to": "ann@example.com"}
    text = await filter.outbound().json(json.dumps(away))
    assert json.loads(text) == {"card": 4111111111111111, "to": "ann@example.com"}


async def test_objects_are_left_alone_unless_there_is_something_in_them() -> None:
    from pydantic import BaseModel

    class Person(BaseModel):
        name: str

    nobody, change = Person(name="x"), made().inbound()
    assert await change.value(nobody) is nobody
    assert await change.value(Person(name="ann@example.com")) == {"name": "[EMAIL]"}
    thing = object()
    assert await change.value(thing) is thing


# --- detectors of the user's ---------------------------------------------------------------------


async def test_detectors_may_be_patterns_functions_and_async() -> None:
    async def names(text: str) -> list[Finding]:
        await asyncio.sleep(0)
        at = text.find("Ann")
        return [Finding("name", at, at + 3)] if at >= 0 else []

    def plain(text: str) -> Iterator[tuple[str, int, int]]:
        if text.endswith("!"):
            yield "cry", len(text) - 1, len(text)

    filter = made(patterns={"staff_id": r"\bE\d{5}\b"}, others=(names, plain))
    after = await filter.inbound().text("x!\nAnn E12345\nAnn")
    assert after == "x[CRY]\n[NAME] [STAFF_ID]\n[NAME]"


@pytest.mark.parametrize("detectors", [["emial"], "email", [Finding], [3]])
def test_a_detector_is_a_function(detectors: Any) -> None:
    with pytest.raises(UsageError, match=r"detectors=\.\.\.\) takes functions") as caught:
        pii_filter(detectors=detectors)
    if detectors == ["emial"]:
        assert caught.value.help == "what is built in is named so: pii_filter(kinds=['email'])"


def fails(text: str) -> list[Finding]:
    raise ValueError(text)


def out_of_bounds(text: str) -> list[Finding]:
    return [Finding("x", 0, len(text) + 1)]


def misnamed(text: str) -> list[Finding]:
    return [Finding("ann@example.com", 0, 1)]


@pytest.mark.parametrize("detector", [fails, out_of_bounds, misnamed])
def test_a_detector_that_fails_lets_nothing_through_and_tells_nothing(detector: Any) -> None:
    with pytest.raises(RunError) as caught:
        hidden("ann@example.com", made(others=(detector,)))
    assert "example" not in str(caught.value)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_kinds_have_plain_names() -> None:
    assert check_kind("staff_id") == "staff_id"
    for each in ("", "Email", "a b", "1a", "a" * 65):
        with pytest.raises(UsageError):
            check_kind(each)


def test_what_a_detector_sees_in_a_placeholder_does_not_break_it() -> None:
    filter = made("placeholder", patterns={"hex": r"[0-9a-f]{6}"})
    away = hidden("ann@example.com", filter)
    assert hidden(away + " ", filter) == away + " "
    assert asyncio.run(filter.outbound().text(away)) == "ann@example.com"


# --- time ----------------------------------------------------------------------------------------

ADVERSARIAL = [
    "a",
    "@",
    "a@",
    "a@a.",
    "a.a",
    "a@1.",
    "1",
    "1 ",
    "4 ",
    "4-",
    "+1",
    "+1 (",
    "1.",
    "4111.1111.1111.1111.",
    "4111.1111.1111.1111.a",
    "[",
    "[1, ",
    '["a" ',
    ":",
    "a:",
    "1:",
    "DE89 ",
    "DE89",
    "eyJ-",
    "eyJaaaaaaaaa.",
    "sk-",
    "SG.aaaaaaaaaaaaaaaa.",
    "a://",
    "a://a:a",
    "<",
    "<E",
    "E_",
    "A_0123456",
    '"',
    '\\"',
    "'",
    "-",
    " ",
    "\u200b",
    "ö",
    "0049 ",
    "(415) ",
    "123-45-",
    "+4930123456",
    "415-555-2671 ",
    "ann@example.com ",
    "4111111111111111",
    "4111 1111 1111 1111 ",
    "a@b.cc4111111111111111",
    "4111111111111111a@b.",
    "a@b.c4111 1111 1111 1111a",
    "a@a.a.a.a.a.4222222222222a4222222222222a",
    "a%40",
    "%40",
    "a%40a.",
    "a://a:@",
    "@a:",
    "-----BEGIN ",
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----!",
    "-----BEGIN PRIVATE KEY-----\na ",
    "-----BEGIN A B C D PRIVATE KEY",
    "-----END PRIVATE KEY-----",
]


def seconds(text: str) -> float:
    """The least of three, as the machine may have other things to do."""
    filter = made({"email": "placeholder"})
    filter.placeholders.make("email", "x@y.de")

    async def once() -> float:
        began = time.process_time()
        await filter.inbound().text(text, False)
        await filter.outbound().json(text, False)
        stream = filter.outbound().stream()
        size = max(1, len(text) // 200)
        for at in range(0, len(text), size):
            await stream.feed(text[at : at + size])
        await stream.end()
        return time.process_time() - began

    return min(asyncio.run(once()) for _ in range(2))


@pytest.mark.parametrize("unit", ADVERSARIAL)
def test_eight_times_the_text_takes_about_eight_times_as_long(unit: str) -> None:
    """Quadratic would be 64 times."""
    small, large = (seconds((unit * size)[:size]) for size in (4_000, 32_000))
    assert large < 30 * small + 0.05

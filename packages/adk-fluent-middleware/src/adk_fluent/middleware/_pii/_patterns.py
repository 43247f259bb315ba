"""What the built-in kinds look like.

Every pattern is linear: repetitions are possessive or have a small bound, and a match begins only
where a run of its characters does. None reaches over a break (see `_split`), and what stands beyond
a break is never looked at, so that a stream can be cut there. Private keys alone have breaks in
them: `open_private_key` says where no stream can be cut.
"""

from __future__ import annotations

import re
from collections import deque
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Final

from adk_fluent.middleware._pii._checksums import IBAN_LENGTHS, is_card, is_iban, is_ssn
from adk_fluent.middleware._pii._finding import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

#: Letters that stand in words and names: Latin, Greek, Cyrillic, and their accents.
LETTERS: Final = (
    r"A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0300-\u036f\u0370-\u0481\u048a-\u052f"
)
_USER: Final = rf"{LETTERS}0-9_.%+()~#!$&'*=?^|-"
#: What patterns are made of. Everything else is a break, and so are most spaces.
IN_RUN: Final = rf"@/:{_USER}"
_WORD: Final = rf"{LETTERS}0-9_"
_LOCAL: Final = rf"{_WORD}.%+'-"

_EMAIL: Final = re.compile(
    rf"(?<![{_LOCAL}])[.'-]*+([{_LOCAL}]++@([{_WORD}-]++(?:\.[{_WORD}-]++)++))"
)
#: As it is written in addresses of the web, ``ann%40example.com``.
_ESCAPED_EMAIL: Final = re.compile(
    rf"(?:(?<![{_LOCAL}])|(?<=%40))[.'-]*+((?:[{_WORD}.+'-]|%(?!40))++%40"
    rf"([{_WORD}-]++(?:\.[{_WORD}-]++)++))"
)
_TOP: Final = re.compile(rf"[{LETTERS}]{{2,63}}|xn--[a-z0-9-]{{1,59}}", re.IGNORECASE)
#: The end of an address that a card's number is put right behind, and such an address behind one.
_TOP_BEFORE_CARD: Final = re.compile(rf"([{LETTERS}]{{2,63}})[-_]?(?=\d)")
_EMAIL_BEFORE: Final = re.compile(rf"[{_LOCAL}](?:@|%40)(?:[{_WORD}-]++\.)+[{LETTERS}]{{2,63}}_?\Z")
_EMAIL_BEHIND: Final = re.compile(
    rf"[{_WORD}][{_LOCAL}]{{0,64}}?(?:@|%40)(?:[{_WORD}-]++\.)+[{LETTERS}]{{2}}"
)
#: No address is longer.
_EMAIL_LENGTH: Final = 320
_IN_URL: Final = re.compile(rf"://[{_USER}]{{0,256}}:[:@{_USER}]{{0,256}}\Z")
#: Between two digits: nothing, a space, or what numbers are written with.
_GAP: Final = r"(?:(?<=[\d)]) (?=[\d(])|[-./()]){0,2}"
_PHONES: Final = (
    re.compile(rf"(?<![A-Za-z0-9_+])\+\(?[1-9](?:{_GAP}\d){{7,14}}(?!\d)", re.ASCII),
    re.compile(
        rf"(?<![A-Za-z0-9_+.-])(?<!\d )00[1-9](?=\d{{0,2}}[ ./(-])(?:{_GAP}\d){{7,14}}(?!\d)",
        re.ASCII,
    ),
    re.compile(
        r"(?<![A-Za-z0-9_+.-])(?:1[-. ])?(?:\([2-9]\d\d\)[- ]?|[2-9]\d\d[-.])[2-9]\d\d[-.]\d{4}"
        r"(?![A-Za-z0-9_]|[-.]\d)",
        re.ASCII,
    ),
)
_DIGITS: Final = re.compile(r"\d++(?:[ -]\d++)*+", re.ASCII)
_BEFORE_CARD: Final = re.compile(r"(?<![A-Za-z0-9_])(?<!\d\.)", re.ASCII)
_AFTER_CARD: Final = re.compile(r"(?![A-Za-z0-9_]|\.\d)", re.ASCII)
_GROUP: Final = re.compile(r"\d++", re.ASCII)
#: With dots, a card is in the groups that are printed: other numbers have dots, too.
_DOTTED: Final = re.compile(r"(?<![A-Za-z0-9_])\d++(?:\.\d++){2,}+", re.ASCII)
_AFTER_DOTTED: Final = re.compile(r"(?![A-Za-z0-9_])", re.ASCII)
_PRINTED: Final = ((4, 4, 4, 4, 3), (4, 4, 4, 4), (4, 6, 5), (4, 6, 4))
_IBAN: Final = re.compile(
    r"(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}"
    r"(?:(?: [A-Za-z0-9]{4}){2,8}(?: [A-Za-z0-9]{1,3})?|(?:-?[A-Za-z0-9]){11,30})",
    re.ASCII,
)
_IPV4: Final = re.compile(
    r"(?<![A-Za-z0-9_.])\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?![A-Za-z0-9_]|\.\d)", re.ASCII
)
_IPV6: Final = re.compile(r"(?<![A-Za-z0-9_:.])[0-9A-Fa-f:][0-9A-Fa-f:.]*+(?![G-Zg-z_])", re.ASCII)
_IPV6_LENGTH: Final = 45
_SSN: Final = re.compile(r"(?<![\w-])(\d{3})([- ])(\d{2})\2(\d{4})(?![\w]|-\d)", re.ASCII)
_CREDENTIALS: Final = re.compile(
    r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,30}://"
    rf"([{_USER}]{{0,256}}:[:@{_USER}]{{1,256}})@"  # a password may have an @: up to the last one
)
_KEYS: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-[A-Za-z0-9_-]{20,}+"  # OpenAI, Anthropic
    r"|[sr]k_(?:live|test)_[A-Za-z0-9]{16,}+"  # Stripe
    r"|A(?:KIA|SIA)[A-Z0-9]{16}(?![A-Za-z0-9])"  # AWS
    r"|AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"  # Google
    r"|ya29\.[A-Za-z0-9_-]{20,}+"
    r"|gh[pousr]_[A-Za-z0-9]{36,}+|github_pat_[A-Za-z0-9_]{22,}+"
    r"|glpat-[A-Za-z0-9_-]{20,}+"
    r"|xox[abeprs]-[A-Za-z0-9-]{10,}+"  # Slack
    r"|hf_[A-Za-z0-9]{30,}+"
    r"|npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])|pypi-[A-Za-z0-9_-]{50,}+"
    r"|SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+"  # SendGrid
    r"|(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}+\.eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]*+"  # JWT
    r")"
)
#: Where a private key in PEM begins and ends, also OpenSSH's and PGP's.
_PEM: Final = re.compile(
    r"-----(BEGIN|END) (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----", re.ASCII
)
#: What may become the beginning of one.
_PEM_BEGUN: Final = re.compile(r"-----BEGIN[A-Z0-9 -]{0,140}\Z", re.ASCII)
#: What stands in one; that is its end where it has none.
_PEM_BODY: Final = re.compile(r"[A-Za-z0-9+/=\s\\]*+", re.ASCII)
#: No private key is longer, and no line that ends one.
_PEM_LENGTH: Final = 16_384
_PEM_LINE: Final = 160


def _emails(text: str) -> Iterator[Finding]:
    yield from _emails_with(_EMAIL, 1, text)
    if "%40" in text:
        yield from _emails_with(_ESCAPED_EMAIL, 3, text)


def _emails_with(pattern: re.Pattern[str], sign: int, text: str) -> Iterator[Finding]:
    """Those of a pattern, whose ``@`` takes so many characters."""
    for match in pattern.finditer(text):
        labels, end = match[2].split("."), match.end()
        top = _TOP_BEFORE_CARD.match(labels[-1])
        if top and _card_at(text, end - len(labels[-1]) + top.end()):
            end -= len(labels[-1]) - len(top[1])
            labels[-1] = top[1]
        while len(labels) > 1 and _TOP.fullmatch(labels[-1].rstrip("-")) is None:
            end -= len(labels.pop()) + 1  # a number behind the address, such as that of a version
        end -= len(labels[-1]) - len(labels[-1].rstrip("-"))
        at = match.start(2) - sign
        if len(labels) > 1 and not _IN_URL.search(text[max(0, at - 600) : at]):
            yield Finding("email", match.start(1), end)


def _phones(text: str) -> Iterator[Finding]:
    for pattern in _PHONES:
        for match in pattern.finditer(text):
            yield Finding("phone", *match.span())


def _cards(text: str) -> Iterator[Finding]:
    """Cards at groups of digits, as they are printed; other groups may stand beside them."""
    for chain in _DIGITS.finditer(text):
        if chain.end() - chain.start() < 12:  # no card is shorter
            continue
        groups = [each.span() for each in _GROUP.finditer(text, *chain.span())]
        after = 0
        for first, (start, _) in enumerate(groups):
            if start < after or text[start] not in "23456" or not _may_begin(text, start):
                continue
            end = _card_end(text, groups[first : first + 19])
            if end is not None:
                yield Finding("credit_card", start, end)
                after = end
    yield from _dotted_cards(text)


def _dotted_cards(text: str) -> Iterator[Finding]:
    for chain in _DOTTED.finditer(text):
        groups = [each.span() for each in _GROUP.finditer(text, *chain.span())]
        lengths = tuple(end - start for start, end in groups)
        after = 0
        for first, (start, _) in enumerate(groups):
            for form in _PRINTED if first >= after else ():
                last = first + len(form)
                if lengths[first:last] == form:
                    end = groups[last - 1][1]
                    digits = text[start:end].replace(".", "")
                    if is_card(digits) and _AFTER_DOTTED.match(text, end):
                        yield Finding("credit_card", start, end)
                        after = last
                        break


def _may_begin(text: str, at: int) -> bool:
    """Whether no word goes on at a place, other than an e-mail address that ends there."""
    if _BEFORE_CARD.match(text, at):
        return True
    return _EMAIL_BEFORE.search(text[max(0, at - _EMAIL_LENGTH) : at]) is not None


def _may_end(text: str, at: int) -> bool:
    """Whether no word goes on at a place, other than an e-mail address that begins there."""
    return (_AFTER_CARD.match(text, at) or _EMAIL_BEHIND.match(text, at)) is not None


def _card_at(text: str, at: int) -> bool:
    """Whether a card's number begins at a digit."""
    chain = _DIGITS.match(text, at, at + 38)
    if chain is None:
        return False
    return (
        _card_end(text, [each.span() for each in _GROUP.finditer(text, *chain.span())]) is not None
    )


def _card_end(text: str, groups: list[tuple[int, int]]) -> int | None:
    digits = ""
    found: int | None = None
    for start, end in groups:
        if end - start + len(digits) > 19:  # no card is longer
            break
        digits += text[start:end]
        if len(digits) > 11 and is_card(digits) and _may_end(text, end):
            found = end
    return found


def _ibans(text: str) -> Iterator[Finding]:
    for match in _IBAN.finditer(text):
        length = IBAN_LENGTHS.get(match[0][:2].upper())
        if length is None:
            continue
        at, taken = match.start(), ""
        while at < match.end() and len(taken) < length:
            taken += text[at] if text[at].isalnum() else ""
            at += 1
        if is_iban(taken) and not (at < len(text) and text[at].isascii() and text[at].isalnum()):
            yield Finding("iban", match.start(), at)


def _ips(text: str) -> Iterator[Finding]:
    for match in _IPV4.finditer(text):
        yield from _address(match[0], match.start(), IPv4Address)
    if ":" not in text:
        return
    for match in _IPV6.finditer(text):
        found = match[0].rstrip(".")
        if found.endswith(":") and not found.endswith("::"):
            found = found[:-1]
        if found.count(":") > 1 and len(found) <= _IPV6_LENGTH and re.search(r"\d", found):
            yield from _address(found, match.start(), IPv6Address)


def _address(
    found: str, start: int, kind: Callable[[str], IPv4Address | IPv6Address]
) -> Iterator[Finding]:
    try:
        address = kind(found)
    except ValueError:
        return
    if not address.is_loopback and not address.is_unspecified:  # nobody's
        yield Finding("ip", start, start + len(found))


def _ssns(text: str) -> Iterator[Finding]:
    for match in _SSN.finditer(text):
        if is_ssn(match[1] + match[3] + match[4]):
            yield Finding("us_ssn", *match.span())


def _keys(text: str) -> Iterator[Finding]:
    for match in _KEYS.finditer(text):
        yield Finding("api_key", *match.span())


def _credentials(text: str) -> Iterator[Finding]:
    if "://" not in text:
        return
    for match in _CREDENTIALS.finditer(text):
        yield Finding("url_credentials", *match.span(1))


def _private_keys(text: str) -> Iterator[Finding]:
    """From where a private key begins to where it ends, or what is there of one."""
    if "-----BEGIN" not in text:
        return
    begun: deque[re.Match[str]] = deque()
    for match in _PEM.finditer(text):
        while begun and match.start() > begun[0].end() + _PEM_LENGTH:
            yield _without_end(begun.popleft(), text)
        if match[1] == "BEGIN":
            begun.append(match)
        elif begun:
            yield Finding("private_key", begun[0].start(), match.end())
            begun.clear()
    for each in begun:
        yield _without_end(each, text)


def _without_end(begin: re.Match[str], text: str) -> Finding:
    body = _PEM_BODY.match(text, begin.end(), begin.end() + _PEM_LENGTH)
    end = begin.end() if body is None else body.end()
    return Finding("private_key", begin.start(), end)


def open_private_key(text: str) -> bool:
    """Whether a text may end within a private key."""
    if _PEM_BEGUN.search(text, max(0, len(text) - _PEM_LINE)):
        return True
    is_open = False
    for match in _PEM.finditer(text, max(0, len(text) - _PEM_LENGTH - 2 * _PEM_LINE)):
        is_open = match[1] == "BEGIN"
    return is_open


#: The built-in detectors, by kind. They are given text as `Folded` has it.
BUILT_IN: Final[Mapping[str, Callable[[str], Iterable[Finding]]]] = {
    "url_credentials": _credentials,
    "api_key": _keys,
    "private_key": _private_keys,
    "email": _emails,
    "credit_card": _cards,
    "iban": _ibans,
    "us_ssn": _ssns,
    "ip": _ips,
    "phone": _phones,
}

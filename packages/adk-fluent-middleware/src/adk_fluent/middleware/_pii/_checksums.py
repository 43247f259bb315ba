"""What tells numbers that mean something from others."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

#: Length of an IBAN by country: the registry of SWIFT.
IBAN_LENGTHS: Final[dict[str, int]] = {
    country: int(length)
    for length, countries in {
        "15": "NO",
        "16": "BE",
        "18": "DK FI FK FO GL NL SD",
        "19": "MK SI",
        "20": "AT BA EE KZ LT LU MN XK",
        "21": "CH HR LI LV",
        "22": "BG BH CR DE GB GE IE ME RS VA",
        "23": "AE GI IL IQ OM SO TL",
        "24": "AD CZ ES MD PK RO SA SE SK TN VG",
        "25": "LY PT ST",
        "26": "IS TR",
        "27": "BI DJ FR GR IT MC MR SM",
        "28": "AL AZ BY CY DO GT HN HU LB NI PL SV",
        "29": "BR EG PS QA UA",
        "30": "JO KW MU YE",
        "31": "MT SC",
        "32": "LC",
        "33": "RU",
    }.items()
    for country in countries.split()
}

#: Leading digits of payment cards, from and to, and how many digits such a card has.
_CARDS: Final[tuple[tuple[str, str, tuple[int, ...]], ...]] = (
    ("4", "4", (13, 16, 19)),  # Visa
    ("51", "55", (16,)),  # Mastercard
    ("2221", "2720", (16,)),
    ("34", "34", (15,)),  # American Express
    ("37", "37", (15,)),
    ("6011", "6011", (16, 17, 18, 19)),  # Discover
    ("644", "649", (16, 17, 18, 19)),
    ("65", "65", (16, 17, 18, 19)),
    ("300", "305", (14,)),  # Diners Club
    ("3095", "3095", (14,)),
    ("36", "36", (14,)),
    ("38", "39", (14,)),
    ("3528", "3589", (16, 17, 18, 19)),  # JCB
    ("62", "62", (16, 17, 18, 19)),  # UnionPay
    ("2200", "2204", (16, 17, 18, 19)),  # Mir
    ("5018", "5018", (12, 13, 14, 15, 16, 17, 18, 19)),  # Maestro
    ("5020", "5020", (12, 13, 14, 15, 16, 17, 18, 19)),
    ("5038", "5038", (12, 13, 14, 15, 16, 17, 18, 19)),
    ("5893", "5893", (12, 13, 14, 15, 16, 17, 18, 19)),
    ("6304", "6304", (12, 13, 14, 15, 16, 17, 18, 19)),
    ("6759", "6759", (12, 13, 14, 15, 16, 17, 18, 19)),
    ("6761", "6763", (12, 13, 14, 15, 16, 17, 18, 19)),
)
#: Each digit doubled, as the sum of its digits.
_DOUBLED: Final = str.maketrans("0123456789", "0246813579")
#: Numbers that were printed in advertisements and belong to nobody.
_SPECIMEN_SSN: Final = frozenset({"078051120", "219099999"})


def luhn(digits: str) -> bool:
    """Whether the last digit of a number is the check digit of the others."""
    doubled = digits[-2::-2].translate(_DOUBLED)
    return (sum(map(int, digits[-1::-2])) + sum(map(int, doubled))) % 10 == 0


@lru_cache(maxsize=10_000)
def card_lengths(first_four: str) -> frozenset[int]:
    """How many digits a card may have whose number begins like this."""
    return frozenset(
        length
        for first, last, lengths in _CARDS
        if first <= first_four[: len(first)] <= last
        for length in lengths
    )


def is_card(digits: str) -> bool:
    """Whether it is a payment card's number: of an issuer, as long as theirs are, and valid."""
    return len(digits) in card_lengths(digits[:4]) and luhn(digits)


def is_iban(text: str) -> bool:
    """Whether it is an IBAN without spaces: of a country that has them, as long, and valid."""
    text = text.upper()
    if IBAN_LENGTHS.get(text[:2]) != len(text):
        return False
    return int("".join(str(int(each, 36)) for each in text[4:] + text[:4])) % 97 == 1


def is_ssn(digits: str) -> bool:
    """Whether these nine digits can be a social security number of the United States."""
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    return (
        area not in ("000", "666")
        and area < "900"
        and group != "00"
        and serial != "0000"
        and digits not in _SPECIMEN_SSN
    )

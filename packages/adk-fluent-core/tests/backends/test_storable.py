from __future__ import annotations

import json
import math
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adk_fluent.backends._storable import MAX_DEPTH, json_fault, kind_of, storage_fault


@dataclass
class Point:
    x: int = 1


class Model:
    def model_dump(self) -> dict[str, Any]:
        return {}


class Word(StrEnum):
    ONE = "one"


class Nul(StrEnum):
    ONE = "\0"


class Number(IntEnum):
    ONE = 1


class Pair(NamedTuple):
    a: int
    b: str


def nested(levels: int, *, of: type = list) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value] if of is list else {"a": value}
    return value


def looped() -> list[Any]:
    value: list[Any] = [1]
    value.append({"again": value})
    return value


SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
TEXTS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"))
JSON = st.recursive(
    SCALARS | TEXTS,
    lambda each: st.lists(each) | st.dictionaries(TEXTS, each) | st.tuples(each, each),
    max_leaves=20,
)


@given(JSON)
def test_json_is_fine_and_comes_back_but_for_tuples(value: Any) -> None:
    assert storage_fault(value) is None
    json.dumps(value, allow_nan=False).encode()


FINE: list[Any] = [
    Word.ONE,
    Number.ONE,
    Pair(1, "b"),
    OrderedDict(a=1),
    "💥",
    "a\\0b",
    -(10**300),
    nested(MAX_DEPTH),
    nested(MAX_DEPTH, of=dict),
    [[shared := [1]], shared],
]


@pytest.mark.parametrize("value", FINE)
def test_what_is_fine(value: Any) -> None:
    assert storage_fault(value) is None


@pytest.mark.parametrize(
    ("value", "path", "says", "help"),
    [
        ({1, 2}, "", "is a set", "write a list: sorted(...)"),
        ([1, frozenset("a")], "[1]", "is a frozenset", "write a list"),
        ({"a": {"b": [datetime.now(UTC)]}}, "['a']['b'][0]", "is a datetime", "isoformat()"),
        (date(2026, 1, 1), "", "is a date", "write text: value.isoformat()"),
        (b"x", "", "is a bytes", "base64"),
        (Decimal(1), "", "is a Decimal", "live objects are handed over"),
        (Point(), "", "is a Point", "dataclasses.asdict(value)"),
        (Model(), "", "is a Model", 'model_dump(mode="json")'),
        (len, "", "is a builtin_function_or_method", ".inject(...)"),
        (Point, "", "is a type", ".inject(...)"),
        (object(), "", "is an object", ".inject(...)"),
        (math.nan, "", "is nan", "write None"),
        ([math.inf], "[0]", "is inf", "write None"),
        ([-math.inf], "[0]", "is -inf", "write None"),
        ("ab\udc80", "", r"has half a character ('\udc80') at position 2", "repair it"),
        ({"\ud800": 1}, r"['\ud800']", r"has half a character ('\ud800')", "repair it"),
        ("a\0b\0", "", "has a NUL character at position 1", r'replace("\0", "")'),
        ([1, Nul.ONE], "[1]", "has a NUL character at position 0", "take it out"),
        ({"ü\0": 1}, r"['ü\x00']", "has a NUL character at position 1", "take it out"),
        ({"a": {1: 2}}, "['a']", "has the key 1, an int", "make the keys str"),
        ({(1, 2): 3}, "", "has the key (1, 2), a tuple", "make the keys str"),
        ({None: 3}, "", "has the key None, a NoneType", "make the keys str"),
        (10**5000, "", "is an int of more than 4000 digits", "hex(...)"),
        (looped(), "[1]['again']", "contains itself", "a copy that does not"),
        (
            nested(MAX_DEPTH + 1),
            "[0]" * MAX_DEPTH,
            "lies below 128 lists and dicts",
            "keep it flat",
        ),
        (nested(100_000), "[0]" * MAX_DEPTH, "lies below 128 lists and dicts", "json.dumps"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not(value: Any, path: str, says: str, help: str) -> None:
    fault = storage_fault(value)
    assert fault is not None
    assert fault.path == path
    assert fault.says.startswith(says)
    assert help in fault.help


def test_the_first_fault_counts() -> None:
    fault = storage_fault({"fine": [1], "a": {1}, "b": b"x"})
    assert fault is not None
    assert (fault.path, fault.part) == ("['a']", {1})


def test_types_have_their_article() -> None:
    assert [kind_of(1), kind_of(""), kind_of(None)] == ["an int", "a str", "a NoneType"]


def test_events_keep_nul_and_state_does_not() -> None:
    for value in ("a\0b", ["\0"], {"a\0": "ü\0"}):
        assert json_fault(value) is None
        assert storage_fault(value) is not None
    for value in ("\udc80", [1, {2}], nested(MAX_DEPTH + 1)):
        assert json_fault(value) == storage_fault(value) != None  # noqa: E711

"""What counts as equal, and values in words."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from adk_fluent.eval._checks._same import fits, is_condition, name_of, plain, same, shown, told

if TYPE_CHECKING:
    from collections.abc import Callable

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


class Color(Enum):
    RED = "red"


class Word(StrEnum):
    A = "a"


class Number(IntEnum):
    ONE = 1


class Order(BaseModel):
    id: str
    total: float | None = None


@dataclass
class Point:
    x: int
    tags: tuple[str, ...] = ()


class Pair(NamedTuple):
    a: int
    b: int


class Spiteful:
    """Nothing can be done with it."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        raise RuntimeError("no")


class Ambiguous:
    """As an array: comparing it gives no one answer."""

    def __eq__(self, other: object) -> Any:
        return self

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __bool__(self) -> bool:
        raise ValueError("which one?")


def nested(depth: int) -> list[Any]:
    made: list[Any] = []
    for _ in range(depth):
        made = [made]
    return made


# --- equality ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, 1.0),
        ("a", "a"),
        (None, None),
        ((1, 2), [1, 2]),
        (Pair(1, 2), [1, 2]),
        ({"a": (1,)}, OrderedDict[str, Any](a=[1])),
        ({1, 2}, frozenset({2, 1})),
        (Word.A, "a"),
        (Number.ONE, 1),
        (Decimal("1.50"), Decimal("1.5")),
        (Order(id="x"), Order(id="x")),
        (True, True),
        ([False], [False]),
    ],
)
def test_same(left: Any, right: Any) -> None:
    assert same(left, right)
    assert same(right, left)
    assert fits(left, right) == ""


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (True, 1),
        (False, 0),
        (0, None),
        ("", None),
        ([], None),
        (False, None),
        ([True], [1]),
        ({"a": True}, {"a": 1}),
        ({True}, {1}),
        ({True: 1}, {1: 1}),
        ({"a": [{"b": 0}]}, {"a": [{"b": False}]}),
        (math.nan, math.nan),
        ([math.nan], [math.nan]),
        ({"a": math.nan}, {"a": math.nan}),
        ({math.nan}, {math.nan}),
        (Decimal("nan"), Decimal("nan")),
        ([1, 2], [1]),
        ([1, 2], [2, 1]),
        ([1], {1}),
        ({"a": 1}, {"a": 1, "b": None}),
        ("1", 1),
        ("a", ["a"]),
        (Color.RED, "red"),
        (Order(id="x"), {"id": "x"}),
        (Spiteful(), 1),
        (Ambiguous(), Ambiguous()),
        (nested(100_000), nested(100_000)),
    ],
    ids=range(27),
)
def test_not_the_same(left: Any, right: Any) -> None:
    assert not same(left, right)
    assert not same(right, left)
    assert fits(left, right)


def test_nan_is_not_even_itself() -> None:
    value = [math.nan]
    assert not same(value, value)
    assert fits(math.nan, math.nan) == 'expected "nan" (float), found "nan" (float)'


@given(json_values)
def test_json_values_are_themselves(value: Any) -> None:
    assert same(value, json.loads(json.dumps(value)))


@given(json_values, json_values)
def test_equality_is_symmetric_and_finer_than_pythons(left: Any, right: Any) -> None:
    assert same(left, right) == same(right, left)
    assert left == right or not same(left, right)


# --- reasons -------------------------------------------------------------------------------------


def test_a_reason_has_both_values() -> None:
    assert fits({"a": 1}, {"a": 2}) == 'expected {"a": 1}, found {"a": 2}'


def test_values_that_look_alike_are_told_with_their_types() -> None:
    assert fits(Color.RED, "red") == 'expected "red" (Color), found "red" (str)'
    assert fits(date(2026, 1, 2), "2026-01-02").endswith('found "2026-01-02" (str)')


def test_long_values_are_cut() -> None:
    reason = fits("x", "y" * 10_000)
    assert len(reason) < 400
    assert "(10002 characters)" in reason


def high(value: Any) -> bool:
    return value > 3


async def later(value: Any) -> bool:
    return False


class Between:
    def __call__(self, value: Any) -> bool:
        return 1 < value < 3


HOLD: list[tuple[Callable[[Any], Any], Any]] = [
    (high, 4),
    (lambda _: True, None),
    (Between(), 2),
    (partial(max, 1), 0),
    (str.isdigit, "12"),
]
DO_NOT_HOLD: list[tuple[Callable[[Any], Any], Any, str]] = [
    (high, 2, "high() says no to 2"),
    (lambda value: not value, "x", 'the condition says no to "x"'),
    (high, None, "high() raised TypeError: '>' not supported between"),
    (lambda _: 1 / 0, 1, "the condition raised ZeroDivisionError: division by zero"),
    (lambda _: Ambiguous(), 1, "the condition raised ValueError: which one?"),
    (lambda _: math.nan, 1, "the condition says no to 1"),
    (lambda _: None, 1, "the condition returned neither true nor false for 1"),
    (later, 1, "later() is async, and says nothing by itself"),
    (Between(), 7, "Between() says no to 7"),
    (partial(min, 0), 5, "partial() says no to 5"),
]


@pytest.mark.parametrize(("condition", "value"), HOLD)
def test_conditions_that_hold(condition: Callable[[Any], Any], value: Any) -> None:
    assert is_condition(condition)
    assert fits(condition, value) == ""


@pytest.mark.parametrize(("condition", "value", "reason"), DO_NOT_HOLD)
def test_conditions_that_do_not_hold(
    condition: Callable[[Any], Any], value: Any, reason: str
) -> None:
    assert fits(condition, value).startswith(reason)


def test_a_class_is_a_value() -> None:
    assert not is_condition(int)
    assert fits(int, 3) == "expected \"<class 'int'>\", found 3"
    assert fits(int, int) == ""


def test_an_error_that_cannot_be_told() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    assert told(MuteError()) == "MuteError"
    assert told(ValueError()) == "ValueError"
    assert told(ValueError("one\n  two")) == "ValueError: one two"
    assert len(told(ValueError("x" * 5000))) < 400


def test_a_condition_does_not_swallow_an_interrupt() -> None:
    def interrupted(value: Any) -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fits(interrupted, 1)


def test_names() -> None:
    assert name_of(high) == "high()"
    assert name_of(lambda: 0) == "the condition"
    assert name_of(Between()) == "Between()"
    assert shown(high) == "high()"


# --- plain values --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "made"),
    [
        (math.nan, "nan"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (10**5000, hex(10**5000)),
        ((1, (2,)), [1, [2]]),
        ({2, 1}, [1, 2]),
        (frozenset({"b", "a"}), ["a", "b"]),
        ({1, "a", None}, ["a", 1, None]),
        ({1: 2, None: 3, Color.RED: 4, (1,): 5}, {"1": 2, "None": 3, "red": 4, "[1]": 5}),
        (b"secret", "<6 bytes>"),
        (bytearray(3), "<3 bytes>"),
        (Color.RED, "red"),
        (Word.A, "a"),
        (Number.ONE, 1),
        (Decimal("1.50"), "1.50"),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02 00:00:00+00:00"),
        (timedelta(seconds=1), "0:00:01"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (PurePosixPath("/a/b"), "/a/b"),
        (Order(id="x"), {"id": "x"}),
        (Order(id="x", total=math.nan), {"id": "x", "total": "nan"}),
        (Order, "<class 'test_same.Order'>"),
        (Point(1, ("a",)), {"x": 1, "tags": ["a"]}),
        (Point, "<class 'test_same.Point'>"),
        (high, "high()"),
        (1j, "1j"),
        (Spiteful(), "<Spiteful>"),
    ],
    ids=range(27),  # some have no repr
)
def test_plain(value: Any, made: Any) -> None:
    found = plain(value)
    if isinstance(made, str):
        made = made.replace("test_same", __name__)
    assert found == made
    assert type(found) is type(made)
    json.dumps(found, allow_nan=False)


@given(json_values)
def test_json_is_plain_already(value: Any) -> None:
    made = plain(value)
    assert same(value, made) or "inf" in repr(made)


def test_what_is_nested_too_deeply_ends() -> None:
    value = nested(5000)
    value_in_itself: dict[str, Any] = {}
    value_in_itself["self"] = value_in_itself
    for each in (value, value_in_itself):
        assert '"..."' in json.dumps(plain(each))


def test_one_bad_value_spoils_no_others() -> None:
    class Broken(dict[str, Any]):
        def items(self) -> Any:
            raise RuntimeError("no")

    class Unfinished(BaseModel):
        def model_dump(self, **options: Any) -> Any:
            raise RuntimeError("no")

    made = plain({"a": 1, "b": Broken(), "c": Unfinished(), "d": Spiteful()})
    assert made == {"a": 1, "b": "{}", "c": "Unfinished()", "d": "<Spiteful>"}


def test_sets_are_the_same_under_every_hash_seed() -> None:
    program = (
        "import json; from adk_fluent.eval._checks._same import plain;"
        "print(json.dumps(plain({str(n) for n in range(20)})))"
    )
    shown = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(shown) == 1

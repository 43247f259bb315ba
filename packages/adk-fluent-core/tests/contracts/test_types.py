"""Whether a value of one type will do where another is expected."""

# ruff: noqa: UP006, UP007, UP035, UP045  # users write types in older ways, too

from __future__ import annotations

import collections.abc as c
from collections import OrderedDict
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import (
    Annotated,
    Any,
    Dict,
    Final,
    List,
    Literal,
    NamedTuple,
    Never,
    NewType,
    Optional,
    TypedDict,
    TypeVar,
    Union,
    cast,
)
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    HttpUrl,
    Json,
    RootModel,
    SecretStr,
    model_validator,
)
from pydantic_core import core_schema

from adk_fluent._accepting import accepts
from adk_fluent.contracts._types import Fit, fit, is_certain, name_of

T = TypeVar("T")
Name = NewType("Name", str)
Age = Annotated[int, "years"]


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Word(StrEnum):
    YES = "yes"


class Empty(Enum):
    pass


class Animal:
    pass


class Dog(Animal):
    pass


@dataclass
class Point:
    x: int


@dataclass
class Line:
    length: int


class Row(TypedDict):
    x: int


class Pair(NamedTuple):
    x: int
    y: int


class Model:
    """Looks like a model of pydantic."""

    model_fields: Final = {"x": int}


YES, SOME, NO = Fit.YES, Fit.SOME, Fit.NO

#: What is written, what is read, and how well that fits.
PAIRS: Final[list[tuple[Any, Any, Fit]]] = [
    # nothing is known
    (None, int, YES),
    (int, None, YES),
    (None, None, YES),
    (Any, int, YES),
    (int, Any, YES),
    (int, object, YES),
    (object, int, SOME),
    (T, int, YES),
    (int, T, YES),
    ("int", str, YES),
    (str, "int", YES),
    # the same
    (int, int, YES),
    (list[int], list[int], YES),
    (Colour, Colour, YES),
    (Age, int, YES),
    (int, Age, YES),
    (Age, str, NO),
    (Name, str, YES),
    (str, Name, YES),
    (Name, int, NO),
    (Annotated[Annotated[int, 1], 2], int, YES),
    # numbers
    (int, float, YES),
    (float, int, SOME),
    (bool, int, NO),
    (bool, float, NO),
    (int, bool, SOME),
    (float, bool, NO),
    (bool, bool, YES),
    (complex, float, NO),
    (int, complex, SOME),
    (int, str, NO),
    (str, int, NO),
    (str, float, NO),
    (str, bool, NO),
    (Decimal, float, NO),
    (str, Decimal, SOME),
    # texts
    (str, bytes, SOME),
    (bytes, str, SOME),
    (bytes, int, NO),
    (Decimal, str, SOME),
    (str, datetime, SOME),
    (str, date, SOME),
    (str, UUID, SOME),
    (datetime, str, SOME),
    (datetime, int, NO),
    (datetime, date, YES),
    (date, datetime, SOME),
    # enums
    (str, Colour, SOME),
    (int, Colour, NO),
    (Colour, str, SOME),
    (Colour, int, NO),
    (Level, str, SOME),
    (int, Level, SOME),
    (Level, int, YES),
    (str, Level, SOME),
    (Word, str, YES),
    (str, Word, SOME),
    (Colour, Level, NO),
    (str, Empty, SOME),
    (int, Empty, NO),
    # one of a few values
    (Literal["a"], str, YES),
    (Literal["a"], int, NO),
    (Literal["a", 1], str, SOME),
    (str, Literal["a"], SOME),
    (int, Literal["a"], NO),
    (bool, Literal[1], SOME),
    (Literal["a"], Literal["a", "b"], YES),
    (Literal["a", "b"], Literal["a"], SOME),
    (Literal["a"], Literal["b"], NO),
    (Literal[1], Literal[True], SOME),
    (Literal[1], Literal[1.0], SOME),
    (Literal[1], float, YES),
    (Literal[True], int, NO),
    # one of several types
    (int | str, int, SOME),
    (int | str, int | str, YES),
    (str | int, int | str, YES),
    (int | str, int | str | bytes, YES),
    (int | str, float, SOME),
    (int | str, bytes, SOME),
    (int | float, str, NO),
    (int, int | str, YES),
    (int, str | bytes, NO),
    (Union[int, str], int | str, YES),
    # None is an absent key, which is a matter of its own
    (Optional[int], int, YES),
    (int | None, int, YES),
    (int, int | None, YES),
    (str, int | None, NO),
    (int | None, str | None, NO),
    (Optional[list[int]], list[int], YES),
    (type(None), type(None), YES),
    # containers
    (list, list, YES),
    (list[int], list, YES),
    (list, list[int], YES),
    (list[int], list[str], NO),
    (list[int], list[float], YES),
    (list[float], list[int], SOME),
    (list[Any], list[int], YES),
    (list[list[int]], list[list[str]], NO),
    (List[int], list[int], YES),
    (Dict[str, int], dict[str, int], YES),
    (list, str, NO),
    (str, list, NO),
    (str, list[str], NO),
    (list[int], dict, NO),
    (list[int], set[int], YES),
    (set[int], list[int], YES),
    (set[int], list[str], NO),
    (tuple[int, str], list[int], YES),
    (list[int], tuple[int, ...], YES),
    (frozenset[int], list[int], YES),
    (dict, dict, YES),
    (dict[str, int], dict, YES),
    (dict[str, int], dict[str, str], NO),
    (dict[str, int], dict[str, float], YES),
    (OrderedDict, dict, YES),
    (dict, OrderedDict, YES),
    (dict[str, int], list[str], NO),
    # abstract ones
    (list[int], c.Sequence[int], YES),
    (list[int], c.Sequence[str], NO),
    (str, c.Sequence, YES),
    (str, c.Sequence[str], YES),
    (int, c.Sequence, NO),
    (set[int], c.Sequence, NO),
    (list[int], c.Iterable[int], YES),
    (dict[str, int], c.Iterable[str], YES),
    (dict[str, int], c.Mapping[str, int], YES),
    (list[int], c.Mapping[str, int], NO),
    (dict, c.MutableMapping, YES),
    (list, c.MutableSequence, YES),
    (str, c.MutableSequence, NO),
    (int, c.Collection, NO),
    (int, c.Iterable, NO),
    # data
    (dict, Point, YES),
    (Point, dict, YES),
    (Point, Line, SOME),
    (Point, Point, YES),
    (Row, dict, YES),
    (dict[str, int], Row, YES),
    (Model, dict, YES),
    (dict, Model, YES),
    (Model, Point, SOME),
    (Model, str, NO),
    (str, Model, NO),
    (list[Point], list[Model], SOME),
    (list[dict[str, int]], list[Model], YES),
    # classes
    (Dog, Animal, YES),
    (Animal, Dog, SOME),
    (Dog, int, NO),
    (int, Dog, NO),
    (list[Dog], list[Animal], YES),
    (list[Animal], list[Dog], SOME),
]


@pytest.mark.parametrize(("written", "read", "how_well"), PAIRS, ids=str)
def test_how_well_types_fit(written: Any, read: Any, how_well: Fit) -> None:
    assert fit(written, read) is how_well


def test_there_are_enough_pairs() -> None:
    assert len(PAIRS) >= 60
    assert {how_well for *_, how_well in PAIRS} == set(Fit)


KINDS: Final = st.sampled_from([kind for pair in PAIRS for kind in pair[:2]])


@given(KINDS)
def test_every_type_fits_itself(kind: Any) -> None:
    assert fit(kind, kind) is YES


@given(KINDS, KINDS)
def test_whether_nothing_fits_does_not_depend_on_what_else_may_be_read(
    one: Any, other: Any
) -> None:
    if one is None or other is None or isinstance(one, str) or isinstance(other, str):
        return
    assert fit(one, Union[other, bytearray]) >= fit(one, other)
    assert fit(one, Optional[other]) >= fit(one, other)


#: What is written, what is read, and whether the types say for sure that it will do.
CERTAIN: Final[list[tuple[Any, Any, bool]]] = [
    (None, None, True),
    (None, Any, True),
    (None, int, False),
    (Any, int, False),
    (Any, object, True),
    (int, int, True),
    (int, Age, True),
    (Age, int, True),
    (int, Name, False),
    (Name, str, True),
    (int, float, True),
    (float, int, False),
    (bool, int, False),
    (int, Annotated[int, Field(ge=0)], False),
    (Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)], True),
    (Annotated[int, Field(ge=0)], Annotated[int, Field(ge=1)], False),
    (Annotated[int, Field(ge=0)], int, True),
    (int, int | None, True),
    (int | None, int, True),
    (int | str, int, False),
    (int | str, str | int | bytes, True),
    (Literal["a"], str, True),
    (Literal["a"], Literal["a", "b"], True),
    (str, Literal["a"], False),
    (Literal[1], Literal[True], False),
    (list, list, True),
    (list[int], list, True),
    (list, list[int], False),
    (list[Never], list[int], True),
    (list[int], list[float], True),
    (list[int], list[Annotated[int, Field(ge=0)]], False),
    (list[int], c.Sequence[int], True),
    (list[int | None], list[int], False),
    (list[int], tuple[int, ...], False),
    (set[int], list[int], False),
    (dict[str, int], dict[str, float], True),
    (dict[str, int], c.Mapping[str, int], True),
    (dict[str, int], Model, False),
    (dict, Row, False),
    (Point, Point, True),
    (Dog, Animal, False),
    (tuple[int, str], tuple[int, str], True),
]


@pytest.mark.parametrize(("written", "read", "certain"), CERTAIN, ids=str)
def test_whether_types_say_enough(written: Any, read: Any, *, certain: bool) -> None:
    assert is_certain(written, read) is certain


class Price(RootModel[int]):
    pass


class Order(BaseModel):
    x: int


class Lenient(BaseModel):
    x: int = 0

    @model_validator(mode="before")
    @classmethod
    def take(cls, value: Any) -> Any:
        return cast("Any", value) if isinstance(value, dict) else {"x": 1}


class Own:
    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return core_schema.no_info_after_validator_function(lambda _: cls(), handler(str))


def len_of(value: object) -> int:
    return len(str(value))


READ: Final = [
    *(bool, int, float, str, bytes, complex, Decimal, date, datetime, UUID, Colour, Level, Word),
    *(list, dict, list[int], set[int], tuple[int, ...], tuple[int, str], dict[str, int]),
    *(Point, Pair, Order, Price, Lenient, Own, Literal["a", 1], int | None, int | str),
    *(
        Annotated[int, Field(ge=2)],
        Annotated[int, BeforeValidator(len_of)],
        Json,
        SecretStr,
        HttpUrl,
    ),
    *(c.Sequence[int], c.Mapping[str, int], list[Order], dict[str, list[float]]),
]
STORED: Final = [
    *(True, False, 0, 1, 3, 1.0, 2.5, "", "a", "1", "red", "yes", "2020-01-01", "http://x.y/"),
    *([], [1], ["a"], [1, "a"], [1, 1], [None], {}, {"x": 1}, {"a": "b"}, [{"x": 1}], {"a": [1]}),
]


@pytest.mark.parametrize("read", READ, ids=name_of)
@pytest.mark.parametrize("value", STORED, ids=repr)
def test_what_is_said_of_types_is_what_pydantic_does(value: Any, read: Any) -> None:
    taken = accepts(read, value)
    assert taken is not None
    for kind in (cast("Any", type(value)), container(value)):
        if taken:
            assert fit(kind, read) is not NO
        else:
            assert not is_certain(kind, read)


def container(value: Any) -> Any:
    """The type of a value, with the types of its parts."""
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return list[Union[tuple(map(container, items))]] if items else list[Never]
    if isinstance(value, dict):
        items = list(cast("dict[str, Any]", value).values())
        return dict[str, Union[tuple(map(container, items))] if items else Never]
    return cast("Any", type(value))


def test_a_value_is_asked_for_only_where_somebody_can_say() -> None:
    assert accepts(int, object()) is None
    assert accepts(Animal, 1) is None
    assert accepts(Annotated[int, []], 1) is True
    assert accepts(bytes, "/w==") is True


class Hostile(type):
    """A class that refuses every question."""

    def __eq__(cls, other: object) -> bool:
        raise TypeError("no")

    def __hash__(cls) -> int:
        raise TypeError("no")

    def __subclasscheck__(cls, kind: type) -> bool:
        raise TypeError("no")


class Odd(metaclass=Hostile):
    pass


def nested(depth: int) -> Any:
    kind: Any = int
    for _ in range(depth):
        kind = list[kind]
    return kind


@pytest.mark.parametrize(
    "kind",
    [
        Odd,
        list[Odd],
        42,
        [1, 2],
        {"a": int},
        (int, str),
        lambda: int,
        Literal[[1]],
        Annotated[int, []],
        Annotated[list[int], {"min": 1}],
        nested(5_000),
        float("nan"),
        ...,
        "",
        type,
        type[int],
        c.Callable[[int], str],
    ],
    ids=lambda kind: type(kind).__name__,
)
def test_what_is_hardly_a_type_is_asked_without_harm(kind: Any) -> None:
    for other in (int, str | None, list[int], Literal["a"], Colour, kind):
        assert fit(kind, other) in Fit
        assert fit(other, kind) in Fit


def test_two_deep_types_are_compared_or_taken_to_fit() -> None:
    assert fit(nested(5_000), nested(4_999)) in Fit
    assert fit(nested(20), nested(20)) is YES


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (int, "int"),
        (Colour, "Colour"),
        (list[int], "list[int]"),
        (List[int], "List[int]"),
        (int | None, "int | None"),
        (Optional[int], "int | None"),
        (Union[int, list[str]], "int | list[str]"),
        (Literal["a", "b"], "Literal['a', 'b']"),
        (Age, "int"),
        (Name, "str"),
        (Any, "Any"),
        ("Later", "Later"),
    ],
)
def test_types_are_named_as_their_source_says_them(kind: Any, name: str) -> None:
    assert name_of(kind) == name


def test_a_class_of_a_function_is_named_without_the_function() -> None:
    class Local:
        pass

    assert name_of(Local) == "Local"

"""Values of all sorts that state is to keep, and a comparison that looks at types.

Imports no ADK itself.
"""

from __future__ import annotations

import copy
import datetime as dt
import enum
import math
import pathlib
import uuid
from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass, field, fields, is_dataclass
from decimal import Decimal
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Optional,
    TypeVar,
    Union,
)

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, computed_field
from typing_extensions import TypedDict  # pydantic asks for it on Python 3.11

from adk_fluent.state import StateSchema

T = TypeVar("T")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Grade(enum.IntEnum):
    GOOD = 1
    BAD = 2


class Kind(enum.StrEnum):
    NEW = "new"
    OLD = "old"


class Shape(enum.Enum):
    SQUARE = (1, 1)
    WIDE = (1, 2)


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class Address(BaseModel):
    street: str
    since: dt.date | None = None


class Booking(BaseModel):
    guest: str
    until: dt.date | None
    address: Address | None


class Person(BaseModel):
    name: str
    born: dt.date
    homes: list[Address] = []
    wallet: dict[Colour, Decimal] = {}

    @computed_field
    @property
    def initial(self) -> str:
        return self.name[:1]


class Aliased(BaseModel):
    model_config = ConfigDict(extra="forbid")
    first_name: str = Field(alias="firstName")


class Page(BaseModel, Generic[T]):
    items: list[T]
    total: int


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    tricks: list[str] = []


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    name: str


@dataclass
class Point:
    x: float
    y: float
    label: str = ""
    at: dt.datetime | None = None


@dataclass(frozen=True)
class Line:
    points: tuple[Point, ...] = ()
    tags: set[str] = field(default_factory=set[str])


class Movie(TypedDict):
    title: str
    year: NotRequired[int]
    shown: NotRequired[dt.date]


class Pair(NamedTuple):
    left: int
    right: str


UserId = NewType("UserId", int)


class Tree(BaseModel):
    value: int
    children: list[Tree] = []


def _even(value: int) -> int:
    if value % 2:
        raise ValueError("odd")
    return value


EAST: Final = dt.timezone(dt.timedelta(hours=5, minutes=30))

#: A type and a value of it, each of which comes back from every session service.
CASES: Final[list[tuple[Any, Any]]] = [
    (str, ""),
    (str, "grüße 你好 \U0001f600 \x01 \u2028"),
    (int, 0),
    (int, -(2**63)),
    (int, 10**40),
    (float, 0.1),
    (float, -0.0),
    (float, 1e308),
    (float, 5e-324),
    (float, 3.0),
    (bool, True),
    (bool, False),
    (bytes, b""),
    (bytes, bytes(range(256))),
    (str | None, "x"),
    (Optional[int], 3),  # noqa: UP045  # both spellings
    (Union[int, str], "3"),  # noqa: UP007
    (int | str, 3),
    (int | float, 3),
    (int | float, 3.0),
    (bool | int, True),
    (Literal["a", "b"], "b"),
    (Literal[1, "1"], "1"),
    (Literal[True, 1] | None, 1),
    (Colour, Colour.BLUE),
    (Grade, Grade.BAD),
    (Kind, Kind.OLD),
    (Colour | None, Colour.RED),
    (dt.datetime, dt.datetime(2024, 2, 29, 23, 59, 59, 999999)),  # noqa: DTZ001  # naive is kept
    (dt.datetime, dt.datetime(2024, 2, 29, tzinfo=dt.UTC)),
    (dt.datetime, dt.datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=EAST)),
    (dt.date, dt.date.min),
    (dt.date, dt.date.max),
    (dt.time, dt.time(1, 2, 3, 4)),
    (dt.time, dt.time(1, 2, tzinfo=dt.UTC)),
    (dt.timedelta, dt.timedelta(days=-1, microseconds=1)),
    (dt.timedelta, dt.timedelta.max),
    (Decimal, Decimal("1.10")),
    (Decimal, Decimal("1E+400")),
    (uuid.UUID, uuid.UUID(int=5)),
    (pathlib.PurePosixPath, pathlib.PurePosixPath("a/b")),
    (complex, 1 - 2j),
    (list[str], []),
    (list[str], ["a", "b"]),
    (list[int | None], [1, None]),
    (list[list[dict[str, int]]], [[{"a": 1}], []]),
    (list[dt.date], [dt.date(2024, 1, 1)]),
    (tuple[int, ...], (1, 2)),
    (tuple[int, str, dt.date], (1, "x", dt.date(2024, 1, 1))),
    (tuple[()], ()),
    (set[int], {1, 2, 3}),
    (set[Colour], {Colour.RED}),
    (frozenset[uuid.UUID], frozenset([uuid.UUID(int=1)])),
    (dict[str, int], {"a": 1, "ключ": 2, "": 3}),
    (dict[str, dict[str, str]], {"a": {}, "b": {"c": "d"}}),
    (dict[int, str], {1: "a", -2: "b"}),
    (dict[Colour, int], {Colour.RED: 1}),
    (dict[dt.date, list[Decimal]], {dt.date(2024, 1, 1): [Decimal("0.10")]}),
    (dict[uuid.UUID, bytes], {uuid.UUID(int=2): b"\xff"}),
    (dict[bool, str], {True: "yes"}),
    (list, [1, "a", None, {"b": [True]}]),
    (dict, {"a": [1, {"b": None}]}),
    (Any, {"a": [1, 2.5, "x", None, True]}),
    (dict[str, Any], {"a": {"b": []}}),
    (object, [1, 2]),
    (deque[int], deque([1, 2])),
    (OrderedDict[str, int], OrderedDict(b=1, a=2)),
    (defaultdict[str, list[int]], defaultdict(list, {"a": [1]})),
    (Address, Address(street="Main", since=dt.date(2020, 1, 1))),
    (
        Person,
        Person(
            name="Ann",
            born=dt.date(1990, 1, 1),
            homes=[Address(street="x")],
            wallet={Colour.RED: Decimal("1.50")},
        ),
    ),
    (Address, Address(street="x")),
    (Booking, Booking(guest="Ann", until=None, address=None)),
    (Booking, Booking(guest="Ann", until=None, address=Address(street="y"))),
    (list[Booking], [Booking(guest="Ann", until=None, address=None)]),
    (dict[str, Booking], {"a": Booking(guest="Ann", until=None, address=None)}),
    (Aliased, Aliased(firstName="Ann")),
    (Page[int], Page[int](items=[1], total=1)),
    (Page[dt.date], Page[dt.date](items=[dt.date(2024, 1, 1)], total=1)),
    (list[Person | None], [None, Person(name="Bob", born=dt.date(1980, 2, 3))]),
    (Pet, Dog(tricks=["sit"])),
    (list[Pet], [Cat(lives=1), Dog()]),
    (Cat | Dog | None, Cat()),
    (Tree, Tree(value=1, children=[Tree(value=2)])),
    (Open, Open.model_validate({"name": "a", "more": [1]})),
    (Point, Point(1.0, -2.5, "p", dt.datetime(2024, 1, 1, tzinfo=dt.UTC))),
    (Line, Line((Point(0.0, 0.0),), {"a"})),
    (Movie, {"title": "M", "shown": dt.date(2024, 1, 1)}),
    (Pair, Pair(1, "x")),
    (UserId, UserId(7)),
    (Annotated[int, Field(ge=0)], 3),
    (Annotated[str, Field(pattern="^a")], "abc"),
    (Annotated[int, AfterValidator(_even)], 4),
    (Annotated[list[str], Field(max_length=2)], ["a", "b"]),
    (bytes | None, b"\x00"),
    (dt.datetime | None, dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
    (int | list[int], [1, 2]),
    (int | dt.date, dt.date(2024, 1, 1)),
    (str | list[str], "a"),
    (Decimal | None, Decimal(0)),
]

#: A type and a value that is not of it, or would not come back as it was.
REFUSED: Final[list[tuple[Any, Any]]] = [
    (str, 3),
    (str, b"x"),
    (str, "half \ud800 of it"),
    (str, "page 1\0page 2"),
    (list[str], ["page 1", "page 2\0"]),
    (int, True),
    (int, 3.0),
    (int, "3"),
    (int, 1 << 20_000),
    (float, True),
    (float, "1.5"),
    (float, math.nan),
    (float, math.inf),
    (float, -math.inf),
    (float | None, math.nan),
    (bool, 1),
    (bool, "true"),
    (bytes, "x"),
    (Decimal, Decimal("NaN")),
    (Decimal, Decimal("Infinity")),
    (Decimal, 1.5),
    (Literal["a"], "b"),
    (Colour, "red"),
    (Colour, Kind.NEW),
    (dt.datetime, "2024-01-01T00:00:00"),
    (dt.date, dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
    (uuid.UUID, "00000000-0000-0000-0000-000000000001"),
    (list[str], ("a",)),
    (list[str], ["a", 1]),
    (list[float], [1.0, math.nan]),
    (dict[str, float], {"a": math.inf}),
    (list[str], ["\udfff"]),
    (set[int], [1]),
    (tuple[int, ...], [1]),
    (dict[str, int], {1: 1}),
    (Address, {"street": "x"}),
    (list[Address], [{"street": "x"}]),
    (dict[str, Address | None], {"a": {"street": "x"}}),
    (tuple[Address, ...], ({"street": "x"},)),
    (Point, {"x": 1.0, "y": 2.0}),
    (Annotated[int, Field(ge=0)], -1),
    (Annotated[int, AfterValidator(_even)], 3),
    (Any, dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),  # would come back as text
    (Any, (1, 2)),
    (Any, {1: 2}),
    (Any, {1, 2}),
    (dict[str, Any], {"when": dt.date(2024, 1, 1)}),
    (list, [Colour.RED]),
    (object, object()),
    (str | dt.date, dt.date(2024, 1, 1)),
    (str | bytes, b"x"),
    (list[int] | tuple[int, ...], (1, 2)),
    (dict[tuple[int, int], str], {(1, 2): "a"}),
    (dict[str | None, int], {None: 1}),
    (Open, Open.model_validate({"name": "a", "when": dt.date(2024, 1, 1)})),
    (Shape, Shape.WIDE),
    (type, int),
]


def holds(annotation: Any, **more: Any) -> Any:
    """A schema with one field of a type, called `value`."""
    body = {"__annotations__": {"value": annotation}, "__module__": __name__, **more}
    made: Any = type(StateSchema)
    return made("Holder", (StateSchema,), body)


def alike(one: Any, other: Any) -> bool:
    """Whether two values are equal, of the same types throughout; read-only ones are as others."""
    one, other = copy.copy(one), copy.copy(other)
    if type(one) is not type(other):
        return False
    ones, others = _parts(one), _parts(other)
    if ones is None or others is None:
        return bool(one == other) and _zone(one) == _zone(other)
    return len(ones) == len(others) and all(map(alike, ones, others))


def _parts(value: Any) -> list[Any] | None:
    """What a value is made of, in an order that equal ones have; None if it is one itself."""
    if isinstance(value, BaseModel):
        return [[name, part] for name, part in value]
    if is_dataclass(value):
        return [getattr(value, each.name) for each in fields(value)]
    if isinstance(value, dict):
        return [[key, value[key]] for key in sorted(value, key=repr)]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)  # pyright: ignore[reportUnknownArgumentType]
    return list(value) if isinstance(value, list | tuple | deque) else None  # pyright: ignore[reportUnknownArgumentType]


def _zone(value: Any) -> Any:
    return value.utcoffset() if isinstance(value, dt.datetime | dt.time) else None

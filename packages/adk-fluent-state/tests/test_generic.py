"""Generic schemas: their type variables stand for what they are given."""

from __future__ import annotations

import copy
import datetime as dt
import operator
import pickle
import sys
from dataclasses import dataclass
from typing import Annotated, Any, Generic, List, Optional, TypeVar, TypeVarTuple, cast  # noqa: UP035

import pytest
from pydantic import BaseModel, Field

from adk_fluent import Pipeline
from adk_fluent.state import (
    Reduce,
    SchemaCompositionError,
    SchemaError,
    SessionScoped,
    StateSchema,
    StateTypeError,
    UserScoped,
    field,
    tool,
)

T = TypeVar("T")
S = TypeVar("S")
Whole = TypeVar("Whole", bound=int)
Rows = TypeVarTuple("Rows")


class Page(BaseModel, Generic[T]):
    items: list[T]


@dataclass
class Box(Generic[T]):
    held: T


class Found(StateSchema, Generic[T]):
    """What a search has found."""

    query: SessionScoped[str]
    best: SessionScoped[T]
    hits: UserScoped[Annotated[list[T], Reduce(operator.add)]] = field(default_factory=list)
    last: T | None = None
    limit: SessionScoped[int] = field(default=3)


class Numbers(Found[int]):
    total: SessionScoped[int]


class Shapes(StateSchema, Generic[T]):
    one: list[T]
    two: dict[str, T | None]
    three: Annotated[T, Field(description="The third")]
    four: tuple[T, ...]
    five: Page[T]
    six: list[Box[T]]
    seven: List[T]  # noqa: UP006
    eight: Optional[T]  # noqa: UP045
    nine: list[Page[T]]


def as_type(schema: Any, name: str) -> Any:
    return schema.ref(name).type


def test_type_variables_are_filled_in() -> None:
    assert [(ref.name, ref.type, ref.key) for ref in Numbers.__state_fields__.values()] == [
        ("query", str, "query"),
        ("best", int, "best"),
        ("hits", list[int], "user:hits"),
        ("last", int | None, "last"),
        ("limit", int, "limit"),
        ("total", int, "total"),
    ]
    assert Numbers.best is Numbers.ref("best")
    assert Numbers.hits.reducer is not None
    assert Numbers.query is Found.query  # which has none
    bound: Any = Numbers.bind(state := {})
    bound.best, bound.hits = 3, [1]
    assert state == {"best": 3, "user:hits": [1]}
    for name, value in (("best", "x"), ("hits", ["x"]), ("last", "x")):
        with pytest.raises(StateTypeError, match=rf"Found\[int\]\.{name}: "):
            setattr(bound, name, value)


def test_type_variables_are_found_wherever_they_are() -> None:
    filled = Shapes[dt.date]
    day = dt.date(2024, 1, 2)
    assert as_type(filled, "one") == list[dt.date]
    assert as_type(filled, "two") == dict[str, dt.date | None]
    assert as_type(filled, "four") == tuple[dt.date, ...]
    assert as_type(filled, "five") is Page[dt.date]
    assert as_type(filled, "six") == list[Box[dt.date]]
    assert as_type(filled, "nine") == list[Page[dt.date]]
    assert filled.ref("three").doc == "The third"
    bound: Any = filled.bind(state := {})
    bound.one, bound.two, bound.three, bound.four = [day], {"a": None}, day, (day,)
    bound.five, bound.six, bound.seven = Page[dt.date](items=[day]), [Box(day)], [day]
    bound.eight = None
    bound = filled.bind(state)
    assert (bound.one, bound.three, bound.five.items, bound.six) == ([day], day, [day], [Box(day)])
    for name in ("one", "four", "seven"):
        with pytest.raises(StateTypeError):
            setattr(bound, name, ["x"])


def test_a_generic_schema_with_types_is_a_schema() -> None:
    assert Found[int] is Found[int]
    assert issubclass(Found[int], Found)
    assert Found[int].bind({"best": 3}).best == 3
    assert Found[int].initial(best=3, hits=[1]) == {"best": 3, "user:hits": [1]}
    assert Found[int].json_schema()["description"] == "What a search has found."
    assert Found[int].json_schema()["properties"]["best"] == {"type": "integer"}
    assert Found[int].template.best == "{best}"
    assert pickle.loads(pickle.dumps(Found[int])) is Found[int]
    assert pickle.loads(pickle.dumps(Numbers)) is Numbers
    best = Found[int].ref("best")
    assert pickle.loads(pickle.dumps(best)) is best is cast("Any", Found[int]).best
    assert copy.deepcopy(Found[int]) is Found[int]
    odd: Any = Found[Annotated[int, Field(ge=[])]]  # which cannot be hashed
    assert odd.best.name == "best"

    @tool
    def keep(state: Found[int]) -> int:
        return state.best

    assert keep(state=Found[int].bind({"best": 3})) == 3
    assert Pipeline("p").step(lambda state: Found[int].delta(best=3)).state(Found[int]).to_ir()


def test_some_type_variables_may_stay_open() -> None:
    class Lists(Found[list[S]], Generic[S]):
        first: SessionScoped[S]

    class Short(Found[list[S]]):
        first: SessionScoped[S]

    class Dates(Lists[dt.date]):
        pass

    generic: list[Any] = [Lists, Short]
    for schema in generic:
        filled = schema[dt.date]
        assert as_type(filled, "best") == list[dt.date]
        assert as_type(filled, "hits") == list[list[dt.date]]
        assert as_type(filled, "first") is dt.date
    assert as_type(Dates, "best") == list[dt.date]
    part: Any = Lists.__base__
    assert part[int] is Found[list[int]]

    class Both(Lists[int], Found[list[int]]):
        pass

    class Other(Found[list[int]], Lists[int]):  # pyright: ignore[reportGeneralTypeIssues]
        pass

    assert as_type(Both, "best") == as_type(Other, "best") == list[int]
    with pytest.raises(SchemaCompositionError, match=r"Found\[str\]\.best.*Found\[int\]\.best"):

        class Clash(Numbers, Found[str]):  # pyright: ignore[reportUnusedClass, reportGeneralTypeIssues]
            pass


def test_an_open_type_variable_takes_what_pydantic_takes() -> None:
    class Counted(StateSchema, Generic[Whole]):
        count: SessionScoped[Whole]

    generic: list[Any] = [Counted, Found]
    bound, anything = (each.bind({}) for each in generic)
    with pytest.raises(LookupError):
        _ = bound.count
    bound.count = 3
    with pytest.raises(StateTypeError, match="valid integer"):
        bound.count = "x"
    assert anything.best is None
    anything.best = "x"
    assert anything.best == "x"


LATER = """
from __future__ import annotations
from typing import Generic, TypeVar
from adk_fluent.state import SessionScoped, StateSchema
T = TypeVar("T")
class Early(StateSchema, Generic[T]):
    one: SessionScoped[dict[str, Later | T]]
    two: Later
    three: SessionScoped[T]
class Below(Early[int]):
    more: str
"""


@pytest.mark.parametrize("first", ["Early", "Below"])
def test_types_in_a_generic_schema_may_be_defined_later(first: str) -> None:
    space: dict[str, Any] = {"__name__": __name__}
    exec(LATER, space)
    with pytest.raises(SchemaError, match=r"Early\.one names 'Later'"):
        _ = space["Below"].one
    space["Later"] = float
    assert space[first].one.name == "one"  # whichever is asked first
    below = space["Below"]
    assert below.one.type == dict[str, float | int]
    assert below.three.type is int
    assert below.two is space["Early"].two
    assert list(below.__state_fields__) == ["one", "two", "three", "more"]


def test_what_type_variables_stand_for_is_checked() -> None:
    class Counted(StateSchema, Generic[T]):
        count: SessionScoped[T] = field(default=3)

    class Many(StateSchema, Generic[*Rows]):
        pass

    whatever: Any = Found
    assert Counted[int].bind({}).count == 3
    for use, says in (
        (lambda: Counted[str], r"the default of Counted\[str\]\.count is no str"),
        (lambda: Counted[list[int]], r"the default of Counted\[list\[int\]\]\.count: .* not fit"),
        (lambda: whatever[int, str], r"Found\[\.\.\.\] cannot be: Too many arguments"),
        (lambda: whatever["int"], r"Found\[\.\.\.\] takes types, not text"),
        (lambda: whatever[UserScoped[int]], r"Found\[\.\.\.\] takes types without a scope"),
        (lambda: cast("Any", Numbers)[int], "Numbers has no type variable"),
        (lambda: cast("Any", StateSchema)[int], "StateSchema has no type variable"),
        (lambda: cast("Any", Many)[int, str], "Many has a TypeVarTuple"),
    ):
        with pytest.raises(SchemaError, match=says):
            use()


NEW = """
import enum
from adk_fluent.state import SessionScoped, StateSchema, UserScoped
type Names = list[str]
type Pairs[A] = list[tuple[A, A]]
type Tree = dict[str, Tree] | str | None
type Tier = UserScoped[int]
type Marked[A] = Tell[A]
type Tell[A] = UserScoped[A]
type Ring = Other
type Other = Ring
type Unknown = list[Nowhere]
def local():
    class Size(enum.Enum):
        SMALL = 1
    class Found[T](StateSchema):
        best: SessionScoped[T]
        pairs: SessionScoped[Pairs[T]]
        size: SessionScoped[Size]
    return Found
Found = local()
class Lists[S](Found[list[S]]):
    first: SessionScoped[S]
class Named(StateSchema):
    names: SessionScoped[Names] = ["a"]
    tree: SessionScoped[Tree]
    tier: Tier
    marked: Marked[int] = 3
"""


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python 3.12 has type parameters")
@pytest.mark.parametrize("first", ["", "from __future__ import annotations"])
def test_type_parameters_and_type_statements(first: str) -> None:
    space: dict[str, Any] = {"__name__": __name__}
    exec(compile(first + NEW, "<new>", "exec", dont_inherit=True), space)
    filled = space["Found"][int]
    assert as_type(filled, "best") is int
    pairs = filled.bind({})
    pairs.pairs = [(1, 2)]
    with pytest.raises(StateTypeError):
        pairs.pairs = [("a", 2)]
    assert as_type(filled, "size").__name__ == "Size"
    assert as_type(space["Lists"][int], "best") == list[int]
    assert as_type(space["Lists"][int], "first") is int
    named = space["Named"]
    bound = named.bind(state := {})
    bound.tree, bound.tier = {"a": {"b": "c"}}, 3
    assert state == {"tree": {"a": {"b": "c"}}, "user:tier": 3}
    assert bound.tree == {"a": {"b": "c"}}
    assert bound.names == ["a"]
    assert named.tier.key == "user:tier"  # its scope is in the type statement
    assert as_type(named, "marked") is int
    for wrong, says in (
        ("a: Names = [1]", r"the default of Wrong\.a: Names does not fit"),
        ("a: Ring", r"Wrong\.a has a type that stands for itself"),
        ("a: Unknown", r"Wrong\.a names 'Nowhere', which is not defined"),
    ):
        with pytest.raises(SchemaError, match=says):
            exec(f"class Wrong(StateSchema):\n    {wrong}\nWrong.__state_fields__", dict(space))

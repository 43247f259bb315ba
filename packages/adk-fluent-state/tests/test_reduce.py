"""What makes one value of those that parallel branches wrote."""

from __future__ import annotations

import copy
import operator
import pickle
from decimal import Decimal  # noqa: TC003  # a type of a field
from typing import Annotated, Any

import pytest

from adk_fluent.builders._keys import as_key
from adk_fluent.state import (
    Reduce,
    SchemaCompositionError,
    SchemaError,
    SessionScoped,
    StateSchema,
    StateTypeError,
    UserScoped,
    field,
)


def longest(one: str, other: str) -> str:
    return max(one, other, key=len)


def either(one: set[int], other: set[int]) -> set[int]:
    return one | other


def one_only(one: Any) -> Any:
    return one


def none_at_all() -> None:
    return None


def extend(one: list[str], other: list[str]) -> list[str]:
    one.extend(other)  # a reducer may change what it is given
    return one


class Found(StateSchema):
    hits: SessionScoped[Annotated[list[str], Reduce(operator.add)]]
    seen: Annotated[set[int], Reduce(either)]
    total: Annotated[UserScoped[Decimal], Reduce(operator.add)]
    best: Annotated[str, Reduce(longest)]
    more: Annotated[list[str], Reduce(extend)] = field(default_factory=list)
    most: Annotated[int, Reduce(max)]
    bad: Annotated[int, Reduce(lambda one, other: f"{one}{other}")]
    lost: Annotated[list[int], Reduce(lambda one, other: one.extend(other))]
    plain: str = ""


def merge(name: str, one: Any, other: Any) -> Any:
    reducer = Found.ref(name).reducer
    assert reducer is not None
    return reducer(one, other)


@pytest.mark.parametrize(
    ("name", "one", "other", "both"),
    [
        ("hits", ["a"], ["b"], ["a", "b"]),
        ("total", "1.10", "2.20", "3.30"),
        ("best", "ab", "c", "ab"),
        ("more", ["a"], ["b"], ["a", "b"]),
        ("most", 3, 2, 3),
    ],
)
def test_stored_values_are_merged_to_a_stored_value(
    name: str, one: Any, other: Any, both: Any
) -> None:
    kept = copy.deepcopy((one, other))
    assert merge(name, one, other) == both
    assert (one, other) == kept
    assert merge(name, None, other) == other
    assert merge(name, one, None) == one
    assert merge(name, None, None) is None


def test_sets_are_merged_as_sets() -> None:
    assert sorted(merge("seen", [1, 2], [2, 3])) == [1, 2, 3]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(
        StateTypeError, match=r"Found\.bad: int cannot be given '12' .* its reducer"
    ):
        merge("bad", 1, 2)
    with pytest.raises(
        StateTypeError, match=r"the reducer of Found\.lost: list\[int\] returned None"
    ):
        merge("lost", [1], [2])
    with pytest.raises(StateTypeError, match=r"state has 'x' \(str\) in Found\.most"):
        merge("most", 1, "x")


@pytest.mark.parametrize("function", [None, "add", 3, one_only, none_at_all])
def test_a_reducer_takes_two_values(function: Any) -> None:
    with pytest.raises(SchemaError, match=r"Reduce\(\.\.\.\) takes a function of two values"):
        Reduce(function)


def test_a_reducer_may_be_a_built_in_without_a_signature() -> None:
    assert Reduce(max).function is max


def test_builders_get_the_reducer_with_the_field() -> None:
    ref = as_key(Found.hits, ".writes(...)")
    assert ref.reducer is not None
    assert ref.reducer.value is Found.hits.reducer
    assert ref.reducer.name == "Found.hits by add"
    assert as_key(Found.hits, ".writes(...)") == ref
    assert as_key(Found.ref("plain"), ".writes(...)").reducer is None


def test_reducers_of_equal_fields_are_equal() -> None:
    class Other(StateSchema):
        hits: SessionScoped[Annotated[list[str], Reduce(operator.add)]]
        seen: Annotated[set[int], Reduce(operator.add)]

    assert Other.hits.reducer == Found.hits.reducer
    assert hash(Other.hits.reducer) == hash(Found.hits.reducer)
    assert Other.ref("seen").reducer != Found.ref("seen").reducer
    assert Found.hits.reducer != Found.ref("more").reducer

    class Same(StateSchema):
        hits: SessionScoped[Annotated[list[str], Reduce(operator.add)]]

    class Both(Found, Same):
        pass

    assert Both.hits.reducer == Found.hits.reducer
    with pytest.raises(SchemaCompositionError, match=r"seen by add.*seen by either"):

        class Clash(Found, Other):  # pyright: ignore[reportUnusedClass]
            pass


def test_a_reducer_is_pickled_with_its_field() -> None:
    reducer = Found.hits.reducer
    assert pickle.loads(pickle.dumps(reducer)) is reducer
    assert repr(reducer) == "<Reducer Found.hits by add>"
    assert Reduce(operator.add) == Reduce(operator.add) != Reduce(either)
    assert hash(Reduce(operator.add)) == hash(Reduce(operator.add))
    assert repr(Reduce(operator.add)) == "Reduce(the function add)"

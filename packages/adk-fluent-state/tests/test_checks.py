"""What checks know of schemas: reducers join values as they do in runs, generics are filled in."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

import pytest

from adk_fluent import FanOut, Pipeline, S
from adk_fluent.contracts import check_all
from adk_fluent.errors import StateKeyError
from adk_fluent.state import Reduce, SessionScoped, StateSchema

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.builders import State


T = TypeVar("T")


class Found(StateSchema, Generic[T]):
    best: SessionScoped[T]


class Count(StateSchema):
    n: SessionScoped[Annotated[int, Reduce(operator.add)]]


def gives(value: int | None) -> Callable[[State], dict[str, Any]]:
    def one(state: State) -> dict[str, Any]:
        del state
        return {"n": 1}

    def none(state: State) -> dict[str, Any]:
        del state
        return {"n": None}

    return none if value is None else one


def sometimes(state: State) -> dict[str, Any]:
    return {"n": 1} if state.get("x") else {}


def reads(state: State) -> None:
    assert Count.bind(state).n >= 1


ONE, NONE = gives(1), gives(None)
HOLDS = [[ONE, ONE], [ONE, NONE], [NONE, ONE], [NONE, ONE, NONE], [ONE, sometimes]]
FAILS = [[NONE, NONE], [NONE, sometimes], [sometimes, NONE], [NONE, NONE, sometimes]]


def flow(branches: list[Any], *, first: bool) -> Pipeline:
    start = [S.set(n=5)] if first else []
    return (
        Pipeline("p", *start, FanOut(*branches), reads)
        .state(Count, extra="allow")
        .contract(inputs=[])
    )


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("branches", HOLDS)
async def test_a_branch_that_removes_takes_nothing_from_others(
    branches: list[Any], *, first: bool
) -> None:
    pipeline = flow(branches, first=first)
    report = check_all(pipeline)
    assert report.proven, (report, report.opaque)
    result = await pipeline.run("Go.")
    assert not result.errors


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("branches", FAILS)
async def test_what_only_removes_leaves_nothing(branches: list[Any], *, first: bool) -> None:
    pipeline = flow(branches, first=first)
    assert {each.code for each in check_all(pipeline)} & {"FLW001", "FLW002"}
    with pytest.raises(StateKeyError):
        await pipeline.run("Go.", state={})


def test_a_key_with_a_reducer_in_the_schema_around_is_no_race() -> None:
    assert "FLW007" not in {each.code for each in check_all(flow([ONE, ONE], first=False))}


def best_number(state: State) -> None:
    assert Found[int].bind(state).best + 1


def best_of_open(state: State) -> None:
    assert Found[Any].bind(state).best


def best_of_too_many(state: State) -> None:
    both: Any = Found
    assert both[int, str].bind(state).best


def test_a_schema_that_is_filled_in_where_it_is_used_has_types() -> None:
    assert check_all(S.set(best=1) >> best_number).proven
    (wrong,) = check_all(S.set(best="x") >> best_number)
    assert wrong.code == "FLW003"
    assert check_all(S.set(best="x") >> best_of_open).ok
    assert check_all(S.set(best="x") >> best_of_too_many).opaque

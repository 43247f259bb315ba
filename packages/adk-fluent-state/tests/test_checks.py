"""What checks know of schemas: reducers join values as they do in runs, generics are filled in."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

import pytest
from pydantic import Field

from adk_fluent import Agent, FanOut, Pipeline, S
from adk_fluent.contracts import check_all
from adk_fluent.errors import (
    ContractError,
    OutputInvalidError,
    StateKeyError,
    StateTypeError,
    UsageError,
)
from adk_fluent.state import Reduce, SessionScoped, StateSchema, tool
from adk_fluent.testing import Call, ScriptedModel

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


class Desk(StateSchema):
    n: SessionScoped[int]
    small: SessionScoped[Annotated[int, Field(le=9)]]
    xs: SessionScoped[list[str]]
    words: SessionScoped[dict[str, list[str]]]


def wrong_delta(state: State) -> dict[str, Any]:
    del state
    return Desk.delta(n="x")


def large_delta(state: State) -> dict[str, Any]:
    del state
    return Desk.delta(small=10)


@tool
def wrong_write(state: Desk) -> None:
    """Write."""
    state.n = "x"  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (Pipeline("p", wrong_delta), "`wrong_delta` writes `n` as str, but its field is int"),
        (
            Pipeline("p", large_delta),
            "`large_delta` writes a value to `small` that its field refuses",
        ),
        (
            Agent("a").tool(wrong_write),
            "`wrong_write`, which `a` calls, writes `n` as str, but its field is int",
        ),
    ],
)
def test_a_value_that_a_field_surely_refuses_is_found(made: Any, says: str) -> None:
    (error,) = check_all(made).errors
    assert (error.code, error.message) == ("FLW009", says)


@tool
def takes_away(state: Desk) -> str:
    """Remove and read."""
    state.unset("n")
    return str(state.n)


@tool
def appends(state: Desk) -> str:
    """Change in place."""
    state.xs.append("more")
    return "done"


@tool
def sorts_later(state: Desk) -> str:
    """Change in place, by another name."""
    kept = state.xs
    kept.sort()
    return "done"


@tool
def sets_an_item(state: Desk) -> str:
    """Change in place."""
    state.xs[0] = "first"
    return "done"


@tool
def deeply(state: Desk) -> str:
    """Change in place, below."""
    state.words["a"].append("more")
    return "done"


@tool
def counts_on(state: Desk) -> str:
    """Write what was read, which is all right."""
    state.n += 1
    state.xs += ["and more"]
    state.xs = [*state.xs, "more"]
    return str(len(state.xs))


def start(tool: Any) -> Any:
    begin = S.set(n=1, xs=["b", "a"], words={"a": ["b"]})
    model = ScriptedModel(Call(tool.__name__), "done")
    return begin >> Agent("a", model).tool(tool)


@pytest.mark.parametrize("fn", [takes_away, appends, sorts_later, sets_an_item, deeply])
async def test_what_fails_there_and_then_is_not_proven(fn: Any) -> None:
    flow = start(fn)
    assert not check_all(flow).proven
    with pytest.raises((UsageError, StateKeyError)):
        await flow.run("Go.")


async def test_what_is_written_anew_is_proven() -> None:
    flow = start(counts_on)
    report = check_all(flow)
    assert report.proven, (report, report.opaque)
    result = await flow.run("Go.")
    assert result.state["n"] == 2


def wrong(state: State) -> dict[str, Any]:
    del state
    return {"n": "x"}


async def test_a_schema_that_only_warns_stops_no_run() -> None:
    for enforce in ("warn", "off"):
        flow = Pipeline("p", wrong).state(Desk, enforce=enforce)
        (found,) = check_all(flow).warnings
        assert found.code == "FLW009"
        assert (await flow.run("Go.")).state["n"] == "x"
    with pytest.raises(ContractError):
        await Pipeline("p", wrong).state(Desk).run("Go.")


async def test_an_attempt_that_fails_stops_no_run() -> None:
    flow = (Pipeline("p", wrong) // Agent("b").mock("fine")).state(Desk)
    assert check_all(flow).errors
    assert (await flow.run("Go.")).text == "fine"


async def test_a_run_begins_with_inputs_of_their_types() -> None:
    flow = Agent("a").mock("fine").contract(inputs=[Desk.small])
    for value in ("x", 10):
        with pytest.raises(StateTypeError, match="begins with 'small' as"):
            await flow.run("Go.", state={"small": value})


async def test_an_answer_of_the_wrong_shape_is_told_the_right_one() -> None:
    with pytest.raises(OutputInvalidError) as caught:
        await Agent("a").writes(Desk.n).mock("3").run("Go.")
    assert 'typed keys are fields of one JSON object, {"n": ...}' in str(caught.value)

"""What is taken for true of values keeps a pipeline from being proven, and is named."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from pydantic import Field

from adk_fluent import Agent, FanOut, Pipeline, S, effects, map_over
from adk_fluent.contracts import check_all
from adk_fluent.ir import Ref, StateFieldRef

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.builders import State

BOTH = ["it gives `n` a value or None", "what it gives `n` is int"]

N = StateFieldRef("n", int)
N_TEXT = StateFieldRef("n", str)
SMALL = StateFieldRef("n", Annotated[int, Field(le=9)])
TEXTS = StateFieldRef("l", list[str])


def reading(*refs: StateFieldRef) -> Callable[..., None]:
    @effects(reads=refs, writes=())
    def reads(state: State) -> None:
        del state

    return reads


def helper() -> Any:
    return None


def unknown(state: State) -> dict[str, Any]:
    del state
    return {"n": helper()}


def three(state: State) -> dict[str, Any]:
    del state
    return {"n": 3}


def texts(state: State) -> dict[str, Any]:
    del state
    return {"l": ["a", "b"]}


def mixed(state: State) -> dict[str, Any]:
    del state
    return {"l": ["a", 1]}


def nothing(state: State) -> dict[str, Any]:
    del state
    return {"l": []}


def both(one: int, other: int) -> int:
    return one + other


def summed(function: Callable[..., Any]) -> Any:
    def writes(name: str) -> Agent:
        ref = StateFieldRef("n", int, reducer=Ref.to(function))
        return Agent(name).writes(ref).mock('{"n": 1}')

    return Pipeline("p", FanOut(writes("a"), writes("b")), reading(N))


MAY_BE_NONE = StateFieldRef("n", int | None)

DOUBTS: list[tuple[str, Any, list[str]]] = [
    (
        "a helper",
        Pipeline("p", unknown, reading(N)),
        BOTH,
    ),
    ("a helper, and nobody who needs a value", Pipeline("p", unknown), []),
    ("a constant", Pipeline("p", three, reading(N)), []),
    ("a constant that may be too large", Pipeline("p", three, reading(SMALL)), ["what it gives"]),
    ("a set constant", S.set(n=3) >> reading(N), []),
    ("a set constant within a limit", S.set(n=3) >> reading(SMALL), []),
    ("texts", Pipeline("p", texts, reading(TEXTS)), []),
    ("an empty list", Pipeline("p", nothing, reading(TEXTS)), []),
    (
        "a list of anything",
        Pipeline("p", mixed, reading(TEXTS)),
        ["what it gives `l` is list[str]"],
    ),
    ("set texts", S.set(l=["a"]) >> reading(TEXTS), []),
    ("a computed value", S.compute(n=lambda state: 3) >> reading(N), []),
    ("a value that a helper computes", S.compute(n=lambda state: helper()) >> reading(N), BOTH),
    ("None is computed", S.compute(n=lambda state: print()) >> reading(N), BOTH),
    ("one of two values", S.compute(n=lambda s: 3 if s.get("x") else 4) >> reading(N), []),
    ("a value or None", S.compute(n=lambda s: 3 if s.get("x") else None) >> reading(N), BOTH[:1]),
    ("a length", S.set(n="abc") >> S.transform("n", len) >> reading(N), []),
    ("upper case", S.set(n="a") >> S.transform("n", str.upper) >> reading(N_TEXT), []),
    ("a value by a helper", S.set(n=1) >> S.transform("n", lambda n: n) >> reading(N), BOTH),
    ("a value of a class", S.set(n="1") >> S.transform("n", int) >> reading(N), []),
    (
        "joined texts",
        S.set(n="a") >> S.merge("n", into="m") >> reading(StateFieldRef("m", str)),
        [],
    ),
    ("a moved value", S.set(m=1) >> S.rename(m="n") >> reading(N), []),
    ("a default", S.default(n=1) >> reading(N), []),
    ("an answer", Agent("a").writes(N).mock('{"n": 1}') >> reading(N), []),
    (
        "an answer that may be None",
        Agent("a").writes(MAY_BE_NONE).mock('{"n": null}') >> reading(N),
        ["it gives `n` a value or None"],
    ),
    ("items that are known", S.set(l=["a"]) >> map_over("l", reading(), item_key="i"), []),
    (
        "items of a type",
        Agent("a").writes(TEXTS).mock("[]")
        >> map_over(TEXTS, reading(StateFieldRef("i", str)), item_key="i"),
        [],
    ),
    (
        "items of no type",
        Agent("a").writes(StateFieldRef("l", list)).mock("[]")
        >> map_over("l", reading(StateFieldRef("i", str)), item_key="i"),
        ["what it gives `i` is str"],
    ),
    ("an artifact", Agent("a").instruct("{artifact.x}"), ["there is an artifact `x`"]),
    ("an artifact that need not be there", Agent("a").instruct("{artifact.x?} {{}}"), []),
    ("a reducer that is known", summed(operator.add), []),
    ("a reducer", summed(both), ["what the reducer of `n` gives is int"] * 2),
]


@pytest.mark.parametrize(
    ("flow", "doubts"), [each[1:] for each in DOUBTS], ids=[d[0] for d in DOUBTS]
)
def test_what_is_not_known_of_values_is_named(flow: Any, doubts: list[str]) -> None:
    report = check_all(flow)
    assert report.ok
    found = [each.why for each in report.opaque]
    assert len(found) == len(doubts), found
    assert all(doubt in why for doubt, why in zip(doubts, found, strict=True)), found
    assert report.proven is not bool(doubts)


def test_an_input_of_no_type_is_in_doubt_and_one_of_a_type_is_not() -> None:
    flow = Pipeline("p", reading(N))
    assert [each.why for each in check_all(flow, inputs=["n"]).opaque] == [
        "whether the input `n` is int is not known"
    ]
    assert check_all(flow, inputs={"n": int}).proven
    assert check_all(flow, inputs=[MAY_BE_NONE]).proven  # an input has a value


def test_what_a_finding_says_is_not_in_doubt_as_well() -> None:
    report = check_all(S.set(n="x") >> reading(N))
    assert [each.code for each in report] == ["FLW003"]
    assert report.opaque == ()


@pytest.mark.parametrize(
    ("value", "read", "codes"),
    [
        (["a"], list[int], ["FLW003"]),
        (10, Annotated[int, Field(le=9)], ["FLW003"]),
        ({"a": "b"}, dict[str, int], ["FLW003"]),
        ([1], tuple[int, int], ["FLW003"]),
        ([1, 2], tuple[int, int], []),
        ({"a": 1}, dict[str, float], []),
        ([None], list[int], ["FLW003"]),
    ],
)
def test_a_constant_is_looked_at_itself(value: Any, read: Any, codes: list[str]) -> None:
    report = check_all(S.set(v=value) >> reading(StateFieldRef("v", read)))
    assert [each.code for each in report] == codes
    assert report.proven is not bool(codes)


def test_the_value_of_a_constant_is_never_told() -> None:
    report = check_all(S.set(v=["secret"]) >> reading(StateFieldRef("v", list[int])))
    assert "as list, with a value that does not fit" in str(report).splitlines()[0]
    assert "secret" not in str(report).splitlines()[0]


@pytest.mark.parametrize("count", [2, 7, 8, 9, 30])
def test_one_constant_of_many_that_does_not_fit_is_not_missed(count: int) -> None:
    branches = [S.set(v=[number]) for number in range(count - 1)]
    flow = branches[0]
    for each in [*branches[1:], S.set(v=["x"])]:
        flow = flow // each
    report = check_all(flow >> reading(StateFieldRef("v", list[int])))
    assert not report.proven


FIELD = StateFieldRef("n", int)


def by_a_field(state: State) -> dict[str, Any]:
    return {"m": state[FIELD]}  # type: ignore[index]  # pyright: ignore[reportArgumentType]


def asks_for_a_field(state: State) -> dict[str, Any]:
    return {"m": state.get(FIELD)}  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]


def looks_for_a_field(state: State) -> dict[str, Any]:
    return {"m": FIELD in state}


def gives_a_field(state: State) -> dict[Any, Any]:
    del state
    return {FIELD: 3}


def gives_a_number(state: State) -> dict[Any, Any]:
    del state
    return {1: 2, "x": 3}


def gives_nothing(state: State) -> dict[str, Any]:
    del state
    return {"": 3}


def gives_a_prefix(state: State) -> dict[str, Any]:
    del state
    return {"user:": 3}


def gives_a_kept_key(state: State) -> dict[str, Any]:
    del state
    return {"_adk_x": 3}


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (by_a_field, "it reads the key `state[FIELD]`, which is a field: its text is `.key`"),
        (asks_for_a_field, "it reads the key `FIELD`, which is a field"),
        (looks_for_a_field, "it looks for the key `FIELD`, which is a field"),
        (gives_a_field, "the key `FIELD` is computed"),
        (gives_a_number, "it returns a key that is no text, which a run refuses"),
        (gives_nothing, "it returns the key '', which a run refuses"),
        (gives_a_prefix, "it returns the key 'user:', which a run refuses"),
        (gives_a_kept_key, "it returns the key '_adk_x', which a run refuses"),
    ],
)
def test_a_key_that_a_run_does_not_take_proves_nothing(step: Callable[..., Any], why: str) -> None:
    (doubt,) = check_all(Pipeline("p", step), inputs=[N]).opaque
    assert why in doubt.why

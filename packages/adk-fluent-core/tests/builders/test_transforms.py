"""`S`: what each transform is in the IR, and what it does to state."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import os
import pickle
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import (
    Agent,
    Fallback,
    FanOut,
    Loop,
    Pipeline,
    Route,
    S,
    map_over,
    race,
    timeout,
    until,
)
from adk_fluent.errors import ExpectationError, UsageError
from adk_fluent.ir import (
    Effects,
    ExpectNode,
    FallbackNode,
    LoopNode,
    Match,
    ParallelNode,
    Ref,
    RouteNode,
    SequenceNode,
    StateFieldRef,
    TapNode,
    TransformNode,
    content_hash,
    from_json,
    registry_of,
    structure_hash,
    to_json,
    verify,
)
from adk_fluent.testing import mock_backend

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adk_fluent.builders import Builder, State


def add_up(state: State) -> int:
    return state["a"] + state["b"]


async def slowly(state: State) -> str:
    await asyncio.sleep(0)
    return "slow"


def is_ready(state: State) -> bool:
    return bool(state.get("ready"))


async def is_ready_soon(state: State) -> bool:
    await asyncio.sleep(0)
    return is_ready(state)


async def shout(value: str) -> str:
    await asyncio.sleep(0)
    return value.upper()


def joined(one: str, other: str | None) -> str:
    return f"{one}+{other}"


async def run(step: Builder, **state: Any) -> dict[str, Any]:
    ran = await step.run("hi", backend=mock_backend({}), state=state)
    return dict(ran.state)


async def deltas(step: Builder, **state: Any) -> list[Mapping[str, Any]]:
    ran = await step.run("hi", backend=mock_backend({}), state=state)
    return [event.state_delta for event in ran]


def refs(*keys: str) -> tuple[StateFieldRef, ...]:
    return tuple(StateFieldRef(key) for key in keys)


def optional(*keys: str) -> tuple[StateFieldRef, ...]:
    return tuple(StateFieldRef(key, default=None) for key in keys)


# --- what they are -------------------------------------------------------------------------------


def facts(step: Builder) -> tuple[Any, ...]:
    node = step.build()
    assert isinstance(node, TransformNode)
    assert verify(node) == ()
    return node.name, node.semantics, node.scope, node.affected_keys, node.effects


SHAPES: list[tuple[Builder, tuple[Any, ...]]] = [
    (
        S.set(k=1, n="x"),
        ("set", "merge", "session", ("k", "n"), Effects((), refs("k", "n"), False)),
    ),
    (
        S.default(k=1),
        ("default", "merge", "session", ("k",), Effects(optional("k"), refs("k"), False)),
    ),
    (
        S.drop("k", "n", "k"),
        ("drop", "delete_keys", "session", ("k", "n"), Effects((), refs("k", "n"), False)),
    ),
    (S.pick("k", "n"), ("pick", "replace_session", "session", ("k", "n"), Effects(opaque=False))),
    (
        S.rename(k="n"),
        ("rename", "merge", "session", ("k", "n"), Effects(optional("k"), refs("k", "n"), False)),
    ),
    (
        S.merge("k", "user:n", into="m"),
        ("merge", "merge", "session", ("m",), Effects(optional("k", "user:n"), refs("m"), False)),
    ),
    (
        S.transform("k", str.lower),
        ("lower", "merge", "session", ("k",), Effects(optional("k"), refs("k"), False)),
    ),
    (
        S.compute(k=add_up),
        ("compute", "merge", "session", ("k",), Effects((), refs("k"), True)),
    ),
    (
        S.compute(k=add_up).reads("a", "b"),
        ("compute", "merge", "session", ("k",), Effects(refs("a", "b"), refs("k"), False)),
    ),
    (
        S.user.set(k=1, **{"user:n": 2}),
        ("set", "merge", "all", ("user:k", "user:n"), Effects((), refs("user:k", "user:n"), False)),
    ),
    (
        S.app.drop("k", "app:n"),
        (
            "drop",
            "delete_keys",
            "all",
            ("app:k", "app:n"),
            Effects((), refs("app:k", "app:n"), False),
        ),
    ),
    (
        S.temp.merge("k", "user:n", into="m"),
        (
            "merge",
            "merge",
            "all",
            ("temp:m",),
            Effects(optional("temp:k", "user:n"), refs("temp:m"), False),
        ),
    ),
    (
        S.set(**{"other:k": 1}),  # no prefix of ADK's, so it is the session's own
        ("set", "merge", "session", ("other:k",), Effects((), refs("other:k"), False)),
    ),
]


@pytest.mark.parametrize(("step", "expected"), SHAPES, ids=lambda x: repr(x)[:40])
def test_what_a_transform_is(step: Builder, expected: tuple[Any, ...]) -> None:
    assert facts(step) == expected


def test_constants_are_in_files_alone() -> None:
    node = S.set(token="hunter2").build()
    assert "hunter2" not in repr(node)
    assert "hunter2" in to_json(node)
    assert "hunter2" not in S.set(token="hunter2").explain()


def test_guard_is_an_expectation_and_log_a_tap() -> None:
    assert S.guard("topic").build() == ExpectNode(
        "guard", Match("ne", "topic", None), "state has no 'topic'"
    )
    assert S.guard(StateFieldRef("user:tier"), "who is it?").build() == ExpectNode(
        "guard", Match("ne", "user:tier", None), "who is it?"
    )
    assert S.guard(is_ready).build() == ExpectNode("guard", Ref.to(is_ready), "guard failed")
    over = Match("gt", "n", 3)
    assert S.guard(over, "small").build() == ExpectNode("guard", over, "small")
    log = S.log("a", "user:b", "a").build()
    assert isinstance(log, TapNode)
    assert (log.name, log.effects) == ("log", Effects(optional("a", "user:b"), (), False))
    assert isinstance(S.log().build(), TapNode)


def test_a_transform_takes_another_name() -> None:
    assert S.set(k=1).named("reset").build().name == "reset"
    assert S.set(name="Ann", self=1).build().name == "set"
    assert S.guard("k").named("known").build().name == "known"


def test_it_is_placed_where_it_was_called() -> None:
    here = test_it_is_placed_where_it_was_called.__code__
    for step in (S.set(k=1), S.pick("k"), S.guard("k"), S.log(), S.user.drop("k")):
        node = step.build()
        assert node.location is not None
        assert node.location.file == here.co_filename


# --- wherever a step can stand -------------------------------------------------------------------

a, b = Agent("a"), Agent("b")
MAKE: list[Callable[[], Builder]] = [
    lambda: S.set(k=1),
    lambda: S.default(k=1),
    lambda: S.pick("k"),
    lambda: S.drop("k"),
    lambda: S.rename(k="n"),
    lambda: S.merge("k", into="n"),
    lambda: S.transform("k", str.lower),
    lambda: S.compute(k=add_up),
    lambda: S.guard("k"),
    lambda: S.log("k"),
    lambda: S.user.set(k=1),
]


@pytest.mark.parametrize("make", MAKE, ids=lambda make: make().name)
def test_it_stands_in_every_arrangement(make: Callable[[], Builder]) -> None:
    node = make().build()
    (na, nb) = a.build(), b.build()
    assert (a >> make() >> b).build() == SequenceNode("pipeline", (na, node, nb))
    assert (make() >> a).build() == SequenceNode("pipeline", (node, na))
    assert (a | make()).build() == ParallelNode("parallel", (na, node))
    assert (make() | a).build() == ParallelNode("parallel", (node, na))
    assert (a // make()).build() == FallbackNode("fallback", (na, node))
    assert (make() // a).build() == FallbackNode("fallback", (node, na))
    assert (make() * 3).build() == LoopNode("loop", node, 3)
    assert (make() * until(is_ready)).build() == LoopNode("loop", node, 10, Ref.to(is_ready))
    assert Route("x").eq(1, make()).otherwise(make()).build() == RouteNode(
        "route", "x", (Match("eq", "x", 1),), (node,), node
    )
    wholes = [
        Pipeline("p", make()).step(make()),
        FanOut("f", make()).branch(make()),
        Fallback("f", make()).attempt(make()),
        Loop("l", make()).step(make()),
        race(make(), a),
        map_over("k", make()),
        timeout(make(), 3),
        a.clone().writes("k") >> {"x": make()},
    ]
    for whole in wholes:
        assert node in whole.build().children or node in whole.build().children[-1].children
        assert verify(whole.build()) == ()


def test_the_key_that_is_written_last_decides_about_branches() -> None:
    def key(step: Builder) -> str | None:
        route = (step >> {"x": a}).build().children[-1]
        assert isinstance(route, RouteNode)
        return route.key

    assert key(S.set(a=1, b="x")) == "b"
    assert key(S.rename(a="b")) == "b"
    assert key(S.rename(a="b", b="a")) == "a"
    assert key(S.compute(n=add_up)) == "n"
    # what removes keys, or looks, has written nothing
    assert key(S.set(a="x") >> S.drop("b") >> S.pick("a") >> S.guard("a") >> S.log()) == "a"


# --- values --------------------------------------------------------------------------------------

SAME = [
    *MAKE,
    lambda: S.set(d={"x": [1, {"y": None}]}),
    lambda: S.merge("a", "b", into="c", fn=joined),
    lambda: S.rename(a="b", b="c"),
    S.log,
]


@pytest.mark.parametrize("make", SAME, ids=lambda make: make().name)
def test_two_that_do_the_same_are_equal(make: Callable[[], Builder]) -> None:
    one, other = make().build(), make().build()
    assert one is not other
    assert one == other
    assert hash(one) == hash(other)
    assert content_hash(one) == content_hash(other)
    assert structure_hash(one) == structure_hash(other)
    again = pickle.loads(pickle.dumps(one))
    assert again == one
    assert content_hash(again) == content_hash(one)
    assert copy.deepcopy(one) == one
    assert from_json(to_json(one), registry_of(other)) == one


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (S.set(k=1), S.set(k=2)),
        (S.set(k=1), S.set(k=1.0)),
        (S.set(k=1), S.set(k=True)),
        (S.set(k=1), S.set(k="1")),
        (S.set(k=None), S.set(k="null")),
        (S.set(k=[1]), S.set(k=[1, 1])),
        (S.set(k=1), S.set(n=1)),
        (S.set(k=1).named("x"), S.default(k=1).named("x")),
        (S.set(k=1), S.user.set(k=1)),
        (S.drop("k"), S.drop("n")),
        (S.pick("k"), S.pick("n")),
        (S.rename(a="b"), S.rename(a="c")),
        (S.merge("a", "b", into="c"), S.merge("b", "a", into="c")),
        (S.merge("a", "b", into="c"), S.merge("a", "b", into="c", fn=joined)),
        (S.compute(k=add_up), S.compute(k=is_ready)),
        (S.transform("k", str.lower).named("x"), S.transform("k", str.upper).named("x")),
        (S.log("k"), S.log("k", level=logging.DEBUG)),
        (S.log("k"), S.log("k", logger="mine")),
    ],
    ids=lambda step: step.name,
)
def test_two_that_differ_are_not_equal(one: Builder, other: Builder) -> None:
    assert one.build() != other.build()
    assert content_hash(one.build()) != content_hash(other.build())


def test_the_content_hash_is_the_same_in_every_process() -> None:
    program = (
        "import operator; from adk_fluent import S, ir\n"
        "whole = S.set(a={'x': [1, 2.5, None, True]}, b='ü') >> S.default(c=3) >> S.rename(a='b')"
        " >> S.pick('b') >> S.drop('c') >> S.merge('a', 'b', into='c')"
        " >> S.transform('c', operator.itemgetter('x')) >> S.compute(n=len).reads('a')"
        " >> S.guard('a') >> S.log('a') >> S.temp.set(t=1)\n"
        "print(ir.content_hash(whole.build()), hash(ir.content_hash(whole.build())))"
    )
    hashes: set[str] = set()
    for seed in ("0", "1", "random"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        hashes.add(done.stdout.split()[0])
    assert len(hashes) == 1


async def test_what_was_given_may_change_and_what_is_written_too() -> None:
    given: dict[str, Any] = {"rows": [1]}
    step = S.set(d=given)
    given["rows"].append(2)
    first = await run(step)
    assert first == {"d": {"rows": [1]}}
    first["d"]["rows"].append(3)
    assert await run(step) == {"d": {"rows": [1]}}


# --- what they do --------------------------------------------------------------------------------


async def test_set_writes() -> None:
    step = S.set(a=2, d={"x": 1}, l=[None, True, 1.5], t="ü", n=None)
    assert await run(step, a=1, b=1, d={"y": 1}, n=3) == {
        "a": 2,
        "b": 1,
        "d": {"x": 1},
        "l": [None, True, 1.5],
        "t": "ü",
    }


async def test_default_writes_what_is_absent_or_none() -> None:
    step = S.default(a=1, b=2, c=3)
    assert await deltas(step, a=0, b=None) == [{"b": 2, "c": 3}]
    assert await deltas(step, a="", b=False, c=[]) == []


async def test_drop_removes() -> None:
    assert await deltas(S.drop("a", "b", "gone"), a=0, b=[1], c=1) == [{"a": None, "b": None}]
    assert await deltas(S.drop("a"), b=1) == []


async def test_pick_keeps_only_what_is_named_of_the_session() -> None:
    state = {
        "a": 1,
        "b": 2,
        "c": None,
        "other:x": 3,
        "user:u": 4,
        "app:a": 5,
        "temp:t": 6,
        "_adk_x": 7,
        "_adk_fluent_x": 8,
    }
    assert await deltas(S.pick("a", "absent"), **state) == [{"b": None, "other:x": None}]
    assert await deltas(S.pick("a", "b", "other:x"), **state) == []


async def test_rename_moves_in_one_event() -> None:
    assert await deltas(S.rename(a="b"), a=1) == [{"a": None, "b": 1}]
    assert await deltas(S.rename(a="b", b="a"), a=1, b=2) == [{"a": 2, "b": 1}]
    assert await deltas(S.rename(a="b", b="c"), a=1, b=2) == [{"a": None, "b": 1, "c": 2}]


async def test_what_is_absent_is_not_renamed() -> None:
    assert await deltas(S.rename(a="b"), b=1) == []
    assert await deltas(S.rename(a="b"), a=None, b=1) == []
    assert await deltas(S.rename(a="b", b="a"), b=2) == [{"b": None, "a": 2}]
    assert await deltas(S.rename(a="b"), a=0, b=1) == [{"a": None, "b": 0}]


async def test_merge_joins_texts_and_numbers() -> None:
    step = S.merge("a", "b", "c", into="all")
    assert (await run(step, a="x", c=1))["all"] == "x\n1"
    assert await deltas(step, b=None) == []
    with pytest.raises(UsageError, match="'b' is neither") as caught:
        await run(step, a="x", b=["y"])
    assert caught.value.found == "a list"


async def test_merge_by_a_function() -> None:
    step = S.merge("a", "b", into="a", fn=joined)
    assert (await run(step, a="x", b="y"))["a"] == "x+y"
    assert (await run(step, a="x"))["a"] == "x+None"
    assert await deltas(step) == []

    async def later(*values: int) -> int:
        await asyncio.sleep(0)
        return sum(values)

    assert (await run(S.merge("a", "b", into="n", fn=later), a=1, b=2))["n"] == 3


async def test_transform_applies() -> None:
    assert await deltas(S.transform("k", str.lower), k="ABC") == [{"k": "abc"}]
    assert await deltas(S.transform("k", float), k="1.5") == [{"k": 1.5}]
    assert await deltas(S.transform("k", shout), k="abc") == [{"k": "ABC"}]
    assert await deltas(S.transform("k", str.lower), n=1) == []
    assert await deltas(S.transform("k", lambda value: None), k=1) == [{"k": None}]


async def test_compute_sees_state_as_it_was() -> None:
    step = S.compute(a=add_up, c=slowly, b=add_up, d=lambda state: state.get("c"))
    assert await deltas(step, a=1, b=2) == [{"a": 3, "c": "slow", "b": 3, "d": None}]
    assert await deltas(S.compute(n=len), a=1, b=None) == [{"n": 1}]


async def test_a_function_that_fails_stops_the_run_and_nothing_is_left_to_await() -> None:
    calls: list[str] = []

    async def counted(state: State) -> int:
        calls.append("counted")
        return 1

    with pytest.raises(KeyError) as caught:
        await run(S.set(x=1) >> S.compute(a=counted, b=add_up, c=counted))
    assert calls == ["counted"]
    assert any("in node 'compute'" in note for note in caught.value.__notes__)


async def test_a_function_sees_state_read_only() -> None:
    def spoil(state: Any) -> int:
        state["x"] = 1
        return 1

    with pytest.raises(UsageError, match="only reads it"):
        await run(S.compute(a=spoil))


async def test_guard_stops_the_run() -> None:
    with pytest.raises(ExpectationError, match="state has no 'topic'") as caught:
        await run(S.guard("topic") >> S.set(x=1), topic=None)
    assert caught.value.found == "topic != None does not hold"
    assert caught.value.node == "guard"
    values: list[Any] = [0, "", False, []]
    for value in values:
        assert "x" in await run(S.guard("topic") >> S.set(x=1), topic=value)
    for test in (is_ready, is_ready_soon):
        with pytest.raises(ExpectationError, match="guard failed"):
            await run(S.guard(test))
        assert await run(S.guard(test, "not ready"), ready=1) == {"ready": 1}


async def test_the_other_scopes() -> None:
    state = {"k": 0, "user:k": 1, "app:k": 2, "temp:k": 3}
    assert await deltas(S.user.set(k=9) >> S.app.default(k=9, n=9), **state) == [
        {"user:k": 9},
        {"app:n": 9},
    ]
    assert await deltas(S.temp.drop("k") >> S.user.rename(k="n"), **state) == [
        {"temp:k": None},
        {"user:k": None, "user:n": 1},
    ]
    assert await deltas(S.app.transform("k", str) >> S.user.compute(s=len), **state) == [
        {"app:k": "2"},
        {"user:s": 4},
    ]
    assert await deltas(S.user.merge("k", "app:k", into="both"), **state) == [{"user:both": "1\n2"}]


# --- logging -------------------------------------------------------------------------------------


async def test_log_writes_to_the_log_and_nowhere_else(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    state = {"b": "x\ny", "a": {"n": 1}, "user:u": 1, "temp:token": "secret", "_adk_x": 1}
    with caplog.at_level(logging.INFO, "adk_fluent"):
        assert await deltas(S.log(), **state) == []
        await run(S.log("temp:token", "absent"), **state)
        await run(S.log())
    assert [(r.name, r.levelname, r.getMessage()) for r in caplog.records] == [
        ("adk_fluent.state", "INFO", "state: a={'n': 1}, b='x\\ny'"),
        ("adk_fluent.state", "INFO", "state: temp:token='secret', absent=None"),
        ("adk_fluent.state", "INFO", "state: empty"),
    ]
    assert capsys.readouterr() == ("", "")


async def test_log_takes_a_logger_and_a_level(caplog: pytest.LogCaptureFixture) -> None:
    mine = logging.getLogger("mine.of.my.own")
    with caplog.at_level(logging.DEBUG, "mine"):
        await run(S.log("a", logger=mine, level=logging.DEBUG), a="x" * 1000)
        await run(S.log("a", logger="mine", level=logging.WARNING), a=1)
    with caplog.at_level(logging.ERROR, "mine"):
        await run(S.log("a", logger="mine", level=logging.WARNING), a=2)
    long, short = caplog.records
    assert (long.name, long.levelname, len(long.getMessage())) == ("mine.of.my.own", "DEBUG", 212)
    assert (short.name, short.levelname, short.getMessage()) == ("mine", "WARNING", "state: a=1")


async def test_log_without_keys_keeps_credentials_to_itself(
    caplog: pytest.LogCaptureFixture,
) -> None:
    state = {"api_key": "s3cret", "a": {"password": "s3cret", "n": 1}}
    with caplog.at_level(logging.INFO, "adk_fluent"):
        await run(S.log() >> S.log("api_key"), **state)
    assert caplog.messages == ["state: a={'n': 1}", "state: api_key='s3cret'"]


async def test_a_key_cannot_break_a_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "adk_fluent"):
        await run(S.log(), **{"a\nroot: all well": 1})
    assert caplog.messages == [r"state: 'a\nroot: all well'=1"]


# --- resources -----------------------------------------------------------------------------------


class Shop:
    def price(self, name: str) -> int:
        return len(name)


async def test_functions_get_resources_by_name() -> None:
    def total(state: State, shop: Shop, *, rate: int = 1) -> int:
        return shop.price(state["item"]) * rate

    async def priced(item: str, shop: Shop) -> int:
        await asyncio.sleep(0)
        return shop.price(item)

    def both(one: str, other: str, *, shop: Shop) -> int:
        return shop.price(one + other)

    desk = (
        S.compute(total=total, n=len)
        >> S.transform("item", priced)
        >> S.merge("a", "b", into="ab", fn=both)
        >> S.transform("upper", str.upper)
    ).inject(shop=Shop(), rate=2, unused=1)
    assert await run(desk, item="tea", a="x", b="yz", upper="u") == {
        "total": 6,
        "n": 4,
        "item": 3,
        "a": "x",
        "b": "yz",
        "ab": 3,
        "upper": "U",
    }


# --- checks --------------------------------------------------------------------------------------


def test_what_they_read_and_write_is_known() -> None:
    known = S.set(a=1) >> S.transform("a", str) >> S.merge("a", into="b", fn=str) >> S.guard("a")
    report = (known >> S.pick("a") >> S.rename(a="b") >> S.drop("b") >> S.log()).check()
    assert report.proven, str(report)
    added = S.compute(n=add_up).reads("a", "b")
    assert added.contract(inputs=["a", "b"]).check().proven
    assert not added.contract(inputs=["a"]).check().ok
    assert not S.compute(n=add_up, m=lambda state: add_up(state)).check().proven  # noqa: PLW0108
    assert not S.guard(lambda state: is_ready(state)).check().proven  # noqa: PLW0108


def test_explained() -> None:
    whole = (
        S.set(stage="x")
        >> S.default(stage="x").named("fill")
        >> S.pick("a", "b")
        >> S.drop("c")
        >> S.rename(a="b")
        >> S.merge("a", "b", into="c", fn=joined)
        >> S.transform("a", str.lower)
        >> S.user.compute(n=len).reads("a")
        >> S.guard("a")
        >> S.log("a")
    )
    lines = [line.split("  [")[0].rstrip() for line in whole.explain().splitlines()]
    assert lines == [
        "pipeline",
        "├─ transform set",
        "│      writes: stage",
        "├─ transform fill",
        "│      does: default",
        "│      reads: stage",
        "│      writes: stage",
        "├─ transform pick",
        "│      keeps only: a, b",
        "├─ transform drop",
        "│      removes: c",
        "├─ transform rename",
        "│      does: rename a to b",
        "│      reads: a",
        "│      writes: a, b",
        "├─ transform merge",
        "│      does: merge a, b into c by joined",
        "│      reads: a, b",
        "│      writes: c",
        "├─ transform lower",
        "│      does: lower of a",
        "│      reads: a",
        "│      writes: a",
        "├─ transform compute",
        "│      does: compute user:n by len",
        "│      reads: a",
        "│      writes: user:n",
        "├─ expect guard: a != None, else \"state has no 'a'\"",
        "└─ tap log",
        "       reads: a",
    ]


def test_a_whole_pipeline_is_json_but_for_its_functions() -> None:
    pipeline = (a >> S.set(k=[1]) >> S.compute(n=add_up) >> b).build()
    data = json.loads(to_json(pipeline))
    assert len(data["nodes"]) == 5
    assert from_json(to_json(pipeline), registry_of(pipeline)) == pipeline

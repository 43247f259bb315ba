"""Leaves: functions, transforms, taps, expectations, transfers, and what errors say."""

from __future__ import annotations

import asyncio
from collections import UserDict
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.errors import BuildError, ExpectationError, UsageError
from adk_fluent.ir import AgentNode, FunctionNode, Location, Match, Node, Ref

if TYPE_CHECKING:
    from .conftest import Bench


# --- functions ---------------------------------------------------------------------------------


async def test_what_a_function_returns_is_one_event_of_the_root(b: Bench) -> None:
    ran = await b.run(b.seq(b.fn("f", x=1, y=2)))
    [event] = ran.events
    assert event.state_delta == {"x": 1, "y": 2}
    assert (event.author, event.node, event.path) == ("seq", "f", "s0")
    assert event.attempt is None
    assert event.discarded == ()
    assert event.metadata["why"] == "step"


@pytest.mark.parametrize("result", [None, {}])
async def test_a_function_that_returns_nothing_writes_no_event(b: Bench, result: object) -> None:
    ran = await b.run(b.seq(b.fn("f", lambda _: result), b.say("a")))
    assert [event.node for event in ran.events] == ["a"]


async def test_a_function_may_be_async(b: Bench) -> None:
    async def slow(state: Any) -> Any:
        await asyncio.sleep(0)
        return {"x": state["y"]}

    b.state["y"] = 7
    await b.run(b.fn("f", slow))
    assert b.state["x"] == 7


async def test_any_mapping_will_do(b: Bench) -> None:
    await b.run(
        b.seq(b.fn("f", lambda _: UserDict(x=1)), b.fn("g", lambda _: MappingProxyType({"y": 2})))
    )
    assert b.state == {"x": 1, "y": 2}


@pytest.mark.parametrize("result", [1, "text", [("a", 1)], {1: 2}])
async def test_anything_else_is_an_error_that_names_the_step(b: Bench, result: object) -> None:
    error = await b.error(b.seq(b.fn("f", lambda _: result)))
    assert isinstance(error, UsageError)
    assert error.node == "f"
    assert "function step 'f'" in str(error)
    assert b.state == {}


async def test_a_function_cannot_write_through_the_mapping_it_gets(b: Bench) -> None:
    def cheat(state: Any) -> None:
        state["x"] = 1

    error = await b.error(b.fn("f", cheat))
    assert isinstance(error, TypeError)
    assert b.state == {}


async def test_a_function_on_a_snapshot_cannot_write_through_it_either(b: Bench) -> None:
    def cheat(state: Any) -> None:
        state["x"] = 1

    error = await b.error(b.race(b.fn("f", cheat)))
    assert isinstance(error, TypeError)
    assert b.state == {}


async def test_the_result_is_copied_when_it_is_returned(b: Bench) -> None:
    kept: dict[str, Any] = {"x": 1}
    ran = await b.run(b.fn("f", lambda _: kept))
    kept["x"] = 2
    assert ran.wrote == [{"x": 1}]


@pytest.mark.parametrize(
    "key",
    ["", "  ", "user:", "_adk_x", "user:_adk_x", "__session_metadata__", "_code_execution_context"],
)
async def test_a_key_that_no_step_may_write_is_refused(b: Bench, key: str) -> None:
    error = await b.error(b.fn("f", lambda _: {"fine": 1, key: 1}))
    assert isinstance(error, UsageError)
    assert error.node == "f"
    assert "returned the key" in error.what
    assert b.state == {}


# --- transforms --------------------------------------------------------------------------------


async def test_merge_writes_what_it_returns(b: Bench) -> None:
    b.state.update(a=1)
    await b.run(b.transform(lambda s: {"b": s["a"] + 1}))
    assert b.state == {"a": 1, "b": 2}


async def test_replace_session_removes_every_other_key_of_the_session(b: Bench) -> None:
    b.state.update({"a": 1, "b": 2, "n": None, "user:u": 3, "app:p": 4, "_adk_x": 5})
    ran = await b.run(b.transform(lambda s: {"b": 9, "c": 1}, semantics="replace_session"))
    assert ran.wrote == [{"a": None, "b": 9, "c": 1}]


async def test_replace_of_all_scopes_takes_prefixed_keys_too_but_none_of_ours(b: Bench) -> None:
    b.state.update({"a": 1, "user:u": 3, "app:p": 4, "_adk_fluent_flow:r": 5, "_adk_x": 6})
    ran = await b.run(b.transform(lambda _: {"b": 1}, semantics="replace_session", scope="all"))
    assert ran.wrote == [{"a": None, "user:u": None, "app:p": None, "b": 1}]


async def test_what_middlewares_count_and_remember_stays(b: Bench) -> None:
    b.state.update({"a": 1, "adk_fluent_summary:clerk": "Ann asked.", "user:adk_fluent_tokens": 9})
    ran = await b.run(b.transform(None, semantics="replace_session", scope="all"))
    assert ran.wrote == [{"a": None}]


async def test_the_title_that_adk_web_gives_a_session_stays(b: Bench) -> None:
    b.state.update({"a": 1, "__session_metadata__": {"displayName": "Where is A1?"}})
    ran = await b.run(b.transform(None, semantics="replace_session", affected_keys=("b",)))
    assert ran.wrote == [{"a": None}]


async def test_delete_keys_writes_none_where_there_is_something(b: Bench) -> None:
    b.state.update(a=1, b=2, n=None)
    ran = await b.run(
        b.transform(None, semantics="delete_keys", affected_keys=("a", "n", "absent"))
    )
    assert ran.wrote == [{"a": None}]


async def test_keys_that_are_listed_stay_as_they_are(b: Bench) -> None:
    b.state.update({"a": 1, "b": 2, "x:y": 3, "user:u": 4, "app:a": 5, "temp:t": 6, "_adk_x": 7})
    keep = b.transform(None, semantics="replace_session", affected_keys=("a", "absent"))
    assert (await b.run(keep)).wrote == [{"b": None, "x:y": None}]
    both = b.transform(lambda s: {"a": 2}, semantics="replace_session", affected_keys=("c",))
    b.state["c"] = 1
    assert (await b.run(both)).wrote == [{"a": 2}]


async def test_a_transform_that_removes_nothing_is_no_event(b: Bench) -> None:
    ran = await b.run(b.transform(None, semantics="delete_keys", affected_keys=("absent",)))
    assert ran.events == []


async def test_a_transform_on_a_snapshot_sees_the_snapshot(b: Bench) -> None:
    b.state.update(list=[1, 2])
    drop = b.transform(None, semantics="delete_keys", affected_keys=("x",))
    await b.run(b.map(b.seq(b.fn("f", x=1), drop, b.fn("g", y=lambda s: s.get("x"))), result="y"))
    assert b.state["results"] == [None, None]
    assert b.state["x"] is None


async def test_what_a_transform_returns_is_checked_too(b: Bench) -> None:
    error = await b.error(b.transform(lambda _: 3))
    assert isinstance(error, UsageError)
    assert "transform 'S'" in str(error)


# --- taps and expectations ---------------------------------------------------------------------


async def test_a_tap_sees_state_and_changes_nothing(b: Bench) -> None:
    seen: list[Any] = []

    async def look(state: Any) -> dict[str, int]:
        seen.append(dict(state))
        return {"x": 2}

    ran = await b.run(b.seq(b.fn("f", x=1), b.tap(look), b.tap(lambda s: seen.append(s["x"]))))
    assert seen == [{"x": 1}, 1]
    assert len(ran.events) == 1
    assert b.state == {"x": 1}


async def test_a_tap_that_raises_stops_the_run(b: Bench) -> None:
    def look(state: Any) -> None:
        raise LookupError("no")

    error = await b.error(b.seq(b.tap(look), b.say("never")))
    assert isinstance(error, LookupError)
    assert error.__notes__ == ["in node 'tap'"]
    assert b.calls == []


async def test_an_expectation_that_holds_is_no_event(b: Bench) -> None:
    b.state["x"] = 1
    ran = await b.run(b.seq(b.expect(Match("eq", "x", 1)), b.expect(lambda s: s["x"]), b.say("a")))
    assert ran.said == ["a"]
    assert len(ran.events) == 1


async def test_an_expectation_that_does_not_hold_stops_the_run(b: Bench) -> None:
    error = await b.error(b.seq(b.expect(Match("eq", "x", 1)), b.say("never")))
    assert isinstance(error, ExpectationError)
    assert isinstance(error, AssertionError)
    assert error.node == "expect"
    assert error.found == "x == 1 does not hold"
    assert error.what == "it must hold"
    assert b.calls == []


async def test_a_fallback_takes_over_from_an_expectation(b: Bench) -> None:
    await b.run(b.fallback(b.seq(b.say("a", x=1), b.expect(lambda s: s["x"] == 2)), b.say("b")))
    assert b.calls == ["a", "b"]
    assert b.clean_state == {}


# --- predicates --------------------------------------------------------------------------------


async def test_predicates_may_be_async_and_return_anything(b: Bench) -> None:
    async def some(state: Any) -> list[int]:
        await asyncio.sleep(0)
        return [1]

    await b.run(b.route((lambda _: [], b.say("no")), (some, b.say("yes"))))
    assert b.calls == ["yes"]


def raising(state: Any) -> bool:
    raise ZeroDivisionError("in the predicate")


@pytest.mark.parametrize("kind", ["loop", "route", "expect", "transfer"])
@pytest.mark.parametrize("test", [raising, Match("gt", "text", 1)])
async def test_a_predicate_that_raises_stops_the_run_and_never_counts_as_false(
    b: Bench, kind: str, test: Any
) -> None:
    b.state["text"] = "a text"
    node = {
        "loop": b.loop(b.say("a"), 3, until=test),
        "route": b.route((test, b.say("b")), default=b.say("c")),
        "expect": b.expect(test),
        "transfer": b.transfer("z", when=test),
    }[kind]
    error = await b.error(b.seq(node.replace(location=Location("flow.py", 7)), b.say("z")))
    if isinstance(error, UsageError):
        assert (error.node, str(error.location)) == (kind, "flow.py:7")
    else:
        assert isinstance(error, ZeroDivisionError)
        assert error.__notes__ == [f"in node {kind!r} at flow.py:7"]
    assert b.calls == (["a"] if kind == "loop" else [])


@pytest.mark.parametrize(
    ("test", "value", "found", "help"),
    [
        (Match("gt", "n", 0.5), "0.9", "a str under 'n'", 'StateFieldRef("n", float)'),
        (Match("lt", "n", "b"), 3, "3 under 'n'", ".when("),
        (Match("contains", "n", "b"), 3, "3 under 'n'", ".when("),
    ],
)
async def test_values_that_cannot_be_compared_are_told(
    b: Bench, test: Match, value: Any, found: str, help: str
) -> None:
    b.state["n"] = value
    error = await b.error(b.route((test, b.say("a")), default=b.say("b")))
    assert isinstance(error, UsageError)
    assert (error.what, error.found) == (f"cannot tell whether {test}", found)
    assert help in str(error.help)


async def test_a_value_that_cannot_decide_stops_the_run(b: Bench) -> None:
    class Odd:
        def __bool__(self) -> bool:
            raise ValueError("ambiguous")

    error = await b.error(b.route((lambda _: Odd(), b.say("a")), default=b.say("b")))
    assert isinstance(error, ValueError)
    assert b.calls == []


async def test_a_value_that_cannot_be_compared_stops_the_run(b: Bench) -> None:
    class Odd:
        def __eq__(self, other: object) -> bool:
            raise ValueError("ambiguous")

        def __hash__(self) -> int:
            return 1

    b.state["x"] = Odd()
    error = await b.error(b.route((Match("eq", "x", 1), b.say("a")), default=b.say("b")))
    assert isinstance(error, ValueError)


# --- places ------------------------------------------------------------------------------------


def at(node: Node, line: int) -> Node:
    return node.replace(location=Location("flow.py", line))


async def test_an_error_says_where_innermost_first_and_once(b: Bench) -> None:
    inner = b.seq(at(b.fails("bad"), 3), name="inner")
    error = await b.error(b.par(b.seq(inner, name="outer")))
    assert error.__notes__ == ["in node 'bad' at flow.py:3"]


async def test_an_error_of_a_function_says_where(b: Bench) -> None:
    error = await b.error(at(b.fn("f", lambda s: {"x": s["absent"]}), 9))
    assert isinstance(error, KeyError)
    assert error.__notes__ == ["in node 'f' at flow.py:9"]


async def test_an_error_of_ours_carries_the_place_itself(b: Bench) -> None:
    error = await b.error(at(b.fn("f", lambda _: 1), 5))
    assert isinstance(error, UsageError)
    assert "where: node 'f' at flow.py:5" in str(error)
    assert not hasattr(error, "__notes__")


async def test_a_place_is_not_said_twice_when_one_error_is_raised_twice(b: Bench) -> None:
    same = ValueError("same")
    error = await b.error(b.fallback(b.fails("bad", same), b.fails("bad", same)))
    assert error is same
    assert error.__notes__ == ["in node 'bad'"]


async def test_the_type_of_an_error_is_never_changed(b: Bench) -> None:
    class OwnError(Exception):
        def __init__(self, *, code: int) -> None:
            super().__init__(code)
            self.code = code

    error = await b.error(b.par(b.race(b.fallback(b.timeout(b.fails("x", OwnError(code=3)))))))
    assert type(error) is OwnError
    assert error.code == 3


# --- transfer ----------------------------------------------------------------------------------


async def test_a_transfer_runs_the_target_and_the_flow_goes_on(b: Bench) -> None:
    ran = await b.run(b.seq(b.say("a"), b.transfer("a"), b.say("z")))
    assert b.calls == ["a", "a", "z"]
    [event] = [event for event in ran.events if event.transfer_to]
    assert (event.transfer_to, event.node, event.author) == ("a", "transfer", "seq")
    assert [event.path for event in ran.events] == ["s0", "s1", "s1.x0", "s2"]


async def test_a_transfer_may_go_to_an_arrangement(b: Bench) -> None:
    await b.run(
        b.seq(
            b.route((lambda _: False, b.seq(b.say("x"), b.say("y"), name="sub"))), b.transfer("sub")
        )
    )
    assert b.calls == ["x", "y"]


@pytest.mark.parametrize("hands", [True, False])
async def test_a_transfer_asks_its_condition(b: Bench, hands: bool) -> None:
    ran = await b.run(b.seq(b.say("a"), b.transfer("a", when=lambda _: hands)))
    assert b.calls == ["a"] * (1 + hands)
    assert len(ran.events) == 1 + 2 * hands


async def test_a_transfer_to_an_unknown_name_stops_the_run(b: Bench) -> None:
    error = await b.error(b.seq(b.say("ab"), at(b.transfer("ba"), 4)))
    assert isinstance(error, BuildError)
    assert "'ba'" in str(error)
    assert "node 'transfer' at flow.py:4" in str(error)


async def test_a_transfer_of_an_agent_to_itself_inside_a_fork(b: Bench) -> None:
    await b.run(b.par(b.seq(b.say("a", x=1), b.transfer("a")), b.say("c")))
    assert sorted(b.calls) == ["a", "a", "c"]


# --- nodes nobody has a rule for -----------------------------------------------------------------


async def test_a_node_without_a_rule_is_a_leaf(b: Bench) -> None:
    class OwnNode(AgentNode):
        pass

    node = OwnNode("own", mock=b.say("x", x=1).mock)
    await b.run(b.seq(node))
    assert b.state == {"x": 1}


async def test_a_function_node_needs_no_bench(b: Bench) -> None:
    def fn(state: object) -> dict[str, str]:
        return {"é": "漢字"}

    await b.run(FunctionNode("f", Ref(fn)))
    assert b.state == {"é": "漢字"}

"""Parts of a pipeline that keep to a state schema: what becomes of every write in one."""

from __future__ import annotations

import json
import logging
import operator
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Literal

import pytest

from adk_fluent.errors import (
    OutputMissingError,
    StateKeyError,
    StateTypeError,
    UnsupportedNodeError,
    UsageError,
)
from adk_fluent.flow import Signal, check_tool, promises_of
from adk_fluent.flow._promises import promises_inside
from adk_fluent.ir import (
    UNSET,
    AgentNode,
    Contract,
    Effects,
    FunctionNode,
    GateNode,
    Match,
    MiddlewareNode,
    Node,
    Ref,
    SequenceNode,
    StateFieldRef,
    TransformNode,
)

from .conftest import Hooks

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from adk_fluent.flow import Enclosed
    from adk_fluent.protocol import AgentEvent, AgentReply

    from .conftest import Bench, State, Turn

Enforce = Literal["error", "warn", "off"]


@dataclass
class Field:
    key: str
    type: Any
    reducer: Any = None
    scope: str = "session"
    default: Any = UNSET


class Rules:
    """A state schema of plain types; dates are stored as text."""

    def __init__(self, name: str = "Desk", reducers: Any = None, **types: Any) -> None:
        self.__name__ = name
        merging: Mapping[str, Any] = reducers or {}
        self.__state_fields__ = {
            key: Field(key, kind, merging.get(key)) for key, kind in types.items()
        }
        self.asked: list[tuple[dict[str, Any], str]] = []

    def __state_encode__(self, delta: Mapping[str, Any], where: str, /) -> dict[str, Any]:
        self.asked.append((dict(delta), where))
        return {key: self.stored(key, value, where) for key, value in delta.items()}

    def stored(self, key: str, value: Any, where: str) -> Any:
        field = self.__state_fields__.get(key)
        if field is None or value is None or isinstance(value, field.type):
            return value.isoformat() if isinstance(value, date) else value
        if field.type is date and isinstance(value, str):
            return date.fromisoformat(value).isoformat()
        raise StateTypeError(f"{key} cannot be {value!r}, as {where} has it", key=key)


def under(
    node: Node,
    rules: Any,
    enforce: Enforce = "error",
    extra: Literal["forbid", "allow"] = "forbid",
    **more: Any,
) -> Node:
    return node.replace(contract=Contract(Ref(rules), enforce, extra, **more))


DESK = Rules(n=int, day=date)
DAY: Any = date(2020, 1, 2)


@pytest.fixture(autouse=True)
def asked() -> None:
    DESK.asked.clear()


def broken(error: Exception, key: str, node: str) -> None:
    assert isinstance(error, StateTypeError)
    assert (error.key, error.node) == (key, node)
    assert error.help


# --- every write is stored alike -----------------------------------------------------------------


async def test_what_an_agent_and_a_function_write_is_encoded(b: Bench) -> None:
    seen: list[Any] = []
    root = b.seq(
        b.say("a", day=DAY),
        b.fn("look", lambda s: seen.append(s["day"])),
        b.fn("f", day=DAY),
        b.transform(lambda _: {"day": DAY}),
        b.fn("look", lambda s: seen.append(s["day"])),
    )
    ran = await b.run(under(root, DESK))
    assert ran.wrote == [{"day": "2020-01-02"}] * 3
    assert seen == ["2020-01-02"] * 2
    assert [where for _, where in DESK.asked] == ["'a'", "'f'", "'S'"]


@pytest.mark.parametrize("enclosed", [False, True])
async def test_what_is_undone_is_what_was_stored(b: Bench, *, enclosed: bool) -> None:
    b.state = {"day": "1999-09-09"}
    part = b.seq(b.say("a", day=DAY), b.fn("f", day=DAY), b.fails("bad"))
    part = b.seq(under(part, DESK)) if enclosed else part
    root = b.fallback(part, b.say("good"))
    await b.run(root if enclosed else under(root, DESK))
    assert b.state == {"day": "1999-09-09"}


async def test_on_a_snapshot_too(b: Bench) -> None:
    seen: list[Any] = []
    b.state = {"list": [1]}
    body = b.seq(b.say("a", day=DAY), b.fn("look", lambda s: seen.append(s["day"])))
    rules = Rules(day=date, results=list)
    await b.run(under(b.map(body, result="day"), rules))
    assert seen == ["2020-01-02"]
    assert b.state["results"] == ["2020-01-02"]


async def test_the_results_of_a_map_are_written_as_any_value(b: Bench) -> None:
    b.state = {"list": [1]}
    error = await b.error(under(b.map(b.say("a")), Rules(results=int)))
    broken(error, "results", "map")
    error = await b.error(under(b.map(b.say("a")), DESK))
    broken(error, "results", "map")
    b.clean(b.last)


async def test_what_a_reducer_makes_is_written_as_any_value(b: Bench) -> None:
    root = b.par(b.say("x", n=1), b.say("y", n=2))

    def texts(one: int, other: int) -> str:
        return f"{one}{other}"

    def later(one: str, other: str) -> date:
        return date.fromisoformat(max(one, other))

    broken(await b.error(under(root, Rules(n=int, reducers={"n": texts}))), "n", "par")
    fine = Rules(day=date, reducers={"day": later})
    await b.run(under(b.par(b.say("x", day=DAY), b.say("y", day=DAY)), fine))
    assert b.state["day"] == "2020-01-02"


async def test_on_a_snapshot_what_was_merged_is_read_as_it_is_stored(b: Bench) -> None:
    def later(one: str, other: str) -> date:
        return date.fromisoformat(max(one, other))

    seen: list[Any] = []
    fork = b.par(b.say("x", day=DAY), b.say("y", day=DAY))
    branch = b.seq(fork, b.fn("look", lambda s: seen.append(s["day"])))
    await b.run(under(b.race(branch, b.hangs("h")), Rules(day=date, reducers={"day": later})))
    assert seen == ["2020-01-02"]


async def test_what_a_person_answers(b: Bench) -> None:
    gate = GateNode("ask", message="?", key="n")
    ran = await b.run(root := under(b.seq(gate, b.say("after")), Rules(n=str)))
    [question] = ran.engine.questions
    answer = {question.id: {"approved": True}}
    b.state = {}
    with pytest.raises(StateTypeError) as caught:
        await b.run(root, position=json.loads(json.dumps(ran.engine.position)), answers=answer)
    broken(caught.value, "n", "ask")


async def test_a_refusal_ends_the_run_whatever_it_would_write(b: Bench) -> None:
    gate = GateNode("ask", message="?", key="n")
    ran = await b.run(root := under(b.seq(gate, b.say("after")), Rules(n=str)))
    [question] = ran.engine.questions
    answer = {question.id: {"approved": False}}
    again = await b.run(root, position=ran.engine.position, answers=answer)
    assert again.outcome is Signal.STOP
    assert b.state == {}
    assert "ask was refused" in again.said[0]


async def test_the_answer_to_an_unnamed_gate_is_its_own_matter(b: Bench) -> None:
    ran = await b.run(root := under(b.seq(GateNode("ask", message="?")), DESK))
    [question] = ran.engine.questions
    answers = {question.id: {"approved": True}}
    await b.run(root, position=ran.engine.position, answers=answers)
    assert b.state["ask"]["approved"] is True


async def test_what_hooks_say_in_the_name_of_a_step(b: Bench) -> None:
    async def writes(step: Enclosed[AgentEvent]) -> AgentReply:
        reply = await step.go_on()
        return type(reply)(reply.text, {**reply.state_delta, "day": DAY})

    b.around = Hooks(writes, "a")
    await b.run(under(b.say("a", n=1), DESK))
    assert b.state == {"n": 1, "day": "2020-01-02"}

    async def wrong(step: Enclosed[AgentEvent]) -> AgentReply:
        reply = await step.go_on()
        return type(reply)(reply.text, {"n": "one"})

    b.around = Hooks(wrong, "a")
    broken(await b.error(under(b.say("a"), DESK)), "n", "a")


async def test_fragments_and_our_own_keys_are_no_writes(b: Bench) -> None:
    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        yield turn.event("te", is_partial=True, state_delta={"n": "no"})
        yield turn.event("text", state_delta={"_adk_fluent_x": 1, "temp:_adk_y": 2})

    await b.run(under(b.agent("a", act), DESK))
    assert b.state == {"_adk_fluent_x": 1, "temp:_adk_y": 2}


async def test_what_middlewares_and_adk_remember_is_no_write_of_a_step(b: Bench) -> None:
    counted = {
        "adk_fluent_tool_calls/1": {"refund": 1},
        "user:adk_fluent_tokens": {"input": 9},
        "__llm_request_key__": "1",  # ADK's evaluation
    }

    async def count(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        yield turn.event("text", state_delta=counted)

    await b.run(under(b.agent("a", count), DESK))
    assert b.state == counted


# --- what breaks a schema ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["agent", "function", "transform"])
async def test_a_value_of_another_type_stops_the_run(b: Bench, kind: str) -> None:
    def wrong(_: Any) -> dict[str, str]:
        return {"n": "one"}

    made = {
        "agent": b.say("x", n="one"),
        "function": b.fn("x", n="one"),
        "transform": TransformNode("x", Ref(wrong, "x")),
    }
    error = await b.error(under(b.seq(b.say("w", n=1), made[kind], b.say("after")), DESK))
    broken(error, "n", "x")
    assert "n cannot be 'one', as 'x' has it" in str(error)
    assert b.state == {"n": 1}
    assert "after" not in b.calls
    assert b.closed in (["w", "x"], ["w"])


async def test_a_key_that_is_not_declared_stops_the_run(b: Bench) -> None:
    error = await b.error(under(b.say("x", dayy=DAY), DESK))
    broken(error, "dayy", "x")
    assert "x writes 'dayy', which Desk does not declare" in str(error)
    assert "did you mean 'day'?" in str(error)
    other: Any = {"user:n": 1}
    error = await b.error(under(b.say("x", **other), DESK))
    assert "did you mean 'n'?" in str(error)
    error = await b.error(under(b.say("x", zebra=1), DESK))
    assert error.__dict__["help"].startswith("declare it in Desk")


async def test_what_is_not_declared_may_be_removed(b: Bench) -> None:
    b.state = {"other": 1, "n": 1}
    await b.run(under(b.transform(None, semantics="replace_session", affected_keys=("n",)), DESK))
    assert b.state == {"other": None, "n": 1}


async def test_an_item_of_a_map_is_its_own_matter(b: Bench) -> None:
    b.state = {"list": [1]}
    root = b.map(b.fn("f", item=lambda s: s["item"] + 1), result="item")
    await b.run(under(root, Rules(results=list)))
    assert b.state["results"] == [2]


async def test_other_keys_can_be_allowed(b: Bench) -> None:
    root = under(b.seq(b.say("x", other=1), b.say("y", n="one")), DESK, extra="allow")
    broken(await b.error(root), "n", "y")
    assert b.state == {"other": 1}


async def test_a_fallback_takes_it_for_a_failure(b: Bench) -> None:
    root = b.fallback(b.say("x", n="one", day=DAY), b.say("y", n=2))
    ran = await b.run(under(root, DESK))
    assert b.state == {"n": 2}
    assert ran.said == ["y"]


async def test_a_map_and_a_race_as_well(b: Bench) -> None:
    root = b.race(b.say("x", n="one"), b.say("y", ticks=9, n=2))
    await b.run(under(root, DESK))
    assert b.state == {"n": 2}
    b.state = {"list": [1]}
    error = await b.error(under(b.map(b.say("x", n="one")), DESK))
    assert "in item 0 of map_over 'map'" in error.__notes__


async def test_a_run_can_be_gone_on_with_behind_what_was_wrong(b: Bench) -> None:
    value: list[Any] = ["one"]
    root = under(b.seq(b.say("w", n=1), b.fn("f", n=lambda _: value[0])), DESK)
    await b.error(root, keeps_failures=True)
    position = json.loads(json.dumps(b.last.failed_at))
    value[0] = 7
    b.calls = []
    await b.run(root, position=position)
    assert (b.state, b.calls) == ({"n": 7}, ["f"])


async def test_restarts_anywhere(b: Bench) -> None:
    fork = b.par(b.seq(b.say("a", day=DAY), b.mark("m")), b.fn("f", n=1))
    rules = Rules(n=int, day=date, trail=str)
    assert await b.restarts(under(b.seq(fork, b.fn("g", day=DAY)), rules))


# --- several schemas, and how strictly -----------------------------------------------------------


async def test_every_schema_around_checks_what_it_declares(b: Bench) -> None:
    inner, outer = Rules("In", n=int, day=date), Rules("Out", n=object, only=int)
    part = under(b.seq(b.say("x", n=1, only=2, day=DAY)), inner)
    await b.run(under(b.seq(part), outer))
    assert b.state == {"n": 1, "only": 2, "day": "2020-01-02"}
    assert inner.asked[0] == ({"n": 1}, "'x'")
    assert ({"n": 1}, "'x'") in outer.asked
    assert {key for delta, _ in outer.asked for key in delta} == {"n", "only"}
    broken(await b.error(under(b.seq(under(b.say("x", only="a"), inner)), outer)), "only", "x")
    broken(await b.error(under(b.seq(under(b.say("x", n="a"), inner)), outer)), "n", "x")


async def test_one_that_allows_other_keys_does_so_for_all(b: Bench) -> None:
    await b.run(under(b.seq(under(b.say("x", other=1), DESK)), Rules("Out"), extra="allow"))
    assert b.state == {"other": 1}


async def test_beside_a_part_nothing_is_checked(b: Bench) -> None:
    await b.run(b.seq(under(b.say("x", n=1), DESK), b.say("y", n="one", other=1)))
    assert b.state == {"n": "one", "other": 1}


async def test_what_is_handed_over_to_keeps_to_both(b: Bench) -> None:
    target = under(b.say("x", n="one"), Rules("Own", n=str), extra="allow")
    never = b.route((lambda _: False, target))
    broken(await b.error(b.seq(never, under(b.seq(b.transfer("x")), DESK))), "n", "x")


async def test_a_warning_is_logged_once(b: Bench, caplog: pytest.LogCaptureFixture) -> None:
    rules = Rules("Warned", n=int, day=date)
    part = b.seq(b.say("x", n="one", other=1, day=DAY), b.say("y", n="two"), b.say("x", n="one"))
    caplog.set_level(logging.WARNING, "adk_fluent")
    root = under(part, rules, "warn")
    await b.run(root)
    assert b.state == {"n": "two", "other": 1, "day": "2020-01-02"} | {"n": "one"}
    told = [record.getMessage().partition("\n")[0] for record in caplog.records]
    assert told == [
        "n cannot be 'one', as 'x' has it",
        "x writes 'other', which Warned does not declare",
        "n cannot be 'two', as 'y' has it",
    ]
    assert {record.name for record in caplog.records} == {"adk_fluent.state"}
    assert "where: node 'x'" in caplog.text


async def test_off_looks_at_nothing(b: Bench, caplog: pytest.LogCaptureFixture) -> None:
    await b.run(under(b.say("x", n="one", other=1), DESK, "off"))
    assert (b.state, DESK.asked, caplog.records) == ({"n": "one", "other": 1}, [], [])
    await b.run(under(b.seq(under(b.say("x", n="one"), DESK, "off")), Rules("Out")))
    assert b.state["n"] == "one"
    assert promises_of(under(b.say("x"), DESK, "off")) is None


async def test_the_strictest_decides_of_what_none_declares(b: Bench) -> None:
    strictness: list[tuple[Enforce, Enforce]] = [
        *(("warn", "error"), ("error", "warn"), ("off", "error"))
    ]
    for inner, outer in strictness:
        part = under(b.say("x", other=1), DESK, inner)
        broken(await b.error(under(b.seq(part), Rules("Out"), outer)), "other", "x")


# --- the beginning -------------------------------------------------------------------------------


def starts(root: Node, **state: Any) -> None:
    promises = promises_of(root)
    assert promises is not None
    promises.check_start(state)


def test_what_a_session_holds_is_checked_when_a_run_begins(b: Bench) -> None:
    root = under(b.seq(b.say("x")), DESK)
    starts(root, n=1, day="2020-01-02", other="x")
    starts(root, n=None, day=DAY)
    for whole in (root, b.seq(root), MiddlewareNode("m", root), b.seq(b.seq(root))):
        with pytest.raises(StateTypeError, match="n cannot be 'one', as the session has it") as it:
            starts(whole, n="one")
        broken(it.value, "n", "seq")
    starts(b.seq(root, b.say("y")), n="one")


def test_a_warning_about_a_session(b: Bench, caplog: pytest.LogCaptureFixture) -> None:
    root = under(b.say("x"), Rules("W", n=int), "warn")
    promises = promises_of(root)
    assert promises is not None
    promises.check_start({"n": "one"})
    promises.check_start({"n": "one"})
    assert len(caplog.records) == 1
    starts(under(b.say("x"), Rules("W", reducers={"n": operator.add}, n=int), "off"), n="one")


def test_state_of_an_older_version_is_checked_as_what_becomes_of_it(b: Bench) -> None:
    class Upgraded(Rules):
        def __state_upgrade__(self, state: State, /) -> dict[str, Any]:
            return {"n": int(state["n"])}

    starts(under(b.say("x"), Upgraded(n=int)), n="1")
    with pytest.raises(ValueError, match="invalid literal"):
        starts(under(b.say("x"), Upgraded(n=int)), n="one")


def needing(node: Node, *refs: StateFieldRef) -> Node:
    return node.replace(contract=Contract(inputs=refs))


def test_a_run_needs_its_inputs(b: Bench) -> None:
    topic, user = StateFieldRef("topic"), StateFieldRef("user:name")
    optional = StateFieldRef("style", default=None)
    reader = FunctionNode("r", Ref(print), effects=Effects(reads=(topic,)))
    root = needing(b.seq(b.say("x"), reader), user, topic, optional)
    starts(root, **{"topic": "", "user:name": 0})
    with pytest.raises(StateKeyError, match="'user:name', 'topic'") as caught:
        starts(root, topic=None)
    error = caught.value
    assert (error.key, error.node, error.found) == ("user:name", "seq", "r reads 'topic'")
    assert error.help == "start the session with state={'user:name': ..., 'topic': ...}"
    with pytest.raises(StateKeyError) as caught:
        starts(b.seq(root), topic="x")
    assert caught.value.found is None


@pytest.mark.parametrize("kind", ["agent", "map", "route", "expect", "loop", "gate", "transfer"])
def test_who_reads_an_input_first_is_told(b: Bench, kind: str) -> None:
    match = Match("eq", "topic", 1)
    made: dict[str, Node] = {
        "agent": AgentNode("r", reads_keys=(StateFieldRef("topic"),)),
        "map": b.map(b.say("x"), key="topic", name="r"),
        "route": b.route((match, b.say("x"))).replace(name="r"),
        "expect": b.expect(match, name="r"),
        "loop": b.loop(b.say("x"), until=match, name="r"),
        "gate": GateNode("r", message="?", predicate=match),
        "transfer": b.transfer("x", match).replace(name="r"),
    }
    root = needing(b.seq(b.say("x"), made[kind]), StateFieldRef("topic"))
    with pytest.raises(StateKeyError) as caught:
        starts(root)
    assert caught.value.found == "r reads 'topic'"


# --- agents below agents -------------------------------------------------------------------------


async def test_a_delegate_keeps_to_what_it_says_itself(b: Bench) -> None:
    inner = under(AgentNode("inner"), DESK)
    clerk = AgentNode("clerk", delegates=(MiddlewareNode("m", inner),))
    asking: dict[str, Any] = {}

    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        for author in ("clerk", "inner"):
            event = turn.event(author, state_delta={"n": "one"}, author=author)
            try:
                b.last.keep(turn.strand, turn.node, event, author)
            except StateTypeError as error:
                asking[author] = error
        yield turn.event("done")

    root = b.agent("clerk", act).replace(delegates=clerk.delegates)
    await b.run(root)
    assert list(asking) == ["inner"]
    broken(asking["inner"], "n", "clerk")


async def test_a_pipeline_inside_a_step_keeps_to_what_stands_around_that(b: Bench) -> None:
    outer = promises_of(root := under(b.seq(b.say("x")), Rules("Out", n=int, only=int)))
    assert outer is not None
    strand = b.engine(root).strand("0", root, parent=None)
    inner = under(b.say("y"), DESK)
    for own in (promises_of(inner), None):
        both = promises_inside(inner, own, outer, strand)
        assert both is not None
        assert both.guards
        with pytest.raises(StateTypeError):
            both.kept({"n": "one"}, inner, strand)
        place = b.engine(inner).strand("0", inner, parent=None)
        assert both.kept({"only": 1}, inner, place) == {"only": 1}
        innermost = promises_inside(inner, None, both, place)
        assert innermost is not None
        deepest = b.engine(inner).strand("0", inner, parent=None)
        with pytest.raises(StateTypeError):
            innermost.kept({"only": "one"}, inner, deepest)
    assert promises_inside(inner, None, None, strand) is None


async def test_reducers_of_what_stands_around_count_inside(b: Bench) -> None:
    ref = StateFieldRef("k", reducer=Ref(operator.add))
    outer = promises_of(root := b.seq(AgentNode("x", writes_keys=(ref,))))
    rules = Rules(reducers={"l": max}, l=int)
    around = promises_of(part := under(b.seq(root), rules))
    strand = b.engine(part).strand("0", part, parent=None)
    both = promises_inside(root, outer, around, strand)
    assert both is not None
    assert set(both.reducers(strand)) == {"k", "l"}
    plain = b.say("y")
    inside = promises_inside(plain, None, outer, strand)
    assert inside is not None
    assert set(inside.reducers(b.engine(plain).strand("0", plain, parent=None))) == {"k"}


def test_an_agent_that_is_a_tool_cannot_be_held_to_a_schema() -> None:
    held = under(AgentNode("a"), DESK)
    for tool in (held, MiddlewareNode("m", held), AgentNode("t", delegates=(held,))):
        with pytest.raises(UnsupportedNodeError, match="a runs as a tool") as caught:
            check_tool(tool)
        assert caught.value.help == "make a pipeline of it: Pipeline(..., a).state(Desk)"
    check_tool(under(AgentNode("a"), DESK, "off"))
    check_tool(SequenceNode("s", (held,)))
    check_tool(under(SequenceNode("s", (AgentNode("a"),)), DESK))


# --- declared effects ----------------------------------------------------------------------------


def declared(returns: Any, *, opaque: bool = False, node: Any = FunctionNode) -> Node:
    def fn(_: Any) -> Any:
        return returns

    refs = Effects((), (StateFieldRef("k"),), opaque, (StateFieldRef("m"),))
    return node("f", Ref(fn, "f"), effects=refs)


async def test_a_function_keeps_to_what_is_declared_of_it(b: Bench) -> None:
    fine: list[dict[str, Any]] = [{"k": 0}, {"k": "x", "m": 2}, {"k": [], "m": None}]
    for returns in fine:
        await b.run(declared(returns))
    await b.run(declared({"other": 1}, opaque=True))


@pytest.mark.parametrize("node", [FunctionNode, TransformNode])
async def test_a_key_that_is_not_declared_is_refused(b: Bench, node: Any) -> None:
    error = await b.error(declared({"k": 1, "other": 2}, node=node))
    assert isinstance(error, UsageError)
    assert "'other', which it is not declared to write" in error.what
    assert (error.node, error.found) == ("f", "declared are 'k', 'm'")
    assert b.state == {}


@pytest.mark.parametrize("returns", [None, {}, {"k": None}, {"m": 1}])
@pytest.mark.parametrize("node", [FunctionNode, TransformNode])
async def test_a_declared_write_has_to_happen(b: Bench, returns: Any, node: Any) -> None:
    error = await b.error(declared(returns, node=node))
    assert isinstance(error, OutputMissingError)
    assert (error.keys, error.node) == (("k",), "f")
    assert b.state == {}


async def test_a_fallback_takes_that_for_a_failure(b: Bench) -> None:
    await b.run(b.fallback(declared(None), declared({"k": 1})))
    assert b.state == {"k": 1}

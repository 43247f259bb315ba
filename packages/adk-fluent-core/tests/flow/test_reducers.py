"""Keys of which a reducer makes one value, where branches and items meet."""

from __future__ import annotations

import json
import operator
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.errors import BuildError, UsageError
from adk_fluent.flow import promises_of
from adk_fluent.ir import (
    AgentNode,
    Contract,
    Effects,
    FunctionNode,
    Node,
    Ref,
    RemoteAgentNode,
    SequenceNode,
    StateFieldRef,
    TapNode,
    TransformNode,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .conftest import Bench

ADD = Ref(operator.add, "add")


def nothing(_: Any) -> None:
    """Do nothing."""


def extended(one: list[int], other: list[int]) -> list[int]:
    one.extend(other)
    return one


def keyed(key: str = "hits", reducer: Ref = ADD) -> FunctionNode:
    """A step that does nothing, but says how a key is merged."""
    refs = (StateFieldRef(key, reducer=reducer),)
    return FunctionNode("keyed", Ref(nothing, "keyed"), effects=Effects(reads=refs))


class Field:
    def __init__(self, reducer: Any) -> None:
        self.type, self.scope, self.default, self.reducer = list, "session", None, reducer


class Schema:
    """A state schema whose keys have reducers."""

    def __init__(self, **reducers: Any) -> None:
        self.__state_fields__ = {key: Field(each) for key, each in reducers.items()}

    def __state_encode__(self, delta: Mapping[str, Any], where: str, /) -> dict[str, Any]:
        return dict(delta)


def under(node: Node, **reducers: Any) -> Node:
    return node.replace(contract=Contract(Ref(Schema(**reducers)), "off"))


async def test_what_branches_wrote_is_merged_in_declared_order(b: Bench) -> None:
    root = b.seq(
        keyed(),
        b.par(
            b.say("slow", ticks=9, hits=["a"]),
            b.say("mid", ticks=4, hits=["b"]),
            b.say("fast", hits=["c"]),
        ),
    )
    ran = await b.run(root)
    assert b.state == {"hits": ["a", "b", "c"]}
    joined = ran.events[-1]
    assert (joined.node, joined.metadata["why"]) == ("par", "joined")
    assert joined.state_delta == {"hits": ["a", "b", "c"]}
    assert await b.restarts(root)


async def test_the_value_from_before_does_not_take_part(b: Bench) -> None:
    b.state = {"hits": ["old"]}
    await b.run(b.seq(keyed(), b.par(b.say("x", hits=["a"]), b.say("y", hits=["b"]))))
    assert b.state["hits"] == ["a", "b"]


@pytest.mark.parametrize("none_first", [True, False])
async def test_one_writer_alone_just_writes(b: Bench, *, none_first: bool) -> None:
    """Also where others write None, which is as good as nothing."""
    value = {"only": 1}
    branches = [b.say("x", k=value, l=None), b.say("y", l=None)]
    branches.append(b.say("z", k=None, ticks=5))
    order = branches[::-1] if none_first else branches
    root = b.seq(keyed("k"), keyed("l"), b.par(*order))
    await b.run(root)
    assert b.state == {"k": value, "l": None}


async def test_what_each_branch_wrote_last_counts(b: Bench) -> None:
    one = b.seq(b.say("x1", hits=[1]), b.say("x2", hits=[2]))
    await b.run(b.seq(keyed(), b.par(one, b.say("y", hits=[3]))))
    assert b.state["hits"] == [2, 3]


async def test_nothing_is_written_where_state_has_it_already(b: Bench) -> None:
    ran = await b.run(b.seq(keyed("n", Ref(max)), b.par(b.say("x", n=1), b.say("y", n=7, ticks=5))))
    assert b.state == {"n": 7}
    assert ran.wrote == [{"n": 1}, {"n": 7}]


async def test_other_keys_are_the_last_declared_ones(b: Bench) -> None:
    await b.run(b.seq(keyed(), b.par(b.say("x", ticks=9, k=1, hits=[1]), b.say("y", k=2))))
    assert b.state == {"k": 2, "hits": [1]}


async def test_forks_in_forks(b: Bench) -> None:
    inner = b.par(b.say("x", ticks=7, hits=["x"]), b.say("y", hits=["y"]), name="inner")
    root = b.seq(keyed(), b.par(b.say("w", ticks=3, hits=["w"]), inner, b.say("z", hits=["z"])))
    await b.run(root)
    assert b.state["hits"] == ["w", "x", "y", "z"]
    assert await b.restarts(root)


async def test_items_of_a_map(b: Bench) -> None:
    body = b.say("it", hits=lambda s: [s["item"]])
    b.state = {"list": [1, 2, 3]}
    root = b.seq(keyed(), b.map(body, result="hits", concurrency=2))
    await b.run(root)
    assert b.state["hits"] == [1, 2, 3]
    assert b.state["results"] == [[1], [2], [3]]
    b.state = {"list": [1, 2, 3]}
    assert await b.restarts(root)


async def test_items_in_branches_of_a_race(b: Bench) -> None:
    """What was merged on a snapshot is what the rest of the branch reads."""
    b.state = {"list": [1, 2]}
    branch = b.seq(
        b.map(b.say("it", hits=lambda s: [s["item"]])),
        b.fn("then", seen=lambda s: s["hits"]),
    )
    root = b.seq(keyed(), b.race(branch, b.hangs("h", hits=["no"])))
    await b.run(root)
    assert (b.state["hits"], b.state["seen"]) == ([1, 2], [1, 2])


async def test_a_race_has_one_winner_and_nothing_to_merge(b: Bench) -> None:
    for race in (b.race, b.first):
        b.state = {}
        await b.run(
            b.seq(keyed(), race(b.hangs("h", hits=["lost"]), b.say("w", ticks=3, hits=[1])))
        )
        assert b.state["hits"] == [1]


async def test_what_is_discarded_is_no_contribution(b: Bench) -> None:
    tried = b.fallback(b.fails("bad", hits=["bad"]), b.say("good", text="ok"))
    root = b.seq(keyed(), b.par(tried, b.say("x", hits=["x"], ticks=9), b.say("y", hits=["y"])))
    await b.run(root)
    assert b.state["hits"] == ["x", "y"]
    assert await b.restarts(root)


async def test_what_is_never_undone_is_one(b: Bench) -> None:
    bad: Any = {"user:hits": ["bad"]}
    fine: Any = {"user:hits": ["x"]}
    tried = b.fallback(b.fails("bad", **bad), b.say("good"))
    await b.run(b.seq(keyed("user:hits"), b.par(tried, b.say("x", **fine))))
    assert b.state["user:hits"] == ["bad", "x"]


async def test_a_fork_that_is_discarded_leaves_nothing(b: Bench) -> None:
    b.state = {"hits": ["before"]}
    fork = b.par(b.say("x", hits=[1]), b.say("y", hits=[2]))
    root = b.seq(keyed(), b.fallback(b.seq(fork, b.fails("bad")), b.say("good")))
    await b.run(root)
    assert b.state["hits"] == ["before"]
    b.state = {"hits": ["before"]}
    assert await b.restarts(root)


async def test_a_failure_beside_merges_nothing(b: Bench) -> None:
    root = b.seq(keyed(), b.par(b.say("x", hits=[1]), b.say("y", hits=[2]), b.fails("z", ticks=9)))
    await b.error(root)
    assert b.state["hits"] in ([1], [2])


async def test_a_question_in_a_branch_waits_with_the_others_values(b: Bench) -> None:
    root = b.seq(
        keyed(),
        b.par(b.say("x", hits=["x"]), b.waits("q", "hits"), b.say("y", hits=["y"])),
        b.say("after"),
    )
    ran = await b.run(root)
    assert ran.engine.pending
    position = json.loads(json.dumps(ran.engine.position))
    await b.run(root, position=position, answers={"hits": ["q"]})
    assert b.state["hits"] == ["x", "q", "y"]


# --- reducers that fail --------------------------------------------------------------------------


def boom(one: Any, other: Any) -> Any:
    raise ZeroDivisionError("no")


async def test_a_reducer_that_raises_ends_the_run_and_says_where(b: Bench) -> None:
    root = b.seq(keyed(reducer=Ref.to(boom)), b.par(b.say("x", hits=[1]), b.say("y", hits=[2])))
    error = await b.error(root)
    assert isinstance(error, ZeroDivisionError)
    assert error.__notes__ == [
        "in the reducer of state key 'hits', boom",
        "in node 'par'",
    ]
    b.clean(b.last)


async def test_a_fallback_takes_it_for_a_failure(b: Bench) -> None:
    fork = b.par(b.say("x", hits=[1]), b.say("y", hits=[2]))
    root = b.seq(keyed(reducer=Ref.to(boom)), b.fallback(fork, b.say("good", ok=1)))
    await b.run(root)
    assert b.clean_state == {"ok": 1}


async def test_what_is_undone_then_is_what_was_written(b: Bench) -> None:
    fork = b.par(b.say("x", ticks=9, k=1, hits=[1]), b.say("y", k=2, hits=[2]))
    root = b.seq(keyed(reducer=Ref.to(boom)), b.fallback(fork, b.say("good")))
    ran = await b.run(root)
    assert ran.wrote[-1] == {"hits": None, "k": None}
    assert b.clean_state == {}


async def test_a_run_goes_on_where_its_reducer_failed(b: Bench) -> None:
    calls: list[Any] = []

    def fails_once(one: list[int], other: list[int]) -> list[int]:
        calls.append((one, other))
        if len(calls) == 1:
            raise ZeroDivisionError
        return one + other

    root = b.seq(
        keyed(reducer=Ref(fails_once, "f")), b.par(b.say("x", hits=[1]), b.say("y", hits=[2]))
    )
    await b.error(root, keeps_failures=True)
    engine, b.calls = b.last, []
    assert engine.failed_at is not None
    await b.run(root, position=json.loads(json.dumps(engine.failed_at)))
    assert b.state["hits"] == [1, 2]
    assert b.calls == []


async def test_a_reducer_may_change_what_it_is_given(b: Bench) -> None:
    """What branches wrote stays as it is, for a run that goes on from there."""
    root = b.seq(keyed(reducer=Ref(extended)), b.par(b.say("x", hits=[1]), b.say("y", hits=[2])))
    ran = await b.run(root)
    assert ran.wrote == [{"hits": [1]}, {"hits": [2]}, {"hits": [1, 2]}]
    assert await b.restarts(root)


async def test_an_async_reducer_is_refused(b: Bench) -> None:
    async def later(one: Any, other: Any) -> Any:
        return one

    root = b.seq(keyed(reducer=Ref(later)), b.par(b.say("x", hits=[1]), b.say("y", hits=[2])))
    error = await b.error(root)
    assert isinstance(error, UsageError)
    assert "async" in error.what


# --- where they are declared ---------------------------------------------------------------------


REF = StateFieldRef("hits", reducer=ADD)
DECLARING: list[Node] = [
    AgentNode("n", reads_keys=(REF,)),
    AgentNode("n", writes_keys=(REF,)),
    AgentNode("n", tool_writes=(REF,)),
    AgentNode("n", delegates=(AgentNode("d", writes_keys=(REF,)),)),
    RemoteAgentNode("n", "http://a", reads_keys=(REF,)),
    RemoteAgentNode("n", "http://a", writes_keys=(REF,)),
    FunctionNode("n", ADD, effects=Effects(reads=(REF,))),
    FunctionNode("n", ADD, effects=Effects(writes=(REF,))),
    FunctionNode("n", ADD, effects=Effects(may_write=(REF,))),
    TransformNode("n", ADD, effects=Effects(writes=(REF,))),
    TapNode("n", ADD, effects=Effects(reads=(REF,))),
    AgentNode("n", contract=Contract(inputs=(REF,))),
    AgentNode("n", contract=Contract(outputs=(REF,))),
]


@pytest.mark.parametrize("node", DECLARING, ids=range(len(DECLARING)))
async def test_every_place_where_a_key_is_named(b: Bench, node: Node) -> None:
    fork = b.par(b.say("x", hits=[1]), b.say("y", hits=[2]))
    await b.run(b.seq(b.route((lambda _: False, node)), fork))
    assert b.state["hits"] == [1, 2]


async def test_those_of_a_schema_count_in_its_part(b: Bench) -> None:
    def fork() -> Node:
        return b.par(b.say("x", hits=[1]), b.say("y", hits=[2]))

    await b.run(under(fork(), hits=operator.add))
    assert b.state["hits"] == [1, 2]
    await b.run(under(b.seq(b.loop(fork(), 1)), hits=ADD))
    assert b.state["hits"] == [1, 2]
    await b.run(b.seq(under(fork(), hits=operator.add), fork()))
    assert b.state["hits"] == [2]
    await b.run(b.par(under(b.say("x", hits=[1]), hits=operator.add), b.say("y", hits=[2])))
    assert b.state["hits"] == [2]


async def test_a_part_that_is_handed_over_to(b: Bench) -> None:
    """It keeps to what stands around it where it is run, and to its own."""
    fork = b.par(b.say("x", hits=[1], more=[1]), b.say("y", hits=[2], more=[2]), name="fork")
    never = b.route((lambda _: False, under(fork, hits=operator.add)))
    await b.run(b.seq(never, under(b.seq(b.transfer("fork")), more=operator.add)))
    assert (b.state["hits"], b.state["more"]) == ([1, 2], [1, 2])


def test_nothing_is_promised_where_nothing_is_declared() -> None:
    plain = FunctionNode("f", ADD, effects=Effects(writes=(StateFieldRef("k"),)))
    assert promises_of(SequenceNode("s", (plain, under(plain)))) is None


def test_two_reducers_for_one_key_are_refused() -> None:
    one, other = keyed().replace(name="one"), keyed(reducer=Ref.to(max)).replace(name="other")
    with pytest.raises(BuildError, match="'hits' has two different reducers") as caught:
        promises_of(SequenceNode("s", (one, other)))
    assert caught.value.found == "add at 'one', and max at 'other'"
    with pytest.raises(BuildError, match="two different reducers"):
        promises_of(SequenceNode("s", (one, under(one, hits=max))))
    assert promises_of(SequenceNode("s", (one, under(one, hits=operator.add)))) is not None

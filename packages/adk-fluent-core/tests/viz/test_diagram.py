"""What a picture shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ir_strategies
import pytest

from adk_fluent import Agent, FanOut, Loop, Pipeline, Route, S, map_over, race, timeout, until
from adk_fluent.backends.viz import Diagram, diagram, render
from adk_fluent.backends.viz._layout import layout
from adk_fluent.backends.viz._text import clean, fit, width, wrap
from adk_fluent.config import ExecutionConfig
from adk_fluent.ir import (
    NODES,
    AdkAgentNode,
    AgentNode,
    AppNode,
    Effects,
    ExecutionBoundary,
    FunctionNode,
    GateNode,
    Match,
    MiddlewareNode,
    ModelCandidate,
    ModelSelectorNode,
    Node,
    ParallelNode,
    RaceNode,
    Ref,
    RemoteAgentNode,
    ResourceNode,
    RouteNode,
    SequenceNode,
    StateFieldRef,
    TransferNode,
    TransformNode,
    node,
    walk,
)
from adk_fluent.ir._record import child

if TYPE_CHECKING:
    from adk_fluent.builders import Builder, BuilderBase


def good(state: Any) -> bool:
    return True


def draw(pipeline: BuilderBase | Node, **options: Any) -> Diagram:
    return diagram(pipeline if isinstance(pipeline, Node) else pipeline.to_ir(), **options)


def name(drawn: Diagram, at: int) -> str:
    box = drawn.boxes[at]
    return box.title or box.kind


def ways(drawn: Diagram, kind: str = "flow") -> list[str]:
    return [
        f"{name(drawn, each.source)} -{each.label}-> {name(drawn, each.target)}"
        for each in drawn.links
        if each.kind == kind
    ]


def keys(drawn: Diagram) -> set[str]:
    return {f"{name(drawn, e.source)} -{e.key}-> {name(drawn, e.target)}" for e in drawn.data}


def writes(name: str, *written: str, reads: str = "") -> Builder:
    made = Agent(name).reads(*reads.split()) if reads else Agent(name)
    return made.writes(*written, via="tool")


a, b, c = Agent("a"), Agent("b"), Agent("c")


# --- what comes after what -----------------------------------------------------------------------


def test_a_sequence() -> None:
    assert set(ways(draw(a >> b))) == {"start --> a", "a --> b", "b --> end"}


def test_branches_begin_at_a_fork_and_meet_again() -> None:
    drawn = draw(FanOut("look_up", a, b))
    assert set(ways(drawn)) == {
        "start --> parallel look_up",
        "parallel look_up --> a",
        "parallel look_up --> b",
        "a --> join",
        "b --> join",
        "join --> end",
    }


def test_a_race_says_who_wins() -> None:
    assert "a --> the first that succeeds" in ways(draw(race(a, b)))
    first = ParallelNode("p", (a.to_ir(), b.to_ir()), "first_complete")
    assert "a --> the first that succeeds" in ways(draw(first))


def test_a_route_shows_its_tests_and_what_happens_otherwise() -> None:
    route = Route("topic").eq("billing", a).when(good, b)
    said = ways(draw(route.otherwise(c)))
    assert "route -topic == 'billing'-> a" in said
    assert "route -good-> b" in said
    assert "route -otherwise-> c" in said
    assert "route -otherwise-> merge" in ways(draw(Route("topic").eq("x", a)))


def test_a_fallback_shows_the_order() -> None:
    said = ways(draw(a // b // c))
    assert "fallback -first-> a" in said
    assert "fallback -if that fails-> b" in said
    assert "fallback -if that fails-> c" in said


def test_a_loop_leads_back_and_says_when_it_ends() -> None:
    drawn = draw((a >> b) * until(good, max=4))
    assert ways(drawn, "again") == ["until good -again-> loop"]
    assert "b --> until good" in ways(drawn)
    assert "until good --> end" in ways(drawn)
    assert any(box.lines == ("at most 4 times",) for box in drawn.boxes)
    assert ways(draw(a * 3), "again") == ["again? -again-> loop"]


def test_a_map_shows_its_list_and_its_results() -> None:
    drawn = draw(map_over("rows", a, concurrency=4, output_key="done"))
    assert set(ways(drawn)) == {
        "start --> map_over",
        "map_over --> a",
        "a --> results in done",
        "results in done --> end",
    }
    assert drawn.boxes[1].lines == ("each _item of rows", "4 at the same time")


def test_a_remote_agent_with_a_stand_in() -> None:
    drawn = draw(RemoteAgentNode("far", "https://far.example/a2a", fallback=a.to_ir()))
    assert drawn.boxes[1].lines == ("remote agent", "https://far.example/a2a", "at most 30 s")
    assert set(ways(drawn)) == {
        "start --> far",
        "far --> merge",
        "far -if that fails-> a",
        "a --> merge",
        "merge --> end",
    }


def test_agents_that_another_may_call_or_hand_over_to() -> None:
    drawn = draw(a.clone().agent_tool(b).delegates(c) >> Agent("d"))
    assert ways(drawn, "calls") == ["a -may call-> b", "a -may hand over to-> c"]
    assert set(ways(drawn)) == {"start --> a", "a --> d", "d --> end"}


def test_a_transfer_leads_to_its_target() -> None:
    transfer = TransferNode("x", "b", Match("eq", "n", 1))
    drawn = draw(Pipeline("p", a, b, transfer))
    assert ways(drawn, "transfer") == ["transfer to b -hands over-> b"]
    assert drawn.boxes[3].lines == ("if n == 1",)
    assert ways(draw(Pipeline("p", a, TransferNode("x", "nobody"))), "transfer") == []


def test_frames() -> None:
    boundary = ExecutionBoundary(isolation="process")
    inner = SequenceNode("inner", (a.to_ir().replace(boundary=boundary), b.to_ir()))
    wrapped = MiddlewareNode("m", timeout(inner, 2.5).to_ir(), (Ref(good), Ref(good, "retry")))
    drawn = draw(SequenceNode("outer", (wrapped,)))
    assert [(each.kind, each.title, each.parent) for each in drawn.clusters] == [
        ("part", "middleware , retry", None),
        ("part", "timeout: 2.5 s", 0),
        ("part", "inner", 1),
        ("boundary", "execution boundary, process", 2),
    ]
    assert [box.cluster for box in drawn.boxes] == [None, 3, 2, None]


def test_an_application() -> None:
    root = SequenceNode("desk", (a.to_ir(),))
    app = AppNode("desk", root, (ResourceNode("db", Ref(good)),), (Ref(good, "retry"),))
    (cluster,) = draw(app).clusters
    assert cluster.title == "middleware retry; resources db"
    assert draw(AppNode("desk", root)).clusters == ()


def test_agents_say_what_they_are() -> None:
    def search() -> None:
        """Search."""

    agent = Agent("a", "gemini-2.5-pro").tool(search).history("own").instruct("Be <kind>.") @ int
    box = draw(agent).boxes[1]
    assert box.lines == ("gemini-2.5-pro", "tools: search", "answers with int", "sees: own")
    assert box.hint == "agent a; instruction: Be <kind>."
    chosen = ModelSelectorNode("s", candidates=(ModelCandidate("m", 1, 1, 1),))
    assert draw(AgentNode("a", selector=chosen)).boxes[1].lines == ("one of m",)
    config = ExecutionConfig(default_model="flash")
    assert draw(Agent("a"), config=config).boxes[1].lines == ("flash",)
    assert draw(Agent("a").mock("x")).boxes[1].lines == ("mocked",)
    assert draw(Agent("a")).boxes[1].lines == ()  # ADK's default, as for all others


def test_the_heading_says_what_no_box_says() -> None:
    a, b = Agent("a"), Agent("b")
    for unnamed in (a, a >> b, a | b, timeout(a, 1), (a >> b).inject(db=1)):
        assert draw(unnamed).heading == ""
    assert draw(FanOut("desk", a, b)).heading == ""  # the box says: parallel desk
    for named in (Pipeline("desk", a), Pipeline("desk", a).inject(db=1)):
        assert draw(named).heading == "desk"
    for drawn in (draw(a >> b), draw(Pipeline("desk", a, b))):
        placed = layout(drawn)
        assert bool(drawn.heading) == any(
            each.role == "heading" and each.text for each in placed.texts
        )
        assert placed.boxes[0].y == (46 if drawn.heading else 16)


def test_every_kind_of_node_has_words() -> None:
    drawn = [draw(each) for each in _one_of_each()]
    words = {line for each in drawn for box in each.boxes for line in (box.title, *box.lines)}
    assert not words & {kind.__name__ for kind in NODES}


def _one_of_each() -> list[Node]:
    ref = Ref(good, "good")
    return [
        FunctionNode("f", ref),
        TransformNode("t", ref),
        GateNode("g", ref),
        AdkAgentNode("x", ref),
        RouteNode("r", default=AgentNode("a")),
        RaceNode("r", (AgentNode("a"),)),
        TransferNode("x", "a"),
        *(each for each in walk(ir_strategies.chain(6))),
    ]


@node
class FromElsewhere(Node):
    """A node that only another wheel knows."""

    parts: tuple[Node, ...] = child(default=())


def test_a_node_that_nobody_knows_is_shown_with_its_parts() -> None:
    drawn = draw(SequenceNode("s", (FromElsewhere("x", (AgentNode("a"),)), AgentNode("b"))))
    assert drawn.boxes[1].lines == ("FromElsewhere",)
    assert ways(drawn, "calls") == ["x --> a"]
    assert "x --> b" in ways(drawn)


@pytest.mark.parametrize("kind", [ParallelNode, RaceNode, SequenceNode, RouteNode])
def test_what_has_no_parts_is_shown_all_the_same(kind: Any) -> None:
    assert "empty" in render(kind("empty"), "svg")


# --- state keys ----------------------------------------------------------------------------------


def test_a_key_leads_from_its_writer_to_its_readers() -> None:
    drawn = draw(writes("a", "k") >> writes("b", "l", reads="k") >> Agent("c").instruct("{k} {l}"))
    assert keys(drawn) == {"a -k-> b", "a -k-> c", "b -l-> c"}


def test_who_writes_again_hides_what_was_there() -> None:
    assert keys(draw(writes("a", "k") >> writes("b", "k", reads="k") >> c.clone().reads("k"))) == {
        "a -k-> b",
        "b -k-> c",
    }


def test_a_function_may_write_or_not() -> None:
    may = FunctionNode("f", Ref(good), Effects(writes=(StateFieldRef("k"),), opaque=False))
    assert keys(draw(Pipeline("p", writes("a", "k"), may, c.clone().reads("k")))) == {
        "a -k-> c",
        "f -k-> c",
    }


def test_branches_of_a_parallel_do_not_read_each_other() -> None:
    branches = writes("a", "k") | writes("b", "l", reads="k")
    assert keys(draw(writes("z", "k") >> branches >> c.clone().reads("k", "l"))) == {
        "z -k-> b",
        "a -k-> c",
        "b -l-> c",
    }


def test_one_branch_of_a_route_writes() -> None:
    route = Route("k").eq(1, writes("a", "k")).eq(2, writes("b", "l"))
    assert keys(draw(writes("z", "k") >> route >> c.clone().reads("k", "l"))) == {
        "z -k-> route",
        "a -k-> c",
        "z -k-> c",
        "b -l-> c",
    }
    sure = Route("k").eq(1, writes("a", "k")).otherwise(writes("b", "k"))
    assert "z -k-> c" not in keys(draw(writes("z", "k") >> sure >> c.clone().reads("k")))


def test_a_loop_reads_what_it_wrote_before() -> None:
    body = writes("a", "draft", reads="verdict") >> writes("b", "verdict", reads="draft")
    assert keys(draw(body * 3)) == {"a -draft-> b", "b -verdict-> a"}


def test_a_map_gives_items_to_its_body_only() -> None:
    body = writes("a", "part", reads="_item")
    drawn = draw(
        writes("z", "rows")
        >> map_over("rows", body, result_key="part")
        >> c.clone().reads("_item", "results")
    )
    assert keys(drawn) == {
        "z -rows-> map_over",
        "map_over -_item-> a",
        "a -part-> results in results",
        "results in results -results-> c",
    }


def test_an_inner_map_has_items_of_its_own() -> None:
    inner = map_over("_item", writes("a", "part", reads="_item"), name="inner")
    drawn = draw(map_over("rows", inner, output_key="rows_done", name="outer"))
    assert keys(drawn) >= {"map_over outer -_item-> map_over inner", "map_over inner -_item-> a"}
    assert "map_over outer -_item-> a" not in keys(drawn)


def test_transforms_that_remove_keys() -> None:
    three = writes("a", "k", "l", "user:m")
    reader = c.clone().reads("k", "l", "user:m")
    assert keys(draw(three >> S.drop("k") >> reader)) == {"a -l-> c", "a -user:m-> c"}
    assert keys(draw(three >> S.pick("k") >> reader)) == {"a -k-> c", "a -user:m-> c"}
    box = draw(three >> S.pick("k")).boxes[2]
    assert box.lines == ("transform", "keeps only k")


def test_keys_of_gates_tests_and_loops() -> None:
    gate = GateNode("ask", Match("gt", "sum", 3), key="answer")
    loop = Loop("l", gate, until=None).to_ir().replace(until=Match("eq", "answer", "yes"))
    assert keys(draw(Pipeline("p", writes("a", "sum"), loop))) == {
        "a -sum-> gate ask",
        "gate ask -answer-> until answer == 'yes'",
    }


def test_it_can_be_switched_off() -> None:
    pipeline = writes("a", "k") >> c.clone().reads("k")
    assert draw(pipeline, data_flow=False).data == ()
    shown, hidden = (layout(draw(pipeline, data_flow=on)) for on in (True, False))
    assert [text.text for text in shown.texts if text.role == "key"] == ["k", "k"]
    assert not [text for text in hidden.texts if text.role == "key"]
    assert {"writes k", "reads k"} <= {text.text for text in hidden.texts}
    assert "wire w" not in render(pipeline.to_ir(), data_flow=False)


def test_many_keys_of_one_box_are_cut() -> None:
    many = [f"k{i}" for i in range(30)]
    box = draw(writes("a", *many)).boxes[1]
    assert len(box.writes) == 10


# --- large pipelines -----------------------------------------------------------------------------


def test_what_is_too_deep_is_folded_into_a_box_with_a_count() -> None:
    drawn = draw(a >> Loop("polish", b >> FanOut(c, Agent("d"))), depth=1)
    (box,) = [each for each in drawn.boxes if each.kind == "folded"]
    assert (box.title, box.lines) == ("polish", ("loop, 5 steps",))
    assert "start --> a" in ways(drawn)
    assert draw(a >> b, depth=0).boxes[1].lines == ("2 steps",)


def test_a_folded_box_keeps_the_keys_that_matter_elsewhere() -> None:
    inner = Loop("polish", writes("b", "l", "only_here", reads="k only_here"))
    drawn = draw(writes("a", "k") >> inner >> c.clone().reads("l"), depth=1)
    assert keys(drawn) >= {"a -k-> polish", "polish -l-> c"}
    (box,) = [each for each in drawn.boxes if each.kind == "folded"]
    assert (box.reads, box.writes) == (("k",), ("l",))


def test_a_large_pipeline_is_cut_where_the_picture_is_full() -> None:
    groups = [FanOut(f"g{i}", *(Agent(f"a{i}_{j}") for j in range(20))) for i in range(5)]
    drawn = draw(Pipeline("p", *groups, a), max_nodes=40)
    assert sum(box.kind == "folded" for box in drawn.boxes) == 4
    assert len(drawn.boxes) <= 42
    assert "100 that are not shown" not in drawn.summary
    assert "80 that are not shown" in drawn.summary


def test_a_long_row_shows_its_beginning() -> None:
    drawn = draw(ir_strategies.wide(1_000))
    assert len(drawn.boxes) == 152
    assert drawn.boxes[-2].title == "… 851 steps more"
    assert drawn.boxes[-2].kind == "folded"


def test_an_agent_whose_helpers_are_not_shown_says_so() -> None:
    helped = a.clone().agent_tool(b, c)
    box = draw(helped >> c, depth=1).boxes[1]
    assert box.kind == "agent"
    assert box.lines[-1] == "2 steps below are not shown"


def test_20_000_nested_nodes() -> None:
    drawn = draw(ir_strategies.chain(20_000))
    assert len(drawn.boxes) <= 152
    assert sum(box.kind == "folded" for box in drawn.boxes) == 1


@pytest.mark.parametrize("format", ["mermaid", "dot", "svg", "html"])
def test_nothing_recurses(format: Any) -> None:
    text = render(ir_strategies.chain(5_000), format, max_nodes=None)
    assert text.count("at most 3 times") == 1_000


def test_parts_that_share_their_parts_are_not_unfolded() -> None:
    here: Node = AgentNode("a")
    for i in range(200):
        here = ParallelNode(f"p{i}", (here, here))
    drawn = draw(here)
    assert len(drawn.boxes) <= 152
    assert "p199" in drawn.title


# --- text ----------------------------------------------------------------------------------------


def test_clean() -> None:
    assert clean("  a\tb\r\n c\u202e\x00 ") == "a b c"
    assert clean("e\u0301\u0302\u0303\u0304") == "e\u0301\u0302"
    assert clean("x" * 3_000) == "x" * 2_000 + "…"
    assert clean("\ufdfd") == "□"


def test_fit_and_wrap() -> None:
    assert fit("short", 100, 10) == "short"
    cut = fit("a long text that is cut", 60, 10)
    assert cut.endswith("…")
    assert width(cut, 10) <= 60
    assert wrap("one two three four", 50, 10, lines=2) == ("one two", "three f…")
    assert wrap("", 50, 10, lines=2) == ("",)

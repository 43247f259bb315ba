"""`explain`: a pipeline in words."""

from __future__ import annotations

from typing import Any

import pytest

from adk_fluent import Agent, Pipeline, Route, expect, map_over, race, tap, timeout, until
from adk_fluent.builders import explain
from adk_fluent.ir import (
    NODES,
    AdkAgentNode,
    AgentNode,
    AppNode,
    ExpectNode,
    FallbackNode,
    FunctionNode,
    GateNode,
    LoopNode,
    MapOverNode,
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
    TapNode,
    TimeoutNode,
    TransferNode,
    TransformNode,
)


def search(query: str) -> str:
    return query


def good(state: Any) -> bool:
    return True


def given(context: Any) -> str:
    return "Be kind."


def test_a_whole_pipeline() -> None:
    triage = (
        Agent("triage", "gemini-2.5-flash")
        .instruct("Classify {ticket}.\nOne word.")
        .description("Sorts tickets")
        .tool(search)
        .writes("intent")
        .writes("seen", via="tool")
        .history("own")
    )
    writer = Agent("writer").mock("hello") @ int
    desk = (
        Pipeline("desk", triage)
        .step(Route("intent").eq("billing", writer).otherwise(Agent("other").instruct(given)))
        .step((writer >> Agent("critic")) * until(good, max=3))
        .step(Agent("first") // Agent("second"))
        .step(map_over("rows", race(writer, Agent("x")), concurrency=4) >> tap(print))
        .step(timeout(expect(Match("gt", "n", 3), "n is small"), 1.5))
        .model("gemini-2.5-pro")
    )
    here = f"  [{__file__}:"
    text = "\n".join(line.split(here)[0].rstrip() for line in desk.explain().splitlines())
    assert text == (
        """\
pipeline desk
├─ agent triage
│      for: Sorts tickets
│      model: gemini-2.5-flash (its own)
│      instruction: Classify {ticket}. ...
│      tools: search
│      reads: ticket
│      writes: intent
│      tools write: seen
│      sees: own
├─ route on intent
│  ├─ intent == 'billing': agent writer
│  │      model: mocked
│  │      answers with: int
│  └─ otherwise: agent other
│         model: gemini-2.5-pro (pipeline desk)
│         instruction: given by given
├─ loop: at most 3 times, until good
│  └─ pipeline
│     ├─ agent writer
│     │      model: mocked
│     │      answers with: int
│     └─ agent critic
│            model: gemini-2.5-pro (pipeline desk)
├─ fallback
│  ├─ agent first
│  │      model: gemini-2.5-pro (pipeline desk)
│  └─ if that fails: agent second
│         model: gemini-2.5-pro (pipeline desk)
├─ map_over: each _item of rows, 4 at the same time, results in results
│  └─ race
│     ├─ agent writer
│     │      model: mocked
│     │      answers with: int
│     └─ agent x
│            model: gemini-2.5-pro (pipeline desk)
├─ tap print
└─ timeout: 1.5 s
   └─ expect: n > 3, else 'n is small'"""
    )


def test_every_line_of_a_step_ends_with_its_location() -> None:
    line = test_every_line_of_a_step_ends_with_its_location.__code__.co_firstlineno + 2
    text = (Agent("a") >> Agent("b")).explain()
    assert [x for x in text.splitlines() if "model" not in x] == [
        f"pipeline  [{__file__}:{line}]",
        f"├─ agent a  [{__file__}:{line}]",
        f"└─ agent b  [{__file__}:{line}]",
    ]


A = AgentNode("a", "m")
FN = Ref.to(good)
KINDS: list[tuple[Node, str]] = [
    (A, "agent a"),
    (FunctionNode("f", FN), "function f"),
    (TransformNode("t", FN), "transform t"),
    (TapNode("t", FN), "tap t"),
    (AdkAgentNode("x", Ref("agent")), "ADK agent x (str)"),
    (RemoteAgentNode("r", "https://x.example"), "remote agent r"),
    (ModelSelectorNode("s"), "ModelSelectorNode s"),
    (SequenceNode("s", (A,)), "pipeline s"),
    (ParallelNode("p", (A,), "interleave"), "parallel p, interleave"),
    (LoopNode("loop", A, 3), "loop: at most 3 times"),
    (RouteNode("r", None, (FN,), (A,)), "route r"),
    (FallbackNode("fallback", (A,)), "fallback"),
    (RaceNode("race", (A,)), "race"),
    (MapOverNode("m", "k", A), "map_over m: each _item of k, results in results"),
    (TimeoutNode("t", A, 3.0), "timeout t: 3 s"),
    (GateNode("gate", FN, "Sure?\nReally?"), "gate: Sure? ..., if good"),
    (ExpectNode("e", FN), "expect e: good, else 'Expectation failed'"),
    (TransferNode("t", "other", FN), "transfer to other, if good"),
    (MiddlewareNode("m", A, (FN,)), "middleware good"),
    (ResourceNode("r", FN), "resource r"),
    (ResourceNode("r", FN, "app", is_factory=True), "resource r per app"),
    (AppNode("app", A, middlewares=(FN,)), "app, middleware good"),
    (AppNode("desk", A), "app desk"),
]


@pytest.mark.parametrize(("node", "headline"), KINDS, ids=[type(n).__name__ for n, _ in KINDS])
def test_every_kind_of_node_has_its_words(node: Node, headline: str) -> None:
    assert explain(node).splitlines()[0] == headline


def test_no_kind_of_node_is_left_out() -> None:
    assert {type(node) for node, _ in KINDS} == set(NODES)


def test_remote_agents_selectors_and_empty_composites() -> None:
    remote = RemoteAgentNode(
        "r",
        "https://x.example/a2a?token=s3cret",
        reads_keys=(StateFieldRef("i"),),
        writes_keys=(StateFieldRef("o"),),
    )
    assert explain(remote).splitlines()[1:] == [
        "    endpoint: https://x.example/a2a",
        "    reads: i",
        "    writes: o",
    ]
    selector = ModelSelectorNode("s", "adaptive", (ModelCandidate("m", 1, 1, 1),))
    assert "model: one of m (adaptive)" in explain(AgentNode("a", selector=selector))
    assert explain(FallbackNode("fallback")) == "fallback"
    assert explain(SequenceNode("pipeline")) == "pipeline"


def test_long_lines_are_cut() -> None:
    assert Agent("a").instruct("word " * 100).explain().splitlines()[2].endswith("word wor ...")

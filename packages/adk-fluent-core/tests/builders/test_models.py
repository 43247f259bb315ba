"""Which model an agent gets: its own, the enclosing builder's, the configured one, ADK's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent import Agent, FanOut, Pipeline, timeout
from adk_fluent.ir import AgentNode, ExecutionConfig, ModelSelectorNode, Ref, find, walk

if TYPE_CHECKING:
    from adk_fluent.builders import BuilderBase


def models(builder: BuilderBase) -> dict[str, str | Ref | None]:
    return {n.name: n.model for n in walk(builder.build()) if isinstance(n, AgentNode)}


def test_the_agents_own_model_wins_over_the_enclosing_builders() -> None:
    line = (Agent("a", "own") >> Agent("b")).model("theirs")
    assert models(line) == {"a": "own", "b": "theirs"}


def test_the_nearest_enclosing_builder_wins() -> None:
    inner = FanOut("inner", Agent("a"), Agent("b", "own")).model("near")
    outer = Pipeline("outer", inner, Agent("c"), timeout(Agent("d"), 3)).model("far")
    assert models(outer) == {"a": "near", "b": "own", "c": "far", "d": "far"}


def test_an_agent_encloses_those_it_calls_and_hands_over_to() -> None:
    boss = Agent("boss", "pro").delegates(Agent("kid")).agent_tool(Agent("tool", "own"))
    assert models(boss) == {"boss": "pro", "kid": "pro", "tool": "own"}
    caller = Agent("boss", "pro").agent_tool(Agent("tool"))
    assert models(caller) == {"boss": "pro", "tool": "pro"}
    bare = Pipeline("p", Agent("boss").delegates(Agent("kid"))).model("far")
    assert models(bare) == {"boss": "far", "kid": "far"}


def test_a_part_keeps_the_model_it_was_given_when_it_melts() -> None:
    line = (Agent("a") >> Agent("b")).model("near") >> Agent("c")
    assert models(line) == {"a": "near", "b": "near", "c": None}
    assert [node.name for node in line.build().children] == ["a", "b", "c"]


def test_a_selector_chooses_by_itself() -> None:
    chosen = AgentNode("a", selector=ModelSelectorNode("cheap"))
    assert models(Pipeline("p", chosen).model("far")) == {"a": None}


def test_a_part_is_not_changed_by_what_encloses_it() -> None:
    a = Agent("a")
    before = a.build()
    assert models(Pipeline("p", a).model("far")) == {"a": "far"}
    assert a.build() is before


def test_the_source_of_a_model_is_known_and_no_part_of_equality() -> None:
    line = Pipeline("desk", Agent("a"), Agent("b", "own")).model("far").build()
    a, b = find(line, "a"), find(line, "b")
    assert isinstance(a, AgentNode)
    assert isinstance(b, AgentNode)
    assert (a.model_source, b.model_source) == ("pipeline desk", None)
    assert a == AgentNode("a", "far")


def test_explain_says_where_each_model_comes_from() -> None:
    line = Pipeline("desk", Agent("a", "own"), (Agent("b") >> Agent("c")).model("near"))
    text = line.step(Agent("d")).explain()
    lines = [x.strip("│ ") for x in text.splitlines() if "model:" in x]
    assert lines == [
        "model: own (its own)",
        "model: near (its pipeline)",
        "model: near (its pipeline)",
        "model: ADK's default",
    ]
    configured = line.explain(ExecutionConfig(default_model="conf"))
    assert "model: conf (config.default_model)" in configured

"""Graphs that break the rules of legal IR: what a pass, a file or a hand may make.

`conftest.py` beside this file makes it importable as ``broken_ir`` by tests in any folder.
"""

from __future__ import annotations

from typing import Any

from ir_strategies import Tool, double

from adk_fluent import ir

A = ir.AgentNode("a")
FN = ir.Ref.to(double)
ANY: Any = ir  # to build what the type checker refuses
MATCH = ir.Match("eq", "k", 1)

#: For each rule: graphs that break it once, and what is said.
BROKEN: list[tuple[str, ir.Node, str]] = [
    ("typed", ANY.AgentNode(3), "name holds int, not str"),
    ("typed", ANY.AgentNode("a", model=double), "model holds function, not str | Ref | None"),
    ("typed", ANY.AgentNode("a", tools=[FN]), "tools holds list"),
    ("typed", ANY.AgentNode("a", tools=(FN,)), "tools holds tuple"),
    ("typed", ANY.AgentNode("a", history="all"), "history holds str, not History"),
    ("typed", ANY.AgentNode("a", selector=A), "selector holds AgentNode"),
    ("typed", ANY.AgentNode("a", boundary=3), "boundary holds int"),
    ("typed", ANY.AgentNode("a", location="x:1"), "location holds str"),
    ("typed", ANY.AgentNode("a", callbacks=(("x", FN),)), "callbacks holds tuple"),
    ("typed", ANY.AgentNode("a", callbacks=(("x",),)), "callbacks holds tuple"),
    ("typed", ANY.AgentNode("a", settings=((1, 2),)), "settings holds tuple"),
    ("typed", ANY.SequenceNode("s", [A]), "steps holds list"),
    ("typed", ANY.SequenceNode("s", (A, double)), "steps holds tuple"),
    ("typed", ANY.LoopNode("l", None), "body holds NoneType, not Node"),
    ("typed", ANY.LoopNode("l", (A,)), "body holds tuple, not Node"),
    ("typed", ANY.LoopNode("l", A, 2.5), "max_iterations holds float, not int"),
    ("typed", ANY.LoopNode("l", A, True), "max_iterations holds bool"),
    ("typed", ANY.TimeoutNode("t", A, "5"), "seconds holds str, not float"),
    ("typed", ANY.GateNode("g", payload=double), "payload holds function"),
    ("typed", ANY.RouteNode("r", tests=(len,), branches=(A,)), "tests holds tuple"),
    ("typed", ANY.ParallelNode("p", (A,), merge="wait"), "merge holds str"),
    ("typed", ANY.TapNode("t", FN, ANY.Effects(reads=("k",))), "Effects.reads holds tuple"),
    ("typed", ANY.AgentNode("a", content=ANY.ContentSpec({"text"})), "holds frozenset, not Coll"),
    ("typed", ANY.AgentNode("a", content=ANY.ContentSpec("text")), "input_modalities holds str"),
    ("typed", ANY.RemoteAgentNode("r", "x", auth=ANY.AuthConfig(scopes="a")), "scopes holds str"),
    ("typed", ANY.AppNode("x", A, execution=ANY.ExecutionConfig(target="x")), "target holds str"),
    ("typed", ANY.AppNode("x", A, execution=ANY.ExecutionConfig(custom_metadata=3)), "holds int"),
    ("plain", ir.AgentNode("a", settings=(("x", [1]),)), "settings holds a list"),
    ("plain", ir.AgentNode("a", settings=(("x", ({"a": 1},)),)), "settings holds a dict"),
    ("plain", ir.AgentNode("a", settings=(("x", {1}),)), "settings holds a set"),
    ("plain", ir.AgentNode("a", settings=(("x", A),)), "settings holds the node 'a'"),
    ("plain", ir.AgentNode("a", settings=(("x", double),)), "wrap live objects in a Ref"),
    ("plain", ir.ExpectNode("e", ir.Match("eq", "k", Tool("x"))), "predicate holds a Tool"),
    ("named", ir.AgentNode(""), "its name is empty"),
    ("named", ir.AgentNode("user"), "the name 'user' is ADK's own"),
    ("named", ir.SequenceNode("START", (A,)), "the name 'START' is ADK's own"),
    ("named", ir.AgentNode("_adk_x"), "the name '_adk_x' is ADK's own"),
    ("keyed", ir.MapOverNode("m", "", A), "MapOverNode.list_key is empty"),
    ("keyed", ir.MapOverNode("m", "k", A, output_key=""), "MapOverNode.output_key is empty"),
    ("keyed", ir.GateNode("g", key=""), "GateNode.key is empty"),
    ("keyed", ir.AgentNode("a", reads_keys=(ir.StateFieldRef(""),)), "StateFieldRef.key is empty"),
    ("keyed", ir.ExpectNode("e", ir.Match("eq", "", 1)), "Match.key is empty"),
    ("placed", ir.LoopNode("l", ir.AppNode("app", A)), "can only be the root"),
    ("placed", ir.SequenceNode("s", (ir.ResourceNode("r", FN),)), "belong in AppNode.resources"),
    ("placed", ir.AppNode("x", A, resources=(A,)), "belong in AppNode.resources"),
    ("placed", ir.LoopNode("l", ir.ModelSelectorNode("m")), "belongs in AgentNode.selector"),
    ("filled", ir.SequenceNode("s"), "it has no steps"),
    ("filled", ir.ParallelNode("p"), "it has no branches"),
    ("filled", ir.RaceNode("r"), "it has no branches"),
    ("filled", ir.FallbackNode("f"), "it has no attempts"),
    ("filled", ir.RouteNode("r"), "it has neither branches nor a default"),
    ("positive", ir.TimeoutNode("t", A, 0), "seconds is 0; it has to be positive"),
    ("positive", ir.TimeoutNode("t", A, float("nan")), "seconds is nan"),
    ("positive", ir.LoopNode("l", A, -1), "max_iterations is -1"),
    ("positive", ir.MapOverNode("m", "k", A, concurrency=0), "concurrency is 0"),
    ("positive", ir.RemoteAgentNode("r", "http://x", timeout_seconds=0), "timeout_seconds is 0"),
    (
        "positive",
        ir.AppNode("x", A, execution=ir.ExecutionConfig(timeout_seconds=-1)),
        "execution.timeout_seconds is -1",
    ),
    ("matched", ir.RouteNode("r", tests=(MATCH,), default=A), "1 tests for 0 branches"),
    ("matched", ir.RouteNode("r", branches=(A,)), "0 tests for 1 branches"),
    ("edged", ir.SequenceNode("s", (A, A), (ir.EdgeSemantics(),)), "1 edge_semantics for 2 steps"),
    ("called", ir.AgentNode("a", callbacks=(("before", (FN,)),)), "'before' is none of ADK's"),
    (
        "called",
        ir.AgentNode("a", callbacks=(("after_tool", (FN,)),) * 2),
        "callbacks lists 'after_tool' 2 times",
    ),
    ("settings", ir.AgentNode("a", settings=(("b", 1), ("a", 1))), "sorted by field"),
    ("settings", ir.AgentNode("a", settings=(("a", 1), ("a", 2))), "each field once"),
    ("settings", ir.AppNode("x", A, settings=(("b", 1), ("a", 1))), "sorted by field"),
    ("transformed", ir.TransformNode("t"), "merge needs fn"),
    ("transformed", ir.TransformNode("t", semantics="replace_session"), "replace_session needs fn"),
    ("transformed", ir.TransformNode("t", semantics="delete_keys"), "deletes nothing"),
    (
        "transformed",
        ir.TransformNode("t", semantics="delete_keys", affected_keys=()),
        "deletes nothing",
    ),
    ("looks", ir.TapNode("t", FN, ir.Effects(writes=(ir.StateFieldRef("k"),))), "list ['k']"),
    ("asks", ir.GateNode("g", response_schema="{"), "is not the text of a JSON Schema"),
    ("asks", ir.GateNode("g", response_schema="3"), "is not the text of a JSON Schema"),
    ("asks", ir.GateNode("g", response_schema="[" * 100_000), "is not the text of a JSON Schema"),
    (
        "resources",
        ir.AppNode("x", A, resources=(ir.ResourceNode("r", FN), ir.ResourceNode("r", FN))),
        "2 resources are called 'r'",
    ),
    ("runs", ir.ResourceNode("r", FN), "it cannot be the root"),
    ("runs", ir.ModelSelectorNode("m"), "it cannot be the root"),
    ("reached", ir.TransferNode("t", "nobody"), "'t' transfers to 'nobody'"),
    ("reached", ir.SequenceNode("s", (ir.TransferNode("t", "t"),)), "'t' transfers to 't'"),
]

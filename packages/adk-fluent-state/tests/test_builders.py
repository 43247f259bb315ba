"""Fields where builders take state keys, and schemas where they take schemas."""

from __future__ import annotations

import operator
import pickle
from typing import Annotated, Any

import pytest

from adk_fluent import Agent, FanOut, Pipeline, RemoteAgent, Route, S, gate, map_over
from adk_fluent.errors import UsageError
from adk_fluent.ir import UNSET, MapOverNode, Node, content_hash, structure_hash, walk
from adk_fluent.state import Reduce, SessionScoped, StateSchema, UserScoped, field


class Desk(StateSchema):
    intent: SessionScoped[str]
    confidence: SessionScoped[float]
    ticket: SessionScoped[str | None]
    tier: UserScoped[str] = field(default="free")
    tags: SessionScoped[list[str]] = field(default_factory=list)
    tag: SessionScoped[str]
    results: SessionScoped[list[str]]
    open: SessionScoped[bool]
    hits: Annotated[list[str], Reduce(operator.add)]


def first(node: Node, kind: str) -> Any:
    return next(each for each in walk(node) if type(each).__name__ == kind)


def keys(refs: Any) -> list[tuple[Any, ...]]:
    return [(ref.key, ref.type, ref.scope, ref.default) for ref in refs]


def test_reads_and_writes_keep_what_is_known_of_a_field() -> None:
    agent = Agent("clerk").reads(Desk.intent, Desk.tier).writes(Desk.ticket, Desk.confidence)
    node: Any = agent.to_ir()
    assert keys(node.reads_keys) == [
        ("intent", str, "session", UNSET),
        ("user:tier", str, "user", "free"),
    ]
    assert keys(node.writes_keys) == [
        ("ticket", str | None, "session", None),
        ("confidence", float, "session", UNSET),
    ]
    node = Agent("clerk").outputs(Desk.ref("hits")).to_ir()
    (ref,) = node.writes_keys
    assert ref.reducer.value is Desk.ref("hits").reducer


def test_a_tool_s_writes_are_fields() -> None:
    node: Any = Agent("clerk").writes(Desk.ticket, via="tool").to_ir()
    assert keys(node.tool_writes) == [("ticket", str | None, "session", None)]


def test_a_remote_agent_takes_fields() -> None:
    node: Any = (
        RemoteAgent("far", endpoint="http://localhost:1")
        .reads(Desk.intent)
        .writes(Desk.tier)
        .to_ir()
    )
    assert [str(ref) for ref in (*node.reads_keys, *node.writes_keys)] == ["intent", "user:tier"]


def test_a_route_tests_a_field() -> None:
    route = Route(Desk.tier).eq("gold", Agent("a")).otherwise(Agent("b"))
    assert route.to_ir() == Route("user:tier").eq("gold", Agent("a")).otherwise(Agent("b")).to_ir()
    written = Agent("a").writes(Desk.intent) >> {"x": Agent("b"), "y": Agent("c")}
    plain = Agent("a").writes("intent") >> {"x": Agent("b"), "y": Agent("c")}
    assert structure_hash(written.to_ir()) == structure_hash(plain.to_ir())


def test_a_map_takes_fields() -> None:
    node = map_over(
        Desk.tags, Agent("a"), item_key=Desk.tag, output_key=Desk.results, result_key=Desk.intent
    ).to_ir()
    named = map_over(
        "tags", Agent("a"), item_key="tag", output_key="results", result_key="intent"
    ).to_ir()
    assert isinstance(node, MapOverNode)
    assert node == named


def test_a_gate_takes_a_field() -> None:
    made = gate(lambda state: True, message="?", key=Desk.open).to_ir()
    assert first(made, "GateNode").key == "open"


@pytest.mark.parametrize(
    ("by_field", "by_key"),
    [
        (lambda: S.pick(Desk.intent, Desk.ticket), lambda: S.pick("intent", "ticket")),
        (lambda: S.drop(Desk.intent), lambda: S.drop("intent")),
        (lambda: S.rename(ticket=Desk.intent), lambda: S.rename(ticket="intent")),
        (lambda: S.user.drop(Desk.tier), lambda: S.user.drop("tier")),
        (
            lambda: S.merge(Desk.intent, Desk.tier, into=Desk.tag),
            lambda: S.merge("intent", "user:tier", into="tag"),
        ),
        (lambda: S.transform(Desk.tags, len), lambda: S.transform("tags", len)),
        (lambda: S.guard(Desk.intent), lambda: S.guard("intent")),
        (lambda: S.log(Desk.intent, Desk.tier), lambda: S.log("intent", "user:tier")),
    ],
)
def test_transforms_take_fields(by_field: Any, by_key: Any) -> None:
    one, other = Agent("a") >> by_field(), Agent("a") >> by_key()
    assert structure_hash(one.to_ir()) == structure_hash(other.to_ir())
    assert content_hash(one.to_ir()) == content_hash(other.to_ir())


def test_a_boundary_takes_fields() -> None:
    node: Any = Agent("a").contract(inputs=[Desk.intent], outputs=[Desk.tier]).to_ir()
    assert keys(node.contract.inputs) == [("intent", str, "session", UNSET)]
    assert keys(node.contract.outputs) == [("user:tier", str, "user", "free")]


def test_a_pipeline_takes_a_schema() -> None:
    node = Pipeline("p").step(Agent("a")).state(Desk).to_ir()
    assert node.contract is not None
    assert node.contract.schema is not None
    assert node.contract.schema.value is Desk
    with pytest.raises(UsageError, match="takes a state schema"):
        Agent("a").state(Desk.bind({}))  # pyright: ignore[reportArgumentType]


def test_a_field_of_another_scope_is_refused_where_scope_matters() -> None:
    with pytest.raises(UsageError, match=r"S\.user\.drop"):
        S.drop(Desk.tier)


def test_placeholders_in_an_instruction_are_read() -> None:
    agent = Agent("a").instruct(f"About {Desk.template.intent} for {Desk.template.tier}")
    node: Any = agent.to_ir()
    assert node.instruction == "About {intent} for {user:tier?}"


def test_a_pipeline_with_fields_is_hashed_and_pickled() -> None:
    def made() -> Node:
        branches = FanOut("both").branch(Agent("a").writes(Desk.ref("hits")))
        return (branches.branch(Agent("b").writes(Desk.tags)) >> Agent("c")).state(Desk).to_ir()

    assert content_hash(made()) == content_hash(made())
    assert made() == made()
    assert pickle.loads(pickle.dumps(made())) == made()

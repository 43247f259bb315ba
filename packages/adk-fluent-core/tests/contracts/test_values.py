"""Field values without meaning, each with the exact words of its finding."""

from __future__ import annotations

import dataclasses
import typing
from typing import Any, Literal

import pytest

from adk_fluent import ir
from adk_fluent.contracts import InvalidValue, Severity, check_all
from adk_fluent.contracts._structure._values import RULES
from adk_fluent.ir import (
    AgentNode,
    AppNode,
    CompactionConfig,
    ContentSpec,
    EdgeSemantics,
    ExecutionBoundary,
    ExecutionConfig,
    GateNode,
    LoopNode,
    MapOverNode,
    Match,
    ModelCandidate,
    ModelSelectorNode,
    Node,
    ParallelNode,
    Ref,
    RemoteAgentNode,
    ResourceNode,
    RetryConfig,
    RouteNode,
    ScalingConfig,
    SequenceNode,
    TimeoutNode,
    TransformNode,
    TransportConfig,
)


def is_done(state: Any) -> bool:
    return bool(state)


def agent(name: str, **fields: Any) -> AgentNode:
    return AgentNode(name, **fields)


def findings(node: Node) -> list[InvalidValue]:
    return [each for each in check_all(node) if isinstance(each, InvalidValue)]


def boundary(**fields: Any) -> Node:
    return agent("n", boundary=ExecutionBoundary(**fields))


def remote(**fields: Any) -> Node:
    return RemoteAgentNode("n", "http://x", **fields)


def app(**fields: Any) -> Node:
    return AppNode("n", agent("a"), execution=ExecutionConfig(**fields))


def candidate(**fields: Any) -> Node:
    known: dict[str, Any] = {"cost_per_1k_input": 0, "cost_per_1k_output": 0, "quality_tier": 1}
    one = ModelCandidate("m", **(known | fields))
    return ModelSelectorNode("n", candidates=(one,))


ONE = "a whole number, 1 or more"
NONE = "a whole number, 0 or more"
SECONDS = "a number of seconds above 0"
KEY = "a state key"
ANY: Any = None
BAD: Any = "bad"
VALUES: list[tuple[Node, str, str]] = [
    (LoopNode("n", agent("a"), max_iterations=0), "max_iterations=0", ONE),
    (LoopNode("n", agent("a"), max_iterations=-1), "max_iterations=-1", ONE),
    (LoopNode("n", agent("a"), max_iterations=True), "max_iterations=True", ONE),
    (LoopNode("n", agent("a"), max_iterations=BAD), "max_iterations='bad'", ONE),
    (
        LoopNode("n", agent("a"), until=Match(BAD, "x", 1)),
        "Match.operator='bad'",
        "one of 'eq', 'ne', 'contains', 'contains_case', 'gt', 'lt'",
    ),
    (GateNode("n", Match("eq", "", 1)), "Match.key=''", KEY),
    (TimeoutNode("n", agent("a"), 0), "seconds=0", SECONDS),
    (TimeoutNode("n", agent("a"), -1.5), "seconds=-1.5", SECONDS),
    (TimeoutNode("n", agent("a"), float("inf")), "seconds=inf", SECONDS),
    (TimeoutNode("n", agent("a"), float("nan")), "seconds=nan", SECONDS),
    (TimeoutNode("n", agent("a"), True), "seconds=True", SECONDS),
    (TimeoutNode("n", agent("a"), ANY), "seconds=None", SECONDS),
    (TimeoutNode("n", agent("a"), BAD), "seconds='bad'", SECONDS),
    (MapOverNode("n", "", agent("a")), "list_key=''", KEY),
    (MapOverNode("n", "xs", agent("a"), item_key=""), "item_key=''", KEY),
    (MapOverNode("n", "xs", agent("a"), output_key=ANY), "output_key=None", KEY),
    (MapOverNode("n", "xs", agent("a"), concurrency=0), "concurrency=0", f"{ONE}, or None"),
    (agent("n", history=BAD), "history='bad'", "one of 'transcript', 'own', 'input', 'none'"),
    (
        agent("n", content=ContentSpec(max_input_tokens=0)),
        "ContentSpec.max_input_tokens=0",
        f"{ONE}, or None",
    ),
    (
        remote(content=ContentSpec(max_output_tokens=0)),
        "ContentSpec.max_output_tokens=0",
        f"{ONE}, or None",
    ),
    (remote(timeout_seconds=0), "timeout_seconds=0", SECONDS),
    (remote(retry=RetryConfig(max_attempts=0)), "RetryConfig.max_attempts=0", ONE),
    (
        remote(retry=RetryConfig(initial_delay=-1)),
        "RetryConfig.initial_delay=-1",
        "a number, 0 or more",
    ),
    (remote(retry=RetryConfig(max_delay=-1)), "RetryConfig.max_delay=-1", "a number, 0 or more"),
    (
        remote(retry=RetryConfig(backoff_factor=0.5)),
        "RetryConfig.backoff_factor=0.5",
        "a number, 1 or more",
    ),
    (remote(retry=RetryConfig(jitter=1.5)), "RetryConfig.jitter=1.5", "a number from 0 to 1"),
    (
        ParallelNode("n", (agent("a"),), BAD),
        "merge='bad'",
        "one of 'wait_all', 'first_complete', 'interleave'",
    ),
    (
        TransformNode("n", Ref.to(is_done), BAD),
        "semantics='bad'",
        "one of 'merge', 'replace_session', 'delete_keys'",
    ),
    (TransformNode("n", Ref.to(is_done), scope=BAD), "scope='bad'", "one of 'session', 'all'"),
    (ResourceNode("n", Ref(1), BAD), "scope='bad'", "one of 'app', 'session', 'invocation'"),
    (
        SequenceNode("n", (agent("a"),), (EdgeSemantics("chunked", chunk_size=-1),)),
        "EdgeSemantics.chunk_size=-1",
        f"{ONE}, or None",
    ),
    (
        candidate(cost_per_1k_input=-1),
        "ModelCandidate.cost_per_1k_input=-1",
        "a number, 0 or more, or None",
    ),
    (
        candidate(cost_per_1k_output="1"),
        "ModelCandidate.cost_per_1k_output='1'",
        "a number, 0 or more, or None",
    ),
    (candidate(max_tokens=0), "ModelCandidate.max_tokens=0", f"{ONE}, or None"),
    (
        boundary(serialization=BAD),
        "ExecutionBoundary.serialization='bad'",
        "one of 'json', 'msgpack', 'protobuf', 'arrow'",
    ),
    (
        boundary(isolation=BAD),
        "ExecutionBoundary.isolation='bad'",
        "one of 'none', 'process', 'container'",
    ),
    (
        boundary(transport=TransportConfig(BAD)),
        "TransportConfig.type='bad'",
        "one of 'queue', 'http', 'local'",
    ),
    (
        boundary(transport=TransportConfig(timeout_seconds=0)),
        "TransportConfig.timeout_seconds=0",
        f"{SECONDS}, or None",
    ),
    (boundary(scaling=ScalingConfig(min_instances=-1)), "ScalingConfig.min_instances=-1", NONE),
    (boundary(scaling=ScalingConfig(max_instances=0)), "ScalingConfig.max_instances=0", ONE),
    (boundary(scaling=ScalingConfig(concurrency=0)), "ScalingConfig.concurrency=0", ONE),
    (app(timeout_seconds=0), "ExecutionConfig.timeout_seconds=0", f"{SECONDS}, or None"),
    (
        app(streaming_mode=BAD),
        "ExecutionConfig.streaming_mode='bad'",
        "one of 'none', 'sse', 'bidi'",
    ),
    (app(target=BAD), "ExecutionConfig.target='bad'", "one of 'agents', 'workflow'"),
    (app(compaction=CompactionConfig(interval=0)), "CompactionConfig.interval=0", ONE),
    (app(compaction=CompactionConfig(overlap=-1)), "CompactionConfig.overlap=-1", NONE),
]


@pytest.mark.parametrize("case", VALUES, ids=lambda c: c[1])
def test_a_value_without_meaning_is_found(case: tuple[Node, str, str]) -> None:
    node, says, needs = case
    [found] = findings(node)
    assert found.message == f"`n` has {says}"
    assert found.help == f"it must be {needs}"
    assert found.severity is Severity.ERROR


CLASHES: list[tuple[Node, str, str]] = [
    (
        SequenceNode("n", (agent("a"), agent("b")), (EdgeSemantics(),)),
        "`n` has 1 edges for 2 steps",
        "entry i of edge_semantics leaves step i: give one for each step, or none",
    ),
    (
        SequenceNode("n", (agent("a"),), (EdgeSemantics("chunked"),)),
        "`n` has an edge with buffering='chunked' and chunk_size=None",
        "give chunk_size (in tokens) with 'chunked', and with nothing else",
    ),
    (
        SequenceNode("n", (agent("a"),), (EdgeSemantics("token", chunk_size=3),)),
        "`n` has an edge with buffering='token' and chunk_size=3",
        "give chunk_size (in tokens) with 'chunked', and with nothing else",
    ),
    (
        RouteNode("n", "x", (Match("eq", "x", 1),), (agent("a"), agent("b"))),
        "`n` has 1 tests for 2 branches",
        "give each branch its test; what runs otherwise is `default`",
    ),
    (
        TransformNode("n", semantics="delete_keys"),
        "`n` deletes keys and names none",
        "list them in affected_keys",
    ),
    (
        TransformNode("n"),
        "`n` has no function",
        "only what deletes or keeps the keys in affected_keys goes without fn",
    ),
    (
        TransformNode("n", semantics="replace_session", affected_keys=()),
        "`n` has no function",
        "only what deletes or keeps the keys in affected_keys goes without fn",
    ),
    (
        boundary(scaling=ScalingConfig(min_instances=3, max_instances=2)),
        "`n` keeps 3 workers, and has 2 at most",
        "max_instances must be min_instances or more",
    ),
]


@pytest.mark.parametrize("case", CLASHES, ids=lambda c: c[1])
def test_fields_that_do_not_fit_together_are_found(case: tuple[Node, str, str]) -> None:
    node, says, help_text = case
    [found] = findings(node)
    assert (found.message, found.help) == (says, help_text)


def test_a_long_value_is_cut() -> None:
    [found] = findings(agent("n", history="x" * 10_000))
    assert len(found.message) < 100


def words_of(hint: Any) -> tuple[Any, ...] | None:
    return typing.get_args(hint) if typing.get_origin(hint) is Literal else None


RECORDS = [
    each
    for each in vars(ir).values()
    if isinstance(each, type)
    and dataclasses.is_dataclass(each)
    and each is not ir.StateFieldRef  # its scope follows from its key
]


@pytest.mark.parametrize("kind", RECORDS, ids=lambda t: t.__name__)
def test_every_choice_of_the_ir_is_known_with_its_words(kind: type) -> None:
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        words = words_of(hints[field.name])
        if words is not None:
            rule = RULES[kind][field.name]
            assert rule.needs == "one of " + ", ".join(map(repr, words))
            assert all(rule.holds(word) for word in words)
            assert not rule.holds("bad")


@pytest.mark.parametrize("kind", RULES, ids=lambda t: t.__name__)
def test_a_rule_is_about_a_field_and_accepts_its_default(kind: type) -> None:
    fields = {field.name: field for field in dataclasses.fields(kind)}
    for name, rule in RULES[kind].items():
        default = fields[name].default
        assert default is dataclasses.MISSING or rule.holds(default), name

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adk_fluent import ir
from adk_fluent.contracts import ContractReport, Opaque, check_all, validate
from adk_fluent.errors import ContractError, UsageError
from adk_fluent.ir import (
    AdkAgentNode,
    AgentNode,
    Effects,
    ExpectNode,
    FunctionNode,
    GateNode,
    Location,
    LoopNode,
    MapOverNode,
    Match,
    Node,
    ParallelNode,
    Ref,
    RouteNode,
    SequenceNode,
    StateFieldRef,
    TapNode,
    TimeoutNode,
    ToolSpec,
    TransferNode,
    TransformNode,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Callable

GOOD = AgentNode("good", instruction="Hello {name}")
BAD = AgentNode("not good")


def fn(state: Any) -> None:
    """Some function."""


class Builder:
    def __init__(self, node: Node) -> None:
        self.node = node

    def to_ir(self) -> Node:
        return self.node


class TestCheckAll:
    def test_takes_a_node_or_whatever_turns_into_one(self) -> None:
        assert check_all(GOOD).proven
        assert check_all(BAD) == check_all(Builder(BAD))
        assert not check_all(Builder(BAD)).ok

    @pytest.mark.parametrize(
        ("thing", "kind"), [(42, "int"), (None, "NoneType"), ("agent", "str"), (Builder, "type")]
    )
    def test_refuses_what_is_no_pipeline(self, thing: Any, kind: str) -> None:
        with pytest.raises(UsageError, match="only a pipeline can be checked") as error:
            check_all(thing)
        assert error.value.found == f"a {kind}"

    @pytest.mark.parametrize("field", ["inputs", "outputs"])
    def test_takes_keys_of_the_boundary_in_every_form(self, field: str) -> None:
        ref = StateFieldRef("k", str)
        for keys in (["k"], ("k",), [ref], {"k": str}, iter(["k"])):
            given: dict[str, Any] = {field: keys}
            assert check_all(GOOD, **given) is not None
        assert check_all(GOOD, inputs=None, outputs=None).ok

    @pytest.mark.parametrize("keys", ["k", [""], [3], [None], {3: str}])
    @pytest.mark.parametrize("field", ["inputs", "outputs"])
    def test_refuses_what_are_no_keys(self, field: str, keys: Any) -> None:
        with pytest.raises(UsageError, match=f"{field} takes"):
            check_all(GOOD, **{field: keys})

    def test_refuses_what_is_no_schema(self) -> None:
        with pytest.raises(UsageError, match="takes a state schema"):
            check_all(GOOD, schema=cast("Any", int))

    def test_validate_raises_with_the_report(self) -> None:
        validate(GOOD)
        validate(Builder(GOOD))
        with pytest.raises(ContractError) as error:
            validate(BAD)
        assert error.value.report == check_all(BAD)

    def test_changes_nothing(self) -> None:
        before = repr(BAD)
        check_all(BAD)
        assert repr(BAD) == before


def without_source() -> Ref:
    made: dict[str, Any] = {}
    exec("def hidden(state): ...", made)  # what has no source
    return Ref.to(made["hidden"])


HIDDEN = without_source()
UNKNOWN = "is not known: its source is not there"


class TestOpaque:
    @pytest.mark.parametrize(
        ("node", "why"),
        [
            (FunctionNode("n", HIDDEN), f"what `hidden` does to state {UNKNOWN}"),
            (TransformNode("n", HIDDEN), f"what `hidden` does to state {UNKNOWN}"),
            (TapNode("n", HIDDEN), f"what `hidden` does to state {UNKNOWN}"),
            (
                TransformNode("n", semantics="delete_keys", affected_keys=("a",)),
                "what `n` does to state is not known: not all that it reads and writes is declared",
            ),
            (AdkAgentNode("n", Ref("built")), "it is an agent built by hand"),
            (AgentNode("n", instruction=HIDDEN), f"what its instruction `hidden` reads {UNKNOWN}"),
            (
                AgentNode("n", tools=(ToolSpec(HIDDEN),)),
                f"what its tool `hidden` does to state {UNKNOWN}",
            ),
            (
                AgentNode("n", tools=(ToolSpec(Ref.to(fn), HIDDEN),)),
                f"what its tool `hidden` does to state {UNKNOWN}",
            ),
            (
                AgentNode("n", callbacks=(("before_model", (Ref.to(fn), HIDDEN)),)),
                f"what its callback before_model `hidden` does to state {UNKNOWN}",
            ),
            (GateNode("n", payload=HIDDEN), f"what its payload `hidden` reads {UNKNOWN}"),
            *(
                (node, f"what its test `hidden` reads {UNKNOWN}")
                for node in (
                    GateNode("n", HIDDEN),
                    ExpectNode("n", HIDDEN),
                    LoopNode("n", GOOD, until=HIDDEN),
                    RouteNode("n", tests=(HIDDEN,), branches=(GOOD,)),
                    SequenceNode("s", (GOOD, TransferNode("n", "good", HIDDEN))),
                )
            ),
        ],
    )
    def test_code_that_does_not_show_what_it_does_is_opaque(self, node: Node, why: str) -> None:
        report = check_all(node)
        assert report.opaque == (Opaque("n", why),)
        assert report.ok
        assert not report.proven

    @pytest.mark.parametrize(
        "node",
        [
            FunctionNode("n", HIDDEN, Effects(opaque=False)),
            TransformNode("n", HIDDEN, effects=Effects(opaque=False)),
            TapNode("n", HIDDEN, Effects(opaque=False)),
            FunctionNode("n", Ref.to(fn)),
            TransformNode("n", Ref.to(fn)),
            TapNode("n", Ref.to(fn)),
            AgentNode("n", instruction=Ref.to(fn), tools=(ToolSpec(Ref.to(fn), Ref.to(fn)),)),
            AgentNode("n", callbacks=(("before_model", (Ref.to(fn),)),)),
            GateNode("n", Ref.to(fn), payload=Ref.to(fn)),
            LoopNode("n", GOOD, until=Ref.to(fn)),
            AgentNode("n", instruction="text", static_instruction=Ref("content")),
            GateNode("n", Match("eq", "x", 1)),
            LoopNode("n", GOOD, until=Match("eq", "x", 1)),
            LoopNode("n", GOOD, 2),
        ],
    )
    def test_code_that_shows_it_is_not(self, node: Node) -> None:
        assert check_all(node).opaque == ()

    def test_they_come_in_declared_order_with_their_places(self) -> None:
        here = Location("app.py", 3)
        nodes = [FunctionNode(n, HIDDEN, location=here) for n in "ba"]
        report = check_all(SequenceNode("flow", tuple(nodes)))
        why = f"what `hidden` does to state {UNKNOWN}"
        assert report.opaque == (Opaque("b", why, here), Opaque("a", why, here))


# --- any IR at all -------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c", "user", "", "not good", "_adk", "\x1b[2J", "é", "a" * 99])
KEYS = st.sampled_from(["x", "user:x", "app:y", "temp:z", "", ":", "a:b:c"])
TEXTS = st.sampled_from(["", "{x} {y?}", "{a-b}", "{{", "}{", "{user:x}{artifact.f}", "{\n}"])
REFS = st.sampled_from([Ref.to(fn), Ref(1), Ref(None), Ref.to(len), Ref("x", digest="d")])
VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS, st.just([1]))
MATCHES = st.builds(Match, st.sampled_from(["eq", "contains", "gt", "lt"]), KEYS, VALUES)
TESTS = st.one_of(MATCHES, REFS)
FIELDS = st.builds(ir.StateFieldRef, KEYS)
NUMBERS: Any = st.one_of(st.integers(-1, 12), st.floats(), st.none(), st.just("3"))
CALLBACKS = st.just((("before_agent", (Ref.to(fn),)),))


def some(strategy: st.SearchStrategy[Any], most: int = 3) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(strategy, max_size=most).map(tuple)


EDGES = st.builds(
    ir.EdgeSemantics, st.sampled_from(["full", "chunked", "token"]), st.booleans(), NUMBERS
)
BOUNDARIES = st.builds(ir.ExecutionBoundary, scaling=st.builds(ir.ScalingConfig, NUMBERS))
EFFECTS = st.builds(Effects, some(FIELDS), some(FIELDS), st.booleans())
CONFIGS = st.builds(
    ir.ExecutionConfig,
    timeout_seconds=NUMBERS,
    middlewares=some(st.sampled_from([1, 2])),
    telemetry=st.sampled_from([None, ir.TelemetryConfig()]),
)
KINDS = some(st.sampled_from([*ir.Modality, "text"]))
CONTENTS = st.builds(ir.ContentSpec, KINDS, KINDS, NUMBERS, NUMBERS)
MODELS = st.sampled_from(["gemini-2.5-flash", "gpt-4", "gemini-2.5-pro-tts", "eagle-7"])
CANDIDATES = st.builds(ir.ModelCandidate, NAMES, NUMBERS, NUMBERS, NUMBERS)


def build(kind: type[Node], *args: Any, **fields: Any) -> st.SearchStrategy[Node]:
    place = st.sampled_from([None, Location("app.py", 1), Location("\0", 10**9)])
    boundary = st.sampled_from([None, ir.ExecutionBoundary()]) | BOUNDARIES
    return st.builds(kind, *args, boundary=boundary, location=place, **fields)


LEAVES: list[st.SearchStrategy[Node]] = [
    build(AdkAgentNode, NAMES, REFS),
    build(FunctionNode, NAMES, REFS, EFFECTS),
    build(TransformNode, NAMES, st.none() | REFS, effects=EFFECTS),
    build(TapNode, NAMES, REFS),
    build(
        ir.RemoteAgentNode,
        NAMES,
        st.just("http://x"),
        writes_keys=some(FIELDS),
        content=st.none() | CONTENTS,
    ),
    build(ir.ModelSelectorNode, NAMES, candidates=some(CANDIDATES)),
    build(GateNode, NAMES, st.none() | TESTS, payload=st.none() | REFS, key=st.none() | KEYS),
    build(ExpectNode, NAMES, TESTS),
    build(TransferNode, NAMES, NAMES, st.none() | TESTS),
    build(ir.ResourceNode, NAMES, REFS),
]


def composites(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    nodes = some(inner)
    return st.one_of(
        build(
            AgentNode,
            NAMES,
            st.none() | REFS | MODELS,
            content=st.none() | CONTENTS,
            history=st.sampled_from(ir.HISTORIES),
            selector=st.none() | inner,
            instruction=st.none() | TEXTS | REFS,
            static_instruction=st.none() | TEXTS | REFS,
            tools=some(st.builds(ToolSpec, REFS, st.booleans() | REFS)),
            agent_tools=nodes,
            delegates=nodes,
            callbacks=st.just(()) | CALLBACKS,
            writes_keys=some(FIELDS),
        ),
        build(SequenceNode, NAMES, nodes, some(EDGES)),
        build(
            ParallelNode,
            NAMES,
            nodes,
            st.sampled_from(["wait_all", "first_complete", "interleave"]),
        ),
        build(LoopNode, NAMES, inner, NUMBERS, st.none() | TESTS),
        build(RouteNode, NAMES, st.none() | KEYS, some(TESTS), nodes, st.none() | inner),
        build(ir.FallbackNode, NAMES, nodes),
        build(ir.RaceNode, NAMES, nodes),
        build(MapOverNode, NAMES, KEYS, inner, KEYS, KEYS, concurrency=NUMBERS),
        build(TimeoutNode, NAMES, inner, NUMBERS),
        build(ir.MiddlewareNode, NAMES, inner, some(REFS)),
        build(ir.AppNode, NAMES, inner, nodes, some(REFS), st.none() | CONFIGS),
    )


PIPELINES = st.recursive(st.one_of(LEAVES), composites, max_leaves=12)


@settings(max_examples=100, deadline=None)
@given(PIPELINES)
def test_any_ir_gives_a_report_and_the_same_one_twice(node: Node) -> None:
    report = check_all(node)
    assert report == check_all(node)
    assert report.to_json() == check_all(node).to_json()
    assert json.loads(report.to_json())["ok"] is report.ok
    text = report.render()
    assert text.replace("\n", "").isprintable()
    assert len(set(report)) == len(report.diagnostics)
    names = {each.name for each in walk(node)}
    assert {each.node for each in report} <= names
    assert {each.node for each in report.opaque} <= names
    if report.ok:
        validate(node)


def test_the_random_pipelines_have_every_kind_of_node() -> None:
    seen: Counter[type[Node]] = Counter()

    @settings(max_examples=150, deadline=None, derandomize=True)
    @given(PIPELINES)
    def count(node: Node) -> None:
        seen.update(type(each) for each in walk(node))

    count()
    assert set(seen) == set(ir.NODES)


# --- cost ----------------------------------------------------------------------------------------


def chain(size: int) -> Node:
    return SequenceNode("flow", tuple(AgentNode(f"a{i}", instruction="{x}") for i in range(size)))


def nested(size: int) -> Node:
    node: Node = AgentNode("leaf")
    for i in range(size):
        node = LoopNode(f"l{i}", node, max_iterations=2)
    return node


def forks(size: int) -> Node:
    node: Node = AgentNode("leaf")
    for i in range(size // 2):
        node = ParallelNode(f"p{i}", (node, AgentNode(f"a{i}")))
    return node


def routes(size: int) -> Node:
    tests = tuple(Match("eq", "x", i) for i in range(size))
    return RouteNode("r", "x", tests, tuple(AgentNode(f"a{i}") for i in range(size)))


def transfers(size: int) -> Node:
    ring = (
        SequenceNode(f"s{i}", (TransferNode(f"t{i}", f"s{(i + 1) % (size // 2)}"),))
        for i in range(size // 2)
    )
    return SequenceNode("flow", tuple(ring))


def mistakes(size: int) -> Node:
    return SequenceNode("flow", tuple(TransferNode(f"t {i}", f"no{i}") for i in range(size)))


def calls(act: Callable[[], object]) -> int:
    """How many Python and C functions are called: the same on every machine."""
    count = 0

    def on_event(frame: object, event: str, arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(on_event)
    try:
        act()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("shape", [chain, nested, forks, routes, transfers, mistakes])
def test_ten_times_the_nodes_cost_ten_times_the_calls(shape: Callable[[int], Node]) -> None:
    def work(size: int) -> int:
        node = shape(size)
        report: list[ContractReport] = []
        check_all(node)  # not the first use of anything
        counted = calls(lambda: report.append(check_all(node)))
        return counted + calls(report[0].render)

    small, large = work(400), work(4_000)
    assert large < 12 * small


def test_a_very_deep_pipeline_is_checked() -> None:
    report = check_all(nested(20_000))
    assert report.ok
    assert report.checked


def test_a_pipeline_that_shares_its_parts_is_checked() -> None:
    node: Node = AgentNode("a")
    for i in range(100):  # 2**100 places
        node = SequenceNode(f"s{i}", (node, node))
    assert check_all(node).proven


def test_checking_imports_neither_adk_nor_pydantic() -> None:
    code = (
        "import sys\n"
        "before = set(sys.modules)  # namespace packages may come with the environment\n"
        "from adk_fluent.contracts import check_all\n"
        "from adk_fluent.ir import AgentNode\n"
        "print(check_all(AgentNode('a')).ok)\n"
        "new = {module.split('.')[0] for module in set(sys.modules) - before}\n"
        "print(sorted(new & {'google', 'pydantic'}))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[1] == "[]"

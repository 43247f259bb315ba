"""Laws of the builder language, over random programs."""
# ruff: noqa: C901, PLR0911  # one case a kind of program

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from adk_fluent import Agent, FanOut, Pipeline, map_over, race, timeout
from adk_fluent.ir import (
    AgentNode,
    FallbackNode,
    FunctionNode,
    LoopNode,
    MapOverNode,
    Node,
    ParallelNode,
    RaceNode,
    Ref,
    SequenceNode,
    TimeoutNode,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.builders import Builder


def fn(state: Any) -> None:
    return None


# --- programs as data ----------------------------------------------------------------------------


class Leaf(NamedTuple):
    name: str


class Op(NamedTuple):
    sign: str
    left: Program
    right: Program


class Again(NamedTuple):
    body: Program
    times: int


class Named(NamedTuple):
    kind: str
    name: str
    parts: tuple[Program, ...]


class Wrapped(NamedTuple):
    kind: str
    body: Program


Program = Leaf | Op | Again | Named | Wrapped

leaves = st.builds(Leaf, st.sampled_from("abcd"))
names = st.sampled_from(["x", "y", "z"])


def grow(inner: st.SearchStrategy[Program]) -> st.SearchStrategy[Program]:
    return st.one_of(
        st.builds(Op, st.sampled_from([">>", "|", "//"]), inner, inner),
        st.builds(Again, inner, st.integers(1, 5)),
        st.builds(
            Named,
            st.sampled_from(["pipeline", "parallel", "race"]),
            names,
            st.lists(inner, min_size=1, max_size=3).map(tuple),
        ),
        st.builds(Wrapped, st.sampled_from(["timeout", "map_over"]), inner),
    )


programs: st.SearchStrategy[Program] = st.recursive(leaves, grow, max_leaves=12)

OPERATORS: dict[str, Callable[[Any, Any], Builder]] = {
    ">>": lambda x, y: x >> y,
    "|": lambda x, y: x | y,
    "//": lambda x, y: x // y,
}


class Built(NamedTuple):
    """A program's builder, and every builder that went into it."""

    whole: Builder
    parts: list[Builder]


def build(program: Program, cache: dict[Program, Builder] | None = None) -> Built:
    """What a user writes. With a cache, equal programs share one builder."""
    parts: list[Builder] = []

    def make(p: Program) -> Builder:
        if cache is not None and p in cache:
            return cache[p]
        made = fresh(p)
        parts.append(made)
        if cache is not None:
            cache[p] = made
        return made

    def fresh(p: Program) -> Builder:
        match p:
            case Leaf(name):
                return Agent(name)
            case Op(sign, left, right):
                return OPERATORS[sign](make(left), make(right))
            case Again(body, times):
                return make(body) * times
            case Named("pipeline", name, below):
                return Pipeline(name, *map(make, below))
            case Named("parallel", name, below):
                return FanOut(name, *map(make, below))
            case Named(_, name, below):
                return race(*map(make, below), name=name)
            case Wrapped("timeout", body):
                return timeout(make(body), 3)
            case Wrapped(_, body):
                return map_over("k", make(body))

    return Built(make(program), parts)


# --- what it must mean ---------------------------------------------------------------------------

KINDS: dict[str, tuple[str, type[Any]]] = {
    ">>": ("pipeline", SequenceNode),
    "|": ("parallel", ParallelNode),
    "//": ("fallback", FallbackNode),
}


def melted(node: Node, kind: type[Node], name: str) -> tuple[Node, ...]:
    return node.children if type(node) is kind and node.name == name else (node,)


def meaning(p: Program) -> Node:
    """The node of a program, by the rules and not by the builders."""
    match p:
        case Leaf(name):
            return AgentNode(name)
        case Op(sign, left, right):
            word, kind = KINDS[sign]
            both = (*melted(meaning(left), kind, word), *melted(meaning(right), kind, word))
            return kind(word, both)
        case Again(body, times):
            return LoopNode("loop", meaning(body), times)
        case Named("pipeline", name, below):
            nodes = [n for x in below for n in melted(meaning(x), SequenceNode, "pipeline")]
            return SequenceNode(name, tuple(nodes))
        case Named("parallel", name, below):
            nodes = [n for x in below for n in melted(meaning(x), ParallelNode, "parallel")]
            return ParallelNode(name, tuple(nodes))
        case Named(_, name, below):
            return RaceNode(name, tuple(map(meaning, below)))
        case Wrapped("timeout", body):
            return TimeoutNode("timeout", meaning(body), 3.0)
        case Wrapped(_, body):
            return MapOverNode("map_over", "k", meaning(body))


# --- the laws ------------------------------------------------------------------------------------


@given(programs)
def test_builders_make_what_the_program_means(program: Program) -> None:
    assert build(program).whole.build() == meaning(program)


@given(programs)
def test_the_same_program_twice_gives_the_same_ir(program: Program) -> None:
    one, other = build(program).whole.build(), build(program).whole.build()
    assert one == other
    assert hash(one) == hash(other)
    assert repr(one) == repr(other)


@given(st.sampled_from([">>", "|", "//"]), programs, programs, programs)
def test_operators_are_associative(sign: str, x: Program, y: Program, z: Program) -> None:
    left = build(Op(sign, Op(sign, x, y), z)).whole.build()
    right = build(Op(sign, x, Op(sign, y, z))).whole.build()
    assert left == right


@given(programs)
def test_a_part_may_be_used_in_many_places(program: Program) -> None:
    shared = build(program, cache={}).whole.build()
    assert shared == build(program).whole.build()


@given(programs, st.data())
def test_snapshots_are_independent_of_what_happens_later(program: Program, data: Any) -> None:
    whole, parts = build(program, cache={})
    before = whole.clone().build()
    others = [x >> fn for x in parts] + [x | whole for x in parts]
    changed = data.draw(st.permutations(parts))
    expected = {id(x): x.build() for x in others}
    for part in changed:
        if part is whole:
            continue
        part.named("changed").model("changed")
        if isinstance(part, Pipeline):
            part.step(fn)
        if isinstance(part, FanOut):
            part.branch(fn)
    assert whole.clone().build() == before
    assert all(x.clone().build() == expected[id(x)] for x in others)


@given(programs)
def test_names_never_grow_and_agents_keep_theirs(program: Program) -> None:
    names = {node.name for node in walk(build(program).whole.build())}
    assert names <= {*"abcdxyz", "pipeline", "parallel", "fallback", "loop", "timeout", "map_over"}


@given(programs)
def test_a_default_model_reaches_every_agent_without_one(program: Program) -> None:
    whole = build(program).whole
    if isinstance(whole, Agent):
        whole = Pipeline("all", whole)
    agents = [n for n in walk(whole.clone().model("m").build()) if isinstance(n, AgentNode)]
    assert {agent.model for agent in agents} == {"m"}


@given(programs)
def test_functions_may_stand_anywhere(program: Program) -> None:
    node = FunctionNode("fn", Ref.to(fn))
    after = (build(program).whole >> fn).build()
    before = (fn >> build(program).whole).build()
    assert after.children[-1] == before.children[0] == node

"""Hypothesis strategies for legal IR, over every class of `ir.NODES`.

`conftest.py` beside this file makes it importable as ``ir_strategies`` by tests in any folder.
Data fields are drawn by their annotations, so a new field is covered without a change here; what
rules demand beyond types stands in `DATA` and `_fitted`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from operator import itemgetter
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from adk_fluent import ir
from adk_fluent.ir._functions import FUNCTIONS, is_function
from adk_fluent.ir._record import MISSING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Test = TypeVar("Test", bound="Callable[..., Any]")


def laws(test: Test) -> Test:
    """Settle how a test over random graphs draws.

    Settings are made of the profile that is current then, and when pytest loads this module
    because of a path on its command line, that of `conftest.py` is not yet.
    """
    return settings(
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )(test)


# --- live objects --------------------------------------------------------------------------------


def double(state: Mapping[str, Any]) -> dict[str, Any]:
    return {"n": state["n"] * 2}


async def fetch(state: Mapping[str, Any]) -> dict[str, Any]:
    return {"page": state["url"]}


class Tool:
    """A tool with a name, as ADK's are."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.api_key = "hunter2"

    def run(self, text: str) -> str:
        return text

    @classmethod
    def make(cls) -> Tool:
        return cls("made")


IMPORTABLE: tuple[Any, ...] = (double, fetch, Tool, Tool.run, Tool.make, len, dict)
LAMBDAS: list[Callable[[Any], Any]] = [lambda state: state, lambda state: not state]
UNIMPORTABLE: tuple[Any, ...] = (
    *LAMBDAS,
    Tool("search"),
    Tool("search").run,
    itemgetter("done"),
    str.upper,
)


# --- data ----------------------------------------------------------------------------------------

keys = st.sampled_from(["intent", "user:tier", "app:rate", "temp:x", "a:b", "ünï"])
names = st.sampled_from(["a", "b", "main", "Ünï", "x y", "ab" * 20])
texts = st.text(max_size=5)
numbers = st.integers(-3, 300) | st.floats(allow_nan=False, width=32)
scalars = st.none() | st.booleans() | numbers | texts | st.binary(max_size=3)
plain = st.recursive(
    scalars | st.sampled_from(ir.Modality) | st.just(ir.UNSET),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=2),
    max_leaves=4,
)
jsonlike = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
settings_of_middlewares = st.dictionaries(
    texts | st.just("$"),
    st.recursive(
        st.none() | st.booleans() | numbers | texts,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.lists(inner, max_size=3).map(tuple)
            | st.dictionaries(texts | st.sampled_from(["$", "ref"]), inner, max_size=2)
        ),
        max_leaves=4,
    ),
    max_size=2,
)
types: st.SearchStrategy[Any] = st.sampled_from(
    [None, str, type(None), list[int], int | None, dict[str, tuple[int, ...]], Literal["a", 1], Any]
)


@cache
def refs(live: str) -> st.SearchStrategy[ir.Ref]:
    bare = st.sampled_from(IMPORTABLE + UNIMPORTABLE if live == "any" else IMPORTABLE)
    bare = bare.map(ir.Ref.to)
    if live != "importable":
        bare |= st.deferred(lambda: functions(live))
    return bare | st.builds(_with_digest, bare, texts)


@cache
def functions(live: str) -> st.SearchStrategy[ir.Ref]:
    """Refs to functions that are data, such as those of `S`."""
    return st.one_of([record(kind, live) for kind in FUNCTIONS.values()]).map(ir.Ref.to)


def _with_digest(ref: ir.Ref, digest: str) -> ir.Ref:
    return ir.Ref.to(ref.value, digest)


def _settings(live: str) -> st.SearchStrategy[Any]:
    fields = st.sampled_from(["planner", "include_contents", "mode", "zz"])
    return st.dictionaries(fields, plain | refs(live), max_size=3).map(
        lambda drawn: tuple((field, drawn[field]) for field in sorted(drawn))
    )


def _callbacks(live: str) -> st.SearchStrategy[Any]:
    some = st.lists(refs(live), min_size=1, max_size=2).map(tuple)
    return st.dictionaries(st.sampled_from(ir.CALLBACKS), some, max_size=2).map(
        lambda d: tuple(d.items())
    )


def _objects(live: str) -> st.SearchStrategy[Any]:
    objects = refs(live).map(lambda ref: ref.value).filter(lambda value: not is_function(value))
    return st.lists(objects, max_size=2).map(tuple)


def _just(strategy: st.SearchStrategy[Any]) -> Callable[[str], st.SearchStrategy[Any]]:
    return lambda _: strategy


_positive = st.integers(1, 9)
_seconds = _positive | st.floats(0.5, 9)

#: Fields whose rule says more than their type, by field or by class and field.
DATA: dict[str, Callable[[str], st.SearchStrategy[Any]]] = {
    "name": _just(names),
    "location": _just(st.none() | st.builds(ir.Location, texts, st.integers(1, 9))),
    "settings": _settings,
    "callbacks": _callbacks,
    "key": _just(keys),
    "list_key": _just(keys),
    "item_key": _just(keys),
    "output_key": _just(keys),
    "result_key": _just(st.none() | keys),
    "budget_key": _just(st.none() | keys),
    "max_iterations": _just(_positive),
    "concurrency": _just(_positive),
    "seconds": _just(_seconds),
    "timeout_seconds": _just(_seconds),
    "RemoteAgentNode.timeout_seconds": _just(_seconds),
    "RouteNode.key": _just(st.none() | keys),
    "GateNode.key": _just(st.none() | keys),
    "GateNode.response_schema": _just(st.sampled_from([None, "true", '{"type": "string"}'])),
    "StateFieldRef.scope": _just(st.just("session")),
    "StateFieldRef.type": _just(types),
    "StateFieldRef.default": _just(jsonlike | st.just(ir.UNSET)),
    "ExecutionConfig.app_name": _just(st.text("abc_", min_size=1, max_size=8)),
    "ExecutionConfig.custom_metadata": _just(
        st.none() | st.dictionaries(texts, jsonlike, max_size=2)
    ),
    "ExecutionConfig.middlewares": _objects,
    "MiddlewareRef.config": _just(st.none() | settings_of_middlewares),
    "TelemetryConfig.custom_exporters": _objects,
    "Assign.constants": _just(
        st.sampled_from(["{}", '{"k":1}', '{"user:k":[null,true,-0.5,"\u00fc"],"o":{"x":{}}}'])
    ),
    "Rename.names": _just(st.lists(st.tuples(keys, keys), max_size=2).map(tuple)),
    "Derive.parts": lambda live: st.lists(st.tuples(keys, refs(live)), max_size=2).map(tuple),
    "TapNode.effects": lambda live: st.builds(
        ir.Effects, reads=st.lists(record(ir.StateFieldRef, live), max_size=2).map(tuple)
    ),
}  # fmt: skip


@cache
def data_field(cls: type, name: str, live: str) -> st.SearchStrategy[Any]:
    """Values that a data field may hold in legal IR."""
    special = DATA.get(f"{cls.__name__}.{name}") or DATA.get(name)
    return special(live) if special else _by_hint(hints_of(cls)[name], live)


@cache
def hints_of(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def _by_hint(hint: Any, live: str) -> st.SearchStrategy[Any]:  # noqa: PLR0911
    if hint is Any:
        return plain
    if hint is ir.Ref:
        return refs(live)
    if hasattr(hint, "__record__"):
        return record(hint, live)
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return st.sampled_from(args)
    if origin in (Union, UnionType):
        return st.one_of([_by_hint(arg, live) for arg in args])
    if origin is tuple and args[-1] is not Ellipsis:  # so many, each of its own type
        return st.tuples(*(_by_hint(arg, live) for arg in args))
    if origin in (tuple, Sequence):
        return st.lists(_by_hint(args[0], live), max_size=2).map(tuple)
    if origin in (frozenset, Collection):
        return st.frozensets(_by_hint(args[0], live), max_size=2)
    simple: dict[Any, st.SearchStrategy[Any]] = {
        type(None): st.none(),
        str: texts,
        int: st.integers(-3, 300),
        float: numbers,
        bool: st.booleans(),
        ir.Modality: st.sampled_from(ir.Modality),
    }
    return simple[hint]


@cache
def record(cls: type[Any], live: str = "any") -> st.SearchStrategy[Any]:
    """Legal values of one value type."""
    return _built(cls, live, {})


@st.composite
def _built(
    draw: st.DrawFn, cls: type[Any], live: str, children: dict[str, st.SearchStrategy[Any]]
) -> Any:
    """Instances of a record class: required fields always, a few of the others."""
    schema = cls.__record__
    required = [n for n, f in schema.fields.items() if f.default is MISSING and not f.child]
    optional = [n for n, f in schema.fields.items() if not f.child and n not in required]
    names = [*required, *draw(_subsets(tuple(optional)))]
    fields = {name: draw(data_field(cls, name, live)) for name in names}
    below = tuple(children)
    if cls.__name__ in OPTIONAL_CHILDREN:
        below = draw(_subsets(below))
    fields |= {name: draw(children[name]) for name in below}
    return cls(**_fitted(cls, fields))


@cache
def _subsets(names: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(names), unique=True, max_size=3) if names else st.just([])


def _fitted(cls: type[Any], fields: dict[str, Any]) -> dict[str, Any]:
    """What rules demand of several fields together."""
    if cls is ir.RouteNode:
        tests = fields.get("tests") or (ir.Match("eq", "intent", 1),)
        fields["tests"] = tuple(tests[i % len(tests)] for i in range(len(fields["branches"])))
    elif cls is ir.SequenceNode and fields.get("edge_semantics"):
        fields["edge_semantics"] = fields["edge_semantics"][:1] * len(fields["steps"])
    elif cls is ir.TransformNode:
        deletes = fields.get("semantics") == "delete_keys"
        missing = "affected_keys" if deletes else "fn"
        fields[missing] = fields.get(missing) or (("intent",) if deletes else ir.Ref.to(double))
    elif cls is ir.AppNode:
        by_name = {each.name: each for each in fields["resources"]}
        fields["resources"] = tuple(by_name.values())
    return fields


# --- graphs --------------------------------------------------------------------------------------

#: Nodes that stand in another node's own field and nowhere else.
PARTS = (ir.AppNode, ir.ResourceNode, ir.ModelSelectorNode)
#: Kinds that are whole without children.
OPTIONAL_CHILDREN = {"AgentNode", "RemoteAgentNode"}
LEAVES = tuple(
    kind
    for kind in ir.NODES
    if kind not in PARTS
    and (kind.__name__ in OPTIONAL_CHILDREN or not cast("Any", kind).__record__.children)
)
COMPOSITES = tuple(
    kind for kind in ir.NODES if kind not in PARTS and cast("Any", kind).__record__.children
)


def node(
    kind: type[ir.Node], live: str = "any", below: st.SearchStrategy[ir.Node] | None = None
) -> st.SearchStrategy[Any]:
    """Nodes of one kind over children from `below`, without children when it is None."""
    if below is None:
        return _built(kind, live, {})
    several = st.tuples(st.lists(below, min_size=1, max_size=3), st.booleans()).map(
        lambda drawn: tuple(drawn[0] + drawn[0][:1]) if drawn[1] else tuple(drawn[0])  # shared
    )
    children: dict[str, st.SearchStrategy[Any]] = {}
    for name in cast("Any", kind).__record__.children:
        hint = hints_of(kind)[name]
        if name == "selector":
            children[name] = node(ir.ModelSelectorNode, live)
        elif name == "resources":
            children[name] = st.lists(node(ir.ResourceNode, live), max_size=2).map(tuple)
        elif get_origin(hint) is tuple:
            children[name] = several
        else:
            children[name] = below if hint is ir.Node else st.none() | below
    return _built(kind, live, children)


@cache
def graphs(live: str = "any") -> st.SearchStrategy[ir.Node]:
    """Legal pipelines and applications.

    Args:
        live: ``importable`` for live objects that can be pickled and named by path only,
            ``loadable`` for those and functions that are data.
    """
    trees = st.recursive(
        st.one_of([node(kind, live) for kind in LEAVES]),
        lambda below: st.one_of([node(kind, live, below) for kind in COMPOSITES]),
        max_leaves=6,
    )
    return (trees | node(ir.AppNode, live, trees)).map(_connected)


def _connected(root: ir.Node) -> ir.Node:
    """The graph with every transfer leading somewhere."""
    names = sorted({n.name for n in ir.walk(root) if not isinstance(n, ir.TransferNode)})
    if not names:
        return _connected(ir.SequenceNode("main", (root,)))

    def aim(here: ir.Node) -> ir.Node:
        lost = isinstance(here, ir.TransferNode) and here.target not in names
        return here.replace(target=names[0]) if lost else here

    return ir.map(root, aim)


@cache
def chain(depth: int, leaf: ir.Node | None = None) -> ir.Node:
    """A graph that is `depth` nodes deep, of all kinds with one body."""
    here: ir.Node = leaf or ir.AgentNode("leaf", model="m")
    for i in range(depth):
        match i % 5:
            case 0:
                here = ir.LoopNode(f"n{i}", here, 3)
            case 1:
                here = ir.SequenceNode(f"n{i}", (here,))
            case 2:
                here = ir.RouteNode(f"n{i}", default=here)
            case 3:
                here = ir.TimeoutNode(f"n{i}", here, seconds=5)
            case _:
                here = ir.ParallelNode(f"n{i}", (here, ir.AgentNode(f"b{i}")))
    return here


@cache
def wide(width: int) -> ir.Node:
    """A sequence of `width` different agents."""
    steps = tuple(ir.AgentNode(f"a{i}", model="m", instruction=f"step {i}") for i in range(width))
    return ir.SequenceNode("wide", steps)

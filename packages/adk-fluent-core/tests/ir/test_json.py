"""IR as JSON: round trips, and what hostile documents get."""

from __future__ import annotations

import contextlib
import json
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_strategies import LAMBDAS, Tool, chain, double, graphs, laws, wide

from adk_fluent import ir
from adk_fluent.errors import IRFormatError

if TYPE_CHECKING:
    from collections.abc import Iterator

OURS = ["ir_strategies", "builtins"]


# --- round trips ---------------------------------------------------------------------------------


@laws
@given(graphs())
def test_round_trip(root: ir.Node) -> None:
    text = ir.to_json(root)
    again = ir.from_json(text, registry=ir.registry_of(root))
    assert again == root
    assert ir.content_hash(again) == ir.content_hash(root)
    assert ir.to_json(again) == text
    assert ir.from_data(ir.to_data(root), ir.registry_of(root)) == root


@laws
@given(graphs("loadable"))
def test_round_trip_by_imports(root: ir.Node) -> None:
    assert ir.from_json(ir.to_json(root).encode(), allow_imports=OURS) == root


@laws
@given(graphs())
def test_locations_are_written_when_asked_for(root: ir.Node) -> None:
    text = ir.to_json(root, locations=True)
    again = ir.from_json(text, registry=ir.registry_of(root))
    assert [n.location for n in ir.walk(again)] == [n.location for n in ir.walk(root)]


@laws
@given(graphs())
def test_it_is_strict_json(root: ir.Node) -> None:
    def refuse(text: str) -> None:
        raise AssertionError(text)

    assert json.loads(ir.to_json(root), parse_constant=refuse) == ir.to_data(root)


def test_shared_nodes_stay_shared() -> None:
    agent = ir.AgentNode("a")
    root = ir.SequenceNode("s", (agent, ir.LoopNode("l", agent), agent))
    data = ir.to_data(root)
    assert len(data["nodes"]) == 3
    again = ir.from_data(data)
    assert len({id(n) for n in ir.walk(again)}) == 3


@pytest.mark.parametrize("root", [chain(20_000), wide(4_000)], ids=["deep", "wide"])
def test_many_nodes(root: ir.Node) -> None:
    assert ir.from_json(ir.to_json(root)) == root


SCALARS: list[Any] = [
    None, True, 0, -1, 1.5, 1e300, float("inf"), float("-inf"), "", "ünï", "\udc80", b"\0\xff",
    (), ((),), (1, (2, (3,))), frozenset(), frozenset({"b", "a"}), ir.UNSET, ir.Modality.PDF,
]  # fmt: skip


@pytest.mark.parametrize("value", SCALARS)
def test_values_of_settings(value: Any) -> None:
    root = ir.AgentNode("a", settings=(("x", value),))
    again = ir.from_json(ir.to_json(root))
    assert again == root
    found = again.settings[0][1] if isinstance(again, ir.AgentNode) else None
    assert type(found) is type(value)


FREE: list[Any] = [
    [1, [2]], {"a": {"b": [1]}, 2: ()}, {1, 2}, frozenset({1}), [], {}, set(), (1, [2], {3}),
    Tool, Tool("x"), double, [Tool("x"), LAMBDAS[0]],
]  # fmt: skip


@pytest.mark.parametrize("value", FREE)
def test_values_of_defaults_are_what_users_like(value: Any) -> None:
    root = ir.AgentNode("a", reads_keys=(ir.StateFieldRef("k", default=value),))
    again = ir.from_json(ir.to_json(root), ir.registry_of(root))
    assert again == root
    assert isinstance(again, ir.AgentNode)
    assert type(again.reads_keys[0].default) is type(value)


TYPES: list[Any] = [
    None, type(None), int, str, object, Any, Tool, list[int], dict[str, Tool], tuple[int, ...],
    int | None, Tool | str, list[int | None] | None, Literal["a", 1, b"x"], type[int],
]  # fmt: skip


@pytest.mark.parametrize("form", TYPES, ids=str)
def test_types_of_state_keys(form: Any) -> None:
    root = ir.AgentNode("a", reads_keys=(ir.StateFieldRef("k", form),))
    assert ir.from_json(ir.to_json(root), allow_imports=["ir_strategies"]) == root


def test_run_configuration() -> None:
    config = ir.ExecutionConfig(
        custom_metadata={"a": [1, {"b": None}]},
        middlewares=(Tool("x"), Tool("x"), double),
        telemetry=ir.TelemetryConfig(custom_exporters=(Tool("y"),)),
        default_model=ir.Ref.to(Tool("m")),
    )
    root = ir.AppNode("app", ir.AgentNode("a"), execution=config)
    assert list(ir.registry_of(root)) == ["x", "x#2", "ir_strategies:double", "y", "m"]
    assert ir.from_json(ir.to_json(root), ir.registry_of(root)) == root


def test_not_a_number() -> None:
    again: Any = ir.from_json(ir.to_json(ir.AgentNode("a", settings=(("x", float("nan")),))))
    assert str(again.settings[0][1]) == "nan"


# --- live objects --------------------------------------------------------------------------------


def agent(*values: Any) -> ir.AgentNode:
    return ir.AgentNode("a", tools=tuple(ir.ToolSpec(ir.Ref.to(v)) for v in values))


def tools(root: ir.Node) -> list[Any]:
    assert isinstance(root, ir.AgentNode)
    return [spec.tool.value for spec in root.tools]


def test_a_ref_is_a_name_a_path_and_a_digest() -> None:
    rows = ir.to_data(agent(double))["nodes"][0]["data"]["tools"]
    assert rows == [{"$": "ToolSpec", "tool": {"ref": "double", "path": "ir_strategies:double"}}]
    node = ir.FunctionNode("f", ir.Ref(Tool("x"), "y", "d"))
    assert ir.to_data(node)["nodes"][0]["data"]["fn"] == {"ref": "y", "digest": "d"}


def test_the_registry_has_them_by_path_or_by_name() -> None:
    text = ir.to_json(agent(double, Tool("search")))
    search = Tool("another")
    for key in ("ir_strategies:double", "double"):
        assert tools(ir.from_json(text, {key: len, "search": search})) == [len, search]


def test_objects_of_one_name_have_keys_of_their_own() -> None:
    root = agent(*LAMBDAS, LAMBDAS[0])
    assert ir.registry_of(root) == {"<lambda>": LAMBDAS[0], "<lambda>#2": LAMBDAS[1]}
    assert tools(ir.from_json(ir.to_json(root), ir.registry_of(root))) == [*LAMBDAS, LAMBDAS[0]]
    with pytest.raises(IRFormatError, match="'<lambda>#2' cannot be imported"):
        ir.from_json(ir.to_json(root), {"<lambda>": LAMBDAS[0]})


def test_nothing_is_imported_by_default() -> None:
    with pytest.raises(IRFormatError) as caught:
        ir.from_json(ir.to_json(agent(double)))
    message = str(caught.value)
    assert "nodes[0].data.tools[0].tool: 'ir_strategies:double' may not be imported" in message
    assert "registry={'ir_strategies:double': <the object>}" in message
    assert "allow_imports=['ir_strategies']" in message


def test_what_has_no_path_needs_the_registry() -> None:
    with pytest.raises(IRFormatError) as caught:
        ir.from_json(ir.to_json(agent(Tool("search"))), allow_imports=OURS)
    assert "'search' cannot be imported" in str(caught.value)
    assert "registry={'search': <the object>}" in str(caught.value)


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A package `shop` with a module, a neighbour `shop_evil`; tells which were imported."""
    imported: list[str] = []

    class Finder:
        def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
            from importlib.machinery import ModuleSpec

            if name.partition(".")[0] not in {"shop", "shop_evil"}:
                return None
            loader: Any = self
            return ModuleSpec(name, loader, is_package="." not in name)

        def create_module(self, spec: Any) -> None:
            return None

        def exec_module(self, module: ModuleType) -> None:
            imported.append(module.__name__)
            source = (
                "import os, shop_secret\nfrom os import system\nlimit = 3\n"
                "def step(state): return {}\n"
                "class Steps:\n  def one(self): return {}\n"
            )
            exec(source, module.__dict__)

    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    monkeypatch.setitem(sys.modules, "shop_secret", ModuleType("shop_secret"))
    yield imported
    for name in [n for n in sys.modules if n.partition(".")[0] in {"shop", "shop_evil"}]:
        del sys.modules[name]


def document(path: str) -> str:
    row = {"kind": "FunctionNode", "data": {"name": "f", "fn": {"ref": "f", "path": path}}}
    return json.dumps({"format": "adk-fluent-ir", "version": 1, "nodes": [row]})


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("shop:step", ["shop"]),
        ("shop.steps:step", ["shop"]),
        ("shop.steps:step", ["other", "shop.steps"]),
        ("shop.steps:Steps.one", ("shop",)),
        ("shop.steps:Steps", {"shop"}),
    ],
)
def test_a_prefix_allows_what_lies_below_it(shop: list[str], path: str, allowed: Any) -> None:
    root = ir.from_json(document(path), allow_imports=allowed)
    assert isinstance(root, ir.FunctionNode)
    assert ir.import_path(root.fn.value) == path
    assert shop


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("shop_evil:step", ["shop"]),
        ("shop:step", ["shop.steps"]),
        ("shop:step", ["sho"]),
        ("shop:step", [""]),
        ("shop:step", ["shop."]),
        ("shop:step", []),
        (".shop:step", ["shop", ""]),
        ("shop", ["shop"]),
        ("shop:", ["shop"]),
        (":step", ["shop"]),
        ("shop:step:step", ["shop"]),
        ("shop/steps:step", ["shop"]),
        ("shop .steps:step", ["shop"]),
    ],
)
def test_anything_else_is_refused_before_an_import(
    shop: list[str], path: str, allowed: list[str]
) -> None:
    with pytest.raises(IRFormatError):
        ir.from_json(document(path), allow_imports=allowed)
    assert not shop


@pytest.mark.parametrize(
    "path",
    [
        "shop:system",
        "shop:os.system",
        "shop:os",
        "shop:shop_secret",
        "shop:limit",
        "shop:step.__globals__",
        "shop:step.__code__",
        "shop:Steps.one.__globals__",
        "shop:Steps.__class__",
        "shop:__builtins__",
        "shop:nothing",
        "shop.steps.deeper:step",
        "shop.no:step.no",
    ],
)
def test_an_allowed_module_gives_only_what_it_defines(shop: list[str], path: str) -> None:
    with pytest.raises(IRFormatError):
        ir.from_json(document(path), allow_imports=["shop"])


def test_a_module_that_is_not_there() -> None:
    with pytest.raises(IRFormatError, match="cannot be imported") as caught:
        ir.from_json(document("no_such_shop:step"), allow_imports=["no_such_shop"])
    assert isinstance(caught.value.__cause__, ImportError)


def test_one_text_is_no_list_of_prefixes() -> None:
    with pytest.raises(TypeError, match=r"takes a list, such as \['shop'\]"):
        ir.from_json(document("shop:step"), allow_imports="shop")


# --- kinds of other wheels -----------------------------------------------------------------------


@ir.record
class Budget:
    """A limit.

    Attributes:
        usd: In USD.
    """

    usd: float


@ir.node
class GuardNode(ir.Node):
    """A node of another wheel.

    Attributes:
        body: What is guarded.
        budget: How much it may cost.
        kids: Others; there need not be any.
    """

    body: ir.Node = ir.child()
    budget: Budget | None = None
    kids: tuple[ir.Node, ...] = ir.child(default=())


def guarded() -> GuardNode:
    return GuardNode("g", ir.AgentNode("a"), Budget(1.5))


def test_nodes_and_values_of_other_wheels_need_permission_too() -> None:
    text = ir.to_json(guarded())
    module = GuardNode.__module__
    registry = {f"{module}:GuardNode": GuardNode, f"{module}:Budget": Budget}
    assert ir.from_json(text, registry) == guarded()
    with pytest.raises(IRFormatError, match="may not be imported"):
        ir.from_json(text)
    with pytest.raises(IRFormatError, match="is no kind of node"):
        ir.from_json(text, {f"{module}:GuardNode": Budget})
    with pytest.raises(IRFormatError, match="is no kind of node or value"):
        ir.from_json(text, {f"{module}:GuardNode": int})
    with pytest.raises(IRFormatError, match="usd holds str, not float"):
        ir.from_json(text.replace("1.5", '"1.5"'), registry)


# --- what cannot be written ----------------------------------------------------------------------


@pytest.mark.parametrize("value", [object(), double, Tool("x"), 3 + 4j, range(3)])
def test_live_objects_outside_a_ref_are_refused(value: Any) -> None:
    with pytest.raises(IRFormatError, match="AgentNode 'a': settings holds a"):
        ir.to_json(ir.AgentNode("a", settings=(("x", value),)))


def test_data_that_is_nested_too_deep_is_refused() -> None:
    deep: Any = ()
    for _ in range(200):
        deep = (deep,)
    with pytest.raises(IRFormatError, match="nested deeper than 50 levels"):
        ir.to_json(ir.AgentNode("a", settings=(("x", deep),)))


def test_the_depth_of_one_value_does_not_count_for_the_next() -> None:
    def nested(levels: int) -> Any:
        value: Any = ()
        for _ in range(levels - 1):
            value = (value,)
        return value

    fits = ir.AgentNode("a", settings=tuple((f"x{i}", nested(48)) for i in range(4)))
    assert ir.from_json(ir.to_json(fits)) == fits
    for_long = ir.AgentNode("a", settings=(*fits.settings, ("y", nested(49))))
    with pytest.raises(IRFormatError, match="nested deeper than 50 levels"):
        ir.to_json(for_long)


# --- hostile documents ---------------------------------------------------------------------------


def refused(nodes: Any, **top: Any) -> str:
    with pytest.raises(IRFormatError) as caught:
        ir.from_data({"format": "adk-fluent-ir", "version": 1, "nodes": nodes, **top})
    return str(caught.value)


def one(kind: str = "AgentNode", **data: Any) -> list[dict[str, Any]]:
    return [{"kind": kind, "data": {"name": "a", **data}}]


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "nonsense", "[" * 100_000, '{"a":' * 100_000, "NaN", '{"a": Infinity}',
        b"\xff\xfe", "1" * 5000,
    ],
)  # fmt: skip
def test_what_is_no_json(text: str | bytes) -> None:
    with pytest.raises(IRFormatError, match="this is not JSON") as caught:
        ir.from_json(text)
    assert caught.value.help == "write it with to_json(node)"


@pytest.mark.parametrize("text", ["null", "3", '"x"', "[]", "{}", '{"format": "adk-fluent-ir"}'])
def test_what_is_another_document(text: str) -> None:
    with pytest.raises(IRFormatError, match="the document"):
        ir.from_json(text)


def test_versions() -> None:
    assert "its version is not 1" in refused(one(), version=2)
    assert "its version is not 1" in refused(one(), version=True)
    assert "its version is not 1" in refused(one(), version="1")
    assert "there is no field 'extra'" in refused(one(), extra=1)


WRONG: list[tuple[Any, str]] = [
    ({}, "nodes: it is not a JSON array"),
    (None, "nodes: it is not a JSON array"),
    ([], "nodes: it is empty"),
    ([3], "nodes[0]: it is not a JSON object"),
    ([{}], "nodes[0]: its kind is not text"),
    ([{"kind": 3}], "its kind is not text"),
    ([{"kind": ["AgentNode"]}], "its kind is not text"),
    (one("AgentNod"), "did you mean 'AgentNode'?"),
    (one("Node"), "there is no kind 'Node'"),
    (one("StateFieldRef"), "there is no kind 'StateFieldRef'"),
    (one("os:system"), "'os:system' may not be imported"),
    ([{"kind": "AgentNode"}], "nodes[0].data: it is not a JSON object"),
    ([{"kind": "AgentNode", "data": []}], "nodes[0].data: it is not a JSON object"),
    ([{"kind": "AgentNode", "data": {}}], "AgentNode needs 'name'"),
    ([{"kind": "LoopNode", "data": {"name": "l"}}], "LoopNode needs 'body'"),
    (one(modle="x"), "there is no field 'modle' here"),
    (one(delegates=[]), "there is no field 'delegates' here"),
    (one(model=3), "model holds int, not str | Ref | None"),
    (one(history="all"), "history holds str"),
    (one(tools=[3]), "tools holds tuple"),
    (one(tools="x"), "tools holds str"),
    (one(tools={"x": 1}), "its kind is not text"),
    (one(tools=[{"$": "ToolSpec"}]), "ToolSpec needs 'tool'"),
    (one(tools=[{"$": "ToolSpec", "tool": 3}]), "tool holds int"),
    (one(tools=[{"$": "ToolSpecs"}]), "did you mean 'ToolSpec'?"),
    (one(tools=[{"$": "Ref", "value": 3}]), "there is no kind 'Ref'"),
    (one(tools=[{"$": "AgentNode", "name": "x"}]), "there is no kind 'AgentNode'"),
    (one(mock={"ref": 3}), "'ref' is not text"),
    (one(mock={"ref": "x", "value": 3}), "there is no field 'value' here"),
    (one(mock={"ref": "x", "path": 3}), "'path' is not text"),
    (one(reads_keys=[{"$": "StateFieldRef", "key": "x", "scope": "user"}]), "refuses"),
    (one(reads_keys=[{"$": "StateFieldRef", "key": "x", "scope": "no"}]), "scope holds str"),
    (one(reads_keys=[{"$": "StateFieldRef", "key": 3}]), "key holds int"),
    (one(name=""), "its name is empty"),
    (one(name=None), "name holds NoneType"),
    (one(delegates=0), "there is no field 'delegates' here"),
    ([{"kind": "AgentNode", "data": {"name": "a"}, "childs": {}}], "no field 'childs'"),
    ([{"kind": "AgentNode", "data": {"name": "a"}, "children": []}], "not a JSON object"),
    (one("RouteNode"), "it has neither branches nor a default"),
    (one(settings=[["b", 1], ["a", 1]]), "sorted by field"),
    (one(settings=[["b", {"$": "list", "items": []}]]), "which could change"),
]


@pytest.mark.parametrize(("nodes", "message"), WRONG)
def test_what_is_wrong_is_named(nodes: Any, message: str) -> None:
    assert message in refused(nodes)


@pytest.mark.parametrize("link", [1, -1, 99, True, 0.0, "0", [0], {}, [[0]], [True]])
def test_links_lead_to_nodes_above(link: Any) -> None:
    loop = {"kind": "LoopNode", "data": {"name": "l"}, "children": {"body": link}}
    message = refused([*one(), loop])
    assert "nodes[1]" in message


def test_a_bool_is_no_number() -> None:
    row = {"kind": "TimeoutNode", "data": {"name": "t", "seconds": True}, "children": {"body": 0}}
    assert "seconds holds bool, not float" in refused([*one(), row])


def test_a_child_field_that_needs_many_gets_no_single_one() -> None:
    row = {"kind": "SequenceNode", "data": {"name": "s"}, "children": {"steps": 0}}
    assert "steps holds AgentNode, not tuple[Node, ...]" in refused([*one(), row])


BAD_VALUES: list[Any] = [
    {},
    {"$": None},
    {"$": "float", "text": "1.5"},
    {"$": "float", "text": 3},
    {"$": "float"},
    {"$": "bytes", "hex": "zz"},
    {"$": "bytes", "hex": "00", "more": 1},
    {"$": "list", "items": 3},
    {"$": "list"},
    {"$": "set", "items": [{"$": "list", "items": []}]},
    {"$": "frozenset", "items": [{"$": "map", "rows": []}]},
    {"$": "map", "rows": [[1]]},
    {"$": "map", "rows": [3]},
    {"$": "map", "rows": [[{"$": "list", "items": []}, 1]]},
    {"$": "unset", "x": 1},
    {"$": "enum", "of": "Modality", "name": "SMELL"},
    {"$": "enum", "of": "Modality", "name": "__class__"},
    {"$": "enum", "of": "Color", "name": "RED"},
    {"$": "enum", "of": "os:environ", "name": "PATH"},
    {"$": "type", "path": "os:system"},
    {"$": "type", "path": "builtins:eval"},
    {"$": "generic", "of": 3, "args": []},
    {"$": "generic", "of": {"$": "type", "path": "builtins:int"}, "args": []},
    {"$": "generic", "of": {"$": "type", "path": "builtins:list"}},
    {"$": "union", "args": []},
    {"$": "union", "args": ["__import__('os')"]},
    {"$": "union", "args": 3},
    {"$": "literal", "args": 3},
    {"$": "object", "name": "x"},
    {"$": "object", "path": "os:system"},
    {"a": 1},
]  # fmt: skip


@pytest.mark.parametrize("value", BAD_VALUES, ids=str)
def test_values_that_are_wrong(value: Any) -> None:
    where = {"$": "StateFieldRef", "key": "k", "default": value, "type": value}
    assert "nodes[0].data.reads_keys[0]" in refused(one(reads_keys=[where]))


def test_data_that_is_nested_too_deep() -> None:
    deep: Any = []
    for _ in range(300):
        deep = [deep]
    assert "nested deeper than 50 levels" in refused(one(settings=[["a", deep]]))


def test_a_small_document_for_a_huge_pipeline() -> None:
    nodes = one()
    for i in range(60):
        row = {"kind": "SequenceNode", "data": {"name": "s"}, "children": {"steps": [i, i]}}
        nodes.append(row)
    assert "it stands for more than 1000000 nodes" in refused(nodes)


def test_messages_stay_short() -> None:
    assert len(refused(one("x" * 100_000))) < 500
    data: dict[str, Any] = {"x" * 100_000: 1}
    assert len(refused(one("AgentNode", **data))) < 500
    assert len(refused(one(), version=10**5000)) < 500


# --- fuzzing -------------------------------------------------------------------------------------

WORDS = """
kind data children nodes name $ ref path key digest items rows args of text hex list map set
frozenset union generic literal type object enum unset float bytes AgentNode LoopNode body
steps StateFieldRef Match ToolSpec builtins:int os:system Modality TEXT reads_keys
record Assign constants Derive parts Apply fn
"""
words = st.sampled_from(WORDS.split())
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=12,
)


def loads_or_refuses(data: Any) -> None:
    try:
        root = ir.from_data(data, {"double": double})
    except IRFormatError:
        return
    assert ir.from_json(ir.to_json(root), ir.registry_of(root)) == root or "nan" in repr(root)


@laws
@given(anything)
def test_any_json(data: Any) -> None:
    loads_or_refuses(data)
    loads_or_refuses({"format": "adk-fluent-ir", "version": 1, "nodes": data})
    loads_or_refuses({"format": "adk-fluent-ir", "version": 1, "nodes": [data]})
    rows = one(
        settings=[["a", data]], reads_keys=[{"$": "StateFieldRef", "key": "k", "type": data}]
    )
    loads_or_refuses({"format": "adk-fluent-ir", "version": 1, "nodes": rows})


@laws
@given(graphs("loadable"), st.data())
def test_a_valid_document_with_a_change(root: ir.Node, data: st.DataObject) -> None:
    document: Any = ir.to_data(root)
    for _ in range(data.draw(st.integers(1, 2))):
        places = list(_places(document))
        holder, key = data.draw(st.sampled_from(places))
        match data.draw(st.sampled_from(["put", "swap", "drop"])):
            case "put":
                holder[key] = data.draw(anything)
            case "drop":
                del holder[key]
            case _:
                other, at = data.draw(st.sampled_from(places))
                holder[key], other[at] = other[at], holder[key]
        if not list(_places(document)):
            break
    if not _is_cyclic(document):
        loads_or_refuses(document)


@laws
@given(graphs("loadable"), st.data())
def test_a_valid_text_with_a_change(root: ir.Node, data: st.DataObject) -> None:
    text = ir.to_json(root)
    at = data.draw(st.integers(0, len(text) - 1))
    end = at + data.draw(st.integers(0, 3))
    changed = text[:at] + data.draw(st.text(max_size=3) | words) + text[end:]
    with contextlib.suppress(IRFormatError):
        assert isinstance(ir.from_json(changed, allow_imports=["ir_strategies"]), ir.Node)


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    for key, value in _rows(data):
        yield data, key
        yield from _places(value)


def _rows(data: Any) -> list[tuple[Any, Any]]:
    if type(data) is dict:
        return list(cast("dict[Any, Any]", data).items())
    return list(enumerate(cast("list[Any]", data))) if type(data) is list else []


def _is_cyclic(data: Any, above: tuple[int, ...] = ()) -> bool:
    inside = (*above, id(data))
    return id(data) in above or any(_is_cyclic(each, inside) for _, each in _rows(data))

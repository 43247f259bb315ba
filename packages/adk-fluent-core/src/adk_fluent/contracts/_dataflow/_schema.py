"""Whether a pipeline keeps to the state schemas that stand around its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent.contracts._dataflow._types import Fit, fit, name_of
from adk_fluent.contracts._dataflow._values import Need
from adk_fluent.contracts._dataflow._words import reads
from adk_fluent.contracts._diagnostic import Severity
from adk_fluent.contracts._issues import SchemaViolation
from adk_fluent.errors import nearest_name
from adk_fluent.ir import GateNode, MapOverNode, StateFieldRef, is_reserved_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adk_fluent.contracts._dataflow._analysis import Analysis
    from adk_fluent.contracts._diagnostic import Diagnostic
    from adk_fluent.contracts._graph import Graph
    from adk_fluent.ir import Node
    from adk_fluent.protocol import FieldRef


class Rules:
    """A schema as the checks need it.

    Attributes:
        name: Its name.
        fields: What it declares, by key.
        closed: Whether there may be no other keys.
    """

    __slots__ = ("closed", "fields", "name")

    def __init__(self, schema: Any, *, closed: bool) -> None:
        self.name: str = getattr(schema, "__name__", type(schema).__name__)
        self.fields: Mapping[str, FieldRef] = schema.__state_fields__
        self.closed = closed


def violations(graph: Graph, analysis: Analysis) -> Iterator[Diagnostic]:
    """What a pipeline reads and writes that its schemas do not allow."""
    known = _schemas(graph)
    if not known:
        return
    told = set[tuple[int, str, bool]]()
    for site in analysis.sites:
        place = (id(site.node), site.key, False)
        if site.need is not Need.PROBE and place not in told and id(site.node) in known:
            told.add(place)
            yield from _use(graph, known[id(site.node)], site.node, site.key, site.type, reads(site))
    for each in analysis.defs:
        place = (id(each.node), each.key, True)
        if not each.removes and place not in told and id(each.node) in known:
            told.add(place)
            said = f"`{each.node.name}` writes `{each.key}`"
            yield from _use(graph, known[id(each.node)], each.node, each.key, each.type, said, True)


def _schemas(graph: Graph) -> dict[int, tuple[Rules, ...]]:
    """The schemas around each node that has any."""
    whole = graph.world.schema
    if whole is None and not any(each.contract and each.contract.schema for each in graph.nodes):
        return {}
    known: dict[int, tuple[Rules, ...]] = {}
    for node in graph.downwards():
        around = [rules for above in graph.parents(node) for rules in known.get(id(above), ())]
        if node is graph.root and whole is not None:
            around.append(Rules(whole, closed=True))
        contract = node.contract
        if contract is not None and contract.schema is not None:
            schema = contract.schema.value
            if hasattr(schema, "__state_fields__"):  # a file can name anything
                around.append(Rules(schema, closed=contract.extra == "forbid"))
        if around:
            known[id(node)] = tuple(dict.fromkeys(around))
    return known


def _use(
    graph: Graph,
    schemas: tuple[Rules, ...],
    node: Node,
    key: str,
    kind: Any,
    said: str,
    written: bool = False,
) -> Iterator[Diagnostic]:
    if is_reserved_key(StateFieldRef(key).name) or _is_its_own(node, key):
        return
    declaring = [each for each in schemas if key in each.fields]
    if not declaring and all(each.closed for each in schemas):
        yield SchemaViolation.at(
            graph,
            node,
            f"{said}, which {schemas[-1].name} does not declare",
            help=_advice(schemas, key),
        )
    for each in declaring:
        declared = each.fields[key].type
        how_well = fit(kind, declared) if written else fit(declared, kind)
        if how_well is not Fit.YES:
            verb = "writes" if written else "reads"
            may = "" if how_well is Fit.NO else ", which need not fit"
            yield SchemaViolation.at(
                graph,
                node,
                f"`{node.name}` {verb} `{key}` as {name_of(kind)}, but {each.name} declares "
                f"{name_of(declared)}{may}",
                severity=Severity.ERROR if how_well is Fit.NO else Severity.WARNING,
                help=f"{verb.removesuffix('s')} it as {name_of(declared)}, or change {each.name}",
            )


def _is_its_own(node: Node, key: str) -> bool:
    """Whether a key is a matter of the node alone: an item of a map, an unnamed gate's answer."""
    if isinstance(node, MapOverNode):
        return key == node.item_key
    return isinstance(node, GateNode) and node.key is None


def _advice(schemas: tuple[Rules, ...], key: str) -> str:
    known = {each: rules for rules in schemas for each in rules.fields}
    name = StateFieldRef(key).name
    same = [each for each in known if StateFieldRef(each).name == name]
    near = same[0] if same else nearest_name(key, known)
    if near is not None:
        return f"did you mean `{near}`?"
    return f"declare it in {schemas[-1].name}, or allow other keys: .state(..., extra='allow')"

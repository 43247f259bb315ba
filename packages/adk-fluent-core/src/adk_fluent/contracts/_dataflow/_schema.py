"""Whether a pipeline keeps to the state schemas that stand around its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from adk_fluent.contracts._dataflow._places import is_survived
from adk_fluent.contracts._dataflow._values import Need
from adk_fluent.contracts._dataflow._words import CALLS, reads
from adk_fluent.contracts._reports._diagnostic import Related, Severity
from adk_fluent.contracts._reports._issues import SchemaViolation
from adk_fluent.contracts._types import Fit, fit, name_of
from adk_fluent.errors import nearest_name
from adk_fluent.ir import GateNode, MapOverNode, StateFieldRef, is_reserved_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adk_fluent.contracts._dataflow._analysis import Analysis
    from adk_fluent.contracts._dataflow._kinds import Kind, Kinds
    from adk_fluent.contracts._dataflow._values import Def
    from adk_fluent.contracts._graph import Graph
    from adk_fluent.contracts._reports._diagnostic import Diagnostic
    from adk_fluent.ir import Node
    from adk_fluent.protocol import FieldRef


class Rules:
    """A schema as the checks need it.

    Attributes:
        name: Its name.
        fields: What it declares, by key.
        closed: Whether there may be no other keys.
        node: What it is declared for; None: for whoever checks.
        stops: Whether a run stops at what breaks it.
    """

    __slots__ = ("closed", "fields", "name", "node", "stops")

    def __init__(self, schema: Any, *, closed: bool, node: Node | None = None) -> None:
        self.name: str = getattr(schema, "__name__", type(schema).__name__)
        self.stops = node is None or node.contract is None or node.contract.enforce == "error"
        self.fields: Mapping[str, FieldRef] = schema.__state_fields__
        self.closed = closed
        self.node = node

    def declared(self) -> list[Related]:
        """Where it is declared what it is for."""
        if self.node is None:
            return []
        return [Related.at(self.node, f"`{self.node.name}` keeps to {self.name}")]


#: Who does something to which key.
Place = tuple[int, str]


def violations(
    graph: Graph, analysis: Analysis, kinds: Kinds, places: set[Place]
) -> Iterator[Diagnostic]:
    """What a pipeline reads and writes that its schemas do not allow.

    Args:
        graph: The pipeline.
        analysis: What it does to state.
        kinds: What the values are that it writes.
        places: Gets the places of the findings.
    """
    for node, how, key, kind, declared in analysis.refused:
        places.add((id(node), key))
        yield _refused(graph, node, how, key, (kind, declared))
    known = _schemas(graph)
    if not known:
        return
    told = set[tuple[int, str, bool]]()
    for use in _uses(analysis, kinds):
        place = (id(use.node), use.key, use.written)
        if place not in told and id(use.node) in known and not _is_its_own(use):
            told.add(place)
            for found in _broken(graph, known[id(use.node)], use):
                places.add((id(use.node), use.key))
                yield found


def held_to_schemas(graph: Graph, analysis: Analysis) -> Iterator[tuple[Def, Any]]:
    """Every write that a run compares with a schema, with the type that is declared there."""
    known = _schemas(graph)
    for made in analysis.defs if known else ():
        if not made.removes:
            for each in known.get(id(made.node), ()):
                if made.key in each.fields:
                    yield made, each.fields[made.key].type


def _refused(
    graph: Graph, node: Node, how: str, key: str, kinds: tuple[Any, Any]
) -> SchemaViolation:
    """A write through a bound schema, which looks at it there and then."""
    kind, declared = kinds
    by = f"`{node.name}`"
    if how.startswith(CALLS):
        by = f"`{how.removeprefix(CALLS)}`, which {by} calls,"
    if fit(kind, declared) is Fit.NO:
        what = f"writes `{key}` as {name_of(kind)}, but its field is {name_of(declared)}"
    else:
        what = f"writes a value to `{key}` that its field refuses"
    help = f"write what the field takes, or change the field of `{key}`"
    return SchemaViolation.at(
        graph, node, f"{by} {what}", severity=_severity(graph, node), help=help
    )


class Use(NamedTuple):
    """A read or a write of a key.

    Attributes:
        node: Who does it.
        key: The key.
        said: The same in words.
        type: What a read takes it as, as far as it is known.
        gives: What a write may give; None for a read.
    """

    node: Node
    key: str
    said: str
    type: Any = None
    gives: tuple[Kind, ...] | None = None

    @property
    def written(self) -> bool:
        """Whether it is a write."""
        return self.gives is not None

    def against(self, declared: Any) -> tuple[Fit, str]:
        """How well it fits what is declared, and as what it is read or written."""
        if self.gives is None:
            return fit(declared, self.type), name_of(self.type)
        all_of_it = [(each.fit(declared), each.described(declared)) for each in self.gives]
        return min(all_of_it, default=(Fit.YES, ""), key=lambda found: found[0])


def _uses(analysis: Analysis, kinds: Kinds) -> Iterator[Use]:
    for site in analysis.sites:
        if site.need is not Need.PROBE:
            yield Use(site.node, site.key, reads(site), site.type)
    for each in analysis.defs:
        if not each.removes:
            said = f"`{each.node.name}` writes `{each.key}`"
            yield Use(each.node, each.key, said, gives=tuple(kinds.written(each)))


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
                around.append(Rules(schema, closed=contract.extra == "forbid", node=node))
        if around:
            known[id(node)] = tuple(dict.fromkeys(around))
    return known


def _broken(graph: Graph, schemas: tuple[Rules, ...], use: Use) -> Iterator[Diagnostic]:
    declaring = [each for each in schemas if use.key in each.fields]
    if not declaring and all(each.closed for each in schemas):
        yield SchemaViolation.at(
            graph,
            use.node,
            f"{use.said}, which {schemas[-1].name} does not declare",
            severity=_of_use(graph, use, stops=any(each.stops for each in schemas)),
            related=schemas[-1].declared(),
            help=_advice(schemas, use.key),
        )
    for each in declaring:
        declared = each.fields[use.key].type
        how_well, as_what = use.against(declared)
        if how_well is not Fit.YES:
            verb = "write" if use.written else "read"
            may = "" if how_well is Fit.NO else ", which need not fit"
            yield SchemaViolation.at(
                graph,
                use.node,
                f"{use.said} as {as_what}, but {each.name} declares {name_of(declared)}{may}",
                severity=_of_use(graph, use, stops=each.stops and how_well is Fit.NO),
                related=each.declared(),
                help=f"{verb} it as {name_of(declared)}, or change {each.name}",
            )


def _of_use(graph: Graph, use: Use, *, stops: bool) -> Severity:
    """How bad it is; runs look at writes only."""
    stops &= use.written or not graph.world.runs
    return _severity(graph, use.node) if stops else Severity.WARNING


def _severity(graph: Graph, node: Node) -> Severity:
    survived = graph.world.runs and is_survived(graph, node)
    return Severity.WARNING if survived else Severity.ERROR


def _is_its_own(use: Use) -> bool:
    """Whether a key is a matter of the node alone: an item of a map, an unnamed gate's answer."""
    node = use.node
    if isinstance(node, MapOverNode) and use.key == node.item_key:
        return True
    if isinstance(node, GateNode) and node.key is None and use.written:
        return True
    return is_reserved_key(StateFieldRef(use.key).name)


def _advice(schemas: tuple[Rules, ...], key: str) -> str:
    known = {each: rules for rules in schemas for each in rules.fields}
    name = StateFieldRef(key).name
    same = [each for each in known if StateFieldRef(each).name == name]
    near = same[0] if same else nearest_name(key, known)
    if near is not None:
        return f"did you mean `{near}`?"
    name = schemas[-1].name
    return f'declare it in {name}, or allow other keys: .state({name}, extra="allow")'

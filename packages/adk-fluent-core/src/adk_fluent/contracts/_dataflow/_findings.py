"""What is wrong with the way a pipeline uses state, as findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.contracts._dataflow._branches import routed
from adk_fluent.contracts._dataflow._doubts import doubts
from adk_fluent.contracts._dataflow._kinds import Kinds
from adk_fluent.contracts._dataflow._misses import LASTING, Misses
from adk_fluent.contracts._dataflow._places import is_survived
from adk_fluent.contracts._dataflow._schema import Place, violations
from adk_fluent.contracts._dataflow._values import both, every
from adk_fluent.contracts._dataflow._verdicts import mark, some
from adk_fluent.contracts._dataflow._words import AT_ONCE, reads, wanted, writers
from adk_fluent.contracts._opaque import opaque_nodes
from adk_fluent.contracts._reports._diagnostic import Severity
from adk_fluent.contracts._reports._issues import DeadState, TypeMismatch, WriteRace
from adk_fluent.contracts._types import Fit, name_of
from adk_fluent.ir import AgentNode, GateNode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.contracts._dataflow._analysis import Analysis
    from adk_fluent.contracts._dataflow._branches import Routed
    from adk_fluent.contracts._dataflow._kinds import Kind
    from adk_fluent.contracts._dataflow._values import Def, Site, Writers
    from adk_fluent.contracts._graph import Graph
    from adk_fluent.contracts._opaque import Opaque
    from adk_fluent.contracts._reports._diagnostic import Diagnostic
    from adk_fluent.ir import Node


class Findings:
    """The findings of one pipeline.

    Args:
        graph: The pipeline, with what is known of state around it.
        analysis: What it does to state.
    """

    def __init__(self, graph: Graph, analysis: Analysis) -> None:
        self._graph = graph
        self._analysis = analysis
        self._misses = Misses(graph, analysis, graph.world)
        self._kinds = Kinds(graph.world.inputs)
        self._against_schemas: set[Place] = set()

    # --- reads -----------------------------------------------------------------------------------

    def of_reads(self) -> Iterator[Diagnostic]:
        """Reads that may find no value, or one that is still being written."""
        return self._misses.findings()

    def of_types(self) -> Iterator[Diagnostic]:
        """Reads that may find a value of another type than they take.

        Comes after `of_schemas`, which explains some of them.
        """
        for site in self._analysis.sites:
            if site.type is None:
                continue
            for kind in self._kinds.found(site):
                how_well = kind.fit(site.type)
                by = kind.by
                explained = by is not None and (id(by.node), site.key) in self._against_schemas
                if how_well is not Fit.YES and not explained:
                    yield self._mismatch(site, kind, how_well)

    def flows(self) -> Iterator[tuple[Def, Site]]:
        """Writes, each with a read that may find it."""
        for site in self._analysis.sites:
            yield from ((each, site) for each in every(both(site.found, site.later)))

    def of_doubts(self) -> Iterator[Opaque]:
        """What is taken for true of values and cannot be seen."""
        return doubts(self._graph, self._analysis, self._kinds)

    def routed(self) -> dict[tuple[int, str], Routed]:
        """What routes may find under the keys that they test; see `routed`."""
        return routed(self._analysis.sites, self._kinds)

    def _mismatch(self, site: Site, kind: Kind, how_well: Fit) -> Diagnostic:
        by = kind.by
        who = "the input is" if by is None else f"`{by.node.name}` writes it as"
        may = "" if how_well is Fit.NO else ", which need not fit"
        # the text of an answer is no list and no number to who needs one here and now
        known = by is None or not by.implied or site.how in AT_ONCE
        certain = how_well is Fit.NO and known and not site.tainted
        certain &= not (self._graph.world.runs and is_survived(self._graph, site.node))
        return TypeMismatch.at(
            self._graph,
            site.node,
            f"{reads(site)} as {wanted(site)}, but {who} {kind.described(site.type)}{may}",
            severity=Severity.ERROR if certain else Severity.WARNING,
            related=[] if by is None else writers([by]),
            help=_one_type(site, by),
        )

    def of_schemas(self) -> Iterator[Diagnostic]:
        """Reads and writes that the schemas around them do not allow."""
        return violations(self._graph, self._analysis, self._kinds, self._against_schemas)

    # --- writes ----------------------------------------------------------------------------------

    def of_clashes(self) -> Iterator[Diagnostic]:
        """Keys that several branches of a parallel write, with nothing that joins the values."""
        places: dict[tuple[int, str], tuple[Node, list[Writers]]] = {}
        for node, key, one, other in self._analysis.clashes:
            if key not in self._analysis.reduced:
                places.setdefault((id(node), key), (node, []))[1].extend((one, other))
        for (_, key), (node, by) in places.items():
            found = list(dict.fromkeys(each for group in by for each in some(group)))
            yield WriteRace.at(
                self._graph,
                node,
                f"several branches of `{node.name}` write `{key}`: only one value is kept",
                related=writers(found[:4]),
                help="write different keys, or say how to join them: "
                "Annotated[..., Reduce(...)] in a state schema",
            )

    def of_dead(self) -> Iterator[Diagnostic]:
        """Writes that nobody reads; comes after `of_reads`, which explains some of them."""
        if opaque_nodes(self._graph):  # who knows what they read
            return
        outputs = self._graph.world.outputs
        explained = self._misses.explained | {key for _, key, *_ in self._analysis.clashes}
        sites = self._analysis.sites
        mark((w for s in sites for w in (s.found, s.held, s.later, s.races)), "used")
        mark((change.defs for _, change in self._analysis.final), "kept")
        mark(self._analysis.passing, "kept")
        unread: dict[tuple[int, bool], list[Def]] = {}
        for each in self._analysis.defs:
            if each.used or each.key in explained or _needs_no_reader(each):
                continue
            if each.kept and outputs is not None and each.key in outputs:
                continue
            unread.setdefault((id(each.node), each.kept), []).append(each)
        for (_, kept), defs in unread.items():
            yield self._unread(defs, kept=kept)

    def _unread(self, defs: list[Def], *, kept: bool) -> Diagnostic:
        node = defs[0].node
        keys = ", ".join(f"`{key}`" for key in dict.fromkeys(each.key for each in defs))
        what = "which nothing reads" if kept else "but it is written anew before anything reads it"
        told = kept and self._graph.world.outputs is not None
        return DeadState.at(
            self._graph,
            node,
            f"`{node.name}` writes {keys}, {what}",
            severity=Severity.WARNING if told else Severity.INFO,
            help="read it, leave it out, or declare it: .contract(outputs=[...])"
            if kept
            else "read it before that, or write another key",
        )


def _one_type(site: Site, by: Def | None) -> str:
    """How the types of a reader and of a writer come to agree."""
    if site.how not in AT_ONCE:
        return f"declare one type for `{site.key}` in both places"
    if by is None:
        return f"declare `{site.key}` as {wanted(site)}"
    if by.implied and isinstance(by.node, AgentNode):
        kind = "list[str]" if site.type is list else name_of(site.type)
        ref = f'StateFieldRef("{site.key}", {kind})'
        return f"let `{by.node.name}` answer with {wanted(site)}: .writes({ref})"
    return f"let `{by.node.name}` write `{site.key}` as {wanted(site)}"


def _needs_no_reader(made: Def) -> bool:
    """Whether a write means something without a reader: others find it, or it is an answer."""
    if made.removes or made.sources is not None or isinstance(made.node, GateNode):
        return True
    return made.key.startswith((*LASTING, "temp:"))

"""The analysis of one pipeline: what each node does to state, put together from below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.contracts._dataflow._leaves import Steps
from adk_fluent.contracts._dataflow._part import (
    Part,
    again,
    alternatives,
    behind,
    beside,
    left,
    optional,
)
from adk_fluent.contracts._dataflow._values import (
    UNTOUCHED,
    Change,
    Need,
    Open,
    Site,
    both,
    settle,
)
from adk_fluent.ir import (
    AdkAgentNode,
    AgentNode,
    ExpectNode,
    FallbackNode,
    FunctionNode,
    GateNode,
    LoopNode,
    MapOverNode,
    Match,
    Node,
    ParallelNode,
    RaceNode,
    RemoteAgentNode,
    RouteNode,
    TapNode,
    TransferNode,
    TransformNode,
)
from adk_fluent.ir._answering import answer_types
from adk_fluent.ir._promised import schema_reducers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from adk_fluent.contracts._dataflow._values import Def, Writers
    from adk_fluent.contracts._graph import Graph
    from adk_fluent.ir import Predicate


class Analysis(Steps):
    """What a pipeline does to state.

    Args:
        graph: The pipeline.
        every_key: The keys that a transform removes which keeps only some.

    Attributes:
        clashes: A key that two branches of a node write at the same time, with who does.
        final: What the whole does to each key that it changes.
        passing: Who writes keys that nobody finds after the items of a map they are written for.
    """

    def __init__(self, graph: Graph, every_key: frozenset[str] = frozenset()) -> None:
        super().__init__(every_key)
        self.graph = graph
        self.clashes: list[tuple[Node, str, Writers, Writers]] = []
        self.passing: list[Writers | None] = []
        self._parts: dict[int, Part] = {}
        self._in_loop: set[int] | None = None
        self._transferred = {
            id(target) for node in graph.of(TransferNode) for target in self._targets(node)
        }
        self._shared = self._transferred | graph.shared()
        for node in graph.nodes:
            if node.contract is not None and node.contract.schema is not None:
                fields = getattr(node.contract.schema.value, "__state_fields__", {})
                for key, reducer in schema_reducers(node.contract):
                    self.reduced[key] = (reducer, fields[key].type)
        part = self._walk(graph.root)
        self._interleave()
        self._start(part)
        self.final = part.changes()
        if not all(map(self._targets, graph.of(TransferNode))):
            # what a transfer to nowhere is meant to write is none of its readers' faults
            self.sites = [site for site in self.sites if not site.tainted]

    def keys(self) -> frozenset[str]:
        """Every key that is read or written."""
        return frozenset({each.key for each in (*self.sites, *self.defs)})

    # --- the whole -------------------------------------------------------------------------------

    def _walk(self, root: Node) -> Part:
        """Every node after those that its meaning is made of."""
        parts, todo, opened = self._parts, [root], set[int]()
        while todo:
            node = todo[-1]
            if id(node) in parts:
                todo.pop()
            elif id(node) in opened:
                todo.pop()
                parts[id(node)] = self._part(node)
            else:
                opened.add(id(node))
                below = (*node.children, *self._targets(node))
                todo.extend(
                    each
                    for each in reversed(below)
                    if id(each) not in opened and not self._is_simple(each)
                )
        return parts[id(root)]

    def _start(self, part: Part) -> None:
        """Tell what still depends on it what it finds at the start of the pipeline."""
        world = self.graph.world
        self.reads(part, self.graph.boundary, (world.outputs or {}).values(), "promises")
        for known, tainted in ((part.reads, False), (part.tainted, True)):
            for reads in known.values():
                settle(reads, UNTOUCHED, tainted=tainted)

    def _interleave(self) -> None:
        """Where branches write the same key, each may find what the others make of its value."""
        for (_, key), node in {(id(each[0]), each[1]): each[0] for each in self.clashes}.items():
            same = (each for each in self.defs if each.key == key)
            defs = [(each, self._branches(node, each.node)) for each in same]
            for site in self.sites:
                if site.key == key and (own := self._branches(node, site.node)):
                    _find(site, [each for each, of in defs if of and len(own | of) > 1])

    def _branches(self, node: Node, part: Node) -> set[int]:
        """The branches of a node in which a part runs, there itself or because of a transfer."""
        above = self.graph.above([part])
        while leading := [
            each
            for each in self.graph.of(TransferNode)
            if id(each) not in above and any(id(to) in above for to in self._targets(each))
        ]:
            above |= self.graph.above(leading)
        return {at for at, each in enumerate(node.children) if id(each) in above}

    # --- one node --------------------------------------------------------------------------------

    def _part(self, node: Node) -> Part:
        step, rule = STEPS.get(type(node)), RULES.get(type(node))
        if rule is not None:
            part = rule(self, node)
        elif step is not None:
            part = Part()
            step(self, part, node)
        else:
            part = self._all(node.children)
        contract = node.contract
        if contract is not None and node is not self.graph.boundary:
            self.reads(part, node, contract.outputs or (), "promises")
            if contract.inputs:
                before = Part()
                self.reads(before, node, contract.inputs, "begins with")
                part = behind(before, part)
        return part

    def below(self, node: Node) -> Part:
        """What a node below does; a part of its own, if the node stands in other places, too."""
        if self._is_simple(node):
            part = Part()
            STEPS[type(node)](self, part, node)
            return part
        part = self._parts.get(id(node))
        if part is None:  # it leads to itself, of which there is another finding
            return Part()
        return part.copy() if id(node) in self._shared else part

    def _is_simple(self, node: Node) -> bool:
        """Whether it is a step that stands in one place, with nothing below."""
        kind = type(node)
        if kind not in STEPS or node.contract is not None or id(node) in self._shared:
            return False
        return not (isinstance(node, AgentNode) and (node.agent_tools or node.delegates))

    def _all(self, nodes: Iterable[Node]) -> Part:
        """One after the other."""
        total = Part()
        for node in nodes:
            if self._is_simple(node):
                STEPS[type(node)](self, total, node)
            else:
                total = behind(total, self.below(node))
        return total

    def _targets(self, node: Node) -> Sequence[Node]:
        return self.graph.named.get(node.target, ())[:1] if isinstance(node, TransferNode) else ()

    def is_in_loop(self, node: Node) -> bool:
        """Whether a loop stands around a node, in all places where it stands."""
        if self._in_loop is None:
            self._in_loop = set()
            for each in self.graph.downwards():
                above = self.graph.parents(each)
                inside = (isinstance(up, LoopNode) or id(up) in self._in_loop for up in above)
                if above and all(inside):
                    self._in_loop.add(id(each))
        return id(node) in self._in_loop and id(node) not in self._transferred

    # --- arrangements ----------------------------------------------------------------------------

    def remote(self, node: RemoteAgentNode) -> Part:
        """Sends state along, and writes what comes back; or else its fallback runs."""
        part, answered = Part(), Part()
        self.reads(part, node, node.reads_keys, "sends")
        self.writes(answered, node, node.writes_keys)
        if node.fallback is not None:
            answered = alternatives([answered, self.below(node.fallback)])
        return behind(part, answered)

    def loop(self, node: LoopNode) -> Part:
        """Its body once or more, left by its test or inside the body."""
        part = behind(Part(), self.below(node.body))
        self.tests(part, node, node.until, "repeats")
        return left(again(part) if node.max_iterations > 1 else part)

    def route(self, node: RouteNode) -> Part:
        """Tests in order, then one branch."""
        part = Part()
        compared = {test.key for test in node.tests if isinstance(test, Match)}
        if node.key is not None and node.key not in compared:
            self.read(part, node.key, node, Need.SOFT, "routes on")
        for test in node.tests:
            self.tests(part, node, test, "routes on")
        branches = [
            _where(test, self.below(branch))
            for test, branch in zip(node.tests, node.branches, strict=True)
        ]
        if node.default is not None:
            branches.append(self.below(node.default))
        return behind(part, alternatives(branches, none=node.default is None))

    def fallback(self, node: FallbackNode) -> Part:
        """One attempt after the other, each on state as it was, but for what is never undone."""
        parts = [self.below(each) for each in node.attempts]
        before: dict[str, Change] = {}
        for part in parts if self.lasting else ():
            _see(part, before)
            for key in self.lasting:
                change = part.change(key)
                if change is not UNTOUCHED:
                    before[key] = Change(through=True, defs=change.defs, gone=change.gone)
        return alternatives(parts)

    def race(self, node: RaceNode | ParallelNode) -> Part:
        """One of its branches, each on a snapshot."""
        return alternatives([self.below(each) for each in node.children])

    def parallel(self, node: ParallelNode) -> Part:
        """All branches on the same state."""
        if node.merge == "first_complete":
            return self.race(node)

        def clash(key: str, one: Writers, other: Writers) -> None:
            self.clashes.append((node, key, one, other))

        return beside((self.below(each) for each in node.branches), self.reduced, clash)

    def map_over(self, node: MapOverNode) -> Part:
        """Its body for each item, on a snapshot; there may be no item at all."""
        part, item = Part(), Part()
        several = self.read(part, node.list_key, node, Need.SOFT, "maps over", list)
        one = self.write(item, node.item_key, node)
        one.used, one.item_of = True, several
        body = behind(item, self.below(node.body))
        result = None if node.result_key is None else self._result(node, body)
        # of what it writes, only what is never undone and what is joined is there afterwards
        for held in (body.sure, body.maybe, body.late):
            for key in [key for key in held if not self._outlives_item(key, node)]:
                self.passing.append(held.pop(key).defs)
        part = behind(part, optional(body))
        # who ends the loop around it inside the body does so when the results are there
        leaves, part.leaves = part.leaves, False
        part.late.pop(node.output_key, None)
        kept = node.on_error != "collect"  # None stands for an item that failed
        words = kept and not result and not answer_types(node.body)
        made = self.write(part, node.output_key, node, list[str] if words else list)
        made.list_of = result if kept else None
        if node.errors_key is not None:
            part.late.pop(node.errors_key, None)
            self.write(part, node.errors_key, node, list)
        part.leaves = leaves
        return part

    def _outlives_item(self, key: str, node: MapOverNode) -> bool:
        lasting = key.startswith(("user:", "app:")) or key in self.reduced
        return lasting and key != node.item_key

    def _result(self, node: MapOverNode, body: Part) -> Site:
        """An item's result is what the body wrote for it, not what was there before."""
        key = cast("str", node.result_key)
        site = Site(key, node, Need.PROBE if body.opaque else Need.REQUIRED, "collects")
        self.sites.append(site)
        # who ends the loop around it inside the body is done with the item, too
        settle(site, body.late.get(key) or body.change(key), tainted=body.opaque)
        site.entry = False  # what was there before does not count
        return site

    def transfer(self, node: TransferNode) -> Part:
        """Its target runs here."""
        part = Part()
        self.tests(part, node, node.condition, "tests")
        targets = self._targets(node)
        target = self._all(targets)
        target.opaque |= not targets
        return behind(part, target if node.condition is None else optional(target))


#: What single steps do, at the end of a part.
STEPS: Final[Mapping[type[Node], Callable[[Any, Part, Any], None]]] = {
    AgentNode: Steps.agent,
    FunctionNode: Steps.function,
    TapNode: Steps.tap,
    TransformNode: Steps.transform,
    AdkAgentNode: Steps.foreign,
    GateNode: Steps.gate,
    ExpectNode: Steps.expect,
}

#: What is more than the nodes below it, one after the other.
RULES: Final[Mapping[type[Node], Callable[[Analysis, Any], Part]]] = {
    RemoteAgentNode: Analysis.remote,
    LoopNode: Analysis.loop,
    RouteNode: Analysis.route,
    FallbackNode: Analysis.fallback,
    RaceNode: Analysis.race,
    ParallelNode: Analysis.parallel,
    MapOverNode: Analysis.map_over,
    TransferNode: Analysis.transfer,
}


def _where(test: Predicate, branch: Part) -> Part:
    """A branch that runs only if a comparison holds, so that its key has a value."""
    if isinstance(test, Match) and test.operator != "ne" and test.value is not None:
        for known in (branch.reads, branch.tainted):
            if test.key in known:
                known[test.key] = Open((known[test.key],), sure=True)
    return branch


def _see(part: Part, before: Mapping[str, Change]) -> None:
    """Reads of a part that may find what was written before it and not undone."""
    for known in (part.reads, part.tainted):
        for key in before.keys() & known.keys():
            known[key] = Open((known[key],), before[key].defs, before[key].gone)


def _find(site: Site, defs: Iterable[Def]) -> None:
    """A read may find what others make of a value at any moment."""
    for each in defs:
        if each.removes:
            site.races = both(site.races, each)
        else:
            site.found = both(site.found, each)

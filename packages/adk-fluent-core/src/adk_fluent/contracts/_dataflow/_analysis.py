"""The analysis of one pipeline: what each node does to state, put together from below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent._calling import Calls, Stated
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
    both,
    Change,
    Def,
    Need,
    Open,
    Site,
    settle,
)
from adk_fluent.contracts._dataflow._words import CALLS
from adk_fluent.contracts._effects import effects_of_callback, effects_of_function, effects_of_tool
from adk_fluent.ir import (
    UNSET,
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
    Ref,
    RemoteAgentNode,
    RouteNode,
    StateFieldRef,
    TapNode,
    TransferNode,
    TransformNode,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from adk_fluent.contracts._dataflow._values import Writers
    from adk_fluent.contracts._effects import Derived
    from adk_fluent.contracts._graph import Graph
    from adk_fluent.ir import Predicate

#: Keys with these prefixes outlive the session, and are never undone.
LASTING: Final = ("user:", "app:")
_NUMBER: Final = (int, float)


class Analysis:
    """What a pipeline does to state.

    Args:
        graph: The pipeline.
        every_key: The keys that a transform removes which keeps only some.

    Attributes:
        sites: Every read.
        defs: Every write, and every removal.
        clashes: A key that two branches of a node write at the same time, with who does.
        wipes: Whether a transform removes all keys but some.
        reduced: Keys whose values are joined where branches come together.
        final: What the whole does to each key that it changes.
    """

    def __init__(self, graph: Graph, every_key: frozenset[str] = frozenset()) -> None:
        self.graph = graph
        self.sites: list[Site] = []
        self.defs: list[Def] = []
        self.clashes: list[tuple[Node, str, Writers, Writers]] = []
        self.wipes = False
        self._every_key = every_key
        self._parts: dict[int, Part] = {}
        self._shared = {id(node) for node in graph.nodes if len(graph.parents(node)) > 1}
        self._lasting: set[str] = set()
        self._in_loop: set[int] | None = None
        self._transferred = {
            id(target) for node in graph.of(TransferNode) for target in self._targets(node)
        }
        self._shared |= self._transferred
        self.reduced: set[str] = set()
        self.final: list[tuple[str, Change]] = []
        self._part: Part = self._walk(graph.root)

    def keys(self) -> frozenset[str]:
        """Every key that is read or written."""
        return frozenset({each.key for each in (*self.sites, *self.defs)})

    def done(self) -> Analysis:
        """Tell what still depends on it what it finds at the start, and in the end what is there."""
        self._interleave()
        part, boundary = self._part, self.graph.boundary
        self._reads(part, boundary, (self.graph.world.outputs or {}).values(), "promises")
        for known, tainted in ((part.reads, False), (part.tainted, True)):
            for reads in known.values():
                settle(reads, UNTOUCHED, tainted=tainted)
        self.final = part.changes()
        return self

    def _interleave(self) -> None:
        """Where branches write the same key, each may find what the others make of its own value."""
        for (_, key), node in {(id(each[0]), each[1]): each[0] for each in self.clashes}.items():
            branches = [id(each) for each in node.children]
            defs = [(each, self.graph.above([each.node])) for each in self.defs if each.key == key]
            for site in self.sites:
                above = self.graph.above([site.node]) if site.key == key else set[int]()
                if id(node) not in above:
                    continue
                mine = [branch in above for branch in branches]
                for each, around in defs:
                    if any(branch in around and not own for branch, own in zip(branches, mine, strict=True)):
                        if each.removes:
                            site.gone, site.races = both(site.gone, each), both(site.races, each)
                        else:
                            site.found = both(site.found, each)

    # --- bottom up -------------------------------------------------------------------------------

    def _walk(self, root: Node) -> Part:
        """Every node after those that its meaning is made of; what leads to itself means nothing."""
        parts, todo, open_ = self._parts, [root], set[int]()
        while todo:
            node = todo[-1]
            if id(node) in parts:
                todo.pop()
                continue
            if id(node) not in open_:
                open_.add(id(node))
                below = (*node.children, *self._targets(node))
                todo.extend(each for each in reversed(below) if id(each) not in open_)
                continue
            todo.pop()
            parts[id(node)] = self._of(node)
        return parts[id(root)]

    def _is_in_loop(self, node: Node) -> bool:
        """Whether a loop stands around a node, in all places where it stands."""
        if self._in_loop is None:
            self._in_loop = set()
            for each in self.graph.downwards():
                above = self.graph.parents(each)
                if above and all(isinstance(up, LoopNode) or id(up) in self._in_loop for up in above):
                    self._in_loop.add(id(each))
        return id(node) in self._in_loop and id(node) not in self._transferred

    def _targets(self, node: Node) -> Sequence[Node]:
        return self.graph.named.get(node.target, ())[:1] if isinstance(node, TransferNode) else ()

    def _of(self, node: Node) -> Part:
        rule = RULES.get(type(node))
        part = self._all(node.children) if rule is None else rule(self, node)
        contract = node.contract
        if contract is not None and node is not self.graph.boundary:
            self._reads(part, node, contract.outputs or (), "promises")
            if contract.inputs:
                before = Part()
                self._reads(before, node, contract.inputs, "begins with")
                part = behind(before, part)
        return part

    def _below(self, node: Node) -> Part:
        """What a node below does; a part of its own, if the node stands in other places, too."""
        part = self._parts.get(id(node))
        if part is None:  # it leads to itself
            return Part()
        return part.copy() if id(node) in self._shared else part

    def _all(self, nodes: Iterable[Node]) -> Part:
        """One after the other."""
        total = Part()
        for node in nodes:
            total = behind(total, self._below(node))
        return total

    def _any(self, nodes: Iterable[Node], *, none: bool = False) -> Part:
        return alternatives([self._below(node) for node in nodes], none=none)

    # --- reads and writes ------------------------------------------------------------------------

    def _read(
        self, part: Part, key: str, node: Node, need: Need, how: str = "reads", type: Any = None
    ) -> Site:
        site = Site(key, node, need, how, type)
        self.sites.append(site)
        part.read(key, site)
        return site

    def _write(
        self,
        part: Part,
        key: str,
        node: Node,
        type: Any = None,
        *,
        through: bool = False,
        sources: tuple[Site, ...] | None = None,
    ) -> None:
        made = Def(key, node, type, sources=sources)
        self.defs.append(made)
        if ":" in key and key.startswith(LASTING):
            self._lasting.add(key)
        part.write(key, Change(through, made))

    def _writes(
        self,
        part: Part,
        node: Node,
        refs: Iterable[StateFieldRef],
        otherwise: Any = None,
        *,
        through: bool = False,
    ) -> None:
        """Writes, of the type that is declared or `otherwise`."""
        for ref in refs:
            if ref.reducer is not None:
                self.reduced.add(ref.key)
            kind = otherwise if ref.type is None else ref.type
            self._write(part, ref.key, node, kind, through=through)

    def _remove(self, part: Part, key: str, node: Node, *, through: bool = False) -> None:
        made = Def(key, node, removes=True)
        self.defs.append(made)
        part.write(key, Change(through, None, made))

    def _reads(self, part: Part, node: Node, refs: Iterable[StateFieldRef], how: str) -> None:
        for ref in refs:
            need = Need.REQUIRED if ref.default is UNSET else Need.OPTIONAL
            self._read(part, ref.key, node, need, how, ref.type)

    def _does(self, part: Part, node: Node, done: Derived, how: str, *, always: bool) -> None:
        """What a function does; `always` if it is surely called, and once."""
        self._reads(part, node, done.reads, how)
        self._writes(part, node, done.writes, through=not always)
        self._writes(part, node, done.may_write, through=True)
        for key in done.removes:
            self._remove(part, key, node, through=not always)
        for key in done.may_remove:
            self._remove(part, key, node, through=True)
        part.leaves |= done.escalates
        part.opaque |= done.opaque is not None

    def _tests(self, part: Part, node: Node, test: Predicate | None, how: str) -> None:
        """A predicate over state; one that compares is content with None."""
        if isinstance(test, Match):
            self._read(part, test.key, node, Need.SOFT, how, _compared(test))
        elif test is not None:
            self._reads(part, node, effects_of_function(test).reads, how)

    def _only_reads(self, part: Part, node: Node, fn: Ref | None, how: str) -> None:
        if fn is not None:
            self._reads(part, node, effects_of_function(fn).reads, how)

    # --- leaves ----------------------------------------------------------------------------------

    def agent(self, node: AgentNode) -> Part:
        """Reads, calls tools in any order, hands over to others, writes its answer."""
        part = Part()
        callbacks = dict(node.callbacks)
        for fn in callbacks.pop("before_agent", ()):
            self._does(part, node, effects_of_callback(fn), CALLS + fn.name, always=False)
        self._reads(part, node, node.reads_keys, "reads")
        if isinstance(node.instruction, Ref):
            self._reads(part, node, effects_of_callback(node.instruction).reads, "instructs")
        after = callbacks.pop("after_agent", ())
        leaves = False
        if node.tools or callbacks or node.agent_tools or node.delegates:
            called = self._called(node, callbacks)
            leaves, called.leaves = called.leaves, False
            part = behind(part, called)
        # who leaves owes nothing, and only in a loop does nothing come after that
        surely = not node.delegates and (not leaves or self._is_in_loop(node))
        part.leaves |= leaves
        self._writes(part, node, node.writes_keys, _answer_type(node), through=not surely)
        self._writes(part, node, node.tool_writes, through=not surely)
        for fn in after:
            self._does(part, node, effects_of_callback(fn), CALLS + fn.name, always=False)
        return part

    def _called(self, node: AgentNode, callbacks: Mapping[str, Sequence[Ref]]) -> Part:
        """What may happen while it runs, any number of times and in any order."""
        own = Part()
        for tool in node.tools:
            self._does(own, node, effects_of_tool(tool.tool), CALLS + tool.name, always=False)
            if isinstance(tool.require_confirmation, Ref):
                self._only_reads(own, node, tool.require_confirmation, CALLS + tool.name)
        for fns in callbacks.values():
            for fn in fns:
                self._does(own, node, effects_of_callback(fn), CALLS + fn.name, always=False)
        parts = [own, *(left(self._below(each)) for each in node.agent_tools)]
        parts += [self._below(each) for each in node.delegates]
        leaves = any(each.leaves for each in parts)
        for each in parts:
            each.leaves, each.late = False, {}
        called = optional(again(alternatives(parts, none=True), rounds=False))
        called.leaves = leaves
        return called

    def function(self, node: FunctionNode | TapNode) -> Part:
        """Calls its function."""
        part = Part()
        done = node.effects
        if not done.opaque:
            self._reads(part, node, done.reads, "reads")
            self._writes(part, node, done.writes)
            self._writes(part, node, done.may_write, through=True)
        else:
            self._does(part, node, effects_of_function(node.fn), "reads", always=True)
        if isinstance(node, TapNode):
            part.opaque = False  # it writes nothing, whatever it reads
        return part

    def transform(self, node: TransformNode) -> Part:
        """Changes state as it says."""
        part = Part()
        self._computes(part, node)
        if node.semantics == "delete_keys":
            for key in node.affected_keys or ():
                self._remove(part, key, node)
        elif node.semantics == "replace_session":
            self.wipes = True
            stays = {*(node.affected_keys or ()), *part.sure, *part.maybe}
            for key in sorted(self._every_key - stays):
                if node.scope == "all" or StateFieldRef(key).scope == "session":
                    self._remove(part, key, node)
        return part

    def _computes(self, part: Part, node: TransformNode) -> None:
        fn = None if node.fn is None else node.fn.value
        if isinstance(fn, Stated):
            self._states(part, node, fn)
        elif not node.effects.opaque:
            self._reads(part, node, node.effects.reads, "reads")
            self._writes(part, node, node.effects.writes)
        elif isinstance(fn, Calls):
            for each, _ in fn.functions():
                done = effects_of_function(each)
                self._reads(part, node, done.reads, "reads")
            self._writes(part, node, node.effects.writes)
        elif node.fn is not None:
            self._does(part, node, effects_of_function(node.fn), "reads", always=True)

    def _states(self, part: Part, node: TransformNode, fn: Stated) -> None:
        """What a function with a stated meaning does, all at once."""
        outcomes = fn.outcomes()
        sources = {key for each in outcomes for key in each.sources or ()}
        asked = {key: self._read(part, key, node, Need.PROBE) for key in sorted(sources)}
        for each in outcomes:
            own = [key for key in each.sources or () if key != each.key]
            for key in own:
                asked[key].need = Need.SOFT
        for each in outcomes:
            if each.removes:
                self._remove(part, each.key, node)
                continue
            probes = None if each.sources is None else tuple(asked[key] for key in each.sources)
            kind = None if each.value is None else type(each.value)
            self._write(part, each.key, node, kind, sources=probes)

    def foreign(self, node: AdkAgentNode) -> Part:
        """Nobody knows what it does."""
        part = Part()
        part.opaque = True
        return part

    def remote(self, node: RemoteAgentNode) -> Part:
        """Sends state along, and writes what comes back; or else its fallback runs."""
        part = Part()
        self._reads(part, node, node.reads_keys, "sends")
        answered = Part()
        self._writes(answered, node, node.writes_keys)
        if node.fallback is not None:
            answered = alternatives([answered, self._below(node.fallback)])
        return behind(part, answered)

    def gate(self, node: GateNode) -> Part:
        """Asks when its test holds, and writes the answer."""
        part = Part()
        self._tests(part, node, node.predicate, "tests")
        self._only_reads(part, node, node.payload, "shows")
        self._write(part, node.key or node.name, node, through=node.predicate is not None)
        return part

    def expect(self, node: ExpectNode) -> Part:
        """Tests, and stops the run if that fails."""
        part = Part()
        self._tests(part, node, node.predicate, "expects")
        return part

    # --- arrangements ----------------------------------------------------------------------------

    def loop(self, node: LoopNode) -> Part:
        """Its body once or more, left by its test or inside the body."""
        part = self._below(node.body)
        if node.until is not None:
            tested = Part()
            self._tests(tested, node, node.until, "repeats")
            part = behind(part, tested)
        return left(again(part) if node.max_iterations > 1 else part)

    def route(self, node: RouteNode) -> Part:
        """Tests in order, then one branch."""
        part = Part()
        compared = {test.key for test in node.tests if isinstance(test, Match)}
        if node.key is not None and node.key not in compared:
            self._read(part, node.key, node, Need.SOFT, "routes on")
        for test in node.tests:
            self._tests(part, node, test, "routes on")
        branches = [
            _where(test, self._below(branch))
            for test, branch in zip(node.tests, node.branches, strict=False)
        ]
        if node.default is not None:
            branches.append(self._below(node.default))
        return behind(part, alternatives(branches, none=node.default is None))

    def fallback(self, node: FallbackNode) -> Part:
        """One attempt after the other, each on state as it was, but for what is never undone."""
        parts = [self._below(each) for each in node.attempts]
        before: dict[str, Change] = {}
        for part in parts:
            _see(part, before)
            for key in self._lasting:
                change = part.change(key)
                if change is not UNTOUCHED:
                    before[key] = Change(through=True, defs=change.defs, gone=change.gone)
        return alternatives(parts)

    def race(self, node: RaceNode | ParallelNode) -> Part:
        """One of its branches, each on a snapshot."""
        return self._any(node.children)

    def parallel(self, node: ParallelNode) -> Part:
        """All branches on the same state."""
        if node.merge == "first_complete":
            return self.race(node)

        def clash(key: str, one: Writers, other: Writers) -> None:
            self.clashes.append((node, key, one, other))

        parts = [self._below(each) for each in node.branches]
        return beside(parts, clash) if parts else Part()

    def map_over(self, node: MapOverNode) -> Part:
        """Its body for each item, on a snapshot; there may be no item at all."""
        part = Part()
        self._read(part, node.list_key, node, Need.SOFT, "maps over", list)
        item = Part()
        self._write(item, node.item_key, node)
        self.defs[-1].used = True
        body = behind(item, self._below(node.body))
        if node.result_key is not None and not body.opaque:
            self._results(node, body)
        for held in (body.sure, body.maybe, body.late):
            held.pop(node.item_key, None)
        part = behind(part, optional(body))
        self._write(part, node.output_key, node, list)
        return part

    def _results(self, node: MapOverNode, body: Part) -> None:
        """An item's result is what the body wrote for it, not what was there before."""
        key = cast("str", node.result_key)
        site = Site(key, node, Need.REQUIRED, "collects")
        self.sites.append(site)
        change = body.change(key)
        settle(site, change, tainted=False)
        site.entry = False  # what was there before does not count

    def transfer(self, node: TransferNode) -> Part:
        """Its target runs here."""
        part = Part()
        self._tests(part, node, node.condition, "tests")
        target = self._all(self._targets(node))
        if node.condition is not None:
            target = optional(target)
        return behind(part, target)


#: The meaning of every node that is more than the nodes below it, one after the other.
RULES: Final[Mapping[type[Node], Callable[[Analysis, Any], Part]]] = {
    AgentNode: Analysis.agent,
    FunctionNode: Analysis.function,
    TapNode: Analysis.function,
    TransformNode: Analysis.transform,
    AdkAgentNode: Analysis.foreign,
    RemoteAgentNode: Analysis.remote,
    GateNode: Analysis.gate,
    ExpectNode: Analysis.expect,
    LoopNode: Analysis.loop,
    RouteNode: Analysis.route,
    FallbackNode: Analysis.fallback,
    RaceNode: Analysis.race,
    ParallelNode: Analysis.parallel,
    MapOverNode: Analysis.map_over,
    TransferNode: Analysis.transfer,
}


def _answer_type(node: AgentNode) -> Any:
    """What an agent writes whose key has no type: the text of its answer, or its data."""
    return str if node.output_schema is None else node.output_schema.value


def _compared(test: Match) -> Any:
    """What a comparison takes without failing."""
    if test.operator not in ("gt", "lt"):
        return None
    return float if isinstance(test.value, _NUMBER) else type(test.value)


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
        for key in before:
            if key in known:
                change = before[key]
                known[key] = Open((known[key],), change.defs, change.gone)

"""Reads that find no value, or may find none, as findings."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from adk_fluent.contracts._dataflow._part import TEMPORARY
from adk_fluent.contracts._dataflow._places import (
    by_call,
    condition,
    elsewhere,
    is_survived,
    meeting,
    of_sources,
)
from adk_fluent.contracts._dataflow._values import Def, Need
from adk_fluent.contracts._dataflow._verdicts import Found, Verdicts, is_taken, some
from adk_fluent.contracts._dataflow._words import CALLS, lenient, reads, writers
from adk_fluent.contracts._reports._diagnostic import Severity
from adk_fluent.contracts._reports._issues import (
    ExternalState,
    MaybeUndefined,
    ReadBeforeWrite,
    ReadRace,
    ScopeMismatch,
)
from adk_fluent.errors import nearest_name
from adk_fluent.ir import (
    SCOPES,
    AgentNode,
    FallbackNode,
    LoopNode,
    MapOverNode,
    ParallelNode,
    RouteNode,
    StateFieldRef,
    TransferNode,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.contracts._dataflow._analysis import Analysis
    from adk_fluent.contracts._dataflow._values import Site
    from adk_fluent.contracts._graph import Graph
    from adk_fluent.contracts._reports._diagnostic import Diagnostic, Related
    from adk_fluent.contracts._world import World
    from adk_fluent.ir import Node

LASTING: Final = ("user:", "app:")
#: Reads that nobody does: they say what was promised.
_PROMISES: Final = frozenset({"begins with", "collects", "promises"})
_SEARCHES: Final = 10
_CANDIDATES: Final = 500
#: Findings that are looked at from all sides: in deep pipelines with many it takes long.
_EXPLAINED: Final = 200


class _Said(NamedTuple):
    """Why there is no value: the end of the message, other places, and what to do."""

    why: str
    related: list[Related]
    help: str


class Misses:
    """The reads of one pipeline that find no value.

    Args:
        graph: The pipeline.
        analysis: What it does to state.
        world: What is known of state before it.

    Attributes:
        explained: Keys of which there is a finding, or that one names as the right ones: that
            nothing reads them needs no finding of its own.
    """

    def __init__(self, graph: Graph, analysis: Analysis, world: World) -> None:
        self._graph = graph
        self._sites = analysis.sites
        self._world = world
        self._verdicts = Verdicts(world.inputs, unknown=world.unknown)
        self._writers: dict[str, Def] = {}
        for each in analysis.defs:
            if not each.removes and not _only_changes(each):
                self._writers.setdefault(each.key, each)
        self._searches = _SEARCHES
        self._explains = _EXPLAINED
        self._no_items: set[int] | None = None
        self.explained: set[str] = set()

    def findings(self) -> Iterator[Diagnostic]:
        """One for each reader and key."""
        told = set[tuple[int, str]]()
        for site in self._sites:
            if site.need is Need.PROBE:
                continue
            found = self._verdicts.of(site)
            if found is Found.SURE and site.races is None:
                continue
            place = (id(site.node), site.key)
            if place in told:
                continue
            issue = self._race(site, found) if site.races is not None else self._lack(site, found)
            if issue is not None:
                told.add(place)
                self.explained.add(site.key)
                yield issue

    def _race(self, site: Site, found: Found) -> Diagnostic:
        by = some(site.races)
        # who runs first finds nothing, unless something else gives the key a value, or takes it
        kept = site.gone is None and not is_taken(site)
        first = site.bare and kept and site.key not in self._world.inputs
        doubtful = site.need is not Need.REQUIRED or site.tainted or self._world.unknown
        doubtful = doubtful or not first or found is Found.SURE
        other, does = by[0].node.name, "removes" if by[0].removes else "writes"
        both = meeting(self._graph, by[0].node, site.node) if self._explain() else None
        before = f"`{both.name}`" if isinstance(both, ParallelNode) else "the two"
        return ReadRace.at(
            self._graph,
            site.node,
            f"{reads(site)} while `{other}` {does} it: they run at the same time",
            severity=self._severity(site, doubtful=doubtful),
            related=writers(by, "in a branch beside it"),
            help=f"run `{other}` before {before}, or let each use a key of its own",
        )

    def _lack(self, site: Site, found: Found) -> Diagnostic | None:
        if found is Found.MAYBE:
            return self._maybe(site) if site.need is Need.REQUIRED else None
        if self._world.unknown and site.gone is None and site.entry:
            return None
        if site.need is Need.OPTIONAL:
            return self._always_absent(site)
        if site.gone is None and site.key.startswith(LASTING):
            other = None if site.key in self._writers else self._elsewhere(site.key)
            return self._external(site) if other is None else self._other_scope(site, other)
        return self._never(site)

    # --- there may be a value --------------------------------------------------------------------

    def _maybe(self, site: Site) -> Diagnostic:
        if site.key.startswith(LASTING) and site.gone is None:
            return self._external(site)
        if site.found is None and site.key not in self._world.inputs and not self._world.unknown:
            return self._first_time(site)
        found = (*some(site.found), *some(site.later))
        known = [each for each in found if each.node is not site.node] or [*found]
        related = self._conditions([*known, *some(site.gone)], site)
        return MaybeUndefined.at(
            self._graph,
            site.node,
            f"{reads(site)}, which may have no value by then",
            related=list(dict.fromkeys(related))[:4],
            help=self._on_every_way(site, known),
        )

    def _conditions(self, known: list[Def], site: Site) -> list[Related]:
        """Who writes a key that need not have a value, and when."""
        if not self._explain():
            return writers(known, "" if site.gone else "on some ways only")
        return [
            note for each in known for note in writers([each], condition(self._graph, each, site))
        ]

    def _explain(self) -> bool:
        """Whether one more finding is looked at from all sides."""
        self._explains -= 1
        return self._explains >= 0

    def _on_every_way(self, site: Site, known: list[Def]) -> str:
        """What to do about a key that is written on some ways."""
        if site.how == "collects":
            return f"write `{site.key}` on every way through the body of `{site.node.name}`"
        if site.gone is not None and not site.bare:
            return f"write `{site.key}` again after it is removed, or {lenient(site)}"
        if known and all(map(by_call, known)) and not self._calls(site, known[0]):
            agent = f"`{known[0].node.name}`"
            declare = f'.writes("{site.key}", via="tool")'
            return f"if {agent} always writes it, say so: {declare}; if not, {lenient(site)}"
        return f"write `{site.key}` on every way that leads here, or {lenient(site)}"

    def _calls(self, site: Site, made: Def) -> bool:
        """Whether it is whoever writes a key that calls its reader."""
        return not self._explain() or id(made.node) in self._graph.above([site.node])

    def _first_time(self, site: Site) -> Diagnostic:
        """Only an earlier time round a loop gives the key a value, and there may be none."""
        return ReadBeforeWrite.at(
            self._graph,
            site.node,
            f"{reads(site)}, but nothing has written it the first time round",
            severity=self._severity(site, doubtful=not self._begins_with(site)),
            related=writers(some(site.later), "later in the loop"),
            help=f"write `{site.key}` before the loop, or {lenient(site)}",
        )

    def _external(self, site: Site) -> Diagnostic:
        return ExternalState.at(
            self._graph,
            site.node,
            f"{reads(site)}, which is kept from earlier sessions: in the first it has no value",
            related=self._conditions(some(site.found), site),
            help=f'declare it: .contract(inputs=["{site.key}"]), or {lenient(site)}',
        )

    # --- there is no value -----------------------------------------------------------------------

    def _never(self, site: Site) -> Diagnostic:
        writer = self._writers.get(site.key)
        if site.gone is None and writer is None:
            other = self._elsewhere(site.key)
            if other is not None:
                return self._other_scope(site, other)
        said = self._why(site, writer)
        soft = site.need is Need.SOFT and (writer is not None or site.how == "reads")
        return ReadBeforeWrite.at(
            self._graph,
            site.node,
            f"{reads(site)}, {said.why}",
            severity=self._severity(site, doubtful=soft),
            related=said.related,
            help=said.help,
        )

    def _why(self, site: Site, writer: Def | None) -> _Said:
        key = site.key
        if site.gone is not None:
            by = some(site.gone)
            name = by[0].node.name
            picks = getattr(by[0].node, "semantics", None) == "replace_session"
            kept = picks or site.how == "promises"
            help = f"let `{name}` keep it" if kept else "read it before it is removed"
            return _Said(f"which `{name}` has removed", writers(by), f"{help}, or {lenient(site)}")
        if site.how == "collects":
            return self._not_collected(site, writer)
        if writer is not None and writer.node is not site.node:
            return self._in_vain(site, writer)
        if writer is None and (near := self._near(site)) is not None:
            return _Said("but nothing writes it", self._written(near), f"did you mean `{near}`?")
        if site.how == "promises":
            help = f"write it in a step, take it out of the outputs, or {lenient(site)}"
        else:
            where = ""
            if site.how == "begins with":  # of a part: that it is declared gives it no value
                where = " on the whole pipeline, so that its caller gives it"
            declare = f'declare it{where}: .contract(inputs=["{key}"])'
            help = f"write it in a step before, {declare}, or {lenient(site)}"
        who = "nothing" if writer is None else f"only `{site.node.name}` itself"
        return _Said(f"but {who} writes it", [], help)

    def _in_vain(self, site: Site, writer: Def) -> _Said:
        """There is a writer, and its value does not get to the reader."""
        key, name = site.key, writer.node.name
        if self._lacks_all(writer):
            related = writers([writer], of_sources(writer) or "")
            help = f"give what it is made of a value, or {lenient(site)}"
            return _Said("which gets no value", related, help)
        if _is_item(writer):
            related = writers([writer], "for each item")
            help = f"read it inside `{name}`, or {lenient(site)}"
            return _Said(f"which has a value only inside `{name}`", related, help)
        mapping = self._item_of(writer.node, site.node)
        if mapping is not None and key != mapping.output_key:
            related = writers([writer], "for each item")
            help = f'collect it: map_over(..., result_key="{key}"), or {lenient(site)}'
            return _Said(f"which has a value only inside `{mapping.name}`", related, help)
        if key.startswith(TEMPORARY) and self._tools(writer.node) != self._tools(site.node):
            related = writers([writer], "in another session")
            help = f"use a key without `{TEMPORARY}`, or {lenient(site)}"
            return _Said("which an agent that is a tool does not share", related, help)
        when, help = "elsewhere", f"move what writes `{key}` before this"
        if self._explain():
            when, help = elsewhere(self._graph, writer, site)
        help = f"{help}, or {lenient(site)}"
        return _Said("but nothing has written it by then", writers([writer], when), help)

    def _item_of(self, node: Node, reader: Node) -> MapOverNode | None:
        """The map for whose items a node runs, and another one does not."""
        maps = self._graph.of(MapOverNode)
        if not maps:
            return None
        inside = self._graph.above([node]) - self._graph.above([reader]) - {id(node)}
        return next((each for each in maps if id(each) in inside), None)

    def _tools(self, node: Node) -> set[int]:
        """The agents that are tools of which a node is part."""
        above = self._graph.above([node])
        every = (each for agent in self._graph.of(AgentNode) for each in agent.agent_tools)
        return {id(each) for each in every if id(each) in above}

    def _lacks_all(self, made: Def) -> bool:
        """Whether nothing that a write makes its value of has one."""
        sources = made.sources
        if sources is None:
            return False
        return all(self._verdicts.of(each) is Found.NEVER for each in sources)

    def _not_collected(self, site: Site, writer: Def | None) -> _Said:
        """A map's results are what its body writes, whatever is written elsewhere."""
        near = None if writer is not None else self._near(site)
        if near is not None:
            related, help = self._written(near), f"did you mean `{near}`?"
        else:
            related = [] if writer is None else writers([writer], "elsewhere")
            help = (
                f"write `{site.key}` in the body of `{site.node.name}`, or name another result_key"
            )
        return _Said("but its body does not write it", related, help)

    def _other_scope(self, site: Site, other: str) -> Diagnostic:
        how = "it is written as" if other in self._writers else "the input is"
        verb = "promise" if site.how == "promises" else "read"
        return ScopeMismatch.at(
            self._graph,
            site.node,
            f"{reads(site)}, but {how} `{other}`",
            # what outlives the session may have been written by another pipeline
            severity=self._severity(site, doubtful=site.key.startswith(LASTING)),
            related=self._written(other),
            help=f"{verb} `{other}`, or write `{site.key}`",
        )

    def _always_absent(self, site: Site) -> Diagnostic | None:
        """A reader that is prepared to find nothing, and always does: mostly a slip of the pen."""
        if site.key in self._writers or (near := self._near(site)) is None:
            return None
        return ReadBeforeWrite.at(
            self._graph,
            site.node,
            f"{reads(site)} if it has a value, but nothing writes it",
            severity=Severity.WARNING,
            related=self._written(near),
            help=f"did you mean `{near}`?",
        )

    def _severity(self, site: Site, *, doubtful: bool = False) -> Severity:
        certain = not doubtful and not site.tainted and self._happens(site.node)
        return Severity.ERROR if certain and self._matters(site) else Severity.WARNING

    def _matters(self, site: Site) -> bool:
        """Whether it is an error here: of a run that begins, only what the run fails at."""
        if not self._world.runs:
            return True
        goes_on = site.need is not Need.REQUIRED or site.gone is not None or site.how in _PROMISES
        return not goes_on and not is_survived(self._graph, site.node)

    # --- what is near ----------------------------------------------------------------------------

    def _elsewhere(self, key: str) -> str | None:
        """A key of the same name in another scope that has a value somewhere."""
        name = StateFieldRef(key).name
        others = (name if scope == "session" else f"{scope}:{name}" for scope in SCOPES)
        known = (other for other in others if other != key)
        found = next((k for k in known if k in self._writers or k in self._world.inputs), None)
        if found is not None:
            self.explained.add(found)
        return found

    def _near(self, site: Site) -> str | None:
        """The key most like its own that has a value somewhere; looks only at some of many."""
        if self._searches == 0:
            return None
        self._searches -= 1
        key, above = site.key, self._graph.above([site.node])
        known = (
            *self._world.inputs,
            *(
                each
                for each, made in islice(self._writers.items(), _CANDIDATES)
                if not _is_item(made) or (id(made.node) in above and made.node is not site.node)
            ),
        )
        near = nearest_name(key, (each for each in known if abs(len(each) - len(key)) < 4))
        if near is not None:
            self.explained.add(near)
        return near

    def _written(self, key: str) -> list[Related]:
        """Where a key of another name is written."""
        by = self._writers.get(key)
        return [] if by is None else writers([by], f"as `{key}`")

    # --- whether it happens ----------------------------------------------------------------------

    def _happens(self, node: Node) -> bool:
        """Whether it stands in no map that may have no items for want of a list."""
        if self._no_items is None:
            self._no_items = {
                id(site.node)
                for site in self._sites
                if site.how == "maps over"
                and (site.races is not None or self._verdicts.of(site) is not Found.SURE)
            }
        return not self._no_items or self._no_items.isdisjoint(self._graph.above([node]))

    def _begins_with(self, site: Site) -> bool:
        """Whether the loops around a read come to it each time, whatever tests say."""
        node, always, known = site.node, not site.how.startswith(CALLS), True
        while parents := self._graph.parents(node):
            above = parents[0]
            choice = isinstance(above, RouteNode | MapOverNode | AgentNode | TransferNode)
            later = isinstance(above, FallbackNode) and node is not above.attempts[0]
            always = always and not choice and not later and len(parents) == 1
            if isinstance(above, LoopNode):
                known = known and always
            node = above
        return known


def _only_changes(made: Def) -> bool:
    """Whether a write gives its key a value only if it has one."""
    return made.sources is not None and all(each.key == made.key for each in made.sources)


def _is_item(made: Def) -> bool:
    """Whether a key is an item of a map, which has a value only in the map's body."""
    node = made.node
    return isinstance(node, MapOverNode) and node.item_key == made.key != node.output_key

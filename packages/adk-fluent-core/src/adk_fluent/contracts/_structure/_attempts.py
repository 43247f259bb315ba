"""What may be discarded: race branches, fallback attempts, and items that need not succeed."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from adk_fluent.contracts._reports._diagnostic import Severity
from adk_fluent.contracts._reports._issues import GateInRace, IrreversibleWrite
from adk_fluent.contracts._structure._declared import declared_writes
from adk_fluent.ir import AgentNode, FallbackNode, GateNode, MapOverNode, ParallelNode, RaceNode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.contracts._graph import Graph
    from adk_fluent.contracts._reports._diagnostic import Diagnostic
    from adk_fluent.ir import Node

_LASTING: Final = ("user", "app")


def check_gates(graph: Graph) -> Iterator[Diagnostic]:
    """Nobody is asked inside a race: the question would outlive the branch that asked it."""
    for node in graph.reach(_racers(graph)):
        if isinstance(node, GateNode):
            yield GateInRace.at(
                graph,
                node,
                f"gate `{node.name}` stands inside a race, which cannot wait for a person",
                help="ask before the race or after it",
            )
        elif isinstance(node, AgentNode):
            asking = [tool.name for tool in node.tools if tool.require_confirmation]
            if asking:
                yield GateInRace.at(
                    graph,
                    node,
                    f"`{node.name}` runs inside a race, and its tool `{asking[0]}` asks a person",
                    severity=Severity.WARNING,
                    help="use the tool before the race or after it, or let it run unconfirmed",
                )


def _racers(graph: Graph) -> list[Node]:
    races = chain(
        graph.of(RaceNode), (n for n in graph.of(ParallelNode) if n.merge == "first_complete")
    )
    return [branch for race in races for branch in race.branches]


def check_lasting_writes(graph: Graph) -> Iterator[Diagnostic]:
    """What may be undone writes nothing that never is."""
    attempts = [a for fallback in graph.of(FallbackNode) for a in fallback.attempts]
    attempts += [each.body for each in graph.of(MapOverNode) if each.on_error != "raise"]
    for node in graph.reach([*_racers(graph), *attempts]):
        keys = [ref.key for ref in declared_writes(node) if ref.scope in _LASTING]
        if keys:
            listed = ", ".join(f"`{key}`" for key in keys)
            yield IrreversibleWrite.at(
                graph,
                node,
                f"what `{node.name}` writes to {listed} stays when its attempt is discarded",
                help="write a session key, and copy it to the lasting one afterwards",
            )

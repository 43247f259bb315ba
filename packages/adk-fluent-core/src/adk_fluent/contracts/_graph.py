"""What every checker needs to know about a pipeline, computed once a check."""

from __future__ import annotations

from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

from adk_fluent.contracts._world import World
from adk_fluent.errors import nearest_name
from adk_fluent.ir import (
    AdkAgentNode,
    AgentNode,
    AppNode,
    MiddlewareNode,
    ModelSelectorNode,
    RemoteAgentNode,
    ResourceNode,
    TransferNode,
    verify,
)
from adk_fluent.ir._promised import boundary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from adk_fluent.ir import Node, Violation

N = TypeVar("N", bound="Node")

#: The world of a pipeline that starts with nothing.
NOWHERE: Final = World()

_AGENTS: Final = (AgentNode, AdkAgentNode, RemoteAgentNode)
_NOT_RUN: Final = (AppNode, MiddlewareNode, ModelSelectorNode, ResourceNode, TransferNode)
_PATH_END: Final = 6
_SEARCHES: Final = 10
_CANDIDATES: Final = 500
_NO_CODES: Final = frozenset[str]()


class Graph:
    """A pipeline as checkers see it; every operation is at most linear in its size.

    A node that stands in several places is one node with several parents, so a graph that shares
    its parts costs what its distinct parts cost.

    Args:
        root: The node that is checked.
        world: What is known of state around it, beside what it declares itself.

    Attributes:
        root: The node that is checked.
        boundary: The node whose contract is that of the whole.
        world: What is known of state around it.
        nodes: Every distinct node (by identity), parents first, in declared order.
        agents: Nodes that ADK finds by name: agents, and whatever a model may transfer to.
        named: Nodes that a transfer can lead to, by name.
    """

    __slots__ = (
        *("_allowed", "_kinds", "_parents", "_searches", "agents", "boundary"),
        *("_violations", "facts", "named", "nodes", "root", "world"),
    )

    def __init__(self, root: Node, world: World = NOWHERE) -> None:
        self.root: Node = root
        self.boundary: Node = boundary(root)
        self.world: World = world.within(self.boundary.contract)
        #: What checkers have computed of it, by a name of theirs.
        self.facts: dict[str, object] = {}
        self._parents: dict[int, list[Node]] = {id(root): []}
        self.nodes: tuple[Node, ...] = tuple(self._visit())
        self._kinds: dict[type[Node], list[Node]] = defaultdict(list)
        for node in self.nodes:
            self._kinds[type(node)].append(node)
        self._allowed: dict[int, frozenset[str]] | None = None
        self._searches = _SEARCHES
        self._violations: tuple[Violation, ...] | None = None
        self.agents: Mapping[str, list[Node]] = _by_name(self._agents())
        self.named: Mapping[str, list[Node]] = _by_name(
            node for node in self.nodes if not isinstance(node, _NOT_RUN)
        )

    def _visit(self) -> Iterator[Node]:
        parents, done, todo = self._parents, set[int](), [self.root]
        while todo:
            node = todo.pop()
            if id(node) in done:
                continue
            done.add(id(node))
            yield node
            below = node.children
            for child in below:
                parents.setdefault(id(child), []).append(node)
            todo.extend(reversed(below))

    def _agents(self) -> Iterator[Node]:
        delegates = {id(node) for agent in self.of(AgentNode) for node in agent.delegates}
        return (
            node
            for node in self.nodes
            if isinstance(node, _AGENTS)
            or (id(node) in delegates and not isinstance(bare(node), _AGENTS))
        )

    def of(self, kind: type[N]) -> list[N]:
        """The distinct nodes of a type, in declared order."""
        return [
            node
            for each, nodes in self._kinds.items()
            if issubclass(each, kind)
            for node in nodes
            if isinstance(node, kind)
        ]

    def parents(self, node: Node) -> tuple[Node, ...]:
        """The nodes directly above a node: one entry for each place where it stands."""
        return tuple(self._parents[id(node)])

    def shared(self) -> set[int]:
        """The ids of nodes that stand in several places."""
        return {key for key, above in self._parents.items() if len(above) > 1}

    def path(self, node: Node) -> str:
        """One way from the root to a node, as text; a long one is cut in the middle."""
        names: list[str] = []
        here: Node = node
        while len(names) < _PATH_END and here is not self.root:
            names.append(here.name)
            here = self._parents[id(here)][0]
        if here is not self.root:
            names.append("...")
        return " > ".join((self.root.name, *reversed(names)))

    def above(self, nodes: Iterable[Node]) -> set[int]:
        """The ids of some nodes and of everything they are part of."""
        found: set[int] = set()
        todo = list(nodes)
        while todo:
            node = todo.pop()
            if id(node) not in found:
                found.add(id(node))
                todo.extend(self._parents[id(node)])
        return found

    def reach(self, nodes: Iterable[Node]) -> list[Node]:
        """Some nodes and everything that may run while they do, transfers followed."""
        found: dict[int, Node] = {}
        todo = list(nodes)
        while todo:
            node = todo.pop()
            if id(node) in found:
                continue
            found[id(node)] = node
            todo.extend(node.children)
            if isinstance(node, TransferNode):
                todo.extend(self.named.get(node.target, ())[:1])
        return list(found.values())

    @property
    def violations(self) -> tuple[Violation, ...]:
        """The rules of legal IR that it breaks."""
        if self._violations is None:
            self._violations = tuple(verify(self.root))
        return self._violations

    def allowed(self, node: Node) -> frozenset[str]:
        """Codes of findings that are meant to be so at a node: its own, and those of all above.

        What stands around a part, such as its middlewares, is allowed what that part is.
        """
        if self._allowed is None:
            self._allowed = {}
            if any(each.contract is not None and each.contract.allow for each in self.nodes):
                for each in self.downwards():
                    self._allowed[id(each)] = self._allows(each, self._allowed)
        return self._allowed.get(id(node), _NO_CODES)

    def _allows(self, node: Node, known: Mapping[int, frozenset[str]]) -> frozenset[str]:
        around = isinstance(node, AppNode | MiddlewareNode)
        contract = boundary(node).contract if around else node.contract
        own = frozenset(contract.allow if contract else ())
        above = [known.get(id(each), _NO_CODES) for each in self._parents[id(node)]]
        return own.union(above[0].intersection(*above[1:])) if above else own

    def downwards(self) -> Iterator[Node]:
        """Every node, after all in which it stands."""
        waits = {id(node): len(self.parents(node)) for node in self.nodes}
        todo = [self.root]
        while todo:
            node = todo.pop()
            yield node
            for child in node.children:
                waits[id(child)] -= 1
                if waits[id(child)] == 0:
                    todo.append(child)

    def suggest(self, name: str) -> str | None:
        """The name of a node most like `name`; looks only at some in a graph with many mistakes."""
        if self._searches == 0:
            return None
        self._searches -= 1
        close = (known for known in self.named if abs(len(known) - len(name)) < 4)
        return nearest_name(name, islice(close, _CANDIDATES))


def bare(node: Node) -> Node:
    """A node without the middlewares around it."""
    while isinstance(node, MiddlewareNode):
        node = node.body
    return node


def _by_name(nodes: Iterable[Node]) -> dict[str, list[Node]]:
    names: dict[str, list[Node]] = {}
    for node in nodes:
        names.setdefault(node.name, []).append(node)
    return names

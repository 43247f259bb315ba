"""What content reaches which step, and by what way.

The conversation carries all parts of what was said; a state key and the result of a tool carry its
text alone. Only what agents declare is followed: who declares nothing, gives nothing here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from adk_fluent.contracts._streams._models import TEXTUAL
from adk_fluent.ir import (
    AdkAgentNode,
    AgentNode,
    AppNode,
    ContentSpec,
    FallbackNode,
    LoopNode,
    MapOverNode,
    MiddlewareNode,
    Modality,
    ParallelNode,
    RaceNode,
    RemoteAgentNode,
    RouteNode,
    SequenceNode,
    TimeoutNode,
    TransferNode,
    fold,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from adk_fluent.contracts._graph import Graph
    from adk_fluent.ir import Node

#: Kinds of content, each with one agent that gives it.
Kinds = dict[Modality, "Node"]
_SILENT: Final[Kinds] = {}


@dataclass(frozen=True, slots=True)
class _Said:
    """What a node says: in all, and as the output that the next step gets."""

    media: Kinds
    last: Kinds
    through: bool = False  # the output before it may still be the last one


@dataclass(slots=True)
class Heard:
    """What reaches a step.

    Attributes:
        media: What the conversation has beside text.
        last: The output of the step before it.
    """

    media: Kinds = field(default_factory=dict[Modality, "Node"])
    last: Kinds = field(default_factory=dict[Modality, "Node"])

    def add(self, media: Kinds, last: Kinds) -> bool:
        """Whether anything of it is new."""
        size = len(self.media) + len(self.last)
        self.media = {**media, **self.media}
        self.last = {**last, **self.last}
        return len(self.media) + len(self.last) > size


class Channels:
    """What reaches each step of a pipeline.

    Args:
        graph: The pipeline.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._said: dict[int, _Said] = {}
        fold(graph.root, self._say)
        self._heard: dict[int, Heard] = {id(graph.root): Heard()}
        self._spread()

    def heard(self, node: Node) -> Heard:
        """What reaches a node, wherever it stands."""
        return self._heard.get(id(node), Heard())

    def last(self, node: Node) -> Kinds:
        """The output of a node, as far as it is declared."""
        return self._said[id(node)].last

    # --- upwards: what is said -------------------------------------------------------------------

    def _say(self, node: Node, below: tuple[_Said, ...]) -> _Said:
        match node:
            case AgentNode():
                said = self._agent(node, below[-len(node.delegates) :] if node.delegates else ())
            case RemoteAgentNode():
                said = _united([_declared(node), *below])
            case AdkAgentNode() | TransferNode():
                said = _Said(_SILENT, _SILENT)
            case SequenceNode():
                said = _sequence(below)
            case RouteNode():
                said = _united(below, through=node.default is None)
            case MapOverNode():
                said = _united(below, through=True)
            case AppNode():
                said = below[0]
            case _ if below:
                said = _united(below)
            case _:
                said = _Said(_SILENT, _SILENT, through=True)
        self._said[id(node)] = said
        return said

    def _agent(self, node: AgentNode, delegates: Sequence[_Said]) -> _Said:
        own = _declared(node)
        return _united([own, *delegates]) if delegates else own

    # --- downwards: who hears it -----------------------------------------------------------------

    def _spread(self) -> None:
        todo: list[Node] = [self._graph.root]
        while todo:
            node = todo.pop()
            for child, media, last in self._below(node, self._heard[id(node)]):
                known = self._heard.get(id(child))
                if known is None:
                    known = self._heard[id(child)] = Heard()
                    known.add(media, last)
                    todo.append(child)
                elif known.add(media, last):
                    todo.append(child)

    def _below(self, node: Node, heard: Heard) -> Iterator[tuple[Node, Kinds, Kinds]]:
        match node:
            case SequenceNode():
                media, last = heard.media, heard.last
                for step in node.steps:
                    yield step, media, last
                    said = self._said[id(step)]
                    media = {**media, **said.media} if said.media else media
                    last = {**last, **said.last} if said.through else said.last
            case LoopNode():
                said = self._said[id(node.body)]
                yield node.body, {**heard.media, **said.media}, {**heard.last, **said.last}
            case AgentNode():
                own = _declared(node)
                for tool in node.agent_tools:  # it is called with text, and hears nothing else
                    yield tool, _SILENT, {Modality.TEXT: node}
                for each in node.delegates:
                    yield each, {**heard.media, **own.media}, {**heard.last, **own.last}
            case TransferNode():
                for target in self._graph.named.get(node.target, ())[:1]:
                    yield target, heard.media, heard.last
            case ParallelNode() | RaceNode() | RouteNode() | FallbackNode() | RemoteAgentNode():
                for each in node.children:
                    yield each, heard.media, heard.last
            case AppNode() | MiddlewareNode() | TimeoutNode() | MapOverNode():
                yield node.children[0], heard.media, heard.last
            case _:
                pass


def content_of(node: AgentNode | RemoteAgentNode) -> ContentSpec | None:
    """What it declares, unless that has no meaning, which is told elsewhere."""
    content: object = node.content
    if not isinstance(content, ContentSpec):
        return None
    kinds: list[object] = [*content.input_modalities, *content.output_modalities]
    return content if all(isinstance(each, Modality) for each in kinds) else None


def _declared(node: AgentNode | RemoteAgentNode) -> _Said:
    content = content_of(node)
    if content is None:
        return _Said(_SILENT, _SILENT)
    kinds: Kinds = dict.fromkeys(content.output_modalities, node)
    return _Said({kind: node for kind in kinds if kind not in TEXTUAL}, kinds)


def _united(several: Sequence[_Said], *, through: bool = False) -> _Said:
    media: Kinds = {}
    last: Kinds = {}
    for each in several:
        media |= each.media
        last |= each.last
    return _Said(media, last, through or any(each.through for each in several))


def _sequence(steps: Sequence[_Said]) -> _Said:
    media: Kinds = {}
    last: Kinds = {}
    through = True
    for step in steps:
        media |= step.media
        last = {**last, **step.last} if step.through else step.last
        through = through and step.through
    return _Said(media, last, through)

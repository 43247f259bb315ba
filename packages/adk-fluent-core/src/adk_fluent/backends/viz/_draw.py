"""From IR to a diagram: boxes, what comes after what, and how it is arranged."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adk_fluent._node_text import kind_word
from adk_fluent.backends._keys import keys_of, removed_by, surely_writes
from adk_fluent.backends.viz._data import data_links
from adk_fluent.backends.viz._diagram import Block, Column, Diagram, Link
from adk_fluent.backends.viz._fit import fitting
from adk_fluent.backends.viz._parts import shown_parts
from adk_fluent.backends.viz._pieces import MAX_KEYS, Drawn, Pieces
from adk_fluent.backends.viz._text import clean
from adk_fluent.backends.viz._words import (
    boundary_title,
    box_words,
    cluster_title,
    folded_words,
    hint,
    is_frame,
)
from adk_fluent.ir import (
    AgentNode,
    AppNode,
    FallbackNode,
    LoopNode,
    MapOverNode,
    Node,
    ParallelNode,
    RaceNode,
    RemoteAgentNode,
    RouteNode,
    TransferNode,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from adk_fluent.backends.viz._diagram import Box, DataLink
    from adk_fluent.backends.viz._fit import Limit
    from adk_fluent.backends.viz._parts import Limits, Part
    from adk_fluent.ir import ExecutionConfig

_FORKS: Final = (ParallelNode, RaceNode, RouteNode, FallbackNode)


def diagram(
    node: Node,
    config: ExecutionConfig | None = None,
    *,
    data_flow: bool = True,
    depth: Limit = "fit",
    max_nodes: Limit = "fit",
    notes: Callable[[Node], Iterable[str]] | None = None,
) -> Diagram:
    """The picture of a pipeline as data.

    Args:
        node: The pipeline.
        config: How it would be run; its `default_model` counts.
        data_flow: Show which step reads what which other step wrote to state.
        depth: Levels of composites that are shown; see `Options`.
        max_nodes: Boxes at most, beside start and end; see `Options`.
        notes: Given a node, more lines for its box; frames have none.
    """

    def draw(limits: Limits) -> Diagram:
        drawing = _Drawing(config, _inner(node), notes)
        return drawing.of(node, shown_parts(node, limits), data_flow=data_flow)

    return fitting(draw, depth, max_nodes)


def _inner(node: Node) -> Node:
    return node.root if isinstance(node, AppNode) else node


class _Drawing(Pieces):
    def __init__(
        self,
        config: ExecutionConfig | None,
        outermost: Node,
        notes: Callable[[Node], Iterable[str]] | None,
    ) -> None:
        super().__init__()
        self.config, self.outermost, self.notes = config, outermost, notes
        self.targets: dict[str, int] = {}
        self.transfers: list[tuple[int, str]] = []

    def of(self, node: Node, top: Part, *, data_flow: bool) -> Diagram:
        start = self.box(("start", "start", ()), None, ((), ()))
        drawn = self._parts(top)
        end = self.box(("end", "end", ()), None, ((), ()))
        whole = [self.alone(start), drawn, self.alone(end)]
        self.stack(whole)
        for source, target in self.transfers:
            if target in self.targets:
                self.links.append(Link(source, self.targets[target], "transfer", "hands over"))
        data = data_links(self.blocks, self.access)
        self._keep_keys_of_folded(data)
        return Diagram(
            clean(node.name),
            _summary(top, self.boxes),
            tuple(self.boxes),
            tuple(self.links),
            tuple(data) if data_flow else (),
            tuple(self.clusters),
            tuple(self.blocks),
            data_flow,
            self._heading(node),
        )

    def _heading(self, node: Node) -> str:
        name, kind = clean(node.name), kind_word(_inner(node))
        said = name == kind or any(box.title in (name, f"{kind} {name}") for box in self.boxes)
        return "" if said else name

    def _keep_keys_of_folded(self, data: list[DataLink]) -> None:
        """Leave out the keys of folded boxes that nothing else in the picture has to do with."""
        reads = {(each.target, each.key) for each in data if each.target != each.source}
        writes = {(each.source, each.key) for each in data if each.target != each.source}
        for at, box in enumerate(self.boxes):
            if box.kind == "folded":
                reads_here = tuple(key for key in box.reads if (at, key) in reads)
                writes_here = tuple(key for key in box.writes if (at, key) in writes)
                self.boxes[at] = replace(
                    box, reads=reads_here[:MAX_KEYS], writes=writes_here[:MAX_KEYS]
                )

    def _parts(self, top: Part) -> Drawn:
        """Draw parts before what they are part of, without recursion."""
        done: list[Drawn] = []
        todo: list[tuple[Part, int | None, _Open | None]] = [(top, None, None)]
        while todo:
            part, cluster, opened = todo.pop()
            if opened is not None:
                count = len(part.parts)
                parts = done[len(done) - count :]
                del done[len(done) - count :]
                done.append(self._close(part, opened, parts))
                continue
            opened = self._open(part, cluster)
            todo.append((part, cluster, opened))
            todo.extend((each, opened.cluster, None) for each in reversed(part.parts))
        return done[0]

    # --- one part ------------------------------------------------------------------------------

    def _open(self, part: Part, cluster: int | None) -> _Open:
        """Draw what comes before the parts of a part: frames, and its first box."""
        node, opened = part.node, _Open()
        if node is not None and node.boundary is not None:
            cluster = self.cluster("boundary", boundary_title(node.boundary), cluster)
            opened.frames.append(cluster)
        if node is not None and part.parts:
            title = cluster_title(node, outermost=node is self.outermost)
            if title is not None:
                cluster = self.cluster("part", title, cluster)
                opened.frames.append(cluster)
        opened.cluster = cluster
        if node is None or not (part.parts and is_frame(node)):
            opened.head = self._first_box(part, cluster)
            if node is not None:
                self.targets.setdefault(node.name, opened.head)
        return opened

    def _first_box(self, part: Part, cluster: int | None) -> int:
        node = part.node
        if node is None:
            return self.box(folded_words(None, part.hidden), cluster, part.keys)
        notes = () if self.notes is None else tuple(self.notes(node))
        if part.hidden and not isinstance(node, AgentNode | RemoteAgentNode):
            kind, title, lines = folded_words(node, part.hidden)
            words = (kind, title, (*lines, *notes))
            return self.box(words, cluster, part.keys, hint(node))
        kind, title, lines = box_words(node, self.config)
        hidden = (f"{part.hidden} steps below are not shown",) if part.hidden else ()
        words = (kind, title, (*lines, *hidden, *notes))
        sure, removes = surely_writes(node), None if part.parts else removed_by(node)
        box = self.box(words, cluster, keys_of(node), hint(node), sure=sure, removes=removes)
        if isinstance(node, TransferNode):
            self.transfers.append((box, node.target))
        return box

    def _close(self, part: Part, opened: _Open, parts: list[Drawn]) -> Drawn:
        node, head = part.node, opened.head
        if head is None:
            drawn = self.stack(parts)
            if node is not None:
                self.targets.setdefault(node.name, drawn.first)
        elif node is None or not parts:
            drawn = self.alone(head)
        elif isinstance(node, _FORKS):
            drawn = self._fork(part, node, head, opened, parts)
        elif isinstance(node, LoopNode | MapOverNode):
            drawn = self._around(node, head, opened, parts)
        elif isinstance(node, RemoteAgentNode):
            drawn = self._remote(node, head, opened, parts)
        else:
            drawn = self._helped(part, head, parts)
        for frame in reversed(opened.frames):
            framed = self.block(Block(stack=(self.one_stack(drawn),), cluster=frame))
            drawn = Drawn((framed,), drawn.first, drawn.last)
        return drawn

    def _fork(self, part: Part, node: Node, head: int, opened: _Open, parts: list[Drawn]) -> Drawn:
        """Branches between the box where they begin and the one where they end."""
        tail = self.tail(node, opened.cluster)
        columns = [
            self.column(head, tail, drawn, shown.role)
            for drawn, shown in zip(parts, part.parts, strict=True)
        ]
        if isinstance(node, RouteNode) and node.default is None:
            columns.append(Column(None, self.link(head, tail, "flow", "otherwise")))
        meets = "all" if isinstance(node, ParallelNode) and node.merge == "wait_all" else "one"
        return self.between(head, Block(columns=tuple(columns), meets=meets), tail)

    def _remote(self, node: RemoteAgentNode, head: int, opened: _Open, parts: list[Drawn]) -> Drawn:
        tail = self.tail(node, opened.cluster)
        past = Column(None, self.link(head, tail))
        instead = self.column(head, tail, parts[0], "if that fails")
        return self.between(head, Block(columns=(past, instead), meets="maybe"), tail)

    def _around(self, node: Node, head: int, opened: _Open, parts: list[Drawn]) -> Drawn:
        """A body between two boxes; a loop leads back."""
        tail = self.tail(node, opened.cluster)
        drawn = self.stack([self.alone(head), *parts, self.alone(tail)])
        if isinstance(node, LoopNode):
            (block,) = drawn.blocks
            back = self.link(tail, head, "again", "again")
            self.blocks[block] = Block(stack=self.blocks[block].stack, back=back)
        return drawn

    def _helped(self, part: Part, head: int, parts: list[Drawn]) -> Drawn:
        """An agent with those it may call, or a node of a kind that only another wheel knows."""
        columns = [Column(None, None)]
        for drawn, shown in zip(parts, part.parts, strict=True):
            link = self.link(head, drawn.first, "calls", shown.role)
            columns.append(Column(self.one_stack(drawn), link))
        bank = self.block(Block(columns=tuple(columns), meets="maybe"))
        return Drawn((*self.alone(head).blocks, bank), head, head)


class _Open:
    """A part that is begun: its frames, outermost first, and its first box."""

    __slots__ = ("cluster", "frames", "head")

    def __init__(self) -> None:
        self.frames: list[int] = []
        self.cluster: int | None = None
        self.head: int | None = None


def _summary(top: Part, boxes: list[Box]) -> str:
    shown, hidden, todo = 0, 0, [top]
    while todo:
        part = todo.pop()
        shown, hidden = shown + (part.node is not None), hidden + part.hidden
        todo.extend(part.parts)
    said = f"A pipeline of {shown} steps" + (f" and {hidden} that are not shown" if hidden else "")
    names = [*dict.fromkeys(each.title for each in boxes if each.kind in ("agent", "remote"))]
    listed = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return clean(f"{said}; agents: {listed}." if names else f"{said}.")

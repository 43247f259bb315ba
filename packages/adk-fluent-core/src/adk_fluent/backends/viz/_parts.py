"""Which parts of a pipeline a picture shows, and which it folds into one box."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adk_fluent._node_text import below
from adk_fluent.backends._keys import keys_of, tail_keys
from adk_fluent.backends.viz._words import is_frame, own_boxes
from adk_fluent.ir import MapOverNode, Node, fold

if TYPE_CHECKING:
    from adk_fluent.backends._keys import Keys


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is shown; None is all.

    Attributes:
        depth: Levels of composites.
        boxes: Boxes, beside start and end.
        row: Branches beside each other.
    """

    depth: int | None
    boxes: int | None
    row: int | None = None


class Part:
    """A place of the pipeline: a node where it stands, or what is left out of a long row.

    Attributes:
        node: What stands here; None for what is left out.
        role: When it runs, in words, where its parent tells (``topic == 'billing'``).
        depth: Composites around it.
        parts: What it is made of, as far as it is shown.
        hidden: Steps in it that are not shown.
        keys: Of what is hidden, the state keys.
    """

    __slots__ = ("depth", "hidden", "keys", "node", "parts", "role")

    def __init__(self, node: Node | None, role: str, depth: int) -> None:
        self.node, self.role, self.depth = node, role, depth
        self.parts: list[Part] = []
        self.hidden = 0
        self.keys: Keys = ((), ())


def shown_parts(root: Node, limits: Limits) -> Part:
    """The places of a pipeline, level by level, until the picture is full.

    A node that stands in several places is a part of its own in each of them.
    """
    top = Part(root, "", 0)
    hiding = _Hiding(root)
    room = float("inf") if limits.boxes is None else max(1, limits.boxes) - 1
    todo = deque([top])
    outermost = True  # until there are several parts: a row that stands for all is cut, not folded
    while todo:
        part = todo.popleft()
        if part.node is None or not (parts := below(part.node)):
            continue
        if limits.depth is not None and part.depth >= limits.depth:
            hiding.fold(part)
            continue
        most = None if is_frame(part.node) else limits.row
        left_out = len(parts) - most + 1 if most is not None and len(parts) > most else 0
        cost = len(parts) - left_out + bool(left_out) + own_boxes(part.node) - 1
        if cost > room:
            left_out += int(cost - room) + (not left_out)
            cost = room
            if not outermost or left_out >= len(parts):
                hiding.fold(part)
                continue
        outermost = outermost and len(parts) == 1
        room -= cost
        kept = parts[: len(parts) - left_out]
        part.parts = [Part(node, role, part.depth + 1) for role, node in kept]
        if left_out:
            part.parts.append(hiding.rest([node for _, node in parts[len(kept) :]], part.depth))
        todo.extend(part.parts)
    return top


class _Hiding:
    """Counts what is hidden, and gathers its keys; each distinct node once."""

    def __init__(self, root: Node) -> None:
        self._root = root
        self._sizes: dict[int, int] = {}
        self._keys: dict[int, Keys] = {}

    def fold(self, part: Part) -> None:
        """Hide everything below a part."""
        assert part.node is not None  # noqa: S101  # what is left out is never taken apart
        part.hidden = self._size(part.node) - 1
        part.keys = self._keys_in(part.node)

    def rest(self, nodes: list[Node], depth: int) -> Part:
        """One part for the end of a long row."""
        part = Part(None, "", depth + 1)
        part.hidden = sum(self._size(node) for node in nodes)
        part.keys = _joined([self._keys_in(node) for node in nodes])
        return part

    def _size(self, node: Node) -> int:
        if not self._sizes:
            fold(self._root, self._count)
        return self._sizes[id(node)]

    def _count(self, here: Node, sizes: tuple[int, ...]) -> int:
        size = self._sizes[id(here)] = 1 + sum(sizes)
        return size

    def _keys_in(self, root: Node) -> Keys:
        if id(root) not in self._keys:
            found: list[Keys] = []
            items: set[str] = set()
            todo, seen = [root], set[int]()
            while todo:
                node = todo.pop()
                if id(node) not in seen:
                    seen.add(id(node))
                    found += (keys_of(node), tail_keys(node))
                    todo.extend(reversed(node.children))
                    if isinstance(node, MapOverNode):
                        items.add(node.item_key)  # nobody outside of the map sees it
            reads, writes = _joined(found)
            self._keys[id(root)] = (
                tuple(key for key in reads if key not in items),
                tuple(key for key in writes if key not in items),
            )
        return self._keys[id(root)]


def _joined(found: list[Keys]) -> Keys:
    reads = dict.fromkeys(key for keys in found for key in keys[0])
    writes = dict.fromkeys(key for keys in found for key in keys[1])
    return tuple(reads), tuple(writes)

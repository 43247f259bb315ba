"""A strand: one line of control with its own stack of frames.

Frames are plain data, flat and JSON-shaped, one a node of the stack: ``{"c": which child of the
frame above, ...position...}``. The nodes themselves are found again by following ``c``, so a frame
names no node and a journal stays valid as long as the structure does.
"""

from __future__ import annotations

import asyncio
from collections import ChainMap
from math import inf
from typing import TYPE_CHECKING, Any

from adk_fluent.ir import (
    FallbackNode,
    LoopNode,
    MapOverNode,
    MiddlewareNode,
    Node,
    ParallelNode,
    RaceNode,
    RouteNode,
    SequenceNode,
    TimeoutNode,
    TransferNode,
)
from adk_fluent.protocol._answer import compose_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from adk_fluent.flow._log import Isolation, Scope

Frame = dict[str, Any]

#: Node type to the letter of its positions and the frame's key that holds the position.
POSITIONS: dict[type[Node], tuple[str, str]] = {
    SequenceNode: ("s", "i"),
    LoopNode: ("l", "n"),
    RouteNode: ("r", "p"),
    FallbackNode: ("f", "i"),
    TransferNode: ("x", "i"),
    ParallelNode: ("p", "i"),
    RaceNode: ("w", "i"),
    MapOverNode: ("m", "i"),
    TimeoutNode: ("t", "i"),
    MiddlewareNode: ("a", "i"),
}


#: Nodes that arrange others.
ARRANGEMENTS: frozenset[type[Node]] = frozenset(POSITIONS) - {TransferNode, MiddlewareNode}


def is_race(node: Node) -> bool:
    """Whether only the first branch to succeed counts."""
    return isinstance(node, RaceNode) or (
        isinstance(node, ParallelNode) and node.merge == "first_complete"
    )


class Life:
    """Whether anybody waits for what a task does."""

    __slots__ = ("over",)

    def __init__(self) -> None:
        self.over: bool = False


class Heard:
    """What a step says and writes while it runs.

    Attributes:
        delta: What it has written so far.
    """

    __slots__ = ("_texts", "delta")

    def __init__(self) -> None:
        self.delta: dict[str, Any] = {}
        self._texts: list[tuple[str, str, frozenset[str]]] = []

    def take(self, delta: Mapping[str, Any] | None, path: str, text: str, attempt: str) -> None:
        """Take in one event."""
        self.delta.update(delta or {})
        if text:
            self._texts.append((path, text, frozenset(attempt.split("."))))

    def discard(self, scopes: Iterable[str]) -> None:
        """Nothing that was said in these scopes counts any more."""
        gone = frozenset(scopes)
        self._texts = [each for each in self._texts if each[2].isdisjoint(gone)]

    def merge(self, other: Heard) -> None:
        """Take in what a step inside this one said and wrote."""
        self.delta.update(other.delta)
        self._texts += other._texts

    @property
    def text(self) -> str:
        """The answer."""
        if len(self._texts) == 1:  # as that of nearly every agent
            return self._texts[0][1]
        return compose_answer((path, text) for path, text, _ in self._texts)


class Strand:
    """One line of control. The main strand runs in the caller, every other one in its own task.

    Attributes:
        id: Its id in the journal.
        frames: Its stack, outermost first.
        nodes: The nodes of the frames.
        parent: The strand that forked it.
        scope: The innermost open scope, or None.
        isolation: The snapshot it works on, or None when it sees shared state.
        muted: Its partial events are not forwarded (it may lose a race).
        outcome: How it ended.
        busy: The step where it stands has begun.
        written: The last event it committed says where it stands, if a journal is kept.
        within: Its first step is the one where its parent stands, inside what is around that.
        depth: How many steps with something around them it is inside of.
        life: Whether anybody waits for what its task does.
        heard: Takes in what is said and written in it, if anybody wants to know.
        segment: Its own part of the branch name.
        deadline: When the nearest timeout around it strikes, on the event loop's clock.
    """

    __slots__ = (
        "_prefix",
        "_state",
        "_view",
        "busy",
        "deadline",
        "depth",
        "frames",
        "heard",
        "id",
        "isolation",
        "life",
        "muted",
        "nodes",
        "outcome",
        "parent",
        "scope",
        "segment",
        "within",
        "written",
    )

    def __init__(
        self,
        id: str,
        frames: list[Frame],
        nodes: list[Node],
        state: Mapping[str, Any],
        *,
        parent: Strand | None = None,
        position: str = "",
        segment: str = "",
        scope: Scope | None = None,
        isolation: Isolation | None = None,
        muted: bool = False,
        within: bool = False,
        life: Life | None = None,
        deadline: float = inf,
    ) -> None:
        self.id: str = id
        self.frames: list[Frame] = frames
        self.nodes: list[Node] = nodes
        self.parent: Strand | None = parent
        self.scope: Scope | None = scope
        self.isolation: Isolation | None = isolation
        self.muted: bool = muted
        self.outcome: Any = None
        self.life: Life = life or Life()
        self.busy: bool = False
        self.written: bool = False
        self.within: bool = within
        self.depth: int = parent.depth + 1 if parent is not None and within else 0
        self.heard: Heard | None = None if parent is None else parent.heard
        self.deadline: float = deadline if parent is None else min(deadline, parent.deadline)
        self.segment: str = segment
        self._state = state
        self._view: Mapping[str, Any] | None = None
        self._prefix = position if parent is None else _join(parent.path, position)

    @property
    def state(self) -> Mapping[str, Any]:
        """State as this strand sees it."""
        if self.isolation is None:
            return self._state
        if self._view is None:
            self._view = ChainMap(self.isolation.writes, self.isolation.base)
        return self._view

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits any more for what it does; it goes no step further."""
        return self.life.over

    @property
    def is_apart(self) -> bool:
        """Whether it runs beside others: it is a branch, or part of one."""
        here: Strand = self
        while here.parent is not None:
            if not here.within:
                return True
            here = here.parent
        return False

    @property
    def overdue(self) -> bool:
        """Whether a timeout around it ought to have struck."""
        return self.deadline != inf and self.deadline < asyncio.get_running_loop().time()

    @property
    def path(self) -> str:
        """Where the strand stands: dotted positions such as ``s2.p1.l0``."""
        parts = [self._prefix] if self._prefix else []
        nodes, frames = self.nodes, self.frames
        for at in range(len(frames) - 1):
            letter_key = POSITIONS.get(type(nodes[at]))
            if letter_key is not None:
                letter, key = letter_key
                parts.append(f"{letter}{frames[at].get(key, 0)}")
        return ".".join(parts)

    @property
    def start(self) -> str:
        """The position at which it begins."""
        return self._prefix

    @property
    def branch(self) -> str | None:
        """The branch in ADK's sense: forks and branches by name, outermost first."""
        out: list[str] = []
        here: Strand | None = self
        while here is not None:
            if here.segment:
                out.append(here.segment)
            here = here.parent
        return ".".join(reversed(out)) or None

    @property
    def attempt(self) -> str | None:
        """The open scopes it works in, dotted; None when nothing it does can be discarded."""
        return None if self.scope is None else self.scope.path()

    def around(self) -> Iterator[Node]:
        """The nodes on the stack, here and in the strands above, the step first."""
        here: Strand | None = self
        while here is not None:
            yield from reversed(here.nodes)
            here = here.parent

    def inside(self, test: Callable[[Node], bool]) -> bool:
        """Whether the test holds of a node on the stack, here or in a strand above."""
        return any(map(test, self.around()))

    @property
    def part(self) -> str:
        """The segment of the step where it stands: the nearest step with an execution boundary.

        "" is what stands outside of every boundary.
        """
        return next((node.name for node in self.around() if node.boundary is not None), "")

    @property
    def is_beside_others(self) -> bool:
        """Whether it is, or stands in, a branch or an item that may run beside others."""
        above = self.parent
        while above is not None:
            if isinstance(above.nodes[-1], ParallelNode | MapOverNode):
                return True
            above = above.parent
        return False

    def push(self, child: int, node: Node) -> None:
        """Go down to a child."""
        self.frames.append({"c": child})
        self.nodes.append(node)

    def pop(self) -> None:
        """Go back up."""
        self.frames.pop()
        self.nodes.pop()


def _join(prefix: str, position: str) -> str:
    return f"{prefix}.{position}" if prefix and position else prefix or position

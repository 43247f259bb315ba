"""A run's state: where its strands stand, what can be undone, and what is promised of its writes.

Rules, forks and what stands around steps work on it. It knows none of them, and gets strands
driven by `RunState.drive`, which the engine on top of them all defines.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic

from adk_fluent.flow._commit import Commit, Parcel
from adk_fluent.flow._ending import is_attempting
from adk_fluent.flow._failures import Remembered
from adk_fluent.flow._limit import fit, limited
from adk_fluent.flow._log import Scope, UndoLog
from adk_fluent.flow._port import E, Leaf, Note, Order, Watch
from adk_fluent.flow._position import ENDED, INSIDE, below, enclose, new_id, new_position, open_up
from adk_fluent.flow._promises import NO_REDUCERS
from adk_fluent.flow._strand import POSITIONS, Frame, Life, Strand
from adk_fluent.flow._targets import Targets
from adk_fluent.ir import Node, TransferNode

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from adk_fluent.flow._position import Journaled, OnStep, Position
    from adk_fluent.flow._promises import Promises
    from adk_fluent.ir import Ref


class RunState(ABC, Generic[E]):
    """The state of one run, and what may be done with it; see `Engine`."""

    def __init__(
        self,
        root: Node,
        leaf: Leaf[E],
        *,
        position: Position | None,
        on_step: OnStep | None,
        journal: Journaled | None,
        keeps_failures: bool,
        watch: Watch | None,
        encloses: Callable[[Node], bool] | None,
        order: Order | None,
        limit: float | None,
        promises: Promises | None,
    ) -> None:
        self.root: Node = root if limit is None else limited(root, limit)
        self.limit: Node | None = None if limit is None else self.root
        self.leaf = leaf
        self.position: Position = new_position() if position is None else position
        open_up(self.position)
        fit(self.position, limit=limit is not None)
        self.log: UndoLog = UndoLog(self.position, leaf.state)
        self.failed_at: Position | None = None
        self._on_step = on_step
        self._journal = journal
        self._keeps_failures = keeps_failures
        self._watch = watch
        self._encloses = encloses
        self._order = order
        self.promises: Promises | None = promises
        self.queue: asyncio.Queue[Parcel[E] | None] = asyncio.Queue()
        self.errors: Remembered = Remembered(self.position)
        self._targets: Targets | None = None

    @abstractmethod
    def drive(self, s: Strand) -> AsyncGenerator[Commit[E], None]:
        """Run one strand to its end, yielding what it commits."""

    async def hand_in(self, commit: Commit[E], life: Life | None = None) -> None:
        """Give a commit to whoever drives the engine, and wait until it is committed."""
        if self._order is not None and commit.strand is not None and commit.strand.is_apart:
            await self._order.turn(commit.strand, commit.event)
        parcel = Parcel(commit)
        self.queue.put_nowait(parcel)
        await parcel.delivered(life)

    async def branch_over(self, node: Node, branch: Strand, *, decides: bool) -> None:
        """Let a branch of a fork end, and maybe the fork with it."""
        if self._order is not None:
            await self._order.ended(node, branch, decides=decides)

    @property
    def keeps_time(self) -> bool:
        """Whether somebody else than the clock says when a timeout strikes."""
        return self._order is not None and self._order.keeps_time

    async def time_is_up(self, node: Node, strand: Strand) -> None:
        """Wait until a timeout strikes, as somebody else than the clock says."""
        if self._order is not None:
            await self._order.time_is_up(node, strand)

    def note_expired(self, node: Node, strand: Strand) -> None:
        """Say that a timeout has struck."""
        if self._order is not None:
            self._order.expired(node, strand)

    # --- what rules may do ---------------------------------------------------------------------

    def open_scope(self, strand: Strand, frame: Frame) -> None:
        """From here on, what the strand does can be discarded."""
        frame["scope"] = new_id(self.position)
        strand.scope = self.log.enter(frame["scope"], strand.scope, strand.isolation)

    def close_scope(self, strand: Strand, frame: Frame) -> None:
        """What the strand did since then stays."""
        scope = self.log.open[frame.pop("scope")]
        strand.scope = scope.parent
        self.log.settle(scope)

    def discard(self, strand: Strand, scopes: list[Scope]) -> None:
        """What was done in these scopes never happened."""
        self.log.discard(scopes)
        if strand.heard is not None:
            strand.heard.discard(scope.id for scope in scopes)
        if self._watch is not None and scopes:
            self._watch.discarded(strand.nodes[-1], strand, [scope.id for scope in scopes])

    def abandon(self, frame: Frame, *, close: bool = False) -> None:
        """Forget where everything below a frame stands that did not end.

        Args:
            frame: The frame of a fork that is over, or of a step that is begun anew.
            close: Whether its scopes are closed, too, and what was written in them stays.
        """
        if "strands" not in frame and INSIDE not in frame:  # as that of nearly every step
            return
        todo, scopes = [frame], list[str]()
        while todo:
            above = todo.pop()
            for id in below(above):
                frames = self.position["strands"].pop(id)
                todo.extend(frames)
                for each in frames if close else ():
                    scopes.extend(each.get("scopes", {}).values())
                    scopes.extend([each["scope"]] if "scope" in each else ())
        for id in scopes:
            if (scope := self.log.open.get(id)) is not None:
                self.log.settle(scope)

    # --- what is promised about state ----------------------------------------------------------

    def reducers(self, strand: Strand) -> Mapping[str, Ref]:
        """What makes one value of those that several branches wrote, by key."""
        return NO_REDUCERS if self.promises is None else self.promises.reducers(strand)

    def kept(self, s: Strand, node: Node, delta: Mapping[str, Any]) -> Mapping[str, Any]:
        """A write of the engine's own as it is stored.

        Raises:
            StateTypeError: A state schema does not allow it.
            UnstorableValueError: Sessions cannot keep it.
        """
        if self.promises is not None and self.promises.guards:
            delta = self.promises.kept(delta, node, s)
        self.leaf.check(node, delta)
        return delta

    def keep(self, s: Strand, node: Node, event: E, author: str | None = None) -> None:
        """Let an event write what is stored of what it says.

        Args:
            s: Where the step stands.
            node: The step.
            event: The event, which is not committed yet.
            author: Who has made it, if that may be an agent below the step.

        Raises:
            StateTypeError: A state schema does not allow it.
        """
        if self.promises is None or not self.promises.guards:
            return
        facts = self.leaf.facts(event)
        if facts is not None and facts.delta and not facts.partial:
            self.leaf.attach(event, self.promises.kept(facts.delta, node, s, author))

    # --- who watches ---------------------------------------------------------------------------

    def failed(self, s: Strand, error: Exception) -> Exception:
        """Tell of the failure of the step where a strand stands, and give it back."""
        if self._watch is not None:
            self._watch.failed(s.nodes[-1], s, error)
        return error

    def ends_run(self, s: Strand) -> bool:
        """Whether a failure of the step where a strand stands ends the run, and can be mended.

        Then every strand stays where it is, at steps that are to be done once more. Elsewhere
        something else is tried, and the failure is part of the run.
        """
        if not self._keeps_failures or s.inside(is_attempting):
            return False
        self.failed_at = self.position
        return True

    def cut_off(self, s: Strand, error: BaseException) -> None:
        """Tell of the step in which a strand was ended; arrangements only wait for theirs."""
        if self._watch is not None and s.busy and type(s.nodes[-1]) not in POSITIONS:
            self._watch.failed(s.nodes[-1], s, error)

    # --- what is written down ------------------------------------------------------------------

    def checkpoint(self, s: Strand) -> Commit[E]:
        """The event that writes the position down where no other one does."""
        node = s.nodes[-1] if s.nodes else self.root
        return Commit(self.leaf.write(node, s, {}, Note("journal")), after=_nothing)

    def journals_apart(self, s: Strand) -> bool:
        """Whether a strand that got further needs an event of its own that says so."""
        return self._journal is not None and not s.written

    async def stepped(self) -> None:
        """Tell whoever wants to know that the position has changed."""
        if self._on_step is not None:
            await self._on_step(self.position)

    # --- finding one's way ---------------------------------------------------------------------

    def scopes(self, frame: Frame) -> dict[int, Scope]:
        """The scopes of a fork's children, in declared order."""
        ids: dict[str, str] = frame["scopes"]
        found = {int(index): self.log.open.get(id) for index, id in ids.items()}
        return {index: scope for index, scope in sorted(found.items()) if scope is not None}

    def is_enclosed(self, node: Node) -> bool:
        """Whether something stands around a step."""
        encloses = self._encloses
        return encloses is not None and node is not self.limit and encloses(node)

    def strand(self, id: str, root: Node, *, parent: Strand | None, **kwargs: Any) -> Strand:
        """A strand from the journal: its nodes by following positions, its scopes opened again."""
        frames: list[Frame] = self.position["strands"][id]
        nodes: list[Node] = []
        for index, frame in enumerate(frames):
            node = self.child(nodes[-1], frame["c"]) if nodes else root
            nodes.append(node)
            begun = index + 1 < len(frames) or frame.keys() - {"c"}
            own = index == 0 and kwargs.get("within", False)
            begun = begun and ENDED not in frame
            if begun and not own and self.is_enclosed(node):
                enclose(self.position, frames, index)
                break
        s = Strand(id, frames, nodes, self.leaf.state, parent=parent, **kwargs)
        for frame in frames:
            if (scope := frame.get("scope")) is not None:
                s.scope = self.log.enter(scope, s.scope, s.isolation)
        return s

    def child(self, node: Node, index: int) -> Node:
        """A child of a node; of a transfer, the node that it hands over to."""
        if not isinstance(node, TransferNode):
            return node.children[index]
        if self._targets is None:
            self._targets = Targets(self.root)
        return self._targets.of(node)


def _nothing() -> None:
    """What becomes true by a checkpoint: nothing that was not true before."""

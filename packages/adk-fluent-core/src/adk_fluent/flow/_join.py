"""How the branches of a fork come together: declared order, or a winner and its losers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent.flow._log import PERMANENT, Scope, differs
from adk_fluent.flow._promises import reduced
from adk_fluent.ir import MapOverNode, Node

if TYPE_CHECKING:
    from adk_fluent.flow._run_state import RunState
    from adk_fluent.flow._strand import Frame, Strand


class Join:
    """The end of a parallel or map: what its branches wrote counts in declared order.

    `delta` is what must still be written for that, `committed` closes the branches' scopes. Of what
    the items of a map wrote, only what reducers join and what is never undone is there afterwards.

    Attributes:
        failed: Scopes of items that failed and did not end the map.
    """

    def __init__(self, run_state: RunState[Any], strand: Strand, frame: Frame, node: Node) -> None:
        self.run_state = run_state
        self.strand = strand
        self.frame = frame
        self.node = node
        self.final: dict[str, Any] = {}
        self.written: dict[str, Any] = {}
        self.failed: list[Scope] = []
        self._items = isinstance(node, MapOverNode) and not frame.get("errors")
        if self._items:
            scopes = run_state.scopes(frame)
            self.failed = [scope for at, scope in scopes.items() if has_failed(frame, at)]

    def delta(self) -> dict[str, Any]:
        """The write that restores declared order, and the results of a map; {} after a failure.

        Raises:
            StateTypeError: A state schema does not allow it.
            UnstorableValueError: Sessions cannot keep it.
            Exception: What a reducer raised.
        """
        if self.frame.get("errors"):
            return {}
        newest: dict[str, list[Any]] = {}
        order: dict[str, int] = {}
        reducers = self.run_state.reducers(self.strand)
        several: dict[str, list[Any]] = {}
        for scope in self.run_state.scopes(self.frame).values():
            for key, entry in scope.final().items():
                if key not in newest or newest[key][0] < entry[0]:
                    newest[key] = entry
                lasts = key.startswith(PERMANENT) or (key in reducers and scope not in self.failed)
                if self._items and not lasts:
                    continue
                order[key], self.final[key] = entry
                if key in reducers and entry[1] is not None:  # which is as good as absent
                    several.setdefault(key, []).append(entry[1])
        # not what is live: a fork beside this one may have written the same in the meantime
        self.written = {
            key: value
            for key, value in self.final.items()
            if order[key] != newest[key][0] and differs(newest[key][1], value)
        }
        for key, values in several.items():
            value = values[0] if len(values) == 1 else reduced(key, reducers[key], values)
            self._take(key, value, newest[key][1])
        if isinstance(self.node, MapOverNode):
            self.written.update(_results(self.node, self.frame))
        if self.written:
            self.written = dict(self.run_state.kept(self.strand, self.node, self.written))
        return self.written

    def _take(self, key: str, value: Any, now: Any) -> None:
        """Let what a reducer made count, and not what a branch wrote, which is there now."""
        self.final[key] = value
        self.written.pop(key, None)
        if differs(now, value):
            self.written[key] = value

    def undo(self) -> dict[str, Any]:
        """The write that takes back what was written for the items alone."""
        if not self._items:
            return {}
        undone = self.run_state.log.compensation(self.run_state.scopes(self.frame).values())
        return {key: value for key, value in undone.items() if key not in self.final}

    def committed(self) -> None:
        """What the branches wrote is now the strand's own."""
        log, strand = self.run_state.log, self.strand
        self.run_state.discard(strand, self.failed)
        for scope in self.run_state.scopes(self.frame).values():
            log.settle(scope, self.final if self._items else None)
        if strand.isolation is not None:
            strand.isolation.writes.update(self.final)
        if strand.scope is not None and self.written:
            log.record(strand.scope, self.written)


def has_failed(frame: Frame, index: int) -> bool:
    """Whether a child of a fork ended with an error."""
    return frame["done"].get(str(index), "").startswith("!")


def _results(node: MapOverNode, frame: Frame) -> dict[str, Any]:
    """What a map writes: its results, and beside them the errors that it collects."""
    results, items = frame["results"], range(len(frame["items"]))
    if node.on_error == "skip":
        items = [at for at in items if not has_failed(frame, at)]
    written: dict[str, Any] = {node.output_key: [results.get(str(at)) for at in items]}
    if node.errors_key is not None:
        written[node.errors_key] = [_error(frame, at) for at in items]
    return written


def _error(frame: Frame, index: int) -> dict[str, str] | None:
    if not has_failed(frame, index):
        return None
    code, _, message = frame["done"][str(index)][1:].partition(": ")
    return {"code": code, "message": message}


class RaceEnd:
    """The end of a race: the winner's writes are the strand's own, the losers' never happened.

    Attributes:
        losers: Scopes of the branches that lost.
    """

    def __init__(self, run_state: RunState[Any], strand: Strand, frame: Frame) -> None:
        scopes = run_state.scopes(frame)
        self.run_state = run_state
        self.strand = strand
        self.winner: Scope | None = scopes.get(frame.get("won", -1))
        self.losers = [scope for scope in scopes.values() if scope is not self.winner]

    def delta(self) -> dict[str, Any]:
        """The write that undoes the losers."""
        return self.run_state.log.compensation(self.losers)

    def committed(self) -> None:
        """Forget the losers, keep the winner."""
        self.run_state.discard(self.strand, self.losers)
        winner, isolation = self.winner, self.strand.isolation
        if winner is None:
            return
        if isolation is not None:
            isolation.writes.update({key: entry[1] for key, entry in winner.final().items()})
        self.run_state.log.settle(winner)

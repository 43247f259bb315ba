"""How the run of a leaf ends, told from its events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.errors import AgentReportedError, OutputMissingError
from adk_fluent.flow._signals import ESCALATE, OK, PAUSE, STOP, Signal
from adk_fluent.flow._strand import is_race
from adk_fluent.ir import AgentNode, FallbackNode, LoopNode, MapOverNode, Node, RemoteAgentNode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adk_fluent.flow._port import Facts
    from adk_fluent.flow._strand import Frame, Strand


class Ending:
    """The signal with which a leaf ends; the gravest of its events counts.

    A leaf owes the keys that it declares to write, unless it waits, hands over or leaves the loop.
    A tool that gives a key None takes its value away, and has not written it.

    Args:
        strand: Where it runs.
        node: The leaf.
        frame: Its frame; keys that it wrote before it waited are kept there.
        open: Calls of an earlier run of it that still wait.

    Attributes:
        signal: ``OK``, ``ESCALATE``, ``PAUSE``, ``STOP`` or an exception.
        waits: Calls that wait for an answer from outside: call id to the kind of the question.
    """

    __slots__ = (
        *("_by_tools", "_error", "_excused", "_frame", "_node", "_owed", "_strand"),
        *("signal", "waits"),
    )

    def __init__(self, strand: Strand, node: Node, frame: Frame, open: Mapping[str, str]) -> None:
        self.signal: Signal | Exception = OK
        self.waits: dict[str, str] = dict(open)
        self._strand, self._node, self._frame = strand, node, frame
        self._owed = _declared(node)
        tools = node.tool_writes if isinstance(node, AgentNode) else ()
        self._by_tools = [ref.key for ref in tools] if tools else ()
        if "wrote" in frame:
            self._owed.difference_update(frame["wrote"])
        self._excused = False
        self._error: str | None = None

    def take(self, facts: Facts) -> None:
        """Take in one event."""
        if self._owed and facts.delta:
            self._owed.difference_update(facts.delta)
        if self._by_tools and facts.delta:
            self._owed.update(key for key in self._by_tools if facts.delta.get(key, key) is None)
        self._excused = self._excused or facts.escalate or facts.transfers
        self._error = facts.error or self._error
        self.waits.update(facts.waits or {})
        for call in facts.settled:
            self.waits.pop(call, None)
        if isinstance(self.signal, Exception):
            return
        if facts.error and self._strand.inside(is_attempting):
            self.signal = _reported(self._node, facts.error)
        elif facts.stop or self.signal is STOP:
            self.signal = STOP
        elif facts.escalate and self._strand.inside(_is_loop):
            self.signal = ESCALATE

    def end(self) -> None:
        """The leaf has come to its end by itself."""
        frame = self._frame
        if isinstance(self.signal, Exception):  # who runs it once more has its answers still
            return
        if self.waits:
            frame["waits"] = self.waits
            if written := _declared(self._node) - self._owed:
                frame["wrote"] = sorted(written)
            self.signal = PAUSE
            return
        frame.pop("waits", None)
        if self._owed and self.signal is OK and not self._excused:
            self.signal = _missing(self._node, sorted(self._owed), self._error)


def _declared(node: Node) -> set[str]:
    """The keys that an agent says it writes."""
    if isinstance(node, AgentNode):
        refs = (*node.writes_keys, *node.tool_writes)
    else:
        refs = node.writes_keys if isinstance(node, RemoteAgentNode) else ()
    return {ref.key for ref in refs} if refs else set()


def is_attempting(node: Node) -> bool:
    """Whether a failure below a node need not be one of the run."""
    if isinstance(node, MapOverNode):
        return node.on_error != "raise"
    return isinstance(node, FallbackNode) or is_race(node)


def _is_loop(node: Node) -> bool:
    return isinstance(node, LoopNode)


def _reported(node: Node, error: str) -> AgentReportedError:
    code, _, message = error.partition(": ")
    return AgentReportedError(
        f"{node.name} reported an error: {error}",
        error_code=code,
        error_message=message,
        node=node,
        help="change what the model was asked or which model it is, or add one more attempt",
    )


def _missing(node: Node, keys: list[str], error: str | None) -> OutputMissingError:
    return OutputMissingError(
        f"{node.name} did not write {', '.join(map(repr, keys))}, which it declares",
        keys=keys,
        node=node,
        found="no answer" if error is None else f"it reported {error}",
        help="make its model answer, or its tool write, what it declares; "
        "or leave the key out of .writes(...)"
        if error is None
        else "see to what it reported, or add an attempt that goes on: a // b",
    )

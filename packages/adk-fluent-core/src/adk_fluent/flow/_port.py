"""The port: what the engine needs from whatever runs agents, and nothing more.

The engine never looks into an event. A backend gives it a `Leaf`; ADK, the mock backend and the
tests each have one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection, Mapping, Sequence

    from adk_fluent.flow._strand import Strand
    from adk_fluent.ir import Node
    from adk_fluent.protocol import Data

E = TypeVar("E")
Why = Literal["step", "joined", "discarded", "transfer", "gate", "refused", "journal", "around"]


@dataclass(slots=True)
class Facts:
    """What the engine must know of one event.

    Attributes:
        delta: State the event writes once it is committed.
        partial: A streaming fragment; never committed.
        escalate: Ends the nearest loop.
        transfers: Another agent goes on in its place.
        error: An agent reported a failure instead of raising it.
        waits: Calls that wait for an answer from outside: call id to the kind of the question
            (`PendingKind`).
        stop: Nothing after this event may run (a refusal).
        settled: Calls that wait no more, though nobody has answered them.
    """

    delta: Mapping[str, Any] | None = None
    partial: bool = False
    escalate: bool = False
    transfers: bool = False
    error: str | None = None
    waits: Mapping[str, str] | None = None
    stop: bool = False
    settled: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Note:
    """Why the engine itself writes an event.

    Attributes:
        why: ``step`` (a function's result), ``joined`` (branches met), ``discarded`` (attempts were
            undone), ``transfer``, ``gate`` (a person approved), ``refused`` (or did not),
            ``journal`` (the position is written down) or ``around`` (what stands around a step
            says something in its name, or writes).
        discarded: Scopes whose events no longer count; for ``discarded`` and ``joined`` only.
        transfer_to: The agent handed over to; for ``transfer`` only.
        text: What is told; for ``refused`` and ``around`` only.
    """

    why: Why
    discarded: tuple[str, ...] = ()
    transfer_to: str | None = None
    text: str | None = None


class Leaf(Protocol[E]):
    """Runs leaves and makes events. One instance a run."""

    @property
    def state(self) -> Mapping[str, Any]:
        """Live session state: committed writes only, the same object for the whole run."""
        ...

    def run(
        self, node: Node, strand: Strand, answers: Mapping[str, Any]
    ) -> AsyncGenerator[E, None]:
        """Run one leaf; `answers` holds what came in for the calls it waited for.

        An event that writes goes through `Engine.keep` before it is given out.
        """
        ...

    def call(self, node: Node, fn: Any, strand: Strand, state: Mapping[str, Any]) -> Any:
        """Call a user's function with a read-only view of state; may return an awaitable."""
        ...

    def write(self, node: Node, strand: Strand, delta: Mapping[str, Any], note: Note) -> E:
        """Make the event that carries a write of the engine's own."""
        ...

    def check(self, node: Node, delta: Mapping[str, Any]) -> None:
        """Refuse a write of the engine's own that cannot be kept, before its event is made."""
        ...

    def attach(self, event: E, delta: Mapping[str, Any]) -> None:
        """Let an event that is about to be committed write these keys, too."""
        ...

    def facts(self, event: E) -> Facts | None:
        """What the engine must know of an event; None for a plain one."""
        ...

    def text(self, event: E) -> str | None:
        """The text of an event that is a final answer, else None."""
        ...

    def answer(self, event: E) -> str | Data | None:
        """The text of an event that is a final answer, or its validated data, else None."""
        ...


class Watch(Protocol):
    """Is told of what need not leave an event: steps that fail, attempts that are discarded."""

    def failed(self, node: Node, strand: Strand, error: BaseException) -> None:
        """A step has failed, or it is cut off by what was raised inside it to end it."""
        ...

    def discarded(self, node: Node, strand: Strand, scopes: Sequence[str]) -> None:
        """Nothing that was done in these scopes counts any more."""
        ...


class Order(Protocol):
    """Is told, and may decide, in which order steps that run at the same time go on."""

    @property
    def keeps_time(self) -> bool:
        """Whether `time_is_up` says when timeouts strike, and not the clock."""
        ...

    async def turn(self, strand: Strand, event: Any) -> None:
        """A branch is about to hand in an event; None if it is only made when it is committed."""
        ...

    async def ended(self, node: Node, branch: Strand, *, decides: bool) -> None:
        """A branch has come to its end, and the fork with it if that decides; it counts now."""
        ...

    async def time_is_up(self, node: Node, strand: Strand) -> None:
        """Return when a timeout is to strike."""
        ...

    def expired(self, node: Node, strand: Strand) -> None:
        """A timeout has struck."""
        ...

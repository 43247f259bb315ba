"""What is known of a function's use of state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adk_fluent.ir import Effects, StateFieldRef


@dataclass(frozen=True, slots=True)
class Derived:
    """What a function does to state, as its source or its declaration says.

    Of one that is opaque, `reads` has what was seen before the place that is not understood; what
    it writes is not known, whatever stands here.

    Attributes:
        reads: Keys it reads; a default that is not `ir.UNSET` says that the key may be absent.
        writes: Keys that have a value after every call that returns.
        may_write: Keys it gives a value sometimes.
        removes: Keys that every call that returns sets to None.
        may_remove: Keys it sets to None sometimes.
        assumed: Keys it writes whose value might be None, as far as one can see.
        doubtful: Keys it writes whose value a schema looks at, and may refuse.
        refused: Keys it writes whose value a schema surely refuses: key, type, declared type.
        gives: The type of what it returns, where that is certain; a step returns what it writes.
        gives_none: Whether that might be None, as far as one can see.
        opaque: Why not everything is known, in one clause; None if it is.
        reads_all: Whether it looks at all keys there are, which misses none.
        escalates: Whether it may end the loop around it.
        transfers: Whether it may hand over to another agent.
    """

    reads: tuple[StateFieldRef, ...] = ()
    writes: tuple[StateFieldRef, ...] = ()
    may_write: tuple[StateFieldRef, ...] = ()
    removes: tuple[str, ...] = ()
    may_remove: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()
    refused: tuple[tuple[str, Any, Any], ...] = ()
    gives: Any = None
    gives_none: bool = True
    opaque: str | None = None
    reads_all: bool = False
    escalates: bool = False
    transfers: bool = False


#: Of what cannot touch state.
NOTHING = Derived()


def unknown(why: str, reads: tuple[StateFieldRef, ...] = ()) -> Derived:
    """What is known of a function that is opaque."""
    return Derived(reads, opaque=why, reads_all=True, escalates=True, transfers=True)


def declared(effects: Effects) -> Derived:
    """What a function was declared to do; nothing is said of loops, so it ends none."""
    return Derived(
        effects.reads,
        effects.writes,
        effects.may_write,
        opaque="not all that it reads and writes is declared" if effects.opaque else None,
        reads_all=effects.opaque,
        escalates=effects.opaque,
        transfers=effects.opaque,
    )

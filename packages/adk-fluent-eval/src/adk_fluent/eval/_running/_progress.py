"""How far a suite is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adk_fluent.eval._outcome import CaseOutcome


@dataclass(frozen=True, slots=True)
class Progress:
    """A run of a case is done.

    Attributes:
        outcome: What it came to.
        done: How many are done.
        total: How many there are.
        resumed: It was done before, and is taken from the journal.
    """

    outcome: CaseOutcome
    done: int
    total: int
    resumed: bool = False


#: Is told of each run of a case when it is done.
OnProgress = Callable[[Progress], None]

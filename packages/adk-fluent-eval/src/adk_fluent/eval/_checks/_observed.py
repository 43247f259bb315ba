"""What happened in one run of a case, with values as they were: what all checks look at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from adk_fluent.eval._outcome import Tokens, TurnOutcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adk_fluent.eval._cases._case import FluentCase, Turn


@dataclass(slots=True)
class Observed:
    """One run of a case.

    Attributes:
        case: The case.
        expected: Its turns, as they are expected; of a user who is played only the first.
        turns: The turns as they were, with plain values.
        events: ADK's events of each turn.
        invocations: ADK's invocations, which judges of ADK's look at.
        expected_invocations: The same of what is expected; None where a user is played.
        state: Session state at the end, values as they are.
        state_after: The same after each turn.
        written: Step to the keys that it wrote, and what it wrote to them last.
        written_after: The same after each turn.
        duration_s: Seconds of all turns.
        cost_usd: US dollars of all model calls; None if they have no price.
        unpriced: Why there is no price; empty if there is one.
        untold: Why tokens are not all; empty if they are.
        stop_reason: Why a user who is played stopped.
        error: What the run raised or an agent reported; None if all went well.
    """

    case: FluentCase
    expected: Sequence[Turn] = ()
    turns: list[TurnOutcome] = field(default_factory=list[TurnOutcome])
    events: list[list[Any]] = field(default_factory=list[list[Any]])
    invocations: list[Any] = field(default_factory=list[Any])
    expected_invocations: list[Any] | None = None
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    state_after: list[Mapping[str, Any]] = field(default_factory=list["Mapping[str, Any]"])
    written: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    written_after: list[Mapping[str, Mapping[str, Any]]] = field(
        default_factory=list["Mapping[str, Mapping[str, Any]]"]
    )
    duration_s: float = 0.0
    cost_usd: float | None = None
    unpriced: str = ""
    untold: str = ""
    stop_reason: str = ""
    error: str | None = None

    @property
    def tokens(self) -> Tokens:
        """What all model calls took."""
        return sum((turn.tokens for turn in self.turns), Tokens())

    @property
    def is_played(self) -> bool:
        """Whether the user was played, so that expectations are of the whole conversation."""
        return self.expected_invocations is None

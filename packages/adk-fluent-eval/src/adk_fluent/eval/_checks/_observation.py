"""What a run of a case did, with values as they were: the input of all checks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from adk_fluent.eval._outcome import Tokens, TurnOutcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._cases._turn import Turn


@dataclass(slots=True)
class Observation:
    """One run of a case.

    Attributes:
        case: The case.
        expected: Its turns, with their expectations.
        turns: The observed turns, with plain values.
        events: ADK's events of each turn.
        invocations: ADK's eval invocations.
        state: Session state at the end.
        states: Session state after each turn.
        written: Step to the keys that it wrote, and the last values.
        writes: The same after each turn.
        answered: Name of a gate or tool to how often it was answered.
        cost_usd: US dollars of all model calls; None if it is not known.
        cost_unknown: Why the cost is not known; empty if it is.
        tokens_unknown: Why the tokens are incomplete; empty if they are complete.
        tools_unknown: The same of the tool calls.
        simulated: Whether the user was simulated.
        failure: What ended the run, if something was raised or reported.
    """

    case: FluentCase
    expected: Sequence[Turn]
    turns: list[TurnOutcome] = field(default_factory=list[TurnOutcome])
    events: list[list[Any]] = field(default_factory=list[list[Any]])
    invocations: list[Any] = field(default_factory=list[Any])
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    states: list[Mapping[str, Any]] = field(default_factory=list["Mapping[str, Any]"])
    written: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    writes: list[Mapping[str, Mapping[str, Any]]] = field(
        default_factory=list["Mapping[str, Mapping[str, Any]]"]
    )
    answered: Counter[str] = field(default_factory=Counter[str])
    cost_usd: float | None = None
    cost_unknown: str = ""
    tokens_unknown: str = ""
    tools_unknown: str = ""
    simulated: bool = False
    failure: BaseException | None = None

    @property
    def tokens(self) -> Tokens:
        """Tokens of all model calls."""
        return sum((turn.tokens for turn in self.turns), Tokens())

    @property
    def duration_s(self) -> float:
        """Seconds of all turns."""
        return sum(turn.duration_s for turn in self.turns)

"""What the mock backend remembers of a session."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adk_fluent.flow import Position
    from adk_fluent.protocol import AgentEvent, JournalEntry, ToolCallInfo


@dataclass(slots=True)
class Question:
    """Who asked a question, and about what.

    Attributes:
        asker: The agent; or the pipeline below the step's agent in which somebody asks.
        call: The call that waits; None once its result was told, and for a pipeline.
    """

    asker: str
    call: ToolCallInfo | None = None


@dataclass(slots=True)
class Session:
    """What is remembered from one run to the next.

    Attributes:
        state: Session state.
        events: All that was said, the user's messages included.
        entry: Where the last run stands; None when it is over.
        asked: Questions of agents, by position of the step and id of the question.
        below: Where pipelines stand that agents handed over to, by position and name.
    """

    state: dict[str, Any] = field(default_factory=dict[str, Any])
    events: list[AgentEvent] = field(default_factory=list["AgentEvent"])
    entry: JournalEntry | None = None
    asked: dict[tuple[str, str], Question] = field(default_factory=dict[tuple[str, str], Question])
    below: dict[tuple[str, str], Position] = field(
        default_factory=dict[tuple[str, str], "Position"]
    )

    def begin(self) -> None:
        """A run begins: nobody goes on with the one before it."""
        self.asked.clear()
        self.below.clear()

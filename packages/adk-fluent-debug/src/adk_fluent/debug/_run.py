"""A recorded run."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.debug._interactions import (
        Interaction,
        LLMInteraction,
        RemoteInteraction,
        ToolInteraction,
    )
    from adk_fluent.protocol import AgentEvent

#: Stands in the place of content that was not captured.
LEFT_OUT: Final = "[not recorded]"

Data = dict[str, Any]


class RecordedRun:
    """One run of a recording.

    Args:
        data: The run as it stands in the file.
    """

    def __init__(self, data: Data) -> None:
        self.data: Data = data

    @property
    def tape(self) -> list[Data]:
        """Everything that happened, in order; ``t`` is milliseconds since the run began."""
        return self.data["tape"]

    @property
    def message(self) -> Data | None:
        """What the user said, as ADK's Content in JSON."""
        return self.data.get("message")

    @property
    def answers(self) -> list[Data]:
        """What a run that goes on was answered: ``id``, ``name`` and ``response`` of each."""
        return self.data.get("answers", [])

    @property
    def resumed(self) -> bool:
        """Whether it goes on after a pause."""
        return bool(self.data.get("resumed"))

    @property
    def session_id(self) -> str:
        """The session it ran in."""
        return self.data.get("session_id", "")

    @property
    def state(self) -> Data | None:
        """Session state when it began; None if that was not captured."""
        return self.data.get("state")

    @property
    def states(self) -> Iterator[Data]:
        """Session state after each of its events.

        Raises:
            UsageError: State was not captured.
        """
        if self.state is None:
            raise UsageError(
                "this recording has no state",
                found="it was recorded with capture_state=False or capture_content=False",
                help="Recorder(capture_state=True)",
            )
        state = dict(self.state)
        for event in self.events:
            if not event.is_partial:
                state.update(event.state_delta)
            yield {key: value for key, value in state.items() if value is not None}

    @property
    def spans(self) -> list[Data]:
        """Its spans: ``name``, ``start``, ``end`` (milliseconds since it began), ``attributes``."""
        return self.data.get("spans", [])

    @property
    def status(self) -> str:
        """How it ended: ``completed``, ``waiting``, ``failed``, ``cancelled``; "" if cut off."""
        return self.data.get("status", "")

    @property
    def ir_hash(self) -> str:
        """`adk_fluent.ir.content_hash` of the pipeline."""
        return self.data.get("pipeline", {}).get("hash", "")

    @cached_property
    def events(self) -> list[AgentEvent]:
        """Its events; what agents did that a tool ran is on the tape alone."""
        from adk_fluent.protocol import AgentEvent  # noqa: PLC0415  # slow to import

        ours = (each["event"] for each in self.tape if "event" in each and "within" not in each)
        return [AgentEvent.from_dict(each) for each in ours]

    @cached_property
    def interactions(self) -> list[Interaction]:
        """Its calls, in the order in which they began, without requests that were never sent."""
        from adk_fluent.debug._interactions import interactions  # noqa: PLC0415  # slow to import

        return list(interactions(self.tape))

    @property
    def llm_interactions(self) -> list[LLMInteraction]:
        """Its model calls."""
        from adk_fluent.debug._interactions import LLMInteraction  # noqa: PLC0415  # slow to import

        return [each for each in self.interactions if isinstance(each, LLMInteraction)]

    @property
    def tool_interactions(self) -> list[ToolInteraction]:
        """Its tool calls."""
        from adk_fluent.debug._interactions import ToolInteraction  # noqa: PLC0415  # the same

        return [each for each in self.interactions if isinstance(each, ToolInteraction)]

    @property
    def remote_interactions(self) -> list[RemoteInteraction]:
        """Its calls of remote agents."""
        from adk_fluent.debug._interactions import RemoteInteraction  # noqa: PLC0415  # the same

        return [each for each in self.interactions if isinstance(each, RemoteInteraction)]

"""A recorded run."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from adk_fluent.debug._interactions import LLMInteraction, ToolInteraction
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
    def llm_interactions(self) -> list[LLMInteraction]:
        """Its model calls, in the order in which they began, without those that were never sent."""
        from adk_fluent.debug._interactions import models  # noqa: PLC0415  # slow to import

        return list(models(self.tape))

    @cached_property
    def tool_interactions(self) -> list[ToolInteraction]:
        """Its tool calls, in the order in which they began."""
        from adk_fluent.debug._interactions import tools  # noqa: PLC0415  # slow to import

        return list(tools(self.tape))

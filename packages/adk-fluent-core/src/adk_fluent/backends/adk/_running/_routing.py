"""Whom ADK's Runner takes a message to.

It takes an answer to the agent that asked, and what comes behind that agent would never be run. A
plugin of ours could mend that, but a bare root agent has none in a process that has not run it yet.
So the Runner is told of the flow where it looks for the agent; nobody else is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import FrameType

_BETWEEN: Final = "google.adk.agents.base_agent"  # where agents hand a search on
_RUNNERS: Final = ("google.adk.runners", "google.adk.agents._agent_router")  # 1.x, and newer 2.x


def is_runner(frame: FrameType | None) -> bool:
    """Whether it is a Runner that looks for an agent, from there."""
    while frame is not None and frame.f_globals.get("__name__") == _BETWEEN:
        frame = frame.f_back
    return frame is not None and frame.f_globals.get("__name__") in _RUNNERS

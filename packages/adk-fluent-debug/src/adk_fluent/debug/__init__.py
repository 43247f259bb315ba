"""Debugging of agents: a run becomes a file that anybody can replay, compare and turn into a test.

A `Recorder` records runs, a `ReplayerBackend` runs a pipeline on what was recorded, `diff_events`
says what differs, and `TimeTravel` forks a session at an event. Names are imported on first use;
ADK is imported when something runs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adk_fluent.debug._diff import EventChange, EventDiff, diff_events
    from adk_fluent.debug._errors import (
        PipelineMismatchError,
        RecordedError,
        RecordingFileError,
        ReplayMismatchError,
        UnusedInteractionsError,
    )
    from adk_fluent.debug._recorder import Recorder, recorder
    from adk_fluent.debug._recording import Recording
    from adk_fluent.debug._replayer import ReplayerBackend
    from adk_fluent.debug._replaying import ReplayReport, replay, replay_async
    from adk_fluent.debug._run import (
        Interaction,
        LLMInteraction,
        RecordedRun,
        RemoteInteraction,
        ToolInteraction,
    )
    from adk_fluent.debug._time_travel import TimeTravel
else:
    _PLACES = {
        name: module
        for module, names in {
            "_diff": "EventChange EventDiff diff_events",
            "_errors": "PipelineMismatchError RecordedError RecordingFileError "
            "ReplayMismatchError UnusedInteractionsError",
            "_recorder": "Recorder recorder",
            "_recording": "Recording",
            "_replayer": "ReplayerBackend",
            "_replaying": "ReplayReport replay replay_async",
            "_run": "Interaction LLMInteraction RecordedRun RemoteInteraction ToolInteraction",
            "_time_travel": "TimeTravel",
        }.items()
        for name in names.split()
    }

    def __getattr__(name: str) -> Any:
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
        return value


__all__ = [
    "EventChange",
    "EventDiff",
    "Interaction",
    "LLMInteraction",
    "PipelineMismatchError",
    "RecordedError",
    "RecordedRun",
    "Recorder",
    "Recording",
    "RecordingFileError",
    "RemoteInteraction",
    "ReplayMismatchError",
    "ReplayReport",
    "ReplayerBackend",
    "TimeTravel",
    "ToolInteraction",
    "UnusedInteractionsError",
    "diff_events",
    "recorder",
    "replay",
    "replay_async",
]

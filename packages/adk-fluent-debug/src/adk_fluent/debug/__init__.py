"""Debugging of agents: a run becomes a file that anybody can replay, compare and turn into a test.

A `Recorder` records runs, a `ReplayerBackend` runs a pipeline on what was recorded, `diff_events`
says what differs, and `TimeTravel` forks a session at an event. Names are imported on first use;
ADK is imported when something runs.

What the modules hold:

- Recording: `_recorder` has the `Recorder`; `_notes` what it has noted of its runs; `_run_recorder`
  what records one of them while it goes on; `_spans_adk` the spans of OpenTelemetry's.
- What was recorded: `_recorded_run` has a run and its calls; `_recording` the `Recording`, and what
  is written of it; `_file` its file, and a stream; `_redaction` what takes credentials out;
  `_conformance_adk` the form of ``adk conformance``; `_adk` ADK's objects as data, and back again.
- Replaying: `_replayer_backend` has the `ReplayerBackend`; `_run_replayer` what stands in the place
  of models and tools in one run; `_tape` which recorded run and call answers which; `_turnstile`
  their order; `_replay_report` has `replay`, which compares a whole recording.
- Looking: `_diff` compares data and events; `_show` has rows, as text; `_html` the page, with the
  files ``viewer.*``; `_time_travel_adk` sessions, and forks of them.
- Entries: `_layer` says what the package provides; `_cli` has the commands, `pytest_plugin` the
  mark `recording`, `_errors` what is raised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.extend import lazy_names

if TYPE_CHECKING:
    from adk_fluent.debug._diff import EventChange, EventDiff, diff_events
    from adk_fluent.debug._errors import (
        PipelineMismatchError,
        RecordedError,
        RecordingFileError,
        ReplayMismatchError,
        UnusedInteractionsError,
    )
    from adk_fluent.debug._recorded_run import (
        Interaction,
        LLMInteraction,
        RecordedRun,
        RemoteInteraction,
        ToolInteraction,
    )
    from adk_fluent.debug._recorder import Recorder, recorder
    from adk_fluent.debug._recording import Recording
    from adk_fluent.debug._replay_report import ReplayReport, replay, replay_async
    from adk_fluent.debug._replayer_backend import ReplayerBackend
    from adk_fluent.debug._time_travel_adk import TimeTravel
else:  # a type checker must see a misspelt name, not Any
    __getattr__ = lazy_names(
        __name__,
        {
            "debug._diff": "EventChange EventDiff diff_events",
            "debug._errors": "PipelineMismatchError RecordedError RecordingFileError "
            "ReplayMismatchError UnusedInteractionsError",
            "debug._recorded_run": "Interaction LLMInteraction RecordedRun RemoteInteraction "
            "ToolInteraction",
            "debug._recorder": "Recorder recorder",
            "debug._recording": "Recording",
            "debug._replayer_backend": "ReplayerBackend",
            "debug._replay_report": "ReplayReport replay replay_async",
            "debug._time_travel_adk": "TimeTravel",
        },
    )


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

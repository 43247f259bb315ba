"""What this package provides, as data: nothing is imported before it is needed."""

from __future__ import annotations

from adk_fluent.protocol import Entry, Layer

_HERE = "adk_fluent.debug"
_NAMES = ("Recorder", "Recording", "ReplayerBackend", "TimeTravel", "diff_events", "recorder")

LAYER = Layer(
    "debug",
    {
        "middleware": Entry(f"{_HERE}._recorder:DESC", "recorder"),
        "commands": (
            Entry(f"{_HERE}._cli:replay", "replay", "Replay a recording of a pipeline."),
            Entry(f"{_HERE}._cli:record", "record", "Run a pipeline, and record it."),
            Entry(f"{_HERE}._cli:show", "show", "Show what a recording holds."),
            Entry(f"{_HERE}._cli:diff", "diff", "Show where two recordings differ."),
            Entry(f"{_HERE}._cli:html", "html", "Write a recording as a page to look at."),
        ),
        "names": tuple(Entry(f"{_HERE}:{name}", name) for name in _NAMES),
    },
)

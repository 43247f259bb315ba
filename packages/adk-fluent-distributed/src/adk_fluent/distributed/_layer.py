"""What this package provides, as data: nothing is imported before it is needed."""

from __future__ import annotations

from adk_fluent.protocol import Entry, Layer

_HERE = "adk_fluent.distributed"
_NAMES = ("DbosEngine", "InlineEngine", "SegmentPlan", "idempotency_key")

LAYER = Layer(
    "distributed",
    {
        "checkers": f"{_HERE}._checkers:check_boundaries",
        "commands": (
            Entry(f"{_HERE}._cli:submit", "submit", "Submit a run to workers."),
            Entry(f"{_HERE}._cli:status", "status", "Show how a submitted run stands."),
            Entry(f"{_HERE}._cli:answer", "answer", "Answer what a submitted run waits on."),
            Entry(f"{_HERE}._cli:cancel", "cancel", "Cancel a submitted run."),
            Entry(f"{_HERE}._cli:prune", "prune", "Remove runs that ended long ago."),
            Entry(f"{_HERE}._cli:worker", "worker", "Run segments of submitted runs."),
            Entry(f"{_HERE}._cli:deploy", "deploy", "Write what runs workers in containers."),
        ),
        "names": tuple(Entry(f"{_HERE}:{name}", name) for name in _NAMES),
    },
)

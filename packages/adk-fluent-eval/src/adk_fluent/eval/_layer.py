"""What this package provides, as data: nothing it names is imported before it is needed."""

from __future__ import annotations

from adk_fluent.protocol import Entry, Layer

_HERE = "adk_fluent.eval"

LAYER = Layer(
    "eval",
    {
        "commands": Entry(
            f"{_HERE}._cli:evaluate", "eval", "Run suites of cases, compare and report."
        ),
        "names": tuple(
            Entry(f"{_HERE}:{name}", name)
            for name in (
                *("FluentCase", "FluentEvalReport", "FluentEvalSuite"),
                *("FluentJudge", "UserSimulation"),
            )
        ),
    },
)

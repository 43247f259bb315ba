"""What this package provides, as data: nothing is imported before it is needed."""

from __future__ import annotations

from adk_fluent.protocol import Entry, Layer

_HERE = "adk_fluent.eval"
_NAMES = ("FluentCase", "FluentEvalReport", "FluentEvalSuite", "FluentJudge")

LAYER = Layer(
    "eval",
    {
        "commands": Entry(f"{_HERE}._cli:evaluate", "eval", "Run and compare suites."),
        "names": tuple(Entry(f"{_HERE}:{name}", name) for name in _NAMES),
    },
)

"""What the toy provides, as data: nothing it names is imported before it is needed."""

from __future__ import annotations

from adk_fluent.protocol import Layer

LAYER = Layer(
    "toy",
    {
        "checkers": "adk_fluent.toy._checkers:check_echoes",
    },
)

"""What the toy provides, as data: nothing it names is imported before it is needed."""

from __future__ import annotations

from adk_fluent.protocol import Entry, Layer

LAYER = Layer(
    "toy",
    {
        "rules": "adk_fluent.toy._adk:RULES",
        "values": "adk_fluent.toy._adk:VALUES",
        "passes": "adk_fluent.toy._passes:PASSES",
        "checkers": "adk_fluent.toy._checkers:check_echoes",
        "commands": Entry("adk_fluent.toy._commands:shout", "shout", "Say a text in capitals."),
    },
)

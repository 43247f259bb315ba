"""What this package provides, as data: nothing is imported before it is needed."""

from __future__ import annotations

from adk_fluent.protocol import Entry, Layer

_HERE = "adk_fluent.a2a"

LAYER = Layer(
    "a2a",
    {
        "rules": f"{_HERE}._remote_adk:RULES",
        "checkers": f"{_HERE}._checks:check_remote_agents",
        "agent_cards": f"{_HERE}._agent_card:agent_card",
        "commands": Entry("adk_fluent.serve._command:serve", "serve", "Serve a pipeline over A2A."),
        "cards": f"{_HERE}._cards_adk:read_card",
    },
)

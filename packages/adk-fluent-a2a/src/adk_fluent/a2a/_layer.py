"""What this package provides, as data: nothing is imported before it is needed."""

from __future__ import annotations

from adk_fluent.protocol import Entry, Layer

_HERE = "adk_fluent.a2a"
_SERVE = "adk_fluent.serve"

LAYER = Layer(
    "a2a",
    {
        "rules": f"{_HERE}._remote_adk:RULES",
        "checkers": f"{_HERE}._checks:check_remote_agents",
        "agent_cards": f"{_HERE}._agent_card:agent_card",
        "commands": (
            Entry(f"{_SERVE}._command:serve", "serve", "Serve a pipeline over A2A."),
            Entry(f"{_SERVE}._directory_command:directory", "directory", "Serve a directory."),
        ),
        "cards": f"{_HERE}._cards_adk:read_card",
    },
)

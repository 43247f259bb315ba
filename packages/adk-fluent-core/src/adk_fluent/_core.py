"""What core provides in slots of layers, where a layer may clash with it, said as they say it."""

from __future__ import annotations

from typing import Final

from adk_fluent.protocol import Entry, Layer

#: Core's commands; the help stands here so that ``adk-fluent --help`` imports none of them.
COMMANDS: Final = {
    "check": "Look for mistakes in pipelines, running nothing.",
    "demo": "Run a support desk over fifty tickets, offline or real.",
    "doctor": "Look at what is installed and whether it fits.",
    "explain": "Show what a pipeline is, step by step.",
    "run": "Run a pipeline on a message, or in a conversation.",
    "viz": "Draw a pipeline: Mermaid, DOT, SVG or HTML.",
}
CORE: Final = Layer(
    "core",
    {
        "commands": tuple(
            Entry(f"adk_fluent.cli._{name}:{name}", name, help) for name, help in COMMANDS.items()
        ),
        **{slot: f"adk_fluent.backends.adk:{slot}" for slot in ("passes", "rules", "values")},
    },
)

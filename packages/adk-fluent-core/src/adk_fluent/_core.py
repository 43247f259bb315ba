"""What core provides under names of its own, said as layers say it."""

from __future__ import annotations

from typing import Final

from adk_fluent.protocol import Entry, Layer


def _command(name: str, help: str) -> Entry:
    return Entry(f"adk_fluent.cli._{name}:{name}", name, help)


#: The help stands here so that ``adk-fluent --help`` imports no command.
CORE: Final = Layer(
    "core",
    {
        "commands": (
            _command("check", "Look for mistakes in pipelines, running nothing."),
            _command("demo", "Run a support desk over fifty tickets, offline or real."),
            _command("doctor", "Look at what is installed and whether it fits."),
            _command("explain", "Show what a pipeline is, step by step."),
            _command("run", "Run a pipeline on a message, or in a conversation."),
            _command("viz", "Draw a pipeline: Mermaid, DOT, SVG or HTML."),
        ),
    },
)

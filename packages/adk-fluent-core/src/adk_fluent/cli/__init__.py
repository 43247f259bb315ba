"""The command line: ``adk-fluent``.

Exit codes: 0 ok, 1 findings or a failed gate, 2 wrong usage, 3 infrastructure (models, keys,
sessions, network), 130 interrupted.
"""

from __future__ import annotations

from adk_fluent.cli._main import main

__all__ = ["main"]

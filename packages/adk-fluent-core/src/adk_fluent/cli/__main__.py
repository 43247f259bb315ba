"""``python -m adk_fluent.cli`` is ``adk-fluent``."""

from __future__ import annotations

from adk_fluent.cli._main import main

main()

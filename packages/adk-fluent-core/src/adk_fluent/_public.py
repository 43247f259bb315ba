"""The names that ``adk_fluent`` itself exports, in one place."""

from __future__ import annotations

__all__: list[str] = []

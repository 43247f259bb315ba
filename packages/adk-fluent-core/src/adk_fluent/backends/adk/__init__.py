"""Google's Agent Development Kit; importing this package imports nothing of it yet."""

from __future__ import annotations

__all__: list[str] = []

"""What IR is compiled to and runs on."""

from __future__ import annotations

__all__: list[str] = []

"""The same as `traced`, in a process whose spans are described."""

from __future__ import annotations

from bench.side.traced import TASKS

__all__ = ["TASKS"]

"""What `served` has, in a process of its own for ADK's server."""

from __future__ import annotations

from bench.side.served import TASKS

__all__ = ["TASKS"]

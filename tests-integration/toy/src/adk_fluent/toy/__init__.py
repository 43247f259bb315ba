"""A layer that echoes: what a layer is made of, and nothing else."""

from __future__ import annotations

from adk_fluent.toy._checkers import EmptyEcho
from adk_fluent.toy._nodes import EchoNode, LoudModel

__all__ = ["EchoNode", "EmptyEcho", "LoudModel"]

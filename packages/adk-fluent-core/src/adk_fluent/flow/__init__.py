"""The flow engine: the one place where arrangements have a meaning.

A pure-Python, iterative interpreter of the IR with explicit frames. It knows no ADK: a `Leaf` runs
agents and makes events. ADK, the mock backend and evaluation of parts all use it.
"""

from __future__ import annotations

from adk_fluent.flow._engine import Engine, Position, new_position
from adk_fluent.flow._port import Facts, Leaf, Note
from adk_fluent.flow._steps import RULES, Signal
from adk_fluent.flow._strand import Strand
from adk_fluent.flow._targets import check_transfers

__all__ = [
    "RULES",
    "Engine",
    "Facts",
    "Leaf",
    "Note",
    "Position",
    "Signal",
    "Strand",
    "check_transfers",
    "new_position",
]

"""The flow engine: the one place where arrangements have a meaning.

A pure-Python, iterative interpreter of the IR with explicit frames. It knows no ADK: a `Leaf` runs
agents and makes events. ADK, the mock backend and evaluation of parts all use it.
"""

from __future__ import annotations

from adk_fluent.flow._around import Around, Enclosed, iteration_at
from adk_fluent.flow._commit import Commit, Parcel, settled
from adk_fluent.flow._engine import Engine
from adk_fluent.flow._gates import APPROVAL, check_gates
from adk_fluent.flow._parts import join, split
from adk_fluent.flow._port import Facts, Leaf, Note, Order, Watch
from adk_fluent.flow._position import Position, new_position, questions_at
from adk_fluent.flow._promises import Promises, check_tool, promises_inside, promises_of
from adk_fluent.flow._rules import RULES
from adk_fluent.flow._signals import Signal
from adk_fluent.flow._strand import ARRANGEMENTS, Heard, Strand
from adk_fluent.flow._targets import check_transfers
from adk_fluent.flow._view import StateView

__all__ = [
    "APPROVAL",
    "ARRANGEMENTS",
    "RULES",
    "Around",
    "Commit",
    "Enclosed",
    "Engine",
    "Facts",
    "Heard",
    "Leaf",
    "Note",
    "Order",
    "Parcel",
    "Position",
    "Promises",
    "Signal",
    "StateView",
    "Strand",
    "Watch",
    "check_gates",
    "check_tool",
    "check_transfers",
    "iteration_at",
    "join",
    "new_position",
    "promises_inside",
    "promises_of",
    "questions_at",
    "settled",
    "split",
]

"""A support desk over fifty tickets: the main job, end to end, with or without a network.

`adk-fluent demo` runs it. `_desk.py` is the pipeline and reads like a program of yours would;
`_database.py` has its tools, `_offline.py` the scripted model that stands in without a key.
"""

from __future__ import annotations

from adk_fluent.demo._database import Database
from adk_fluent.demo._desk import CATEGORIES, support_desk
from adk_fluent.demo._offline import script
from adk_fluent.demo._tickets import Ticket, tickets
from adk_fluent.demo._work import Outcome, work_off

__all__ = [
    "CATEGORIES",
    "Database",
    "Outcome",
    "Ticket",
    "script",
    "support_desk",
    "tickets",
    "work_off",
]

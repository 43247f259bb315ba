"""Random pipelines, and an independent account of what each of them means.

`programs` makes pipelines of every kind the engine runs, over scripted leaves; `meaning` interprets
one on plain dicts. A backend is right when what it does with the first is what the second says.
"""

from __future__ import annotations

from adk_fluent.testing._oracle._behaviours import Says, Step, act, agent, recorded, shown
from adk_fluent.testing._oracle._programs import Program, generate, programs
from adk_fluent.testing._oracle._reference import KINDS, meaning

__all__ = [
    "KINDS",
    "Program",
    "Says",
    "Step",
    "act",
    "agent",
    "generate",
    "meaning",
    "programs",
    "recorded",
    "shown",
]

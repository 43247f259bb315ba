"""What tests of pipelines need: scripted models that answer without a network.

`ScriptedModel` is an ADK model; ADK is imported when it is first used. `Script` holds what it
answers, and is followed by the other backends as well.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from adk_fluent.testing._replies import (
    Answer,
    Asked,
    Call,
    Reply,
    Rule,
    Thought,
    Turn,
    reply,
    rule,
)
from adk_fluent.testing._script import Script, ScriptExhaustedError

if TYPE_CHECKING:
    from adk_fluent.testing._scripted_adk import ScriptedModel
else:
    _LAZY = {"ScriptedModel": "adk_fluent.testing._scripted_adk"}

    def __getattr__(name: str) -> Any:
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_LAZY[name]), name)
        return value


__all__ = [
    "Answer",
    "Asked",
    "Call",
    "Reply",
    "Rule",
    "Script",
    "ScriptExhaustedError",
    "ScriptedModel",
    "Thought",
    "Turn",
    "reply",
    "rule",
]

"""What tests of pipelines need: scripted models that answer without a network.

`mock_backend` runs whole pipelines without ADK. `ScriptedModel` is an ADK model; ADK is imported
when it is first used. `Script` holds what it answers, and is followed by both.
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
    from adk_fluent.backends.mock import MockBackend, mock_backend
    from adk_fluent.testing._scripted_adk import ScriptedModel
else:
    _LAZY = {
        "MockBackend": "adk_fluent.backends.mock",  # which itself needs what is above
        "ScriptedModel": "adk_fluent.testing._scripted_adk",
        "mock_backend": "adk_fluent.backends.mock",
    }

    def __getattr__(name: str) -> Any:
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_LAZY[name]), name)
        return value


__all__ = [
    "Answer",
    "Asked",
    "Call",
    "MockBackend",
    "Reply",
    "Rule",
    "Script",
    "ScriptExhaustedError",
    "ScriptedModel",
    "Thought",
    "Turn",
    "mock_backend",
    "reply",
    "rule",
]

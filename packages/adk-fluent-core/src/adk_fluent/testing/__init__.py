"""What tests of pipelines need: models that answer from a script, over a network or without one.

`mock_backend` runs whole pipelines without ADK. `ScriptedModel` is an ADK model, `GeminiEmulator`
the Gemini REST API on loopback; all of them follow a `Script`. `AgentHarness` keeps a session over
several messages. `assert_contracts` and `contract_tests` check pipelines without running them.
Everything is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adk_fluent._scripts._replies import (
        Answer,
        Asked,
        Call,
        Fault,
        Reply,
        Rule,
        Thought,
        Turn,
        reply,
        rule,
    )
    from adk_fluent._scripts._script import Script, ScriptExhaustedError
    from adk_fluent._scripts._scripted_adk import ScriptedModel
    from adk_fluent.backends.mock import MockBackend, mock_backend
    from adk_fluent.contracts import check_contracts
    from adk_fluent.testing._contracts import assert_contracts, contract_tests
    from adk_fluent.testing._gemini._emulator import GeminiEmulator
    from adk_fluent.testing._gemini._request import GeminiRequest
    from adk_fluent.testing._harness import AgentHarness, HarnessResult
else:
    _MODULES = {
        "adk_fluent.backends.mock": ("MockBackend", "mock_backend"),
        "adk_fluent.contracts": ("check_contracts",),
        "adk_fluent.testing._contracts": ("assert_contracts", "contract_tests"),
        "adk_fluent.testing._gemini._emulator": ("GeminiEmulator",),
        "adk_fluent.testing._gemini._request": ("GeminiRequest",),
        "adk_fluent.testing._harness": ("AgentHarness", "HarnessResult"),
        "adk_fluent._scripts._replies": (
            *("Answer", "Asked", "Call", "Fault", "Reply", "Rule"),
            *("Thought", "Turn", "reply", "rule"),
        ),
        "adk_fluent._scripts._script": ("Script", "ScriptExhaustedError"),
        "adk_fluent._scripts._scripted_adk": ("ScriptedModel",),
    }
    _LAZY = {name: module for module, names in _MODULES.items() for name in names}

    def __getattr__(name: str) -> Any:
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_LAZY[name]), name)
        return value


__all__ = [
    "AgentHarness",
    "Answer",
    "Asked",
    "Call",
    "Fault",
    "GeminiEmulator",
    "GeminiRequest",
    "HarnessResult",
    "MockBackend",
    "Reply",
    "Rule",
    "Script",
    "ScriptExhaustedError",
    "ScriptedModel",
    "Thought",
    "Turn",
    "assert_contracts",
    "check_contracts",
    "contract_tests",
    "mock_backend",
    "reply",
    "rule",
]

"""The command line ``adk-fluent``, and what the commands of layers need of it.

Exit codes: 0 ok, 1 findings or a failed gate, 2 wrong usage, 3 infrastructure (models, keys,
sessions, network), 130 interrupted.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from adk_fluent.cli._attribute import Target, attribute_of, call_factory
from adk_fluent.cli._failures import FINDINGS, INFRASTRUCTURE, INTERRUPTED, OK, USAGE, Call
from adk_fluent.cli._keys import credentials, no_key, require_credentials
from adk_fluent.cli._main import main
from adk_fluent.cli._state_option import state_option
from adk_fluent.cli._status import is_interactive
from adk_fluent.cli._target import find_target, load, module_of
from adk_fluent.cli._transcript import note
from adk_fluent.cli._versions import installed_version

if TYPE_CHECKING:
    from adk_fluent.cli._answers import Given
    from adk_fluent.cli._interrupts import run_interruptible
    from adk_fluent.cli._sessions import session_owners, session_service
else:  # a type checker must see a misspelt name
    #: What imports asyncio or SQLite, for which --help does not wait.
    _LATER = {
        "Given": "_answers",
        "run_interruptible": "_interrupts",
        "session_owners": "_sessions",
        "session_service": "_sessions",
    }

    def __getattr__(name: str) -> object:
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)


__all__ = [
    "FINDINGS",
    "INFRASTRUCTURE",
    "INTERRUPTED",
    "OK",
    "USAGE",
    "Call",
    "Given",
    "Target",
    "attribute_of",
    "call_factory",
    "credentials",
    "find_target",
    "installed_version",
    "is_interactive",
    "load",
    "main",
    "module_of",
    "no_key",
    "note",
    "require_credentials",
    "run_interruptible",
    "session_owners",
    "session_service",
    "state_option",
]

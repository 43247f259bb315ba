"""Pipelines as agents that others call, over the A2A protocol.

`A2AServer` serves a pipeline; `adk-fluent serve` does it from the command line. `DirectoryServer`
and `adk-fluent directory` serve a directory of agents. Names are imported on first use; `A2AServer`
imports ADK.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adk_fluent.serve._auth import ApiKeyAuth, Authenticator, BearerAuth, JwtAuth
    from adk_fluent.serve._directory_adk import DirectoryServer
    from adk_fluent.serve._limits import Limits, PushPolicy
    from adk_fluent.serve._server_adk import A2AServer
else:
    _MODULES = {
        "_auth": ("ApiKeyAuth", "Authenticator", "BearerAuth", "JwtAuth"),
        "_directory_adk": ("DirectoryServer",),
        "_limits": ("Limits", "PushPolicy"),
        "_server_adk": ("A2AServer",),
    }
    _LAZY = {name: module for module, names in _MODULES.items() for name in names}

    def __getattr__(name: str) -> Any:
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
        return value


__all__ = [
    "A2AServer",
    "ApiKeyAuth",
    "Authenticator",
    "BearerAuth",
    "DirectoryServer",
    "JwtAuth",
    "Limits",
    "PushPolicy",
]

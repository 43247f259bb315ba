"""Agents of others in a pipeline, over the A2A protocol.

`RemoteAgent` is core's; this layer runs it, reads its agent cards, checks it, and finds it in
directories. Names are imported on first use; `AgentDirectory` imports the A2A SDK.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from adk_fluent.builders import RemoteAgent
from adk_fluent.errors import RemoteError
from adk_fluent.ir import AuthConfig, RetryConfig

if TYPE_CHECKING:
    from adk_fluent.a2a._directory_adk import AgentDirectory
    from adk_fluent.a2a._entries import DirectoryEntry
else:
    _LAZY = {"AgentDirectory": "_directory_adk", "DirectoryEntry": "_entries"}

    def __getattr__(name: str) -> Any:
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
        return value


__all__ = [
    "AgentDirectory",
    "AuthConfig",
    "DirectoryEntry",
    "RemoteAgent",
    "RemoteError",
    "RetryConfig",
]

"""Agents of others in a pipeline, over the A2A protocol.

`RemoteAgent` is core's; this layer runs it, reads its agent cards, checks it, and finds it in
directories. Names are imported on first use; `AgentDirectory` imports the A2A SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.builders import RemoteAgent
from adk_fluent.errors import RemoteError
from adk_fluent.extend import lazy_names
from adk_fluent.ir import AuthConfig, RetryConfig

if TYPE_CHECKING:
    from adk_fluent.a2a._directory_adk import AgentDirectory
    from adk_fluent.a2a._entries import DirectoryEntry
else:  # a type checker must see a misspelt name, not Any
    __getattr__ = lazy_names(
        __name__, {"a2a._directory_adk": "AgentDirectory", "a2a._entries": "DirectoryEntry"}
    )


__all__ = [
    "AgentDirectory",
    "AuthConfig",
    "DirectoryEntry",
    "RemoteAgent",
    "RemoteError",
    "RetryConfig",
]

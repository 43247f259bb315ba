"""Agents of others in a pipeline, over the A2A protocol.

`RemoteAgent` is core's; this layer runs it, reads its agent cards, and checks it.
"""

from __future__ import annotations

from adk_fluent.builders import RemoteAgent
from adk_fluent.errors import RemoteError
from adk_fluent.ir import AuthConfig, RetryConfig

__all__ = ["AuthConfig", "RemoteAgent", "RemoteError", "RetryConfig"]

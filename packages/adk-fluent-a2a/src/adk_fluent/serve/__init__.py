"""Pipelines as agents that others call, over the A2A protocol.

`A2AServer` serves a pipeline; `adk-fluent serve` does it from the command line. `DirectoryServer`
and `adk-fluent directory` serve a directory of agents. Names are imported on first use; `A2AServer`
imports ADK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.extend import lazy_names

if TYPE_CHECKING:
    from adk_fluent.serve._auth import ApiKeyAuth, Authenticator, BearerAuth, JwtAuth
    from adk_fluent.serve._directory_adk import DirectoryServer
    from adk_fluent.serve._limits import Limits, PushPolicy
    from adk_fluent.serve._server_adk import A2AServer
else:  # a type checker must see a misspelt name, not Any
    __getattr__ = lazy_names(
        __name__,
        {
            "serve._auth": "ApiKeyAuth Authenticator BearerAuth JwtAuth",
            "serve._directory_adk": "DirectoryServer",
            "serve._limits": "Limits PushPolicy",
            "serve._server_adk": "A2AServer",
        },
    )


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

"""Google's Agent Development Kit as a backend; importing this imports ADK."""

from __future__ import annotations

from adk_fluent.backends.adk._export import to_agent, to_app, to_runner
from adk_fluent.backends.adk._hooks._plugin import MiddlewarePlugin
from adk_fluent.backends.adk._hooks._sites import call_site
from adk_fluent.backends.adk._hooks._stand_in import replace_models, replace_tools
from adk_fluent.backends.adk._lowering._compile import Compiled, passes
from adk_fluent.backends.adk._lowering._context import CompileContext
from adk_fluent.backends.adk._lowering._rules import rules
from adk_fluent.backends.adk._lowering._values import (
    MESSAGE,
    MODEL,
    TOOL,
    resolve_model,
    to_content,
    values,
)
from adk_fluent.backends.adk._running._root import FlowAgent
from adk_fluent.backends.adk._running._run import ADKBackend, Recalled

__all__ = [
    "MESSAGE",
    "MODEL",
    "TOOL",
    "ADKBackend",
    "CompileContext",
    "Compiled",
    "FlowAgent",
    "MiddlewarePlugin",
    "Recalled",
    "call_site",
    "passes",
    "replace_models",
    "replace_tools",
    "resolve_model",
    "rules",
    "to_agent",
    "to_app",
    "to_content",
    "to_runner",
    "values",
]

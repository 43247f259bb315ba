"""The intermediate representation: an expression graph as frozen, stdlib-only data.

Every node of the language is declared here, also those that another wheel runs; `NODES` lists
them. Read `Node` first, then `_agents.py` (leaves) and `_flow.py` (arrangements).
"""

from __future__ import annotations

import adk_fluent as _root

if getattr(_root, "_layers", None) is None:
    raise ImportError(
        "adk_fluent/__init__.py belongs to another distribution (the old 'adk-fluent'); run: "
        "pip uninstall adk-fluent && pip install --force-reinstall adk-fluent-core",
        name="adk_fluent",
    )

from adk_fluent.ir._agents import (
    AdkAgentNode,
    AgentNode,
    FunctionNode,
    ModelSelectorNode,
    RemoteAgentNode,
    TapNode,
    TransformNode,
)
from adk_fluent.ir._flow import (
    AppNode,
    ExpectNode,
    FallbackNode,
    GateNode,
    LoopNode,
    MapOverNode,
    MiddlewareNode,
    ParallelNode,
    RaceNode,
    ResourceNode,
    RouteNode,
    SequenceNode,
    TimeoutNode,
    TransferNode,
)
from adk_fluent.ir._node import Node, children, find, fold, map, node, replace, walk
from adk_fluent.ir._record import child
from adk_fluent.ir._ref import Location, Ref, import_path
from adk_fluent.ir._state import OPAQUE, SCOPES, UNSET, Effects, Scope, StateFieldRef
from adk_fluent.ir._values import (
    HISTORIES,
    AuthConfig,
    CompactionConfig,
    ContentSpec,
    EdgeSemantics,
    ExecutionBoundary,
    ExecutionConfig,
    History,
    Match,
    Merge,
    Modality,
    ModelCandidate,
    Predicate,
    ResourceScope,
    RetryConfig,
    ScalingConfig,
    TelemetryConfig,
    ToolSpec,
    TransportConfig,
)

#: Every node type of the language.
NODES: tuple[type[Node], ...] = (
    AgentNode,
    FunctionNode,
    TransformNode,
    TapNode,
    AdkAgentNode,
    RemoteAgentNode,
    ModelSelectorNode,
    SequenceNode,
    ParallelNode,
    LoopNode,
    RouteNode,
    FallbackNode,
    RaceNode,
    MapOverNode,
    TimeoutNode,
    GateNode,
    ExpectNode,
    TransferNode,
    MiddlewareNode,
    ResourceNode,
    AppNode,
)

__all__ = [
    "HISTORIES",
    "NODES",
    "OPAQUE",
    "SCOPES",
    "UNSET",
    "AdkAgentNode",
    "AgentNode",
    "AppNode",
    "AuthConfig",
    "CompactionConfig",
    "ContentSpec",
    "EdgeSemantics",
    "Effects",
    "ExecutionBoundary",
    "ExecutionConfig",
    "ExpectNode",
    "FallbackNode",
    "FunctionNode",
    "GateNode",
    "History",
    "Location",
    "LoopNode",
    "MapOverNode",
    "Match",
    "Merge",
    "MiddlewareNode",
    "Modality",
    "ModelCandidate",
    "ModelSelectorNode",
    "Node",
    "ParallelNode",
    "Predicate",
    "RaceNode",
    "Ref",
    "RemoteAgentNode",
    "ResourceNode",
    "ResourceScope",
    "RetryConfig",
    "RouteNode",
    "ScalingConfig",
    "Scope",
    "SequenceNode",
    "StateFieldRef",
    "TapNode",
    "TelemetryConfig",
    "TimeoutNode",
    "ToolSpec",
    "TransferNode",
    "TransformNode",
    "TransportConfig",
    "child",
    "children",
    "find",
    "fold",
    "import_path",
    "map",
    "node",
    "replace",
    "walk",
]

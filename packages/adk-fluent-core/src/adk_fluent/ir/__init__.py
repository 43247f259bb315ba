"""The intermediate representation: an expression graph as frozen, stdlib-only data.

Every node of the language is declared here, also those that another wheel runs; `NODES` lists
them. Read `Node` first, then a leaf (`AgentNode`) and an arrangement (`SequenceNode`).
"""

from __future__ import annotations

import adk_fluent as _root

if getattr(_root, "_layers", None) is None:
    from adk_fluent.errors import LegacyPackageError

    raise LegacyPackageError(
        "adk_fluent/__init__.py belongs to another distribution (the old 'adk-fluent')",
        help="pip uninstall adk-fluent && pip install --force-reinstall adk-fluent-core",
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
from adk_fluent.ir._declared import declare_effects, declared_effects
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
from adk_fluent.ir._functions import function
from adk_fluent.ir._hash import content_hash, structure_hash
from adk_fluent.ir._json import registry_of, to_data, to_json
from adk_fluent.ir._kinds import NODES, VALUES
from adk_fluent.ir._legal import Violation, assert_legal, verify
from adk_fluent.ir._load import from_data, from_json
from adk_fluent.ir._names import is_reserved_key, why_reserved
from adk_fluent.ir._node import Node, children, find, fold, map, node, replace, walk
from adk_fluent.ir._path import import_path
from adk_fluent.ir._record import child, field, record
from adk_fluent.ir._ref import Location, Ref
from adk_fluent.ir._rules import CALLBACKS, RULES, Rule
from adk_fluent.ir._state import (
    ENFORCEMENTS,
    OPAQUE,
    SCOPES,
    UNSET,
    Contract,
    Effects,
    Enforcement,
    Scope,
    StateFieldRef,
)
from adk_fluent.ir._values import (
    BUFFERINGS,
    HISTORIES,
    RESOURCE_SCOPES,
    SERIALIZATIONS,
    STRATEGIES,
    AuthConfig,
    Buffering,
    CompactionConfig,
    ContentSpec,
    EdgeSemantics,
    ExecutionBoundary,
    ExecutionConfig,
    History,
    Match,
    Merge,
    MiddlewareRef,
    Modality,
    ModelCandidate,
    OnError,
    Predicate,
    ResourceScope,
    RetryConfig,
    ScalingConfig,
    Serialization,
    Strategy,
    TelemetryConfig,
    ToolSpec,
    TransportConfig,
)
from adk_fluent.ir._yaml import from_yaml, to_yaml

__all__ = [
    "BUFFERINGS",
    "CALLBACKS",
    "ENFORCEMENTS",
    "HISTORIES",
    "NODES",
    "OPAQUE",
    "RESOURCE_SCOPES",
    "RULES",
    "SCOPES",
    "SERIALIZATIONS",
    "STRATEGIES",
    "UNSET",
    "VALUES",
    "AdkAgentNode",
    "AgentNode",
    "AppNode",
    "AuthConfig",
    "Buffering",
    "CompactionConfig",
    "ContentSpec",
    "Contract",
    "EdgeSemantics",
    "Effects",
    "Enforcement",
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
    "MiddlewareRef",
    "Modality",
    "ModelCandidate",
    "ModelSelectorNode",
    "Node",
    "OnError",
    "ParallelNode",
    "Predicate",
    "RaceNode",
    "Ref",
    "RemoteAgentNode",
    "ResourceNode",
    "ResourceScope",
    "RetryConfig",
    "RouteNode",
    "Rule",
    "ScalingConfig",
    "Scope",
    "SequenceNode",
    "Serialization",
    "StateFieldRef",
    "Strategy",
    "TapNode",
    "TelemetryConfig",
    "TimeoutNode",
    "ToolSpec",
    "TransferNode",
    "TransformNode",
    "TransportConfig",
    "Violation",
    "assert_legal",
    "child",
    "children",
    "content_hash",
    "declare_effects",
    "declared_effects",
    "field",
    "find",
    "fold",
    "from_data",
    "from_json",
    "from_yaml",
    "function",
    "import_path",
    "is_reserved_key",
    "map",
    "node",
    "record",
    "registry_of",
    "replace",
    "structure_hash",
    "to_data",
    "to_json",
    "to_yaml",
    "verify",
    "walk",
    "why_reserved",
]

"""Every class the IR is made of, and the name by which files and hashes know a class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent.ir import _agents, _flow, _ref, _state, _values

if TYPE_CHECKING:
    from adk_fluent.ir._node import Node

#: Every node type of the language.
NODES: Final[tuple[type[Node], ...]] = (
    _agents.AgentNode,
    _agents.FunctionNode,
    _agents.TransformNode,
    _agents.TapNode,
    _agents.AdkAgentNode,
    _agents.RemoteAgentNode,
    _agents.ModelSelectorNode,
    _flow.SequenceNode,
    _flow.ParallelNode,
    _flow.LoopNode,
    _flow.RouteNode,
    _flow.FallbackNode,
    _flow.RaceNode,
    _flow.MapOverNode,
    _flow.TimeoutNode,
    _flow.GateNode,
    _flow.ExpectNode,
    _flow.TransferNode,
    _flow.MiddlewareNode,
    _flow.ResourceNode,
    _flow.AppNode,
)

#: Every type of value that nodes carry, beside those of Python.
VALUES: Final[tuple[type[Any], ...]] = (
    _ref.Location,
    _ref.Ref,
    _state.Contract,
    _state.Effects,
    _state.StateFieldRef,
    _values.AuthConfig,
    _values.CompactionConfig,
    _values.ContentSpec,
    _values.EdgeSemantics,
    _values.ExecutionBoundary,
    _values.ExecutionConfig,
    _values.Match,
    _values.MiddlewareRef,
    _values.ModelCandidate,
    _values.RetryConfig,
    _values.ScalingConfig,
    _values.TelemetryConfig,
    _values.ToolSpec,
    _values.TransportConfig,
)


def path_of(cls: type) -> str:
    """``module:qualname`` of a class."""
    return f"{cls.__module__}:{cls.__qualname__}"


def kind_name(cls: type) -> str:
    """A core class by its name, so that it may move between modules; any other by its path."""
    return cls.__qualname__ if cls.__module__.startswith("adk_fluent.ir.") else path_of(cls)


def class_of(value: object) -> type:
    """The class of anything."""
    return type(value)


def reference_of(middleware: object) -> _values.MiddlewareRef | None:
    """The name and settings that are all there is to an object; None if there is more to it."""
    ask = getattr(class_of(middleware), "__middleware_ref__", None)
    found = None if ask is None else ask(middleware)
    return found if isinstance(found, _values.MiddlewareRef) else None

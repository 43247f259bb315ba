"""Durable segments: a pipeline that runs on several processes and survives any of them.

An execution boundary in the expression cuts a pipeline into segments. An engine runs them, each
where a worker serves it. Names are imported on first use; ADK and DBOS are imported when something
runs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adk_fluent.distributed._call import RunStatus, SegmentCall, SegmentResult, Status
    from adk_fluent.distributed._dbos import DbosEngine
    from adk_fluent.distributed._engine import EngineCapabilities, SegmentEngine
    from adk_fluent.distributed._errors import BoundaryError, DistributedRunError, EngineError
    from adk_fluent.distributed._inline import InlineEngine
    from adk_fluent.distributed._key import idempotency_key
    from adk_fluent.distributed._processes import ProcessIsolation
    from adk_fluent.distributed._segments import Pipeline, Segment, SegmentPlan, split
    from adk_fluent.distributed._summaries import RunSummary, WorkerSummary
    from adk_fluent.ir import ExecutionBoundary, ScalingConfig, TransportConfig
else:
    _MODULES = {
        "distributed._call": ("RunStatus", "SegmentCall", "SegmentResult", "Status"),
        "distributed._dbos": ("DbosEngine",),
        "distributed._engine": ("EngineCapabilities", "SegmentEngine"),
        "distributed._errors": ("BoundaryError", "DistributedRunError", "EngineError"),
        "distributed._inline": ("InlineEngine",),
        "distributed._key": ("idempotency_key",),
        "distributed._processes": ("ProcessIsolation",),
        "distributed._segments": ("Pipeline", "Segment", "SegmentPlan", "split"),
        "distributed._summaries": ("RunSummary", "WorkerSummary"),
        "ir": ("ExecutionBoundary", "ScalingConfig", "TransportConfig"),
    }
    _LAZY = {name: module for module, names in _MODULES.items() for name in names}

    def __getattr__(name: str) -> Any:
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"adk_fluent.{_LAZY[name]}"), name)
        return value


__all__ = [
    "BoundaryError",
    "DbosEngine",
    "DistributedRunError",
    "EngineCapabilities",
    "EngineError",
    "ExecutionBoundary",
    "InlineEngine",
    "Pipeline",
    "ProcessIsolation",
    "RunStatus",
    "RunSummary",
    "ScalingConfig",
    "Segment",
    "SegmentCall",
    "SegmentEngine",
    "SegmentPlan",
    "SegmentResult",
    "Status",
    "TransportConfig",
    "WorkerSummary",
    "idempotency_key",
    "split",
]

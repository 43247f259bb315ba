"""Durable segments: a pipeline that runs on several processes and survives any of them.

An execution boundary in the expression cuts a pipeline into segments. An engine runs them, each
where a worker serves it. Names are imported on first use; ADK and DBOS are imported when something
runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.extend import lazy_names

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
else:  # a type checker must see a misspelt name, not Any
    __getattr__ = lazy_names(
        __name__,
        {
            "distributed._call": "RunStatus SegmentCall SegmentResult Status",
            "distributed._dbos": "DbosEngine",
            "distributed._engine": "EngineCapabilities SegmentEngine",
            "distributed._errors": "BoundaryError DistributedRunError EngineError",
            "distributed._inline": "InlineEngine",
            "distributed._key": "idempotency_key",
            "distributed._processes": "ProcessIsolation",
            "distributed._segments": "Pipeline Segment SegmentPlan split",
            "distributed._summaries": "RunSummary WorkerSummary",
            "ir": "ExecutionBoundary ScalingConfig TransportConfig",
        },
    )


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

"""What an engine is: it takes runs, and gets their segments run, also where processes die."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adk_fluent.distributed._call import RunStatus
    from adk_fluent.distributed._segments import Pipeline, SegmentPlan
    from adk_fluent.ir import Node
    from adk_fluent.protocol import Answer, RunResult


@dataclass(frozen=True, slots=True)
class EngineCapabilities:
    """What an engine can do.

    Attributes:
        durable: Runs survive the process that took them.
        multi_process: Several processes share the segments of a run.
        enforces_max_instances: ``ScalingConfig(max_instances=)`` holds across processes.
        cancel: A run can be cancelled, also in the middle of a step.
    """

    durable: bool
    multi_process: bool
    enforces_max_instances: bool
    cancel: bool


@runtime_checkable
class SegmentEngine(Protocol):
    """Runs the segments of pipelines. Runs are known by their ids."""

    @property
    def capabilities(self) -> EngineCapabilities:
        """What it can do."""
        ...

    def register(self, pipeline: Pipeline | Node) -> SegmentPlan:
        """Take a pipeline that is to be served, and return its segments.

        Raises:
            BoundaryError: It cannot be cut, or a segment not be hosted.
        """
        ...

    async def submit(
        self,
        pipeline: Pipeline | Node,
        message: Any,
        *,
        run_id: str | None = None,
        state: Mapping[str, Any] | None = None,
        user_id: str = "user",
    ) -> RunStatus:
        """Begin a run and do not wait for it; one with this id is not begun again."""
        ...

    async def run(
        self,
        pipeline: Pipeline | Node,
        message: Any,
        *,
        run_id: str | None = None,
        state: Mapping[str, Any] | None = None,
        user_id: str = "user",
    ) -> RunResult:
        """Begin a run, or find it by its id, and wait until it ends or asks."""
        ...

    async def status(self, run_id: str) -> RunStatus:
        """Return how a run stands."""
        ...

    async def answer(self, run_id: str, *answers: Answer) -> RunStatus:
        """Answer what a run waits on; without answers, run a failed step again."""
        ...

    async def cancel(self, run_id: str) -> RunStatus:
        """End a run."""
        ...

    async def serve(self, segments: Sequence[str] | None = None) -> None:
        """Run segments of registered pipelines until cancelled; None is all segments."""
        ...

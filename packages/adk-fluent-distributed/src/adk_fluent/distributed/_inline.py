"""The engine ``inline``: every segment in this process, one after the other; for tests."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from adk_fluent.distributed._call import SegmentCall, SegmentResult, status_of
from adk_fluent.distributed._engine import EngineCapabilities
from adk_fluent.distributed._runs import (
    answering,
    checked_id,
    checked_user,
    failed_run,
    new_id,
    refuse_other,
    unknown_run,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from google.adk.artifacts import BaseArtifactService
    from google.adk.sessions import BaseSessionService

    from adk_fluent.distributed._call import RunStatus
    from adk_fluent.distributed._segments import Pipeline, SegmentPlan
    from adk_fluent.distributed._station_adk import Station
    from adk_fluent.ir import ExecutionConfig, Node
    from adk_fluent.protocol import Answer, RunResult


class _Run:
    """A run in memory: its calls, and what came of the last one."""

    def __init__(self, station: Station, call: SegmentCall) -> None:
        self.station = station
        self.call = call
        self.result: SegmentResult | None = None
        self.rest: SegmentResult | None = None
        self.notes: list[dict[str, Any]] = []


class InlineEngine:
    """Runs every segment of a pipeline in this process, each as an App of its own.

    What crosses a boundary is what crosses with every engine: the run's session. Nothing survives
    the process, unless `session_service` keeps it.

    Args:
        config: How pipelines run; None is each pipeline's own configuration.
        session_service: Where state and transcripts are; None is memory.
        artifact_service: Where artifacts are; None is memory.

    Example:
        >>> result = await InlineEngine().run(pipeline, "Order A1 is broken.")
    """

    def __init__(
        self,
        *,
        config: ExecutionConfig | None = None,
        session_service: BaseSessionService | None = None,
        artifact_service: BaseArtifactService | None = None,
    ) -> None:
        self._config = config
        self._sessions = session_service
        self._artifacts = artifact_service
        self._runs: dict[str, _Run] = {}

    @property
    def capabilities(self) -> EngineCapabilities:
        """What it can do."""
        return EngineCapabilities(
            durable=False, multi_process=False, enforces_max_instances=True, cancel=True
        )

    def register(self, pipeline: Pipeline | Node) -> SegmentPlan:
        """Return the segments of a pipeline.

        Raises:
            BoundaryError: It cannot be cut, or a segment not be hosted.
        """
        return self._station(pipeline).plan

    async def submit(
        self,
        pipeline: Pipeline | Node,
        message: Any,
        *,
        run_id: str | None = None,
        state: Mapping[str, Any] | None = None,
        user_id: str = "user",
    ) -> RunStatus:
        """Run until the run ends or waits; a run with this id is not begun again.

        Args:
            pipeline: The pipeline.
            message: What the user says: text, a Part, a Content, or a list of those.
            run_id: The run's id, and that of its session; None makes one.
            state: What the session's state starts with.
            user_id: Whose run it is.

        Raises:
            BoundaryError: The pipeline cannot be cut, or a segment not be hosted.
            DistributedRunError: A run of another pipeline has this id.
            UsageError: The message is none, or the state cannot cross.
        """
        from adk_fluent.distributed import _station_adk as adk  # noqa: PLC0415  # imports ADK

        station = self._station(pipeline)
        run_id = new_id() if run_id is None else checked_id(run_id)
        said, _ = await station.message_of(message, run_id, checked_user(user_id))
        call = SegmentCall(
            run_id,
            station.plan.first,
            0,
            station.plan.fingerprint,
            user_id,
            said,
            station.state_of(state),
            trace=adk.trace_now(),
        )
        known = self._runs.get(run_id)
        if known is not None:
            refuse_other(known.call, call, station.plan)
            return await self.status(run_id)
        run = self._runs[run_id] = _Run(station, call)
        await self._advance(run)
        return await self.status(run_id)

    async def run(
        self,
        pipeline: Pipeline | Node,
        message: Any,
        *,
        run_id: str | None = None,
        state: Mapping[str, Any] | None = None,
        user_id: str = "user",
    ) -> RunResult:
        """Run until the run ends or waits; arguments as for `submit`.

        Returns:
            The events of the whole run, with its answer, state and questions.

        Raises:
            DistributedRunError: A step failed, or the run was cancelled; see `answer`.
        """
        stands = await self.submit(pipeline, message, run_id=run_id, state=state, user_id=user_id)
        if stands.status in ("failed", "cancelled"):
            raise failed_run(stands)
        known = self._runs[stands.run_id]
        return await known.station.recall(stands.run_id, user_id, known.notes)

    async def status(self, run_id: str) -> RunStatus:
        """Return how a run stands.

        Raises:
            DistributedRunError: There is no such run.
        """
        run = self._known(run_id)
        result, rest = (each and each.to_dict() for each in (run.result, run.rest))
        return status_of(run.call.to_dict(), result, rest)

    async def answer(self, run_id: str, *answers: Answer) -> RunStatus:
        """Answer questions of a run, and run it until it ends or waits again.

        Args:
            run_id: The run.
            *answers: Answers, as of ``status.pending[0].answer(True)``. Without one, the step that
                failed is run again.

        Raises:
            DistributedRunError: There is no such run or question, or nothing to run again.
            UsageError: An answer does not fit its question, which stays open.
        """
        run = self._known(run_id)
        given = answering(await self.status(run_id), answers)
        run.call = replace(run.call, number=run.call.number + 1, answers=given)
        await self._advance(run)
        return await self.status(run_id)

    async def cancel(self, run_id: str) -> RunStatus:
        """End a run that waits or failed; one that ended stays as it is.

        Raises:
            DistributedRunError: There is no such run.
        """
        run = self._known(run_id)
        if run.result is None or run.result.status in ("waiting", "failed"):
            run.rest, run.result = run.result, SegmentResult("cancelled")
        return await self.status(run_id)

    async def serve(self, segments: Sequence[str] | None = None) -> None:
        """Return at once: `submit` has run every segment already."""

    async def _advance(self, run: _Run) -> None:
        while True:
            run.rest, run.result = run.result or run.rest, None
            station = run.station
            result = await station.advance(run.call, beside=station.plan.names)
            run.notes += result.notes
            if result.next is None:
                run.result = result
                return
            run.call = run.call.next(result.next)

    def _station(self, pipeline: Pipeline | Node) -> Station:
        from adk_fluent.distributed._station_adk import Station  # noqa: PLC0415  # imports ADK

        if self._sessions is None:
            from adk_fluent.distributed._memory_adk import MemorySessions  # noqa: PLC0415  # slow

            self._sessions = MemorySessions()
        return Station(pipeline, self._config, self._sessions, self._artifacts)

    def _known(self, run_id: str) -> _Run:
        if run_id not in self._runs:
            raise unknown_run(run_id)
        return self._runs[run_id]

"""Replaying a whole recording, and comparing what comes of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from adk_fluent.debug._diff import OURS, EventDiff, diff_events, first_difference
from adk_fluent.debug._errors import PipelineMismatchError, ReplayMismatchError
from adk_fluent.debug._recorded_run import called
from adk_fluent.debug._recording import check_usable
from adk_fluent.debug._replayer_backend import ReplayerBackend
from adk_fluent.extend import must_be, run_sync
from adk_fluent.ir import AppNode, ExecutionConfig, Node
from adk_fluent.protocol import Resume

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from adk_fluent.debug._recorded_run import Interaction, RecordedRun
    from adk_fluent.debug._recording import Recording
    from adk_fluent.debug._redaction import Redact
    from adk_fluent.debug._tape import OnMismatch, ToolMode
    from adk_fluent.protocol import AgentEvent, RunResult


@dataclass(frozen=True, repr=False)
class ReplayReport:
    """What a replay of a recording amounts to.

    Attributes:
        backend: What replayed it.
        events: The events of all runs, those of runs that failed up to there.
        results: What each run gave; None where it failed.
        problems: What differs beside events: errors and final state, one line each.
    """

    backend: ReplayerBackend
    events: list[AgentEvent] = field(default_factory=list["AgentEvent"])
    results: list[RunResult | None] = field(default_factory=list["RunResult | None"])
    problems: list[str] = field(default_factory=list[str])

    @cached_property
    def diff(self) -> EventDiff:
        """What differs from the recorded events."""
        return diff_events(self.backend.recording.events, self.events)

    @property
    def unused(self) -> list[Interaction]:
        """Calls of the recording that no run has asked for."""
        return self.backend.unused

    @property
    def ok(self) -> bool:
        """Whether the runs went as recorded, and used all that was recorded."""
        return not (self.diff or self.problems or self.unused)

    @property
    def summary(self) -> str:
        """What differs, in a few lines."""
        lines = [self.diff.summary, *self.problems]
        lines += [f"not asked for: {called(each)}" for each in self.unused]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<ReplayReport: {'as recorded' if self.ok else 'not as recorded'}, {self.summary}>"


async def replay_async(
    pipeline: Any,
    recording: Recording | str | os.PathLike[str],
    *,
    on_mismatch: OnMismatch = "error",
    tools: ToolMode | Mapping[str, ToolMode] = "replay",
    redact: Redact | None = None,
    config: ExecutionConfig | None = None,
) -> ReplayReport:
    """Run a pipeline on a recording, with the messages and answers that were recorded.

    Args:
        pipeline: A builder, or IR.
        recording: The recording, or its file.
        on_mismatch: See `ReplayerBackend`.
        tools: See `ReplayerBackend`.
        redact: What was taken out of the recording, as it was given to the `Recorder`.
        config: How to run; None streams those runs that were streamed when they were recorded.

    Raises:
        ReplayMismatchError: A run asks for something else than was recorded.
        PipelineMismatchError: The recording is of another pipeline.
        UsageError: The recording cannot be replayed, or is one of ADK's, which holds no events.
    """
    backend = ReplayerBackend(recording, on_mismatch, tools, redact=redact)
    backend.cancels = True
    recording = backend.recording
    check_usable(recording, "replayed", compared=True)
    node: Any = pipeline.to_ir() if hasattr(pipeline, "to_ir") else pipeline
    help = "replay(pipeline, 'run.json'); Pipeline(agent) makes one of an agent of ADK"
    must_be(Node, node, "replay takes a pipeline and a recording of it", help)
    own = (node.execution if isinstance(node, AppNode) else None) or ExecutionConfig()
    compiled: dict[bool, Any] = {}
    report = ReplayReport(backend)
    before: dict[str, tuple[RecordedRun, RunResult]] = {}
    heard = SimpleNamespace(on_event=report.events.append)  # also of a run that fails
    for number, run in enumerate(recording.runs):
        error: BaseException | None = None
        result: RunResult | None = None
        streams = any(each.get("stream") for each in run.tape)
        if streams not in compiled:
            how = config or replace(own, streaming_mode="sse" if streams else "none")
            compiled[streams] = backend.compile(node, how)
        prompt, session = _prompt(run, before.get(run.session_id)), f"replay-{run.session_id}"
        try:
            # in a task of its own, which is the one that is cancelled where the recorded run was
            result = await asyncio.create_task(
                backend.run(compiled[streams], prompt, session_id=session, listeners=[heard])
            )
            before[run.session_id] = (run, result)
        except (ReplayMismatchError, PipelineMismatchError):
            raise
        except Exception as raised:  # noqa: BLE001  # compared with what was recorded
            error = raised
        except asyncio.CancelledError as raised:
            task = asyncio.current_task()
            if run.status != "cancelled" or (task is not None and task.cancelling()):
                raise  # it is the replay that is cancelled
            error = raised
        report.results.append(result)
        report.problems.extend(_problems(f"run {number}", run, result, error))
    return report


def replay(
    pipeline: Any, recording: Recording | str | os.PathLike[str], **options: Any
) -> ReplayReport:
    """The same as `replay_async`, for code that is not async.

    Args:
        pipeline: A builder, or IR.
        recording: The recording, or its file.
        **options: See `replay_async`.

    Raises:
        UsageError: An event loop is running; use `replay_async` there.
    """
    return run_sync("replay", lambda: replay_async(pipeline, recording, **options))


def _prompt(run: RecordedRun, before: tuple[RecordedRun, RunResult] | None) -> Any:
    """What a run is given: what was said, or the answers to what the run before it asks now."""
    from adk_fluent.debug._adk import load_content  # noqa: PLC0415  # ADK, when it is used

    if run.message is not None and not run.resumed:
        return load_content(run.message)
    if before is None:
        return Resume()
    recorded, result = before
    ids = [each.id for event in recorded.events for each in event.pending]
    now = dict(zip(ids, result.pending, strict=False))
    given = [(now.get(each.get("id", "")), each.get("response")) for each in run.answers]
    return Resume(tuple(asked.answer(said) for asked, said in given if asked is not None))


def _problems(
    name: str, run: RecordedRun, result: RunResult | None, error: BaseException | None
) -> Iterator[str]:
    """What differs between a recorded run and one of now, beside events."""
    from adk_fluent.debug._adk import dump_error  # noqa: PLC0415  # ADK, when it is used

    raised: dict[str, Any] = run.data.get("error") or {}
    was = raised.get("type", "")
    now = "" if error is None else dump_error(error)["type"]
    was_ended = run.status == "cancelled"  # from outside, or by who read its events no further
    ends = was_ended and (error is None or isinstance(error, asyncio.CancelledError))
    if was != now and not ends and getattr(error, "type_name", now) != was:
        found = f"{now}: {error}" if error is not None else "none"
        yield f"{name} raised {was or 'nothing'} and now {found}"
    if result is not None and run.state is not None:
        *_, last = (run.state, *run.states)
        changed = first_difference(_compared(last), _compared(result.state))
        if changed is not None:
            yield f"{name} ends with other state at {changed}"


def _compared(state: Mapping[str, Any]) -> dict[str, Any]:
    """State without keys that may have the id of a call or a run; events are compared with them."""
    return {key: value for key, value in state.items() if not key.startswith(OURS)}

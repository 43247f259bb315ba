"""Recording runs: in a block, or as a middleware."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.debug._notes import Notes
from adk_fluent.errors import UsageError
from adk_fluent.extend import LOG, middleware_everywhere
from adk_fluent.protocol import Middleware, MiddlewareDesc

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from typing import Self

    from adk_fluent.debug._recording import Recording

_OTHERS: Final = (
    "a block reaches pipelines that are compiled in it, and no other threads, as DbosEngine has "
    "them; those are recorded where the pipeline has it, pipeline.middleware(recorder), and agents "
    "of ADK as a step of one, Pipeline(agent)"
)
_FLAGS: Final = {"capture_content": True, "capture_state": True, "spans": False}


class Recorder(Notes, Middleware):
    """Records runs: every model call, tool call and event, and state.

    ::

        with Recorder() as recorder:
            await pipeline.run("Where is order A1?")
        recorder.save("recordings/order.json")

    In a block, every run of a pipeline that is compiled there is recorded, and builders compile
    when they run. As a middleware, ``pipeline.run(..., middleware=[recorder])`` records that run.
    It stands inside all other middlewares: what is recorded is what models and tools really got.

    Credentials are taken out before anything is written: under their keys, wherever the same value
    recurs, and in prose. Everything recorded is held in memory until then. With ``stream=``, it is
    appended to a file while it happens, too: a process that is killed leaves what happened.

    Live (bidirectional) runs have no model calls that could be recorded: their events are.

    Args:
        capture_content: Record prompts, answers, arguments and results. Without them, what remains
            is who called what, when, how long, and at which cost; it cannot be replayed.
        capture_state: Record session state at the start of each run, on which
            `Recording.state_at` rests; what events write is recorded in either case.
        redact: What is taken out beside credentials: a function of plain data that returns it
            changed, or an object with such a ``redact``, as a `Redactor` is.
        stream: A file to which each call and event is appended when it happens, as lines of JSON;
            `Recording.load` reads it. If there is a recording in it already, the first run is
            refused before any call.
        overwrite: Write over a recording that is in the file of the stream.
        spans: Record OpenTelemetry's spans of each run, too: `RecordedRun.spans`. A program that
            has set no tracer provider gets one as ``adk web`` sets it. Nothing else rests on them.

    Raises:
        UsageError: An argument is of the wrong type.
        UnknownNameError: It takes no such argument.
    """

    at_boundary = True
    adds_tools: Sequence[str] | None = ()

    def __enter__(self) -> Self:
        """Record every run of a pipeline that is compiled in this block."""
        block = ExitStack()
        block.enter_context(middleware_everywhere(self))
        self._blocks.append(block)
        return self

    def __exit__(self, *error: object) -> None:
        """Record no further runs; that there were none is logged."""
        self._blocks.pop().close()
        if not self._runs and error[0] is None:
            LOG.warning("no run was recorded in this block: %s", _OTHERS)

    def new(self) -> Any:
        """What records one run; runs that a recorded tool starts are part of its call."""
        from adk_fluent.debug._run_recorder import run_recorder  # noqa: PLC0415  # ADK, when used

        return run_recorder(self)

    def get_recording(self) -> Recording:
        """The same as `recording`."""
        return self.recording

    def save(self, path: str | PathLike[str]) -> None:
        """Write what was recorded to a file; see `Recording.save`.

        Raises:
            RecordingFileError: The file cannot be written, or holds what is no recording.
            UsageError: Nothing was recorded, or it is the file of the stream, which goes on.
        """
        if not self._runs:
            raise UsageError(
                "there is nothing to save: no run was recorded",
                help=f"run something in `with recorder:`, or with middleware=[recorder]; {_OTHERS}",
            )
        if self._file is not None and Path(path).resolve() == Path(self._file).resolve():
            raise UsageError(
                f"what was recorded is in {Path(path).name!r} already, which is the stream",
                help="save to another file",
            )
        self.recording.save(path)


#: `Recorder` by its short name.
recorder = Recorder

DESC: Final = MiddlewareDesc(
    "recorder",
    "Records runs, to be replayed without a model or a tool.",
    Recorder,
    {
        "type": "object",
        "properties": {key: {"type": "boolean", "default": on} for key, on in _FLAGS.items()},
        "additionalProperties": False,
    },
)

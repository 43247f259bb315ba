"""Recording runs, and what becomes of what was recorded."""

from __future__ import annotations

import sys
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.debug._errors import log_warning
from adk_fluent.debug._recording import Recording
from adk_fluent.debug._redaction import Redact, Redaction, without_content
from adk_fluent.debug._run import RecordedRun
from adk_fluent.errors import UsageError
from adk_fluent.extend import describe
from adk_fluent.protocol import Middleware, MiddlewareDesc

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from adk_fluent.debug._file import Stream
    from adk_fluent.debug._run_recorder import RunRecorder

Data = dict[str, Any]

_OTHERS: Final = (
    "what runs in other threads, as with DbosEngine, is recorded where the pipeline has it: "
    "pipeline.middleware(recorder)"
)
_PACKAGES: Final = ("adk-fluent-core", "adk-fluent-debug", "google-adk", "google-genai")


class Recorder(Middleware):
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
    """

    at_boundary = True
    adds_tools: Sequence[str] | None = ()

    def __init__(
        self,
        capture_content: bool = True,
        capture_state: bool = True,
        redact: Redact | None = None,
        *,
        stream: str | PathLike[str] | None = None,
        overwrite: bool = False,
        spans: bool = False,
    ) -> None:
        flags = {"capture_content": capture_content, "capture_state": capture_state}
        flags |= {"overwrite": overwrite, "spans": spans}
        for name, value in flags.items():
            if not isinstance(value, bool):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers may be untyped
                raise UsageError(f"{name}= takes True or False", found=type(value).__name__)
        if not isinstance(stream, str | PathLike | None):  # pyright: ignore[reportUnnecessaryIsInstance]  # the same
            raise UsageError("stream= takes the path of a file", found=describe(stream))
        self.capture_content: bool = capture_content
        self.capture_state: bool = capture_state
        self.spans: bool = spans
        #: What is taken out.
        self.redaction: Redaction = Redaction(redact)
        self._file = stream
        self._overwrite = overwrite
        self._stream: Stream | None = None
        self._runs: list[RunRecorder] = []
        self._blocks: list[ExitStack] = []
        self._built: tuple[tuple[Any, ...], Recording] | None = None

    def __enter__(self) -> Self:
        """Record every run of a pipeline that is compiled in this block."""
        from adk_fluent.extend import middleware_everywhere  # noqa: PLC0415  # slow to import

        self._attach()
        self._blocks.append(ExitStack())
        self._blocks[-1].enter_context(middleware_everywhere(self))
        return self

    def __exit__(self, *error: object) -> None:
        """Record no further runs; that there were none is logged."""
        self._blocks.pop().close()
        if not self._runs and error[0] is None:
            log_warning("no run was recorded in this block: %s", _OTHERS)

    def new(self) -> Any:
        """What records one run; runs that a recorded tool starts are part of its call."""
        from adk_fluent.debug._run_recorder import (  # noqa: PLC0415  # ADK, when it is used
            RunRecorder,
            SpanRecorder,
            is_within,
        )

        self._attach()
        if is_within(self):
            return Middleware()
        return SpanRecorder(self) if self.spans else RunRecorder(self)

    def _attach(self) -> None:
        if self.spans:
            from adk_fluent.debug._spans_adk import attach  # noqa: PLC0415  # ADK, when it is used

            attach()

    @property
    def streams(self) -> bool:
        """Whether what happens is written while it happens."""
        return self._file is not None

    def begun(self, run: RunRecorder) -> None:
        """Take in a run that has begun.

        Raises:
            RecordingFileError: The file for the stream cannot be written, or would be missed.
        """
        if self._file is not None and self._stream is None:
            from pathlib import Path  # noqa: PLC0415  # slow to import, and seldom needed

            from adk_fluent.debug._file import Stream  # noqa: PLC0415  # the same

            self._stream = Stream(
                Path(self._file), self._metadata(), self.redaction, overwrite=self._overwrite
            )
        run.number = len(self._runs)
        self._runs.append(run)
        self.went_on(run)

    def went_on(self, run: RunRecorder, entry: Data | None = None) -> None:
        """Write to the stream what a run has done, or else what is known of it."""
        if self._stream is not None and run.number is not None:
            part = run.known() if entry is None else {"tape": [entry]}
            self._stream.add(run.number, part)

    def knows(self, session_id: str) -> bool:
        """Whether it has recorded an earlier run of a session."""
        return any(each.session_id == session_id for each in self._runs)

    @property
    def recording(self) -> Recording:
        """What was recorded so far."""
        mark = tuple((len(each.tape), each.status, len(each.spans or ())) for each in self._runs)
        if self._built is None or self._built[0] != mark:
            self._built = (mark, self._build())
        return self._built[1]

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
        if self._file is not None:
            from pathlib import Path  # noqa: PLC0415  # slow to import, and seldom needed

            if Path(path).resolve() == Path(self._file).resolve():
                raise UsageError(
                    f"what was recorded is in {Path(path).name!r} already, which is the stream",
                    help="save to another file",
                )
        self.recording.save(path)

    def _build(self) -> Recording:
        raw = [each.data() for each in self._runs]
        secrets = {each for run in raw for each in self.redaction.secrets_of(run)}
        clean = (self.redaction.scrub_run(each, secrets) for each in raw)
        runs = clean if self.capture_content else map(without_content, clean)
        return Recording([*map(RecordedRun, runs)], self._metadata())

    def _metadata(self) -> Data:
        return {
            "recorded_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": _versions(),
            "capture_content": self.capture_content,
            "capture_state": self.capture_state,
        }


def _versions() -> Data:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415  # slow to import

    made: Data = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            made[name] = version(name)
    return made


#: `Recorder` by its short name.
recorder = Recorder

DESC: Final = MiddlewareDesc(
    "recorder",
    "Records runs, to be replayed without a model or a tool.",
    Recorder,
    {
        "type": "object",
        "properties": {
            "capture_content": {"type": "boolean", "default": True},
            "capture_state": {"type": "boolean", "default": True},
            "spans": {"type": "boolean", "default": False},
        },
        "additionalProperties": False,
    },
)

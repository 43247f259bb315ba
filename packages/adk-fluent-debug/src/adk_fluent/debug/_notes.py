"""What is held of runs that are recorded, and what becomes of it."""

from __future__ import annotations

import sys
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Never

from adk_fluent.debug._file import Stream
from adk_fluent.debug._recorded_run import Data, RecordedRun, pipeline_data
from adk_fluent.debug._recording import Recording
from adk_fluent.debug._redaction import Redact, Redaction, without_content
from adk_fluent.errors import UnknownNameError
from adk_fluent.extend import must_be

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.debug._spans_adk import Spans
    from adk_fluent.ir import Node

_PACKAGES: Final = ("adk-fluent-core", "adk-fluent-debug", "google-adk", "google-genai")


#: Something that happened: when (`time.perf_counter`), the tool call that it is part of and who has
#: that, what makes an entry of a tape of the rest, and the rest, which nobody changes.
Note = tuple[float, "tuple[Notes, int] | None", "Callable[..., Data]", tuple[Any, ...]]


class RunNotes:
    """What is held of a run.

    Args:
        notes: All that its recorder has noted.

    Attributes:
        notes: The same.
        tape: What happened, in order, some of it not yet data.
        began: When it began (`time.perf_counter`).
        head: What is known of it beside that, as it stands in a file; empty until it begins.
        number: Which of their runs it is; None until it has begun.
        root: The pipeline, if there is one.
        spans: Its spans; None if they are not recorded.
    """

    def __init__(self, notes: Notes) -> None:
        self.notes: Notes = notes
        self.tape: list[Note] = []
        self.began: float = 0.0
        self.head: Data = {}
        self.number: int | None = None
        self.root: Node | None = None
        self.spans: Spans | None = None

    def data(self) -> Data:
        """The run as it stands in a file, nothing taken out yet."""
        return {**self.known(), "tape": [*map(self.entry, self.tape)]}

    def known(self) -> Data:
        """What is known of the run beside what has happened in it, which is left out."""
        made: Data = {**self.head, "tape": []}
        if self.root is not None:
            made["pipeline"] = pipeline_data(self.root)
        if self.spans is not None:
            made["spans"] = self.spans.data()
        return made if self.notes.capture_content else without_content(made)

    def entry(self, note: Note) -> Data:
        """What happened as an entry of a tape, the time first."""
        at, within, make, what = note
        entry = make(*what)
        made: Data = {"t": round((at - self.began) * 1000, 3)}
        made |= {key: each for key, each in entry.items() if each is not None or key == "result"}
        if within is not None and within[0] is self.notes:
            made["within"] = within[1]
        return made


class Notes:
    """Keeps what is recorded of runs: what a `Recorder` is beside a middleware.

    Args:
        capture_content: See `Recorder`, as for the others.
        capture_state: Whether state at the start of each run is recorded.
        redact: What is taken out.
        stream: The file of the stream.
        overwrite: Whether a recording in it may be written over.
        spans: Whether spans are recorded.
    """

    def __init__(
        self,
        capture_content: bool = True,
        capture_state: bool = True,
        redact: Redact | None = None,
        *,
        stream: str | PathLike[str] | None = None,
        overwrite: bool = False,
        spans: bool = False,
        **unknown: Never,
    ) -> None:
        flags = {"capture_content": capture_content, "capture_state": capture_state}
        flags |= {"overwrite": overwrite, "spans": spans}
        for name in unknown:
            known = ("redact", "stream", *flags)
            raise UnknownNameError(f"Recorder takes no {name!r}", unknown=name, known=known)
        for name, value in flags.items():
            must_be(bool, value, f"{name}= takes True or False")
        must_be(str | PathLike | None, stream, "stream= takes the path of a file")
        self.capture_content: bool = capture_content
        self.capture_state: bool = capture_state
        self.spans: bool = spans
        #: What is taken out.
        self.redaction: Redaction = Redaction(redact)
        #: Whether what happens is written while it happens.
        self.streams: bool = stream is not None
        self._file = stream
        self._overwrite = overwrite
        self._stream: Stream | None = None
        self._runs: list[RunNotes] = []
        self._blocks: list[ExitStack] = []
        self._built: tuple[tuple[Any, ...], Recording] | None = None

    def begun(self, run: RunNotes) -> None:
        """Take in a run that has begun.

        Raises:
            RecordingFileError: The file for the stream cannot be written, or would be missed.
        """
        if self._file is not None and self._stream is None:
            self._stream = Stream(
                Path(self._file), self._metadata(), self.redaction, overwrite=self._overwrite
            )
        run.number = len(self._runs)
        self._runs.append(run)
        self.went_on(run)

    def went_on(self, run: RunNotes, entry: Data | None = None) -> None:
        """Write to the stream what a run has done, or else what is known of it."""
        if self._stream is not None and run.number is not None:
            part = run.known() if entry is None else {"tape": [entry]}
            self._stream.add(run.number, part)

    def knows(self, session_id: str) -> bool:
        """Whether it has recorded an earlier run of a session."""
        return any(each.head["session_id"] == session_id for each in self._runs)

    @property
    def recording(self) -> Recording:
        """What was recorded so far."""
        mark = tuple((len(each.tape), len(each.head)) for each in self._runs)
        if self._built is None or self._built[0] != mark:
            self._built = (mark, self._build())
        return self._built[1]

    def _build(self) -> Recording:
        raw = [each.data() for each in self._runs]
        secrets = {each for run in raw for each in self.redaction.secrets_of(run)}
        clean = (self.redaction.scrub_run(each, secrets) for each in raw)
        return Recording([*map(RecordedRun, clean)], self._metadata())

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

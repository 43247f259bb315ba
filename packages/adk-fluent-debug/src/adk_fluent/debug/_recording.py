"""What was recorded: a file of JSON, and what a reader finds in it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from adk_fluent.debug import _file
from adk_fluent.debug._errors import RecordingFileError
from adk_fluent.debug._recorded_run import Data, Recorded, RecordedRun
from adk_fluent.errors import UsageError
from adk_fluent.extend import LOG, must_be

if TYPE_CHECKING:
    from typing import Self


class Recording(Recorded):
    """What a `Recorder` has recorded: one or more runs, with everything that a replay needs.

    Attributes:
        runs: The runs, in the order in which they began.
        metadata: ``recorded_at``, ``versions``, and what else is known of where it was made.
        path: The file it was loaded from or saved to; None if there is none.
        edited: Its file was changed by hand after it was written.
    """

    # --- files ---------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, all of it or nothing; missing folders are made.

        An older recording in that file is written over.

        Raises:
            RecordingFileError: The file cannot be written, or holds what is no recording.
        """
        file = _place(path)
        _file.check_replaced(file)
        _file.write(file, self.to_json())
        self.path: Path | None = file

    def to_json(self) -> str:
        """What stands in its file."""
        body: Data = {
            "format": _file.FORMAT,
            "version": _file.VERSION,
            "metadata": self.metadata,
            "runs": [run.data for run in self.runs],
        }
        head = {"format": _file.FORMAT, "version": _file.VERSION, "checksum": _file.checksum(body)}
        return json.dumps({**head, **body}, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file.

        A file that was edited is read all the same; that is logged, and `edited` says it. Files of
        ``Recorder(stream=...)`` are read as far as they were written, and have no checksum.

        Raises:
            RecordingFileError: It cannot be read, is no recording, or of a newer version.
            UsageError: It is no path.
        """
        file = _place(path)
        made = cls.from_json(_file.read(file), str(file))
        made.path = file
        return made

    @classmethod
    def from_json(cls, text: str, path: str = "<text>") -> Self:
        """Read what `to_json` gave.

        Args:
            text: The JSON.
            path: What errors call it.

        Raises:
            RecordingFileError: It is no recording, or of a newer version.
        """
        data = _file.parsed(text, path)
        made = cls([RecordedRun(each) for each in data["runs"]], data["metadata"])
        body = {key: value for key, value in data.items() if key != "checksum"}
        made.edited = not _file.is_stream(text) and data.get("checksum") != _file.checksum(body)
        if made.edited:
            LOG.warning("%s was edited since it was recorded: its checksum does not fit", path)
        return made

    def to_adk_recordings(self, path: str | os.PathLike[str]) -> Path:
        """Write its calls in the form of ADK's own recordings, for ``adk conformance``.

        ADK's form has no room for calls that failed or were not answered, nor for events, state,
        and what tools have done to it. Runs become user messages, in order.

        Args:
            path: The file, which ADK calls ``generated-recordings.yaml`` in the folder of a test
                case. It is written over whatever it holds.

        Returns:
            The file.

        Raises:
            RecordingFileError: The file cannot be written, or a call has no place in it.
            UsageError: The recording holds no content.
        """
        check_usable(self, "written as one of ADK's")
        from adk_fluent.debug._conformance_adk import export  # noqa: PLC0415  # it imports ADK

        file = _place(path)
        export(self.runs, file)
        return file

    @classmethod
    def from_adk_recordings(cls, path: str | os.PathLike[str]) -> Self:
        """Read a recording that ADK's own plugin or ``adk conformance record`` has written.

        It holds model calls and tool calls, and no events, state or times. A replay answers with
        them; what tools have done to state is not known.

        Args:
            path: The file, ``generated-recordings.yaml`` in the folder of a test case.

        Raises:
            RecordingFileError: The file cannot be read, or is no such recording.
        """
        from adk_fluent.debug._conformance_adk import load  # noqa: PLC0415  # it imports ADK

        file = _place(path)
        made = cls([RecordedRun(each) for each in load(file)], {"source": "google-adk"})
        made.path = file
        return made

    def to_html(self, path: str | os.PathLike[str], *, against: Recording | None = None) -> Path:
        """Write it as one page of HTML, which shows who did what when, and loads nothing.

        The page holds all that the recording holds, and is as secret.

        Args:
            path: The file; all of it is written, or nothing, and over nothing else than an older
                page. Missing folders are made.
            against: A recording that is shown beside it, with the first difference marked.

        Returns:
            The file.

        Raises:
            UsageError: `against` is no recording.
            RecordingFileError: The file cannot be written, or holds something else.
        """
        from adk_fluent.debug._html import html_page  # noqa: PLC0415  # seldom needed

        what, help = "to_html(against=) takes a recording", "Recording.load(path) reads a file"
        must_be(Recording | None, against, what, help)
        file = _place(path)
        _file.RecordingFile.write_page(file, [html_page(self, against)])
        return file

    def to_pytest(self, path: str | os.PathLike[str], target: str) -> Path:
        """Write a test that replays this recording, and compares events and state.

        Args:
            path: The test file, in the place of which there must be none; the recording is saved
                beside it if it has no file yet.
            target: The pipeline, as ``module:attribute`` or ``path.py:attribute``.

        Returns:
            The file.

        Raises:
            UsageError: The recording holds no content, or no events.
            TargetError: The target is none, its file is not there, or nothing in that has its name;
                a module is not imported for it.
            RecordingFileError: The file cannot be written, or is there already.
        """
        from adk_fluent.cli import find_target  # noqa: PLC0415  # slow to import

        check_usable(self, "replayed", compared=True)
        file = _place(path)
        if file.exists():
            raise RecordingFileError("there is such a file already", path=str(file))
        place = find_target(target)
        saved = self.path or file.with_suffix(".json")
        if self.path is None:
            self.save(saved)
        beside, loaded = _relative(saved, file.parent), repr(target)
        if place.is_file:
            source = _relative(Path(place.source), file.parent)
            loaded = f'f"{{HERE / {source!r}}}{target.removeprefix(place.source)}"'
        _file.write(file, _TEST.format(file=beside, target=loaded))
        return file


def _place(path: str | os.PathLike[str]) -> Path:
    must_be(str | os.PathLike, path, "a file is given by its path", "a text, or a Path")
    return Path(path)


def check_usable(recording: Recording, use: str, *, compared: bool = False) -> None:
    """Refuse a recording that holds too little for what is to be done with it.

    Args:
        recording: The recording.
        use: What is to be done.
        compared: Events are compared, which a recording of ADK's does not have.

    Raises:
        UsageError: It holds too little.
    """
    if not recording.metadata.get("capture_content", True):
        raise UsageError(
            f"this recording cannot be {use}: it holds no content",
            found="it was recorded with capture_content=False",
            help="record with Recorder(capture_content=True)",
        )
    if compared and any(run.data.get("unordered") for run in recording.runs):
        raise UsageError(
            "there is nothing to compare with: a recording of ADK's holds no events",
            help="pipeline.run(message, backend=ReplayerBackend(recording)), and look at .unused",
        )


_TEST: Final = '''\
"""Replays {file}: no model is asked, and no tool runs."""

from pathlib import Path

from adk_fluent.cli import load
from adk_fluent.debug import Recording, replay

HERE = Path(__file__).parent


def test_recording() -> None:
    recording = Recording.load(HERE / {file!r})
    report = replay(load({target}), recording)
    assert report.ok, report.summary
'''


def _relative(path: Path, start: Path) -> str:
    try:
        return Path(os.path.relpath(path, start)).as_posix()
    except ValueError:  # on another drive
        return path.resolve().as_posix()

"""Writing a test that replays a recording."""

from __future__ import annotations

import keyword
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from adk_fluent.debug._errors import RecordingFileError
from adk_fluent.errors import UsageError

if TYPE_CHECKING:
    from adk_fluent.debug._recording import Recording

_TEST: Final = '''\
"""Replays {file}: no model is asked, and no tool runs."""

from pathlib import Path

from adk_fluent.cli import load
from adk_fluent.debug import Recording, replay

HERE = Path(__file__).parent


def {name}() -> None:
    recording = Recording.load(HERE / {file!r})
    report = replay(load({target}), recording)
    assert report.ok, report.summary
'''


def write_test(recording: Recording, path: str | os.PathLike[str], target: str, name: str) -> Path:
    """Write the test, and the recording beside it if it has no file yet.

    Raises:
        UsageError: The target or the name is of no use, or the recording holds no content.
        RecordingFileError: The file cannot be written.
    """
    file = Path(path)
    if not name.isidentifier() or keyword.iskeyword(name) or not name.startswith("test"):
        raise UsageError(
            "to_pytest(name=...) takes a name that pytest collects",
            found=repr(name),
            help="such as test_refund",
        )
    source, colon, attribute = target.rpartition(":")
    if not colon or not source or not attribute:
        raise UsageError(
            "to_pytest(target=...) takes module:attribute or path.py:attribute",
            found=repr(target),
        )
    if not recording.captures_content:
        raise UsageError(
            "this recording cannot be replayed: it holds no content",
            help="record with Recorder(capture_content=True)",
        )
    if recording.path is None:
        recording.save(file.with_suffix(".json"))
    assert recording.path is not None  # noqa: S101  # just saved
    beside = _relative(recording.path, file.parent)
    loaded = repr(target)
    if source.endswith(".py"):
        loaded = f'f"{{HERE / {_relative(Path(source), file.parent)!r}}}:{attribute}"'
    text = _TEST.format(file=beside, name=name, target=loaded)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    except OSError as error:
        raise RecordingFileError(
            "the test cannot be written", path=str(file), found=error.strerror
        ) from error
    return file


def _relative(path: Path, start: Path) -> str:
    try:
        return Path(os.path.relpath(path, start)).as_posix()
    except ValueError:  # on another drive
        return path.resolve().as_posix()

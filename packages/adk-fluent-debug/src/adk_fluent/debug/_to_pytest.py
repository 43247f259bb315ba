"""Writing a test that replays a recording."""

from __future__ import annotations

import keyword
import os
from pathlib import Path
from typing import Final

from adk_fluent.debug._file import write, writing
from adk_fluent.errors import UsageError

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


def check_test(target: str, name: str) -> None:
    """Refuse a test that pytest could not collect, or that could not find its pipeline.

    Raises:
        UsageError: The target or the name is of no use.
    """
    if not name.isidentifier() or keyword.iskeyword(name) or not name.startswith("test"):
        raise UsageError(
            "to_pytest(name=...) takes a name that pytest collects",
            found=repr(name),
            help="such as test_refund",
        )
    source, _, attribute = target.rpartition(":")
    if not source or not attribute:
        raise UsageError(
            "to_pytest(target=...) takes module:attribute or path.py:attribute", found=repr(target)
        )


def write_test(file: Path, target: str, name: str, recording: Path) -> None:
    """Write the test.

    Raises:
        RecordingFileError: The file cannot be written.
    """
    source, _, attribute = target.rpartition(":")
    loaded = repr(target)
    if source.endswith(".py"):
        loaded = f'f"{{HERE / {_relative(Path(source), file.parent)!r}}}:{attribute}"'
    beside = _relative(recording, file.parent)
    with writing(file, "test"):
        write(file, _TEST.format(file=beside, name=name, target=loaded))


def _relative(path: Path, start: Path) -> str:
    try:
        return Path(os.path.relpath(path, start)).as_posix()
    except ValueError:  # on another drive
        return path.resolve().as_posix()

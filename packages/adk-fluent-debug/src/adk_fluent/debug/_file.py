"""The file of a recording: how it is written, and what is refused."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.debug._errors import RecordingFileError
from adk_fluent.debug._shape import check_shape
from adk_fluent.extend import describe

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

FORMAT: Final = "adk-fluent-recording"
VERSION: Final = 1

Data = dict[str, Any]


@contextmanager
def writing(file: Path, what: str = "recording") -> Generator[None]:
    """Make the folders of a file that is written inside, and say it where that fails.

    Args:
        file: The file.
        what: What errors call it.

    Raises:
        RecordingFileError: It cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise RecordingFileError(
            f"the {what} cannot be written",
            path=str(file),
            found=error.strerror or type(error).__name__,
            help="nothing was written; choose another place, or make room",
        ) from error


def write(file: Path, text: str) -> None:
    """Write beside the file, and put it in its place when it is whole and on the disk."""
    import tempfile  # noqa: PLC0415  # slow to import, and seldom needed
    from pathlib import Path  # noqa: PLC0415  # the same

    handle, name = tempfile.mkstemp(prefix=f".{file.name}.", suffix=".tmp", dir=file.parent)
    try:
        # half a character stands in JSON as it stands behind a backslash
        with open(handle, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as out:  # noqa: PTH123  # a descriptor
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        Path(name).replace(file)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def checksum(body: Mapping[str, Any]) -> str:
    """What tells that a file is as it was written."""
    from hashlib import sha256  # noqa: PLC0415  # OpenSSL, which is slow to import

    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def decoded(data: bytes) -> str:
    """The text of a file, which may be cut off in the middle of a character.

    Raises:
        UnicodeDecodeError: It is not UTF-8.
    """
    try:
        return data.decode("utf-8-sig")  # editors put a mark before it
    except UnicodeDecodeError as error:
        if error.reason != "unexpected end of data":
            raise
        return data[: error.start].decode("utf-8-sig")


def is_cut_off(text: str, error: Exception) -> bool:
    """Whether an error about JSON is that it ends too early."""
    at = getattr(error, "pos", None)
    return at is not None and not text[at:].strip()


def check(data: Any, path: str) -> None:
    """Refuse what is no recording, before anything of it is used.

    Raises:
        RecordingFileError: It is none, or of a newer version.
    """
    if not isinstance(data, dict) or cast("Data", data).get("format") != FORMAT:
        raise RecordingFileError(
            "this is no recording",
            path=path,
            found=describe(data),
            help="take a file that Recorder.save(...) has written",
        )
    version = cast("Data", data).get("version")
    if version != VERSION:
        newer = isinstance(version, int) and version > VERSION
        raise RecordingFileError(
            f"this recording has version {version!r}, and this is made for version {VERSION}",
            path=path,
            field="version",
            help="pip install --upgrade adk-fluent-debug" if newer else "record again",
        )
    from adk_fluent.protocol import AgentEvent  # noqa: PLC0415  # slow to import

    check_shape(cast("Data", data), path)
    for number, run in enumerate(cast("Data", data)["runs"]):
        for at, entry in enumerate(run["tape"]):
            if "event" in entry:
                try:
                    AgentEvent.from_dict(entry["event"])
                except TypeError as error:
                    raise RecordingFileError(
                        "this is no event",
                        path=path,
                        field=f"runs[{number}].tape[{at}].event",
                        found=str(error),
                    ) from error


# --- files of lines ------------------------------------------------------------------------------


def is_stream(text: str) -> bool:
    """Whether a text is that of a file of lines."""
    first = text[: text.find("\n")]
    return first.startswith(f'{{"format":"{FORMAT}"') and '"lines":true' in first


def unstreamed(text: str, path: str) -> Data:
    """A recording of lines in the form of one that was saved.

    The last line may be cut off: what wrote it was killed. A run that did not end has no status.

    Raises:
        RecordingFileError: Another line is none of a recording.
    """
    head, *lines = text.split("\n")
    made: Data = json.loads(head)
    del made["lines"]
    runs: list[Data] = []
    whole = lines[:-1]  # what follows the last end of a line was cut off
    for number, line in enumerate(whole, start=2):
        try:
            _read(runs, json.loads(line))
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise RecordingFileError(
                "this is no line of a recording", path=path, field=f"line {number}"
            ) from error
    if lines and lines[-1]:
        from adk_fluent.extend import LOG  # noqa: PLC0415  # logging is slow to import

        LOG.warning("%s was cut off in its last line, which is left out", path)
    return {**made, "runs": runs}


def _read(runs: list[Data], line: Data) -> None:
    number: int = line["run"]
    if number == len(runs):
        runs.append({"tape": []})
    if number < 0:
        raise IndexError(number)
    if "entry" in line:
        runs[number]["tape"].append(line["entry"])
    else:
        runs[number] = {**line["known"], "tape": runs[number]["tape"]}

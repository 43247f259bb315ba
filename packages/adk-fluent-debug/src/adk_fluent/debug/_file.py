"""The file of a recording: how it is written, and what is refused."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.debug._errors import RecordingFileError
from adk_fluent.extend import describe

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FORMAT: Final = "adk-fluent-recording"
VERSION: Final = 1

Data = dict[str, Any]


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


def is_cut_off(text: str, error: Exception) -> bool:
    """Whether an error about JSON is that it ends too early."""
    at = getattr(error, "pos", None)
    return at is not None and not text[at:].strip()


#: What an entry of a tape is, by the key that only it has; and the type of each key it must have.
_ENTRIES: Final[dict[str, dict[str, type]]] = {
    "event": {"event": dict},
    "model_call": {"model_call": int, "agent": str},
    "chunk_of": {"chunk_of": int, "response": dict},
    "reply_of": {"reply_of": int},
    "tool_call": {"tool_call": int, "agent": str, "tool": str},
    "result_of": {"result_of": int},
    "handed_in": {"handed_in": str, "node": str},
    "branch_end": {"branch_end": str, "node": str},
    "expired": {"expired": str, "node": str},
}
#: The types of what else an entry may have.
_OPTIONAL: Final[dict[str, type | tuple[type, ...]]] = {
    "t": (int, float),
    "branch": str,
    "within": int,
    "request": dict,
    "responses": list,
    "args": dict,
    "effects": dict,
    "error": dict,
}


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
    _typed(data, path, "", {"metadata": dict, "runs": list})
    runs: list[Any] = cast("Data", data)["runs"]
    for number, run in enumerate(runs):
        here = f"runs[{number}]"
        _typed(run, path, here, {"tape": list})
        for key, kind in (
            ("state", dict),
            ("answers", list),
            ("pipeline", dict),
            ("message", dict),
        ):
            if run.get(key) is not None:
                _typed(run, path, here, {key: kind})
        tape: list[Any] = run["tape"]
        for at, entry in enumerate(tape):
            _check_entry(entry, path, f"{here}.tape[{at}]")


def _check_entry(entry: Any, path: str, here: str) -> None:
    _typed(entry, path, here, {})
    kind = next((each for each in _ENTRIES if each in entry), None)
    if kind is None:
        raise RecordingFileError(
            "this is no entry of a tape", path=path, field=here, found=f"keys {', '.join(entry)}"
        )
    _typed(entry, path, here, _ENTRIES[kind])
    _typed(entry, path, here, {key: each for key, each in _OPTIONAL.items() if key in entry})
    if kind == "event":
        from adk_fluent.protocol import AgentEvent  # noqa: PLC0415  # slow to import

        try:
            AgentEvent.from_dict(entry["event"])
        except (TypeError, KeyError, ValueError) as error:
            raise RecordingFileError(
                "this is no event", path=path, field=here, found=str(error)
            ) from error


def _typed(data: Any, path: str, here: str, wanted: Mapping[str, type | tuple[type, ...]]) -> None:
    if not isinstance(data, dict):
        raise RecordingFileError(
            "here stands a mapping", path=path, field=here, found=describe(data)
        )
    for key, kind in wanted.items():
        value: Any = cast("Data", data).get(key)
        if key == "branch" and value is None:
            continue
        if not isinstance(value, kind) or isinstance(value, bool):
            names = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
            raise RecordingFileError(
                f"{key!r} is of type {names}",
                path=path,
                field=f"{here}.{key}".lstrip("."),
                found=describe(value) if key in data else "nothing",
            )


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

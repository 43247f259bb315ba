"""The file of a recording: what is refused, how it is written, and line by line."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from functools import cache
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from adk_fluent.debug._errors import RecordingFileError
from adk_fluent.debug._recorded_run import OF_CALLS, Data
from adk_fluent.debug._redaction import forms_of
from adk_fluent.extend import LOG, DataFile, describe
from adk_fluent.protocol import AgentEvent

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from adk_fluent.debug._redaction import Redaction

FORMAT: Final = "adk-fluent-recording"
VERSION: Final = 1
_HEAD: Final = 1000  # bytes in which the format stands
_TAKE: Final = "take a file that Recorder.save(...) has written"

#: A type; a list of one shape; or the shapes of what may stand under some keys. It must stand there
#: if the key ends with an exclamation mark, and may be null if it ends with a question mark.
Shape = type | list[Any] | dict[str, Any]


class Time(float):
    """Milliseconds since a run began, or seconds since 1970."""


_MOST: Final = 1e15  # of a `Time`

_CONTENT: Final[Shape] = {
    "role?": str,
    "parts?": [
        {"text?": str, "function_call?": {"args?": dict}, "function_response?": {"response?": dict}}
    ],
}
_ANSWER: Final[Shape] = {
    "content?": _CONTENT,
    "usage_metadata?": {
        f"{name}_token_count?": int
        for name in ("prompt", "cached_content", "candidates", "thoughts", "tool_use_prompt")
    },
}
_ERROR: Final[Shape] = {"type": str, "message": str}
_EVENT: Final[Shape] = {
    "author!": str,
    **dict.fromkeys(("id", "invocation_id"), str),
    **dict.fromkeys(("branch?", "path?", "node?", "attempt?", "content?", "transfer_to?"), str),
    **dict.fromkeys(("is_final", "is_partial", "escalate", "end_of_agent"), bool),
    **dict.fromkeys(("state_delta", "artifact_delta", "custom_metadata"), dict),
    "timestamp": Time,
    "discarded": [str],
    "tool_calls": [{"tool_name!": str, "call_id?": str, "args": dict}],
    "tool_responses": [{"tool_name!": str, "call_id?": str}],
    "pending": [{"id!": str, "name": str, "message": str}],
    "metadata": {"run": str, "requested_tool_confirmations": dict},
    "error?": {"code!": str, "message": str},
    "usage?": dict,
}
_TURNS: Final = ("handed_in", "branch_end", "expired")
_ENTRY: Final[Shape] = {
    "t": Time,
    "event": _EVENT,
    **dict.fromkeys(OF_CALLS, int),
    **dict.fromkeys((*_TURNS, "agent", "tool", "node", "model", "branch?"), str),
    "within": int,
    "request": {"contents": [_CONTENT], "config": dict},
    "response": _ANSWER,
    "responses": [_ANSWER],
    "args": dict,
    "effects": {"state_delta": dict},
    "error": _ERROR,
}
#: What tells of which kind an entry is, and what must stand beside that.
_KINDS: Final = {
    **dict.fromkeys(("event", *OF_CALLS), ()),
    **dict.fromkeys(("model_call", "remote_call"), ("agent",)),
    "tool_call": ("agent", "tool"),
    "chunk_of": ("response",),
    **dict.fromkeys(_TURNS, ("node",)),
}
_FILE: Final[Shape] = {
    "metadata!": {"recorded_at": str, "versions": dict, "capture_content": bool},
    "runs!": [
        {
            "tape!": [_ENTRY],
            "status": str,
            "session_id": str,
            "state?": dict,
            "history": [dict],
            "answers": [dict],
            "message?": _CONTENT,
            "error": _ERROR,
            "pipeline": {"hash": str, "nodes": [{"name!": str, "kind!": str, "hash!": str}]},
            "spans": [{"start": Time, "end": Time}],
        }
    ],
}


def _schema(shape: Shape) -> Any:
    """A shape as pydantic's core checks it."""
    from pydantic_core import core_schema as core  # noqa: PLC0415  # slow to import

    if isinstance(shape, dict):
        fields: dict[str, Any] = {}
        for key, inner in shape.items():
            made = _schema(inner)
            fields[key.rstrip("!?")] = core.typed_dict_field(
                core.nullable_schema(made) if key.endswith("?") else made, required=key[-1] == "!"
            )
        return core.typed_dict_schema(fields, extra_behavior="ignore")
    if isinstance(shape, list):
        return core.list_schema(_schema(shape[0]), strict=True)
    if shape is Time:
        return core.float_schema(ge=-_MOST, le=_MOST, allow_inf_nan=False, strict=True)
    if shape in {int, bool}:
        return core.int_schema(strict=True) if shape is int else core.bool_schema(strict=True)
    return core.is_instance_schema(shape)  # half a character may stand in a text


@cache
def _validator() -> Any:
    from pydantic_core import SchemaValidator  # noqa: PLC0415  # the same

    return SchemaValidator(_schema(_FILE))


class RecordingFile(DataFile):
    """A file of a recording, as errors name it."""

    kind = RecordingFileError


def write(file: Path, text: str) -> None:
    """Write a file, which is replaced once all of it is on the disk; missing folders are made.

    Raises:
        RecordingFileError: It cannot be written.
    """
    # half a character stands in JSON as it stands behind a backslash
    RecordingFile.write(file, [text.encode("utf-8", "backslashreplace").decode()])


def check_replaced(file: Path, *, recordings: bool = True) -> None:
    """Refuse to write over a file that would be missed; devices and empty files are not.

    Args:
        file: The file; there may be none yet.
        recordings: Recordings may be written over.

    Raises:
        RecordingFileError: It holds something else, cannot be read, or is a folder.
    """
    if file.is_dir():
        what, help = "the file cannot be written: this is a folder", "name a file in it"
        raise RecordingFileError(what, path=str(file), help=help)
    head = b""
    try:
        if file.is_file():
            with file.open("rb") as opened:
                head = b"".join(opened.read(_HEAD).split())
    except OSError as error:
        what = f"the file cannot be read: {error.strerror or error}"
        raise RecordingFileError(what, path=str(file)) from error
    is_recording = b"{" in head[:4] and f'"format":"{FORMAT}"'.encode() in head
    if not head or (is_recording and recordings):
        return
    what, help = "this is no recording, and is not written over", "write to another path"
    if is_recording:
        what = "there is a recording already, perhaps of a process that was killed"
        help = "stream to another path, or say Recorder(stream=..., overwrite=True)"
    raise RecordingFileError(what, path=str(file), help=help)


def checksum(body: Mapping[str, Any]) -> str:
    """What tells that a file is as it was written."""
    from hashlib import sha256  # noqa: PLC0415  # OpenSSL, which is slow to import

    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def read(file: Path) -> str:
    """Read a file, which may be cut off in the middle of a character.

    Raises:
        RecordingFileError: It cannot be read, or is not UTF-8.
    """
    text = RecordingFile.read_text(file, errors="surrogateescape")
    try:
        text[:-3].encode()  # what is left of a character
    except UnicodeEncodeError as error:
        raise RecordingFileError("the file is not UTF-8", path=str(file)) from error
    return text


def parsed(text: str, path: str) -> Data:
    """What a file holds, all of which has the shape that it should have.

    Raises:
        RecordingFileError: It is no recording, or of a newer version.
    """
    in_lines = is_stream(text)
    file = RecordingFile(path, text="" if in_lines else text)
    try:
        data = _unstreamed(text, file) if in_lines else file.parse_json(text)
    except RecordingFileError as error:
        error.help = error.help or _TAKE
        raise
    check(data, file)
    return data


def check(data: Any, file: DataFile) -> None:
    """Refuse what is no recording, before anything of it is used.

    Args:
        data: What a file holds.
        file: The file.

    Raises:
        RecordingFileError: It is none, or of a newer version.
    """
    from pydantic_core import ValidationError  # noqa: PLC0415  # slow to import

    if not isinstance(data, dict) or cast("Data", data).get("format") != FORMAT:
        raise file.error((), "this is no recording", found=describe(data), help=_TAKE)
    version = cast("Data", data).get("version")
    if version != VERSION:
        newer = isinstance(version, int) and version > VERSION
        raise file.error(
            ("version",),
            f"this recording has version {version!r}, and this is made for version {VERSION}",
            help="pip install --upgrade adk-fluent-debug" if newer else "record again",
        )
    try:
        _validator().validate_python(data)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        at, found = fault["loc"], describe(fault["input"])
        raise file.error(at, f"{at[-1]!r} does not fit: {fault['msg']}", found=found) from error
    for number, run in enumerate(cast("Data", data)["runs"]):
        for index, entry in enumerate(run["tape"]):
            here = ("runs", number, "tape", index)
            kind = next((each for each in _KINDS if each in entry), None)
            if kind is None:
                keys = f"keys {', '.join(entry)}"
                raise file.error(here, "this is no entry of a tape", found=keys)
            if missing := [each for each in _KINDS[kind] if each not in entry]:
                raise file.error((*here, missing[0]), f"{missing[0]!r} is missing")
            try:
                if kind == "event":
                    AgentEvent.from_dict(entry["event"])
            except TypeError as error:
                at, what = (*here, "event"), "this is no event"
                raise file.error(at, what, found=str(error)) from error


# --- files of lines ------------------------------------------------------------------------------


def is_stream(text: str) -> bool:
    """Whether a text is that of a file of lines."""
    first = text[: text.find("\n")]
    return first.startswith(f'{{"format":"{FORMAT}"') and '"lines":true' in first


def _unstreamed(text: str, file: DataFile) -> Data:
    """A recording of lines in the form of one that was saved.

    The last line may be cut off: what wrote it was killed. A run that did not end has no status.

    Raises:
        RecordingFileError: Another line is none of a recording.
    """
    head, *lines = text.split("\n")
    made: Data = file.parse_json(head)
    del made["lines"]
    runs: list[Data] = []
    whole = lines[:-1]  # what follows the last end of a line was cut off
    for number, line in enumerate(whole, start=2):
        try:
            _read(runs, file.parse_json(line, number))
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise RecordingFileError(
                "this is no line of a recording", path=file.path, line=number
            ) from error
    if lines and lines[-1]:
        LOG.warning("%s was cut off in its last line, which is left out", file.path)
    return {**made, "runs": runs}


def _read(runs: list[Data], line: Data) -> None:
    number: int = line.pop("run")
    if number == len(runs):
        runs.append({"tape": []})
    if number < 0:
        raise IndexError(number)
    runs[number]["tape"] += line.pop("tape")
    runs[number] |= line


class Stream:
    """Appends what is recorded to a file of lines, each of them JSON.

    At any moment the file holds what could be saved then: where something turns out to be a
    credential that stands in earlier lines, they are written anew, or cut off where there is no
    room for that. What the file system refuses while a run goes on is logged, and nothing more is
    written.

    Args:
        file: The file.
        metadata: What is known of all runs.
        redaction: What is taken out.
        overwrite: A recording that the file holds may be written over.

    Raises:
        RecordingFileError: The file cannot be written, or would be missed.
    """

    def __init__(
        self, file: Path, metadata: Data, redaction: Redaction, *, overwrite: bool
    ) -> None:
        check_replaced(file, recordings=overwrite)
        self._file = file
        self._redaction = redaction
        self._secrets: set[str] = set()
        self._is_over = False
        head = {"format": FORMAT, "version": VERSION, "lines": True, "metadata": metadata}
        try:  # in place: it may be a device, or a pipe
            file.parent.mkdir(parents=True, exist_ok=True)
            self._put(head, "w")
        except OSError as error:
            what = f"the file cannot be written: {error.strerror or error}"
            raise RecordingFileError(what, path=str(file)) from error

    def add(self, number: int, part: Data) -> None:
        """Append a part of a run.

        Args:
            number: Which run.
            part: What is known of the run, and in ``tape`` what has happened since.
        """
        new = self._redaction.secrets_of(part) - self._secrets
        self._secrets |= new
        line = self._redaction.scrub_run({"run": number, **part}, self._secrets)
        try:
            if new:
                self._take_out(new)
            if not self._is_over:
                self._put(line)
        except OSError as error:
            why = getattr(error.__cause__, "strerror", None) or error.strerror or error
            LOG.error("the recording in %s ends here: %s", self._file, why)
            self._is_over = True

    def _take_out(self, new: set[str]) -> None:
        """Take what has turned out to be a credential out of the lines that are written."""
        text = self._file.read_text("utf-8")
        # in the file each of its forms stands as JSON writes it
        if not any(form in text for each in forms_of(new) for form in forms_of([each])):
            return
        head, *lines = text.splitlines()
        made = [head, *map(self._cleaned, lines)]
        try:
            write(self._file, "\n".join((*made, "")))
        except OSError:  # what must not stay there goes with all that follows it
            pairs = zip(made, (head, *lines), strict=True)
            kept = takewhile(lambda pair: pair[0] == pair[1], pairs)
            os.truncate(self._file, sum(len(f"{line}\n".encode()) for line, _ in kept))
            raise

    def _cleaned(self, line: str) -> str:
        return _line(self._redaction.scrub_run(json.loads(line), self._secrets))

    def _put(self, line: Data, mode: Literal["a", "w"] = "a") -> None:
        # opened each time: nobody says when the last run was recorded; half a character stands in
        # JSON as it stands behind a backslash
        whole = 0
        try:
            with self._file.open(
                mode, encoding="utf-8", errors="backslashreplace", newline="\n"
            ) as out:
                whole = out.tell()
                out.write(f"{_line(line)}\n")
        except OSError:
            with suppress(OSError):
                os.truncate(self._file, whole)
            raise


def _line(data: Data) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))

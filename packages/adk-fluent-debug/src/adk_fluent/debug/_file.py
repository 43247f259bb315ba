"""The file of a recording: what is refused, how it is written, and line by line."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from functools import cache
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from adk_fluent.debug._errors import RecordingFileError, log_warning
from adk_fluent.debug._redaction import forms_of, without_content
from adk_fluent.extend import describe

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from adk_fluent.debug._redaction import Redaction

Data = dict[str, Any]

FORMAT: Final = "adk-fluent-recording"
VERSION: Final = 1

#: A type; a list of one shape; a tuple of one, for a list of as many; or the shapes of what may
#: stand under some keys. It must stand there if the key ends with an exclamation mark, and may be
#: null if it ends with a question mark.
Shape = type | list[Any] | tuple[Any, ...] | dict[str, Any]


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
#: What an entry of a tape may be, by the key that only it has; and what else must stand in it.
_KINDS: Final[dict[str, Data]] = {
    "event": {"event": _EVENT},
    "model_call": {"model_call": int, "agent!": str},
    "chunk_of": {"chunk_of": int, "response!": _ANSWER},
    "reply_of": {"reply_of": int},
    "tool_call": {"tool_call": int, "agent!": str, "tool!": str},
    "result_of": {"result_of": int},
    "remote_call": {"remote_call": int, "agent!": str},
    "handed_in": {"handed_in": str, "node!": str},
    "branch_end": {"branch_end": str, "node!": str},
    "expired": {"expired": str, "node!": str},
}
_ENTRY: Final[Data] = {
    "t": Time,
    "branch?": str,
    "within": int,
    "model": str,
    "request": {"contents": [_CONTENT], "config": dict},
    "responses": [_ANSWER],
    "args": dict,
    "effects": {"state_delta": dict},
    "error": _ERROR,
}
_FILE: Final[Shape] = {
    "metadata!": {"recorded_at": str, "versions": dict, "capture_content": bool},
    "runs!": [
        {
            "tape!": [dict],
            "status": str,
            "session_id": str,
            "state?": dict,
            "history": [dict],
            "answers": [dict],
            "message?": _CONTENT,
            "error": _ERROR,
            "pipeline": {"hash": str, "nodes": [(str, str, str)]},
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
    if isinstance(shape, list | tuple):
        count = len(shape) if isinstance(shape, tuple) else None
        return core.list_schema(_schema(shape[0]), min_length=count, max_length=count, strict=True)
    if shape is Time:
        return core.float_schema(ge=-_MOST, le=_MOST, allow_inf_nan=False, strict=True)
    if shape in {int, bool}:
        return core.int_schema(strict=True) if shape is int else core.bool_schema(strict=True)
    return core.is_instance_schema(shape)  # half a character may stand in a text


@cache
def _validator(kind: str) -> Any:
    """What checks an entry of a kind, or else a whole file."""
    from pydantic_core import SchemaValidator  # noqa: PLC0415  # the same

    return SchemaValidator(_schema(_ENTRY | _KINDS[kind] if kind else _FILE))


def _check(value: Any, kind: str, path: str, here: str = "") -> None:
    from pydantic_core import ValidationError  # noqa: PLC0415  # the same

    try:
        _validator(kind).validate_python(value)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        steps = (f"[{each}]" if isinstance(each, int) else f".{each}" for each in fault["loc"])
        place = "".join(steps)
        field = f"{here}{place}".lstrip(".")
        raise RecordingFileError(
            f"{field.rpartition('.')[2]!r} does not fit: {fault['msg']}",
            path=path,
            field=field,
            found=describe(fault["input"]),
        ) from error


def write(file: Path, text: str) -> None:
    """Write a file, which is replaced once all of it is on the disk; missing folders are made.

    Raises:
        RecordingFileError: It cannot be written.
    """
    from adk_fluent.extend import DataFile  # noqa: PLC0415  # slow to import

    class RecordingFile(DataFile):
        kind = RecordingFileError

    # half a character stands in JSON as it stands behind a backslash
    RecordingFile.write(file, [text.encode("utf-8", "backslashreplace").decode()])


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

    _check(data, "", path)
    for number, run in enumerate(cast("Data", data)["runs"]):
        for at, entry in enumerate(run["tape"]):
            here = f"runs[{number}].tape[{at}]"
            kind = next((each for each in _KINDS if each in entry), None)
            if kind is None:
                found = f"keys {', '.join(entry)}"
                raise RecordingFileError(
                    "this is no entry of a tape", path=path, field=here, found=found
                )
            _check(entry, kind, path, here)
            try:
                if kind == "event":
                    AgentEvent.from_dict(entry["event"])
            except TypeError as error:
                raise RecordingFileError(
                    "this is no event", path=path, field=f"{here}.event", found=str(error)
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
                "this is no line of a recording", path=path, line=number
            ) from error
    if lines and lines[-1]:
        log_warning("%s was cut off in its last line, which is left out", path)
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


_NO_TAPE: Final[Data] = {"tape": []}


class Stream:
    """Appends what is recorded to a file of lines, each of them JSON.

    At any moment the file holds what could be saved then: where something turns out to be a
    credential that stands in earlier lines, they are written anew, or cut off where there is no
    room for that. What the file system refuses while a run goes on is logged, and nothing more is
    written.

    Args:
        file: The file; it is written over.
        metadata: What is known of all runs.
        redaction: What is taken out.

    Raises:
        RecordingFileError: The file cannot be written.
    """

    def __init__(self, file: Path, metadata: Mapping[str, Any], redaction: Redaction) -> None:
        self._file = file
        self._redaction = redaction
        self._captures = metadata["capture_content"]
        self._secrets: set[str] = set()
        self._is_over = False
        head = {"format": FORMAT, "version": VERSION, "lines": True, "metadata": dict(metadata)}
        try:  # in place: it may be a device, or a pipe
            file.parent.mkdir(parents=True, exist_ok=True)
            self._put([head], "w")
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
        clean = self._clean(part)
        tape = clean.pop("tape")
        lines: list[Data] = [{"run": number, "entry": each} for each in tape]
        if clean:
            lines.insert(0, {"run": number, "known": clean})
        try:
            if new:
                self._take_out(new)
            if not self._is_over:
                self._put(lines)
        except OSError as error:
            from adk_fluent.extend import LOG  # noqa: PLC0415  # logging is slow to import

            why = getattr(error.__cause__, "strerror", None) or error.strerror or error
            LOG.error("the recording in %s ends here: %s", self._file, why)
            self._is_over = True

    def _clean(self, part: Data) -> Data:
        clean = self._redaction.scrub_run(part, self._secrets)
        return clean if self._captures else without_content(clean)

    def _take_out(self, new: set[str]) -> None:
        """Take what has turned out to be a credential out of the lines that are written."""
        text = self._file.read_text("utf-8")
        # in the file each of its forms stands as JSON writes it
        if not any(form in text for each in forms_of(new) for form in forms_of([each])):
            return
        head, *lines = text.splitlines()
        made = [head, *map(self._cleaned_line, lines)]
        try:
            write(self._file, "\n".join((*made, "")))
        except OSError:  # what must not stay there goes with all that follows it
            pairs = zip(made, (head, *lines), strict=True)
            kept = takewhile(lambda pair: pair[0] == pair[1], pairs)
            os.truncate(self._file, sum(len(f"{line}\n".encode()) for line, _ in kept))
            raise

    def _cleaned_line(self, line: str) -> str:
        data: Data = json.loads(line)
        if "entry" in data:
            data["entry"] = self._clean({"tape": [data["entry"]]})["tape"][0]
        else:
            data["known"] = self._clean({**data["known"], **_NO_TAPE})
            del data["known"]["tape"]
        return _line(data)

    def _put(self, lines: list[Data], mode: Literal["a", "w"] = "a") -> None:
        # opened each time: nobody says when the last run was recorded; half a character stands in
        # JSON as it stands behind a backslash
        whole = 0
        try:
            with self._file.open(
                mode, encoding="utf-8", errors="backslashreplace", newline="\n"
            ) as out:
                whole = out.tell()
                out.write("".join(f"{_line(each)}\n" for each in lines))
        except OSError:
            with suppress(OSError):
                os.truncate(self._file, whole)
            raise


def _line(data: Data) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))

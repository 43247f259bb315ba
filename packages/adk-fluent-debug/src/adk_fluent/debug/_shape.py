"""What stands in the file of a recording, by type: a file may come from anybody."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

from adk_fluent.debug._errors import RecordingFileError
from adk_fluent.extend import describe

Data = dict[str, Any]
#: A type; a list of one shape; several shapes, for a list of just these; or the shapes of what may
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


class _Fault(NamedTuple):
    """What is of another shape: where, what is to stand there, and what does."""

    path: str
    wanted: str
    found: str


def check_shape(data: Data, path: str) -> None:
    """Refuse what has not the shape of a recording.

    Args:
        data: What stands in a file.
        path: What errors call the file.

    Raises:
        RecordingFileError: Something in it is of another type, or missing.
    """
    _check(data, _FILE, path, "")
    for number, run in enumerate(data["runs"]):
        for at, entry in enumerate(run["tape"]):
            here = f"runs[{number}].tape[{at}]"
            kind = next((each for each in _KINDS if each in entry), None)
            if kind is None:
                keys = ", ".join(entry)
                raise RecordingFileError(
                    "this is no entry of a tape", path=path, field=here, found=f"keys {keys}"
                )
            _check(entry, _ENTRY | _KINDS[kind], path, here)


def _check(value: Any, shape: Shape, path: str, here: str) -> None:
    fault = _fault(value, shape)
    if fault is not None:
        field = f"{here}{fault.path}".lstrip(".")
        name = field.rpartition(".")[2]
        what = f"{name!r} is {fault.wanted}"
        raise RecordingFileError(what, path=path, field=field, found=fault.found)


def _fault(value: Any, shape: Shape) -> _Fault | None:
    if isinstance(shape, dict):
        return _fault_of_mapping(value, shape)
    if isinstance(shape, list | tuple):
        return _fault_of_list(value, shape)
    if shape is Time:
        fits, wanted = isinstance(value, int | float) and -_MOST <= value <= _MOST, "a number"
    else:
        fits, wanted = isinstance(value, shape), f"of type {shape.__name__}"
    if fits and (shape is bool or not isinstance(value, bool)):
        return None
    return _Fault("", wanted, describe(value))


def _fault_of_list(value: Any, shape: list[Any] | tuple[Any, ...]) -> _Fault | None:
    if not isinstance(value, list):
        return _Fault("", "a list", describe(value))
    items = cast("list[Any]", value)
    if isinstance(shape, tuple) and len(items) != len(shape):
        return _Fault("", f"a list of {len(shape)}", f"a list of {len(items)}")
    for at, each in enumerate(items):
        if (fault := _fault(each, shape[at if isinstance(shape, tuple) else 0])) is not None:
            return fault._replace(path=f"[{at}]{fault.path}")
    return None


def _fault_of_mapping(value: Any, shape: Data) -> _Fault | None:
    if not isinstance(value, dict):
        return _Fault("", "a mapping", describe(value))
    rows = cast("Data", value)
    for key, inner in shape.items():
        name = key.rstrip("!?")
        if name in rows:
            fault = _fault(rows[name], inner)
            if fault is not None and not (rows[name] is None and key.endswith("?")):
                return fault._replace(path=f".{name}{fault.path}")
        elif key.endswith("!"):
            return _Fault(f".{name}", "missing", "nothing")
    return None

"""What of a recorded run others have said or written, and a run without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent.debug._run import LEFT_OUT

if TYPE_CHECKING:
    from collections.abc import Mapping

Data = dict[str, Any]

#: What of an entry, and of a run, may hold what nobody may see; the rest is ours.
_OF_ENTRIES: Final = ("request", "response", "responses", "args", "result", "effects", "error")
_OF_RUNS: Final = ("message", "state", "history", "answers", "error", "spans")
_OF_SPANS: Final = ("name", "agent", "span_id", "parent_id", "trace_id", "start", "end", "status")
_OF_EVENTS: Final = frozenset(
    {"author", "branch", "path", "node", "attempt", "id", "invocation_id", "timestamp", "usage"}
)


def payloads(run: Mapping[str, Any]) -> list[Any]:
    """Everything in a run that may hold what nobody may see."""
    found: list[Any] = []

    def keep(part: Any) -> Any:
        found.append(part)
        return part

    mapped(run, keep)
    return found


def mapped(run: Mapping[str, Any], change: Any) -> Data:
    """A run with what is not ours in it changed."""
    made = {key: change(each) if key in _OF_RUNS else each for key, each in run.items()}
    made["tape"] = [_mapped_entry(entry, change) for entry in run["tape"]]
    return made


def _mapped_entry(entry: Data, change: Any) -> Data:
    if "event" in entry:
        event: Data = entry["event"]
        theirs = change({key: each for key, each in event.items() if key not in _OF_EVENTS})
        ours = {key: each for key, each in event.items() if key in _OF_EVENTS}
        return {**entry, "event": {**ours, **theirs}}
    return {key: change(each) if key in _OF_ENTRIES else each for key, each in entry.items()}


def without_content(run: Data) -> Data:
    """A run with nothing in it that anybody has said, or written to state."""
    made = {key: each for key, each in run.items() if key not in _OF_RUNS}
    if "spans" in run:
        made["spans"] = [
            {key: each[key] for key in _OF_SPANS if key in each} for each in run["spans"]
        ]
    tape: list[Data] = []
    for entry in run["tape"]:
        kept = {key: each for key, each in entry.items() if key not in (*_OF_ENTRIES, "event")}
        if "responses" in entry:
            kept["responses"] = [_figures(each) for each in entry["responses"]]
        if "response" in entry:
            kept["response"] = {"partial": True}
        if "error" in entry:
            kept["error"] = {"type": entry["error"].get("type", ""), "message": LEFT_OUT}
        if "event" in entry:
            kept["event"] = _bare_event(entry["event"])
        tape.append(kept)
    made["tape"] = tape
    return made


def _figures(response: Data) -> Data:
    names = ("usage_metadata", "finish_reason", "model_version", "error_code")
    return {key: response[key] for key in names if key in response}


def _bare_event(event: Data) -> Data:
    names = (
        *(*_OF_EVENTS, "is_final", "is_partial", "transfer_to", "escalate", "discarded"),
        *("end_of_agent", "artifact_delta"),
    )
    made = {key: each for key, each in event.items() if key in names}
    if "state_delta" in event:
        made["state_delta"] = dict.fromkeys(event["state_delta"], LEFT_OUT)
    for name in ("tool_calls", "tool_responses"):
        if name in event:
            kept = ("tool_name", "call_id")
            made[name] = [{key: each[key] for key in kept if key in each} for each in event[name]]
    return made

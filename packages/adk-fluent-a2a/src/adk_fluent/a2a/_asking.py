"""What a remote agent asks, read from its message; and what is answered, as it expects it.

A2A says only that a task waits. Peers of adk-fluent list their questions in a data part, peers of
ADK send the calls that wait for a response.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from adk_fluent.extend import one_line, schema_misfit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Key of the metadata of a message: a person has refused, and so the task is rejected.
REFUSED: Final = "adk_fluent_refused"
_LARGEST: Final = 1 << 16  # characters of a schema
_REQUEST_INPUT: Final = "adk_request_input"
_REQUEST_CONFIRMATION: Final = "adk_request_confirmation"


class Asking(NamedTuple):
    """What is asked.

    Attributes:
        name: The gate's or the tool's over there, else the remote agent's.
        message: What a person is told.
        payload: What is shown with it.
        schema: JSON Schema of the answer, if there is one that can be used.
    """

    name: str
    message: str
    payload: Any
    schema: dict[str, Any] | None


def asking_of(
    agent: str, text: str, data: Mapping[str, Any] | None, calls: Sequence[Mapping[str, Any]]
) -> Asking:
    """Read what an agent asks.

    Args:
        agent: Its name.
        text: The text of its message.
        data: The data parts, merged.
        calls: ADK's calls that wait for a response: ``id``, ``name`` and ``args``.
    """
    told: Any = (data or {}).get("questions")
    if isinstance(told, list):
        listed = cast("list[Any]", told)
        if len(listed) == 1 and isinstance(listed[0], dict):
            one = cast("dict[str, Any]", listed[0])
            schema = _schema(one.get("responseSchema"))
            return Asking(_name(one, agent), text, one.get("payload"), schema)
    if len(calls) == 1:
        name, message, payload, schema = _called(calls[0])
        return Asking(name or agent, text or message, payload, schema)
    return Asking(agent, text, data if not calls else [dict(each) for each in calls], None)


def responses_to(calls: Sequence[Mapping[str, Any]], value: Any) -> list[dict[str, Any]]:
    """The responses to ADK's calls that an answer gives: ``id``, ``name`` and ``response``.

    Of several calls, an object whose keys are all names or ids of theirs answers each of these;
    every other answer is that to the first one.
    """
    if len(calls) > 1 and isinstance(value, dict) and value:
        given = cast("dict[str, Any]", value)
        known = {each["name"]: each for each in calls} | {each["id"]: each for each in calls}
        if all(key in known for key in given):
            return [_response(known[key], each) for key, each in given.items()]
    return [_response(each, value) for each in calls[:1]]


def _response(call: Mapping[str, Any], value: Any) -> dict[str, Any]:
    if call["name"] == _REQUEST_CONFIRMATION and isinstance(value, bool):
        value = {"confirmed": value}
    response: Any = cast("Any", value) if isinstance(value, dict) else {"result": value}
    return {"id": call["id"], "name": call["name"], "response": response}


def _called(call: Mapping[str, Any]) -> tuple[str, str, Any, dict[str, Any] | None]:
    """Name, message, payload and schema of a call."""
    args = _object(call.get("args"))
    if call["name"] == _REQUEST_INPUT:
        schema = _schema(args.get("response_schema", args.get("responseSchema")))
        return "", _text(args.get("message")), args.get("payload"), schema
    if call["name"] == _REQUEST_CONFIRMATION:
        tool = _object(args.get("originalFunctionCall"))
        hint = _object(args.get("toolConfirmation")).get("hint")
        return _name(tool, ""), _text(hint), tool.get("args"), None
    return _name(call, ""), "", args, None


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _name(told: Mapping[str, Any], other: str) -> str:
    return one_line(_text(told.get("name"))) or other


def _schema(value: Any) -> dict[str, Any] | None:
    """A schema, if values can be checked against it."""
    if not isinstance(value, dict) or not value:
        return None
    text = json.dumps(value)
    try:
        if len(text) <= _LARGEST:
            schema_misfit(text, None)
            return cast("dict[str, Any]", value)
    except ValueError:
        pass
    return None

"""From ADK's events to ours.

What ADK has no field for, the flow root stamps on an event as ``custom_metadata["adk_fluent"]``;
`Stamp` says what that is.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, cast

from google.adk.events.event_actions import EventActions
from pydantic import BaseModel

from adk_fluent.backends._config import METADATA_KEY
from adk_fluent.backends.adk._caps import SAID_NOTHING
from adk_fluent.backends.adk._session._stamps import Stamp, is_journal_key
from adk_fluent.flow import APPROVAL
from adk_fluent.protocol import (
    AgentEvent,
    ErrorInfo,
    Pending,
    Redactor,
    ToolCallInfo,
    ToolResponseInfo,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import Container

    from google.adk.events.event import Event
    from google.genai import types

# The function calls with which ADK asks for something; the same names in every version.
REQUEST_INPUT: Final = "adk_request_input"
REQUEST_CONFIRMATION: Final = "adk_request_confirmation"
REQUEST_CREDENTIAL: Final = "adk_request_credential"

_NO_CODE: Final = "UNKNOWN_ERROR"  # ADK's own word for it

#: Fields of an event that go to `AgentEvent.metadata`, and their names there. Not every version of
#: ADK has each of them.
_FIELDS: Final = {
    "finish_reason": "finish_reason",
    "model_version": "model_version",
    "grounding_metadata": "grounding",
    "citation_metadata": "citations",
    "cache_metadata": "cache",
    "avg_logprobs": "avg_logprobs",
    "logprobs_result": "logprobs",
    "turn_complete": "turn_complete",
    "turn_complete_reason": "turn_complete_reason",
    "interaction_status": "interaction_status",
    "interrupted": "interrupted",
    "input_transcription": "input_transcription",
    "output_transcription": "output_transcription",
    "voice_activity": "voice_activity",
    "live_session_id": "live_session_id",
    "live_session_resumption_update": "live_session_resumption_update",
    "go_away": "go_away",
    "interaction_id": "interaction_id",
    "environment_id": "environment_id",
}
_NO_FIELDS: Final = (None,) * len(_FIELDS)
_ACTIONS: Final = (
    "skip_summarization",
    "compaction",
    "rewind_before_invocation_id",
    "route",
    "transfer_reason",
    "render_ui_widgets",
    "set_model_response",
)
_NO_ACTIONS: Final = (None,) * len(_ACTIONS)
#: What stands in the actions of most events.
_NOTHING_DONE: Final = vars(EventActions())
#: What a stamp says of every event of a step.
_PLACE: Final = frozenset({"path", "node", "run"})
#: Whoever asks for a credential holds some already; what reads our events need not have them.
_redact: Final = Redactor().redact


def to_agent_event(event: Event) -> AgentEvent:
    """Convert an event of ADK, of a run or from a session, to an `AgentEvent`.

    The function calls with which ADK asks for something (``adk_request_...``) become `Pending` and
    no tool calls; the secrets they hold stay in `AgentEvent.raw`. Calls in a streamed fragment are
    left out, for they may be incomplete.

    Args:
        event: ADK's event.
    """
    made = AgentEvent(
        event.author,
        state_delta={},  # spelt out: default factories take a third of the time of all this
        artifact_delta={},
        tool_calls=[],
        tool_responses=[],
        metadata={},
        custom_metadata={},
        is_final=event.is_final_response(),
        is_partial=bool(event.partial),
        timestamp=event.timestamp,
        id=event.id,
        invocation_id=event.invocation_id,
        branch=event.branch,
        raw=event,
    )
    if event.content is not None and event.content.parts:
        _read_parts(made, event.content.parts, event.long_running_tool_ids or ())
    fields = event.__dict__
    # dozens of fields, most of them unset: not one by one
    if (values := tuple(map(fields.get, _FIELDS))) != _NO_FIELDS:
        for key, value in zip(_FIELDS.values(), values, strict=True):
            if value is not None:
                made.metadata[key] = _plain(value)
    if vars(event.actions) != _NOTHING_DONE:
        _read_actions(made, event.actions)
    if event.usage_metadata is not None:
        made.usage = Usage.from_genai(event.usage_metadata)
    if (event.error_code or event.error_message) and event.error_code != SAID_NOTHING:
        code = str(_plain(event.error_code) or _NO_CODE)
        made.error = ErrorInfo(code, event.error_message or "")
    made.output = fields.get("output")
    if event.custom_metadata:
        _read_metadata(made, event.custom_metadata)
    if made.path is None and (where := fields.get("node_info")) is not None and where.path:
        # no `path`: that is a position in our IR, from which the answer is composed
        made.metadata["node_path"] = where.path
        if where.output_for:
            made.metadata["output_for"] = list(where.output_for)
    return made


def _read_parts(made: AgentEvent, parts: list[types.Part], waits: Container[str]) -> None:
    texts: list[str] = []
    for part in parts:
        if part.text is not None:
            if not part.thought:
                texts.append(part.text)
        elif part.function_call is not None:
            if not made.is_partial:
                _read_call(made, part.function_call, waits)
        elif (response := part.function_response) is not None:
            name, result = response.name or "", response.response
            result = _redact(result) if name == REQUEST_CREDENTIAL else result
            made.tool_responses.append(ToolResponseInfo(name, result, response.id))
    if texts:
        made.content = "".join(texts)


def _read_call(made: AgentEvent, call: types.FunctionCall, waits: Container[str]) -> None:
    name, id, args = call.name or "", call.id or "", call.args or {}
    asked: Pending | None = None
    # of questions of remote agents; ADK's own have none
    title = str(args.get("name") or "")
    if name == REQUEST_INPUT:
        schema = _plain_schema(args.get("response_schema", args.get("responseSchema")))
        if "asked" in args:  # in the place of a model's answer
            schema = APPROVAL
        message, payload = args.get("message") or "", args.get("payload")
        asked = Pending(id, "input", title, made.author, message, payload, schema)
    elif name == REQUEST_CONFIRMATION:
        tool: dict[str, Any] = args.get("originalFunctionCall") or {}
        told: dict[str, Any] = args.get("toolConfirmation") or {}
        called, hint = tool.get("name") or "", told.get("hint") or ""
        asked = Pending(id, "confirmation", called, made.author, hint, tool.get("args"))
    elif name == REQUEST_CREDENTIAL:
        config = _redact(args.get("authConfig", args.get("auth_config")))
        message = str(args.get("message") or "")
        asked = Pending(id, "auth", title, made.author, message, config)
    else:
        made.tool_calls.append(ToolCallInfo(name, args, call.id))
        if id in waits:
            asked = Pending(id, "tool", name, made.author, payload=args)
    if asked is not None:
        made.pending = (*made.pending, asked)


def _plain_schema(schema: Any) -> Any:
    """A schema without the disguise in which ADK does not check by it."""
    match schema:
        case {"allOf": [plain], **more} if not more:
            return plain
        case _:
            return schema


def _read_actions(made: AgentEvent, actions: EventActions) -> None:
    if actions.state_delta:
        delta = actions.state_delta.items()
        made.state_delta = {key: value for key, value in delta if not is_journal_key(key)}
    if actions.artifact_delta:
        made.artifact_delta = dict(actions.artifact_delta)
    made.transfer_to = actions.transfer_to_agent
    made.escalate = bool(actions.escalate)
    made.end_of_agent = bool(actions.end_of_agent)
    if actions.agent_state is not None:
        made.agent_state = dict(actions.agent_state)
    if (values := tuple(map(actions.__dict__.get, _ACTIONS))) != _NO_ACTIONS:
        for name, value in zip(_ACTIONS, values, strict=True):
            if value is not None:
                made.metadata[name] = _plain(value)
    # not pending: the calls that ask a person, and that can be answered, come in the next event
    if actions.requested_tool_confirmations:
        asked = actions.requested_tool_confirmations
        made.metadata["requested_tool_confirmations"] = _plain(asked)
    if actions.requested_auth_configs:
        made.metadata["requested_auth_configs"] = _redact(_plain(actions.requested_auth_configs))


def _read_metadata(made: AgentEvent, metadata: dict[str, Any]) -> None:
    stamp = metadata.get(METADATA_KEY)
    if not isinstance(stamp, dict):
        made.custom_metadata = dict(metadata)
        return
    if len(metadata) > 1:
        made.custom_metadata = {
            key: value for key, value in metadata.items() if key != METADATA_KEY
        }
    known = cast("Stamp", stamp)
    get = known.get
    made.path = get("path")
    made.node = get("node")
    if (run := get("run")) is not None:
        made.metadata["run"] = run
    if _PLACE.issuperset(known):  # as nearly always
        return
    made.attempt = get("attempt")
    made.discarded = tuple(get("discarded") or ())
    made.output = get("output", made.output)
    for key in ("why", "settled", "retried"):
        value = get(key)
        if value is not None:
            made.metadata[key] = value
    if get("besides"):
        made.is_final = False
    if told := get("pending"):
        asked = {each.id: each for each in made.pending}
        for each in told:
            known = asked.get(each["id"])
            asked[each["id"]] = replace(known, **each) if known else _again(each)
        made.pending = tuple(asked.values())


def _again(told: dict[str, Any]) -> Pending:
    """A question that an event repeats."""
    if told["kind"] == "gate":
        told = {"response_schema": APPROVAL, **told}
    return Pending(**told)


def _plain(value: Any) -> Any:
    """ADK's and genai's objects as plain data."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_none=True)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {key: _plain(each) for key, each in items}
    return [_plain(each) for each in cast("list[Any]", value)] if isinstance(value, list) else value

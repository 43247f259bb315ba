"""What of a run is ADK's, as data and back again."""

from __future__ import annotations

import json
import sys
from itertools import chain
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast, get_origin

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError, to_jsonable_python

from adk_fluent.debug._errors import RecordedError
from adk_fluent.debug._recorded_run import Data
from adk_fluent.errors import AdkFluentError
from adk_fluent.extend import LOG, METADATA_KEY, json_safe, kept_state, to_agent_event
from adk_fluent.protocol import request_data

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.adk.models.llm_request import LlmRequest
    from pydantic import BaseModel

    from adk_fluent.protocol import RemoteCall

_CONTENT: Final = TypeAdapter(types.Content)
#: What is set of a part that is text alone; how what is set of parts is read, and their texts.
_TEXT: Final = {"text"}
_set_of: Final = attrgetter("__pydantic_fields_set__")
_text_of: Final = attrgetter("text")
#: Settings that may be a class, or an alias of some.
_SCHEMAS: Final = ("response_schema", "response_json_schema")
_SCALARS: Final = (str, int, float, bool, type(None))
#: Types whose values nobody can change.
_FIXED: Final = frozenset({*_SCALARS, types.FinishReason, types.TrafficType})


def dump_model(value: Any, **options: Any) -> Data:
    """One of ADK's or genai's objects as JSON data, without what is not set."""
    return value.model_dump(mode="json", exclude_none=True, **options)


def dump_content(content: Any) -> Data | None:
    """A message as JSON data."""
    return None if content is None else dump_model(content)


def load_content(data: Data) -> types.Content:
    """A message of JSON data."""
    return types.Content.model_validate(data)


def load_response(data: Mapping[str, Any]) -> LlmResponse:
    """An answer of its data."""
    return LlmResponse.model_validate(data)


def empty_response() -> LlmResponse:
    """An answer that says nothing."""
    return LlmResponse(content=types.Content(role="model", parts=[types.Part(text="")]))


# --- calls of models: what `keep_*` give nobody changes, and `kept_*` make data of it ------------

#: Role and texts of a message.
Said = tuple[str | None, tuple[str | None, ...]]
#: Settings of a request: their type, what they are (as JSON where they could be changed within),
#: and the schemas in them that are classes.
KeptConfig = tuple[type["BaseModel"], str | Data, Data]
#: An answer that is text alone: its type, what else stands in it, its message, and its usage.
KeptResponse = tuple[type["BaseModel"], Data, Said | None, tuple[type["BaseModel"], Data] | None]


class Asked(NamedTuple):
    """A request, or what is kept of one: of messages that are text alone role and texts."""

    model: str | None
    contents: list[Any]
    config: Any
    previous_interaction_id: str | None


def keep_request(request: LlmRequest, known: dict[Any, Any]) -> Asked | Data:
    """A request as it is now, at a fraction of the cost of its data.

    Args:
        request: The request.
        known: What was kept before, by itself: each request repeats the messages of those before.
    """
    contents = request.contents or []
    previous = vars(request).get("previous_interaction_id")
    try:
        kept = [_said(each) or _json_content(each) for each in contents]
        config = _keep_config(request.config, known)
    except Exception:  # noqa: BLE001  # a live object in it: what can be shown has to do
        return _data_of(Asked(request.model, contents, request.config, previous))
    return Asked(request.model, [*map(known.setdefault, kept, kept)], config, previous)


def _said(content: types.Content) -> Said | None:
    """Role and texts of a message, if it is text alone."""
    parts = content.parts
    if not parts or [*map(_set_of, parts)] != [_TEXT] * len(parts):
        return None
    return content.role, tuple(map(_text_of, parts))


def _json_content(content: types.Content) -> bytes | str:
    try:
        return _CONTENT.dump_json(_plain(content), exclude_none=True, warnings=False)
    except PydanticSerializationError:  # half a character, which Python can write, or a live object
        return json.dumps(json_safe(content))


def _content(kept: Said | bytes | str) -> types.Content:
    if isinstance(kept, tuple):
        role, texts = kept
        return types.Content(role=role, parts=[types.Part(text=each) for each in texts])
    if isinstance(kept, bytes):
        return _CONTENT.validate_json(kept)
    return _CONTENT.validate_python(json.loads(kept))


def _keep_config(config: Any, known: dict[Any, Any]) -> KeptConfig | None:
    if config is None:
        return None
    kind: type[BaseModel] = cast("Any", type(config))
    values: Data = {**vars(config), "labels": None}  # which ADK sets, and which ask for nothing
    if _FIXED.issuperset(map(type, values.values())):
        return (kind, values, {})
    schemas: Data = {}
    for name in _SCHEMAS:
        schema = values.get(name)
        if isinstance(schema, type) or get_origin(schema) is not None:
            schemas[name] = schema
    said = config.model_dump_json(exclude=set(schemas), exclude_none=True, warnings=False)
    return (kind, known.setdefault(said, said), schemas)


def _config(kept: KeptConfig | None) -> BaseModel | None:
    if kept is None:
        return None
    kind, said, schemas = kept
    if isinstance(said, dict):
        return _made(kind, said)
    return kind.model_validate_json(said).model_copy(update=schemas)


def kept_request(kept: Asked | Data) -> Data:
    """The data of a request that was kept, in the same words in every run."""
    if isinstance(kept, dict):
        return kept
    try:
        contents, config = [*map(_content, kept.contents)], _config(kept.config)
    except Exception as error:  # noqa: BLE001  # nobody loses a recording by a request in it
        LOG.warning("a request of model %s could not be recorded: %s", kept.model, error)
        return {"model": kept.model, "error": dump_error(error)}
    return _data_of(kept._replace(contents=contents, config=config))


def dump_request(request: LlmRequest) -> Data:
    """The data of a request, as it is recorded."""
    return kept_request(keep_request(request, {}))


def _data_of(asked: Asked) -> Data:
    try:
        data = request_data(asked)
    except Exception as error:  # noqa: BLE001  # a live object in it
        LOG.warning(
            "of a request of model %s the messages and the instruction alone are recorded: %s",
            asked.model,
            error,
        )
        config = {"system_instruction": str(getattr(asked.config, "system_instruction", ""))}
        data = {"model": asked.model, "contents": asked.contents, "config": config}
    return json_safe({key: value for key, value in data.items() if value is not None})


def keep_response(response: LlmResponse) -> KeptResponse | str:
    """An answer of a model as it is now."""
    try:
        return _keep_texts(response, {}) or _json_of(response)
    except Exception:  # noqa: BLE001  # a model of the user's may answer with another type
        return _json_of(response)


def kept_response(kept: KeptResponse | str | Data) -> Data:
    """An answer that was kept, as data; those of remote agents are data already."""
    if isinstance(kept, dict):
        return kept
    return json.loads(kept if isinstance(kept, str) else _json_of(_of_texts(kept)))


def _keep_texts(response: LlmResponse, others: Data) -> KeptResponse | None:
    """An answer as it is now, if it is text alone.

    Args:
        response: The answer.
        others: What is kept in the place of some of its fields.
    """
    content, usage = response.content, response.usage_metadata
    said = None if content is None else _said(content)
    if said is None and content is not None:
        return None
    values = {**vars(response), "content": None, "usage_metadata": None, **others}
    counts = {} if usage is None else vars(usage).copy()
    if not _FIXED.issuperset(map(type, chain(values.values(), counts.values()))):
        return None
    return (type(response), values, said, None if usage is None else (type(usage), counts))


def _of_texts(kept: KeptResponse, **others: Any) -> Any:
    kind, values, said, usage = kept
    content = None if said is None else _content(said)
    reported = None if usage is None else _made(*usage)
    return _made(kind, {**values, "content": content, "usage_metadata": reported, **others})


def _json_of(response: Any) -> str:
    """An answer as JSON."""
    try:
        content = response.content
        if content is not None and (plain := _plain(content)) is not content:
            response = response.model_copy(update={"content": plain})
        return response.model_dump_json(exclude_none=True, warnings=False)
    except Exception:  # noqa: BLE001  # half a character, or a live object
        return json.dumps(json_safe(response))


def _plain(content: types.Content) -> types.Content:
    """A message in which arguments are plain data, as they are in events."""
    parts = content.parts or []
    made = [_plain_part(each) for each in parts]
    return content if all(map(is_, made, parts)) else content.model_copy(update={"parts": made})


def _plain_part(part: types.Part) -> types.Part:
    call = part.function_call
    if call is None or (args := json_safe(call.args)) == call.args:
        return part
    return part.model_copy(update={"function_call": call.model_copy(update={"args": args})})


def _made(kind: type[BaseModel], values: Data) -> BaseModel:
    """An object with these values, whether its type would take them or not."""
    made = kind.model_construct()
    vars(made).update(values)
    return made


def branch_of(ctx: Any) -> str | None:
    """ADK's branch in which a call is made."""
    # both versions keep it there; 1.x has no other way to it
    return getattr(getattr(ctx, "_invocation_context", ctx), "branch", None)


def state_written(ctx: Any) -> Data:
    """What a call has written to state so far."""
    actions = getattr(ctx, "actions", None) or getattr(ctx, "_event_actions", None)
    return json_safe(actions.state_delta) if actions and actions.state_delta else {}


# --- events --------------------------------------------------------------------------------------

#: An event that is text alone, the state it writes, and where it stands.
KeptEvent = tuple[KeptResponse, Data, Data]
_BOOKKEEPING: Final = frozenset({"journal", "claim"})
#: What is set aside of an event, and what stands in the actions of one that writes state alone.
_ASIDE: Final[Data] = {"actions": None, "custom_metadata": None, "node_info": None}
_WRITES_ALONE: Final = {**vars(EventActions()), "state_delta": None}


def keep_event(event: Event) -> KeptEvent | Data | None:
    """An event as it is now: its data, where it could be changed within.

    Returns:
        What `kept_event` takes, or None for one that says nothing but where a run stands.
    """
    metadata, wrote = event.custom_metadata or {}, event.actions.state_delta
    stamp = metadata.get(METADATA_KEY)
    place: Data = cast("Data", stamp) if isinstance(stamp, dict) else {}
    if event.content is None and place.get("why") in _BOOKKEEPING:
        return None
    if (
        [*metadata] == [METADATA_KEY]
        and {**vars(event.actions), "state_delta": None} == _WRITES_ALONE
        and _FIXED.issuperset(map(type, chain(place.values(), wrote.values())))
        and (said := _keep_texts(event, _ASIDE)) is not None
    ):
        return said, wrote.copy(), place.copy()
    return _event_data(event)


def kept_event(kept: KeptEvent | Data) -> Data:
    """An event that was kept, as data of an `AgentEvent`."""
    if isinstance(kept, dict):
        return kept
    said, wrote, place = kept
    actions = EventActions(state_delta=wrote)
    return _event_data(_of_texts(said, actions=actions, custom_metadata={METADATA_KEY: place}))


def _event_data(event: Event) -> Data:
    made = to_agent_event(event)
    data = made.to_dict()
    if "state_delta" in data:
        data["state_delta"] = dump_state(made.state_delta)
    return data


# --- what tools do -------------------------------------------------------------------------------


def dump_result(result: Any) -> Any:
    """What a tool returned, as models are told of it: not-a-number and infinities are None."""
    try:
        return to_jsonable_python(result, inf_nan_mode="null", bytes_mode="base64")
    except (ValueError, RecursionError):  # the run refuses it
        return json_safe(result)


def dump_actions(actions: Any) -> Data:
    """What stands in EventActions, but for what is not set."""
    return {
        name: json_safe(value)
        for name, value in cast("Data", vars(actions)).items()
        if value not in (None, {}, [])
    }


def apply_effects(
    context: Any, effects: Mapping[str, Any], calls: Mapping[str, str] | None = None
) -> None:
    """Do to state and actions what a tool has done to them.

    Args:
        context: The context of the call.
        effects: What was done.
        calls: By what identity a recorded call goes now, by that under which it is known there.
    """
    given = {key: each for key, each in effects.items() if key != "state_delta"}
    wrote: Data = effects.get("state_delta") or {}
    for key, each in wrote.items():
        context.state[key] = each
    made = EventActions.model_validate(given)
    for name in made.model_fields_set:
        value: Any = getattr(made, name)
        if isinstance(value, dict):
            rows = cast("Data", value).items()
            renamed = {(calls or {}).get(key, key): each for key, each in rows}
            getattr(context.actions, name).update(renamed)
        else:
            setattr(context.actions, name, value)


# --- what agents elsewhere say --------------------------------------------------------------------

#: What of an event is another in every run.
_OF_A_RUN: Final = ("id", "invocation_id", "timestamp", "branch", "node_info")


def dump_event(event: Any) -> Data:
    """An event of a remote agent as JSON data, without what belongs to its run."""
    made = {key: each for key, each in dump_model(event).items() if key not in _OF_A_RUN}
    actions = dump_actions(event.actions)
    made.pop("actions", None)
    return {**made, "actions": json_safe(actions)} if actions else made


def load_event(data: Mapping[str, Any], ctx: Any) -> Event:
    """The event that `dump_event` was given, in a run of now."""
    of_run = {"invocation_id": ctx.invocation_id, "branch": ctx.branch}
    return Event.model_validate({**data, **of_run})


def empty_event(call: RemoteCall) -> Event:
    """The answer of a remote agent that says nothing, in each state key that it declares."""
    keys = () if call.node is None else call.node.writes_keys
    delta = dict.fromkeys((each.key for each in keys), "")
    content = types.Content(role="model", parts=[types.Part(text="")])
    made: Data = {"author": call.agent, "content": content}
    return load_event({**made, "actions": {"state_delta": delta}}, call.ctx)


# --- errors --------------------------------------------------------------------------------------


def dump_error(error: BaseException) -> Data:
    """An error as data: its type, message, and what it has of plain values."""
    kind = type(error)
    values = {
        key: value
        for key, value in vars(error).items()
        if isinstance(value, _SCALARS) and not key.startswith("_")
    }
    if isinstance(error, AdkFluentError) and error.location is not None:
        values["location"] = str(error.location)
    args = [each if isinstance(each, _SCALARS) else str(each) for each in error.args]
    made: Data = {"type": f"{kind.__module__}:{kind.__qualname__}", "message": str(error)}
    return made | {key: each for key, each in (("args", args), ("values", values)) if each}


def load_error(data: Mapping[str, Any]) -> Exception:
    """The error that was recorded, of its own type if this process has that already.

    Nothing is imported, and no constructor is called: a file may come from anybody.
    """
    module, _, name = str(data.get("type", "")).partition(":")
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    args, values = data.get("args"), data.get("values")
    if isinstance(found, type) and issubclass(found, Exception) and not issubclass(found, Warning):
        owner: Any = found  # whose memory layout it has: the first of several bases need not be it
        while owner.__module__ != "builtins":
            owner = owner.__base__
        try:
            error: Exception = owner.__new__(found)
            error.args = tuple(cast("list[Any]", args)) if isinstance(args, list) else ()
            vars(error).update(cast("Data", values) if isinstance(values, dict) else {})
            str(error)
            return error
        except Exception:  # noqa: BLE001, S110  # a class that cannot be made so
            pass
    type_name = str(data.get("type", ""))
    return RecordedError(str(data.get("message", "")) or type_name, type_name=type_name)


# --- sessions ------------------------------------------------------------------------------------


def dump_history(session: Any, invocation_id: str) -> list[Data]:
    """The events of a session before a run."""
    return [dump_model(event) for event in session.events if event.invocation_id != invocation_id]


def dump_state(state: Mapping[str, Any]) -> Data:
    """State as it is now, without what is not of the user's session."""
    return json_safe(kept_state(state, keep_none=True))


def answers_in(session: Any) -> list[Data]:
    """What a run that goes on was answered: the user's last words before it went on."""
    found: list[Data] = []
    for event in reversed(session.events):
        if event.author != "user":
            if found:
                break
            continue  # who goes on with the run has noted that already
        for part in (event.content.parts if event.content else None) or ():
            if (answer := part.function_response) is not None:
                said = json_safe(answer.response)
                found.append({"id": answer.id, "name": answer.name, "response": said})
    return found


async def seed(service: Any, app_name: str, user_id: str, session_id: str | None, run: Data) -> str:
    """Make a session as it was when a run began.

    Returns:
        Its id.
    """
    session = await service.create_session(
        app_name=app_name, user_id=user_id, session_id=session_id, state=run.get("state") or {}
    )
    for each in run.get("history") or ():
        event = Event.model_validate(each)
        event.actions.state_delta = {}  # the state is that after them
        await service.append_event(session, event)
    return session.id


def edit_event(event: Event, said: str | types.Content) -> None:
    """Let an event say something else.

    Text takes the place of its text, also in the state that the event writes; calls and results
    in it stay. A Content takes the place of all that it says.
    """
    content = event.content or types.Content()
    if not isinstance(said, str):
        event.content = said.model_copy(update={"role": said.role or content.role})
        return
    parts = content.parts or []
    before = "".join(each.text for each in parts if each.text and not each.thought)
    kept = [each for each in parts if not each.text or each.thought]
    content.parts = [*kept, types.Part(text=said)]
    calls = [each for each in kept if each.function_call or each.function_response]
    if calls:  # models say something and call then
        content.parts = [types.Part(text=said), *kept]
    delta = event.actions.state_delta
    delta.update({key: said for key, value in delta.items() if before and value == before})

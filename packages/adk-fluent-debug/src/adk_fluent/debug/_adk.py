"""What of a run is ADK's, as data and back again."""

from __future__ import annotations

import json
import sys
from itertools import chain, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, cast

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError

from adk_fluent.debug._errors import RecordedError
from adk_fluent.errors import AdkFluentError
from adk_fluent.extend import json_safe
from adk_fluent.protocol import request_data

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adk_fluent.protocol import RemoteCall

Data = dict[str, Any]

_CONTENT: Final = TypeAdapter(types.Content)
_parts_of: Final = attrgetter("parts")
_role_of: Final = attrgetter("role")
#: Of a part of a message: its text, what is set of it, and whether that is the text alone.
_text_of: Final = attrgetter("text")
_set_of: Final = attrgetter("__pydantic_fields_set__")
_is_text: Final = {"text"}.__eq__
#: What of an answer cannot be changed within, or is copied.
_PLAIN: Final = frozenset(
    {
        *("content", "usage_metadata", "model_version", "partial", "turn_complete"),
        *("finish_reason", "error_code", "error_message", "interrupted", "avg_logprobs"),
        *("interaction_id",),
    }
)
_SCALARS: Final = (str, int, float, bool, type(None))


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


def keep_request(request: Any) -> Any:
    """A request as it is now, at a fraction of the cost of its data."""
    contents, said = request.contents or (), list[Any]()
    parts = [*map(_parts_of, contents)]
    if all(parts) and all(map(_is_text, map(_set_of, chain.from_iterable(parts)))):
        # as nearly always: no step for each of them, for they are as many as all steps before
        texts = [*map(_text_of, chain.from_iterable(parts))]
        said = [texts, [*map(len, parts)], [*map(_role_of, contents)]]
    else:
        try:
            said = [_keep_content(each) for each in contents]
        except (PydanticSerializationError, UnicodeError):  # half a character, or a live object
            return dump_request(request)
    config, settings = request.config, None
    if config is not None:
        settings = config.__dict__.copy()
        if settings["tools"]:
            settings["tools"] = [*settings["tools"]]
    return request.__class__, request.__dict__.copy(), said, config.__class__, settings


def _keep_content(content: Any) -> Any:
    parts = content.parts
    if parts and all(map(_is_text, map(_set_of, parts))):
        return content.role, [*map(_text_of, parts)]
    return _CONTENT.dump_json(content, exclude_none=True)


def kept_request(kept: Any) -> Data:
    """A request that was kept: what `dump_request` would have made of it then."""
    if isinstance(kept, dict):
        return cast("Data", kept)
    said: list[Any]
    kind, fields, said, kind_of_config, settings = kept
    if said and isinstance(said[0], list):
        texts, counts, roles = iter(cast("list[str]", said[0])), said[1], said[2]
        said = [(role, [*islice(texts, n)]) for role, n in zip(roles, counts, strict=True)]
    config = settings and kind_of_config.model_construct(**settings)
    contents: list[types.Content] = [
        _CONTENT.validate_json(each) if isinstance(each, bytes) else _said(*each) for each in said
    ]
    return dump_request(kind.model_construct(**{**fields, "contents": contents, "config": config}))


def keep_response(response: Any) -> Any:
    """An answer of a model as it is now."""
    content, usage, fields = response.content, response.usage_metadata, response.__dict__
    if (
        content is not None
        and content.parts
        and len(content.parts) == 1
        and _is_text(_set_of(content.parts[0]))
        and all(fields[name] is None for name in response.__pydantic_fields_set__ - _PLAIN)
    ):
        counts = None if usage is None else (usage.__class__, usage.__dict__.copy())
        texts = (content.parts[0].text,)
        return response.__class__, fields.copy(), counts, content.role, texts
    try:
        return response.model_dump_json(exclude_none=True)
    except (PydanticSerializationError, UnicodeError):  # half a character, which Python can write
        return json.dumps(dump_model(response))


def kept_response(kept: Any) -> Data:
    """An answer that was kept, as data."""
    if isinstance(kept, str):
        return json.loads(kept)
    kind, fields, counts, *said = kept
    usage = counts and counts[0].model_construct(**counts[1])
    made = {**fields, "content": _said(*said), "usage_metadata": usage}
    return dump_model(kind.model_construct(**made))


def _said(role: str | None, texts: Iterable[str]) -> types.Content:
    return types.Content(role=role, parts=[types.Part(text=each) for each in texts])


def dump_request(request: Any) -> Data:
    """What a request asks, in the same words in every run."""
    try:
        data = request_data(request)
    except TypeError:  # a live object in it: what can be shown of the conversation has to do
        said = [dump_model(each) for each in request.contents or ()]
        config = {"system_instruction": str(getattr(request.config, "system_instruction", ""))}
        data = {"model": request.model, "contents": said, "config": config}
    return _told({key: value for key, value in data.items() if value is not None})


def _told(value: Any) -> Any:
    """Without what is not set, and as JSON has it."""
    if isinstance(value, dict):
        rows = cast("dict[Any, Any]", value).items()
        return {str(key): _told(each) for key, each in rows if each is not None}
    if isinstance(value, list | tuple):
        return [_told(each) for each in cast("list[Any]", value)]
    return value if isinstance(value, _SCALARS) else str(value)


def branch_of(ctx: Any) -> str | None:
    """ADK's branch in which a call is made."""
    # both versions keep it there; 1.x has no other way to it
    return getattr(getattr(ctx, "_invocation_context", ctx), "branch", None)


def state_written(ctx: Any) -> Data:
    """What a call has written to state so far."""
    actions = getattr(ctx, "actions", None) or getattr(ctx, "_event_actions", None)
    return {} if actions is None else dict(actions.state_delta)


# --- what tools do -------------------------------------------------------------------------------


def dump_actions(actions: Any) -> Data:
    """What stands in EventActions, but for what is not set."""
    return {
        name: dict(value) if name == "state_delta" else json_safe(value)
        for name, value in cast("Data", vars(actions)).items()
        if value not in (None, {}, [])
    }


def apply_effects(context: Any, effects: Mapping[str, Any]) -> None:
    """Do to state and actions what a tool has done to them."""
    given = {key: each for key, each in effects.items() if key != "state_delta"}
    wrote: Data = effects.get("state_delta") or {}
    for key, each in wrote.items():
        context.state[key] = each
    made = EventActions.model_validate(given)
    for name in made.model_fields_set:
        value: Any = getattr(made, name)
        if isinstance(value, dict):
            getattr(context.actions, name).update(value)
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
                data: Data = {"id": answer.id, "name": answer.name, "response": answer.response}
                found.append(data)
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

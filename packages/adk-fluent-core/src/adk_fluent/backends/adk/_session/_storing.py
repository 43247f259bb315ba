"""What the session services keep of state and events, and the error about what they cannot.

State must be JSON wherever sessions are stored: whoever reads it there, also in another process or
with another version of ADK, finds what was written. ADK's service in memory holds any object, and
so do keys that begin with ``temp:``, which end with the run.

What a tool returns goes to a model and into an event, so it must be JSON, too. ADK lets it pass as
it is and makes JSON of it only where an event is stored; here that is done at once, so that one run
says the same with every service.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

from google.adk.sessions.in_memory_session_service import InMemorySessionService
from pydantic_core import to_jsonable_python

from adk_fluent.backends._storable import (
    StorageFault,
    json_fault,
    kind_of,
    state_text_fault,
    storage_fault,
    text_fault,
)
from adk_fluent.errors import UnstorableValueError, UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from google.adk.events.event import Event
    from google.adk.sessions.base_session_service import BaseSessionService
    from google.genai import types

    from adk_fluent.errors import Placed
    from adk_fluent.protocol import StateRules

_TEMP: Final = "temp:"
_SHOWN: Final = 80  # characters of a path in an error


class Keeping:
    """What can be kept in the sessions of one service.

    Args:
        service: The service.
    """

    __slots__ = ("_encoded", "_fault", "_kind", "_stores")

    def __init__(self, service: BaseSessionService) -> None:
        self._kind = type(service).__name__
        #: What a service cannot hold that says so itself: one may hold more than JSON.
        self._fault = getattr(service, "__state_fault__", storage_fault)
        in_memory = isinstance(service, InMemorySessionService)
        self._stores = not in_memory or self._fault is not storage_fault
        #: Keys of which the service itself makes JSON: a `SchemaSessionService` does.
        rules: StateRules | None = getattr(service, "__state_rules__", None)
        self._encoded: Collection[str] = () if rules is None else rules.__state_fields__

    def check_state(self, delta: Mapping[str, Any], who: str, node: Placed | None = None) -> None:
        """Refuse a write that cannot be kept.

        Args:
            delta: What is written.
            who: Who writes it, as the beginning of a sentence.
            node: The step.

        Raises:
            UsageError: A key is no str.
            UnstorableValueError: A value is not JSON, and the service stores its sessions.
        """
        for key, value in delta.items():
            if not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # ADK takes anything
                raise UsageError(
                    f"{who} writes to a state key that is no str",
                    node=node,
                    found=f"key {key!r:.40} of type {type(key).__qualname__}",
                    help="state keys are strings",
                )
            if not self._stores or key.startswith(_TEMP) or key in self._encoded:
                continue
            fault = state_text_fault(key) or self._fault(value)
            if fault is None or _is_adks(fault.part):
                continue
            path = f"state[{key!r}]{fault.path}"
            raise UnstorableValueError(
                f"{who} writes what sessions of {self._kind} cannot keep",
                key=key,
                path=path,
                node=node,
                found=f"{_short(path)} {fault.says}",
                help=f"{fault.help}; for this run only: write to {_TEMP + key!r}",
            )

    def check_start(self, state: Mapping[str, Any]) -> None:
        """Refuse what no session of the service can begin with.

        Raises:
            UnstorableValueError: There is such a value.
        """
        self.check_state(state, "state=")
        for key in () if self._stores else uncopyable(state):
            raise UnstorableValueError(
                "state= holds an object that cannot be copied",
                key=key,
                path=f"state[{key!r}]",
                found=f"state[{key!r}] is {kind_of(state[key])}",
                help="ADK copies a session in memory at the start of each run; hand such objects "
                "over by .inject(...)",
            )

    def check_event(self, event: Event, node: Placed) -> None:
        """Refuse an event that cannot be kept or sent to a model; make JSON of what tools returned.

        Raises:
            UsageError: It writes to a state key that is no str.
            UnstorableValueError: There is something in it that no JSON can be made of.
        """
        content = event.content
        for part in content.parts or () if content is not None else ():
            if part.function_response is not None:
                _make_json(part.function_response, node)
            elif self._stores:
                self._check_part(part, event.author, node)
        if event.actions.state_delta:
            self.check_state(event.actions.state_delta, _writer(event), node)

    def _check_part(self, part: types.Part, author: str, node: Placed) -> None:
        if part.text is not None:
            path, fault = "the text", text_fault(part.text)
        elif part.function_call is not None:
            path, fault = part.function_call.name or "", json_fault(part.function_call.args)
            path = f"{path}(...)"
        else:
            return
        if fault is not None:
            raise UnstorableValueError(
                f"the model of {author} answered what sessions of {self._kind} cannot keep",
                path=f"{path}{fault.path}",
                node=node,
                found=f"{_short(path + fault.path)} {fault.says}",
                help="ask again, or give the agent a fallback (a // b); "
                "an after_model callback can repair such answers",
            )


def _make_json(result: types.FunctionResponse, node: Placed) -> None:
    """Make JSON of what a tool returned, the same that ADK makes of it when it stores an event."""
    fault = json_fault(result.response)
    if fault is None:
        return
    try:
        made = to_jsonable_python(result.response, inf_nan_mode="null", bytes_mode="base64")
        remaining = json_fault(made)
    except ValueError:  # what pydantic raises of a value that it cannot serialise
        remaining = fault
    else:
        if remaining is None:
            result.response = made
            return
    raise _no_json(result.name or "", remaining, node)


def _no_json(tool: str, fault: StorageFault, node: Placed) -> UnstorableValueError:
    path = f"{tool}(...){fault.path}"
    return UnstorableValueError(
        f"tool {tool!r} returned what cannot be told to a model, nor kept in a session",
        path=path,
        node=node,
        found=f"{_short(path)} {fault.says}",
        help=fault.help.replace("write", "return", 1),
    )


def _short(path: str) -> str:
    return path if len(path) <= _SHOWN else f"{path[: _SHOWN // 2]}...{path[-_SHOWN // 2 :]}"


def uncopyable(state: Mapping[str, Any]) -> list[str]:
    """The keys of values that cannot be copied, which only those can be that are no JSON."""
    return [key for key, value in state.items() if json_fault(value) and not _copies(value)]


def _copies(value: object) -> bool:
    try:
        deepcopy(value)
    except Exception:  # noqa: BLE001  # whatever a foreign object raises, it cannot be copied
        return False
    return True


def _writer(event: Event) -> str:
    tools = [each.name or "" for each in event.get_function_responses()]
    return f"tool {' or '.join(map(repr, tools))}" if tools else event.author


def _is_adks(part: object) -> bool:
    """Whether it is ADK's own, such as a credential: what becomes of it is for its service."""
    return str(type(part).__module__).startswith("google.adk.")  # of a message of protobuf: None

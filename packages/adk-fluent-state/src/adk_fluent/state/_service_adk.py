"""A session service that holds every write to a schema, whatever service keeps the sessions."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import suppress
from functools import partial, wraps
from inspect import isawaitable, signature
from typing import TYPE_CHECKING, Any, Final, Literal, Self, cast

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig

from adk_fluent.errors import StateTypeError, UsageError
from adk_fluent.extend import METADATA_KEY, describe
from adk_fluent.state._service_check import WriteCheck
from adk_fluent.state._service_patch import patched

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from google.adk.sessions.base_session_service import ListSessionsResponse
    from google.adk.sessions.session import Session

    from adk_fluent.protocol import StateRules

    _Base = BaseSessionService
else:
    _Base = object  # what it does not have itself, all of the service it wraps has

_NEEDED: Final = ("append_event", "create_session", "get_session")
_SHARED: Final = ("user:", "app:")
_TEMP: Final = "temp:"
_AUTHOR: Final = "user"  # as ADK's server says of a change of state that no agent made
_GATE: Final = ("gate", "refused")  # why the flow engine writes the answer of a gate
_TRIES: Final = 5  # upgrades of one session, where others write to it at the same time
#: Parameters by which a method of a session service can be given state.
_STATE: Final = ("state", "state_delta")
_EVENTS: Final = ("event", "events")


class SchemaSessionService(_Base):
    """Holds all that is written to sessions to a state schema, on its way to where it is stored.

    ::

        sessions = SchemaSessionService(SqliteSessionService("shop.db"), BillingState)
        runner = Runner(app=app, session_service=sessions)

    Whoever writes (an agent by its `output_key`, a tool, also of an agent in a tool, a callback,
    a custom agent, the state a session or a run starts with) writes by an event or by
    `create_session`, and both pass here. Values are stored as JSON, so that every service gives
    back what was written. A write that breaks the schema raises, and nothing of it is stored.

    Keys of ADK and of adk-fluent pass. State of an older version of the schema is upgraded when its
    session is read. For all else it is like the service in it, for `isinstance`, too.

    Args:
        inner: The session service that stores: any of ADK's, or your own.
        schema: A `StateSchema`.
        extra: ``forbid`` refuses keys that the schema does not declare, in all scopes.
        enforce: ``error`` refuses a write that breaks the schema; ``warn`` stores it as it is, and
            logs that once for each key.

    Raises:
        UsageError: It is given something else.
        UnknownNameError: `extra` or `enforce` is none of these words.

    Attributes:
        inner: The session service that stores.
        schema: The schema.
    """

    def __init__(
        self,
        inner: BaseSessionService,
        schema: StateRules,
        *,
        extra: Literal["forbid", "allow"] = "forbid",
        enforce: Literal["error", "warn"] = "error",
    ) -> None:
        if isinstance(inner, type) or not all(hasattr(inner, name) for name in _NEEDED):
            raise UsageError(
                "SchemaSessionService(inner, schema) wraps a session service",
                found=describe(inner),
                help="such as SchemaSessionService(InMemorySessionService(), schema)",
            )
        self.inner = inner
        self.schema = schema
        self._check = WriteCheck(schema, extra, enforce)
        self._upgrade: Callable[[Mapping[str, Any]], dict[str, Any]] | None
        self._upgrade = (
            getattr(schema, "__state_upgrade__", None) if _has_versions(schema) else None
        )

    # --- what is written --------------------------------------------------------------------------

    async def create_session(self, *, state: dict[str, Any] | None = None, **asked: Any) -> Session:
        """Make a session, as the service does.

        Args:
            state: What it starts with.
            **asked: ``app_name``, ``user_id``, and what else the service takes.

        Raises:
            StateTypeError: `state` breaks the schema; no session is made.
            SchemaUpgradeError: The state of the user or the app cannot be upgraded.
        """
        if state:
            state = self._check.encoded(state, "create_session(state=...)")
        if self._upgrade is None:
            return await self.inner.create_session(state=state, **asked)
        return await self._created(self._upgrade, state or {}, asked)

    async def append_event(self, session: Session, event: Event) -> Event:
        """Store an event, as the service does.

        Raises:
            StateTypeError: What it writes to state breaks the schema; it is not stored.
        """
        # the first are never stored, the others bring back what was stored before
        if not event.partial and not event.actions.rewind_before_invocation_id:
            try:
                self._encode(event)
            except StateTypeError:
                await self._take_back(session, event.actions.state_delta)
                raise
        return await self.inner.append_event(session=session, event=event)

    def _encode(self, event: Event) -> None:
        delta = event.actions.state_delta
        if delta:
            try:
                event.actions.state_delta = self._check.encoded(
                    delta, _Writer(event), _gate_of(event) if event.custom_metadata else None
                )
            except StateTypeError as error:
                if event.author != _AUTHOR:
                    error.node = error.node or event.author
                raise

    async def _take_back(self, session: Session, delta: Mapping[str, Any]) -> None:
        """Let a session that somebody goes on with not hold what was refused.

        ADK writes to the session at once, and stores it with the event.
        """
        held = [
            key
            for key, value in delta.items()
            if session.state.get(key) is value and not str(key).startswith(_TEMP)
        ]
        if not held:
            return
        with suppress(Exception):  # the write that was refused is told, and nothing else
            stored = await self.inner.get_session(
                **_ids(session), config=GetSessionConfig(num_recent_events=1)
            )
            before = {} if stored is None else stored.state
            for key in held:
                if key in before:
                    session.state[key] = before[key]
                else:
                    session.state.pop(key, None)

    # --- what is read -----------------------------------------------------------------------------

    async def get_session(self, **asked: Any) -> Session | None:
        """A session, as the service has it; its state is brought to the schema's version first.

        Raises:
            SchemaUpgradeError: That cannot be done; nothing is changed.
        """
        session = await self.inner.get_session(**asked)
        if self._upgrade is None:
            return session
        for left in reversed(range(_TRIES)):
            delta = self._upgrade(session.state) if session is not None else {}
            if session is None or not delta:
                break
            try:
                event = self._event(delta, session)
                await self.inner.append_event(session=session, event=event)
            except Exception:
                if not left:
                    raise
                # most likely somebody else was faster, and has upgraded it
            session = await self.inner.get_session(**asked)
        return session

    async def list_sessions(self, **asked: Any) -> ListSessionsResponse:
        """The sessions, as the service has them; what their state holds is not upgraded."""
        return await self.inner.list_sessions(**asked)

    async def delete_session(self, **asked: Any) -> None:
        """Delete a session, as the service does."""
        await self.inner.delete_session(**asked)

    # --- versions ---------------------------------------------------------------------------------

    async def _created(
        self,
        upgrade: Callable[[Mapping[str, Any]], dict[str, Any]],
        state: Mapping[str, Any],
        asked: dict[str, Any],
    ) -> Session:
        """A session of this version.

        What is given for the user and the app follows when their state is known to be of it, too:
        it cannot be read before there is a session.
        """
        shared = {key: value for key, value in state.items() if key.startswith(_SHARED)}
        own = {key: value for key, value in state.items() if key not in shared}
        stamped = cast("Any", self.schema).initial() | own
        session = await self.inner.create_session(state=stamped, **asked)
        try:
            delta = upgrade(session.state) | shared
            if delta:
                event = self._event(delta, session)
                await self.inner.append_event(session=session, event=event)
        except BaseException:
            await self.inner.delete_session(**_ids(session))
            raise
        return session

    def _event(self, delta: dict[str, Any], session: Session) -> Event:
        """An event that brings state to the version of the schema."""
        from adk_fluent.extend import merges_dicts  # noqa: PLC0415  # seldom needed

        if merges_dicts(self.inner):
            delta = {key: patched(session.state.get(key), delta[key]) for key in delta}
        return Event(
            author=_AUTHOR,
            invocation_id=f"upgrade-{uuid.uuid4()}",
            actions=EventActions(state_delta=delta),
            custom_metadata={"adk_fluent_state": "upgrade"},
        )

    # --- what else there is -----------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        """Whatever else the service has, now or in later versions of ADK."""
        if name.startswith("__") or name == "inner":
            raise AttributeError(name)
        found = getattr(self.inner, name)
        if name.startswith("_") or not callable(found):
            return found
        return self._checking(found)

    def _checking(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """A method of the service; if it can be given state, with that checked."""
        try:
            takes = signature(method)
        except (TypeError, ValueError):  # built in
            return method
        if not takes.parameters.keys() & {*_STATE, *_EVENTS}:
            return method

        @wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            given = takes.bind(*args, **kwargs)
            for name, value in given.arguments.items():
                if name in _STATE and isinstance(value, Mapping):
                    writer = f"{method.__name__}({name}=...)"
                    given.arguments[name] = self._check.encoded(
                        cast("Mapping[str, Any]", value), writer
                    )
                elif name in _EVENTS:
                    for each in cast("Any", [value] if isinstance(value, Event) else value):
                        self._encode(each)
            return method(*given.args, **given.kwargs)

        return call

    async def __aenter__(self) -> Self:
        """Open the service, if it has to be."""
        if hasattr(type(self.inner), "__aenter__"):
            await cast("Any", self.inner).__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the service."""
        inner: Any = self.inner
        if hasattr(type(self.inner), "__aexit__"):
            await inner.__aexit__(kind, error, trace)
        elif hasattr(inner, "close"):
            closing: object = inner.close()
            if isawaitable(closing):
                await closing

    # --- as a value -------------------------------------------------------------------------------

    if not TYPE_CHECKING:

        @property
        def __class__(self) -> type:
            """What `isinstance` sees: code that treats one service in another way does so here."""
            return self.inner.__class__

        @property
        def __state_rules__(self) -> StateRules:
            """Says that values of declared keys need not be JSON."""
            return self.schema

    def __repr__(self) -> str:
        name = getattr(self.schema, "__name__", repr(self.schema))
        return f"SchemaSessionService({self.inner!r}, {name})"

    def __reduce__(self) -> tuple[Any, ...]:
        kind: Any = type(self)
        options: dict[str, Any] = {"extra": self._check.extra, "enforce": self._check.enforce}
        return (partial[Any](kind, **options), (self.inner, self.schema))


BaseSessionService.register(SchemaSessionService)
SchemaSessionService.__module__ = "adk_fluent.state"  # where it is public


class _Writer:
    """Who writes by an event, as text: it is worth while to find out only for an error."""

    __slots__ = ("_event",)

    def __init__(self, event: Event) -> None:
        self._event = event

    def __str__(self) -> str:
        if self._event.author == _AUTHOR:
            return "the state_delta of a run or of an update"
        tools = [each.name or "" for each in self._event.get_function_responses()]
        if tools:
            return f"tool {' or '.join(map(repr, tools))} of agent {self._event.author!r}"
        return f"agent {self._event.author!r}"


def _gate_of(event: Event) -> str | None:
    """The gate whose answer an event is: that of one without a key stands under its name."""
    stamp: Any = cast("Any", event.custom_metadata).get(METADATA_KEY)
    return stamp["node"] if stamp and stamp.get("why") in _GATE else None


def _has_versions(schema: object) -> bool:
    """Whether a schema, or one that it is made of, has a version above 1."""
    return bool(getattr(getattr(schema, "__schema__", None), "versioned", ()))


def _ids(session: Session) -> dict[str, str]:
    return {"app_name": session.app_name, "user_id": session.user_id, "session_id": session.id}

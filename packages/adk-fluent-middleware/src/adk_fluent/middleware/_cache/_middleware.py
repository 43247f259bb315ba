"""Answers of models, given again to who asks the same."""

from __future__ import annotations

import asyncio
import copy
import os
import threading
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

from pydantic import Field

from adk_fluent.errors import UsageError
from adk_fluent.extend import LOG, REPLAYED, describe
from adk_fluent.middleware._builtin import BuiltIn, builtin, dependency
from adk_fluent.middleware._cache._disk import DiskStore
from adk_fluent.middleware._cache._flights import Flight, Flights
from adk_fluent.middleware._cache._key import key_of
from adk_fluent.middleware._cache._memory import MemoryStore
from adk_fluent.middleware._cache._store import CacheStore
from adk_fluent.middleware._stand_ins import told
from adk_fluent.protocol import ModelCall, ModelReply, NextModel, Usage
from adk_fluent.telemetry import count

if TYPE_CHECKING:
    from typing import Self

T = TypeVar("T")
#: Seconds that a store may take to find or to keep an answer.
_STORE_SECONDS = 1.0
#: Seconds for which a store is left alone that took longer.
_STORE_REST = 10.0
#: Seconds that others wait while one fragment of the leader's stream is held up.
_READER_SECONDS = 1.0
#: How many leaders one waits for that fail, before one asks by oneself.
_LEADERS: Final = 2
#: The flights that the code that runs is the leader of: it would wait for itself.
_LEADING: ContextVar[frozenset[tuple[int, str]]] = ContextVar(
    "adk_fluent_cache_leading", default=frozenset()
)


@dataclass(frozen=True, slots=True)
class CacheStats:
    """What a cache has done since it was made, in this process.

    Attributes:
        hits: Calls answered from the store.
        shared: Calls answered with the answer of an identical call at the same time.
        misses: Calls that reached the model.
        bypassed: Calls that the cache had nothing to do with.
        saved: Tokens that the calls answered would have taken.
    """

    hits: int = 0
    shared: int = 0
    misses: int = 0
    bypassed: int = 0
    saved: Usage = field(default_factory=Usage)


_OURS: Final = (MemoryStore, DiskStore)
_COUNTED: Final = {"hit": "hits", "shared": "shared", "miss": "misses", "bypass": "bypassed"}


class _Common:
    """What all runs have in common."""

    def __init__(self) -> None:
        self.flights = Flights()
        self.stats = CacheStats()
        self.replayed: dict[str, bytes] = {}  # answers of replays, which no store keeps
        self.warned = False
        self.rests_until: float | None = None
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return (_Common, ())  # whoever unpickles it has asked nothing

    def note(self, result: str, saved: Usage | None = None) -> None:
        """Count a call by what came of it."""
        count("adk_fluent.cache.requests", 1, {"adk_fluent.cache.result": result})
        name = _COUNTED[result]
        with self._lock:
            more: dict[str, Any] = {name: getattr(self.stats, name) + 1}
            if saved is not None:
                more["saved"] = self.stats.saved + saved
            self.stats = replace(self.stats, **more)


@builtin
class CacheMiddleware(BuiltIn):
    """Answers a request that a model has answered before, without calling it.

    Requests are the same when model, settings, instructions, tools and conversation are. Only
    complete answers are kept: no errors, nothing blocked, cut off or empty. A run that asks the
    same again wants another answer: the model gives it, and that one is kept.

    Attributes:
        ttl: Seconds that an answer is good for; None is for as long as the store has room.
        shared: Give the answers of one user to all others, and those of one app to others that
            use the same store.
        tool_calls: Keep answers that call tools, too; the tools run each time.
        grounded: Keep answers that rest on a search of the web or of documents, too.
        require_stop: Keep only answers that say that they are complete; for models that never
            say so, switch it off.
        max_wait: Seconds to wait for the answer of an identical call that is under way, before
            calling the model, too; 0 is not to wait.
        store: What keeps the answers: in memory, in a file, or something of your own.
        key: What identifies a request, in the place of all that is in it; None is not to keep the
            answer. User, app and model are told apart all the same.
        cache_if: Decides which complete answers are kept.
    """

    ttl: Annotated[float, Field(gt=0)] | None = 3600.0
    shared: bool = False
    tool_calls: bool = True
    grounded: bool = False
    require_stop: bool = True
    max_wait: Annotated[float, Field(ge=0)] = 60.0
    store: CacheStore = dependency(default_factory=MemoryStore)
    key: Callable[[ModelCall], str | None] | None = dependency(default_factory=lambda: None)
    cache_if: Callable[[ModelCall, ModelReply], bool] | None = dependency(
        default_factory=lambda: None
    )
    _common: _Common = field(default_factory=_Common, init=False, repr=False)
    _asked: set[str] = field(default_factory=set[str], init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the options, and the store.

        Raises:
            UsageError: One of them cannot be used.
        """
        super().__post_init__()
        given: Any = self.store
        if isinstance(given, type) or not isinstance(given, CacheStore):
            raise UsageError(
                "cache(store=...) cannot have this value",
                found=describe(given),
                help="MemoryStore(), DiskStore(path), or an object with get, set, clear and close",
            )

    def new(self) -> Self:
        """The instance for one run; the answers are those of all."""
        made = copy.copy(self)
        made._asked = set()  # noqa: SLF001  # its own
        return made

    @property
    def stats(self) -> CacheStats:
        """What it has done so far, in all runs."""
        return self._common.stats

    async def clear(self) -> None:
        """Forget all answers in the store."""
        await self.store.clear()

    async def close(self) -> None:
        """Let go of the store's files and connections; the next call opens them again."""
        try:
            await self.store.close()
        except Exception as error:  # noqa: BLE001  # a cache is never worth a failure
            self._warn(error)

    async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
        """Answer from the store, or with what an identical call gets, or let the model answer."""
        key = key_of(call, self.key, shared=self.shared)
        if key is None or self._mark(key) in _LEADING.get() or _keeps_conversations(call.model):
            self._common.note("bypass")
            return await next(call)
        again = key in self._asked
        self._asked.add(key)
        if self.max_wait and not again:
            for _ in range(_LEADERS):
                flight, leads = self._common.flights.board(key)
                if leads:
                    return await self._lead(call, next, key, flight)
                landing = await flight.wait(self.max_wait)
                if isinstance(landing, bytes):
                    return await self._replay(call, key, landing, "shared")
                if landing == "alone":
                    break
        return await self._lead(call, next, key, Flight(), again=again)  # which nobody knows of

    async def _lead(
        self, call: ModelCall, next: NextModel, key: str, flight: Flight, *, again: bool = False
    ) -> ModelReply:
        token = _LEADING.set(_LEADING.get() | {self._mark(key)})
        try:
            recorded = REPLAYED.get()
            asked_model = recorded is not None and recorded(call)
            found = None if again or asked_model else await self._found(key)
            if found is not None:
                flight.land(found)
            else:
                self._common.note("miss")
                asked = self._watched(call, key, flight) if call.stream else call
                reply, made = await self._ask(asked, next, key)
                flight.land(made or "alone")
                if made is not None:
                    await self._put(key, made)  # who comes meanwhile still finds the flight
                return reply
        finally:
            self._common.flights.leave(key, flight)
            _LEADING.reset(token)
        return await self._replay(call, key, found, "hit")

    def _watched(self, call: ModelCall, key: str, flight: Flight) -> ModelCall:
        """The call, whose flight others leave as soon as a slow reader, or a hook, holds it up."""
        loop = asyncio.get_running_loop()

        async def forward(fragment: Any) -> None:  # may return only when the user has taken it
            late = loop.call_later(_READER_SECONDS, self._common.flights.leave, key, flight)
            try:
                await call.emit(fragment)
            finally:
                late.cancel()

        return call.heard_by(forward)

    async def _ask(
        self, call: ModelCall, next: NextModel, key: str
    ) -> tuple[ModelReply, bytes | None]:
        """The model's answer, and what is to be kept of it."""
        from adk_fluent.middleware._cache import _reply_adk  # noqa: PLC0415  # ADK, when it is used

        asked = getattr(call.request, "model", None)
        with told() as answer:
            reply = await next(call)
        if (
            answer.of_a_stand_in
            or getattr(call.request, "model", None) != asked  # so has a middleware of somebody's
            or not self._rules().allow(reply.responses)
            or not (self.cache_if is None or self.cache_if(call, reply))
        ):
            return reply, None
        try:
            return reply, _reply_adk.encode(key, reply.responses)
        except ValueError as error:
            LOG.debug("an answer cannot be kept: %s", error)
            return reply, None

    async def _replay(self, call: ModelCall, key: str, kept: bytes, result: str) -> ModelReply:
        from adk_fluent.middleware._cache import _reply_adk  # noqa: PLC0415  # ADK, when it is used

        responses = _reply_adk.decode(key, kept)
        self._common.note(result, _reply_adk.used(responses))
        reply = _reply_adk.replayed(responses, result)
        if call.stream:
            for each in _reply_adk.fragments(responses):
                await call.emit(each)
        return reply

    async def _found(self, key: str) -> bytes | None:
        from adk_fluent.middleware._cache import _reply_adk  # noqa: PLC0415  # ADK, when it is used

        if REPLAYED.get() is not None and key in self._common.replayed:
            return self._common.replayed[key]
        try:
            kept = await self._in_time(self.store.get, key)
        except Exception as error:  # noqa: BLE001  # a cache is never worth a failure
            self._warn(error)
            return None
        if kept is None:
            return None
        try:  # it may come from another version, or from somebody else
            return kept if self._rules().allow(_reply_adk.decode(key, kept)) else None
        except ValueError as error:
            LOG.debug("what is kept is no answer: %s", error)
            return None

    async def _put(self, key: str, kept: bytes) -> None:
        if REPLAYED.get() is not None:
            self._common.replayed[key] = kept
            return
        try:
            await self._in_time(self.store.set, key, kept, self.ttl)
        except Exception as error:  # noqa: BLE001  # a cache is never worth a failure
            self._warn(error)

    async def _in_time(self, what: Callable[..., Awaitable[T]], *given: Any) -> T | None:
        """What a store does; nothing while it is left alone, since it has taken too long."""
        until = self._common.rests_until
        if until is not None and time.monotonic() < until:
            return None
        begun = time.monotonic()
        try:
            async with asyncio.timeout(_STORE_SECONDS):
                return await what(*given)
        finally:
            # half of it: a time limit outside may be the shorter one, and end the call each time
            if time.monotonic() - begun > _STORE_SECONDS / 2:
                self._common.rests_until = time.monotonic() + _STORE_REST

    def _warn(self, error: Exception) -> None:
        if self._common.warned:
            return
        self._common.warned = True
        store: Any = self.store
        if type(store) in _OURS:
            what, why = repr(store), f"{type(error).__name__}: {error}"
        else:  # what it says of itself, and its errors, may hold a password
            what, why = type(store).__name__, type(error).__name__
            if isinstance(error, OSError) and error.errno is not None:
                why = f"{why}: {os.strerror(error.errno)}"
        LOG.warning("the cache cannot use %s, models are called without it: %s", what, why)

    def _rules(self) -> Any:
        from adk_fluent.middleware._cache._reply_adk import Rules  # noqa: PLC0415  # the same

        return Rules(
            tool_calls=self.tool_calls, grounded=self.grounded, require_stop=self.require_stop
        )

    def _mark(self, key: str) -> tuple[int, str]:
        return id(self._common), key


def _keeps_conversations(model: Any) -> bool:
    """The Interactions API: the service keeps the conversation, and must not miss a part of it."""
    return bool(getattr(model, "use_interactions_api", False))


#: `CacheMiddleware` by its short name.
cache = CacheMiddleware

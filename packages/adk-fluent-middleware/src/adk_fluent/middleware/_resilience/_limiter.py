"""Calls wait for their turn, so that no more are made than a service allows.

The limits are sliding windows of a minute: in no 60 seconds begin more calls, or calls with more
tokens, than are allowed, however the service counts its minutes. A token bucket is smoother, and
lets nearly twice as many through in the minute after a quiet one.

Not by aiolimiter 1.3, because it lets the smallest of those that wait go first, so that a large
request may wait for ever; an object belongs to one event loop; what was taken cannot be settled
when the real number is known; and its clock cannot be replaced.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field

from adk_fluent.errors import UsageError
from adk_fluent.middleware._builtin import BuiltIn, builtin, dependency
from adk_fluent.middleware._resilience._lines import Lines
from adk_fluent.middleware._resilience._names import model_name
from adk_fluent.protocol import (
    Clock,
    ModelCall,
    ModelReply,
    NextModel,
    NextTool,
    SystemClock,
    ToolCall,
    estimate_tokens,
)
from adk_fluent.telemetry import measure

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from adk_fluent.middleware._resilience._lines import Key, Limits, Turn

    #: What a call is counted by, and of tools which call it is: one may be made within another.
    Place = tuple[Key, str | None]

Limit = Annotated[int, Field(ge=1)]
#: Seconds after which a reader who does not read gives the place of the call to others.
_READER_SECONDS: Final = 1.0
#: The turns of the calls that are under way here, by the lines they stood in.
_HELD: Final[ContextVar[frozenset[tuple[int, Place]]]] = ContextVar(
    "adk_fluent_turns", default=frozenset()
)


@builtin
class RateLimiterMiddleware(BuiltIn):
    """Lets calls wait for their turn, so that no more are made in a minute than are allowed.

    All runs of this object share the limits. Who comes first goes first. Before a call its tokens
    are estimated, with as many for the answer as it may have at most; after it the real number
    counts. At least one limit has to be given.

    Attributes:
        requests_per_minute: Model calls that may begin within any 60 seconds.
        tokens_per_minute: Tokens that those may take, with their answers. A call with more of them
            goes when it is alone.
        concurrency: Model calls at once. A reader who does not read what is streamed holds no place
            after a second.
        per: What the limits are for: each model, each user, or all calls together.
        max_wait: Seconds that a call may wait; if it would take longer, it fails at once.
        tools: Calls per minute, by the names of tools.
        clock: Where the time comes from.
    """

    requests_per_minute: Limit | None = None
    tokens_per_minute: Limit | None = None
    concurrency: Limit | None = None
    per: Literal["model", "user", "all"] = "model"
    max_wait: Annotated[float, Field(ge=0)] | None = None
    tools: Mapping[str, Limit] = field(default_factory=dict[str, int])
    clock: Clock = dependency(default_factory=SystemClock)
    _lines: Lines = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            UsageError: One has a value that it cannot have, or none is a limit.
        """
        super().__post_init__()
        if not (self._limits_models or self.tools):
            raise UsageError(
                "rate_limiter() limits nothing",
                help="give rate_limiter(requests_per_minute=60), for one",
            )
        self._lines = Lines(self.clock, self.max_wait)

    def refuses_live(self) -> str | None:
        """A live connection is no call that could wait for its turn."""
        if not self._limits_models:
            return None
        return "rate_limiter() counts model calls, and a live connection is none"

    async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
        """Call the model when it is its turn."""
        if not self._limits_models:
            return await next(call)
        tokens = 0 if self.tokens_per_minute is None else _reserved(call.request)
        limits = (self.requests_per_minute, self.tokens_per_minute, self.concurrency)
        key = self._key(call)
        if self._holds((key, None)):
            return await next(call)
        async with self._turn((key, None), "model", model_name(call), limits, tokens) as turn:
            reply = await next(self._watched(call, turn) if call.stream else call)
            if (usage := reply.usage) is not None:
                self._lines.settle(turn, usage.total)
            return reply

    async def wrap_tool_call(self, call: ToolCall, next: NextTool) -> Any:
        """Call the tool when it is its turn."""
        if (limit := self.tools.get(call.name)) is None:
            return await next(call)
        place = (("tool", call.name), call.call_id)
        if self._holds(place):
            return await next(call)
        async with self._turn(place, "tool", call.name, (limit, None, None)):
            return await next(call)

    def _holds(self, place: Place) -> bool:
        """Whether this object stands around the call further out, too, and it has its turn."""
        return (id(self._lines), place) in _HELD.get()

    def _watched(self, call: ModelCall, turn: Turn) -> ModelCall:
        """The call, whose place others get as soon as a slow reader, or a hook, holds it up."""
        if self.concurrency is None:
            return call
        loop = asyncio.get_running_loop()

        async def forward(fragment: Any) -> None:  # may return only when the user has taken it
            late = loop.call_later(_READER_SECONDS, self._lines.end, turn)
            try:
                await call.emit(fragment)
            finally:
                late.cancel()

        return call.heard_by(forward)

    @asynccontextmanager
    async def _turn(
        self, place: Place, kind: str, name: str, limits: Limits, tokens: int = 0
    ) -> AsyncGenerator[Turn, None]:
        began = self.clock.monotonic()
        turn = await self._lines.turn(place[0], f"{kind} {name!r}", limits, tokens)
        token = _HELD.set(_HELD.get() | {(id(self._lines), place)})
        try:
            named = "gen_ai.request.model" if kind == "model" else "gen_ai.tool.name"
            waited = max(0.0, self.clock.monotonic() - began)
            measure("adk_fluent.limiter.wait", waited, {"adk_fluent.call": kind, named: name})
            yield turn
        finally:
            self._lines.end(turn)
            with suppress(ValueError):  # it was dropped, and is collected somewhere else
                _HELD.reset(token)

    @property
    def _limits_models(self) -> bool:
        limits = (self.requests_per_minute, self.tokens_per_minute, self.concurrency)
        return limits != (None, None, None)

    def _key(self, call: ModelCall) -> Key:
        if self.per == "model":
            return ("model", model_name(call))
        if self.per == "user":
            session = call.ctx.session
            return ("user", session.app_name, session.user_id)
        return ("all",)


def _reserved(request: Any) -> int:
    """The tokens that a call may take at most, as far as can be told before."""
    return estimate_tokens(request) + (getattr(request.config, "max_output_tokens", None) or 0)


#: `RateLimiterMiddleware` by its short name.
rate_limiter = RateLimiterMiddleware

"""Calls that failed in passing, made again."""

from __future__ import annotations

import copy
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

from pydantic import Field

from adk_fluent.extend import LOG
from adk_fluent.middleware._builtin import BuiltIn, builtin, dependency
from adk_fluent.middleware._resilience._clients import own_attempts
from adk_fluent.middleware._resilience._names import chosen, is_agent
from adk_fluent.middleware._spent import tell_spent
from adk_fluent.protocol import (
    Clock,
    ModelCall,
    ModelReply,
    NextModel,
    NextTool,
    RequestSnapshot,
    SystemClock,
    ToolCall,
    classify,
    retry_after,
)
from adk_fluent.telemetry import count

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")


def _is_retriable(error: Exception) -> bool:
    return classify(error) == "retriable"


@builtin
class RetryMiddleware(BuiltIn):
    """Calls a model again that failed in passing, and tools that are named.

    Passing are lost connections, timeouts, answers that were cut, and the statuses 429, 500, 502,
    503, 504 and 529. A model whose answer the user has read a part of is not called again. The
    request of a further call is what that of the first was, whatever the model did to it, and so
    are the arguments of a tool.

    Attributes:
        max_attempts: Calls in all, the first one included.
        backoff_base: Seconds before the second call; each further wait is twice as long.
        backoff_max: Seconds that one wait takes at most.
        jitter: The part of a wait that is left to chance, so that many do not come back at once.
        deadline: Seconds after the first call began, after which no further one begins.
        retry_after_max: Seconds that a service may ask to wait for; beyond that its error is raised
            at once.
        models: Call models again.
        tools: Call tools again: none, all but agents, or those of these names. A tool whose effect
            must not happen twice does not belong here, nor does an agent that calls one.
        retry_if: Decides which errors are passing, instead of the rule above.
        retry_reply: Decides which answers of a model will not do, and are asked for again; that of
            the last call is taken as it is.
        clock: Where the time comes from.
        random: Where chance comes from: numbers from 0 to 1.
    """

    max_attempts: Annotated[int, Field(ge=1)] = 3
    backoff_base: Annotated[float, Field(ge=0)] = 1.0
    backoff_max: Annotated[float, Field(ge=0)] = 30.0
    jitter: Annotated[float, Field(ge=0, le=1)] = 0.5
    deadline: Annotated[float, Field(gt=0)] | None = None
    retry_after_max: Annotated[float, Field(ge=0)] = 60.0
    models: bool = True
    tools: bool | Sequence[str] = False  # what they do may not be harmless to do twice
    retry_if: Callable[[Exception], bool] = dependency(default_factory=lambda: _is_retriable)
    retry_reply: Callable[[ModelReply], bool] | None = dependency(default_factory=lambda: None)
    clock: Clock = dependency(default_factory=SystemClock)
    random: Callable[[], float] = dependency(default_factory=lambda: random.random)
    _warned: set[str] = field(default_factory=set[str], init=False, repr=False)

    async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
        """Call the model until it answers."""
        if not self.models or self.max_attempts == 1:
            return await next(call)
        self._warn_of_others(call.model)
        request, snapshot = call.request, RequestSnapshot(call.request)
        rejected: list[Any] = []  # what nobody further out gets to see

        async def attempt() -> ModelReply:
            nonlocal rejected
            snapshot.restore()
            if rejected:
                tell_spent(request, rejected)
                rejected = []
            call.request = request
            return await next(call)

        def is_done(reply: ModelReply) -> bool:
            nonlocal rejected
            if self.retry_reply is None or call.emitted or not self.retry_reply(reply):
                return True
            rejected = reply.responses
            return False

        what = {"adk_fluent.call": "model"}
        return await self._until_done(attempt, what, lambda: call.emitted, is_done)

    async def wrap_tool_call(self, call: ToolCall, next: NextTool) -> Any:
        """Call the tool until it returns."""
        if self.max_attempts == 1 or not self._repeats(call):
            return await next(call)
        args = _copied(call.args)

        def attempt() -> Awaitable[Any]:
            return next(replace(call, args=_copied(args)))

        what = {"adk_fluent.call": "tool", "gen_ai.tool.name": call.name}
        return await self._until_done(attempt, what, lambda: False, lambda _: True)

    def _repeats(self, call: ToolCall) -> bool:
        if self.tools is True:  # an agent calls its tools anew each time, whatever those do
            return not is_agent(call)
        return chosen(self.tools, call.name)

    async def _until_done(
        self,
        attempt: Callable[[], Awaitable[T]],
        what: dict[str, str],
        over: Callable[[], bool],
        is_done: Callable[[T], bool],
    ) -> T:
        began = self.clock.monotonic()
        for delay in self._delays():
            try:
                made = await attempt()
            except Exception as error:
                if over() or not self.retry_if(error):
                    raise
                wait = self._wait(error, delay)
                if wait is None or not self._in_time(began, wait):
                    raise
                why = type(error).__name__
            else:
                if is_done(made) or not self._in_time(began, delay):
                    return made
                wait, why = delay, "reply"
            count("adk_fluent.retry.attempts", 1, {**what, "error.type": why})
            await self.clock.sleep(wait)
        return await attempt()

    def _delays(self) -> Iterator[float]:
        """Seconds between the calls, without what a service asks for."""
        for made in range(self.max_attempts - 1):
            whole = min(self.backoff_max, self.backoff_base * 2.0 ** min(made, 60))
            yield whole * (1 - self.jitter * self.random())

    def _wait(self, error: Exception, delay: float) -> float | None:
        """Seconds to wait after an error; None when the service asks for too many."""
        asked = retry_after(error, self.clock.now())
        if asked is None:
            return delay
        return None if asked > self.retry_after_max else max(asked, delay)

    def _in_time(self, began: float, wait: float) -> bool:
        return self.deadline is None or self.clock.monotonic() + wait - began < self.deadline

    def _warn_of_others(self, model: Any) -> None:
        attempts = own_attempts(model)
        name = str(getattr(model, "model", model))
        if attempts > 1 and name not in self._warned:
            self._warned.add(name)
            LOG.warning(
                "model %s makes up to %d attempts by itself, and retry up to %d of those: "
                "leave one of them out",
                name,
                attempts,
                self.max_attempts,
            )


def _copied(args: dict[str, Any]) -> dict[str, Any]:
    """Arguments that a tool may change without those of the next attempt."""
    try:
        return copy.deepcopy(args)
    except Exception:  # noqa: BLE001  # something in them cannot be copied: it is shared then
        return _containers(args)


def _containers(value: Any) -> Any:
    """A copy of dicts and lists; everything else is what it is."""
    if isinstance(value, dict):
        found = cast("dict[Any, Any]", value)
        return {key: _containers(each) for key, each in found.items()}
    if isinstance(value, list):
        return [_containers(each) for each in cast("list[Any]", value)]
    return value


#: `RetryMiddleware` by its short name.
retry = RetryMiddleware

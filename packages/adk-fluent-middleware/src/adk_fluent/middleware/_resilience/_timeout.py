"""Calls and runs that take too long, ended."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import Field

from adk_fluent.errors import UsageError
from adk_fluent.middleware._builtin import BuiltIn, builtin
from adk_fluent.middleware._errors import CallTimeoutError
from adk_fluent.middleware._resilience._names import is_agent, model_name
from adk_fluent.telemetry import count

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from adk_fluent.protocol import (
        AgentReply,
        ModelCall,
        ModelReply,
        NextModel,
        NextRun,
        NextTool,
        RunCall,
        ToolCall,
    )

T = TypeVar("T")
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


@builtin
class TimeoutMiddleware(BuiltIn):
    """Ends model calls, tool calls and runs that take too long.

    What is ended is cancelled and awaited, so that its connections are closed. An asynchronous
    function that catches its cancellation takes as long as it likes, and a function that is not
    asynchronous holds everything up until it returns: neither can be ended from outside. At least
    one of the options has to be given.

    Attributes:
        model: Seconds for a model call, to the end of its answer; the time that the user takes to
            read what is streamed does not count.
        first: Seconds until a model has begun to answer: until its first fragment where it is
            streamed, else until its answer.
        tool: Seconds for a tool call, but not for agents that are tools, whose model calls take
            longer; or seconds by the names of tools, agents too, and no limit for others.
        run: Seconds for a run, from before its first step to after its last.
    """

    model: Seconds | None = None
    first: Seconds | None = None
    tool: Seconds | Mapping[str, Seconds] | None = None
    run: Seconds | None = None

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            UsageError: One has a value that it cannot have, or none is given.
        """
        super().__post_init__()
        if self.model is self.first is self.tool is self.run is None:
            raise UsageError("timeout() limits nothing", help="give timeout(model=60), for one")

    def refuses_scope(self) -> str | None:
        """A part is no run, and a limit that ended nothing would go unnoticed."""
        if self.run is None:
            return None
        return "timeout(run=...) ends whole runs, and this is a part of one"

    def refuses_live(self) -> str | None:
        """A live connection is no call that could take too long."""
        if self.model is self.first is None:
            return None
        return "timeout(model=...) ends model calls, and a live connection is none"

    async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
        """Call the model, for so long."""
        if self.model is self.first is None:
            return await next(call)
        what = f"model {model_name(call)!r}"
        whole = _Limit(self.model, "model", what)
        first = _Limit(self.first, "first", f"{what} to begin its answer")

        async def forward(response: Any) -> None:
            first.lift()
            left = whole.lift()
            try:
                await call.emit(response)
            finally:
                whole.set(left)

        return await whole.around(first.around(next(call.heard_by(forward))))

    async def wrap_tool_call(self, call: ToolCall, next: NextTool) -> Any:
        """Call the tool, for so long."""
        return await _Limit(self._for(call), "tool", f"tool {call.name!r}").around(next(call))

    async def wrap_run(self, call: RunCall, next: NextRun) -> AgentReply:
        """Run, for so long."""
        return await _Limit(self.run, "run", "the run").around(next(call))

    def _for(self, call: ToolCall) -> float | None:
        given = self.tool
        if isinstance(given, Mapping):
            return given.get(call.name)
        # an agent makes calls of its own, each of which has its limit
        return None if given is None or is_agent(call) else given


class _Limit:
    """A time limit around something, which may be lifted for a while.

    Args:
        seconds: How long; None is no limit.
        of: What the metric calls it.
        what: What takes too long, for the reader.
    """

    def __init__(self, seconds: float | None, of: str, what: str) -> None:
        self._seconds = seconds
        self._of = of
        self._what = what
        self._timer: asyncio.Timeout | None = None

    async def around(self, doing: Awaitable[T]) -> T:
        """Await something for so long.

        Raises:
            CallTimeoutError: It took longer.
        """
        if self._seconds is None:
            return await doing
        timer = self._timer = asyncio.timeout(self._seconds)
        try:
            async with timer:
                return await doing
        except Exception as error:
            if not timer.expired():  # its own, be it a TimeoutError
                raise
            count("adk_fluent.timeout.expirations", 1, {"adk_fluent.call": self._of})
            raise CallTimeoutError(
                f"{self._what} took longer than {self._seconds:g} seconds", seconds=self._seconds
            ) from error

    def lift(self) -> float | None:
        """Let no time count; returns what is left of it, None when there is no limit."""
        timer = self._timer
        due = None if timer is None or timer.expired() else timer.when()
        if timer is None or due is None:
            return None
        timer.reschedule(None)
        return due - asyncio.get_running_loop().time()

    def set(self, left: float | None) -> None:
        """Let time count again, so much of it."""
        if self._timer is not None and left is not None:
            self._timer.reschedule(asyncio.get_running_loop().time() + left)


#: `TimeoutMiddleware` by its short name.
timeout = TimeoutMiddleware

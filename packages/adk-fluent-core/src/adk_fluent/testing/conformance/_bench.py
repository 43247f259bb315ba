"""The steps that programs are made of: they note when they are called, and when they end."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from adk_fluent._scripts._replies import reply
from adk_fluent._scripts._script import Script
from adk_fluent.builders import Agent
from adk_fluent.ir import AdkAgentNode, Ref

if TYPE_CHECKING:
    from collections.abc import Generator

    from adk_fluent._scripts._replies import Asked, Reply
    from adk_fluent.builders import State, StepLike

#: Makes what stands for an agent that was built with ADK, of its name and script.
Native = Callable[[str, Script], "StepLike"]
#: Makes a tool of a function whose result comes later.
LongRunning = Callable[[Callable[..., Any]], Any]
AgentEnd = Literal["says", "hangs", "raises", "reports"]
End = Literal["returns", "hangs", "raises"]
Value = Any | Callable[["State"], Any]


class Bench:
    """Makes the steps of one run of a program, and knows which of them were called.

    Args:
        short: Seconds of a timeout that is meant to strike.
        copies: How many runs go on at the same time.
        native: Makes agents of ADK.
        long_running: Makes tools whose results come later.

    Attributes:
        calls: Names of what was called, in order.
        under_way: How often each of them was called and has not ended.
        short: Seconds of a timeout that is meant to strike.
    """

    def __init__(
        self,
        *,
        short: float = 0.02,
        copies: int = 1,
        native: Native | None = None,
        long_running: LongRunning | None = None,
    ) -> None:
        self.calls: list[str] = []
        self.under_way: Counter[str] = Counter()
        self.short = short
        self._copies = copies
        self._native = native or _placeholder
        self._long_running = long_running or _comes_later

    # --- agents --------------------------------------------------------------------------------

    def agent(
        self,
        name: str,
        says: str | Callable[[Asked], str | Reply] | None = None,
        *,
        writes: str | None = None,
        ends: AgentEnd = "says",
    ) -> Agent:
        """An agent that says a text (its name in capitals), or fails in some way."""
        made = Agent(name).instruct("Speak.").mock(self.script(name, says, ends=ends))
        return made if writes is None else made.writes(writes)

    def native(self, name: str, *, ends: AgentEnd = "says") -> StepLike:
        """An agent that was built with ADK, and says its name in capitals."""
        return self._native(name, self.script(name, ends=ends))

    def script(
        self,
        name: str,
        says: str | Callable[[Asked], str | Reply] | None = None,
        *,
        ends: AgentEnd = "says",
    ) -> Script:
        """What such an agent answers, each time."""

        async def turn(asked: Asked) -> Reply:
            with self._called(name):
                await asyncio.sleep(0)  # as a model that takes its time
                if ends == "hangs":
                    await asyncio.Event().wait()
                if ends == "raises":
                    return reply(raises=ValueError(f"{name} is bad"))
                if ends == "reports":
                    return reply(error_code="SAFETY", error_message=f"{name} says no")
                text = says(asked) if callable(says) else name.upper() if says is None else says
                return reply(text) if isinstance(text, str) else text

        return Script(default=turn)

    def long_running(self, tool: Callable[..., Any]) -> Any:
        """A tool of a function, whose result comes later."""
        return self._long_running(tool)

    # --- functions -----------------------------------------------------------------------------

    def fn(
        self,
        name: str,
        writes: Mapping[str, Value] | None = None,
        *,
        ends: End = "returns",
        later: bool = False,
    ) -> Callable[[State], Any]:
        """A function of state that writes; values may be functions of state.

        Args:
            name: What it is called.
            writes: Keys and values.
            ends: It returns, never comes to its end (if it is async), or raises.
            later: It is async.
        """

        def act(state: State) -> dict[str, Any] | None:
            if ends == "raises":
                raise ValueError(f"{name} is bad")
            if writes is None:
                return None
            return {key: v(state) if callable(v) else v for key, v in writes.items()}

        def now(state: State) -> Any:
            with self._called(name):
                return act(state)

        async def soon(state: State) -> Any:
            with self._called(name):
                await asyncio.sleep(0)
                if ends == "hangs":
                    await asyncio.Event().wait()
                return act(state)

        return _named(name, soon if later or ends == "hangs" else now)

    def test(
        self,
        name: str,
        holds: bool | Callable[[State], bool] = True,
        *,
        ends: End = "returns",
        later: bool = False,
    ) -> Callable[[State], Any]:
        """A predicate over state, which ends like the functions of `fn`."""

        def act(state: State) -> bool:
            if ends == "raises":
                raise ValueError(f"{name} is bad")
            return holds(state) if callable(holds) else holds

        def now(state: State) -> bool:
            with self._called(name):
                return act(state)

        async def soon(state: State) -> bool:
            with self._called(name):
                await asyncio.sleep(0)
                if ends == "hangs":
                    await asyncio.Event().wait()
                return act(state)

        return _named(name, soon if later or ends == "hangs" else now)

    def awaits(self, name: str, other: str) -> Callable[[State], Any]:
        """A function that ends when `other` has been called as often as it itself."""

        async def wait(state: State) -> None:
            with self._called(name):
                turns = -(-self.calls.count(name) // self._copies) * self._copies
                while self.calls.count(other) < turns:  # noqa: ASYNC110  # works in any event loop
                    await asyncio.sleep(0)

        return _named(name, wait)

    # --- notes ---------------------------------------------------------------------------------

    @contextmanager
    def _called(self, name: str) -> Generator[None]:
        self.calls.append(name)
        self.under_way[name] += 1
        try:
            yield
        finally:
            self.under_way[name] -= 1


def _named(name: str, fn: Callable[[State], Any]) -> Callable[[State], Any]:
    fn.__name__ = fn.__qualname__ = name
    return fn


def _placeholder(name: str, script: Script) -> StepLike:
    return AdkAgentNode(name, Ref(script, name))


def _comes_later(tool: Callable[..., Any]) -> Ref:
    return Ref(_Later(tool), tool.__name__)


class _Later:
    """What ADK's LongRunningFunctionTool looks like from outside."""

    is_long_running = True

    def __init__(self, func: Callable[..., Any]) -> None:
        self.func = func
        self.name: str = func.__name__

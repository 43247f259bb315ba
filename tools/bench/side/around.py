"""Tasks of ours that have something around them: middlewares that let everything through.

Each task says how often their hooks were asked, so that none is measured that nobody asks.
"""

# ruff: noqa: PLC0415

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from adk_fluent import Agent

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from adk_fluent.builders import Builder
    from adk_fluent.protocol import (
        AgentCall,
        AgentEvent,
        AgentReply,
        ModelCall,
        ModelReply,
        NextAgent,
        NextModel,
        NextRun,
        RunCall,
    )
    from bench.side.worker import Task

#: How many of a kind stand around a run.
COUNTS = (0, 1, 9)


class Transparent:
    """Lets everything through.

    Attributes:
        asked: How often a hook of any of them was asked.
    """

    asked = 0


class BeforeModel(Transparent):
    """Acts before a model call."""

    async def before_model(self, ctx: Any, request: Any) -> None:
        """Let it be."""
        Transparent.asked += 1


class WrapModelCall(Transparent):
    """Stands around a model call."""

    async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
        """Make it."""
        Transparent.asked += 1
        return await next(call)


class WrapAgent(Transparent):
    """Stands around a step."""

    async def wrap_agent(self, call: AgentCall, next: NextAgent) -> AgentReply:
        """Do it."""
        Transparent.asked += 1
        return await next(call)


class OnEvent(Transparent):
    """Sees events."""

    async def on_event(self, ctx: Any, event: AgentEvent) -> None:
        """Let it be."""
        Transparent.asked += 1


class Hooked(Transparent):
    """Has the hooks that are asked of otel_enrichment in a run without tools."""

    async def wrap_run(self, call: RunCall, next: NextRun) -> AgentReply:
        """Do it."""
        return await next(call)

    async def wrap_agent(self, call: AgentCall, next: NextAgent) -> AgentReply:
        """Do it."""
        return await next(call)

    async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
        """Make it."""
        return await next(call)

    async def after_model(self, ctx: Any, response: Any) -> None:
        """Let it be."""


#: What stands around, by the hook that it has.
KINDS: dict[str, type[Transparent]] = {
    "before_model": BeforeModel,
    "wrap_model_call": WrapModelCall,
    "wrap_agent": WrapAgent,
    "on_event": OnEvent,
}


def agents(size: int) -> Builder:
    """A pipeline of scripted agents."""
    from bench.side.scripted import Echo

    model = Echo(model="echo")
    chain: Builder = Agent("a0", model).instruct("x")
    for at in range(1, size):
        chain = chain >> Agent(f"a{at}", model).instruct("x")
    return chain.named("desk") if size > 1 else chain


def _within(chain: Builder, hook: str, count: int) -> Builder:
    for _ in range(count):
        made: Any = KINDS[hook]()
        chain = chain.middleware(made)
    return chain


def _counted(
    run: Callable[[], Coroutine[Any, Any, int]],
) -> Callable[[], Coroutine[Any, Any, list[int]]]:
    """How many events a run has, and how often it has asked a hook."""

    async def once() -> list[int]:
        before = Transparent.asked
        events = await run()
        return [events, Transparent.asked - before]

    return once


def around(hook: str, count: int, size: int) -> Callable[[], Coroutine[Any, Any, list[int]]]:
    """A pipeline of agents under ADK's Runner, and so many middlewares of a kind around it."""
    from bench.side.scripted import driven

    return _counted(driven(_within(agents(size), hook, count).to_runner()))


def stream(count: int, size: int) -> Callable[[], Coroutine[Any, Any, list[int]]]:
    """An agent that streams so many chunks, and middlewares around its model call."""
    from bench.side.scripted import Chunks, streamed

    agent = Agent("a0", Chunks(model="chunks", count=size)).instruct("x")
    return _counted(streamed(_within(agent, "wrap_model_call", count).to_runner()))


TASKS: dict[str, Task] = {
    **{f"{hook}-{count}": partial(around, hook, count) for hook in KINDS for count in COUNTS},
    **{f"stream-{count}": partial(stream, count) for count in COUNTS},
}

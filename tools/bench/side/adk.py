"""Raw ADK: what somebody writes who has no layer above it."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from google.adk import agents
from google.adk.agents import BaseAgent, LlmAgent
from google.adk.apps import App
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.runners import InMemoryRunner

from bench.side import by_hand, support
from bench.side.scripted import Echo, driven, name

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine

    from google.adk.agents.invocation_context import InvocationContext

    from bench.side.worker import Task


#: Deprecated, and still what most pipelines by hand are made of.
SequentialAgent: Any = getattr(agents, "SequentialAgent")  # noqa: B009  # untyped: see above


class Steps(BaseAgent):
    """The leanest pipeline there is: one agent after the other."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        for agent in self.sub_agents:
            async with aclosing(agent.run_async(ctx)) as events:
                async for event in events:
                    yield event


class Functions(BaseAgent):
    """Functions over state, called one after the other, each result written by an event."""

    count: int

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        for at in range(self.count):
            delta = _step(at, ctx.session.state)
            yield Event(
                author=self.name,
                invocation_id=ctx.invocation_id,
                actions=EventActions(state_delta=delta),
            )


def _step(at: int, state: Any) -> dict[str, Any]:
    return {f"k{at}": at}


def _agents(size: int) -> list[BaseAgent]:
    model = Echo(model="echo")
    return [LlmAgent(name=name(i), model=model, instruction="x") for i in range(size)]


def run_deep(size: int) -> Callable[[], Coroutine[Any, Any, int]]:
    """An agent below that many of ADK's sequences."""
    root = _agents(1)[0]
    for at in range(size):
        root = SequentialAgent(name=f"p{at}", sub_agents=[root])
    return driven(InMemoryRunner(app=App(name="bench", root_agent=root)))


def construct(size: int) -> Callable[[], int]:
    """The agents themselves, in an App."""
    model = Echo(model="echo")

    def once() -> int:
        agents: list[BaseAgent] = [
            LlmAgent(name=name(i), model=model, instruction="x") for i in range(size)
        ]
        app = App(name="bench", root_agent=Steps(name="steps", sub_agents=agents))
        assert app.root_agent is not None  # noqa: S101  # ADK types it as optional
        return size

    return once


def run_loop(size: int) -> Callable[[], Coroutine[Any, Any, int]]:
    """A plain loop over agents."""
    root = Steps(name="steps", sub_agents=_agents(size))
    return driven(InMemoryRunner(app=App(name="bench", root_agent=root)))


def run_sequential(size: int) -> Callable[[], Coroutine[Any, Any, int]]:
    """ADK's own sequence."""
    root = SequentialAgent(name="steps", sub_agents=_agents(size))
    return driven(InMemoryRunner(app=App(name="bench", root_agent=root)))


def run_functions(size: int) -> Callable[[], Coroutine[Any, Any, int]]:
    """One agent, and functions over state after it."""
    root = Steps(name="steps", sub_agents=[*_agents(1), Functions(name="functions", count=size)])
    return driven(InMemoryRunner(app=App(name="bench", root_agent=root)))


TASKS: dict[str, Task] = {
    "construct": construct,
    "run": run_loop,
    "run-sequential": run_sequential,
    "run-functions": run_functions,
    "run-deep": run_deep,
    **by_hand.TASKS,
    **support.TASKS,
}

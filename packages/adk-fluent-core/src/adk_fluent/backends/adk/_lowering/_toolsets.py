"""Toolsets while runs use them: one object may serve several pipelines, runs and event loops."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from contextlib import asynccontextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.base_toolset import BaseToolset

from adk_fluent.backends.adk._lowering._context import tree

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Sequence

    from google.adk.agents.base_agent import BaseAgent


class _Use:
    """Who uses a toolset.

    Attributes:
        runs: How many do.
        ours: Whether one of them was started here; ADK's own Runners are closed by their owners.
        closing: Done once it is closed; None while it is not being closed.
    """

    __slots__ = ("closing", "ours", "runs")

    def __init__(self) -> None:
        self.runs = 0
        self.ours = False
        self.closing: Future[None] | None = None


# by id: a toolset need not be hashable, and whoever uses it keeps it alive
_uses: Final[dict[int, _Use]] = {}
_lock: Final = Lock()


def toolsets_of(agents: Iterable[BaseAgent]) -> tuple[BaseToolset, ...]:
    """The toolsets of agents and of all below them, each once."""
    found: dict[int, BaseToolset] = {}
    for agent in tree(agents):
        tools: list[Any] = getattr(agent, "tools", [])
        found.update((id(tool), tool) for tool in tools if isinstance(tool, BaseToolset))
    return tuple(found.values())


@asynccontextmanager
async def in_use(toolsets: Sequence[BaseToolset], *, ours: bool) -> AsyncGenerator[None]:
    """While a run lasts; the last run that uses a toolset closes it (connections, processes).

    Args:
        toolsets: What the run uses.
        ours: Whether the run was started here. Toolsets that only other runs use stay open.
    """
    closing = _begin(toolsets, ours=ours)
    try:
        if closing:  # by the last run before this one, maybe in another thread's loop
            await asyncio.wait([asyncio.wrap_future(each) for each in closing])
        yield
    finally:
        idle = _end(toolsets)
        if idle:
            try:
                await _close(idle)
            finally:
                _closed(idle)


def _begin(toolsets: Sequence[BaseToolset], *, ours: bool) -> list[Future[None]]:
    with _lock:
        uses = [_uses.setdefault(id(toolset), _Use()) for toolset in toolsets]
        for use in uses:
            use.runs += 1
            use.ours = use.ours or ours
        return [use.closing for use in uses if use.closing is not None]


def _end(toolsets: Sequence[BaseToolset]) -> list[BaseToolset]:
    """Those that nobody uses any more and that are to be closed now."""
    idle: list[BaseToolset] = []
    with _lock:
        for toolset in toolsets:
            use = _uses[id(toolset)]
            use.runs -= 1
            if use.runs or use.closing is not None:
                continue
            if use.ours:
                use.ours, use.closing = False, Future()
                idle.append(toolset)
            else:
                del _uses[id(toolset)]
    return idle


def _closed(toolsets: Sequence[BaseToolset]) -> None:
    with _lock:
        for toolset in toolsets:
            use = _uses[id(toolset)]
            done, use.closing = use.closing, None
            if not use.runs:
                del _uses[id(toolset)]
            if done is not None:
                done.set_result(None)


async def _close(toolsets: Sequence[BaseToolset]) -> None:
    """Let ADK do it: time limits and cancelling while closing differ from version to version."""
    holder = LlmAgent(name="toolsets", tools=list(toolsets))
    app = App(name="adk_fluent_app", root_agent=holder)
    await Runner(app=app, session_service=InMemorySessionService()).close()

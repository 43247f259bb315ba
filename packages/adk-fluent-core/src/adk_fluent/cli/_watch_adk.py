"""Runs on ADK that tell what they are at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.adk.plugins.base_plugin import BasePlugin

from adk_fluent.backends.adk import ADKBackend

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.sessions.base_session_service import BaseSessionService
    from google.adk.tools.base_tool import BaseTool

    from adk_fluent.backends.adk import Compiled
    from adk_fluent.ir import ExecutionConfig, Node


class WatchedBackend(ADKBackend):
    """ADK, with somebody who is told which agent and which tool is at work.

    Args:
        tell: Called with it; with "" when it is none.
        session_service: Where sessions are kept; None is memory.
    """

    def __init__(
        self, tell: Callable[[str], None], session_service: BaseSessionService | None
    ) -> None:
        super().__init__(session_service)
        self._tell = tell

    def compile(self, node: Node, config: ExecutionConfig | None = None) -> Compiled:
        """Compile a pipeline; errors as on ADK."""
        compiled = super().compile(node, config)
        compiled.app.plugins.append(_Watch(self._tell, compiled.root.name))
        return compiled


class _Watch(BasePlugin):
    """Looks on, and changes nothing."""

    def __init__(self, tell: Callable[[str], None], root: str) -> None:
        super().__init__(name="adk_fluent_watch")
        self._tell = tell
        self._root = root
        self._at_work: list[str] = []

    async def before_run_callback(self, *, invocation_context: Any) -> None:
        self._at_work.clear()  # what was cancelled never said that it was over

    async def before_agent_callback(self, *, agent: BaseAgent, callback_context: Any) -> None:
        if agent.name != self._root:
            self._begins(agent.name)

    async def after_agent_callback(self, *, agent: BaseAgent, callback_context: Any) -> None:
        self._ends(agent.name)

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Any
    ) -> None:
        self._begins(_call(tool, tool_context))

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Any, result: Any
    ) -> None:
        self._ends(_call(tool, tool_context))

    def _begins(self, what: str) -> None:
        self._at_work.append(what)
        self._tell(what)

    def _ends(self, what: str) -> None:
        if what in self._at_work:
            self._at_work.remove(what)
            self._tell(self._at_work[-1] if self._at_work else "")


def _call(tool: BaseTool, context: Any) -> str:
    return f"{context.agent_name}: {tool.name}"

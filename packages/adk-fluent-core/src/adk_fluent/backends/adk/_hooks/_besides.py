"""What agents say besides their answers: callbacks and plugins of others may, when one is done.

ADK has no mark on such an event, but asks the plugins of the run first, whoever answers then.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from google.adk.agents.llm_agent import LlmAgent
from google.adk.plugins.plugin_manager import PluginManager

from adk_fluent.backends.adk._hooks._in_flow import PluginsInFlow, is_ours_alone

if TYPE_CHECKING:
    from collections.abc import Collection

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.agents.invocation_context import InvocationContext


class _Watching(PluginManager):
    """The plugins of a run, and the agents that are done."""

    over: set[str]

    @classmethod
    def of(cls, manager: PluginManager) -> _Watching:
        """The same plugins, with ways of their own if they have any."""
        made: _Watching = object.__new__(_watching(type(manager)))
        made.__dict__.update(manager.__dict__)
        return made

    async def run_before_agent_callback(self, *, agent: BaseAgent, callback_context: Any) -> Any:
        self.over.discard(agent.name)
        return await super().run_before_agent_callback(
            agent=agent, callback_context=callback_context
        )

    async def run_after_agent_callback(self, *, agent: BaseAgent, callback_context: Any) -> Any:
        self.over.add(agent.name)
        return await super().run_after_agent_callback(
            agent=agent, callback_context=callback_context
        )


@cache
def _watching(kind: type[PluginManager]) -> type[_Watching]:
    if issubclass(kind, _Watching):
        return kind
    base = PluginsInFlow if kind is PluginManager else kind
    return type(f"Watching{base.__name__}", (_Watching, base), {})


def watch(agent: BaseAgent, plugins: PluginManager, changes: dict[str, Any]) -> Collection[str]:
    """Let the context of a step note which of its agents are done.

    Args:
        agent: Who runs in it.
        plugins: Those of the run.
        changes: What the context has and the one it is made of has not.

    Returns:
        Their names, as they become done; nothing where nobody could say more.
    """
    found = plugins.plugins
    others = found and not is_ours_alone(plugins)
    speak = others and any(getattr(each, "may_speak", True) for each in found)
    runs_others = found and not isinstance(agent, LlmAgent)
    if not (speak or runs_others or agent.after_agent_callback or agent.sub_agents):
        return ()
    changes["plugin_manager"] = watching = _Watching.of(plugins)
    watching.over = over = set[str]()
    return over


def note_said(ctx: InvocationContext, agent: str, *, besides: bool) -> None:
    """Note whether what hooks are about to say in an agent's name is said besides its answer."""
    plugins = ctx.plugin_manager
    if isinstance(plugins, _Watching):
        (plugins.over.add if besides else plugins.over.discard)(agent)

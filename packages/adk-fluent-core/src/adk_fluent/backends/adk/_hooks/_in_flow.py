"""The plugins of a run inside a flow.

ADK asks each plugin five times in a step, and ours has something to do twice. Where it is the only
one, it is told so directly, and is not asked for the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from google.adk.plugins.plugin_manager import PluginManager

if TYPE_CHECKING:
    from typing import Self

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse


class Told(Protocol):
    """Our plugin, as far as it has something to do in a flow."""

    def begins(self, agent: BaseAgent, context: Any) -> None:
        """An agent is about to run."""

    def asks(self, context: Any, request: LlmRequest) -> LlmResponse | None:
        """An agent is about to ask its model; gives what stands for the answer, if it must not."""


def tell_directly(ctx: InvocationContext, plugin: Told) -> None:
    """Let all that runs in a context, or in a copy of it, tell our plugin directly.

    Args:
        ctx: The context of a flow that runs, or of the invocation that runs it.
        plugin: One of its plugins.
    """
    manager = ctx.plugin_manager
    if type(manager) is PluginManager:  # somebody else's has ways of its own
        manager = vars(ctx)["plugin_manager"] = PluginsInFlow.of(manager)
    if isinstance(manager, PluginsInFlow):
        manager.told, manager.alone = plugin, [plugin]


def is_ours_alone(manager: PluginManager) -> bool:
    """Whether a run inside a flow has no plugin but ours."""
    return isinstance(manager, PluginsInFlow) and manager.plugins == manager.alone


def _for_others(ask: Any) -> Any:
    """A hook that ours has nothing to do in: asked where there are other plugins, too."""

    async def asked(self: PluginsInFlow, **about: Any) -> Any:
        return None if self.plugins == self.alone else await ask(self, **about)

    return asked


class PluginsInFlow(PluginManager):
    """The plugins of a run inside a flow, which may be none.

    Attributes:
        told: Our plugin.
        alone: The list of it alone; None where there is none.
    """

    told: Told
    alone: list[Any] | None = None

    @classmethod
    def of(cls, manager: PluginManager) -> Self:
        """The same plugins, in this way."""
        made = object.__new__(cls)
        made.__dict__.update(manager.__dict__)
        return made

    run_on_event_callback = _for_others(PluginManager.run_on_event_callback)
    run_after_agent_callback = _for_others(PluginManager.run_after_agent_callback)
    run_after_model_callback = _for_others(PluginManager.run_after_model_callback)

    async def run_before_agent_callback(self, *, agent: BaseAgent, callback_context: Any) -> Any:
        if self.plugins != self.alone:
            return await super().run_before_agent_callback(
                agent=agent, callback_context=callback_context
            )
        self.told.begins(agent, callback_context)
        return None

    async def run_before_model_callback(
        self, *, callback_context: Any, llm_request: LlmRequest
    ) -> LlmResponse | None:
        if self.plugins != self.alone:
            return await super().run_before_model_callback(
                callback_context=callback_context, llm_request=llm_request
            )
        return self.told.asks(callback_context, llm_request)

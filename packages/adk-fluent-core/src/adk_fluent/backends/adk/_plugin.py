"""The one plugin of ours. It is there only when a middleware is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.plugins.base_plugin import BasePlugin

from adk_fluent.backends.adk._calls import announce
from adk_fluent.backends.adk._chain import attached, invocation_of
from adk_fluent.backends.adk._sites import is_site, make_site

if TYPE_CHECKING:
    from google.adk.agents.base_agent import BaseAgent
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.models.llm_request import LlmRequest
    from google.adk.tools.base_tool import BaseTool

NAME: Final = "adk_fluent"


class MiddlewarePlugin(BasePlugin):
    """Tells the call sites which call is whose, and makes sites of what compiling could not see."""

    def __init__(self, name: str = NAME) -> None:
        super().__init__(name=name)

    async def before_agent_callback(self, *, agent: BaseAgent, callback_context: Any) -> None:
        """An agent that was not compiled here, such as one in a graph of ADK's, has no site yet."""
        chain = attached(invocation_of(callback_context))
        if chain is None or not chain.model_hooks or not isinstance(agent, LlmAgent):
            return
        model = agent.canonical_model
        if not is_site(model):
            make_site(model)
            if agent.model and not isinstance(agent.model, BaseLlm):  # a name: made anew each time
                agent.model = model

    async def before_model_callback(
        self, *, callback_context: Any, llm_request: LlmRequest
    ) -> None:
        """The request that comes next at a site is this agent's."""
        announce(llm_request, callback_context)

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Any
    ) -> None:
        """This is the very object that ADK will run."""
        if not is_site(tool) and attached(invocation_of(tool_context)) is not None:
            make_site(tool)


def ensure_plugin(ctx: InvocationContext) -> None:
    """Install the plugin where the root agent runs under somebody else's App."""
    manager = ctx.plugin_manager
    if not any(isinstance(each, MiddlewarePlugin) for each in manager.plugins):
        manager.register_plugin(MiddlewarePlugin())

"""What models were asked, for judges that want to know.

ADK's own service notes it by way of session state, where it then stays, and fails over agents that
have no instruction. This does neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.adk.evaluation.app_details import AgentDetails, AppDetails
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

if TYPE_CHECKING:
    from google.adk.agents.callback_context import CallbackContext
    from google.adk.models.llm_request import LlmRequest


class RequestsPlugin(BasePlugin):
    """Notes the first request of each agent in each invocation."""

    def __init__(self) -> None:
        super().__init__(name="adk_fluent_eval_requests")
        self._asked: dict[str, dict[str, LlmRequest]] = {}

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> None:
        """A model is about to be asked; plugins after this one may change the request still."""
        agents = self._asked.setdefault(callback_context.invocation_id, {})
        agents.setdefault(callback_context.agent_name, llm_request)

    def details(self) -> dict[str, AppDetails]:
        """Instructions and tools of the agents, by invocation."""
        return {
            invocation: AppDetails(
                agent_details={name: _details(name, each.config) for name, each in agents.items()}
            )
            for invocation, agents in self._asked.items()
        }


def _details(name: str, config: Any) -> AgentDetails:
    return AgentDetails(
        name=name,
        instructions=_text(config.system_instruction),
        tool_declarations=list(config.tools or ()),
    )


def _text(instruction: Any) -> str:
    if isinstance(instruction, types.Content):
        return "\n".join(part.text for part in instruction.parts or () if part.text)
    return instruction if isinstance(instruction, str) else ""

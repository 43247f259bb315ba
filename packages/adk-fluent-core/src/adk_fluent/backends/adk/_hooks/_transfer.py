"""The tool that hands over, where a person has been asked about it.

ADK adds it to a request after it has called what was confirmed: before 2.13 it finds none then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.transfer_to_agent_tool import TransferToAgentTool

if TYPE_CHECKING:
    from google.adk.agents.base_agent import BaseAgent

TRANSFER: Final = "transfer_to_agent"


class _KnownTransfer(TransferToAgentTool):
    """Can be called; a model is told of it by ADK itself."""

    async def process_llm_request(self, **_: Any) -> None:
        """Add nothing."""


def knowing_transfer(agent: BaseAgent) -> BaseAgent:
    """An agent that differs in this alone, that it has the tool from the start."""
    if not isinstance(agent, LlmAgent):
        return agent
    tool = _KnownTransfer([each.name for each in agent.sub_agents])
    given: list[Any] = getattr(agent, "tools")  # noqa: B009  # half typed by ADK
    return agent.model_copy(update={"tools": [*given, tool]})

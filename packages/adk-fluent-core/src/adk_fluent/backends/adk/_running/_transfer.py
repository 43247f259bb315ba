"""Handing over, where a person has been asked about it before.

Of what a tool does that runs when its question is answered, ADK 1.x follows nothing.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.transfer_to_agent_tool import TransferToAgentTool

from adk_fluent.backends.adk._hooks._turns import turn_in
from adk_fluent.backends.adk._running._prompt import settled

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event

    from adk_fluent.backends.adk._hooks._turns import Turn

_TRANSFER: Final = "transfer_to_agent"
_IMPLEMENTATION: Final = "_run_async_impl"


class _KnownTransfer(TransferToAgentTool):
    """Can be called; a model is told of it by ADK itself."""

    async def process_llm_request(self, **_: Any) -> None:
        """Add nothing."""


def handing_over(agent: BaseAgent, turn: Turn) -> BaseAgent:
    """The agent with which a turn goes on: what its tools do is followed.

    ADK adds the tool that hands over to a request after it has called what was confirmed, so before
    2.13 it finds none then.

    Args:
        agent: The agent that has asked.
        turn: Its turn.
    """
    if isinstance(agent, LlmAgent) and turn.waits_for(_TRANSFER):
        tool = _KnownTransfer([each.name for each in agent.sub_agents])
        given: list[Any] = getattr(agent, "tools")  # noqa: B009  # half typed by ADK
        agent = agent.model_copy(update={"tools": [*given, tool]})
    object.__setattr__(agent, _IMPLEMENTATION, _run)  # which does nothing else without a turn
    return agent


async def _run(ctx: InvocationContext) -> AsyncGenerator[Event, None]:
    """What an agent says, and whom its tools hand over to: inside of it, as in ADK 1.x.

    What is asked when the agent is done, such as `after_agent`, comes after both.
    """
    agent: Any = ctx.agent
    turn = turn_in(ctx.__dict__)
    here: Any = getattr(type(agent), _IMPLEMENTATION)(agent, ctx)  # pyright: ignore[reportUnknownArgumentType]  # ADK's is a node of any kind
    while True:
        async with aclosing(here) as events:
            async for event in events:
                yield event
        if turn is None:
            return
        for event in turn.behind(agent, ctx):
            yield event
        target = turn.next(agent, ctx.session.events)
        if target is None:
            return
        ctx.session.events[:] = settled(ctx.session.events)
        here = target.run_async(ctx)

"""A support desk asks the agent of another team, which then goes down in the middle.

The other team serves its agent with ADK, on loopback here. Scripted models stand for Gemini, so
that this runs offline.

Prints::

    The bank has paid A7. Thank you.
    pending: a person pays A7. Thank you.
"""

from __future__ import annotations

import asyncio
import socket

import uvicorn
from google.adk.a2a.utils.agent_to_a2a import to_a2a

from adk_fluent import Agent, RemoteAgent
from adk_fluent.a2a import RetryConfig
from adk_fluent.testing import ScriptedModel

bank = Agent("bank", ScriptedModel(default="The bank has paid A7.")).instruct("Pay the order.")


def desk(url: str) -> RemoteAgent:
    """The agent of the other team, with what happens without it."""
    by_hand = Agent("by_hand", ScriptedModel(default="pending: a person pays A7."))
    return RemoteAgent(
        "payments",
        endpoint=url,
        inputs="order",
        outputs="receipt",
        timeout=10,
        retry=RetryConfig(max_attempts=2, initial_delay=0.01),
        fallback=by_hand.instruct("Say who pays.").outputs("receipt"),
    )


async def main() -> None:
    """Ask twice: while the bank is there, and when it is gone."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        app = to_a2a(bank.to_agent(), host="127.0.0.1", port=port)
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        while not server.started:  # noqa: ASYNC110  # uvicorn has no event for that
            await asyncio.sleep(0)
        pipeline = desk(f"http://127.0.0.1:{port}")
        for _ in range(2):
            result = await pipeline.run("Pay A7.", state={"order": "A7"})
            print(result.state["receipt"], "Thank you.")
            server.should_exit = True
            await serving


if __name__ == "__main__":
    asyncio.run(main())

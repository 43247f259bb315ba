"""A support desk and the payments of another team, in two processes, with an outage in the middle.

The desk finds in the team's directory who processes refunds. The process of the payments goes down
while it works on A2: the desk goes on without it, and asks it again once it is back. Scripted
models stand for Gemini, so that this runs offline.

Prints::

    found urn:air:127.0.0.1:agent:payments
    The bank has paid A1. Thank you.
    pending: a person pays A2. Thank you.
    The bank has paid A3. Thank you.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from a2a.types import AgentSkill

from adk_fluent import Agent, RemoteAgent
from adk_fluent.a2a import AgentDirectory
from adk_fluent.serve import A2AServer, DirectoryServer
from adk_fluent.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from adk_fluent.builders import State

# --- the payments: a process of its own ------------------------------------------------------


def pay(state: State) -> dict[str, str]:
    """Pay an order, or go down in the middle of it."""
    if state["order"] == "A2":
        os._exit(1)
    return {"receipt": f"The bank has paid {state['order']}."}


async def payments(directory: str, port: int) -> None:
    """Serve the payments, and keep them in the directory, until the input ends."""
    bank = Agent("bank", ScriptedModel(default="It is in order.")).instruct("Check {order}.") >> pay
    refund = AgentSkill(id="process_refund", name="Refund", description="Pays back.", tags=["pay"])
    server = A2AServer(bank, inputs=["order"], outputs=["receipt"])
    await server.start(port=port)
    card = bank.to_agent_card(name="Payments", endpoint=server.url, skills=[refund])
    async with AgentDirectory(directory).registered(card):
        print(server.url.rpartition(":")[2], flush=True)
        await asyncio.to_thread(sys.stdin.read)
    await server.stop()


# --- the support desk ----------------------------------------------------------------------------


@asynccontextmanager
async def running(directory: str, port: int) -> AsyncGenerator[tuple[Process, int]]:
    """The process of the payments, once it is registered, and its port."""
    command = [sys.executable, __file__, "payments", directory, str(port)]
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    assert process.stdout is not None
    yield process, int(await process.stdout.readline())
    await process.communicate(b"")  # which ends its input


async def ask(desk: RemoteAgent, order: str) -> None:
    """Have an order paid back."""
    result = await desk.run("Pay it back.", state={"order": order})
    print(result.state["receipt"], "Thank you.")


async def main() -> None:
    """Ask while the payments are there, while they go down, and when they are back."""
    team = DirectoryServer()
    await team.start(port=0)
    async with running(team.url, 0) as (process, port):
        (found,) = await AgentDirectory(team.url).discover(capabilities=["process_refund"])
        print("found", found.identifier)
        by_hand = Agent("by_hand", ScriptedModel(default="pending: a person pays A2."))
        desk = RemoteAgent.from_card(
            found,
            inputs="order",
            outputs="receipt",
            fallback=by_hand.instruct("Say who pays {order}.").outputs("receipt"),
        )
        await ask(desk, "A1")
        await ask(desk, "A2")
        await process.wait()
    async with running(team.url, port):
        await ask(desk, "A3")
    await team.stop()


if __name__ == "__main__":
    if "payments" in sys.argv[1:2]:
        asyncio.run(payments(sys.argv[2], int(sys.argv[3])))
    else:
        asyncio.run(main())

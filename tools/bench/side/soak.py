"""A soak: many model calls through the stack of `production`, and what memory is left with.

Prints one line of JSON, like all that runs in a process of its own: ``python -m bench.side.soak
calls 200000``. The clock of the stack runs a second a call, so that what is kept for a minute or
so is soon dropped, and nobody waits.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any, ClassVar

from google.adk.agents import BaseAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.models.llm_request import LlmRequest
from google.adk.runners import InMemoryRunner
from google.genai import types

from adk_fluent import Agent
from adk_fluent.backends.adk._hooks._around import with_state
from adk_fluent.backends.adk._hooks._calls import announce
from adk_fluent.backends.adk._hooks._chain import Chain, attach
from adk_fluent.backends.adk._hooks._sites import make_site
from adk_fluent.ir import AgentNode
from adk_fluent.middleware import production
from adk_fluent.protocol import AgentCall, AgentReply, RunCall
from bench.side.scripted import MESSAGE, USER, Echo, driven

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event
    from google.adk.models.llm_response import LlmResponse

#: Model calls of a run, and after how many one fails in passing.
CALLS, FAILS = 50, 100
PARTS = 10


class Hurrying:
    """A clock for which every look at it takes a second."""

    def __init__(self) -> None:
        self.time = 1_000_000.0

    def now(self) -> float:
        """The time."""
        self.time += 1.0
        return self.time

    monotonic = now

    async def sleep(self, seconds: float) -> None:
        """Let the time pass."""
        self.time += seconds
        await asyncio.sleep(0)


class Shaky(Echo):
    """A model that cannot be reached now and then.

    Attributes:
        calls: How often any was called: agents have copies.
    """

    calls: ClassVar[int] = 0

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """One reply, or none."""
        Shaky.calls += 1
        if Shaky.calls % FAILS == 0:
            raise ConnectionError("reset")
        async for each in super().generate_content_async(llm_request, stream):
            yield each


def stack() -> list[Any]:
    """What stands around in production, with all that it may have."""
    clock = Hurrying()
    made: list[Any] = list(
        production(
            pipeline_name="soak",
            max_tokens=10**9,
            requests_per_minute=10**6,
            tokens_per_minute=10**9,
            fallbacks=[Echo(model="other")],
            personal_data=True,
            cached=True,
        )
    )
    return [replace(each, clock=clock) if hasattr(each, "clock") else each for each in made]


class _Calls(BaseAgent):
    """Sends requests to a model through the call sites, as agents do, run after run.

    Attributes:
        soak: Does it, in a context.
    """

    soak: Any

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        await self.soak(ctx)
        for never in ():
            yield never


async def calls(size: int, noted: Callable[[int], None]) -> int:
    """Model calls at their sites, in runs of `CALLS`: nothing of ADK's own but its contexts."""
    model, middlewares = make_site(Shaky(model="shaky")), stack()
    node = AgentNode(name="a0")

    async def once(own: InvocationContext, at: int) -> None:
        text = types.Part(text=f"request {at}")  # each another one, so that caches have work
        request = LlmRequest(
            model=model.model,
            contents=[types.Content(role="user", parts=[text])],
            config=types.GenerateContentConfig(),
        )
        announce(request, CallbackContext(own), own)
        async for _ in model.generate_content_async(request):
            pass
        noted(at)

    async def run(ctx: InvocationContext, first: int, count: int) -> None:
        chain = Chain(middlewares, {"a0": node}, f"run {first}")
        own = ctx.model_copy()
        attach(own, chain)
        with_state(own, chain.written, {})

        async def step(_: AgentCall) -> AgentReply:
            for at in range(first, first + count):
                await once(own, at)
            return AgentReply("ok")

        async def whole(_: RunCall) -> AgentReply:
            return await chain.stack.around("wrap_agent", step)(AgentCall("a0", node, own))

        around: Callable[[RunCall], Awaitable[AgentReply]] = chain.own.around("wrap_run", whole)
        await around(RunCall(ctx=own, root=node, run=chain.run))

    async def soak(ctx: InvocationContext) -> None:
        for first in range(0, size, CALLS):
            await run(ctx, first, min(CALLS, size - first))

    await driven(InMemoryRunner(agent=_Calls(name="a0", soak=soak), app_name="bench"))()
    return Shaky.calls


async def runs(size: int, noted: Callable[[int], None]) -> int:
    """Whole runs of ten agents each, under ADK's Runner; their sessions are deleted."""
    model = Shaky(model="shaky")
    chain: Any = Agent("a0", model).instruct("x")
    for at in range(1, 10):
        chain = chain >> Agent(f"a{at}", model).instruct("x")
    for each in stack():
        chain = chain.middleware(each)
    runner: Any = chain.to_runner()
    sessions = runner.session_service
    for at in range(0, size, 10):
        text = types.Part(text=f"{MESSAGE} {at}")
        message = types.Content(role="user", parts=[text])
        session = await sessions.create_session(app_name=runner.app_name, user_id=USER)
        async for _ in runner.run_async(user_id=USER, session_id=session.id, new_message=message):
            pass
        await sessions.delete_session(app_name=runner.app_name, user_id=USER, session_id=session.id)
        for done in range(at, at + 10):
            noted(done)
    return Shaky.calls


class Noted:
    """Looks at memory after each tenth of the calls.

    Args:
        size: How many calls there are.

    Attributes:
        blocks: What Python has allocated then, in blocks.
        resident: The bytes of the process then; 0 where the system does not tell.
    """

    def __init__(self, size: int) -> None:
        self.blocks: list[int] = []
        self.resident: list[int] = []
        self._part = size // PARTS

    def __call__(self, at: int) -> None:
        """One more call is over."""
        if (at + 1) % self._part == 0:
            gc.collect()
            self.blocks.append(sys.getallocatedblocks())
            self.resident.append(resident())


def resident() -> int:
    """The bytes of this process; 0 where the system does not tell."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * 4096 if statm.exists() else 0


def main(level: str, size: int) -> None:
    """Soak, and say what was seen."""
    noted = Noted(size)
    started = process_time()
    reached = asyncio.run({"calls": calls, "runs": runs}[level](size, noted))
    result = {
        "calls": size,
        "reached": reached,
        "blocks": noted.blocks,
        "resident": noted.resident,
    }
    print(json.dumps({"seconds": process_time() - started, "result": result}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

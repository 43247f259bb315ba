"""A support desk in production: it survives a bad hour of its model, and a careless customer.

Runs offline: the emulator stands in for Gemini, fails twice, and is slow once. Prints::

    It is on its way to [EMAIL].
    4 requests, none of which says ann@example.com:
    True
    after_model after_tool after_model after_agent after_run
"""

from __future__ import annotations

import asyncio

from adk_fluent import Agent
from adk_fluent.middleware import StructuredLogMiddleware, production, structured_log
from adk_fluent.testing import Call, GeminiEmulator, reply


def find_order(order: str) -> str:
    """Look up an order by its number."""
    return f"{order} is on its way to ann@example.com"


async def main() -> None:
    log: StructuredLogMiddleware = structured_log(content=False)
    with GeminiEmulator(
        reply(status=503),
        reply(status=429, retry_after=0.1),
        Call("find_order", {"order": "A1"}),
        reply(chunks=["It is on ", "its way to ", "[EMAIL]."], latency=0.1),
    ) as gemini:
        stack = production(pipeline_name="desk", max_tokens=20_000, personal_data=True, attempts=4)
        clerk = Agent("clerk", gemini.model()).instruct("Help.").tool(find_order)
        desk = clerk.middleware(log, *stack)
        result = await desk.run("I am ann@example.com. Where is A1?")
        print(result.text)
        print(len(gemini.requests), "requests, none of which says ann@example.com:")
        print(all("ann@" not in str(request.body) for request in gemini.requests))
    print(*(entry["event"] for entry in log.log if entry["event"].startswith("after")))


if __name__ == "__main__":
    asyncio.run(main())

"""A draft that is reviewed until it is good, shown as it is written.

Prints::

    draft ... We are
    draft ... closed.
    draft: We are closed.
    judge ... Say when you are open.
    judge: Say when you are open.
    draft ... We open
    draft ... at nine.
    draft: We open at nine.
    judge ... good
    judge: good
"""

from __future__ import annotations

import asyncio

from adk_fluent import Agent, timeout, until
from adk_fluent.config import ExecutionConfig
from adk_fluent.testing import reply

draft = (
    Agent("draft")
    .instruct("Answer the customer. The last remark on your draft: {remark?}")
    .writes("draft")
    .mock([reply(chunks=["We are", " closed."]), reply(chunks=["We open", " at nine."])])
)
judge = (
    Agent("judge")
    .instruct("Say 'good', or what must change in: {draft}")
    .history("none")
    .writes("remark")
    .mock(["Say when you are open.", "good"])
)

polished = timeout((draft >> judge) * until(lambda state: state["remark"] == "good", max=4), 60)


async def main() -> None:
    config = ExecutionConfig(streaming_mode="sse")
    async for event in polished.stream("When do you open?", config=config):
        if event.is_partial:  # a fragment; the whole text follows
            print(f"{event.author} ... {(event.content or '').strip()}")
        else:
            print(f"{event.author}: {event.content}")


if __name__ == "__main__":
    asyncio.run(main())

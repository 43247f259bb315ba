"""Working off tickets, and what there is to tell about it."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adk_fluent.config import ExecutionConfig

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable

    from adk_fluent.builders import Pipeline
    from adk_fluent.demo._tickets import Ticket
    from adk_fluent.protocol import AgentEvent

    OnEvent = Callable[[Ticket, AgentEvent], None]

CONFIG: Final = ExecutionConfig(app_name="support_desk", max_llm_calls=30, timeout_seconds=120)


@dataclass(slots=True)
class Outcome:
    """What became of one ticket.

    Attributes:
        ticket: The ticket.
        category: What it was filed under.
        reply: The approved reply.
        drafts: How many drafts it took.
        backup: Whether the backup model wrote the reply.
        model_calls: Calls of models that were answered.
        tool_calls: Calls of tools.
        tokens: Tokens used, prompt and output.
        seconds: How long it took.
        error: What went wrong, if anything did.
    """

    ticket: Ticket
    category: str = ""
    reply: str = ""
    drafts: int = 0
    backup: bool = False
    model_calls: int = 0
    tool_calls: int = 0
    tokens: int = 0
    seconds: float = 0.0
    error: Exception | None = None


async def work_off(
    desk: Pipeline,
    todo: Iterable[Ticket],
    *,
    config: ExecutionConfig = CONFIG,
    concurrency: int = 4,
    on_event: OnEvent | None = None,
) -> AsyncGenerator[Outcome, None]:
    """Run the desk once a ticket, a few at a time; outcomes come as tickets are done.

    A ticket that fails gives an outcome with its error; the others go on.
    """
    slots = asyncio.Semaphore(concurrency)

    async def one(ticket: Ticket) -> Outcome:
        async with slots:
            return await _handle(desk, ticket, config, on_event)

    tasks = [asyncio.create_task(one(ticket)) for ticket in todo]
    try:
        for done in asyncio.as_completed(tasks):
            yield await done
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _handle(
    desk: Pipeline, ticket: Ticket, config: ExecutionConfig, on_event: OnEvent | None
) -> Outcome:
    out, began = Outcome(ticket), time.perf_counter()
    try:
        events = desk.stream(ticket.text, config=config, state={"ticket": ticket.id})
        async with aclosing(events):
            async for event in events:
                if on_event is not None:
                    on_event(ticket, event)
                _count(out, event)
    except Exception as error:  # noqa: BLE001  # whatever it is, the summary tells it
        out.error = error
    out.seconds = time.perf_counter() - began
    return out


def _count(out: Outcome, event: AgentEvent) -> None:
    if event.is_partial:
        return
    if event.usage is not None:
        out.model_calls += 1
        out.tokens += event.usage.total
    out.tool_calls += len(event.tool_calls)
    out.category = event.state_delta.get("category") or out.category
    if event.state_delta.get("reply"):
        out.reply = event.state_delta["reply"]
        out.drafts += 1
        out.backup = event.author == "draft_backup"

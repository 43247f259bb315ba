"""Calls of agents elsewhere on their way through the middlewares of a run."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from adk_fluent.backends.adk._hooks._calls import streamed
from adk_fluent.backends.adk._hooks._chain import attached
from adk_fluent.protocol import ModelReply, RemoteReply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from google.adk.events.event import Event

    from adk_fluent.protocol import RemoteCall


async def ask_remote(
    call: RemoteCall, ask: Callable[[RemoteCall], AsyncGenerator[Event, None]]
) -> AsyncGenerator[Event, None]:
    """Ask an agent elsewhere for a step of the pipeline, through the middlewares of the run.

    What crosses the network belongs into `ask`, and all of it: where a recording is replayed, it is
    not called.

    Args:
        call: What is asked, with the step's name and context; its run and sink are set here.
        ask: Asks, and yields ADK's events of the step, those with ``partial=True`` at once.
    """
    chain = attached(call.ctx)
    stack = None if chain is None else chain.of(call.agent).stack
    if chain is None or stack is None or not stack.has("wrap_remote_call"):
        async with aclosing(ask(call)) as events:
            async for event in events:
                yield event
        return
    call.run = chain.run
    around = stack.around("wrap_remote_call", _Elsewhere(ask))

    async def asked(call: RemoteCall) -> ModelReply:
        return ModelReply((await around(call)).events)

    async with aclosing(streamed(asked, call)) as events:
        async for event in events:
            yield event


class _Elsewhere:
    """The agent elsewhere, in the middle of the onion."""

    def __init__(self, ask: Callable[[RemoteCall], AsyncGenerator[Event, None]]) -> None:
        self._ask = ask

    async def __call__(self, call: RemoteCall) -> RemoteReply:
        reply = RemoteReply()
        async with aclosing(self._ask(call)) as events:
            async for event in events:
                if event.partial:
                    await call.emit(event)
                else:
                    reply.events.append(event)
        return reply

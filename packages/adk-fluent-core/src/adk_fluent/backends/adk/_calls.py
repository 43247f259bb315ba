"""Model calls and tool calls on their way through the middlewares of a run."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from adk_fluent.backends.adk._chain import CALLER, Chain, attached, compose, invocation_of
from adk_fluent.protocol import ModelCall, ModelReply, Sink, ToolCall

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse
    from google.adk.tools.base_tool import BaseTool


class _Announced:
    """A model call that ADK is about to make: taken by the site that gets this very request."""

    __slots__ = ("call", "chain")

    def __init__(self, call: ModelCall, chain: Chain) -> None:
        self.call: ModelCall | None = call
        self.chain = chain

    def take(self, request: LlmRequest) -> ModelCall | None:
        call = self.call
        if call is None or call.request is not request:
            return None
        self.call = None  # models that this one calls in turn are part of the same call
        return call


_ANNOUNCED: ContextVar[_Announced | None] = ContextVar("adk_fluent_model_call", default=None)


def announce(request: LlmRequest, context: Any) -> None:
    """Say which request the agent of `context` is about to send."""
    invocation = invocation_of(context)
    chain = attached(invocation)
    if chain is None or not chain.model_hooks:
        return
    agent = context.agent_name
    call = ModelCall(
        request,
        context,
        agent=agent,
        node=chain.node(agent),
        iteration=chain.count(invocation),
        run=chain.run,
    )
    _ANNOUNCED.set(_Announced(call, chain))


async def generate(
    original: Any, model: BaseLlm, request: LlmRequest, stream: bool
) -> AsyncGenerator[LlmResponse, None]:
    """What a model answers, through the middlewares if this is the call that was announced."""
    announced = _ANNOUNCED.get()
    call = None if announced is None else announced.take(request)
    if announced is None or call is None:
        responses = original(model, request, stream=stream)
    else:
        call.model, call.stream = model, stream
        chain = compose(announced.chain.model_hooks, _Model(original).drain)
        responses = _streamed(chain, call) if stream else _at_once(chain, call)
    async with aclosing(responses) as each:
        async for response in each:
            yield response


class _Model:
    """The model itself, in the middle of the onion."""

    def __init__(self, original: Any) -> None:
        self._original = original

    async def drain(self, call: ModelCall) -> ModelReply:
        """Call it: fragments go out at once, all else is the reply."""
        reply = ModelReply()
        calling = self._original(call.model, call.request, stream=call.stream)
        async with aclosing(calling) as responses:
            async for response in responses:
                if response.partial:
                    await call.emit(response)
                else:
                    reply.responses.append(response)
        return reply


async def _at_once(chain: Any, call: ModelCall) -> AsyncGenerator[LlmResponse, None]:
    fragments: list[LlmResponse] = []

    async def keep(response: LlmResponse) -> None:
        fragments.append(response)

    call.sink = Sink(keep)
    reply: ModelReply = await chain(call)
    for response in (*fragments, *reply.responses):
        yield response


async def _streamed(chain: Any, call: ModelCall) -> AsyncGenerator[LlmResponse, None]:
    """The onion in a task of its own: a generator would be left hanging in the middle of it."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[tuple[LlmResponse, asyncio.Future[None]] | None] = asyncio.Queue()

    async def forward(response: LlmResponse) -> None:
        taken: asyncio.Future[None] = loop.create_future()
        queue.put_nowait((response, taken))
        await taken

    def ended(task: asyncio.Task[ModelReply]) -> None:
        queue.put_nowait(None)

    call.sink = Sink(forward)
    task: asyncio.Task[ModelReply] = loop.create_task(chain(call))
    task.add_done_callback(ended)
    try:
        while (item := await queue.get()) is not None:
            response, taken = item
            try:
                yield response
            finally:
                if not taken.done():
                    taken.set_result(None)
        for response in (await task).responses:
            yield response
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])


async def call_tool(original: Any, tool: BaseTool, args: dict[str, Any], context: Any) -> Any:
    """What a tool returns, through the middlewares if there are any."""
    invocation = invocation_of(context)
    chain = attached(invocation)
    if chain is None:
        return await original(tool, args=args, tool_context=context)

    async def innermost(call: ToolCall) -> Any:
        token = CALLER.set(chain)
        try:
            return await original(tool, args=call.args, tool_context=call.ctx)
        finally:
            CALLER.reset(token)

    agent = context.agent_name
    call = ToolCall(
        tool.name,
        args,
        context,
        tool,
        context.function_call_id,
        agent,
        chain.node(agent),
        tool.is_long_running,
        chain.run,
    )
    return await compose(chain.tool_hooks, innermost)(call)

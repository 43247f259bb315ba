"""Model calls and tool calls on their way through the middlewares of a run."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import aclosing
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.backends.adk._hooks._answered import (
    LastCall,
    note_last,
    tool_has_run,
    tool_is_settled,
)
from adk_fluent.backends.adk._hooks._chain import (
    CALLER,
    Caller,
    attached,
    invocation_of,
    keep_writes,
    where,
)
from adk_fluent.backends.adk._hooks._model_retry import told_model
from adk_fluent.backends.adk._hooks._stand_in import (
    call_replaced,
    call_replaced_model,
    models_are_replaced,
    tools_are_replaced,
)
from adk_fluent.errors import ModelRetry
from adk_fluent.protocol import ModelCall, ModelReply, Sink, ToolCall

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse
    from google.adk.tools.base_tool import BaseTool

    from adk_fluent.backends._stack import Stack


#: Fragments that a model may be ahead of whoever reads them.
_AHEAD: Final = 32


class _Announced:
    """A model call that ADK is about to make: taken by the site that gets this very request."""

    __slots__ = ("call", "last")

    def __init__(self, call: ModelCall, last: LastCall) -> None:
        self.call: ModelCall | None = call
        self.last = last

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
    agent = context.agent_name
    chain = attached(invocation)
    chain = None if chain is None else chain.of(agent)
    if chain is None or not chain.models:
        return
    call = ModelCall(
        request,
        context,
        agent=agent,
        node=chain.node(agent),
        iteration=chain.count(invocation),
        run=chain.run,
        path=_path(invocation),
    )
    last = LastCall(context, chain)
    note_last(invocation, agent, last)
    _ANNOUNCED.set(_Announced(call, last))


def generate(
    original: Any, model: BaseLlm, request: LlmRequest, stream: bool
) -> AsyncGenerator[LlmResponse, None]:
    """What a model answers, through the middlewares if this is the call that was announced."""
    announced = _ANNOUNCED.get()
    call = None if announced is None else announced.take(request)
    if announced is None or call is None:
        if models_are_replaced():
            call = ModelCall(request, model=model, stream=stream)
            return _alone(_Model(model, original), call)
        return original(model, request, stream=stream)
    call.model, call.stream = model, stream
    hooks = _ModelHooks(announced.last, _Model(model, original))
    return streamed(hooks, call) if stream else _at_once(hooks, call)


async def request_model(call: ModelCall) -> ModelReply:
    """Ask a model something for a middleware, in addition to the call that it stands around.

    No `Middleware.wrap_model_call` stands around this request; what stands next to models does
    (`Middleware.wrap_model_request`), so that it is charged as every other one.

    Args:
        call: What is asked, with the context, agent and run of the call for whose sake it is.
    """
    invocation = None if call.ctx is None else invocation_of(call.ctx)
    chain = None if invocation is None else attached(invocation)
    model = _Model(None, None)
    if chain is None:
        return await model.drain(call)
    call.path = call.path or _path(invocation)
    return await chain.of(call.agent).stack.around("wrap_model_request", model.drain)(call)


def _path(invocation: Any) -> str:
    """The position of the step that an invocation is part of."""
    here = where(invocation)
    return "" if here is None else here.stamp.get("path", "")


class _Model:
    """The model itself, in the middle of the onion."""

    def __init__(self, model: BaseLlm | None, original: Any) -> None:
        self._model = model
        self._original = original

    async def drain(self, call: ModelCall) -> ModelReply:
        """Call it, or what stands in for it: fragments go out at once, all else is the reply."""
        return await call_replaced_model(self._drain, call)

    async def _drain(self, call: ModelCall) -> ModelReply:
        reply = ModelReply()
        if call.model is self._model:
            calling = self._original(call.model, call.request, stream=call.stream)
        else:  # a middleware has put another in its place, maybe one of another class
            calling = call.model.generate_content_async(call.request, stream=call.stream)
        async with aclosing(calling) as responses:
            async for response in responses:
                if response.partial:
                    await call.emit(response)
                else:
                    reply.responses.append(response)
        return reply


class _ModelHooks:
    """All that stands around one model call."""

    def __init__(self, last: LastCall, model: _Model) -> None:
        self._last = last
        self._stack = stack = last.chain.stack
        self._model = model
        self.see_fragments: bool = stack.has("after_model")

    async def fragment(self, call: ModelCall, response: LlmResponse) -> LlmResponse:
        """A fragment as it is sent on."""
        return await self._stack.after("after_model", call.ctx, response) or response

    async def call(self, call: ModelCall) -> ModelReply:
        """Call the model, or do what a hook says instead."""
        self._last.settled = True  # for fragments come before the reply
        try:
            return await self._call(call)
        except Exception:
            self._last.settled = False
            keep_writes(call.ctx)
            raise

    async def _call(self, call: ModelCall) -> ModelReply:
        stack, ctx, request = self._stack, call.ctx, call.request
        said, place = await stack.before("before_model", ctx, request)
        if said is not None:
            reply = ModelReply([said])
        else:
            try:
                sent = stack.around("wrap_model_request", self._model.drain)
                reply = await stack.around("wrap_model_call", sent)(call)
            except Exception as error:
                said = await stack.recover("on_model_error", ctx, request, error)
                if said is None:
                    raise
                reply = ModelReply([said])
        if not self.see_fragments:
            return reply
        return ModelReply(
            [
                await stack.after("after_model", ctx, each, outside=place) or each
                for each in reply.responses
            ]
        )


async def _alone(model: _Model, call: ModelCall) -> AsyncGenerator[LlmResponse, None]:
    """A call without middlewares."""
    fragments: list[LlmResponse] = []

    async def keep(response: LlmResponse) -> None:
        fragments.append(response)

    call.sink = Sink(keep)
    reply = await model.drain(call)
    for response in (*fragments, *reply.responses):
        yield response


async def _at_once(hooks: _ModelHooks, call: ModelCall) -> AsyncGenerator[LlmResponse, None]:
    fragments: list[LlmResponse] = []

    async def keep(response: LlmResponse) -> None:
        fragments.append(await hooks.fragment(call, response))

    call.sink = Sink(keep)
    reply = await hooks.call(call)
    for response in (*fragments, *reply.responses):
        yield response


async def streamed(hooks: Any, call: Any) -> AsyncGenerator[Any, None]:
    """What a call gives while it gives it.

    The onion in a task of its own: a generator would be left hanging in the middle of it.

    Who is called may be some fragments ahead of whoever reads them, so that it is not held up by
    each, and the reader is woken once for all that there are.
    """
    loop = asyncio.get_running_loop()
    ready: deque[Any] = deque()
    held: list[asyncio.Future[None]] = []
    reader: asyncio.Future[None] = loop.create_future()

    def wake(each: asyncio.Future[None]) -> None:
        if not each.done():
            each.set_result(None)

    async def forward(response: Any) -> None:
        ready.append(await hooks.fragment(call, response) if hooks.see_fragments else response)
        wake(reader)
        if len(ready) >= _AHEAD:
            held.append(loop.create_future())
            await held[-1]

    call.sink = Sink(forward)
    task: asyncio.Task[ModelReply] = loop.create_task(hooks.call(call))
    task.add_done_callback(lambda _: wake(reader))
    try:
        while ready or not task.done():
            if not ready:
                await reader
            reader = loop.create_future()
            while ready:
                yield ready.popleft()
            while held and not ready:
                wake(held.pop())
        for response in (await task).responses:
            yield response
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # nobody reads on, so nobody is told of it


async def call_tool(original: Any, tool: BaseTool, args: dict[str, Any], context: Any) -> Any:
    """What a tool returns, through the middlewares and the stand-in, if there are any."""
    invocation = invocation_of(context)
    chain = attached(invocation)
    if chain is None and not tools_are_replaced():
        return await _run(original, tool, args, context)
    if _only_asks(tool, context):
        tool_is_settled(context)
        return await original(tool, args=args, tool_context=context)
    agent = context.agent_name
    call = ToolCall(tool.name, args, context, tool, context.function_call_id, agent)
    call.long_running = tool.is_long_running

    async def itself(call: ToolCall) -> Any:
        return await _run(original, tool, call.args, call.ctx)

    if chain is None:
        return await call_replaced(itself, call)
    chain, here = chain.of(agent), where(invocation)
    call.node, call.run = chain.node(agent), chain.run
    plugins = invocation.plugin_manager.plugins
    caller = Caller(chain, None if here is None else here.for_tool(), plugins)

    async def called(call: ToolCall) -> Any:
        token = CALLER.set(caller)
        try:
            return await itself(call)
        finally:
            CALLER.reset(token)

    async def innermost(call: ToolCall) -> Any:
        try:
            return await call_replaced(called, call)
        except ModelRetry as error:
            return told_model(tool, call.ctx, error)

    try:
        result = await _through(chain.stack, call, innermost)
    except Exception:
        keep_writes(context)
        raise
    tool_is_settled(context)
    if result is None and tool.is_long_running:  # ADK makes no event of that
        keep_writes(context)
    return result


async def _run(original: Any, tool: BaseTool, args: dict[str, Any], context: Any) -> Any:
    result = await original(tool, args=args, tool_context=context)
    tool_has_run(context)
    return result


async def _through(stack: Stack, call: ToolCall, innermost: Any) -> Any:
    context, name, args = call.ctx, call.name, call.args
    result, place = await stack.before("before_tool", context, name, args)
    if result is None:
        try:
            result = await stack.around("wrap_tool_call", innermost)(call)
        except Exception as error:
            result = await stack.recover("on_tool_error", context, name, args, error)
            if result is None:
                raise
    changed = await stack.after("after_tool", context, name, args, result, outside=place)
    return result if changed is None else changed


def _only_asks(tool: BaseTool, context: Any) -> bool:
    """Whether a tool will do nothing but ask a person: 1.x lets it do so, 2.x asks before."""
    asks = getattr(tool, "_require_confirmation", False)
    return asks is True and context.tool_confirmation is None

"""Model calls and tool calls on their way through the middlewares of a run."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import aclosing
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.backends.adk._hooks._answered import LastCall, note_last, tool_is_settled
from adk_fluent.backends.adk._hooks._chain import (
    CALLER,
    Caller,
    attached,
    invocation_of,
    keep_writes,
    where,
)
from adk_fluent.backends.adk._hooks._in_place import (
    model_in_place,
    models_are_answered,
    tool_in_place,
    tools_are_answered,
)
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
#: The label of a request by which ADK says which agent sends it.
_LABEL: Final = "adk_agent_name"


class _Announced:
    """A model call that ADK is about to make: taken by the site that gets this very request."""

    __slots__ = ("call", "last")

    def __init__(self, call: ModelCall, last: LastCall | None) -> None:
        self.call: ModelCall | None = call
        self.last = last

    def is_of(self, request: LlmRequest) -> bool:
        return self.call is not None and self.call.request is request

    def take(self, request: LlmRequest) -> ModelCall | None:
        call = self.call
        if call is None or call.request is not request:
            return None
        self.call = None  # models that this one calls in turn are part of the same call
        return call


_ANNOUNCED: ContextVar[_Announced | None] = ContextVar("adk_fluent_model_call", default=None)


def announce(request: LlmRequest, context: Any) -> None:
    """Say which request an agent is about to send: its call site finds out whose call it is.

    For a plugin's `before_model_callback`. Of several plugins that say so the first counts.

    Args:
        request: ADK's LlmRequest.
        context: ADK's CallbackContext of the agent.
    """
    invocation = invocation_of(context)
    if invocation.live_request_queue is not None:
        return  # what is said in a live run has hooks of its own
    agent = context.agent_name
    chain = attached(invocation)
    chain = None if chain is None else chain.of(agent)
    hooked = chain is not None and chain.models
    if not hooked and not models_are_answered():
        return
    known = _ANNOUNCED.get()
    if known is not None and known.is_of(request):
        return
    call, last = ModelCall(request, context, agent=agent), None
    if chain is not None:
        call.node, call.run = chain.node(agent), chain.run
        call.iteration = chain.count(invocation)
        if chain.models:
            last = LastCall(context, chain)
            note_last(invocation, agent, last)
    _ANNOUNCED.set(_Announced(call, last))


def generate(
    original: Any, model: BaseLlm, request: LlmRequest, stream: bool
) -> AsyncGenerator[LlmResponse, None]:
    """What a model answers, through all that stands around the call, if anything does."""
    announced, last = _ANNOUNCED.get(), None
    call = None if announced is None else announced.take(request)
    if announced is not None and call is not None:
        last = announced.last
    elif models_are_answered():
        call = ModelCall(request, agent=_agent_of(request))
    else:
        return original(model, request, stream=stream)
    call.model, call.stream = model, stream
    itself = _Model(model, original)
    hooks = _NoHooks(itself) if last is None else _ModelHooks(itself, last)
    return _streamed(hooks, call) if stream else _at_once(hooks, call)


def _agent_of(request: LlmRequest) -> str:
    """The agent that sends a request, as ADK labels it."""
    labels = request.config.labels if request.config else None
    return (labels or {}).get(_LABEL, "")


class _Model:
    """The model itself, in the middle of the onion."""

    def __init__(self, model: BaseLlm, original: Any) -> None:
        self._model = model
        self._original = original

    async def drain(self, call: ModelCall) -> ModelReply:
        """Call it: fragments go out at once, all else is the reply."""
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


class _NoHooks:
    """A model call around which no middleware stands: nothing but who answers in its place."""

    def __init__(self, model: _Model) -> None:
        self._innermost = partial(model_in_place, model.drain)
        self.see_fragments: bool = False

    async def fragment(self, call: ModelCall, response: LlmResponse) -> LlmResponse:
        """A fragment as it is sent on."""
        del call
        return response

    async def call(self, call: ModelCall) -> ModelReply:
        """Call the model."""
        return await self._innermost(call)


class _ModelHooks(_NoHooks):
    """All that stands around one model call."""

    def __init__(self, model: _Model, last: LastCall) -> None:
        super().__init__(model)
        self._last = last
        self._stack = stack = last.chain.stack
        self.see_fragments = stack.has("after_model")

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
                reply = await stack.around("wrap_model_call", self._innermost)(call)
            except Exception as error:
                said = await stack.recover("on_model_error", ctx, request, error)
                if said is None:
                    raise
                reply = ModelReply([said])
        return ModelReply(
            [
                await stack.after("after_model", ctx, each, outside=place) or each
                for each in reply.responses
            ]
        )


async def _at_once(hooks: _NoHooks, call: ModelCall) -> AsyncGenerator[LlmResponse, None]:
    fragments: list[LlmResponse] = []

    async def keep(response: LlmResponse) -> None:
        fragments.append(await hooks.fragment(call, response))

    call.sink = Sink(keep)
    reply = await hooks.call(call)
    for response in (*fragments, *reply.responses):
        yield response


async def _streamed(hooks: _NoHooks, call: ModelCall) -> AsyncGenerator[LlmResponse, None]:
    """The onion in a task of its own: a generator would be left hanging in the middle of it.

    The model may be some fragments ahead of whoever reads them, so that it is not held up by each,
    and the reader is woken once for all that there are.
    """
    loop = asyncio.get_running_loop()
    ready: deque[LlmResponse] = deque()
    held: list[asyncio.Future[None]] = []
    reader: asyncio.Future[None] = loop.create_future()

    def wake(each: asyncio.Future[None]) -> None:
        if not each.done():
            each.set_result(None)

    async def forward(response: LlmResponse) -> None:
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
    """What a tool returns, through all that stands around the call, if anything does."""
    invocation = invocation_of(context)
    chain = attached(invocation)
    if chain is None and not tools_are_answered():
        return await original(tool, args=args, tool_context=context)

    async def itself(call: ToolCall) -> Any:
        return await original(tool, args=call.args, tool_context=call.ctx)

    call = ToolCall(tool.name, args, context, tool, context.function_call_id, context.agent_name)
    call.long_running = tool.is_long_running
    if chain is None:
        return await tool_in_place(itself, call)
    if _only_asks(tool, context):
        tool_is_settled(context)
        return await itself(call)
    chain, here = chain.of(call.agent), where(invocation)
    call.node, call.run = chain.node(call.agent), chain.run
    plugins = invocation.plugin_manager.plugins
    caller = Caller(chain, None if here is None else here.for_tool(), plugins)

    async def called(call: ToolCall) -> Any:
        token = CALLER.set(caller)
        try:
            return await itself(call)
        finally:
            CALLER.reset(token)

    innermost = partial(tool_in_place, called)
    try:
        result = await _through(chain.stack, call, innermost)
    except Exception:
        keep_writes(context)
        raise
    tool_is_settled(context)
    if result is None and tool.is_long_running:  # ADK makes no event of that
        keep_writes(context)
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

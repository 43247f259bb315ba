"""Model calls and tool calls on their way through the middlewares of a run."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.backends.adk._hooks._answered import tool_has_run, tool_is_settled
from adk_fluent.backends.adk._hooks._chain import (
    CALLER,
    Caller,
    LastCall,
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
from adk_fluent.protocol import ModelCall, ModelReply, ToolCall

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine

    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse
    from google.adk.tools.base_tool import BaseTool

    from adk_fluent.backends._stack import Stack
    from adk_fluent.backends.adk._hooks._chain import Where
    from adk_fluent.protocol import NextModel

#: Changes a fragment of a call that is on its way.
Fragment = Callable[[Any, Any], Awaitable[Any]]
#: Fragments that a model may be ahead of whoever reads them.
_AHEAD: Final = 32


#: The model call that ADK is about to make: of the site that gets this very request.
_ANNOUNCED: ContextVar[LastCall | None] = ContextVar("adk_fluent_model_call", default=None)
#: What a call site keeps in its class: the class that it was of.
SITE: Final = "__adk_fluent_site__"


def announce(request: LlmRequest, context: Any, invocation: Any) -> None:
    """Say which request the agent of a context is about to send."""
    chain = attached(invocation)
    if chain is None:
        return
    agent = context.agent_name
    chain = chain.of(agent)
    if not chain.models:
        return
    here = where(invocation)
    call = ModelCall(
        request,
        context,
        agent=agent,
        node=chain.node(agent),
        iteration=0 if here is None else here.count(invocation),
        run=chain.run,
        path=_path(here),
    )
    last = LastCall(call, chain)
    if here is not None:
        here.last[agent] = last
    _ANNOUNCED.set(last)


def generate(
    original: Any, model: BaseLlm, request: LlmRequest, stream: bool
) -> AsyncGenerator[LlmResponse, None]:
    """What a model answers, through the middlewares if this is the call that was announced."""
    last = _ANNOUNCED.get()
    if last is None or last.taken or last.call.request is not request:
        if models_are_replaced():
            return _at_once(_drain, ModelCall(request, model=model, stream=stream))
        return original(model, request, stream=stream)
    last.taken = True  # models that this one calls in turn are part of the same call
    _ANNOUNCED.set(None)
    call, chain = last.call, last.chain
    call.model, call.stream = model, stream
    hooks: _ModelHooks | None = chain.model_hooks
    if hooks is None:
        hooks = chain.model_hooks = _ModelHooks(chain.stack)
    fragment = hooks.fragment if hooks.see_fragments else None
    answer = streamed if stream else _at_once
    return answer(partial(hooks.call, last), call, fragment)


async def request_model(call: ModelCall) -> ModelReply:
    """Ask a model something for a middleware, in addition to the call that it stands around.

    No `Middleware.wrap_model_call` stands around this request; what stands next to models does
    (`Middleware.wrap_model_request`), so that it is charged as every other one.

    Args:
        call: What is asked, with the context, agent and run of the call for whose sake it is.
    """
    invocation = None if call.ctx is None else invocation_of(call.ctx)
    chain = None if invocation is None else attached(invocation)
    if chain is None:
        return await _drain(call)
    call.path = call.path or _path(where(invocation))
    return await chain.of(call.agent).stack.around("wrap_model_request", _drain)(call)


def _path(here: Where | None) -> str:
    """The position of a step."""
    return "" if here is None else here.stamp.get("path", "")


def _drain(call: ModelCall) -> Awaitable[ModelReply]:
    """Call the model, or what stands in for it: fragments go out at once, the rest is the reply."""
    return call_replaced_model(_drain_model, call)


async def _drain_model(call: ModelCall) -> ModelReply:
    reply = ModelReply()
    model = call.model
    kind = type(model).__dict__.get(SITE)  # whose site has seen to the call already
    if kind is None:
        calling = model.generate_content_async(call.request, stream=call.stream)
    else:
        calling = kind.generate_content_async(model, call.request, stream=call.stream)
    try:
        async for response in calling:
            if response.partial:
                await call.emit(response)
            else:
                reply.responses.append(response)
    finally:
        await calling.aclose()
    return reply


class _ModelHooks:
    """All that stands around the model calls of a stack."""

    __slots__ = ("_before", "_make", "_stack", "see_fragments")

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._before = stack.has("before_model")
        self.see_fragments: bool = stack.has("after_model")
        sent = stack.around("wrap_model_request", _drain)
        self._make = stack.around("wrap_model_call", sent)
        if stack.has("on_model_error"):
            self._make = partial(self._recovered, self._make)

    async def fragment(self, call: ModelCall, response: LlmResponse) -> LlmResponse:
        """A fragment as it is sent on."""
        return await self._stack.after("after_model", call.ctx, response) or response

    async def call(self, last: LastCall, call: ModelCall) -> ModelReply:
        """Call the model, or do what a hook says instead."""
        last.settled = True  # for fragments come before the reply
        stack, place = self._stack, None
        try:
            said = None
            if self._before:
                said, place = await stack.before("before_model", call.ctx, call.request)
            reply = await self._make(call) if said is None else ModelReply([said])
            if not self.see_fragments:
                return reply
            return ModelReply(
                [
                    await stack.after("after_model", call.ctx, each, outside=place) or each
                    for each in reply.responses
                ]
            )
        except Exception:
            last.settled = False
            keep_writes(call.ctx)
            raise

    async def _recovered(self, make: NextModel, call: ModelCall) -> ModelReply:
        ctx, request = call.ctx, call.request  # as they are before a middleware changes the call
        try:
            return await make(call)
        except Exception as error:
            said = await self._stack.recover("on_model_error", ctx, request, error)
            if said is None:
                raise
            return ModelReply([said])


async def _at_once(
    make: NextModel, call: ModelCall, fragment: Fragment | None = None
) -> AsyncGenerator[LlmResponse, None]:
    """What a call gives, its fragments first."""
    fragments: list[LlmResponse] = []

    async def keep(response: LlmResponse) -> None:
        fragments.append(response if fragment is None else await fragment(call, response))

    call.sink.forward = keep
    try:
        reply = await make(call)
    finally:
        call.sink.forward = None  # it refers to the call, which only the collector would free
    for response in (*fragments, *reply.responses):
        yield response


async def streamed(
    make: Callable[[Any], Coroutine[Any, Any, ModelReply]],
    call: Any,
    fragment: Fragment | None = None,
) -> AsyncGenerator[Any, None]:
    """What a call gives while it gives it.

    The onion in a task of its own: a generator would be left hanging in the middle of it.

    Who is called may be some fragments ahead of whoever reads them, so that it is not held up by
    each, and the reader is woken once for all that there are.

    Args:
        make: Makes the call, and gives what is no fragment.
        call: The call; its sink is set here.
        fragment: What becomes of a fragment; None leaves each as it is.
    """
    loop = asyncio.get_running_loop()
    ready: deque[Any] = deque()
    held: list[asyncio.Future[None]] = []
    reader: asyncio.Future[None] = loop.create_future()

    def wake(each: asyncio.Future[None]) -> None:
        if not each.done():
            each.set_result(None)

    async def forward(response: Any) -> None:
        ready.append(response if fragment is None else await fragment(call, response))
        wake(reader)
        if len(ready) >= _AHEAD:
            held.append(loop.create_future())
            await held[-1]

    call.sink.forward = forward
    task: asyncio.Task[ModelReply] = loop.create_task(make(call))
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
        call.sink.forward = None
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

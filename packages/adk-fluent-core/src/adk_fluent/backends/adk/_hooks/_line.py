"""The connections of a live run: what is said over them passes through the middlewares.

A live connection is no call that something could stand around. `before_model` is asked before it is
opened, with the whole request, and before each thing that the user writes is sent, with that alone;
`after_model` with everything that the model says. No other hook of model calls is asked.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from google.adk.agents.callback_context import CallbackContext
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.tools.function_tool import FunctionTool

from adk_fluent.backends.adk._hooks._chain import invocation_of, keep_writes
from adk_fluent.protocol import RequestSnapshot

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from google.adk.agents.live_request_queue import LiveRequest, LiveRequestQueue
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse
    from google.adk.tools.base_tool import BaseTool
    from google.genai import types

    from adk_fluent.backends.adk._hooks._chain import Chain

#: By a function of this name ADK's live flow ends an agent.
END: Final = "task_completed"
#: What an agent is told that others come after.
_TOLD: Final = (
    f"When you have done what you were asked to, call the function {END} and say nothing "
    "with the call: others go on from there."
)
_GOES_ON: Final = "_adk_fluent_live_goes_on"
#: Responses that a model may be ahead of whoever reads them.
_AHEAD: Final = 32


class Line:
    """The user's end of a live run.

    Args:
        queue: What the user says.

    Attributes:
        hung_up: The user has closed it, and an agent has heard so.
        handed_on: The agent that talks has said that it is done.
    """

    def __init__(self, queue: LiveRequestQueue) -> None:
        self._queue = queue
        self.hung_up: bool = False
        self.handed_on: bool = False

    @property
    def is_over(self) -> bool:
        """Whether the agent that talks has no more to say."""
        return self.hung_up or self.handed_on

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    async def get(self) -> LiveRequest:
        """The next thing that the user says."""
        request = await self._queue.get()
        self.hung_up = self.hung_up or request.close
        return request


class LineClosed(BaseException):
    """Nothing more is to be said on a line. No Exception: ADK would log it and try again.

    Args:
        response: What a hook has answered in the model's place.
        author: The agent in whose name.
    """

    def __init__(self, response: LlmResponse | None = None, author: str = "") -> None:
        super().__init__()
        self.response = response
        self.author = author


class _Speaker:
    """The agent that is about to open a connection."""

    __slots__ = ("agent", "chain", "context", "ends", "line", "request")

    def __init__(self, agent: str, context: Any, chain: Chain | None, line: Line) -> None:
        self.agent = agent
        self.context = context
        self.chain = chain
        self.line = line
        self.ends: bool = goes_on(context.__dict__)
        self.request: RequestSnapshot | None = None

    def new_context(self) -> Any:
        return CallbackContext(self.context)

    def begin(self, request: LlmRequest) -> None:
        """Let a connection begin with what the first one of this agent began with."""
        settings = request.live_connect_config  # in which ADK notes how to take a session up again
        if self.request is None:
            self.request = RequestSnapshot(request)
            self.ends = self.ends and END not in request.tools_dict  # one of the user's own
        else:
            self.request.restore()
            request.live_connect_config = settings
        if self.ends:
            request.append_instructions([_TOLD])
            request.append_tools([self._end()])

    def _end(self) -> BaseTool:
        line = self.line

        def task_completed() -> str:
            """Say that your task is done, so that the next agent goes on with the user."""
            line.handed_on = True
            return "The next agent goes on."

        return FunctionTool(task_completed)


_SPEAKER: ContextVar[_Speaker | None] = ContextVar("adk_fluent_speaker", default=None)


def let_go_on(changes: dict[str, Any], *, after: bool) -> None:
    """Say in the context of a step whether something comes after it."""
    changes[_GOES_ON] = after


def goes_on(context: Mapping[str, Any]) -> bool:
    """Whether something comes after the step of a context, so that its agents have to end it."""
    return context.get(_GOES_ON, False)


def speaks(agent: str, context: Any, chain: Chain | None) -> bool:
    """Say which agent the next connection is of, if its run is a live one.

    Args:
        agent: Its name.
        context: The context it runs in.
        chain: What stands around its calls.
    """
    line = context.live_request_queue
    if not isinstance(line, Line):
        return False
    _SPEAKER.set(_Speaker(agent, context, chain, line))
    return True


@asynccontextmanager
async def connected(
    original: Any, model: BaseLlm, request: LlmRequest, make_site: Callable[[BaseTool], object]
) -> AsyncGenerator[BaseLlmConnection, None]:
    """The connection of a model, as its agent is to see it.

    Args:
        original: Opens it.
        model: The model.
        request: What it is opened with.
        make_site: Makes a call site of a tool: ADK 1.x asks no plugin about tools of live runs.

    Raises:
        LineClosed: There is nothing more to say: the user has hung up, or a hook has answered.
    """
    speaker = _SPEAKER.get()
    if speaker is None:
        async with original(model, request) as connection:
            yield connection
        return
    if speaker.line.is_over:  # ADK 1.x connects again when a connection was closed
        raise LineClosed
    speaker.begin(request)
    _SPEAKER.set(None)  # models that this one calls in turn are part of the same connection
    try:
        for tool in request.tools_dict.values():
            make_site(tool)
        if speaker.chain is None:
            async with original(model, request) as connection:
                yield connection
            return
        said = await _before(speaker, request)
        if said is not None:
            raise LineClosed(said, speaker.agent)
        async with original(model, request) as connection:
            screens = speaker.chain.stack.has("before_model", "after_model")
            yield _Screened(connection, request, speaker) if screens else connection
    finally:
        _SPEAKER.set(speaker)


async def _before(speaker: _Speaker, request: LlmRequest) -> LlmResponse | None:
    """Ask before something is sent; what is answered instead, as those outside leave it."""
    assert speaker.chain is not None  # noqa: S101  # nobody asks without
    stack, ctx = speaker.chain.stack, speaker.new_context()
    try:
        said, place = await stack.before("before_model", ctx, request)
        if said is None:
            return None
        return await stack.after("after_model", ctx, said, outside=place) or said
    finally:
        keep_writes(ctx)


class _Screened(BaseLlmConnection):
    """A connection with hooks on it.

    Args:
        connection: The model's own.
        request: What it was opened with.
        speaker: Whose it is.
    """

    def __init__(
        self, connection: BaseLlmConnection, request: LlmRequest, speaker: _Speaker
    ) -> None:
        self._connection: Any = connection
        self._request = request
        self._speaker = speaker
        #: What hooks answer, what they raise, what the model says, and None where it pauses.
        self._heard: asyncio.Queue[_Heard | None] = asyncio.Queue(_AHEAD)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    async def send_history(self, history: Sequence[types.Content]) -> None:
        await self._connection.send_history(history)

    async def send_content(self, content: types.Content) -> None:
        sent = await self._screened(content)
        if sent is not None:
            await self._connection.send_content(sent)

    async def _send_content(self, content: types.Content, *, partial: bool = False) -> None:
        sent = await self._screened(content)
        if sent is not None:
            await self._connection._send_content(sent, partial=partial)  # noqa: SLF001  # ADK 2.x asks so

    async def send_realtime(self, blob: Any) -> None:
        await self._connection.send_realtime(blob)

    async def receive(self) -> AsyncGenerator[LlmResponse, None]:
        pumping = asyncio.create_task(self._pump())
        try:
            while (heard := await self._heard.get()) is not None:
                if isinstance(heard.what, BaseException):
                    raise heard.what
                yield heard.what if heard.settled else await self._after(heard.what)
        finally:
            pumping.cancel()
            await asyncio.wait([pumping])

    async def close(self) -> None:
        await self._connection.close()

    async def _pump(self) -> None:
        """Receive in a task of its own: hooks may say something while the model is silent."""
        ends: _Heard | None = None
        try:
            async with aclosing(self._connection.receive()) as responses:
                async for response in responses:
                    await self._heard.put(_Heard(response))
        except (Exception, asyncio.CancelledError) as error:  # raised where it is received
            if _is_cancelled():
                raise
            ends = _Heard(error)
        await self._heard.put(ends)

    async def _screened(self, content: types.Content) -> types.Content | None:
        """What is sent; None where a hook has answered, or failed."""
        if all(part.function_response for part in content.parts or ()):
            return content
        request = self._request.model_copy(update={"contents": [content]})
        RequestSnapshot(request).restore()  # what hooks write into it is about this content alone
        request.tools_dict = dict(request.tools_dict)
        try:
            said = await _before(self._speaker, request)
        except (Exception, asyncio.CancelledError) as error:  # ADK hears of none
            if _is_cancelled():
                raise
            await self._heard.put(_Heard(error))
            return None
        if said is not None:
            said = said.model_copy(update={"turn_complete": True})
            await self._heard.put(_Heard(said, settled=True))
            return None
        return request.contents[0] if request.contents else None

    async def _after(self, response: LlmResponse) -> LlmResponse:
        if response.content is None and response.output_transcription is None:
            return response
        assert self._speaker.chain is not None  # noqa: S101  # or nothing would be screened
        ctx = self._speaker.new_context()
        try:
            changed = await self._speaker.chain.stack.after("after_model", ctx, response)
        finally:
            keep_writes(ctx)
        return changed or response


class _Heard:
    """Something that is to be received; `settled` when no hook is to be asked about it."""

    __slots__ = ("settled", "what")

    def __init__(self, what: LlmResponse | BaseException, *, settled: bool = False) -> None:
        self.what = what
        self.settled = settled


def _is_cancelled() -> bool:
    """Whether it is this task that somebody has cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def line_of(context: Any) -> Line:
    """The line of a live run: that of the flow around it, or a new one."""
    queue = invocation_of(context).live_request_queue
    return queue if isinstance(queue, Line) else Line(queue)

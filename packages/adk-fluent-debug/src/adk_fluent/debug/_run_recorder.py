"""Recording one run while it goes on."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import nullcontext
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from adk_fluent.debug._pipeline import pipeline_data
from adk_fluent.extend import json_safe
from adk_fluent.protocol import Middleware, Sink

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from adk_fluent.debug._spans_adk import Spans
    from adk_fluent.ir import Node
    from adk_fluent.protocol import (
        AgentEvent,
        AgentReply,
        ModelCall,
        ModelReply,
        NextModel,
        NextRemote,
        NextRun,
        NextTool,
        RemoteCall,
        RemoteReply,
        RunCall,
        ToolCall,
    )

Data = dict[str, Any]


class _Request:
    """A model call that is recorded.

    Args:
        run: What records it.
        is_sent: Whether the model was asked; a middleware next to it may refuse.
    """

    def __init__(self, run: RunRecorder, *, is_sent: bool = False) -> None:
        self.run: RunRecorder = run
        self.is_sent: bool = is_sent


class Keeper(Protocol):
    """Keeps the runs that are recorded, as `Recorder` does."""

    capture_content: bool
    capture_state: bool
    spans: bool

    @property
    def streams(self) -> bool:
        """Whether what happens is written while it happens."""
        ...

    def went_on(self, run: RunRecorder, entry: Data | None = None) -> None:
        """Write to the stream what a run has done, or else what is known of it."""

    def begun(self, run: RunRecorder) -> None:
        """Take in a run that has begun."""

    def knows(self, session_id: str) -> bool:
        """Whether it has recorded an earlier run of a session."""
        ...


#: The tool call that the code that runs is part of, with the recorder that has it.
_WITHIN: Final[ContextVar[tuple[Keeper, int] | None]] = ContextVar(
    "adk_fluent_debug_within", default=None
)
#: The model call that the code that runs is part of.
_REQUEST: Final[ContextVar[_Request | None]] = ContextVar("adk_fluent_debug_call", default=None)
#: Events that say nothing but where a run stands.
_BOOKKEEPING: Final = frozenset({"journal", "claim"})


def is_within(recorder: Keeper) -> bool:
    """Whether the code that runs is part of a tool call that a recorder has."""
    within = _WITHIN.get()
    return within is not None and within[0] is recorder


class RunRecorder(Middleware):
    """Records one run.

    Args:
        recorder: Whose run it is.

    Attributes:
        tape: What happened, in order; requests are not yet data.
        status: How the run ended.
        session_id: The session it runs in.
        spans: Its spans; None if they are not recorded.
        number: Which of the recorder's runs it is; None until it has begun.
    """

    at_boundary = True
    adds_tools: Sequence[str] | None = ()

    def __init__(self, recorder: Keeper) -> None:
        self.tape: list[Data] = []
        self.status: str = ""
        self.session_id: str = ""
        self.number: int | None = None
        self._recorder = recorder
        self.spans: Spans | None = None
        self._began = 0.0
        self._count = 0
        self._message: Any = None
        self._head: Data | None = None
        self._root: Node | None = None
        self._error: Data | None = None

    # --- the run -------------------------------------------------------------------------------

    def begin_run(self, call: RunCall, /) -> None:
        """Note what begins."""
        self._root, self._message = call.root, call.said
        self._begin(call.ctx, resumed=call.resumed)

    def end_run(self, status: str, error: BaseException | None, /) -> None:
        """Note how the run ends."""
        self.status = status
        if error is not None and status in ("failed", "cancelled"):
            from adk_fluent.debug._adk import dump_error  # noqa: PLC0415  # ADK, when it is used

            self._error = dump_error(error)
        self._recorder.went_on(self)

    async def on_event(self, ctx: Any, event: AgentEvent) -> None:
        """Keep an event."""
        if event.metadata.get("why") in _BOOKKEEPING and event.content is None:
            return
        self._begin(ctx)
        wrote = {key: each for key, each in event.state_delta.items() if _is_kept(key)}
        self._add({"event": _Later(_event_data, (event, json_safe(wrote) if wrote else {}))})

    async def turn(self, node: str, path: str, *, partial: bool, made: bool) -> None:
        """Note in which order branches that run at the same time hand in events."""
        entry: Data = {"handed_in": path, "node": node}
        self._add({**entry, "partial": partial, "made": made})

    async def branch_ended(self, node: str, path: str, *, decides: bool) -> None:
        """Note in which order branches that run at the same time end."""
        self._add({"branch_end": path, "node": node, "decides": decides})

    def expired(self, node: str, path: str) -> None:
        """Note that a timeout has struck."""
        self._add({"expired": path, "node": node})

    def _begin(self, ctx: Any, *, resumed: bool = False) -> None:
        if self._head is not None:
            return
        from adk_fluent.debug import _adk  # noqa: PLC0415  # ADK, when it is used

        self._began = time.perf_counter()
        session = ctx.session
        self.session_id = session.id
        self._head = {"session_id": session.id, "app_name": session.app_name}
        if resumed:
            self._head["resumed"] = True
            self._head["answers"] = _adk.answers_in(session)
        if not self._recorder.knows(session.id):
            if self._recorder.capture_content:
                self._head["history"] = _adk.dump_history(session, ctx.invocation_id)
            if self._recorder.capture_state:
                state = {k: v for k, v in session.state.items() if _is_kept(k)}
                self._head["state"] = json_safe(state)
        elif self._recorder.capture_state:
            self._head["state"] = json_safe({k: v for k, v in session.state.items() if _is_kept(k)})
        if self._recorder.spans:
            from adk_fluent.debug._spans_adk import Spans  # noqa: PLC0415  # ADK, when it is used

            self.spans = Spans(self._ended_span)
        self._recorder.begun(self)

    def _ended_span(self) -> None:
        if self.status:  # what ADK has around the run ends after it
            self._recorder.went_on(self)

    def _add(self, entry: Data) -> None:
        entry["t"] = round((time.perf_counter() - self._began) * 1000, 3)
        within = _WITHIN.get()
        if within is not None and within[0] is self._recorder:
            entry["within"] = within[1]
        self.tape.append(entry)
        if self._recorder.streams:
            self._recorder.went_on(self, _entry(entry))

    def _number(self) -> int:
        self._count += 1
        return self._count - 1

    # --- calls ---------------------------------------------------------------------------------

    async def wrap_model_call(self, call: ModelCall, next: NextModel, /) -> ModelReply:
        """Keep a request, the fragments of its answer, and how it ends."""
        request = _Request(self)
        token = _REQUEST.set(request)
        try:
            return await self._record(call, next, request)
        finally:
            _REQUEST.reset(token)

    async def wrap_model_request(self, call: ModelCall, next: NextModel, /) -> ModelReply:
        """Note that a request is really sent; keep one that a middleware makes for itself."""
        request = _REQUEST.get()
        if request is None or request.run is not self:
            return await self._record(call, next, _Request(self, is_sent=True))
        request.is_sent = True
        return await next(call)

    async def _record(self, call: ModelCall, next: NextModel, request: _Request) -> ModelReply:
        from adk_fluent.debug import _adk  # noqa: PLC0415  # ADK, when it is used

        number = self._number()
        self._add(
            {
                "model_call": number,
                **_place(call.ctx, call.agent),
                "model": call.request.model or getattr(call.model, "model", ""),
                "stream": call.stream,
                "request": _Later(_adk.load_request, _adk.keep_request(call.request)),
            }
        )

        async def forward(response: Any) -> None:
            chunk = _Later(json.loads, _adk.keep_response(response))
            self._add({"chunk_of": number, **_is_late(), "response": chunk})
            await call.emit(response)

        before = _adk.state_written(call.ctx)
        end: Data = {}
        try:
            heard = replace(call, sink=Sink(forward, call.emitted)) if call.stream else call
            reply = await next(heard)
            kept = [_adk.keep_response(each) for each in reply.responses]
            end = {**_is_late(), "responses": _Later(_all_of, kept)}
        except BaseException as error:
            end = _how(error)
            raise
        finally:
            if not request.is_sent and "cancelled" not in end:
                end["unsent"] = True
            wrote = _adk.state_written(call.ctx)  # by who stands next to the model, as a budget
            if wrote != before:
                delta = {k: v for k, v in wrote.items() if k not in before or before[k] != v}
                end["effects"] = json_safe({"state_delta": delta})
            self._add({"reply_of": number, **end})
        return reply

    async def wrap_remote_call(self, call: RemoteCall, next: NextRemote, /) -> RemoteReply:
        """Keep what an agent elsewhere is asked, and the events that come of it."""
        from adk_fluent.debug import _adk  # noqa: PLC0415  # ADK, when it is used

        number = self._number()
        asked = {"remote_call": number, **_place(call.ctx, call.agent), "args": call.asked}
        self._add(asked)

        async def forward(event: Any) -> None:
            self._add({"chunk_of": number, **_is_late(), "response": _adk.dump_event(event)})
            await call.emit(event)

        end: Data = {}
        try:
            reply = await next(replace(call, sink=Sink(forward)))
            end = {**_is_late(), "responses": [_adk.dump_event(each) for each in reply.events]}
        except BaseException as error:
            end = _how(error)
            raise
        finally:
            self._add({"reply_of": number, **end})
        return reply

    async def wrap_tool_call(self, call: ToolCall, next: NextTool, /) -> Any:
        """Keep the arguments of a tool, its result, and what it did to state and actions."""
        from adk_fluent.debug import _adk  # noqa: PLC0415  # ADK, when it is used

        number = self._number()
        before = _adk.dump_actions(call.ctx.actions)
        self._add(
            {
                "tool_call": number,
                **_place(call.ctx, call.agent),
                "tool": call.name,
                "call_id": call.call_id,
                "args": json_safe(call.args),
            }
        )
        token = _WITHIN.set((self._recorder, number))
        end: Data = {}
        try:
            result = await next(call)
        except BaseException as error:
            end = _how(error)
            raise
        else:
            end = {**_is_late(), "result": json_safe(result)}
        finally:
            _WITHIN.reset(token)
            effects = _changed(before, _adk.dump_actions(call.ctx.actions))
            if effects:
                end["effects"] = json_safe(effects)
            self._add({"result_of": number, **end})
        return result

    # --- as data -------------------------------------------------------------------------------

    def data(self) -> Data:
        """The run as it stands in a file, nothing taken out yet."""
        return {**self.known(), "tape": [_entry(each) for each in self.tape]}

    def known(self) -> Data:
        """What is known of the run beside what has happened in it, which is left out."""
        from adk_fluent.debug import _adk  # noqa: PLC0415  # ADK, when it is used

        made: Data = {
            "message": _adk.dump_content(self._message),
            **(self._head or {}),
            "status": self.status,
        }
        if self._error is not None:
            made["error"] = self._error
        if self._root is not None:
            made["pipeline"] = pipeline_data(self._root)
        if self.spans:
            made["spans"] = self.spans.data()
        made["tape"] = []
        return made


class SpanRecorder(RunRecorder):
    """Records one run, and its spans."""

    async def wrap_run(self, call: RunCall, next: NextRun, /) -> AgentReply:
        """Keep what begins inside the run."""
        with nullcontext() if self.spans is None else self.spans.around():
            return await next(call)


class _Later(NamedTuple):
    """What becomes data when somebody wants to see it: `make` of `what`, which nobody changes."""

    make: Callable[[Any], Any]
    what: Any


def _all_of(texts: Sequence[str]) -> list[Any]:
    return [json.loads(each) for each in texts]


def _event_data(kept: tuple[AgentEvent, Data]) -> Data:
    event, wrote = kept
    return replace(event, state_delta=wrote, raw=None).to_dict()


def _entry(entry: Data) -> Data:
    """An entry of a tape as data; the time first."""
    made: Data = {"t": entry["t"]}
    for key, value in entry.items():
        if isinstance(value, _Later):
            made[key] = value.make(value.what)
        elif value is not None or key == "result":
            made[key] = value
    return made


def _place(ctx: Any, agent: str) -> Data:
    made: Data = {"agent": agent}
    from adk_fluent.debug._adk import branch_of  # noqa: PLC0415  # ADK, when it is used

    branch = branch_of(ctx)
    if branch:
        made["branch"] = branch
    return made


def _how(error: BaseException) -> Data:
    if isinstance(error, asyncio.CancelledError | GeneratorExit):
        return {"cancelled": True}
    from adk_fluent.debug._adk import dump_error  # noqa: PLC0415  # ADK, when it is used

    return {**_is_late(), "error": dump_error(error)}


def _is_late() -> Data:
    """Says of an answer that it came although its call was cancelled."""
    task = asyncio.current_task()
    return {"after_cancel": True} if task is not None and task.cancelling() else {}


def _changed(before: Data, after: Data) -> Data:
    made = {key: each for key, each in after.items() if each != before.get(key)}
    if "state_delta" in made and "state_delta" in before:
        was = before["state_delta"]
        delta = {k: v for k, v in after["state_delta"].items() if k not in was or was[k] != v}
        made["state_delta"] = delta
    return made


def _is_kept(key: str) -> bool:
    from adk_fluent.extend import is_journal_key  # noqa: PLC0415  # it imports ADK

    return not is_journal_key(key) and not key.startswith("temp:")

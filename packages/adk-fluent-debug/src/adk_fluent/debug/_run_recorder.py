"""Recording one run while it goes on."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from dataclasses import replace
from itertools import count
from time import perf_counter, time_ns
from typing import TYPE_CHECKING, Any, Final

import adk_fluent.protocol as p
from adk_fluent.debug import _adk
from adk_fluent.debug._notes import RunNotes
from adk_fluent.debug._redaction import as_it_is, bare_entry
from adk_fluent.extend import json_safe

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from adk_fluent.debug._notes import Notes
    from adk_fluent.debug._recorded_run import Data


#: The tool call that the code that runs is part of, with the recorder that has it.
_WITHIN: Final[ContextVar[tuple[Notes, int] | None]] = ContextVar(
    "adk_fluent_debug_within", default=None
)
#: The model call that the code that runs is part of: who records it, and what is known of its end.
_REQUEST: Final[ContextVar[tuple[RunRecorder, Data] | None]] = ContextVar(
    "adk_fluent_debug_call", default=None
)


class RunRecorder(RunNotes, p.Middleware):
    """Records one run.

    Args:
        notes: The `Recorder` whose run it is.
    """

    at_boundary = True
    adds_tools: Sequence[str] | None = ()

    def __init__(self, notes: Notes) -> None:
        super().__init__(notes)
        self._streams = notes.streams
        self._captures = notes.capture_content
        self._known: dict[Any, Any] = {}
        self._number = count().__next__

    # --- the run -------------------------------------------------------------------------------

    def begin_run(self, call: p.RunCall, /) -> None:
        """Note what begins."""
        self.root = call.root
        said = _adk.dump_content(call.said) if self._captures else None
        self._begin(call.ctx, said, resumed=call.resumed)

    def end_run(self, status: str, error: BaseException | None, /) -> None:
        """Note how the run ends."""
        self.head["status"] = status
        if error is not None and status in ("failed", "cancelled"):
            self.head["error"] = _adk.dump_error(error)
        self.notes.went_on(self)

    def see_event(self, ctx: Any, event: Any, /) -> None:
        """Keep an event, if it says more than where the run stands."""
        kept = _adk.keep_event(event)
        if kept is not None:
            if not self.head:
                self._begin(ctx)
            self.add(_with, {}, "event", _adk.kept_event, kept)

    async def turn(self, node: str, path: str, *, partial: bool, made: bool) -> None:
        """Note in which order branches that run at the same time hand in events."""
        self.add(as_it_is, {"handed_in": path, "node": node, "partial": partial, "made": made})

    async def branch_ended(self, node: str, path: str, *, decides: bool) -> None:
        """Note in which order branches that run at the same time end."""
        self.add(as_it_is, {"branch_end": path, "node": node, "decides": decides})

    def expired(self, node: str, path: str) -> None:
        """Note that a timeout has struck."""
        self.add(as_it_is, {"expired": path, "node": node})

    def _begin(self, ctx: Any, said: Data | None = None, *, resumed: bool = False) -> None:
        self.began = perf_counter()
        session = ctx.session
        self.head |= {"message": said, "session_id": session.id, "app_name": session.app_name}
        if resumed:
            self.head["resumed"] = True
            self.head["answers"] = _adk.answers_in(session)
        if self._captures and not self.notes.knows(session.id):
            self.head["history"] = _adk.dump_history(session, ctx.invocation_id)
        if self.notes.capture_state:
            self.head["state"] = _adk.dump_state(session.state)
        self.notes.begun(self)

    def add(self, make: Callable[..., Data], *what: Any) -> None:
        if not self._captures:  # so that nothing of what was said is held
            make, what = as_it_is, (bare_entry(make(*what)),)
        self.tape.append((perf_counter(), _WITHIN.get(), make, what))
        if self._streams:
            self.notes.went_on(self, self.entry(self.tape[-1]))

    # --- calls ---------------------------------------------------------------------------------

    async def wrap_model_call(self, call: p.ModelCall, next: p.NextModel, /) -> p.ModelReply:
        """Keep a request, the fragments of its answer, and how it ends."""
        end: Data = {"unsent": True}  # a middleware next to the model may refuse
        token = _REQUEST.set((self, end))
        try:
            return await self._record(call, next, end)
        finally:
            _REQUEST.reset(token)

    async def wrap_model_request(self, call: p.ModelCall, next: p.NextModel, /) -> p.ModelReply:
        """Note that a request is really sent; keep one that a middleware makes for itself."""
        request = _REQUEST.get()
        if request is None or request[0] is not self:
            return await self._record(call, next, {})
        request[1].pop("unsent", None)
        return await next(call)

    async def _record(self, call: p.ModelCall, next: p.NextModel, end: Data) -> p.ModelReply:
        number, request = self._number(), call.request
        model = request.model or getattr(call.model, "model", "")
        asked = {"model_call": number, **_place(call), "model": model, "stream": call.stream}
        kept = _adk.keep_request(request, self._known) if self._captures else {}
        self.add(_with, asked, "request", _adk.kept_request, kept)
        forward = self._forward(number, call, _adk.keep_response) if call.stream else None
        heard = call if forward is None else call.heard_by(forward)
        before = _adk.state_written(call.ctx)
        with _Ending(self, {"reply_of": number}, end):
            try:
                reply = await next(heard)
                end["responses"] = [*map(_adk.keep_response, reply.responses)]
                return reply
            finally:
                wrote = _adk.state_written(call.ctx)  # by who stands next to the model, as a budget
                if wrote != before:
                    end["effects"] = json_safe({"state_delta": _changed(before, wrote)})

    async def wrap_remote_call(self, call: p.RemoteCall, next: p.NextRemote, /) -> p.RemoteReply:
        """Keep what an agent elsewhere is asked, and the events that come of it."""
        number = self._number()
        self.add(as_it_is, {"remote_call": number, **_place(call), "args": json_safe(call.asked)})
        sink = p.Sink(self._forward(number, call, _adk.dump_event))
        with _Ending(self, {"reply_of": number}) as end:
            reply = await next(replace(call, sink=sink))
            end["responses"] = [*map(_adk.dump_event, reply.events)]
            return reply

    def _forward(
        self, number: int, call: p.ModelCall | p.RemoteCall, keep: Callable[[Any], Any]
    ) -> Callable[[Any], Awaitable[None]]:
        """Keep fragments of an answer, and send them on."""

        async def forward(said: Any) -> None:
            part: Data = {"chunk_of": number, **_lateness()}
            self.add(_with, part, "response", _adk.kept_response, keep(said))
            await call.emit(said)

        return forward

    async def wrap_tool_call(self, call: p.ToolCall, next: p.NextTool, /) -> Any:
        """Keep the arguments of a tool, its result, and what it did to state and actions."""
        number = self._number()
        before = _adk.dump_actions(call.ctx.actions)
        asked = {"tool": call.name, "call_id": call.call_id, "args": json_safe(call.args)}
        self.add(as_it_is, {"tool_call": number, **_place(call), **asked})
        token = _WITHIN.set((self.notes, number))
        with _Ending(self, {"result_of": number}) as end:
            try:
                result = await next(call)
                end["result"] = _adk.dump_result(result)
                return result
            finally:
                _WITHIN.reset(token)
                effects = _changed(before, _adk.dump_actions(call.ctx.actions))
                if wrote := effects.get("state_delta"):
                    effects["state_delta"] = _changed(before.get("state_delta", {}), wrote)
                if effects:
                    end["effects"] = json_safe(effects)


class SpanRecorder(RunRecorder):
    """Records one run, and its spans."""

    def __init__(self, notes: Notes) -> None:
        from adk_fluent.debug._spans_adk import Spans  # noqa: PLC0415  # slow to import, seldom used

        super().__init__(notes)
        self._kept = self.spans = Spans()

    async def wrap_run(self, call: p.RunCall, next: p.NextRun, /) -> p.AgentReply:
        """Keep what begins inside the run."""
        with self._kept.around(time_ns() - int((perf_counter() - self.began) * 1e9)):
            return await next(call)


def run_recorder(notes: Notes) -> p.Middleware:
    """What records one run; what runs within a tool call is part of that."""
    within = _WITHIN.get()
    if within is not None and within[0] is notes:
        return p.Middleware()
    return SpanRecorder(notes) if notes.spans else RunRecorder(notes)


def _with(known: Data, name: str, make: Callable[[Any], Data], kept: Any) -> Data:
    """What is known of something, and what was kept of it as data."""
    return {**known, name: make(kept)}


def _ended(call: Data, end: Data) -> Data:
    made: Data = {**call, **end}
    if "responses" in made:
        made["responses"] = [*map(_adk.kept_response, made["responses"])]
    return made


def _place(call: p.ModelCall | p.RemoteCall | p.ToolCall) -> Data:
    return {"agent": call.agent, "branch": _adk.branch_of(call.ctx) or None}


class _Ending:
    """Notes how a call ends: what a block adds to that, or what it raises."""

    def __init__(self, run: RunRecorder, call: Data, end: Data | None = None) -> None:
        self._run = run
        self._call = call
        self._end: Data = {} if end is None else end

    def __enter__(self) -> Data:
        return self._end

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        end = self._end
        if isinstance(error, asyncio.CancelledError | GeneratorExit):
            end.pop("unsent", None)
            end["cancelled"] = True
        else:
            end |= _lateness()
            if error is not None:
                end["error"] = _adk.dump_error(error)
        self._run.add(_ended, self._call, end)


def _lateness() -> Data:
    """Says of an answer that it came although its call was cancelled."""
    task = asyncio.current_task()
    return {"after_cancel": True} if task is not None and task.cancelling() else {}


def _changed(before: Data, after: Data) -> Data:
    return {key: each for key, each in after.items() if key not in before or each != before[key]}

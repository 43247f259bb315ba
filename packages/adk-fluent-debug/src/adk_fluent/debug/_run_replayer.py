"""Replaying one run: what stands in the place of its models and tools."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import adk_fluent.protocol as p
from adk_fluent.debug import _adk
from adk_fluent.debug._errors import ReplayMismatchError
from adk_fluent.debug._recorded_run import Data, called, check_pipeline, pipeline_data
from adk_fluent.errors import UsageError
from adk_fluent.extend import LOG, REPLAYED, ask_in_place_again, json_safe

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from adk_fluent.debug._recorded_run import Interaction
    from adk_fluent.debug._tape import Tape, Tapes

#: What replays the model call that the code that runs is part of; a request in it is live.
_LIVE: Final[ContextVar[RunReplayer | None]] = ContextVar("adk_fluent_debug_live", default=None)

#: Seconds in which nothing happens, after which a call in a branch that was not recorded is one
#: that nobody cancels.
_STRAY_SECONDS: Final = 1.0


class RunReplayer(p.Middleware):
    """Replays one run.

    Args:
        backend: The `ReplayerBackend` that has the recording.
    """

    at_boundary = True
    adds_tools: Sequence[str] | None = ()

    def __init__(self, backend: Tapes) -> None:
        self._backend = backend
        self._message: Data | None = None
        self._tape: Tape | None = None
        self._ending_run: asyncio.Task[None] | None = None
        self._stopped: ReplayMismatchError | None = None

    def new(self) -> RunReplayer:
        """What replays one run."""
        return RunReplayer(self._backend)

    async def on_user_message(self, ctx: Any, message: Any) -> None:
        """Keep what the user says: it tells which recorded run this is."""
        self._message = _adk.dump_content(message)

    async def wrap_run(self, call: p.RunCall, next: p.NextRun, /) -> p.AgentReply:
        """Take the recorded run that this is, if it is one of this pipeline.

        Raises:
            PipelineMismatchError: It is one of another.
            ReplayMismatchError: A call was not recorded so, whatever the pipeline made of that.
        """
        backend = self._backend
        backend.check_tools(call.root)
        message = self._clean(self._message)
        number, tape = backend.take(message, resumed=call.resumed)
        self._tape = tape
        if call.root is not None:
            try:
                recorded = backend.recording.runs[number].data.get("pipeline")
                check_pipeline(recorded, pipeline_data(call.root))
            except UsageError as error:
                if backend.on_mismatch == "error":
                    raise
                LOG.warning("replay: %s: %s", error.what, error.found)
        token, run = REPLAYED.set(self._expects), asyncio.current_task()
        if backend.cancels and tape.status == "cancelled" and run is not None:
            self._ending_run = asyncio.create_task(self._cancel(run))
        try:
            reply = await next(call)
        except Exception as error:
            if self._stopped is None or self._stopped is error:
                raise
            raise self._stopped from error
        finally:
            REPLAYED.reset(token)
            if self._ending_run is not None:
                self._ending_run.cancel()
            backend.note(number, tape)
        if self._stopped is not None:  # a fallback, or a hook, has made it good
            raise self._stopped
        return reply

    async def turn(self, node: str, path: str, *, partial: bool, made: bool) -> None:
        """Hold an event up until it is its turn."""
        if self._tape is not None:
            await self._tape.turnstile.take_turn("handed", node, path, partial=partial)

    async def branch_ended(self, node: str, path: str, *, decides: bool) -> None:
        """Hold the end of a branch up until it is its turn."""
        if self._tape is not None:
            await self._tape.turnstile.take_turn("end", node, path)

    async def time_is_up(self, node: str, path: str) -> None:
        """Wait until a timeout strikes, as it did."""
        await self._taken().turnstile.take_turn("expired", node, path)

    def expired(self, node: str, path: str) -> None:
        """Note that a timeout has struck."""

    async def on_event(self, ctx: Any, event: p.AgentEvent) -> None:
        """Note that an event is committed, so that what came after it can go on."""
        if self._tape is not None:
            self._tape.turnstile.seen(event)

    async def wrap_model_call(self, call: p.ModelCall, next: p.NextModel, /) -> p.ModelReply:
        """Answer as the model did."""
        token = _LIVE.set(self)
        try:
            return await self._answer(call, next)
        finally:
            _LIVE.reset(token)

    async def wrap_model_request(self, call: p.ModelCall, next: p.NextModel, /) -> p.ModelReply:
        """Answer what a middleware asks a model for itself."""
        return await (next(call) if _LIVE.get() is self else self._answer(call, next))

    async def _answer(self, call: p.ModelCall, next: p.NextModel) -> p.ModelReply:
        taped = await self._find(call, _adk.dump_request(call.request))
        if isinstance(taped, str):
            return p.ModelReply([_adk.empty_response()]) if taped == "skip" else await next(call)
        end = await self._play(taped, _adk.load_response, call.emit if call.stream else None)
        _adk.apply_effects(call.ctx, end.get("effects", {}))
        said = p.ModelReply([_adk.load_response(each) for each in end.get("responses", ())])
        return ask_in_place_again(call, said)

    async def wrap_remote_call(self, call: p.RemoteCall, next: p.NextRemote, /) -> p.RemoteReply:
        """Answer as the agent elsewhere did."""
        taped = await self._find(call, call.asked)
        if isinstance(taped, str):
            return p.RemoteReply([_adk.empty_event(call)]) if taped == "skip" else await next(call)
        load = partial(_adk.load_event, ctx=call.ctx)
        end = await self._play(taped, load, call.emit)
        return p.RemoteReply([load(each) for each in end.get("responses", ())])

    async def wrap_tool_call(self, call: p.ToolCall, next: p.NextTool, /) -> Any:
        """Answer as the tool did, and do to state and actions what it did."""
        taped = await self._find(call, json_safe(call.args))
        if isinstance(taped, str):
            return {} if taped == "skip" else await next(call)
        if self._backend.is_live(call.name):
            async with self._ending(taped):
                return await next(call)
        tape = self._taken()
        tape.skip(taped)
        end = tape.end_of(taped)
        try:
            end = await self._play(taped)
        finally:
            known, now = tape.entries[taped.entry].get("call_id"), call.call_id
            calls = {known: now} if known and now else {}
            _adk.apply_effects(call.ctx, end.get("effects", {}), calls)
        return end.get("result")

    # --- what is on the tape -------------------------------------------------------------------

    async def _find(
        self, call: p.ModelCall | p.RemoteCall | p.ToolCall, asked: Any
    ) -> Interaction | str:
        """The call on the tape that a call is; where there is none, ``"skip"`` or ``"live"``.

        Raises:
            ReplayMismatchError: There is none, and that is an error.
        """
        tape, branch = self._taken(), _adk.branch_of(call.ctx)
        tool = call.name if isinstance(call, p.ToolCall) else None
        what = "tool" if tool else "remote" if isinstance(call, p.RemoteCall) else "model"
        try:
            return tape.find(call.agent, branch, self._clean(asked), f"{what} call", tool)
        except ReplayMismatchError as error:
            ends = self._ending_run is not None and tape.turnstile.is_over
            if (branch or ends) and not error.path:  # it may have been cancelled before
                await tape.turnstile.stray(_STRAY_SECONDS)
            is_live = tool is not None and self._backend.is_live(tool)
            return "live" if is_live else self._heed(error)

    async def _play(
        self,
        taped: Interaction,
        load: Callable[[Data], Any] | None = None,
        emit: Callable[[Any], Awaitable[None]] | None = None,
    ) -> Data:
        """Send the fragments of an answer on, each when it is its turn, and wait for its end.

        Args:
            taped: The call.
            load: Makes a fragment of its data.
            emit: What fragments are sent to, if they are.

        Raises:
            Exception: What was raised instead of an answer.
        """
        tape = self._taken()
        for index in taped.parts:
            entry = tape.entries[index]
            await self._cancelled(taped, entry)
            await tape.turnstile.turn(index)
            if emit is not None and load is not None:
                await emit(load(entry["response"]))
            tape.turnstile.done(index)
        end = tape.end_of(taped)
        async with self._ending(taped):
            await self._cancelled(taped, end)
        if (error := end.get("error")) is not None:
            raise _adk.load_error(error)
        return end

    @asynccontextmanager
    async def _ending(self, taped: Interaction) -> AsyncGenerator[None]:
        """Wait for the turn of an answer, when a block has done what comes before it."""
        turnstile, end = self._taken().turnstile, taped.end
        try:
            yield
            if end is not None:
                await turnstile.turn(end)
        finally:
            if end is not None:
                turnstile.done(end)

    async def _cancelled(self, taped: Interaction, entry: Data) -> None:
        """Wait to be cancelled, if that is how it was; and go on then, if that is how it was, too.

        Raises:
            ReplayMismatchError: Nobody cancels it.
        """
        if not (entry.get("cancelled") or entry.get("after_cancel")):
            return
        task = asyncio.current_task()
        if entry.get("after_cancel") and task is not None and task.cancelling():
            return
        try:
            await self._taken().turnstile.quiet()
        except asyncio.CancelledError:
            if entry.get("cancelled"):
                raise
            return
        raise ReplayMismatchError(
            f"replay: {called(taped)}: this call was cancelled in the recording,"
            " and now nobody cancels it",
            agent=taped.agent_name,
            found="nothing has happened for a long time",
            help="record again, or give more patience= where functions of yours take long",
        )

    async def _cancel(self, run: asyncio.Task[Any]) -> None:
        """Cancel a run when all that was recorded has happened, as somebody did then."""
        turnstile = self._taken().turnstile
        await turnstile.settled()
        if not turnstile.open:  # or it is another run than the one that was cancelled
            run.cancel()

    def _expects(self, call: p.ModelCall) -> bool:
        return self._taken().expects(call.agent, self._clean(_adk.dump_request(call.request)))

    def _taken(self) -> Tape:
        if self._tape is None:  # a run whose beginning another middleware has answered
            _, self._tape = self._backend.take(self._message, resumed=False)
        return self._tape

    def _heed(self, error: ReplayMismatchError) -> str:
        """What to do about a call that was not recorded.

        Raises:
            ReplayMismatchError: It is an error.
        """
        self._backend.missed += 1
        mode = self._backend.on_mismatch
        self._taken().turnstile.let_go()
        if mode == "error":
            self._stopped = self._stopped or error
            raise self._stopped
        LOG.warning("%s; %s", error.what, "it is skipped" if mode == "skip" else "it is done live")
        return mode

    def _clean(self, data: Any) -> Any:
        redaction = self._backend.redaction
        return redaction.scrub(data, redaction.secrets(data))

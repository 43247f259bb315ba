"""Recording runs: what is kept while they go on, and what becomes of it afterwards."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from adk_fluent.debug._recording import LEFT_OUT, RecordedRun, Recording
from adk_fluent.debug._redaction import Redact, Redaction
from adk_fluent.errors import UsageError
from adk_fluent.extend import json_safe, middleware_everywhere
from adk_fluent.ir import content_hash, walk
from adk_fluent.protocol import (
    Middleware,
    MiddlewareDesc,
    Sink,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from adk_fluent.ir import Node
    from adk_fluent.protocol import (
        AgentEvent,
        AgentReply,
        ModelCall,
        ModelReply,
        NextModel,
        NextRun,
        NextTool,
        RunCall,
        ToolCall,
    )

Data = dict[str, Any]

#: The tool call that the code that runs is part of, with the recorder that has it.
_WITHIN: Final[ContextVar[tuple[Recorder, int] | None]] = ContextVar(
    "adk_fluent_debug_within", default=None
)
_PACKAGES: Final = ("adk-fluent-core", "adk-fluent-debug", "google-adk", "google-genai")
#: Events that say nothing but where a run stands.
_BOOKKEEPING: Final = frozenset({"journal", "claim"})


class Recorder(Middleware):
    """Records runs: every model call, tool call and event, and state.

    ::

        with Recorder() as recorder:
            await pipeline.run("Where is order A1?")
        recorder.save("recordings/order.json")

    In a block, every run of a pipeline that is compiled there is recorded, and builders compile
    when they run. As a middleware, ``pipeline.run(..., middleware=[recorder])`` records that run.
    It stands inside all other middlewares: what is recorded is what models and tools really got.

    Credentials are taken out before anything is written: under their keys, wherever the same value
    recurs, and in prose. Until then everything recorded is held in memory.

    Live (bidirectional) runs have no model calls that could be recorded: their events are.

    Args:
        capture_content: Record prompts, answers, arguments and results. Without them, what remains
            is who called what, when, how long, and at which cost; it cannot be replayed.
        capture_state: Record session state at the start of each run, on which
            `Recording.state_at` rests; what events write is recorded in either case.
        redact: What is taken out beside credentials: a function of plain data that returns it
            changed, or an object with such a ``redact``, as a `Redactor` is.

    Raises:
        UsageError: An argument is of the wrong type.
    """

    at_boundary = True

    def __init__(
        self,
        capture_content: bool = True,
        capture_state: bool = True,
        redact: Redact | None = None,
    ) -> None:
        for name, value in (("capture_content", capture_content), ("capture_state", capture_state)):
            if not isinstance(value, bool):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers may be untyped
                raise UsageError(f"{name}= takes True or False", found=type(value).__name__)
        self.capture_content: bool = capture_content
        self.capture_state: bool = capture_state
        self.redaction: Redaction = Redaction(redact)
        self._runs: list[RunRecorder] = []
        self._blocks: list[AbstractContextManager[None]] = []
        self._built: tuple[tuple[Any, ...], Recording] | None = None

    def __enter__(self) -> Self:
        """Record every run of a pipeline that is compiled in this block."""
        block = middleware_everywhere(self)
        block.__enter__()
        self._blocks.append(block)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Record no further runs."""
        self._blocks.pop().__exit__(kind, error, trace)

    def new(self) -> Any:
        """What records one run; runs that a recorded tool starts are part of its call."""
        within = _WITHIN.get()
        if within is not None and within[0] is self:
            return Middleware()
        return RunRecorder(self)

    def begun(self, run: RunRecorder) -> None:
        """Take in a run that has begun."""
        self._runs.append(run)

    def knows(self, session_id: str) -> bool:
        """Whether it has recorded an earlier run of a session."""
        return any(each.session_id == session_id for each in self._runs)

    @property
    def recording(self) -> Recording:
        """What was recorded so far."""
        mark = tuple((len(each.tape), each.status) for each in self._runs)
        if self._built is None or self._built[0] != mark:
            self._built = (mark, self._build())
        return self._built[1]

    def get_recording(self) -> Recording:
        """The same as `recording`."""
        return self.recording

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what was recorded to a file; see `Recording.save`.

        Raises:
            RecordingFileError: The file cannot be written.
            UsageError: Nothing was recorded.
        """
        if not self._runs:
            raise UsageError(
                "there is nothing to save: no run was recorded",
                help="run something in `with recorder:`, or with middleware=[recorder]",
            )
        self.recording.save(path)

    def _scrubbed(self, secrets: set[str], part: Any) -> Any:
        return self.redaction.scrub(part, secrets)

    def _build(self) -> Recording:
        raw = [each.data() for each in self._runs]
        secrets: set[str] = set()
        for run in raw:
            for part in _payloads(run):
                secrets |= self.redaction.secrets(part)
        runs: list[RecordedRun] = []
        for run in raw:
            clean = _mapped(run, partial(self._scrubbed, secrets))
            runs.append(RecordedRun(clean if self.capture_content else _without_content(clean)))
        metadata: Data = {
            "recorded_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": _versions(),
            "capture_content": self.capture_content,
            "capture_state": self.capture_state,
        }
        return Recording(runs, metadata)


class RunRecorder(Middleware):
    """Records one run.

    Args:
        recorder: Whose run it is.

    Attributes:
        tape: What happened, in order; requests are not yet data.
        status: How the run ended.
        session_id: The session it runs in.
    """

    at_boundary = True

    def __init__(self, recorder: Recorder) -> None:
        self.tape: list[Data] = []
        self.status: str = ""
        self.session_id: str = ""
        self._recorder = recorder
        self._began = 0.0
        self._count = 0
        self._message: Any = None
        self._head: Data | None = None
        self._root: Node | None = None
        self._error: Data | None = None

    # --- the run -------------------------------------------------------------------------------

    async def on_user_message(self, ctx: Any, message: Any) -> None:
        """Keep what the user says, before any other middleware has changed it."""
        self._message = message.model_copy(deep=True)

    async def wrap_run(self, call: RunCall, next: NextRun, /) -> AgentReply:
        """Note how the run ends."""
        self._root = call.root
        self._begin(call.ctx, resumed=call.resumed)
        try:
            reply = await next(call)
        except BaseException as error:
            from adk_fluent.debug._adk import dump_error  # noqa: PLC0415  # ADK, when it is used

            self.status = "failed" if isinstance(error, Exception) else "cancelled"
            self._error = dump_error(error)
            raise
        self.status = "waiting" if reply.paused else "completed"
        return reply

    async def on_event(self, ctx: Any, event: AgentEvent) -> None:
        """Keep an event."""
        if event.metadata.get("why") in _BOOKKEEPING and event.content is None:
            return
        self._begin(ctx)
        wrote = {key: each for key, each in event.state_delta.items() if _is_kept(key)}
        kept = replace(event, state_delta=json_safe(wrote), raw=None)
        self._add({"event": _Later(_event_data, kept)})

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
        self._recorder.begun(self)

    def _add(self, entry: Data) -> None:
        entry["t"] = round((time.perf_counter() - self._began) * 1000, 3)
        within = _WITHIN.get()
        if within is not None and within[0] is self._recorder:
            entry["within"] = within[1]
        self.tape.append(entry)

    def _number(self) -> int:
        self._count += 1
        return self._count - 1

    # --- calls ---------------------------------------------------------------------------------

    async def wrap_model_call(self, call: ModelCall, next: NextModel, /) -> ModelReply:
        """Keep a request, the fragments of its answer, and how it ends."""
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

        try:
            reply = await next(replace(call, sink=Sink(forward, call.emitted)))
        except BaseException as error:
            self._add({"reply_of": number, **_how(error)})
            raise
        responses = _Later(_all_of, [_adk.keep_response(each) for each in reply.responses])
        self._add({"reply_of": number, **_is_late(), "responses": responses})
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
        made["tape"] = [_entry(each) for each in self.tape]
        return made


class _Later(NamedTuple):
    """What becomes data when somebody wants to see it: `make` of `what`, which nobody changes."""

    make: Callable[[Any], Any]
    what: Any


def _all_of(texts: Sequence[str]) -> list[Any]:
    return [json.loads(each) for each in texts]


def _event_data(event: AgentEvent) -> Data:
    return event.to_dict()


def _entry(entry: Data) -> Data:
    """An entry of a tape as data; the time first."""
    made: Data = {"t": entry["t"]}
    for key, value in entry.items():
        if isinstance(value, _Later):
            made[key] = value.make(value.what)
        elif value is not None or key == "result":
            made[key] = value
    return made


def pipeline_data(root: Node) -> Data:
    """What a pipeline is told by: its hash, and the name, kind and hash of each node."""
    nodes = [[each.name, type(each).__name__, content_hash(each)[:16]] for each in walk(root)]
    return {"hash": content_hash(root), "nodes": nodes}


def _place(ctx: Any, agent: str) -> Data:
    made: Data = {"agent": agent}
    branch = branch_of(ctx)
    if branch:
        made["branch"] = branch
    return made


def branch_of(ctx: Any) -> str | None:
    """ADK's branch in which a call is made."""
    # both versions keep it there; 1.x has no other way to it
    return getattr(getattr(ctx, "_invocation_context", ctx), "branch", None)


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


# --- what is taken out ---------------------------------------------------------------------------

#: What of an entry, and of a run, may hold what nobody may see; the rest is ours.
_OF_ENTRIES: Final = ("request", "response", "responses", "args", "result", "effects", "error")
_OF_RUNS: Final = ("message", "state", "history", "answers", "error")
_OF_EVENTS: Final = frozenset(
    {"author", "branch", "path", "node", "attempt", "id", "invocation_id", "timestamp", "usage"}
)


def _payloads(run: Mapping[str, Any]) -> list[Any]:
    found: list[Any] = []

    def keep(part: Any) -> Any:
        found.append(part)
        return part

    _mapped(run, keep)
    return found


def _mapped(run: Mapping[str, Any], change: Any) -> Data:
    """A run with what is not ours in it changed."""
    made = {key: change(each) if key in _OF_RUNS else each for key, each in run.items()}
    made["tape"] = [_mapped_entry(entry, change) for entry in run["tape"]]
    return made


def _mapped_entry(entry: Data, change: Any) -> Data:
    if "event" in entry:
        event: Data = entry["event"]
        theirs = change({key: each for key, each in event.items() if key not in _OF_EVENTS})
        ours = {key: each for key, each in event.items() if key in _OF_EVENTS}
        return {**entry, "event": {**ours, **theirs}}
    return {key: change(each) if key in _OF_ENTRIES else each for key, each in entry.items()}


def _without_content(run: Data) -> Data:
    """A run with nothing in it that anybody has said, or written to state."""
    made = {key: each for key, each in run.items() if key not in _OF_RUNS}
    tape: list[Data] = []
    for entry in run["tape"]:
        kept = {key: each for key, each in entry.items() if key not in (*_OF_ENTRIES, "event")}
        if "responses" in entry:
            kept["responses"] = [_figures(each) for each in entry["responses"]]
        if "response" in entry:
            kept["response"] = {"partial": True}
        if "error" in entry:
            kept["error"] = {"type": entry["error"].get("type", ""), "message": LEFT_OUT}
        if "event" in entry:
            kept["event"] = _bare_event(entry["event"])
        tape.append(kept)
    made["tape"] = tape
    return made


def _figures(response: Data) -> Data:
    names = ("usage_metadata", "finish_reason", "model_version", "error_code")
    return {key: response[key] for key in names if key in response}


def _bare_event(event: Data) -> Data:
    names = (
        *(*_OF_EVENTS, "is_final", "is_partial", "transfer_to", "escalate", "discarded"),
        *("end_of_agent", "artifact_delta"),
    )
    made = {key: each for key, each in event.items() if key in names}
    if "state_delta" in event:
        made["state_delta"] = dict.fromkeys(event["state_delta"], LEFT_OUT)
    for name in ("tool_calls", "tool_responses"):
        if name in event:
            kept = ("tool_name", "call_id")
            made[name] = [{key: each[key] for key in kept if key in each} for each in event[name]]
    return made


def _versions() -> Data:
    made: Data = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            made[name] = version(name)
    return made


#: `Recorder` by its short name.
recorder = Recorder

DESC: Final = MiddlewareDesc(
    "recorder",
    "Records runs, to be replayed without a model or a tool.",
    Recorder,
    {
        "type": "object",
        "properties": {
            "capture_content": {"type": "boolean", "default": True},
            "capture_state": {"type": "boolean", "default": True},
        },
        "additionalProperties": False,
    },
)

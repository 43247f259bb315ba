"""Runs calls of segments on ADK: from where the run's session stands to the next boundary."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Mapping
from contextlib import aclosing, nullcontext, suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import uuid4

from google.genai import types
from opentelemetry import context as otel
from opentelemetry import propagate, trace

from adk_fluent.backends.adk import ADKBackend, to_content
from adk_fluent.distributed._artifacts_adk import RunArtifacts
from adk_fluent.distributed._call import SegmentResult
from adk_fluent.distributed._codecs import codecs_of, pack, shown, state_fault, unpack
from adk_fluent.distributed._errors import BoundaryError
from adk_fluent.distributed._memory_adk import MemorySessions
from adk_fluent.distributed._segments import check_hosting, durable, node_of, split
from adk_fluent.distributed._store_adk import RunSessions
from adk_fluent.errors import AdkFluentError, SessionError, UsageError, error_parts
from adk_fluent.extend import DURABLE_RUN, DurableRun, describe, storage_fault
from adk_fluent.ir import content_hash
from adk_fluent.protocol import Resume, collect_notes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from contextlib import AbstractAsyncContextManager

    from google.adk.artifacts import BaseArtifactService
    from google.adk.sessions import BaseSessionService

    from adk_fluent.backends.adk import Compiled, Recalled
    from adk_fluent.distributed._call import SegmentCall, Status
    from adk_fluent.distributed._codecs import Codec
    from adk_fluent.distributed._database import Database
    from adk_fluent.distributed._segments import Pipeline, SegmentPlan
    from adk_fluent.ir import ExecutionConfig, Node
    from adk_fluent.protocol import RunResult

#: Bytes of JSON that a message, or the state that a run begins with, may have.
_LARGEST: Final = 8_000_000
#: Beside W3C's names: the id of a trace that the run shall be, where its caller has none.
_TRACE: Final = "adk_fluent_run"
_SPAN: Final = (1 << 64) - 1
_AGAIN: Final = 0.5  # seconds between two looks at a call that somebody else runs


class _TakenError(Exception):
    """Somebody else runs the call."""

    def __init__(self, error: SessionError) -> None:
        super().__init__(str(error))
        self.error = error


class Station:
    """Runs the segments of one pipeline in this process.

    Args:
        pipeline: The pipeline.
        config: How it runs.
        sessions: Where state and transcript of runs are; shared by all that serve its segments.
        artifacts: Where artifacts are.
        url: The database of the engine; "" for one in memory.

    Attributes:
        source: The pipeline as it was given.
        plan: The pipeline's segments.

    Raises:
        BoundaryError: The pipeline cannot be cut, or a segment not be hosted, or what a codec
            needs is not installed.
    """

    def __init__(
        self,
        pipeline: Pipeline | Node,
        config: ExecutionConfig | None,
        sessions: BaseSessionService,
        artifacts: BaseArtifactService | None = None,
        *,
        url: str = "",
    ) -> None:
        self.source: Node = node_of(pipeline)
        self.plan: SegmentPlan = split(self.source)
        for each in self.plan.segments:
            check_hosting(each, url=url)
        self._codecs: tuple[Codec, ...] = codecs_of(self.plan.codecs)
        self._config = durable(config, self.plan.node)
        self._backend = ADKBackend(sessions, artifact_service=artifacts)
        self._store = sessions if isinstance(sessions, RunSessions) else None
        if self._store is not None:
            self._store.codecs = self._codecs
        elif isinstance(sessions, MemorySessions):  # shared by all pipelines of an engine
            sessions.codecs = (*sessions.codecs, *self._codecs)
        self._compiled: dict[tuple[str, tuple[str, ...]], Compiled] = {}

    def refuse_other(self, other: Station) -> None:
        """Refuse a pipeline that has these steps and says something else: this one would run.

        Raises:
            BoundaryError: It does.
        """
        mine, its = self.plan, other.plan
        if self is other or (
            mine.segments == its.segments and content_hash(mine.node) == content_hash(its.node)
        ):
            return
        raise BoundaryError(
            f"this engine has another pipeline with the steps of {its.name!r}",
            node=its.node,
            found="other settings, such as instructions, models, middlewares or boundaries",
            help="give one of them another name: .named(...); or use an engine of its own",
        )

    def compiled(self, segment: str, beside: Collection[str] = ()) -> Compiled:
        """The compiled form of a segment, beside whose steps those of others are done."""
        parts = tuple(each.part for each in self.plan.segments if each.name in beside)
        key = (segment, parts)
        if key not in self._compiled:
            part = self.plan[segment].part
            compiled = self._backend.compile_segment(
                self.plan.node, self._config, segment=part, beside=parts
            )
            with warnings.catch_warnings():  # of ADK, about what we have chosen and tested
                warnings.filterwarnings("ignore", r"\[EXPERIMENTAL\] ResumabilityConfig")
                _ = compiled.app
            self._compiled[key] = compiled
        return self._compiled[key]

    async def advance(
        self,
        call: SegmentCall,
        is_at_work: Callable[[str], bool] | None = None,
        *,
        beside: Collection[str] = (),
        is_left: Callable[[], bool] = bool,
    ) -> SegmentResult:
        """Run a segment from where the run stands until it ends, waits, or leaves the segment.

        Called again after a crash, it goes on where the run stands, and does nothing where the
        segment was done before. An error of a step is part of the result. While somebody else runs
        the call, this waits.

        Args:
            call: The call.
            is_at_work: Whether the owner of a run, as core names it, is alive; None asks nobody.
            beside: Segments whose steps are done here at once, where they stand in branches or
                items that run at the same time.
            is_left: Whether the call is left to another process, should it be cancelled now.
        """
        where: Any = {"user_id": call.user_id, "session_id": call.run_id}
        compiled = self.compiled(call.segment, beside)
        run = DurableRun(call.run_id, self.plan.name, call.number, is_left)
        while True:
            try:
                async with self._at_work(**where):
                    try:
                        return await self._advance(compiled, call, where, run)
                    except _TakenError as taken:
                        if is_at_work is None:
                            return SegmentResult("failed", call.segment, error=_told(taken.error))
                        owner = taken.error.taken_by  # or words, where nobody can tell who
                        if "/" in owner and not await asyncio.to_thread(is_at_work, owner):
                            with suppress(SessionError):  # somebody else does it in the same moment
                                await self._backend.release(compiled, **where)
                            continue
            except AdkFluentError as error:  # of what a session holds
                return SegmentResult("failed", call.segment, error=_told(error))
            await asyncio.sleep(_AGAIN)

    async def _advance(
        self, compiled: Compiled, call: SegmentCall, where: Any, run: DurableRun
    ) -> SegmentResult:
        here = DURABLE_RUN.set(run)
        traced = otel.attach(_traced(call.trace))
        error: dict[str, str] | None = None
        notes: list[Mapping[str, Any]] = []
        try:
            with collect_notes(call.run_id) as notes:
                await self._run(compiled, call, where)
        except SessionError as raised:
            if raised.taken_by:
                raise _TakenError(raised) from raised
            error = _told(raised)
        except (Exception, SystemExit) as raised:  # noqa: BLE001  # a step's; an exit would end all
            error = _told(raised)
        finally:
            otel.detach(traced)
            DURABLE_RUN.reset(here)
        try:
            recalled = await self._backend.recall(compiled, **where)
        except AdkFluentError as raised:
            result = SegmentResult("failed", call.segment, error=error or _told(raised))
        else:
            result = self._result(call, recalled, error)
        return replace(result, notes=[dict(each) for each in notes])

    async def recall(
        self, run_id: str, user_id: str, notes: Iterable[Mapping[str, Any]]
    ) -> RunResult:
        """What a run has given so far, and what middlewares noted in its calls."""
        compiled = self.compiled(self.plan.name)
        recalled = await self._backend.recall(compiled, user_id=user_id, session_id=run_id)
        result = recalled.result()
        result.notes += notes
        return result

    def state_of(self, state: Any) -> dict[str, Any]:
        """The state that a run starts with, as it crosses.

        Raises:
            UsageError: Neither JSON nor a codec carries it, a key is of one invocation only, or it
                is too large.
        """
        given: dict[Any, Any] = {} if state is None else {None: state}
        if isinstance(state, Mapping):
            given = {**cast("Mapping[Any, Any]", state)}
        if not all(isinstance(key, str) for key in given):
            raise UsageError(
                "state= is a mapping with text as keys",
                found=describe(state),
                help='such as {"order": "A1"}',
            )
        for key in given:
            if key.startswith("temp:"):
                raise UsageError(
                    f"state key {key!r} cannot cross a boundary",
                    found="a `temp:` key, which ends with the process",
                    help="use a key without the prefix",
                )
        for key, value in given.items():
            if fault := storage_fault({key: None}) or state_fault(value, self._codecs):
                raise UsageError(
                    f"state[{key!r}]{fault.path} {fault.says}, so it cannot cross a boundary",
                    help=fault.help,
                )
        packed = pack(given, self._codecs)
        _check_size("state", packed)
        return json.loads(json.dumps(packed))

    async def message_of(
        self, message: Any, run_id: str, user_id: str
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """What the user says as JSON data, and the names of large bytes, which are kept beside it.

        Raises:
            UsageError: It is no message, or too large to cross.
            SessionStoreError: The bytes cannot be kept.
        """
        content, names = to_content(message), dict[str, str]()
        if self._store is not None:
            key = (self._config.app_name, user_id, run_id)
            content, names = await self._store.put_content(key, content)
        data = content.model_dump(mode="json", exclude_none=True)
        _check_size("the message", data)
        return data, names

    async def _message(self, call: SegmentCall) -> types.Content:
        content = types.Content.model_validate(call.message)
        if self._store is None or not call.bytes:
            return content
        key = (self._config.app_name, call.user_id, call.run_id)
        return await self._store.content(key, content, call.bytes)

    def _at_work(self, **where: str) -> AbstractAsyncContextManager[None]:
        if self._store is None:
            return nullcontext()
        return self._store.at_work(self._config.app_name, **where)

    async def _run(self, compiled: Compiled, call: SegmentCall, where: Any) -> None:
        if self._store is not None:  # what somebody wrote and died is not said twice
            await self._store.drop_unheard((self._config.app_name, call.user_id, call.run_id))
        try:
            recalled = await self._backend.recall(compiled, **where)
        except SessionError:  # there is no session yet
            recalled = None
        entry = None if recalled is None else recalled.entry
        if recalled is None or not recalled.is_begun:
            message = await self._message(call)
            await self._end(compiled, message, state=_unpacked(call.state), **where)
        elif entry is not None:
            answers = [each for each in call.given() if each.id in entry.waits]
            if answers or entry.status != "waiting":
                await self._end(compiled, Resume(tuple(answers)), **where)

    async def _end(self, compiled: Compiled, prompt: Any, **options: Any) -> None:
        """Run to the end, so that what is noted until then is in reach also where it fails."""
        async with aclosing(self._backend.stream(compiled, prompt, **options)) as events:
            async for _ in events:
                pass

    def _result(
        self, call: SegmentCall, recalled: Recalled, error: dict[str, str] | None
    ) -> SegmentResult:
        entry, segment = recalled.entry, call.segment
        if error is None and entry is not None and entry.status == "boundary":
            return SegmentResult("running", segment, next=self.plan.named(entry.segments[0]))
        result = recalled.result()
        status: Status = "waiting" if entry is not None else "completed"
        if error is not None:
            refused = call.answers and entry is not None and call.answers.keys() <= {*entry.waits}
            status = "waiting" if refused else "failed"  # an answer that was none loses nothing
        if status == "completed" and any(e.metadata.get("why") == "refused" for e in result):
            status = "rejected"
        return SegmentResult(
            status,
            segment,
            answer=result.text,
            state=shown(result.state, self._codecs),
            pending=[asdict(each) for each in result.pending] if status == "waiting" else [],
            error=error,
        )


def _unpacked(state: dict[str, Any]) -> dict[str, Any] | None:
    return {key: unpack(value) for key, value in state.items()} or None


def _check_size(what: str, data: Any) -> None:
    size = len(json.dumps(data))
    if size > _LARGEST:
        raise UsageError(
            f"{what} is too large to cross a boundary",
            found=f"{size:,} bytes as JSON, and at most {_LARGEST:,} are kept with each call",
            help="keep what is large elsewhere, such as in a file, and send where it is",
        )


def trace_now() -> dict[str, str]:
    """The trace context of the caller; without one, the id of a trace that the run shall be."""
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    if not trace.get_current_span().get_span_context().is_valid:
        carrier[_TRACE] = uuid4().hex
    return carrier


def _traced(carried: Mapping[str, str]) -> otel.Context:
    context = propagate.extract(dict(carried)) if carried else otel.get_current()
    return _begun(int(carried[_TRACE], 16), context) if _TRACE in carried else context


def _begun(id: int, context: otel.Context) -> otel.Context:
    """A trace that nobody has begun, sampled as this process samples what it begins itself."""
    sampler: Any = getattr(trace.get_tracer_provider(), "sampler", None)
    sampled = sampler is None or sampler.should_sample(None, id, _TRACE).decision.is_sampled()
    parent = trace.SpanContext(
        id, id & _SPAN or 1, is_remote=True, trace_flags=trace.TraceFlags(int(sampled))
    )
    return trace.set_span_in_context(trace.NonRecordingSpan(parent), context)


def _told(error: BaseException) -> dict[str, str]:
    return {name: str(each) for name, each in error_parts(error).items()}


def stores(database: Database) -> tuple[RunSessions, RunArtifacts]:
    """Sessions and artifacts in a database."""
    return RunSessions(database), RunArtifacts(database)

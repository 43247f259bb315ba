"""Runs a pipeline for each task, and tells of it in the words of the protocol."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, Final, TypedDict
from weakref import WeakSet, WeakValueDictionary

from a2a.server.agent_execution import AgentExecutor
from a2a.server.cluster.task_store import ConcurrentTaskModificationError
from a2a.server.tasks import TaskUpdater
from a2a.types import ListTasksRequest, Task, TaskState
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions

from adk_fluent.a2a._asking import REFUSED
from adk_fluent.backends.adk import ADKBackend
from adk_fluent.errors import SessionError, UsageError
from adk_fluent.extend import LOG, answer_fault
from adk_fluent.ir import AgentNode, AppNode, MiddlewareNode, RouteNode, SequenceNode, TimeoutNode
from adk_fluent.protocol import Resume, RunResult, compose_answer, kept_events
from adk_fluent.serve._handler import ASKED, NEW, TAKEN
from adk_fluent.serve._logs import log_failure
from adk_fluent.serve._parts_adk import data_part, file_parts, heard, prompt_of, text_part
from adk_fluent.serve._questions import answers_in, question_parts
from adk_fluent.serve._tasks import OVER, WAITING, WORKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from a2a.server.agent_execution import RequestContext
    from a2a.server.context import ServerCallContext
    from a2a.server.events import EventQueue
    from a2a.types import Message, Part
    from google.adk.sessions.base_session_service import BaseSessionService

    from adk_fluent.ir import ExecutionConfig, Node
    from adk_fluent.protocol import AgentEvent, Answer, Pending, PendingKind
    from adk_fluent.serve._handler import Taken
    from adk_fluent.serve._keys import Keys

_SAVED_SECONDS: Final = 5.0
_ANSWER: Final = "answer"  # the artifact's id
_PAUSE: Final = 0.05  # seconds between two pieces of a streamed answer, at least
# All that a client is told of a failure; the log has the rest, by the id of the task.
_FAILED: Final = "The agent failed."
_STOPPED: Final = "The server was stopped."
_UNANSWERABLE: Final = "The agent waits for something that cannot be answered here."
_BUSY: Final = "Another task of this context waits for an answer."
_GONE: Final = "What the task waited for is not there any more."


class Where(TypedDict):
    """The session of a context.

    Attributes:
        user_id: The principal.
        session_id: The session.
    """

    user_id: str
    session_id: str


class _LostError(Exception):
    """A task that was taken here is another server's."""


class PipelineExecutor(AgentExecutor):
    """Runs a pipeline for the tasks of the SDK's request handler.

    A context of the protocol is one session of ADK for each principal, of an id that nobody is
    told. Its tasks run one after the other.

    Args:
        node: The pipeline.
        config: How it runs.
        sessions: Where sessions are kept.
        tasks: Where tasks are kept.
        inputs: The state that data parts may write.
        outputs: The state that is told with an answer.
        answers: The kinds of questions that clients may answer.

    Raises:
        BuildError: The pipeline cannot be compiled.
    """

    def __init__(
        self,
        node: Node,
        config: ExecutionConfig | None,
        *,
        sessions: BaseSessionService,
        tasks: Any,
        inputs: Keys,
        outputs: Keys,
        answers: Collection[PendingKind],
    ) -> None:
        self._backend = ADKBackend(sessions)
        self._compiled = self._backend.compile(node, config)
        self._sessions = sessions
        self._tasks = tasks
        self._inputs = inputs
        self._outputs = outputs
        self._answers = answers
        self._speakers = frozenset(_speakers(node))
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._running: dict[asyncio.Task[Any], RequestContext] = {}
        self._told: WeakSet[EventQueue] = WeakSet()
        self._running_of: Counter[str] = Counter()
        self._idle = asyncio.Event()
        self._idle.set()
        self.stopping = False

    @property
    def app_name(self) -> str:
        """The app whose sessions these are."""
        return self._compiled.config.app_name

    @property
    def running(self) -> int:
        """How many tasks run now."""
        return len(self._running)

    def running_of(self, principal: str) -> int:
        """How many tasks of a principal run now."""
        return self._running_of[principal]

    async def drain(self, seconds: float) -> None:
        """Let the tasks that run come to their end, and fail those that do not in time."""
        self.stopping = True
        left = list(self._running.values())
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            running = list(self._running)
            for each in running:
                each.cancel()
            await asyncio.gather(*running, return_exceptions=True)
        with suppress(TimeoutError):  # the SDK saves what it is told a little later
            async with asyncio.timeout(_SAVED_SECONDS):
                while left:
                    left = [each for each in left if await self._is_working(each)]
                    await asyncio.sleep(0.01 if left else 0)

    async def _is_working(self, context: RequestContext) -> bool:
        stored = await self._tasks.get(context.task_id, context.call_context)
        task = getattr(stored, "task", stored)
        return task is not None and task.status.state in WORKING

    # --- the SDK's interface -------------------------------------------------------------------

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Run the pipeline on a message, and report what comes of it."""
        here = asyncio.current_task()
        assert here is not None  # noqa: S101  # it is a coroutine
        principal = context.call_context.user.user_name
        self._running[here] = context
        self._running_of[principal] += 1
        self._idle.clear()
        turn = _Turn(self, context, event_queue)
        try:
            await self._begin(context.call_context)
            await turn.run()
        except _LostError:
            raise asyncio.CancelledError from None  # the SDK lets go of it, and writes nothing
        except asyncio.CancelledError:
            if not self.stopping:
                raise  # the client cancelled, and the task's state says so
            await turn.end(TaskState.TASK_STATE_FAILED, _STOPPED)
        except Exception as error:  # noqa: BLE001  # the log has it, and the client an error
            log_failure(f"task {context.task_id} of a served pipeline failed", error)
            await turn.end(TaskState.TASK_STATE_FAILED, _FAILED)
        finally:
            del self._running[here]
            self._running_of[principal] -= 1
            if not self._running_of[principal]:
                del self._running_of[principal]
            if not self._running:
                self._idle.set()

    async def _begin(self, context: ServerCallContext) -> None:
        """Make a new task one that works; of servers with one database, one can do so.

        Raises:
            _LostError: Another one has taken it up, or it was cancelled.
        """
        taken: Taken | None = context.state.get(TAKEN)
        if taken is None or taken.version.is_missing:  # there is but one server
            return
        task = Task()
        task.CopyFrom(taken.task)
        task.status.state = TaskState.TASK_STATE_WORKING
        task.status.timestamp.GetCurrentTime()
        try:
            await self._tasks.save(
                task, event=None, prev=taken.task, prev_version=taken.version, context=context
            )
        except ConcurrentTaskModificationError:
            taken.is_lost = True
            raise _LostError from None

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Say that a task is cancelled; the SDK then cancels what runs."""
        assert context.task_id is not None  # noqa: S101  # the SDK has found the task
        updater = TaskUpdater(event_queue, context.task_id, context.context_id or "")
        if self.ends(event_queue):
            await updater.cancel()

    def ends(self, queue: EventQueue) -> bool:
        """Whether a task may still be told to be over: what it was told first stays so."""
        first = queue not in self._told
        self._told.add(queue)
        return first

    # --- runs ----------------------------------------------------------------------------------

    def lock(self, session_id: str) -> asyncio.Lock:
        """What the tasks of one session take turns by."""
        found = self._locks.get(session_id)
        if found is None:
            found = self._locks[session_id] = asyncio.Lock()
        return found

    def stream(self, prompt: Any, where: Where, state: Mapping[str, Any] | None) -> Any:
        """The events of a run."""
        return self._backend.stream(self._compiled, prompt, state=state, **where)

    async def questions(self, where: Where) -> list[Pending]:
        """The questions that a session waits on; none if it is new."""
        try:
            return await self._backend.pending(self._compiled, **where)
        except SessionError:
            return []

    async def whole(self, where: Where, end: RunResult) -> RunResult:
        """A run that waited, whose end this is, with what it did before."""
        read = await self._backend.recall(self._compiled, **where)
        told = read.result()
        run = (end or told)[-1].run_id if end or told else ""
        return RunResult(event for event in told if event.run_id == run)

    async def free(self, context: RequestContext, where: Where) -> bool:
        """Make a session free for a new task, and return whether it is.

        Where a task waits for an answer it is not. A run that waits for a task that was cancelled
        is taken back.
        """
        if not await self.questions(where):
            return True
        for state in WAITING:
            asked = ListTasksRequest(context_id=context.context_id, status=state, page_size=1)
            if (await self._tasks.list(asked, context.call_context)).tasks:
                return False
        entry = (await self._backend.recall(self._compiled, **where)).entry
        if entry is not None:
            await self._backend.rewind(
                self._compiled, before_invocation_id=entry.invocation_id, **where
            )
        return True

    async def write(self, where: Where, state: Mapping[str, Any]) -> bool:
        """Write inputs to a session; False if there is none yet."""
        session = await self._sessions.get_session(app_name=self.app_name, **where)
        if session is not None and state:
            made = Event(author="user", actions=EventActions(state_delta=dict(state)))
            made.invocation_id = made.id or Event.new_id()
            await self._sessions.append_event(session, made)
        return session is not None

    async def forget(self, owner: str, context: str) -> None:
        """Drop the session of a context whose tasks are gone, unless one uses it now."""
        where = Where(user_id=owner, session_id=session_of(owner, context))
        if where["session_id"] not in self._locks:
            await self._sessions.delete_session(app_name=self.app_name, **where)

    async def outputs(self, where: Where) -> dict[str, Any]:
        """The state that is told with an answer."""
        if not self._outputs.names:
            return {}
        session = await self._sessions.get_session(app_name=self.app_name, **where)
        state = {} if session is None else session.state
        found = {name: state.get(key) for name, key in self._outputs.names.items()}
        return {name: value for name, value in found.items() if value is not None}

    def answerable(self, questions: Iterable[Pending]) -> bool:
        """Whether clients may answer all of these."""
        return all(each.kind in self._answers for each in questions)

    @property
    def inputs(self) -> Keys:
        """The state that data parts may write."""
        return self._inputs

    @property
    def speakers(self) -> Collection[str]:
        """The agents whose words are streamed."""
        return self._speakers


class _Turn:
    """What one message makes of a task."""

    def __init__(
        self, executor: PipelineExecutor, context: RequestContext, queue: EventQueue
    ) -> None:
        assert context.task_id is not None  # noqa: S101  # the SDK has made one
        assert context.message is not None  # noqa: S101  # it is executed for a message
        self._executor = executor
        self._context = context
        self._message: Message = context.message
        self._queue = queue
        self._updater = TaskUpdater(queue, context.task_id, context.context_id or "")
        owner = context.call_context.user.user_name
        self._where = Where(user_id=owner, session_id=session_of(owner, context.context_id or ""))
        self._sent = ""
        self._next = ""
        self._when = 0.0

    async def run(self) -> None:
        """Run the pipeline as the message asks."""
        executor, known = self._executor, self._context.current_task
        said = heard(self._message)
        if known is not None and known.status.state in OVER:
            return  # it was ended by what came before this message
        # the SDK changes a task that it has handed out
        waits = known is not None and known.status.state in WAITING
        asked = "" if known is None else known.status.message.message_id
        if not waits:
            await self._updater.start_work()
        async with executor.lock(self._where["session_id"]):
            if waits:
                questions = await executor.questions(self._where)
                if not questions:
                    await self.end(TaskState.TASK_STATE_FAILED, _GONE)
                elif self._context.call_context.state.get(ASKED) != asked:
                    await self._ask(questions)  # it was sent before this was asked
                else:
                    await self._updater.start_work()  # until here its context is not free
                    await self._resume(answers_in(said, questions), questions)
                return
            parts, state = prompt_of(said, executor.inputs)
            exists = not self._context.call_context.state.get(NEW)
            if exists and not await executor.free(self._context, self._where):
                await self.end(TaskState.TASK_STATE_REJECTED, _BUSY)
                return
            exists = exists and await executor.write(self._where, state)
            await self._follow(parts, None if exists else state)

    async def end(self, state: TaskState, said: str, *, refused: bool = False) -> None:
        """End a task in a state, with a sentence of ours.

        Args:
            state: The state.
            said: The sentence.
            refused: A person has refused, which our own clients tell from other rejections.
        """
        if not self._executor.ends(self._queue):
            return
        message = self._updater.new_agent_message([text_part(said)])
        if refused:
            message.metadata[REFUSED] = True
        await self._updater.update_status(state, message=message)

    async def _resume(self, answers: Sequence[Answer], questions: Sequence[Pending]) -> None:
        asked = {each.id: each for each in questions}
        for each in answers:
            if (fault := answer_fault(asked[each.id], each.value)) is not None:
                await self._ask(questions, f"{fault.what}: {fault.help}")
                return
        try:
            await self._follow(Resume(tuple(answers)), None)
        except (UsageError, SessionError):  # of the answers, or of a step: then none is open
            if not (left := await self._executor.questions(self._where)):
                raise
            await self._ask(left)

    async def _follow(self, prompt: Any, state: Mapping[str, Any] | None) -> None:
        """Run to the end, and report what became of it."""
        events: list[AgentEvent] = []
        async with aclosing(self._executor.stream(prompt, self._where, state)) as stream:
            async for event in stream:
                events.append(event)
                if event.is_partial and event.content and event.author in self._executor.speakers:
                    await self._piece(event.content)
        result = RunResult(event for event in events if not event.is_partial)
        match result.status:
            case "completed":
                if isinstance(prompt, Resume):
                    result = await self._executor.whole(self._where, result)
                await self._complete(result)
            case "waiting":
                await self._ask(result.pending)
            case "rejected":
                await self.end(TaskState.TASK_STATE_REJECTED, result.reason, refused=True)
            case status:
                LOG.warning(
                    "task %s of a served pipeline %s: %s",
                    self._context.task_id,
                    status,
                    result.reason,
                )
                await self.end(TaskState.TASK_STATE_FAILED, _FAILED)

    async def _ask(self, questions: Sequence[Pending], note: str = "") -> None:
        if not self._executor.answerable(questions):
            kinds = ", ".join(each.kind for each in questions)
            LOG.warning("task %s of a served pipeline waits on: %s", self._context.task_id, kinds)
            await self.end(TaskState.TASK_STATE_FAILED, _UNANSWERABLE)
            return
        asked = self._updater.new_agent_message(question_parts(questions, note))
        await self._updater.requires_input(asked)

    # --- the answer ----------------------------------------------------------------------------

    async def _piece(self, text: str) -> None:
        """Stream a piece of the answer; the last one is always kept back for the end."""
        now = asyncio.get_running_loop().time()
        if self._next and now >= self._when:
            await self._send([text_part(self._next)], append=bool(self._sent))
            self._sent, self._next, self._when = self._sent + self._next, "", now + _PAUSE
        self._next += text

    async def _complete(self, result: RunResult) -> None:
        text, parts = result.text, file_parts(_files(result))
        if data := await self._executor.outputs(self._where):
            parts.append(data_part(data))
        if self._sent and text == self._sent + self._next:  # all but the end is there
            await self._send([text_part(self._next), *parts], append=True, last=True)
        elif text or parts:
            await self._send([*([text_part(text)] if text else []), *parts], last=True)
        if self._executor.ends(self._queue):
            await self._updater.complete()

    async def _send(self, parts: list[Part], *, append: bool = False, last: bool = False) -> None:
        await self._updater.add_artifact(parts, artifact_id=_ANSWER, append=append, last_chunk=last)


def session_of(owner: str, context: str) -> str:
    """The id of the session that a principal's context is kept in."""
    return hashlib.sha256(json.dumps([owner, context]).encode()).hexdigest()[:40]


def _files(result: Iterable[AgentEvent]) -> list[Any]:
    """The files of the events that make up the answer."""
    finals = [
        (event.path or "", list(event.raw.content.parts or ()))
        for event in kept_events(list(result))
        if event.is_final and event.raw is not None and event.raw.content is not None
    ]
    if not any(part.inline_data for _, parts in finals for part in parts):
        return []
    chosen = compose_answer((path, str(at)) for at, (path, _) in enumerate(finals)).split("\n\n")
    return [part for at in chosen for part in finals[int(at)][1]]


def _speakers(root: Node) -> Iterable[str]:
    """The agents that can only say what becomes the answer: their words are streamed."""
    todo = [root]
    while todo:
        match todo.pop():
            case AgentNode(name=name):
                yield name
            case SequenceNode(steps=steps) if steps:
                todo.append(steps[-1])
            case RouteNode(branches=branches, default=default):
                todo += [*branches, *([] if default is None else [default])]
            case AppNode(root=below) | MiddlewareNode(body=below) | TimeoutNode(body=below):
                todo.append(below)
            case _:
                pass

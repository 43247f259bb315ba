"""The SDK's request handler, with what it leaves open closed."""

from __future__ import annotations

import asyncio
import functools
from collections import Counter
from contextlib import aclosing, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4
from weakref import WeakValueDictionary

from a2a.server.cluster.task_store import (
    ConcurrentTaskModificationError,
    LegacyTaskStoreAdapter,
    VersionedTaskStore,
)
from a2a.server.cluster.version import TaskVersion
from a2a.server.request_handlers import DefaultRequestHandler, request_handler
from a2a.types import (
    GetTaskRequest,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
    TaskStatusUpdateEvent,
)
from a2a.utils._async_queue_compat import QueueShutDown  # another one on each Python
from a2a.utils.errors import (
    A2AError,
    InternalError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    UnsupportedOperationError,
)
from a2a.utils.input_mode_validator import validate_input_modes
from a2a.utils.task import apply_history_length, validate_history_length

from adk_fluent.serve._logs import log_failure
from adk_fluent.serve._parts_adk import heard, prompt_of
from adk_fluent.serve._push_adk import PRINCIPAL
from adk_fluent.serve._tasks import WORKING, has_taken, task_id_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

    from a2a.server.context import ServerCallContext
    from a2a.types import CancelTaskRequest, Message

    from adk_fluent.serve._keys import Keys
    from adk_fluent.serve._push_adk import Sender


@dataclass(slots=True)
class Notice:
    """What a handler tells the guard of a request.

    Attributes:
        busy: It was refused for now.
    """

    busy: bool = False


@dataclass(slots=True)
class Taken:
    """A new task that a request is to run.

    Attributes:
        task: The task, as it was kept.
        version: Its version in the store.
        is_lost: Another server took it up before this one began.
    """

    task: Task
    version: TaskVersion
    is_lost: bool = False


#: Its methods are wrapped by decorators that tell no types.
_SDK: Final[Any] = DefaultRequestHandler
_validated: Final[Any] = getattr(request_handler, "validate_request_params")  # noqa: B009
#: The key of a call's state that says whether its context is a new one.
NEW: Final = "adk_fluent_new_context"
#: The key of the id of the message that asked what a message to a task can be an answer to.
ASKED: Final = "adk_fluent_asked"
#: The key of the task that a request has taken, a `Taken`.
TAKEN: Final = "adk_fluent_taken"
#: The notice of the request that is being answered.
NOTICE: Final[ContextVar[Notice | None]] = ContextVar("adk_fluent_serve_notice", default=None)
#: How long a task waits for the server that took it, before another may take it up.
_TAKEN: Final = timedelta(seconds=5)
_LOOKS: Final = 100  # at a task that has just ended here, until the SDK has forgotten it
_LOOK_SECONDS: Final = 0.01


class BusyError(A2AError):
    """A message is not taken now; it may be later."""


def _redacted(error: Exception) -> A2AError:
    """An error as the client may see it: its own mistakes, and of ours that there was one."""
    if isinstance(error, A2AError) and not isinstance(error, InternalError):
        return error
    if isinstance(error, QueueShutDown):  # another request ended the task in the same moment
        return UnsupportedOperationError("The task has ended")
    log_failure("a request to a served pipeline failed", error)
    return InternalError("Internal error")


def _unary(method: Callable[..., Any]) -> Any:
    @functools.wraps(method)
    async def call(self: Handler, params: Any, context: Any) -> Any:
        with self.counted(method, context):
            try:
                await self.admit(params, context)
                return await method(self, params, context)
            except Exception as error:  # noqa: BLE001  # told to nobody
                raise _redacted(error) from None

    return call


def _stream(method: Callable[..., Any]) -> Any:
    @functools.wraps(method)
    async def call(self: Handler, params: Any, context: Any) -> AsyncGenerator[Any, None]:
        with self.counted(method, context):
            try:
                await self.admit(params, context)
                async with aclosing(method(self, params, context)) as events:
                    async for event in events:
                        yield event
            except Exception as error:  # noqa: BLE001  # told to nobody
                raise _redacted(error) from None

    return call


class Handler(DefaultRequestHandler):
    """Answers requests: the SDK's own handler, behind checks of messages and before redaction.

    Args:
        parts: Parts of a message, at most.
        longest_id: Characters of a context's id, at most.
        inputs: The state that data parts may write.
        is_busy: Whether no more tasks of a principal can be run, given how many requests are being
            answered, and how many of that principal's.
        sender: Sends push notifications; None sends none.
        options: What the SDK's handler takes.
    """

    def __init__(
        self,
        *,
        parts: int,
        longest_id: int,
        inputs: Keys,
        is_busy: Callable[[str, int, int], bool],
        sender: Sender | None,
        **options: Any,
    ) -> None:
        super().__init__(push_sender=sender, **options)
        store = self.task_store
        versioned = isinstance(store, VersionedTaskStore)
        self._tasks = store if versioned else LegacyTaskStoreAdapter(store)
        self._sender = sender
        self._parts = parts
        self._longest_id = longest_id
        self._inputs = inputs
        self._is_busy = is_busy
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._taken: set[str] = set()
        self._open: Counter[str] = Counter()
        self._quiet = asyncio.Event()
        self._quiet.set()

    @contextmanager
    def counted(self, method: Callable[..., Any], context: ServerCallContext) -> Generator[None]:
        """Count a request that ends when its task does; one that only watches may never end."""
        if method is _SDK.on_subscribe_to_task:
            yield
            return
        principal = context.user.user_name
        self._open[principal] += 1
        self._quiet.clear()
        try:
            yield
        finally:
            self._open[principal] -= 1
            if not self._open[principal]:
                del self._open[principal]
            if not self._open:
                self._quiet.set()

    async def quiet(self, seconds: float) -> None:
        """Wait until every request is answered that is not only watching."""
        if self._open:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._quiet.wait()

    async def admit(self, params: Any, context: Any) -> None:
        """Refuse a message that is not run, and complete one that is.

        Raises:
            A2AError: It is not one that can be taken, or the server is busy.
        """
        principal = context.user.user_name
        PRINCIPAL.set(principal)  # what is begun for this request tells of it
        if isinstance(params, TaskPushNotificationConfig) and self._sender is not None:
            await self._sender.check(params)
        if isinstance(params, SendMessageRequest):
            if params.configuration.HasField("task_push_notification_config"):
                if self._sender is None:
                    raise PushNotificationNotSupportedError
                await self._sender.check(params.configuration.task_push_notification_config)
            await self._admit_message(params.message, context)

    async def _admit_message(self, message: Message, context: ServerCallContext) -> None:
        if len(message.parts) > self._parts:
            raise InvalidParamsError(f"A message has at most {self._parts} parts")
        prompt_of(heard(message), self._inputs)
        if len(message.context_id) > self._longest_id:
            raise InvalidParamsError(f"A contextId has at most {self._longest_id} characters")
        if "\0" in message.context_id:
            raise InvalidParamsError("A contextId has no NUL characters")
        principal = context.user.user_name
        if self._is_busy(principal, self._open.total() - 1, self._open[principal] - 1):
            if (notice := NOTICE.get()) is not None:
                notice.busy = True
            raise BusyError("The server is busy: try again later")
        if message.task_id:
            task = await _SDK.on_get_task(self, GetTaskRequest(id=message.task_id), context)
            context.state[ASKED] = task.status.message.message_id
            if not message.context_id:  # the SDK would make up another one
                message.context_id = task.context_id
        context.state[NEW] = not message.context_id

    # --- messages ------------------------------------------------------------------------------

    @_validated
    async def _sent(self, params: SendMessageRequest, context: ServerCallContext) -> Any:
        """Run a message; one that was taken before gets the task it has."""
        known = await self._known(params, context)
        if known is None:
            try:
                made = await _SDK.on_message_send(self, params, context)
            finally:
                self._release(context)
            if (known := await self._lost(context)) is None:
                return made
        if not params.configuration.return_immediately:
            async with aclosing(self._rest(known, context)) as events:
                async for _ in events:
                    pass
        known = await _SDK.on_get_task(self, GetTaskRequest(id=known.id), context)
        return apply_history_length(known, params.configuration)

    @_validated
    async def _streamed(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Any]:
        """Run a message and tell of it; one that was taken before, of the task it has."""
        begins = not params.message.task_id
        known = await self._known(params, context)
        if known is None:
            try:
                async with aclosing(_SDK.on_message_send_stream(self, params, context)) as events:
                    async for event in events:
                        if begins and isinstance(event, TaskStatusUpdateEvent):  # a task is first
                            said = [params.message]
                            task = Task(id=event.task_id, context_id=event.context_id, history=said)
                            task.status.CopyFrom(event.status)
                            event = apply_history_length(task, params.configuration)  # noqa: PLW2901
                        begins = False
                        yield event
            finally:
                self._release(context)
            known = await self._lost(context)
        if known is not None:
            async with aclosing(self._rest(known, context)) as events:
                async for event in events:
                    yield event

    def _release(self, context: ServerCallContext) -> None:
        """Leave a task that was taken and not begun to whom its message is sent next."""
        if (taken := context.state.get(TAKEN)) is not None:
            self._taken.discard(taken.task.id)

    async def _lost(self, context: ServerCallContext) -> Task | None:
        """The task of a request that another server has taken up; None if it was run here."""
        taken = context.state.get(TAKEN)
        if taken is None or not taken.is_lost:
            return None
        task: Task = await _SDK.on_get_task(self, GetTaskRequest(id=taken.task.id), context)
        return task

    async def _rest(self, task: Task, context: ServerCallContext) -> AsyncGenerator[Any]:
        """A task, and what becomes of it until it waits or is over."""
        if task.status.state not in WORKING:
            yield task
            return
        request = SubscribeToTaskRequest(id=task.id)
        for left in reversed(range(_LOOKS)):
            try:
                async with aclosing(_SDK.on_subscribe_to_task(self, request, context)) as events:
                    async for event in events:
                        yield event
                        status = getattr(event, "status", None)
                        if status and status.state not in WORKING:
                            break
                return
            except (UnsupportedOperationError, QueueShutDown):  # it has ended just now
                task = await _SDK.on_get_task(self, GetTaskRequest(id=task.id), context)
                if not left or task.status.state not in WORKING:
                    yield task
                    return
            await asyncio.sleep(_LOOK_SECONDS)  # it has ended here, and runs at another server

    async def _known(self, params: SendMessageRequest, context: ServerCallContext) -> Task | None:
        """The task of a message that was taken before; None if it is to be run now.

        A new task is kept before anything runs. Of servers with one database, one can do so. It
        keeps that right as long as its request lasts, and has it for `_TAKEN` where it died.
        """
        message, store = params.message, self._tasks
        validate_history_length(params.configuration)
        validate_input_modes(message, self._agent_card)
        if message.task_id:
            task = await _SDK.on_get_task(self, GetTaskRequest(id=message.task_id), context)
            return task if has_taken(task, message) else None
        id = task_id_of(context.user.user_name, message)
        async with self._locks.setdefault(id, asyncio.Lock()):
            stored = await store.get(id, context)
            if stored is not None and (id in self._taken or not _is_left(stored.task)):
                return stored.task
            message.task_id, version = id, TaskVersion.MISSING
            if stored is not None:
                message.context_id, version = stored.task.context_id, stored.version
                context.state[NEW] = False
            elif not message.context_id:
                message.context_id = str(uuid4())
            task = Task(id=id, context_id=message.context_id, history=[message])
            task.status.state = TaskState.TASK_STATE_SUBMITTED
            task.status.timestamp.GetCurrentTime()
            try:
                version = await store.save(
                    task, event=None, prev=None, prev_version=version, context=context
                )
            except ConcurrentTaskModificationError:
                return await _SDK.on_get_task(self, GetTaskRequest(id=id), context)
            self._taken.add(id)
            context.state[TAKEN] = Taken(task, version)
        return None

    async def _cancelled(self, params: CancelTaskRequest, context: ServerCallContext) -> Task:
        task: Task = await _SDK.on_cancel_task(self, params, context)
        if self._sender is not None:  # where it waited, or ran elsewhere, the SDK tells nobody
            event = TaskStatusUpdateEvent(task_id=task.id, context_id=task.context_id)
            event.status.CopyFrom(task.status)
            self._sender.tell(context.user.user_name, event)
        return task

    on_message_send = _unary(_sent)
    on_message_send_stream = _stream(_streamed)
    on_subscribe_to_task = _stream(_SDK.on_subscribe_to_task)
    on_get_task = _unary(_SDK.on_get_task)
    on_list_tasks = _unary(_SDK.on_list_tasks)
    on_cancel_task = _unary(_cancelled)
    on_get_extended_agent_card = _unary(_SDK.on_get_extended_agent_card)
    on_create_task_push_notification_config = _unary(_SDK.on_create_task_push_notification_config)
    on_get_task_push_notification_config = _unary(_SDK.on_get_task_push_notification_config)
    on_list_task_push_notification_configs = _unary(_SDK.on_list_task_push_notification_configs)
    on_delete_task_push_notification_config = _unary(_SDK.on_delete_task_push_notification_config)


def _is_left(task: Task) -> bool:
    """Whether a task was taken by a server that did not begin with it."""
    if task.status.state != TaskState.TASK_STATE_SUBMITTED:
        return False
    return datetime.now(UTC) - task.status.timestamp.ToDatetime(UTC) > _TAKEN

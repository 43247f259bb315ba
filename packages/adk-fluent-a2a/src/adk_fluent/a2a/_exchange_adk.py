"""One task at a remote agent: its tries, its deadline, and what has come of it so far."""

from __future__ import annotations

import asyncio
import random
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, Final, cast

from google.protobuf.struct_pb2 import Value

from a2a.types import CancelTaskRequest, Message, StreamResponse, Task, TaskState
from adk_fluent.a2a import _http
from adk_fluent.a2a._asking import REFUSED
from adk_fluent.a2a._failures_adk import failure, failure_of, retry_after
from adk_fluent.extend import DURABLE_RUN, one_line

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator

    from a2a.client import Client, ClientCallContext
    from a2a.types import Part, SendMessageRequest, TaskArtifactUpdateEvent
    from adk_fluent.a2a._failures_adk import Kind
    from adk_fluent.errors import RemoteError
    from adk_fluent.ir import RemoteAgentNode

#: The task is over and has not done what it was for.
_FAILED: Final[dict[int, tuple[Kind, str]]] = {
    TaskState.TASK_STATE_FAILED: ("FAILED", "failed in its task"),
    TaskState.TASK_STATE_REJECTED: ("REJECTED", "rejected the task"),
    TaskState.TASK_STATE_CANCELED: ("CANCELED", "was told to cancel the task"),
}
#: The task waits for us.
WAITING: Final = (TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED)
_DONE: Final = (TaskState.TASK_STATE_COMPLETED, *WAITING)
_GRACE: Final = 1.0  # seconds that telling an agent to cancel may hold up our own end
#: How a wait between tries is made.
pause: Final = asyncio.sleep
_cancelling: Final[set[asyncio.Task[Any]]] = set()


class Tries:
    """The tries of one task, of the card as of the message, within one deadline.

    Args:
        node: The remote agent.
        until: When the task has to be over, by the clock of the loop.
    """

    def __init__(self, node: RemoteAgentNode, until: float) -> None:
        self.node = node
        self.until = until
        self.count = 1

    async def again(self, failed: RemoteError) -> bool:
        """Wait until another try may be made; False if none may."""
        retry = self.node.retry
        if retry is None or not failed.retriable or self.count >= retry.max_attempts:
            return False
        delay = min(retry.max_delay, retry.initial_delay * retry.backoff_factor ** (self.count - 1))
        delay *= 1 - retry.jitter * random.random()  # noqa: S311  # spreads load, guards nothing
        delay = max(delay, retry_after(failed))
        if asyncio.get_running_loop().time() + delay >= self.until:
            return False
        self.count += 1
        await pause(delay)
        return True

    async def run(self, make: Callable[[], Awaitable[Any]]) -> Any:
        """Run something that can be tried again from the start.

        Raises:
            RemoteError: The last try failed, or the deadline is over.
        """
        while True:
            try:
                async with asyncio.timeout_at(self.until):
                    return await make()
            except Exception as error:  # noqa: BLE001  # classified
                failed = failure_of(error, self.node, card=True)
                if failed is not error:
                    failed.__cause__ = error
            if not await self.again(failed):
                raise failed


class Exchange:
    """Sends a message and follows its task; stands where ADK expects a client of the SDK.

    Args:
        tries: The tries of the task.
        client: The SDK's client.
        refused: Called when the credentials were refused.

    Attributes:
        task: The task as far as it is known.
        message: What was answered instead of a task.
        update: The kind of the last thing that came: ``task``, ``message``, ``status_update`` or
            ``artifact_update``.
        error: What it failed with.
    """

    def __init__(self, tries: Tries, client: Client, refused: Callable[[], None]) -> None:
        self._tries = tries
        self._node = tries.node
        self._client = client
        self._refused = refused
        self._context: ClientCallContext | None = None
        self._bytes = 0
        self.task: Task | None = None
        self.message: Message | None = None
        self.update: str | None = None
        self.error: Exception | None = None

    @property
    def state(self) -> int:
        """The state of the task; that of a message is completed."""
        if self.message is not None:
            return TaskState.TASK_STATE_COMPLETED
        return TaskState.TASK_STATE_UNSPECIFIED if self.task is None else self.task.status.state

    @property
    def parts(self) -> list[Part]:
        """The parts of the answer: those of the artifacts, else of the last message."""
        if self.message is not None:
            return list(self.message.parts)
        if self.task is None:
            return []
        parts = [part for artifact in self.task.artifacts for part in artifact.parts]
        if self.state in WAITING or not parts:
            return list(self.task.status.message.parts)
        return parts

    @property
    def refusal(self) -> str | None:
        """What is told of a person's refusal over there; None where nobody has refused."""
        if self.task is None or self.state != TaskState.TASK_STATE_REJECTED:
            return None
        message = self.task.status.message
        if REFUSED not in message.metadata or message.metadata[REFUSED] is not True:
            return None
        return one_line(_text_of(message)) or "It was refused there, and no reason was given."

    async def send_message(
        self, request: SendMessageRequest, *, context: ClientCallContext | None = None
    ) -> AsyncGenerator[StreamResponse, None]:
        """Send a message, again if that is safe, and yield what comes of it.

        What it fails with is in `error`: ADK would log what is raised, and give its text alone.
        """
        self._context = context
        try:
            while True:
                try:
                    async with aclosing(self._once(request)) as items:
                        async for item in items:
                            yield item
                    return
                except Exception as error:  # noqa: BLE001  # classified
                    failed = failure_of(error, self._node, received=self.update is not None)
                    if failed is not error:
                        failed.__cause__ = error
                if failed.status == 401:
                    self._refused()
                if not await self._tries.again(failed):
                    self.error = failed
                    return
        except Exception as error:  # noqa: BLE001  # the agent around raises it
            self.error = error
        finally:
            await self._give_up()

    async def _once(self, request: SendMessageRequest) -> AsyncGenerator[StreamResponse, None]:
        stream = cast(
            "AsyncGenerator[StreamResponse, None]",
            self._client.send_message(request, context=self._context),
        )
        async with aclosing(stream):
            while self.state not in _DONE:
                try:
                    async with asyncio.timeout_at(self._tries.until):
                        item = await anext(stream)
                except StopAsyncIteration:
                    break
                self._take(item)
                yield item  # a failed task, too: ADK would report that the stream broke off
                self._check()
        if self.state not in _DONE:
            if self.update is None:
                raise failure("PROTOCOL", self._node, "gave no answer")
            raise failure("INCOMPLETE", self._node, "stopped answering before its task was done")

    def _take(self, item: StreamResponse) -> None:
        """Add what has come to what is known."""
        self._bytes += item.ByteSize()
        if self._bytes > _http.LARGEST:  # over gRPC, where only each message has a limit
            says = f"gave an answer of more than {_http.LARGEST} bytes"
            raise failure("PROTOCOL", self._node, says)
        kind = item.WhichOneof("payload")
        if kind is None:
            raise failure("PROTOCOL", self._node, "gave an empty answer")
        self.update = kind
        for part in _parts_of(item):
            _as_object(part)
        if kind == "message":
            self.message = item.message
            return
        if kind == "task":
            self.task = Task()
            self.task.CopyFrom(item.task)
        else:
            update = item.status_update if kind == "status_update" else item.artifact_update
            if self.task is None:
                self.task = Task(id=update.task_id, context_id=update.context_id)
            if kind == "status_update":
                self.task.status.CopyFrom(item.status_update.status)
            else:
                _add_artifact(self.task, item.artifact_update)

    def _check(self) -> None:
        """Raise if the task is over and has not done what it was for."""
        if self.task is not None and (bad := _FAILED.get(self.state)) is not None:
            says = _text_of(self.task.status.message)
            raise failure(bad[0], self._node, bad[1], found=says)

    async def _give_up(self) -> None:
        """Tell the agent to cancel a task that nobody waits for any more."""
        over = (*_DONE, *_FAILED)
        if self.task is None or not self.task.id or self.state in over:
            return
        run = DURABLE_RUN.get()
        if run is not None and run.is_left():  # whoever goes on with the run waits for it
            return
        request = CancelTaskRequest(id=self.task.id)
        told = asyncio.ensure_future(self._cancel(request))
        _cancelling.add(told)  # the loop itself holds tasks by weak references only
        told.add_done_callback(_cancelling.discard)
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(told), _GRACE)

    async def _cancel(self, request: CancelTaskRequest) -> None:
        with suppress(Exception):  # it may be over by now, or the agent may not be there any more
            async with asyncio.timeout(10 * _GRACE):
                await self._client.cancel_task(request, context=self._context)


def _text_of(message: Message) -> str:
    return " ".join(part.text for part in message.parts if part.text)


def _parts_of(item: StreamResponse) -> Iterator[Part]:
    """All parts of what has come."""
    yield from item.message.parts
    yield from item.artifact_update.artifact.parts
    yield from item.status_update.status.message.parts
    yield from item.task.status.message.parts
    for each in (*item.task.artifacts, *item.task.history):
        yield from each.parts


def _as_object(part: Part) -> None:
    """Put data that is no JSON object into one, as ADK can read nothing else."""
    if part.WhichOneof("content") == "data" and part.data.WhichOneof("kind") != "struct_value":
        held = Value()
        held.struct_value.fields["value"].CopyFrom(part.data)
        part.data.CopyFrom(held)


def _add_artifact(task: Task, event: TaskArtifactUpdateEvent) -> None:
    """Add an artifact, or what continues one."""
    for known in task.artifacts:
        if known.artifact_id == event.artifact.artifact_id:
            if event.append:
                known.parts.extend(event.artifact.parts)
            else:
                known.CopyFrom(event.artifact)
            return
    task.artifacts.add().CopyFrom(event.artifact)

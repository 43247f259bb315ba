"""The states of tasks, and which task a message makes."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Final
from uuid import UUID

from a2a.types import Message, TaskState

if TYPE_CHECKING:
    from a2a.types import Task

#: The states in which a task waits for its client.
WAITING: Final = (TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED)
#: The states that a task does not leave.
OVER: Final = (
    TaskState.TASK_STATE_COMPLETED,
    TaskState.TASK_STATE_FAILED,
    TaskState.TASK_STATE_CANCELED,
    TaskState.TASK_STATE_REJECTED,
)
#: The states of a task that runs, or is about to.
WORKING: Final = (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING)


def task_id_of(owner: str, message: Message) -> str:
    """The id of the task that a message makes: the same each time that it is sent.

    What a client sends under an id that it used for other content is another message.
    """
    said = Message(parts=message.parts).SerializeToString(deterministic=True)
    key = [owner, message.context_id, message.message_id, hashlib.sha256(said).hexdigest()]
    digest = hashlib.sha256(json.dumps(key).encode()).digest()
    return str(UUID(bytes=digest[:16], version=4))


def has_taken(task: Task, message: Message) -> bool:
    """Whether a message to a task was sent before."""
    return any(
        each.message_id == message.message_id and each.parts == message.parts
        for each in task.history
    )

"""Tool calls that an agent makes at the same time: when one fails the agent, the others end, too.

Newer versions of ADK see to that themselves; 1.25 lets them go on when the run is long over.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from adk_fluent.backends.adk._hooks._chain import invocation_of, own_step
from adk_fluent.flow import settled

if TYPE_CHECKING:
    from asyncio import Task


def note_call(context: Any) -> None:
    """Note that a tool is called, by the task that this is called in."""
    here = own_step(invocation_of(context))
    task = asyncio.current_task()
    if here is not None and task is not None:
        here.calls.add(task)
        task.add_done_callback(here.calls.discard)


async def end_calls(calls: set[Task[Any]]) -> None:
    """End the tool calls that are still under way; those of other event loops go on."""
    here, loop = asyncio.current_task(), asyncio.get_running_loop()
    left = [each for each in list(calls) if each is not here and each.get_loop() is loop]
    for each in left:
        each.cancel()
    await settled(left)

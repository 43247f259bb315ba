"""What A2A 1.0 says that a server MUST do, on each transport, with the SDK's own client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from a2a.types import Part
from a2a.utils.errors import (
    A2AError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from serve_kit import ALL, calling, serving

from adk_fluent import Agent, gate
from adk_fluent.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from serve_kit import Caller

pytestmark = pytest.mark.adk


@pytest.fixture(params=ALL)
async def caller(request: pytest.FixtureRequest) -> AsyncGenerator[Caller]:
    """A client over one transport."""
    port = 0 if request.param == "GRPC" else None
    model = ScriptedModel(default="Paid.")
    desk = Agent("desk", model) >> gate(lambda state: bool(state.get("ask")), message="Pay?")
    async with (
        serving(desk, inputs=["ask"], grpc_port=port) as server,
        calling(server, request.param) as made,
    ):
        yield made


async def test_a_message_makes_a_task_that_can_be_read_and_listed(caller: Caller) -> None:
    """The server makes its ids, and gives the same task to each operation."""
    told = await caller.send("Pay.")
    assert (told.state, told.text) == ("completed", "Paid.")
    assert told.task.id
    assert told.task.context_id
    assert [each.id for each in await caller.list()] == [told.task.id]


async def test_a_message_goes_on_in_its_context(caller: Caller) -> None:
    first = await caller.send("Pay.")
    second = await caller.send("Again.", context=first.task.context_id)
    assert second.task.context_id == first.task.context_id
    assert second.task.id != first.task.id


async def test_what_does_not_exist_is_not_found(caller: Caller) -> None:
    for call in (caller.get, caller.cancel):
        with pytest.raises(TaskNotFoundError):
            await call("nothing")
    with pytest.raises(TaskNotFoundError):
        await caller.send("Pay.", task="nothing")
    with pytest.raises(TaskNotFoundError):
        await anext(aiter(caller.subscribe("nothing")))


async def test_a_task_that_has_ended_stays_as_it_is(caller: Caller) -> None:
    """It is neither cancelled, nor continued, nor subscribed to."""
    told = await caller.send("Pay.")
    with pytest.raises(TaskNotCancelableError):
        await caller.cancel(told.task.id)
    with pytest.raises(A2AError):
        await caller.send("More.", task=told.task.id)
    with pytest.raises(UnsupportedOperationError):
        await anext(aiter(caller.subscribe(told.task.id)))
    assert await caller.get(told.task.id) == told.task


async def test_a_task_and_a_context_that_do_not_belong_together_are_refused(
    caller: Caller,
) -> None:
    part = Part()
    part.data.struct_value.update({"ask": True})
    waits = await caller.send("Pay.", part)
    assert waits.state == "input_required"
    other = await caller.send("Pay.")
    with pytest.raises(A2AError):
        await caller.send("yes", task=waits.task.id, context=other.task.context_id)
    assert (await caller.cancel(waits.task.id)).id == waits.task.id
    with pytest.raises(TaskNotCancelableError):
        await caller.cancel(waits.task.id)


async def test_a_message_without_parts_is_refused(caller: Caller) -> None:
    with pytest.raises(A2AError):
        await caller.send()
    assert await caller.list() == []

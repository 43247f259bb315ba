"""Open streams: what is left when they are closed."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import grpc.aio
import pytest
from a2a.types import SubscribeToTaskRequest, a2a_pb2_grpc
from serve_kit import calling, serving

from adk_fluent import Agent, gate
from adk_fluent.serve._handler import Notice
from adk_fluent.testing import ScriptedModel

if TYPE_CHECKING:
    from serve_kit import Caller

    from adk_fluent.serve import A2AServer

pytestmark = pytest.mark.adk

#: Of what packages objects are looked at.
OURS = ("a2a", "adk_fluent", "starlette", "sse_starlette", "uvicorn")


def kept() -> Counter[str]:
    """How many objects of a server there are, by their class."""
    gc.collect()
    objects: list[Any] = gc.get_objects()
    found: Counter[str] = Counter()
    for kind, count in Counter(map(type, objects)).items():
        # a timer that was cancelled keeps its context, and so the notice, until its time
        if str(kind.__module__).partition(".")[0] in OURS and kind is not Notice:
            found[f"{kind.__module__}.{kind.__qualname__}"] += count
    return found


async def watched(server: A2AServer, caller: Caller, task: str, streams: int) -> None:
    """Open streams of a task, and go away in the middle of all."""
    async with AsyncExitStack() as stack:
        channel: Any = None
        if server.grpc_url:  # whose calls the SDK's client does not end
            address = server.grpc_url.partition("//")[2]
            channel = await stack.enter_async_context(grpc.aio.insecure_channel(address))
        for _ in range(streams):
            if channel is None:
                events: Any = caller.subscribe(task)
                stack.push_async_callback(events.aclose)
            else:
                asked = SubscribeToTaskRequest(id=task)
                metadata = [("a2a-version", "1.0")]
                call: Any = a2a_pb2_grpc.A2AServiceStub(channel)
                events = call.SubscribeToTask(asked, metadata=metadata)
                stack.callback(events.cancel)
            assert (await anext(aiter(events))).task.id == task


@pytest.mark.parametrize(
    "binding", ["JSONRPC", pytest.param("HTTP+JSON", marks=pytest.mark.full), "GRPC"]
)
async def test_a_stream_that_is_closed_leaves_nothing_behind(binding: str) -> None:
    asks = gate(message="Pay it?", name="ok") >> Agent("desk", ScriptedModel(default="Paid."))
    async with (
        serving(asks, grpc_port=0 if binding == "GRPC" else None) as server,
        calling(server, binding) as caller,
    ):
        waits = (await caller.send("Pay.")).task.id
        await watched(server, caller, waits, 1)  # what is made once stays
        async with asyncio.timeout(60):
            before, tasks = kept(), len(asyncio.all_tasks())
            await watched(server, caller, waits, 50)
            while len(asyncio.all_tasks()) > tasks or kept() - before:  # noqa: ASYNC110
                await asyncio.sleep(0.05)  # nobody tells when they are gone
        assert (await caller.send("yes", task=waits)).state == "completed"

"""A trace of a run on ADK."""

from __future__ import annotations

import pytest

from adk_fluent import Agent
from adk_fluent.backends.trace import Trace
from adk_fluent.config import ExecutionConfig
from adk_fluent.testing import Call, reply

pytestmark = pytest.mark.adk


def search(query: str) -> str:
    """Search.

    Args:
        query: What for.
    """
    return query


async def test_a_run_on_adk() -> None:
    find = (
        Agent("find").tool(search).mock([Call("search", {"query": "x"}), "found"]).writes("found")
    )
    write = Agent("write").mock(reply("text", latency=0.05)).writes("text")
    pipeline = find >> write
    with Trace(pipeline) as made:
        result = await pipeline.run("go", listeners=[made])
    first, second = made.rows
    assert (first.path, first.node, first.kind, first.tools) == ("s0", "find", "agent", ("search",))
    assert [str(change) for change in first.changes] == ['+found="found"']
    assert first.usage is not None
    assert second.usage is not None
    assert first.usage + second.usage == result.usage
    assert first.seconds is not None
    assert second.start == pytest.approx((first.start or 0) + first.seconds)
    assert second.seconds is not None
    assert second.seconds >= 0.05


async def test_a_stream_on_adk() -> None:
    agent = Agent("a").mock(reply(chunks=["one ", "two"]))
    made = Trace()
    config = ExecutionConfig(streaming_mode="sse")
    events = [e async for e in agent.stream("go", config=config, listeners=[made])]
    assert made.rows[0].events == len(events) == 3

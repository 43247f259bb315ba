"""A toolset is closed when no run uses it any more, whoever else holds it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from adk_programs import agent, by_runner, fn, par, seq
from google.adk.tools.base_toolset import BaseToolset

from adk_fluent.backends.adk import ADKBackend, to_agent
from adk_fluent.backends.adk._lowering import _toolsets as toolsets
from adk_fluent.ir import ExecutionConfig, Node, Ref, ToolSpec
from adk_fluent.testing import ScriptedModel

pytestmark = pytest.mark.adk


class Toolset(BaseToolset):
    """Counts how often it is closed; closing takes as long as `closing` says."""

    def __init__(self, closing: float = 0) -> None:
        super().__init__()
        self.closed = 0
        self.closing = asyncio.Event()
        self.used_while_closing = False
        self._seconds = closing

    async def get_tools(self, readonly_context: Any = None) -> list[Any]:
        self.used_while_closing = self.used_while_closing or self.closing.is_set()
        return []

    async def close(self) -> None:
        self.closing.set()
        await asyncio.sleep(self._seconds)
        self.closing.clear()
        self.closed += 1


@pytest.fixture(autouse=True)
def forgotten() -> Any:
    yield
    assert toolsets._uses == {}


def user(name: str, *held: BaseToolset) -> Any:
    specs = tuple(ToolSpec(Ref.to(each)) for each in held)
    return agent(name, model=ScriptedModel(default=name)).replace(tools=specs)


class Held:
    """A step that goes on when it is told to."""

    def __init__(self) -> None:
        self.there = asyncio.Event()
        self.goes_on = asyncio.Event()

    async def __call__(self, state: Any) -> None:
        self.there.set()
        await self.goes_on.wait()

    def after(self, node: Node) -> Node:
        return seq(node, fn("held", self))


async def test_two_pipelines_share_a_toolset() -> None:
    toolset, held, backend = Toolset(), Held(), ADKBackend()
    slow = backend.compile(held.after(user("a", toolset)))
    late = asyncio.ensure_future(backend.run(slow, "hi"))
    await held.there.wait()
    await ADKBackend().run(ADKBackend().compile(user("b", toolset)), "hi")
    assert toolset.closed == 0
    held.goes_on.set()
    await late
    assert toolset.closed == 1


async def test_one_pipeline_with_two_configurations() -> None:
    toolset, held, backend = Toolset(), Held(), ADKBackend()
    a = user("a", toolset)
    late = asyncio.ensure_future(backend.run(backend.compile(held.after(a)), "hi"))
    await held.there.wait()
    await backend.run(backend.compile(a, ExecutionConfig(max_llm_calls=50)), "hi")
    assert toolset.closed == 0
    held.goes_on.set()
    await late
    assert toolset.closed == 1


async def test_only_what_nobody_uses_is_closed() -> None:
    shared, own, held, backend = Toolset(), Toolset(), Held(), ADKBackend()
    late = asyncio.ensure_future(backend.run(backend.compile(held.after(user("a", shared))), "hi"))
    await held.there.wait()
    await backend.run(backend.compile(par(user("b", shared, own), user("c", own, shared))), "hi")
    assert (shared.closed, own.closed) == (0, 1)
    held.goes_on.set()
    await late
    assert (shared.closed, own.closed) == (1, 1)


async def test_a_run_by_a_runner_of_the_users_counts() -> None:
    toolset, held = Toolset(), Held()
    late = asyncio.ensure_future(by_runner(to_agent(held.after(user("a", toolset)))))
    await held.there.wait()
    backend = ADKBackend()
    await backend.run(backend.compile(user("b", toolset)), "hi")
    assert toolset.closed == 0
    held.goes_on.set()
    await late
    assert toolset.closed == 1


async def test_what_only_a_runner_of_the_users_uses_stays_open() -> None:
    toolset = Toolset()
    await by_runner(to_agent(user("a", toolset)))
    assert toolset.closed == 0


async def test_a_run_that_fails_or_is_cancelled_closes_too() -> None:
    toolset, held, backend = Toolset(), Held(), ADKBackend()
    late = asyncio.ensure_future(backend.run(backend.compile(held.after(user("a", toolset))), "hi"))
    await held.there.wait()
    late.cancel()
    with pytest.raises(asyncio.CancelledError):
        await late
    assert toolset.closed == 1


async def test_a_run_waits_until_the_last_one_has_closed() -> None:
    toolset, backend = Toolset(closing=0.2), ADKBackend()
    compiled = backend.compile(user("a", toolset))
    first = asyncio.ensure_future(backend.run(compiled, "hi"))
    await toolset.closing.wait()
    impatient = asyncio.ensure_future(backend.run(compiled, "hi"))
    second = asyncio.ensure_future(backend.run(compiled, "hi"))
    await asyncio.sleep(0.01)
    impatient.cancel()
    await asyncio.gather(first, second)
    assert impatient.cancelled()
    assert (toolset.closed, toolset.used_while_closing) == (2, False)


async def test_loops_of_other_threads_count() -> None:
    toolset, held, backend = Toolset(), Held(), ADKBackend()
    late = asyncio.ensure_future(backend.run(backend.compile(held.after(user("a", toolset))), "hi"))
    await held.there.wait()

    def elsewhere() -> None:
        other = ADKBackend()
        asyncio.run(other.run(other.compile(user("b", toolset)), "hi"))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    await asyncio.to_thread(thread.join)
    assert toolset.closed == 0
    held.goes_on.set()
    await late
    assert toolset.closed == 1

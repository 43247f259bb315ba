"""A middleware around every pipeline that is compiled in a block."""

from __future__ import annotations

from typing import Any

import pytest

from adk_fluent import Agent
from adk_fluent.errors import UsageError
from adk_fluent.extend import middleware_everywhere
from adk_fluent.testing import ScriptedModel

pytestmark = pytest.mark.adk


class Counts:
    def __init__(self) -> None:
        self.calls = 0

    async def before_model(self, ctx: Any, request: Any) -> None:
        self.calls += 1


async def test_it_is_there_in_the_block_and_nowhere_else() -> None:
    agent, outer, inner = Agent("a", ScriptedModel(default="hi")), Counts(), Counts()
    await agent.run("before")
    with middleware_everywhere(outer):
        await agent.run("one")
        with middleware_everywhere(inner):
            await agent.run("two")
        await Agent("b", ScriptedModel(default="ho")).run("three")
    await agent.run("after")
    assert (outer.calls, inner.calls) == (3, 1)


def test_what_is_no_middleware_is_refused() -> None:
    with pytest.raises(UsageError), middleware_everywhere("no"):  # pyright: ignore[reportArgumentType]
        pass

"""Tools that are called at the same time: when one of them fails the agent, no other goes on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from adk_fluent import Agent
from adk_fluent.testing import Call, ScriptedModel, reply

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]


class Work:
    """A tool that takes its time, and one that fails meanwhile."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.told: list[str] = []

    async def long(self) -> str:
        """Work for a while."""
        self.begun.set()
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            self.told.append("ended")
            raise
        self.told.append("done")
        return "long"

    async def fails(self) -> str:
        """Fail while the other one works."""
        await self.begun.wait()
        raise ConnectionError("reset")

    def agent(self, name: str, *then: str) -> Agent:
        model = ScriptedModel(reply(Call("long"), Call("fails")), *then)
        return Agent(name, model).tool(self.long).tool(self.fails)

    async def later(self) -> list[str]:
        """What is told when everything had its time."""
        await asyncio.sleep(0.1)
        return self.told


class Looks:
    async def before_tool(self, ctx: Any, tool_name: str, args: dict[str, Any]) -> None: ...


class Refuses:
    """A hook that fails, and no tool."""

    def __init__(self, work: Work) -> None:
        self.work = work

    async def before_tool(self, ctx: Any, tool_name: str, args: dict[str, Any]) -> None:
        if tool_name == "fails":
            await self.work.begun.wait()
            raise PermissionError("no more")


class Recovers:
    async def on_tool_error(
        self, ctx: Any, tool_name: str, args: dict[str, Any], error: Exception
    ) -> dict[str, Any]:
        return {"error": str(error)}


async def test_the_other_one_ends_when_the_run_does() -> None:
    work = Work()
    with pytest.raises(ConnectionError, match="reset"):
        await work.agent("a").middleware(Looks()).run("hi")
    assert work.told == ["ended"]
    assert await work.later() == ["ended"]


async def test_so_it_does_when_a_hook_fails() -> None:
    work = Work()
    with pytest.raises(PermissionError, match="no more"):
        await work.agent("a").middleware(Refuses(work)).run("hi")
    assert work.told == ["ended"]
    assert await work.later() == ["ended"]


async def test_what_a_hook_mends_ends_nothing() -> None:
    work = Work()
    assert (await work.agent("a", "fine").middleware(Recovers()).run("hi")).text == "fine"
    assert work.told == ["done"]


async def test_a_fallback_goes_on_without_the_other_one() -> None:
    work = Work()
    b = Agent("b", ScriptedModel("B"))
    assert (await (work.agent("a") // b).middleware(Looks()).run("hi")).text == "B"
    assert await work.later() == ["ended"]


class RecoversAgent:
    """Mends what fails in the agent that is a tool, and nothing in that agent."""

    async def on_tool_error(
        self, ctx: Any, tool_name: str, args: dict[str, Any], error: Exception
    ) -> dict[str, Any] | None:
        return {"error": str(error)} if tool_name == "helper" else None


async def test_so_it_is_in_an_agent_that_is_a_tool() -> None:
    work = Work()
    boss = Agent("boss", ScriptedModel(Call("helper", {"request": "x"}), "told"))
    boss = boss.agent_tool(work.agent("helper")).middleware(RecoversAgent())
    assert (await boss.run("hi")).text == "told"
    assert await work.later() == ["ended"]

"""Tools of an MCP server, a process of its own, given to `.tool(...)` as a toolset of ADK's."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pytest

from adk_fluent import Agent, FanOut
from adk_fluent.testing import Call, ScriptedModel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from google.adk.tools.mcp_tool import McpToolset

    from adk_fluent.testing import Asked

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK's word on its toolset
]
pytest.importorskip("mcp", reason="ADK speaks to MCP servers with the package mcp")

SERVER: Final = '''
import socket
import sys

try:
    from mcp.server import MCPServer
except ImportError:  # mcp 1.x
    from mcp.server.fastmcp import FastMCP as MCPServer

server = MCPServer("sums")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


life = socket.create_connection(("127.0.0.1", int(sys.argv[1])))  # ends when the process does
server.run()
'''


class Servers:
    """What is known of the processes: each holds a connection for as long as it lives."""

    def __init__(self) -> None:
        self.started = 0
        self._alive = 0
        self._gone = asyncio.Event()

    async def met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.started += 1
        self._alive += 1
        self._gone.clear()
        with suppress(ConnectionError):  # Windows resets the connections of what it ends
            await reader.read()
        writer.close()
        self._alive -= 1
        if not self._alive:
            self._gone.set()

    async def gone(self) -> int:
        """Wait for the end of all that were started, and say how many they were."""
        assert self.started
        async with asyncio.timeout(20):
            await self._gone.wait()
        return self.started


@pytest.fixture
async def servers() -> Servers:
    return Servers()


@pytest.fixture
async def toolset(servers: Servers, tmp_path: Path) -> AsyncIterator[Callable[..., McpToolset]]:
    """Makes toolsets of the server above; none of their processes is left at the end."""
    from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
    from mcp import StdioServerParameters

    script = tmp_path / "server.py"
    script.write_text(SERVER, "utf-8")
    listening = await asyncio.start_server(servers.met, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    start = StdioServerParameters(command=sys.executable, args=[str(script), str(port)])
    with (tmp_path / "said.txt").open("w", encoding="utf-8") as said:

        def make(**options: Any) -> McpToolset:
            params = StdioConnectionParams(server_params=start, timeout=60)
            return McpToolset(connection_params=params, errlog=said, **options)

        yield make
        await servers.gone()
        listening.close()
        await listening.wait_closed()


def declared(asked: Asked) -> dict[str, dict[str, Any]]:
    """The tools that a model was told of: what for, types of parameters, what must be given."""
    found: dict[str, dict[str, Any]] = {}
    for tool in asked.config.tools:
        for each in tool.function_declarations:
            schema = each.parameters_json_schema
            if schema is None:  # versions differ in the form
                schema = each.parameters.model_dump(mode="json", exclude_none=True)
            types = {name: str(of["type"]).lower() for name, of in schema["properties"].items()}
            found[each.name] = {"for": each.description, "types": types, "must": schema["required"]}
    return found


def sums(name: str, a: int, b: int, *, tool: str = "add") -> Agent:
    """An agent that has two numbers added, by whoever has that tool."""
    model = ScriptedModel(Call(tool, {"a": a, "b": b}), f"{name} is done")
    return Agent(name, model)


def asked(agent: Agent) -> tuple[Asked, ...]:
    node: Any = agent.build()
    return node.model.value.calls


async def test_the_model_is_told_of_the_tools_and_gets_what_they_return(
    toolset: Callable[..., McpToolset], servers: Servers
) -> None:
    agent = sums("a", 2, 3).tool(toolset())
    result = await agent.run("What is 2 + 3?")
    assert result.text == "a is done"
    first, second = asked(agent)
    tools = declared(first)
    assert "Add two numbers." in tools["add"].pop("for")  # some versions say who claims it
    assert tools["add"] == {"types": {"a": "integer", "b": "integer"}, "must": ["a", "b"]}
    assert list(tools) == ["add", "fail"]
    returned = second.turns[-1].text
    assert returned.startswith("[result add ")
    assert '"text": "5"' in returned
    assert await servers.gone() == 1


async def test_the_model_gets_the_error_of_a_tool(toolset: Callable[..., McpToolset]) -> None:
    model = ScriptedModel(Call("fail", {"why": "no ink"}), "sorry")
    assert await Agent("a", model).tool(toolset()).ask_async("Print.") == "sorry"
    assert '"isError": true' in model.calls[1].turns[-1].text


@pytest.mark.full
async def test_in_the_middle_of_a_pipeline_and_in_branches_at_the_same_time(
    toolset: Callable[..., McpToolset], servers: Servers
) -> None:
    shared, last = toolset(), ScriptedModel("end")
    one, two = (sums(name, 1, at).tool(shared).writes(name) for at, name in enumerate(("x", "y")))
    middle = sums("middle", 20, 22).tool(toolset()).writes("sum")
    after = Agent("after", last).instruct("Say: {sum}, {x}, {y}.")
    result = await (Agent("before").mock("before") >> middle >> FanOut(one, two) >> after).run("hi")
    assert result.text == "end"
    assert "Say: middle is done, x is done, y is done." in last.calls[0].system
    assert '"text": "42"' in asked(middle)[1].turns[-1].text
    assert '"text": "2"' in asked(two)[1].turns[-1].text
    assert await servers.gone() == 2


async def test_each_run_has_a_server_of_its_own(
    toolset: Callable[..., McpToolset], servers: Servers
) -> None:
    model = ScriptedModel(
        *(answer for n in (1, 2) for answer in (Call("add", {"a": n, "b": n}), f"run {n}"))
    )
    agent = Agent("a", model).tool(toolset())
    assert await agent.ask_async("hi") == "run 1"
    assert await servers.gone() == 1
    assert await agent.ask_async("hi") == "run 2"
    assert await servers.gone() == 2
    assert '"text": "4"' in model.calls[3].turns[-1].text
    await agent.aclose()


@pytest.mark.full
async def test_runs_that_each_have_a_loop_of_their_own(
    toolset: Callable[..., McpToolset], servers: Servers
) -> None:
    """As code that is not async runs it."""
    agent = Agent("a", ScriptedModel(Call("add", {"a": 1, "b": 1}), "one", "two")).tool(toolset())
    assert await asyncio.to_thread(agent.ask, "hi") == "one"
    assert await asyncio.to_thread(agent.ask, "hi") == "two"
    assert await servers.gone() == 2


async def test_a_run_that_is_cancelled_leaves_no_server(
    toolset: Callable[..., McpToolset], servers: Servers
) -> None:
    there = asyncio.Event()

    async def slow(_: Asked) -> str:
        there.set()
        await asyncio.sleep(600)
        return "late"

    model = ScriptedModel(Call("add", {"a": 1, "b": 1}), default=slow)
    run = asyncio.ensure_future(Agent("a", model).tool(toolset()).run("hi"))
    await there.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert await servers.gone() == 1


async def test_only_some_tools_and_a_prefix(toolset: Callable[..., McpToolset]) -> None:
    chosen = toolset(tool_filter=["add"], tool_name_prefix="sums")
    agent = sums("a", 2, 2, tool="sums_add").tool(chosen)
    await agent.run("hi")
    first, second = asked(agent)
    assert list(declared(first)) == ["sums_add"]
    assert '"text": "4"' in second.turns[-1].text

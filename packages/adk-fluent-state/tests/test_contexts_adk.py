"""State is bound in every place where ADK or adk-fluent hands out a context."""

from __future__ import annotations

import asyncio
import datetime as dt
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools.tool_context import ToolContext  # noqa: TC002  # ADK resolves it
from google.genai import types

from adk_fluent import Agent, tap
from adk_fluent.errors import UsageError
from adk_fluent.state import SessionScoped, StateKeyError, StateSchema, Temp, UserScoped, field
from adk_fluent.testing import Call, ScriptedModel, reply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from google.adk.agents.invocation_context import InvocationContext

    from adk_fluent.protocol import AgentCall, ModelCall, NextAgent, NextModel

pytestmark = [pytest.mark.adk, pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]")]

WHEN = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


class Desk(StateSchema):
    intent: SessionScoped[str]
    ticket: SessionScoped[str | None]
    when: SessionScoped[dt.datetime]
    tier: UserScoped[str] = field(default="free")
    tags: SessionScoped[list[str]] = field(default_factory=list)
    scratch: Temp[int]


def book(word: str, tool_context: ToolContext) -> str:
    """Book it."""
    desk = Desk.bind(tool_context)
    desk.ticket = f"{desk.intent}-{word}"
    desk.when = WHEN
    desk.tier = "gold"
    with desk.edit(Desk.tags) as tags:
        tags.append(word)
    return repr(desk)


def booking() -> Agent:
    return Agent("clerk", ScriptedModel(reply(Call("book", {"word": "a"})), "done")).tool(book)


def test_a_tool_and_what_stands_around_it(tmp_path: Path) -> None:
    seen: list[Any] = []

    def before(callback_context: Any) -> None:
        desk = Desk.bind(callback_context)
        seen.append(desk.ticket)
        desk.scratch = 3
        desk.tags = ["first"]

    def after(callback_context: Any) -> None:
        desk = Desk.bind(callback_context)
        seen.extend([desk.ticket, desk.when, desk.tier, desk.tags, desk.scratch])

    def told(context: Any) -> str:
        desk = Desk.bind(context)
        with pytest.raises(UsageError, match="only reads state"):
            desk.intent = "changed"
        seen.append(desk.intent)
        return f"About {desk.intent}"

    agent = booking().instruct(told).before_agent(before).after_agent(after)
    service = SqliteSessionService(str(tmp_path / "sessions.db"))
    result = asyncio.run(agent.run("hi", state=Desk.initial(intent="pen"), session_service=service))
    assert result.text == "done"
    assert seen == [None, "pen", "pen", "pen-a", WHEN, "gold", ["first", "a"], 3]
    assert result.state["when"] == "2024-01-01T00:00:00Z"
    desk = Desk.bind(result)
    assert (desk.when, desk.tier, desk.tags) == (WHEN, "gold", ["first", "a"])


def test_function_steps_read_and_return() -> None:
    seen: list[Any] = []

    def step(state: Any) -> dict[str, Any]:
        desk = Desk.bind(state)
        with pytest.raises(UsageError, match="a function over state only reads it"):
            desk.intent = "changed"
        with pytest.raises(StateKeyError):
            _ = desk.when
        return Desk.delta(when=WHEN, tier="gold", ticket=desk.intent)

    def look(state: Any) -> None:
        desk = Desk.bind(state)
        seen.extend([desk.when, desk.tier, desk.ticket])

    result = asyncio.run((Agent("a").mock("x").writes("intent") >> step >> tap(look)).run("hi"))
    assert seen == [WHEN, "gold", "x"]
    assert Desk.bind(result).ticket == "x"


class Watching:
    """Every sort of hook of a middleware."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []

    async def before_run(self, ctx: Any) -> None:
        Desk.bind(ctx).scratch = 1
        self.seen.append(("run", Desk.bind(ctx).intent))

    async def before_agent(self, ctx: Any, agent_name: str) -> None:
        Desk.bind(ctx).tags += [agent_name]

    async def before_model(self, ctx: Any, request: Any) -> None:
        self.seen.append(("model", Desk.bind(ctx).tags))

    async def wrap_model_call(self, call: ModelCall, next: NextModel) -> Any:
        Desk.bind(call).tier = "silver"
        self.seen.append(("call", Desk.bind(call.ctx).tier))
        return await next(call)

    async def wrap_agent(self, call: AgentCall, next: NextAgent) -> Any:
        self.seen.append(("agent", Desk.bind(call).intent))
        return await next(call)


def test_middlewares_read_and_write() -> None:
    watching = Watching()
    agent = Agent("clerk").mock("done").middleware(watching)
    result = asyncio.run(agent.run("hi", state=Desk.initial(intent="pen")))
    assert sorted(watching.seen, key=str) == [
        ("agent", "pen"),
        ("call", "silver"),
        ("model", ["clerk"]),
        ("run", "pen"),
    ]
    desk = Desk.bind(result)
    assert (desk.tags, desk.tier) == (["clerk"], "silver")


class Custom(BaseAgent):
    """An agent of ADK's own kind, which has an InvocationContext."""

    seen: ClassVar[list[Any]] = []

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        desk = Desk.bind(ctx)
        self.seen.append(desk.intent)
        with pytest.raises(UsageError, match="only reads state"):
            desk.ticket = "lost"
        with pytest.raises(UsageError, match="only reads state"):
            Desk.bind(ctx.session).ticket = "lost"
        delta = Desk.delta(ticket="kept")
        yield Event(author=self.name, actions=EventActions(state_delta=delta))
        self.seen.append(desk.ticket)


async def test_plain_adk_works_as_well() -> None:
    """Without a pipeline: ADK's runner, agents and sessions."""
    service = InMemorySessionService()
    model = ScriptedModel(reply(Call("book", {"word": "b"})), "done")
    llm = LlmAgent(name="clerk", model=model, tools=[book])
    for agent in (Custom(name="own"), llm):
        runner = Runner(app_name="shop", agent=agent, session_service=service)
        session = await service.create_session(
            app_name="shop", user_id="ann", state=Desk.initial(intent="pen")
        )
        message = types.Content(role="user", parts=[types.Part(text="hi")])
        async for _ in runner.run_async(user_id="ann", session_id=session.id, new_message=message):
            pass
        stored = await service.get_session(app_name="shop", user_id="ann", session_id=session.id)
        assert stored is not None
        desk = Desk.bind(stored)
        assert desk.ticket == ("kept" if isinstance(agent, Custom) else "pen-b")
    assert Custom.seen == ["pen", "kept"]
    assert desk.when == WHEN


async def test_state_is_migrated_in_a_tool_and_stored(tmp_path: Path) -> None:
    calls: list[int] = []

    class Grown(StateSchema):
        __version__ = 2
        wish: SessionScoped[str]

        @classmethod
        def upgrade(cls, state: dict[str, Any], from_version: int) -> None:
            calls.append(from_version)
            if "intent" in state:
                state["wish"] = state.pop("intent")

    def look(tool_context: ToolContext) -> str:
        """Look."""
        return Grown.bind(tool_context).wish

    def read(callback_context: Any) -> None:
        seen.append(Grown.bind(callback_context).wish)

    seen: list[str] = []
    service = SqliteSessionService(str(tmp_path / "sessions.db"))
    model = ScriptedModel(reply(Call("look", {})), "done", "done")
    agent = Agent("clerk", model).tool(look).after_agent(read)
    result = await agent.run("hi", state={"intent": "pen"}, session_service=service)
    assert result.state["wish"] == "pen"
    assert result.state["_adkf_version:Grown"] == 2
    assert result.state.get("intent") is None
    await agent.run("again", session_id=result.session_id, session_service=service)
    assert seen == ["pen", "pen"]
    assert calls == [1]

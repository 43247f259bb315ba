"""Resources on ADK: hidden from the model, handed to tools, callbacks and instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from adk_programs import by_runner, plain
from google.adk.agents.llm_agent import LlmAgent
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.tools.tool_context import ToolContext  # noqa: TC002  # ADK looks it up

from adk_fluent import Agent, Pipeline, Resource, injected
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import UsageError
from adk_fluent.testing import Call, ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Generator

    from google.adk.agents.callback_context import CallbackContext

pytestmark = pytest.mark.adk


if TYPE_CHECKING:
    Database = Any  # a name that is there for type checkers only


class Shop:
    """A resource that notes what happens to it."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def opened(self) -> Generator[Shop]:
        self.log.append("open")
        try:
            yield self
        finally:
            self.log.append("close")


def look(order: str, db: Database, limit: int = 3) -> str:
    """Look up an order.

    Args:
        order: Its number.
        limit: How many lines.
    """
    db.log.append(f"look {order} {limit}")
    return f"{order} is on its way"


async def look_later(order: str, *, db: Any) -> str:
    """Look up an order."""
    db.log.append(f"look {order}")
    return f"{order} is on its way"


def look_with(order: str, tool_context: ToolContext, db: Any) -> str:
    """Look up an order."""
    tool_context.state["looked"] = order
    db.log.append(f"look {order}")
    return f"{order} is on its way"


def calling(*args: str) -> ScriptedModel:
    name, order = args
    return ScriptedModel(Call(name, {"order": order}), "done")


def declared(model: ScriptedModel) -> dict[str, set[str]]:
    """The parameters of each tool, as the model sees them."""
    tools = model.calls[0].config.tools[0].function_declarations
    return {each.name: set(_properties(each)) for each in tools}


def _properties(declaration: Any) -> Any:
    schema = getattr(declaration, "parameters_json_schema", None)
    return schema["properties"] if schema else declaration.parameters.properties


TOOLS: list[Any] = [look, look_later, look_with]


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("wrap", [None, FunctionTool])
async def test_a_tool_gets_it_and_the_model_does_not_see_it(tool: Any, wrap: Any) -> None:
    shop, model = Shop(), calling(tool.__name__, "A1")
    agent = Agent("clerk", model).tool(wrap(tool) if wrap else tool).inject(db=shop)
    result = await agent.run("go")
    assert result.text == "done"
    assert shop.log == ["look A1 3" if tool is look else "look A1"]
    assert declared(model) == {tool.__name__: {"order", "limit"} if tool is look else {"order"}}
    [answer] = [each for event in result for each in event.tool_responses]
    assert answer.result == {"result": "A1 is on its way"}
    assert result.state == ({"looked": "A1"} if tool is look_with else {})
    description = model.calls[0].config.tools[0].function_declarations[0].description
    assert description.startswith("Look up an order.")


async def test_a_missing_argument_is_still_told_to_the_model() -> None:
    model = ScriptedModel(Call("look", {}), "done")
    result = await Agent("clerk", model).tool(look).inject(db=Shop()).run("go")
    [answer] = [each for event in result for each in event.tool_responses]
    assert "order" in str(answer.result)
    assert "db" not in str(answer.result).replace("db`", "")


@pytest.mark.filterwarnings("ignore:.EXPERIMENTAL")
@pytest.mark.parametrize("order", ["A1", "B2"])
async def test_a_function_may_say_whether_to_confirm(order: str) -> None:
    def risky(order: str, **rest: Any) -> bool:
        assert not rest
        return order == "B2"

    shop = Shop()
    agent = Agent("clerk", calling("look_later", order)).inject(db=shop)
    result = await agent.tool(look_later, require_confirmation=risky).run("go")
    assert bool(result.pending) == (order == "B2")
    assert shop.log == ([] if order == "B2" else ["look A1"])


async def test_a_long_running_tool() -> None:
    shop = Shop()

    def start(order: str, db: Shop) -> None:
        """Start it."""
        db.log.append(order)

    agent = Agent("clerk", ScriptedModel(Call("start", {"order": "A1"})))
    result = await agent.tool(LongRunningFunctionTool(start)).inject(db=shop).run("go")
    assert [each.kind for each in result.pending] == ["tool"]
    assert shop.log == ["A1"]


def test_a_tool_of_a_kind_nobody_knows_is_refused() -> None:
    class Own(FunctionTool):
        pass

    with pytest.raises(UsageError, match=r"resources cannot be injected into a .*Own"):
        Agent("clerk", "gemini-2.5-flash").tool(Own(look_later)).inject(db=1).to_agent()
    Agent("clerk", "gemini-2.5-flash").tool(Own(look_later)).to_agent()


async def test_callbacks_and_instructions_get_it() -> None:
    shop = Shop()
    model = calling("look_later", "A1")

    def before(callback_context: CallbackContext, db: Shop) -> None:
        db.log.append(f"before {callback_context.agent_name}")

    async def after_model(*, callback_context: Any, llm_response: Any, db: Shop) -> None:
        db.log.append("after model")

    def before_tool(tool: Any, args: Any, tool_context: Any, db: Shop) -> None:
        db.log.append(f"before {tool.name}")

    def instruction(ctx: Any, db: Shop) -> str:
        return f"There were {len(db.log)} events."

    agent = Agent("clerk", model).instruct(instruction).tool(look_later)
    agent.before_agent(before).after_model([after_model]).before_tool(before_tool)
    await agent.inject(db=shop).run("go")
    assert shop.log == [
        "before clerk",
        "after model",
        "before look_later",
        "look A1",
        "after model",
    ]
    assert [plain(each.system).splitlines()[0] for each in model.calls] == [
        "There were 1 events.",
        "There were 4 events.",
    ]


async def test_agents_that_are_tools_and_flows_below_them_find_it() -> None:
    shop = Shop()

    def step(state: Any, db: Shop) -> None:
        db.log.append("step")

    def deep() -> str:
        """Ask what is injected."""
        injected("db").log.append("asked")
        return "ok"

    inner = Agent("inner", ScriptedModel(Call("deep"), "inner done")).tool(deep) >> step
    helper = Agent("helper", calling("look_later", "A1")).tool(look_later)
    model = ScriptedModel(
        Call("helper", {"request": "x"}), Call("desk", {"request": "y"}), "all done"
    )
    boss = Agent("boss", model).agent_tool(helper, inner.named("desk"))
    result = await boss.inject(db=Resource(shop.opened)).run("go")
    assert result.text == "all done"
    assert shop.log == ["open", "look A1", "asked", "step", "close"]


@pytest.mark.parametrize("order", ["A1", "risky"])
@pytest.mark.parametrize("tool", [look_later, look_with, FunctionTool(look_later)])
async def test_the_function_that_says_so_may_be_async(tool: Any, order: str) -> None:
    async def is_risky(order: str, **_: Any) -> bool:
        return order == "risky"

    risky: Any = is_risky  # ADK's type has no async ones

    name = getattr(tool, "name", None) or tool.__name__
    if isinstance(tool, FunctionTool):
        tool = FunctionTool(tool.func, require_confirmation=risky)
        agent = Agent("clerk", calling(name, order)).tool(tool)
    else:
        agent = Agent("clerk", calling(name, order)).tool(tool, require_confirmation=risky)
    result = await agent.inject(db=Shop()).run("go")
    assert bool(result.pending) is (order == "risky")


def plain_look(order: str) -> str:
    """Look up an order."""
    return order


@pytest.mark.parametrize("tool", [plain_look, look_later, look_with])
async def test_the_function_that_says_so_may_name_resources(tool: Any) -> None:
    asked: list[str] = []

    def risky(order: str, rules: list[str], **_: Any) -> bool:
        asked.append(order)
        return order in rules

    for order in ("A1", "B2"):
        agent = Agent("clerk", calling(tool.__name__, order)).tool(tool, require_confirmation=risky)
        result = await agent.inject(db=Shop(), rules=["B2"]).run("go")
        assert bool(result.pending) is (order == "B2")
    made = FunctionTool(plain_look, require_confirmation=risky)
    agent = Agent("clerk", calling("plain_look", "B2")).tool(made).inject(rules=["B2"])
    assert (await agent.run("go")).pending
    assert set(asked) == {"A1", "B2"}


@pytest.mark.parametrize("way", ["app", "agent", "run", "stream"])
async def test_every_way_to_run(way: str) -> None:
    shop = Shop()

    def step(state: Any, db: Shop) -> dict[str, int]:
        return {"seen": len(db.log)}

    agent = Agent("clerk", calling("look_later", "A1")).tool(look_later)
    pipeline = (agent >> step).inject(db=Resource(shop.opened))
    match way:
        case "app":
            events: Any = await by_runner(pipeline.to_app())
            assert events[-1].actions.state_delta == {"seen": 2}
        case "agent":
            events = await by_runner(pipeline.to_agent())
            assert events[-1].actions.state_delta == {"seen": 2}
        case "run":
            assert (await pipeline.run("go")).state == {"seen": 2}
        case _:
            config = ExecutionConfig(streaming_mode="sse")
            deltas = [each.state_delta async for each in pipeline.stream("go", config=config)]
            assert {"seen": 2} in deltas
    assert shop.log == ["open", "look A1", "close"]


@pytest.mark.parametrize("how", ["error", "aclose"])
async def test_it_is_tidied_up_under_a_foreign_runner(how: str) -> None:
    from google.adk.runners import Runner
    from google.genai import types

    shop = Shop()

    def fails(state: Any) -> None:
        raise ValueError("boom")

    pipeline = (Agent("clerk", ScriptedModel("hello")) >> fails).inject(db=Resource(shop.opened))
    service = InMemorySessionService()
    runner = Runner(app=pipeline.to_app(), session_service=service)
    await service.create_session(app_name=runner.app_name, user_id="u", session_id="s")
    message = types.Content(role="user", parts=[types.Part(text="go")])
    events = runner.run_async(user_id="u", session_id="s", new_message=message)
    if how == "error":
        with pytest.raises(ValueError, match="boom"):
            [event async for event in events]
    else:
        await anext(events)
        assert shop.log == ["open"]
        await events.aclose()
    assert shop.log == ["open", "close"]


async def test_one_a_session_on_adk(tmp_path: Any) -> None:
    from google.adk.sessions.sqlite_session_service import SqliteSessionService

    shop = Shop()
    service = SqliteSessionService(str(tmp_path / "sessions.db"))
    agent = Agent("clerk", ScriptedModel(default="ok")).inject(
        db=Resource(shop.opened, scope="session")
    )
    for session in ("s1", "s1", "s2"):
        await agent.run("go", session_id=session, session_service=service)
    assert shop.log == ["open", "open"]
    stored = await service.get_session(app_name="adk_fluent_app", user_id="user", session_id="s1")
    assert stored is not None
    assert stored.state == {}
    await agent.aclose()
    assert shop.log == ["open", "open", "close", "close"]


async def test_the_users_own_objects_are_left_alone() -> None:
    tool = FunctionTool(look_later)
    tools: list[Any] = [look_later]
    native = LlmAgent(name="native", model=ScriptedModel("ok"), tools=tools)
    pipeline = Pipeline(Agent("clerk", "gemini-2.5-flash").tool(tool), native).inject(db=1)
    pipeline.to_app()
    assert tool.func is look_later
    assert tools == [look_later]


@pytest.mark.filterwarnings("ignore:.EXPERIMENTAL")
async def test_a_tool_that_was_confirmed_has_its_resource() -> None:
    model = ScriptedModel(Call("look_later", {"order": "A1"}), "done")
    agent = Agent("clerk", model).tool(look_later, require_confirmation=True).inject(db=Shop())
    asked = await agent.run("go")
    [question] = asked.pending
    done = await agent.resume(question.answer(True), session_id=asked.session_id)
    assert done.text == "done"
    assert not done.pending

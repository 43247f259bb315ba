"""Results of tools that are made up; the tools themselves never run."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.runners import InMemoryRunner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools import LongRunningFunctionTool
from google.genai import types
from kit import SSE

from adk_fluent import Agent
from adk_fluent.backends.adk import MiddlewarePlugin
from adk_fluent.errors import RunError, UsageError
from adk_fluent.middleware import ToolEmulatorMiddleware, retry, tool_emulator
from adk_fluent.protocol import Middleware
from adk_fluent.testing import Call, GeminiEmulator, ScriptedModel, reply

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adk_fluent.builders import Builder
    from adk_fluent.middleware._tools._emulator import Emulated
    from adk_fluent.protocol import ToolCall
    from adk_fluent.testing import Asked

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]"),
]


class Bank:
    """Tools that must not run, and whether they did."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def open_account(self, owner: str) -> str:
        """Open an account.

        Args:
            owner: Whose it is.
        """
        self.ran.append("open_account")
        return "real"

    def balance(self, account: str) -> str:
        """Tell the balance.

        Args:
            account: Its number.
        """
        self.ran.append("balance")
        return "real"

    def on(self, model: Any, *middlewares: Any) -> Builder:
        made: Builder = Agent("teller", model).tool(self.open_account).tool(self.balance)
        for each in middlewares:
            made = made.middleware(each)
        return made


def told(asked: Asked) -> str:
    """Answers with what the tools have returned."""
    return json.dumps(
        [
            part.function_response.response
            for content in asked.raw.contents
            for part in content.parts
            if part.function_response
        ]
    )


def question(asked: Any) -> Any:
    """What the one who makes results up was asked."""
    return json.loads(asked.prompt)


OPEN, BALANCE = Call("open_account", {"owner": "Ann"}), Call("balance", {"account": "17"})


# --- what every middleware here is tried in ------------------------------------------------------


async def test_happy() -> None:
    bank = Bank()
    maker = ScriptedModel('{"account": "17"}', '{"euros": 0}')
    desk = bank.on(ScriptedModel(OPEN, BALANCE, told), tool_emulator(model=maker))
    result = await desk.run("hi")
    assert bank.ran == []
    assert json.loads(result.text) == [{"account": "17"}, {"euros": 0}]
    first, second = (question(each) for each in maker.calls)
    assert first["call"] == {"name": "open_account", "args": {"owner": "Ann"}}
    assert first["calls before"] == []
    assert first["tool"]["description"].startswith("Open an account.")
    assert "owner" in json.dumps(first["tool"])
    assert second["calls before"] == [
        {"name": "open_account", "args": {"owner": "Ann"}, "result": {"account": "17"}}
    ]


async def test_streamed() -> None:
    """Over Gemini, which is the agent's own model and the one that makes results up."""
    bank = Bank()
    with GeminiEmulator(BALANCE, '{"euros": 3}', reply(chunks=["a", "b"])) as gemini:
        result = await bank.on(gemini.model(), tool_emulator()).run("hi", config=SSE)
        assert result.text == "ab"
        assert [each.content for each in result if each.is_partial][-2:] == ["a", "b"]
        _, making, answering = gemini.requests
        assert (making.stream, making.tools) == (False, ())
        assert making.config["responseMimeType"] == "application/json"
        assert answering.results[-1]["response"] == {"euros": 3}
    assert bank.ran == []


async def test_parallel_tools() -> None:
    bank = Bank()
    maker = ScriptedModel(default=lambda asked: json.dumps({"of": question(asked)["call"]["name"]}))
    two = reply(OPEN, BALANCE)
    result = await bank.on(ScriptedModel(two, told), tool_emulator(model=maker)).run("hi")
    assert json.loads(result.text) == [{"of": "open_account"}, {"of": "balance"}]
    assert bank.ran == []


async def test_cancelled() -> None:
    bank, maker = Bank(), ScriptedModel(reply("{}", latency=60))
    desk = bank.on(ScriptedModel(BALANCE, "done"), tool_emulator(model=maker))
    running = asyncio.ensure_future(desk.run("hi"))
    async with asyncio.timeout(10):
        while not maker.calls:  # noqa: ASYNC110  # models tell nobody
            await asyncio.sleep(0.005)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert bank.ran == []


async def test_error_after_the_first_partial() -> None:
    """The answer that follows a result that was made up breaks: nothing is made up again."""
    bank, maker = Bank(), ScriptedModel('{"euros": 3}')
    half = reply(chunks=["Half an ", "answer"], fault="cut")
    with GeminiEmulator(BALANCE, half) as gemini:
        desk = bank.on(gemini.model(), tool_emulator(model=maker))
        with pytest.raises(Exception):  # noqa: B017, PT011  # clients of different ages call it differently
            await desk.run("hi", config=SSE)
        assert len(gemini.requests) == 2
    assert (len(maker.calls), bank.ran) == (1, [])


async def test_concurrent() -> None:
    """Each run has calls of its own before it."""
    seen: list[int] = []

    async def made(call: ToolCall, before: Sequence[Emulated]) -> Any:
        await asyncio.sleep(0)
        seen.append(len(before))
        return {"n": len(before)}

    bank, shared = Bank(), tool_emulator(emulate=made)
    await asyncio.gather(
        *(bank.on(ScriptedModel(OPEN, BALANCE, "done"), shared).run("hi") for _ in range(5))
    )
    assert sorted(seen) == [0] * 5 + [1] * 5
    assert bank.ran == []


# --- who makes results up ------------------------------------------------------------------------


async def one(*, call: Any = BALANCE, **options: Any) -> tuple[list[str], Any]:
    bank = Bank()
    result = await bank.on(ScriptedModel(call, told), tool_emulator(**options)).run("hi")
    (given,) = json.loads(result.text)
    return bank.ran, given


@pytest.mark.parametrize(
    ("said", "result"),
    [
        ('{"euros": 3}', {"euros": 3}),
        ('```json\n{"euros": 3}\n```', {"euros": 3}),
        ("[1, 2]", {"result": [1, 2]}),
        ("3", {"result": 3}),
        ("Three euros.", {"result": "Three euros."}),
    ],
)
async def test_a_result_is_a_dict(said: str, result: Any) -> None:
    assert await one(model=ScriptedModel(said)) == ([], result)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (reply(), "it said nothing"),
        (reply(error_code="SAFETY", error_message="blocked"), "SAFETY: blocked"),
    ],
)
async def test_a_model_that_says_nothing_fails_the_call(said: Any, why: str) -> None:
    bank = Bank()
    desk = bank.on(ScriptedModel(BALANCE), tool_emulator(model=ScriptedModel(said)))
    with pytest.raises(RunError, match="nobody made up a result of tool 'balance'") as caught:
        await desk.run("hi")
    assert f"model 'scripted': {why}" in str(caught.value)
    assert bank.ran == []


async def test_the_error_of_a_model_is_its_own_and_may_be_retried() -> None:
    bank, maker = Bank(), ScriptedModel(ConnectionError("reset"), '{"euros": 3}')
    again = retry(backoff_base=0.0, tools=["balance"])
    desk = bank.on(ScriptedModel(BALANCE, told), again, tool_emulator(model=maker))
    assert json.loads((await desk.run("hi")).text) == [{"euros": 3}]
    with pytest.raises(ConnectionError):
        await one(model=ScriptedModel(ConnectionError("reset")))
    assert bank.ran == []


async def test_fixed_results_come_first_and_are_copied() -> None:
    fixed = {"balance": {"euros": [3]}, "open_account": "17"}

    def never(call: ToolCall, before: Sequence[Emulated]) -> Any:
        raise AssertionError(call.name)

    middleware = tool_emulator(results=fixed, emulate=never)
    bank = Bank()

    class Spoils:
        async def wrap_tool_call(self, call: Any, next: Any) -> Any:
            result = await next(call)
            if "euros" in result:
                result["euros"].append(4)
            return result

    desk = bank.on(ScriptedModel(BALANCE, BALANCE, OPEN, told), Spoils(), middleware)
    result = await desk.run("hi")
    assert json.loads(result.text) == [{"euros": [3, 4]}, {"euros": [3, 4]}, {"result": "17"}]
    assert bank.ran == []


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_function_may_make_results_up(is_async: bool) -> None:
    def made(call: ToolCall, before: Sequence[Emulated]) -> Any:
        return {"name": call.name, "args": call.args, "before": len(before)}

    async def later(call: ToolCall, before: Sequence[Emulated]) -> Any:
        return made(call, before)

    emulate: Any = later if is_async else made
    assert await one(emulate=emulate) == (
        [],
        {"name": "balance", "args": {"account": "17"}, "before": 0},
    )


async def test_without_a_model_the_agents_own_makes_them_up() -> None:
    bank, model = Bank(), ScriptedModel(BALANCE, '{"euros": 3}', told)
    result = await bank.on(model, tool_emulator()).run("hi")
    assert json.loads(result.text) == [{"euros": 3}]
    assert bank.ran == []


async def test_what_the_model_is_told_besides() -> None:
    maker = ScriptedModel("{}")
    await one(model=maker, instructions="Ann is rich.")
    assert maker.calls[0].system.endswith("Ann is rich.")
    assert maker.calls[0].raw.config.temperature == 0


async def test_of_many_calls_the_last_are_told() -> None:
    calls = [Call("balance", {"account": f"{n}"}) for n in range(60)]
    maker = ScriptedModel(default="{}")
    await Bank().on(ScriptedModel(*calls, "done"), tool_emulator(model=maker)).run("hi")
    before = question(maker.calls[-1])["calls before"]
    assert [each["args"]["account"] for each in before] == [f"{n}" for n in range(9, 59)]


# --- what is emulated ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "ran"),
    [
        ({"tools": True}, []),
        ({"tools": False}, ["open_account", "balance"]),
        ({"tools": ["balance"]}, ["open_account"]),
        ({"exclude": ["balance"]}, ["balance"]),
    ],
)
async def test_which_tools_are_emulated(options: Any, ran: list[str]) -> None:
    bank = Bank()
    middleware = tool_emulator(model=ScriptedModel(default="{}"), **options)
    await bank.on(ScriptedModel(OPEN, BALANCE, "done"), middleware).run("hi")
    assert bank.ran == ran


async def test_tools_of_adk_are_never_emulated() -> None:
    other = Agent("other", ScriptedModel("from the other"))
    model = ScriptedModel(Call("transfer_to_agent", {"agent_name": "other"}))
    boss = Agent("boss", model).delegates(other)
    result = await boss.middleware(tool_emulator(model=ScriptedModel())).run("hi")
    assert result.text == "from the other"


@pytest.mark.parametrize("tools", [True, ["helper"]])
async def test_an_agent_that_is_a_tool_runs_unless_it_is_named(tools: Any) -> None:
    bank = Bank()
    helper = bank.on(ScriptedModel(BALANCE, told)).named("helper")
    model = ScriptedModel(Call("helper", {"request": "hi"}), told)
    boss = Agent("boss", model).agent_tool(helper)
    maker = ScriptedModel(default='{"euros": 3}')
    result = await boss.middleware(tool_emulator(tools=tools, model=maker)).run("hi")
    assert bank.ran == []
    assert len(maker.calls) == 1
    assert question(maker.calls[0])["call"]["name"] == ("balance" if tools is True else "helper")
    assert "euros" in result.text


async def test_the_result_of_a_long_running_tool_comes_at_once() -> None:
    began: list[str] = []

    def order(what: str) -> None:
        """Order parts."""
        began.append(what)

    model = ScriptedModel(Call("order", {"what": "wheel"}), told)
    desk = Agent("desk", model).tool(LongRunningFunctionTool(order)).writes("said")
    after = desk >> Agent("after", ScriptedModel("done"))
    emulated = after.middleware(tool_emulator(results={"order": {"delivered": 1}}))
    done = await emulated.run("hi")
    assert json.loads(done.state["said"]) == [{"delivered": 1}]
    assert (done.text, done.pending, began) == ("done", [], [])


async def test_in_a_pipeline_in_a_pipeline_tools_are_emulated() -> None:
    bank = Bank()
    inner = bank.on(ScriptedModel(BALANCE, told), tool_emulator(results={"balance": 3}))
    result = await (Agent("first").mock("A") >> inner).run("hi")
    assert json.loads(result.text) == [{"result": 3}]
    assert bank.ran == []


async def test_where_it_cannot_stand_in_for_a_tool_the_tool_does_not_run() -> None:
    """ADK runs tools of agents that were built by hand; nothing stands around them."""
    bank = Bank()
    agent = LlmAgent(name="hand", model=ScriptedModel(BALANCE, OPEN), tools=[bank.balance])
    plugin = MiddlewarePlugin(stack=[tool_emulator(results={"balance": 3})])
    runner = InMemoryRunner(app=App(name="app", root_agent=agent, plugins=[plugin]))
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    message = types.Content(role="user", parts=[types.Part(text="hi")])
    with pytest.raises(Exception, match="tool 'balance' cannot be emulated here"):
        async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=message):
            pass
    assert bank.ran == []


# --- that it is seen -----------------------------------------------------------------------------


async def test_the_events_say_which_results_are_made_up() -> None:
    bank, sessions = Bank(), InMemorySessionService()
    middleware = tool_emulator(tools=["balance"], results={"balance": 3})
    desk = bank.on(ScriptedModel(reply(OPEN, BALANCE), "done"), middleware)
    result = await desk.run("hi", session_id="s", session_service=sessions)
    (event,) = [each for each in result if each.tool_responses]
    ids = {each.tool_name: each.call_id for each in event.tool_responses}
    assert event.custom_metadata == {"emulated": [ids["balance"]]}
    assert [each.custom_metadata for each in result if not each.tool_responses] == [{}, {}]
    assert bank.ran == ["open_account"]


async def test_it_warns_once(caplog: pytest.LogCaptureFixture) -> None:
    middleware = tool_emulator(results={"balance": 3})
    with caplog.at_level(logging.INFO, "adk_fluent"):
        for _ in range(2):
            desk = Bank().on(ScriptedModel(BALANCE, BALANCE, "done"), middleware)
            await desk.run("hi")
    levels = [each.levelname for each in caplog.records if "tool_emulator" in each.message]
    assert levels == ["WARNING"] + ["INFO"] * 4
    assert "not for production" in caplog.text


# --- what it is given ----------------------------------------------------------------------------


def test_it_is_a_middleware() -> None:
    assert isinstance(ToolEmulatorMiddleware(), Middleware)
    assert "results" in (tool_emulator.DESC.config_schema or {})["properties"]


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"tools": "balance"}, "tools"),
        ({"tools": ["transfer_to_agent"]}, "tools"),
        ({"exclude": "balance"}, "exclude"),
        ({"results": ["balance"]}, "results"),
        ({"model": 3}, "model"),
        ({"instructions": None}, "instructions"),
    ],
)
def test_wrong_options_are_refused_where_they_are_given(options: Any, option: str) -> None:
    with pytest.raises(UsageError, match=rf"tool_emulator\({option}=\.\.\.\)") as caught:
        ToolEmulatorMiddleware(**options)
    assert __file__ in str(caught.value)


async def test_tools_of_a_part_are_emulated_and_no_others() -> None:
    bank, other = Bank(), Bank()
    call = Call("open_account", {"owner": "Ann"})
    fixed = tool_emulator(results={"open_account": {"account": 17}})
    part = Agent("teller", ScriptedModel(call, "done")).tool(bank.open_account)
    after = Agent("clerk", ScriptedModel(call, "done")).tool(other.open_account)
    result = await (part.middleware(fixed, scope="agent") >> after).run("hi")
    assert (bank.ran, other.ran) == ([], ["open_account"])
    marked = [each for each in result if "emulated" in each.custom_metadata]
    assert [each.tool_responses[0].result for each in marked] == [{"account": 17}]


async def test_tools_of_a_part_that_is_handed_over_to_are_emulated() -> None:
    bank = Bank()
    model = ScriptedModel(Call("open_account", {"owner": "Ann"}), "done")
    fixed = tool_emulator(results={"open_account": {"account": 17}})
    teller = Agent("teller", model).tool(bank.open_account).middleware(fixed, scope="agent")
    handed = ScriptedModel(Call("transfer_to_agent", {"agent_name": "teller"}))
    assert (await Agent("desk", handed).delegates(teller).run("hi")).text == "done"
    assert bank.ran == []

"""Tools that a person is asked about: nothing runs that nobody has approved."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.runners import InMemoryRunner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools import BaseTool, LongRunningFunctionTool, ToolContext
from google.adk.tools.agent_tool import AgentTool
from google.genai import types
from kit import SSE, clerk

from adk_fluent import Agent
from adk_fluent.backends.adk import MiddlewarePlugin
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import SessionError, UsageError
from adk_fluent.middleware import ToolApprovalMiddleware, human_in_the_loop, tool_approval
from adk_fluent.middleware._tools._machinery import wrong_arguments
from adk_fluent.protocol import Middleware
from adk_fluent.testing import Call, GeminiEmulator, ScriptedModel, reply

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Measured

    from adk_fluent.builders import Builder
    from adk_fluent.testing import Asked

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]"),
]


class Till:
    """Tools that have an effect, and what they did."""

    def __init__(self) -> None:
        self.paid: list[tuple[str, int]] = []
        self.asked: list[str] = []
        self.fails = 0

    async def pay(self, order: str, amount: int = 1) -> str:
        """Pay an order back.

        Args:
            order: Its number.
            amount: Euros.
        """
        if self.fails:
            self.fails -= 1
            raise ConnectionError("reset")
        self.paid.append((order, amount))
        return f"paid {order}"

    async def look(self, order: str) -> str:
        """Look an order up.

        Args:
            order: Its number.
        """
        self.asked.append(order)
        return f"{order} is open"

    def desk(self, *script: Any, **options: Any) -> Builder:
        made = Agent("desk", ScriptedModel(*script)).tool(self.pay).tool(self.look)
        given: dict[str, Any] = {"tools": ["pay"], **options}
        return made.middleware(tool_approval(**given))


def told(asked: Asked) -> str:
    """Answers with what the tools have returned."""
    return " ".join(
        f"{part.function_response.name}={part.function_response.response}"
        for content in asked.raw.contents
        for part in content.parts
        if part.function_response
    )


PAY = Call("pay", {"order": "A1", "amount": 5})


async def begun(pipeline: Builder, **options: Any) -> tuple[Any, dict[str, Any]]:
    kept: dict[str, Any] = {"session_id": "s", "session_service": InMemorySessionService()}
    kept |= options
    return await pipeline.run("hi", **kept), kept


# --- what every middleware here is tried in ------------------------------------------------------


async def test_happy(metrics: Measured) -> None:
    till = Till()
    desk = till.desk(Call("look", {"order": "A1"}), PAY, told)
    asked, kept = await begun(desk)
    (question,) = asked.pending
    assert (question.kind, question.name, question.author) == ("confirmation", "pay", "desk")
    assert question.payload == {"order": "A1", "amount": 5}
    assert question.message == 'Run pay({"order": "A1", "amount": 5})?'
    assert till.paid == []
    assert till.asked == ["A1"]
    done = await desk.resume(question.answer(True), **kept)
    assert till.paid == [("A1", 5)]
    assert "pay={'result': 'paid A1'}" in done.text
    assert done.pending == []
    assert metrics("adk_fluent.approval.decisions", adk_fluent__decision="asked") == 1
    assert metrics("adk_fluent.approval.decisions", adk_fluent__decision="approved") == 1


async def test_streamed() -> None:
    with GeminiEmulator(
        reply(Call("search", {"word": "x"})), reply(chunks=["all ", "done"])
    ) as gemini:
        desk = clerk(gemini, tool_approval(tools=["search"]))
        asked, kept = await begun(desk, config=SSE)
        (question,) = asked.pending
        (waits,) = [each.result for event in asked for each in event.tool_responses]
        assert waits == {"status": "A person is asked about this call; its result comes later."}
        done = await desk.resume(question.answer(True), **kept)
        assert done.text == "all done"
        assert [each.content for each in done if each.is_partial] == ["all ", "done"]
        assert gemini.requests[-1].results[-1]["response"] == {"result": "found x"}


@pytest.mark.parametrize("answer", [True, False])
async def test_parallel_tools(answer: bool) -> None:
    """What needs no approval runs once, at once."""
    till = Till()
    desk = till.desk(reply(Call("look", {"order": "A1"}), PAY), told)
    asked, kept = await begun(desk)
    assert [each.name for each in asked.pending] == ["pay"]
    assert (till.asked, till.paid) == (["A1"], [])
    done = await desk.resume(asked.pending[0].answer(answer), **kept)
    assert till.asked == ["A1"]
    assert till.paid == ([("A1", 5)] if answer else [])
    assert "look={'result': 'A1 is open'}" in done.text


async def test_parallel_tools_are_asked_about_one_by_one() -> None:
    till = Till()
    two = reply(PAY, Call("pay", {"order": "B2", "amount": 2}))
    desk = till.desk(two, told)
    asked, kept = await begun(desk)
    first, second = asked.pending
    assert [each.payload["order"] for each in (first, second)] == ["A1", "B2"]
    done = await desk.resume(second.answer(True), first.answer(False), **kept)
    assert till.paid == [("B2", 2)]
    assert "refused" in done.text
    assert "paid B2" in done.text


async def test_questions_may_be_answered_one_after_the_other() -> None:
    """The model is asked again when all of them are."""
    till = Till()
    three = reply(PAY, Call("pay", {"order": "B2"}), Call("look", {"order": "C3"}))
    desk = till.desk(three, told)
    asked, kept = await begun(desk)
    first, second = asked.pending
    left = await desk.resume(second.answer(True), **kept)
    assert (left.pending, left.text) == ([first], "")
    assert till.paid == [("B2", 1)]
    done = await desk.resume(first.answer(True), **kept)
    assert done.pending == []
    assert (till.paid, till.asked) == ([("B2", 1), ("A1", 5)], ["C3"])
    assert "is asked about" not in done.text


async def test_cancelled() -> None:
    """A run that is cut off while the tool runs asks for nothing twice and runs nothing alone."""
    till, began = Till(), asyncio.Event()

    async def slow(order: str) -> str:
        """Takes its time."""
        began.set()
        await asyncio.sleep(60)
        return "late"

    desk = Agent("desk", ScriptedModel(Call("slow", {"order": "A1"}), "done")).tool(slow)
    desk = desk.tool(till.pay).middleware(tool_approval())
    asked, kept = await begun(desk)
    running = asyncio.ensure_future(desk.resume(asked.pending[0].answer(True), **kept))
    async with asyncio.timeout(10):
        await began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert till.paid == []


async def test_error_after_the_first_partial() -> None:
    """The answer that follows an approved call breaks: the call is not made again."""
    till = Till()
    with GeminiEmulator(PAY, reply(chunks=["Half an ", "answer"], fault="cut"), "whole") as gemini:
        desk: Builder = Agent("desk", gemini.model()).tool(till.pay).middleware(tool_approval())
        asked, kept = await begun(desk, config=SSE)
        answer = asked.pending[0].answer(True)
        with pytest.raises(Exception):  # noqa: B017, PT011  # clients of different ages call it differently
            await desk.resume(answer, **kept)
        assert till.paid == [("A1", 5)]
        done = await desk.resume(**kept)
    assert done.text == "whole"
    assert till.paid == [("A1", 5)]


async def test_concurrent() -> None:
    """Runs side by side, all with one middleware: each is told of its own answer."""
    till, shared = Till(), tool_approval(tools=["pay"])

    async def one(n: int) -> str:
        model = ScriptedModel(Call("pay", {"order": f"{n}"}), told)
        desk = Agent("desk", model).tool(till.pay).middleware(shared)
        asked, kept = await begun(desk)
        done = await desk.resume(asked.pending[0].answer(n % 2 == 0), **kept)
        return done.text

    said = await asyncio.gather(*(one(n) for n in range(6)))
    assert [("paid" in each, "refused" in each) for each in said] == [
        (n % 2 == 0, n % 2 == 1) for n in range(6)
    ]
    assert sorted(till.paid) == [("0", 1), ("2", 1), ("4", 1)]


# --- what may be answered ------------------------------------------------------------------------


async def answered(answer: Any, *, call: Any = PAY, **options: Any) -> tuple[Till, str]:
    till = Till()
    desk = till.desk(call, told, **options)
    asked, kept = await begun(desk)
    assert till.paid == []
    done = await desk.resume(asked.pending[0].answer(answer), **kept)
    assert done.pending == []
    return till, done.text


async def test_a_refusal_with_a_reason_is_told() -> None:
    till, text = await answered({"approved": False, "note": "Ask Ann first."})
    assert till.paid == []
    assert "refused this call. It was not run." in text
    assert "Ask Ann first." in text
    assert "error" not in text


async def test_a_refusal_needs_no_reason(metrics: Measured) -> None:
    till, text = await answered(False)
    assert till.paid == []
    assert "reason" not in text
    assert metrics("adk_fluent.approval.decisions", adk_fluent__decision="refused") == 1


@pytest.mark.parametrize("payload", ["too much", {"reason": "too much"}])
async def test_a_reason_may_stand_in_the_payload(payload: Any) -> None:
    _, text = await answered({"confirmed": False, "payload": payload})
    assert "'reason': 'too much'" in text


async def test_the_arguments_may_be_changed(metrics: Measured) -> None:
    changed = {"order": "A1", "amount": 3}
    till, text = await answered({"approved": True, "payload": {"args": changed}})
    assert till.paid == [("A1", 3)]
    assert "paid A1" in text
    assert metrics("adk_fluent.approval.decisions", adk_fluent__decision="edited") == 1
    assert metrics("adk_fluent.approval.decisions", adk_fluent__decision="approved") == 0


@pytest.mark.parametrize(
    ("args", "wrong"),
    [
        ({"order": "A1", "amount": "three"}, "amount"),
        ({"amount": 3}, "'order' is a required property"),
        ({"order": "A1", "amount": 3, "to": "me"}, "there is no argument 'to'"),
    ],
)
async def test_changed_arguments_are_what_the_tool_takes(args: Any, wrong: str) -> None:
    till, text = await answered({"approved": True, "payload": {"args": args}})
    assert till.paid == []
    assert "It was not run" in text
    assert wrong in text


async def test_the_arguments_may_be_left_to_the_model() -> None:
    args = {"order": "A1", "amount": 3}
    till, text = await answered({"approved": True, "payload": {"args": args}}, edits=False)
    assert till.paid == []
    assert "may not be" in text
    same = {"order": "A1", "amount": 5}
    till, _ = await answered({"approved": True, "payload": {"args": same}}, edits=False)
    assert till.paid == [("A1", 5)]


@pytest.mark.parametrize("payload", [{}, {"args": None}, {"note": "fine"}, ""])
async def test_a_payload_without_arguments_changes_nothing(payload: Any) -> None:
    till, _ = await answered({"approved": True, "payload": payload})
    assert till.paid == [("A1", 5)]


async def test_what_is_no_answer_runs_nothing() -> None:
    till = Till()
    desk = till.desk(PAY, told)
    asked, kept = await begun(desk)
    with pytest.raises(UsageError, match="is no answer to the confirmation"):
        await desk.resume(asked.pending[0].answer("perhaps"), **kept)
    held = await desk.run("yes, approved, pay it", **kept)
    assert held.pending == asked.pending
    assert till.paid == []


async def test_an_answer_counts_once() -> None:
    till = Till()
    desk = till.desk(PAY, told)
    asked, kept = await begun(desk)
    answer = asked.pending[0].answer(True)
    await desk.resume(answer, **kept)
    with pytest.raises(Exception, match="not open any more"):
        await desk.resume(answer, **kept)
    assert till.paid == [("A1", 5)]


# --- who is asked about what ---------------------------------------------------------------------


def is_payment(name: str, args: dict[str, Any]) -> bool:
    return name == "pay"


def is_large(name: str, args: dict[str, Any]) -> bool:
    return args.get("amount", 0) > 9


@pytest.mark.parametrize(
    ("options", "asks"),
    [
        ({"tools": True}, ["pay", "look"]),
        ({"tools": False}, []),
        ({"tools": ["look"]}, ["look"]),
        ({"tools": True, "exclude": ["look"]}, ["pay"]),
        ({"tools": True, "when": is_payment}, ["pay"]),
        ({"tools": True, "when": is_large}, []),
    ],
)
async def test_which_tools_are_asked_about(options: Any, asks: list[str]) -> None:
    till = Till()
    asked, _ = await begun(till.desk(reply(PAY, Call("look", {"order": "A1"})), told, **options))
    assert [each.name for each in asked.pending] == asks
    assert bool(till.paid) is ("pay" not in asks)
    assert bool(till.asked) is ("look" not in asks)


async def test_who_decides_may_be_async_and_if_it_fails_nothing_runs() -> None:
    async def large(name: str, args: dict[str, Any]) -> bool:
        await asyncio.sleep(0)
        return args["amount"] > 3

    def broken(name: str, args: dict[str, Any]) -> bool:
        raise ValueError("broken")

    till = Till()
    assert (await begun(till.desk(PAY, told, when=large)))[0].pending
    with pytest.raises(ValueError, match="broken"):
        await begun(till.desk(PAY, told, when=broken))
    assert till.paid == []


async def test_a_refusal_holds_whatever_the_predicate_says_by_then() -> None:
    asks = iter([True, False])

    def once(name: str, args: dict[str, Any]) -> bool:
        return next(asks)

    till = Till()
    desk = till.desk(PAY, told, when=once)
    asked, kept = await begun(desk)
    await desk.resume(asked.pending[0].answer(False), **kept)
    assert till.paid == []


async def test_what_the_person_is_asked() -> None:
    till = Till()
    asked, _ = await begun(till.desk(PAY, told, message="Money!"))
    assert asked.pending[0].message == 'Money! pay({"order": "A1", "amount": 5})'

    def said(name: str, args: dict[str, Any]) -> str:
        return f"{name} {args['amount']} euros?"

    asked, _ = await begun(till.desk(PAY, told, message=said))
    assert asked.pending[0].message == "pay 5 euros?"
    asked, _ = await begun(till.desk(Call("pay", {"order": "Ä1"}), told))
    assert asked.pending[0].message == 'Run pay({"order": "Ä1"})?'


async def test_handing_over_is_never_asked_about() -> None:
    other = Agent("other", ScriptedModel("from the other"))
    model = ScriptedModel(Call("transfer_to_agent", {"agent_name": "other"}))
    boss = Agent("boss", model).delegates(other).middleware(tool_approval())
    result = await boss.run("hi")
    assert result.text == "from the other"
    assert result.pending == []


@pytest.mark.parametrize("middleware", [tool_approval(), tool_approval(exclude=["pay"])])
async def test_a_tool_that_asks_by_itself_asks_once(middleware: Any) -> None:
    till = Till()
    desk = Agent("desk", ScriptedModel(PAY, told)).tool(till.pay, require_confirmation=True)
    desk = desk.middleware(middleware)
    asked, kept = await begun(desk)
    (question,) = asked.pending
    done = await desk.resume(question.answer(True), **kept)
    assert done.pending == []
    assert till.paid == [("A1", 5)]


# --- remembering ---------------------------------------------------------------------------------

AGAIN = Call("pay", {"order": "B2", "amount": 5})


@pytest.mark.parametrize(
    ("remember", "asks"), [(None, [1, 1, 1]), ("call", [1, 0, 1]), ("tool", [1, 0, 0])]
)
async def test_what_was_approved_is_remembered_in_the_session(
    remember: Any, asks: list[int], tmp_path: Path
) -> None:
    till = Till()
    desk = till.desk(PAY, "one", PAY, "two", AGAIN, "three", remember=remember)
    kept: Any = {"session_id": "s", "session_service": SqliteSessionService(str(tmp_path / "s"))}
    count: list[int] = []
    for _ in range(3):
        asked = await desk.run("pay", **kept)
        count.append(len(asked.pending))
        for each in asked.pending:
            await desk.resume(each.answer(True), **kept)
    assert count == asks
    assert till.paid == [("A1", 5), ("A1", 5), ("B2", 5)]
    other = till.desk(PAY, "one", remember=remember)
    kept["session_id"] = "other"
    assert (await other.run("pay", **kept)).pending


async def test_without_it_nothing_is_remembered() -> None:
    till = Till()
    desk = till.desk(PAY, "one", PAY, "two", remember="tool")
    asked, kept = await begun(desk)
    done = await desk.resume(asked.pending[0].answer(True), **kept)
    assert done.state == {"adk_fluent_approved:pay": True}
    forgets = till.desk(PAY, "three")
    asked = await forgets.run("again", **kept)
    (question,) = asked.pending
    kept["session_id"] = "other"
    asked = await till.desk(PAY, "four").run("hi", **kept)
    assert question.name == "pay"
    done = await till.desk("five").resume(asked.pending[0].answer(True), **kept)
    assert done.state == {}


@pytest.mark.parametrize(
    "answer", [False, {"approved": True, "payload": {"args": {"order": "A1", "amount": 1}}}]
)
async def test_only_what_was_approved_as_it_was_is_remembered(answer: Any) -> None:
    till = Till()
    desk = till.desk(PAY, "one", PAY, "two", remember="tool")
    asked, kept = await begun(desk)
    await desk.resume(asked.pending[0].answer(answer), **kept)
    assert (await desk.run("again", **kept)).pending


async def test_two_that_are_approved_at_once_are_both_remembered() -> None:
    till = Till()
    desk = till.desk(reply(PAY, AGAIN), "one", reply(AGAIN, PAY), "two", remember="call")
    asked, kept = await begun(desk)
    await desk.resume(*(each.answer(True) for each in asked.pending), **kept)
    assert (await desk.run("again", **kept)).pending == []
    assert len(till.paid) == 4


# --- where it stands -----------------------------------------------------------------------------


async def test_an_answer_in_another_process(tmp_path: Path) -> None:
    """Nothing is kept but the session."""
    path = str(tmp_path / "s.db")
    till = Till()

    def desk(*script: Any) -> Builder:
        return Agent("first").mock("A") >> till.desk(*script) >> Agent("last").mock("Z")

    def kept() -> Any:
        return {"session_id": "s", "session_service": SqliteSessionService(path)}

    await desk(PAY).run("hi", **kept())
    (question,) = await desk().pending(**kept())
    assert till.paid == []
    done = await desk(told).resume(question.answer(True), **kept())
    assert till.paid == [("A1", 5)]
    assert done.text == "Z"


async def test_a_tool_that_fails_when_approved_may_be_gone_on_with() -> None:
    """It has failed, so it runs again when the run goes on; nobody is asked again."""
    till = Till()
    till.fails = 1
    desk = till.desk(PAY, told)
    asked, kept = await begun(desk, config=ExecutionConfig(resumable=True))
    with pytest.raises(ConnectionError):
        await desk.resume(asked.pending[0].answer(True), **kept)
    assert till.paid == []
    done = await desk.resume(**kept)
    assert done.pending == []
    assert till.paid == [("A1", 5)]


async def test_a_step_behind_it_that_fails_runs_no_tool_again() -> None:
    till, fails = Till(), [True]

    def after(state: Any) -> dict[str, Any]:
        if fails.pop():
            raise ConnectionError("reset")
        return {"after": True}

    fails = [False, True]
    pipeline = till.desk(PAY, told) >> after
    asked, kept = await begun(pipeline, config=ExecutionConfig(resumable=True))
    with pytest.raises(ConnectionError):
        await pipeline.resume(asked.pending[0].answer(True), **kept)
    done = await pipeline.resume(**kept)
    assert done.state["after"] is True
    assert till.paid == [("A1", 5)]


async def test_in_parallel_branches() -> None:
    till = Till()

    def branch(name: str) -> Builder:
        model = ScriptedModel(Call("pay", {"order": name}), told)
        return Agent(name, model).tool(till.pay)

    pipeline = (branch("x") | branch("y")).middleware(tool_approval())
    asked, kept = await begun(pipeline)
    assert sorted(each.author for each in asked.pending) == ["x", "y"]
    by = {each.author: each for each in asked.pending}
    left = await pipeline.resume(by["y"].answer(False), **kept)
    assert [each.author for each in left.pending] == ["x"]
    assert till.paid == []
    await pipeline.resume(left.pending[0].answer(True), **kept)
    assert till.paid == [("x", 1)]


async def test_in_an_agent_that_another_handed_over_to() -> None:
    till = Till()
    other = Agent("other", ScriptedModel(PAY, told)).tool(till.pay)
    model = ScriptedModel(Call("transfer_to_agent", {"agent_name": "other"}))
    boss = Agent("boss", model).delegates(other).middleware(tool_approval())
    asked, kept = await begun(boss)
    assert till.paid == []
    done = await boss.resume(asked.pending[0].answer(True), **kept)
    assert till.paid == [("A1", 5)]
    assert "paid A1" in done.text


async def test_an_agent_that_is_a_tool_is_asked_about_itself() -> None:
    till = Till()
    helper = Agent("helper", ScriptedModel(PAY, "paid it")).tool(till.pay)
    model = ScriptedModel(Call("helper", {"request": "pay"}), told)
    boss = Agent("boss", model).agent_tool(helper).middleware(tool_approval(tools=["helper"]))
    asked, kept = await begun(boss)
    assert till.paid == []
    done = await boss.resume(asked.pending[0].answer(True), **kept)
    assert till.paid == [("A1", 5)]
    assert "paid it" in done.text


async def test_within_an_agent_that_is_a_tool_nobody_can_be_asked() -> None:
    till = Till()
    helper = Agent("helper", ScriptedModel(PAY, "paid it")).tool(till.pay)
    model = ScriptedModel(Call("helper", {"request": "pay"}), told)
    boss = Agent("boss", model).agent_tool(helper).middleware(tool_approval(tools=["pay"]))
    with pytest.raises(Exception, match="nobody can be asked about tool 'pay'") as caught:
        await begun(boss)
    assert "ask about 'helper' instead" in str(caught.value)
    assert till.paid == []


async def test_so_it_is_where_only_the_agent_within_has_it() -> None:
    till = Till()
    helper = Agent("helper", ScriptedModel(PAY, "paid it")).tool(till.pay)
    scoped = helper.middleware(tool_approval(), scope="agent")
    model = ScriptedModel(Call("helper", {"request": "pay"}), told)
    with pytest.raises(Exception, match="nobody can be asked about tool 'pay'") as caught:
        await begun(Agent("boss", model).agent_tool(scoped))
    assert "ask about 'helper' instead" in str(caught.value)
    assert till.paid == []


async def test_so_it_is_in_a_pipeline_that_is_a_tool_of_somebody_elses_agent() -> None:
    till = Till()
    helper = Agent("helper", ScriptedModel(PAY, "paid it")).tool(till.pay)
    tool = AgentTool(helper.middleware(tool_approval()).to_agent())
    model = ScriptedModel(Call(tool.name, {"request": "pay"}), told)
    runner = InMemoryRunner(LlmAgent(name="boss", model=model, tools=[tool]), app_name="desk")
    await runner.session_service.create_session(app_name="desk", user_id="u", session_id="s")
    hello = types.Content(role="user", parts=[types.Part(text="hi")])
    events = runner.run_async(user_id="u", session_id="s", new_message=hello)
    with pytest.raises(Exception, match="nobody can be asked about tool 'pay'"):
        _ = [event async for event in events]
    assert till.paid == []


async def test_a_long_running_tool() -> None:
    started: list[str] = []

    def order_parts(what: str) -> None:
        """Order parts; they come in a few days."""
        started.append(what)

    model = ScriptedModel(Call("order_parts", {"what": "a wheel"}), told)
    desk = Agent("desk", model).tool(LongRunningFunctionTool(order_parts))
    desk = desk.middleware(tool_approval())
    asked, kept = await begun(desk)
    question = next(each for each in asked.pending if each.kind == "confirmation")
    assert started == []
    waits = await desk.resume(question.answer(True), **kept)
    assert started == ["a wheel"]
    assert waits.text == ""
    (delivery,) = waits.pending
    assert (delivery.kind, delivery.name) == ("tool", "order_parts")
    done = await desk.resume(delivery.answer({"delivered": 1}), **kept)
    assert "delivered" in done.text
    assert started == ["a wheel"]


async def test_nobody_waits_for_a_long_running_tool_that_was_refused() -> None:
    def order_parts(what: str) -> dict[str, str]:
        """Order parts; they come in a few days."""
        raise AssertionError(what)

    model = ScriptedModel(Call("order_parts", {"what": "a wheel"}), told)
    desk = Agent("desk", model).tool(LongRunningFunctionTool(order_parts)).writes("answer")
    desk = desk.middleware(tool_approval())
    asked, kept = await begun(desk)
    question = next(each for each in asked.pending if each.kind == "confirmation")
    done = await desk.resume(question.answer(False), **kept)
    assert (done.pending, await desk.pending(**kept)) == ([], [])
    assert "refused this call" in done.text
    assert done.state["answer"] == done.text


# --- what an approved tool does ------------------------------------------------------------------


@pytest.mark.parametrize("answer", [True, False])
async def test_a_tool_that_hands_over_does_so_when_it_is_approved(answer: bool) -> None:
    def to_claims(tool_context: ToolContext) -> str:
        """Hand on to the claims desk."""
        tool_context.actions.transfer_to_agent = "claims"
        return "handed on"

    claims = Agent("claims", ScriptedModel("from claims"))
    desk = Agent("desk", ScriptedModel(Call("to_claims", {}), "then not")).delegates(claims)
    pipeline = desk.tool(to_claims).middleware(tool_approval())
    asked, kept = await begun(pipeline)
    done = await pipeline.resume(asked.pending[0].answer(answer), **kept)
    assert (done.text, done.pending) == ("from claims" if answer else "then not", [])


@pytest.mark.parametrize("plain", [False, True])
async def test_nobody_is_told_what_stands_for_the_result_of_an_agent(plain: bool) -> None:
    """Neither who asks nor, where a pipeline runs, an agent behind it."""
    helper = Agent("helper", ScriptedModel("helped"))
    boss = Agent("boss", ScriptedModel(Call("helper", {"request": "r"}), told)).agent_tool(helper)
    told_last: list[str] = []

    def listens(asked: Asked) -> str:
        told_last.append(str(asked.raw.contents))
        return "z"

    last = Agent("last", ScriptedModel(listens))
    pipeline: Any = boss if plain else boss >> last
    pipeline = pipeline.middleware(tool_approval(tools=["helper"]))
    asked, kept = await begun(pipeline)
    assert asked.text == ""
    done = await pipeline.resume(asked.pending[0].answer(True), **kept)
    (said,) = [each.content for each in done if each.author == "boss" and each.content]
    assert said == "helper={'result': 'helped'}"
    assert all("is asked about" not in each for each in told_last)
    assert len(told_last) == (0 if plain else 1)


async def test_so_it_is_under_an_agent_that_was_built_by_hand() -> None:
    helper = LlmAgent(name="helper", model=ScriptedModel("helped"))
    model = ScriptedModel(Call("helper", {"request": "r"}), told)
    agent = LlmAgent(name="hand", model=model, tools=[AgentTool(helper)])
    app = App(name="desk", root_agent=agent, plugins=[MiddlewarePlugin(stack=[tool_approval()])])
    runner = InMemoryRunner(app=app)
    await runner.session_service.create_session(app_name="desk", user_id="u", session_id="s")

    async def say(part: types.Part) -> list[Any]:
        message = types.Content(role="user", parts=[part])
        events = runner.run_async(user_id="u", session_id="s", new_message=message)
        return [event async for event in events]

    asked = await say(types.Part(text="hi"))
    parts = [part for event in asked for part in event.content.parts]
    assert not any(part.text for part in parts)
    name = "adk_request_confirmation"
    (question,) = [
        each for event in asked for each in event.get_function_calls() if each.name == name
    ]
    given = types.FunctionResponse(id=question.id, name=name, response={"confirmed": True})
    done = await say(types.Part(function_response=given))
    assert done[-1].content.parts[0].text == "helper={'result': 'helped'}"


@pytest.mark.parametrize("answer", [True, False])
async def test_under_an_agent_that_was_built_by_hand(answer: bool) -> None:
    """ADK's own runner, an agent of ADK's, and no pipeline: nothing runs without an answer."""
    till = Till()
    agent = LlmAgent(name="hand", model=ScriptedModel(PAY, told), tools=[till.pay])
    plugin = MiddlewarePlugin(stack=[tool_approval()])
    runner = InMemoryRunner(app=App(name="app", root_agent=agent, plugins=[plugin]))
    session = await runner.session_service.create_session(app_name="app", user_id="u")

    async def send(*parts: types.Part) -> list[Any]:
        message = types.Content(role="user", parts=list(parts))
        run = runner.run_async(user_id="u", session_id=session.id, new_message=message)
        events: list[Any] = [event async for event in run]
        return [part for event in events for part in event.content.parts]

    parts = await send(types.Part(text="hi"))
    (asked,) = [
        part.function_call
        for part in parts
        if part.function_call and part.function_call.name == "adk_request_confirmation"
    ]
    assert asked.args["toolConfirmation"]["hint"].startswith("Run pay(")
    assert till.paid == []
    given = types.FunctionResponse(id=asked.id, name=asked.name, response={"confirmed": answer})
    parts = await send(types.Part(function_response=given))
    assert till.paid == ([("A1", 5)] if answer else [])
    assert ("refused" in (parts[-1].text or "")) is not answer


async def test_what_a_form_sends_back_unchanged_is_an_approval(metrics: Measured) -> None:
    """ADK's page shows what the question has as its payload, and sends it with the answer."""
    till = Till()
    desk = till.desk(PAY, told)
    asked, kept = await begun(desk)
    (call,) = [
        call
        for event in asked
        for call in event.raw.get_function_calls()
        if call.name == "adk_request_confirmation"
    ]
    sent = {**call.args["toolConfirmation"], "confirmed": True}
    assert sent["payload"] == {"args": {"order": "A1", "amount": 5}}
    await desk.resume(asked.pending[0].answer(sent), **kept)
    assert till.paid == [("A1", 5)]
    assert metrics("adk_fluent.approval.decisions", adk_fluent__decision="edited") == 0


async def test_inner_middlewares_are_not_asked_before_it_is_approved() -> None:
    seen: list[str] = []

    class Inner:
        async def before_tool(self, ctx: Any, name: str, args: dict[str, Any]) -> None:
            seen.append(f"before {args}")

        async def wrap_tool_call(self, call: Any, next: Any) -> Any:
            seen.append(f"wrap {call.args}")
            return await next(call)

    till = Till()
    desk = till.desk(PAY, told).middleware(Inner())
    asked, kept = await begun(desk)
    assert seen == []
    changed = {"order": "A1", "amount": 2}
    await desk.resume(
        asked.pending[0].answer({"approved": True, "payload": {"args": changed}}), **kept
    )
    assert seen == [f"before {changed}", f"wrap {changed}"]


async def test_the_model_may_ask_again_after_a_refusal() -> None:
    till = Till()
    desk = till.desk(PAY, PAY, told)
    asked, kept = await begun(desk)
    again = await desk.resume(asked.pending[0].answer(False), **kept)
    assert len(again.pending) == 1
    assert again.pending[0].id != asked.pending[0].id
    await desk.resume(again.pending[0].answer(True), **kept)
    assert till.paid == [("A1", 5)]


def test_a_schema_that_nothing_can_be_checked_by_refuses_nothing() -> None:
    class Odd(BaseTool):
        def _get_declaration(self) -> types.FunctionDeclaration:
            schema = {"properties": {"a": {"type": "nonsense"}}}
            return types.FunctionDeclaration(name="odd", parameters_json_schema=schema)

    class Builtin(BaseTool):
        def _get_declaration(self) -> None:
            return None

    assert wrong_arguments(Odd(name="odd", description="Odd."), {"a": 1}) is None
    assert wrong_arguments(Builtin(name="search", description="Search."), {"a": 1}) is None


# --- what it is given ----------------------------------------------------------------------------


def test_it_is_a_middleware() -> None:
    assert isinstance(ToolApprovalMiddleware(), Middleware)
    assert human_in_the_loop is tool_approval is ToolApprovalMiddleware
    assert "message" in (tool_approval.DESC.config_schema or {})["properties"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tools": "pay"}, r"tool_approval\(tools=\.\.\.\)"),
        ({"exclude": "pay"}, r"tool_approval\(exclude=\.\.\.\)"),
        ({"message": 3}, r"tool_approval\(message=\.\.\.\)"),
        ({"remember": "session"}, r"tool_approval\(remember=\.\.\.\)"),
        ({"edits": 1}, r"tool_approval\(edits=\.\.\.\)"),
        ({"tools": ["transfer_to_agent"]}, r"tool_approval\(tools=\.\.\.\)"),
        ({"tools": ["write_todos"]}, r"tool_approval\(tools=\.\.\.\)"),
    ],
)
def test_wrong_options_are_refused_where_they_are_given(options: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        ToolApprovalMiddleware(**options)
    assert __file__ in str(caught.value)


# --- answers that nobody would heed --------------------------------------------------------------


def paying(ran: list[int]) -> Agent:
    def pay(order: str, amount: int) -> str:
        """Pay."""
        ran.append(amount)
        return "paid"

    model = ScriptedModel(Call("pay", {"order": "A1", "amount": 90}), default="done")
    return Agent("clerk", model).tool(pay)


@pytest.mark.parametrize("answer", [False, True, {"args": {"order": "A1", "amount": 1}}])
async def test_an_answer_in_a_run_without_it_is_refused_and_can_be_given_again(
    answer: Any,
) -> None:
    ran: list[int] = []
    clerk = paying(ran)
    first = await clerk.run("hi", session_id="s", middleware=[tool_approval()])
    (question,) = first.pending
    if isinstance(answer, dict):
        given = question.answer({"approved": True, "payload": answer})
    else:
        given = question.answer(answer)
    with pytest.raises(SessionError, match="tool_approval has asked about tool 'pay'") as caught:
        await clerk.resume(given, session_id="s")
    assert "middleware=[tool_approval(...)]" in str(caught.value)
    assert ran == []
    again = await clerk.resume(given, session_id="s", middleware=[tool_approval()])
    assert again.text == "done"
    assert ran == ([] if answer is False else [1] if isinstance(answer, dict) else [90])
    assert not [key for key, value in again.state.items() if "asked" in key and value]


@pytest.mark.parametrize(
    "payload",
    [
        {"amount": 9, "order": "A1"},
        {"arguments": {"order": "A1", "amount": 9}},
        {"args": "x"},
        {"args": {"order": "A1", "amount": 9}, "amount": 9},
        "sure",
        '{"amount": 9}',
        ["x"],
    ],
)
async def test_changes_that_cannot_be_read_run_nothing(payload: Any) -> None:
    ran: list[int] = []
    clerk = paying(ran).middleware(tool_approval())
    (question,) = (await clerk.run("hi", session_id="s")).pending
    given = question.answer({"approved": True, "payload": payload})
    result = await clerk.resume(given, session_id="s")
    assert ran == []
    (response,) = [each for event in result for each in event.tool_responses]
    assert "is not {" in str(response.result)


@pytest.mark.parametrize(
    ("payload", "amount"),
    [
        ('{"args": {"order": "A1", "amount": 9}}', 9),
        ({"args": {"order": "A1", "amount": 9}, "note": "less"}, 9),
        ({"note": "fine"}, 90),
        ({}, 90),
        (None, 90),
    ],
)
async def test_changes_that_can_be_read_are_made(payload: Any, amount: int) -> None:
    ran: list[int] = []
    clerk = paying(ran).middleware(tool_approval())
    (question,) = (await clerk.run("hi", session_id="s")).pending
    await clerk.resume(question.answer({"approved": True, "payload": payload}), session_id="s")
    assert ran == [amount]

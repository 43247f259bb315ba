"""Turns in which a call waits: nothing is asked of a model before each of its calls is settled.

And what a tool does when its question is answered is followed as in any other turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.sequential_agent import SequentialAgent  # pyright: ignore[reportDeprecated]
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools import FunctionTool, LongRunningFunctionTool, ToolContext
from google.genai.types import Content, Part
from pydantic import BaseModel

from adk_fluent import Agent, map_over
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import OutputInvalidError, SessionError
from adk_fluent.protocol import Middleware
from adk_fluent.testing import Call, Script, ScriptedModel, reply

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from adk_fluent.builders import Builder
    from adk_fluent.protocol import RunResult
    from adk_fluent.testing import Asked

pytestmark = [pytest.mark.adk, pytest.mark.filterwarnings("ignore:.EXPERIMENTAL")]

#: Where an agent is tried; "hooks" is a delegate that a middleware stands around.
PATHS = ["step", "branch", "item", "fallback", "enclosed", "delegate", "hooks", "below"]


class Watching(Middleware):
    """Stands around every agent."""

    name = "watching"

    async def before_agent(self, ctx: Any, agent_name: str) -> None:
        """Say nothing."""


class Bank:
    """Agents with tools, what was done, and one session."""

    def __init__(self, where: str = "step", service: Any = None) -> None:
        self.done: list[str] = []
        self.asked: dict[str, int] = {}
        self._where = where
        self.options: dict[str, Any] = {
            "session_id": "s",
            "session_service": service or InMemorySessionService(),
        }
        self.pipeline: Builder | None = None

    # --- tools -------------------------------------------------------------------------------

    def pay(self, what: str) -> str:
        """Pay."""
        self.done.append(f"paid {what}")
        return f"paid {what}"

    def look(self, what: str) -> str:
        """Look."""
        self.done.append(f"seen {what}")
        return f"seen {what}"

    def order(self, what: str) -> None:
        """Order something; it comes later."""
        self.done.append(f"ordered {what}")

    def file(self, what: str) -> dict[str, str]:
        """File a request; somebody decides later."""
        self.done.append(f"filed {what}")
        return {"status": "pending"}

    def hand_on(self, tool_context: ToolContext) -> str:
        """Let the other one do it."""
        self.done.append("handed on")
        tool_context.actions.transfer_to_agent = "other"
        return "handed on"

    # --- agents ------------------------------------------------------------------------------

    def agent(self, name: str, *replies: Any) -> Agent:
        """An agent that says these things, one after the other; a function is told the request."""

        def answer(asked: Asked) -> Any:
            at = self.asked[name] = self.asked.get(name, 0) + 1
            said = replies[min(at, len(replies)) - 1]
            return said(asked) if callable(said) else said

        return Agent(name, ScriptedModel(script=Script(default=answer)))

    def make(self, agent: Any) -> None:
        """Put an agent where it is tried, with a step behind it."""
        whole: Builder = agent
        match self._where:
            case "branch":
                whole = self.agent("beside", "beside") | agent
            case "item":
                whole = map_over("items", agent, name="each")
            case "fallback":
                whole = agent // self.agent("spare", "spare")
            case "delegate" | "hooks" | "below":
                below = agent if self._where != "below" else (agent >> self.agent("y", "y"))
                name = below.name if isinstance(below, LlmAgent) else below.to_ir().name
                top = self.agent("top", Call("transfer_to_agent", {"agent_name": name}), "top")
                whole = top.delegates(below)
            case _:
                pass
        whole = whole >> self.agent("z", "z done")
        watched = self._where in ("enclosed", "hooks")
        self.pipeline = whole.middleware(Watching()) if watched else whole

    async def run(self, message: str = "hi", **options: Any) -> RunResult:
        assert self.pipeline is not None
        if self._where == "item":
            options["state"] = {"items": ["one"]}
        return await self.pipeline.run(message, **options, **self.options)

    async def resume(self, *answers: Any) -> RunResult:
        assert self.pipeline is not None
        return await self.pipeline.resume(*answers, **self.options)

    def answer(self, ran: RunResult) -> object:
        """What the agent has answered, which of an item is a result."""
        return ran.state["results"][0] if self._where == "item" else ran.state["answer"]

    async def still(self) -> list[Any]:
        """What a run waits for, as the session says it."""
        assert self.pipeline is not None
        kept = {key: each for key, each in self.options.items() if key != "config"}
        return await self.pipeline.pending(**kept)


def told(asked: Asked) -> str:
    """Says what the model was told last."""
    return asked.turns[-1].text


def _asks(tool: Any, args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any] | None:
    if tool_context.tool_confirmation is None:
        tool_context.request_confirmation(hint="Sure?")
        return {"status": "asked"}
    return None if tool_context.tool_confirmation.confirmed else {"status": "refused"}


class Asking(Middleware):
    """Asks before each tool."""

    name = "asking"

    async def before_tool(self, ctx: Any, tool_name: str, args: dict[str, Any]) -> Any:
        """Ask, or do what was answered."""
        return _asks(None, args, ctx)


# --- what a tool does when its question is answered ----------------------------------------------


def by_require(bank: Bank, agent: Agent) -> Any:
    return agent.tool(bank.hand_on, require_confirmation=True)


def by_callback(bank: Bank, agent: Agent) -> Any:
    return agent.tool(bank.hand_on).before_tool(_asks)


def by_middleware(bank: Bank, agent: Agent) -> Any:
    return agent.tool(bank.hand_on).middleware(Asking(), scope="agent")


def by_itself(bank: Bank, agent: Agent) -> Any:
    def hand_on(tool_context: ToolContext) -> str:
        """Let the other one do it."""
        asked = _asks(None, {}, tool_context)
        return str(asked) if asked else bank.hand_on(tool_context)

    return agent.tool(hand_on)


def by_adks_own(bank: Bank, agent: Agent) -> Any:
    return agent.before_tool(_asks)


def by_adks_own_and_a_middleware(bank: Bank, agent: Agent) -> Any:
    return agent.middleware(Asking(), scope="agent")


OWN = [by_adks_own, by_adks_own_and_a_middleware]
WAYS = [by_require, by_callback, by_middleware, by_itself, *OWN]


def hands_over(bank: Bank, way: Any) -> None:
    own = Call("transfer_to_agent", {"agent_name": "other"})
    call = own if way in OWN else Call("hand_on", {})
    boss = bank.agent("boss", call, told, told)
    bank.make(way(bank, boss.delegates(bank.agent("other", "from the other", "once more"))))


@pytest.mark.parametrize("where", PATHS)
async def test_an_approved_hand_over_happens(where: str) -> None:
    bank = Bank(where)
    hands_over(bank, by_require)
    (question,) = (await bank.run()).pending
    assert bank.done == []
    ran = await bank.resume(question.answer(True))
    assert (ran.pending, ran.text, await bank.still()) == ([], "z done", [])
    assert bank.done == ["handed on"]
    assert (bank.asked["boss"], bank.asked["other"], bank.asked["z"]) == (1, 1, 1)
    assert [e.content for e in ran if e.author == "other"] == ["from the other"]


@pytest.mark.parametrize("way", WAYS)
async def test_however_it_was_asked_about(way: Any) -> None:
    bank = Bank()
    hands_over(bank, way)
    (question,) = (await bank.run()).pending
    assert (bank.asked, bank.done) == ({"boss": 1}, [])
    ran = await bank.resume(question.answer(True))
    assert (ran.pending, ran.text) == ([], "z done")
    assert bank.asked == {"boss": 1, "other": 1, "z": 1}


@pytest.mark.parametrize("way", WAYS)
async def test_a_refused_hand_over_does_not(way: Any) -> None:
    bank = Bank()
    hands_over(bank, way)
    (question,) = (await bank.run()).pending
    ran = await bank.resume(question.answer(False))
    assert (ran.pending, ran.text, bank.done) == ([], "z done", [])
    assert bank.asked == {"boss": 2, "z": 1}


async def test_who_is_handed_over_to_is_not_told_what_stood_for_the_result() -> None:
    bank = Bank()
    requests: list[str] = []

    def listens(asked: Asked) -> str:
        requests.append(str(asked.raw.contents))
        return "from the other"

    boss = bank.agent("boss", Call("hand_on", {}), told).delegates(bank.agent("other", listens))
    bank.make(boss.tool(bank.hand_on, require_confirmation=True))
    (question,) = (await bank.run()).pending
    await bank.resume(question.answer(True))
    assert ["handed on" in each for each in requests] == [True]
    assert "approve or reject" not in requests[0]


async def test_who_was_handed_over_to_may_ask_and_hand_over_in_turn() -> None:
    bank = Bank()
    third = bank.agent("third", "third")
    call = Call("transfer_to_agent", {"agent_name": "third"})
    other = bank.agent("other", Call("pay", {"what": "x"}), call).delegates(third)
    other = other.tool(bank.pay, require_confirmation=True)
    boss = bank.agent("boss", Call("hand_on", {}), told).delegates(other)
    bank.make(boss.tool(bank.hand_on, require_confirmation=True))
    (question,) = (await bank.run()).pending
    (another,) = (await bank.resume(question.answer(True))).pending
    assert (another.author, bank.done) == ("other", ["handed on"])
    ran = await bank.resume(another.answer(True))
    assert (ran.pending, ran.text) == ([], "z done")
    assert bank.done == ["handed on", "paid x"]
    assert bank.asked == {"boss": 1, "other": 2, "third": 1, "z": 1}


async def test_the_key_of_who_hands_over_is_not_owed() -> None:
    bank = Bank()
    boss = bank.agent("boss", Call("hand_on", {}), told).writes("answer")
    boss = boss.delegates(bank.agent("other", "from the other"))
    bank.make(boss.tool(bank.hand_on, require_confirmation=True))
    (question,) = (await bank.run()).pending
    assert (await bank.resume(question.answer(True))).text == "z done"


@pytest.mark.parametrize("hands_on_first", [True, False])
async def test_a_hand_over_waits_for_the_other_calls_of_its_turn(hands_on_first: bool) -> None:
    bank = Bank()
    both = reply(Call("hand_on", {}), Call("pay", {"what": "x"}))
    boss = bank.agent("boss", both, told).writes("answer")
    boss = boss.delegates(bank.agent("other", "from the other"))
    boss = boss.tool(bank.hand_on, require_confirmation=True)
    bank.make(boss.tool(bank.pay, require_confirmation=True))
    asked = (await bank.run()).pending
    first, second = sorted(asked, key=lambda each: (each.name == "pay") is hands_on_first)
    left = await bank.resume(first.answer(True))
    assert (left.pending, left.text, bank.asked) == ([second], "", {"boss": 1})
    ran = await bank.resume(second.answer(True))
    assert (ran.pending, ran.text) == ([], "z done")
    assert sorted(bank.done) == ["handed on", "paid x"]
    assert bank.asked == {"boss": 1, "other": 1, "z": 1}


async def test_it_waits_for_a_result_that_comes_later() -> None:
    bank = Bank()
    both = reply(Call("hand_on", {}), Call("order", {"what": "x"}))
    boss = bank.agent("boss", both, told).delegates(bank.agent("other", "from the other"))
    boss = boss.tool(LongRunningFunctionTool(bank.order))
    bank.make(boss.tool(bank.hand_on, require_confirmation=True))
    asked = {each.kind: each for each in (await bank.run()).pending}
    left = await bank.resume(asked["confirmation"].answer(True))
    assert ([each.kind for each in left.pending], bank.asked) == (["tool"], {"boss": 1})
    ran = await bank.resume(asked["tool"].answer({"came": 1}))
    assert (ran.pending, ran.text, bank.asked) == ([], "z done", {"boss": 1, "other": 1, "z": 1})


async def test_a_tool_that_skips_what_the_model_would_say_does_so_when_it_is_approved() -> None:
    bank = Bank()

    def finish(tool_context: ToolContext) -> str:
        """Finish."""
        tool_context.actions.skip_summarization = True
        return "finished"

    bank.make(bank.agent("a", Call("finish", {}), told).tool(finish, require_confirmation=True))
    (question,) = (await bank.run()).pending
    ran = await bank.resume(question.answer(True))
    assert (ran.pending, ran.text, bank.asked) == ([], "z done", {"a": 1, "z": 1})


async def test_a_loop_ends_by_a_tool_that_was_approved() -> None:
    bank = Bank()

    def leave(tool_context: ToolContext) -> str:
        """End the loop."""
        tool_context.actions.escalate = True
        return "left"

    a = bank.agent("a", Call("leave", {}), told).tool(leave, require_confirmation=True)
    bank.make((a >> bank.agent("b", "b")) * 3)
    (question,) = (await bank.run()).pending
    ran = await bank.resume(question.answer(True))
    assert (ran.pending, ran.text, bank.asked) == ([], "z done", {"a": 1, "z": 1})


async def test_a_tool_may_ask_once_more() -> None:
    bank = Bank()

    def move(amount: int, tool_context: ToolContext) -> str:
        """Move money."""
        bank.done.append(f"called {len(bank.done)}")
        if len(bank.done) < 3:
            tool_context.request_confirmation(hint=f"Sure? ({len(bank.done)})")
            tool_context.actions.skip_summarization = True
            return "asked"
        return "moved"

    bank.make(bank.agent("a", Call("move", {"amount": 1}), told).tool(move))
    (first,) = (await bank.run()).pending
    (second,) = (await bank.resume(first.answer(True))).pending
    assert (first.message, second.message) == ("Sure? (1)", "Sure? (2)")
    assert bank.asked == {"a": 1}
    ran = await bank.resume(second.answer(True))
    assert (ran.pending, ran.text) == ([], "z done")
    assert [e.content for e in ran if e.author == "a" and e.content] == [
        '[result move {"result": "moved"}]'
    ]


async def test_a_hand_over_that_failed_is_gone_on_with() -> None:
    bank = Bank()
    bank.options["config"] = ExecutionConfig(resumable=True)
    other = bank.agent("other", reply(raises=ConnectionError("down")), "from the other")
    boss = bank.agent("boss", Call("hand_on", {}), told).delegates(other)
    bank.make(boss.tool(bank.hand_on, require_confirmation=True))
    (question,) = (await bank.run()).pending
    with pytest.raises(ConnectionError):
        await bank.resume(question.answer(True))
    ran = await bank.resume()
    assert (ran.pending, ran.text, bank.done) == ([], "z done", ["handed on"])
    assert bank.asked == {"boss": 1, "other": 2, "z": 1}


async def test_where_there_is_nobody_to_hand_over_to_is_an_error() -> None:
    bank = Bank()

    def hand_on(tool_context: ToolContext) -> str:
        """Hand on."""
        tool_context.actions.transfer_to_agent = "nobody"
        return "handed on"

    bank.make(bank.agent("a", Call("hand_on", {}), told).tool(hand_on, require_confirmation=True))
    (question,) = (await bank.run()).pending
    with pytest.raises(ValueError, match="nobody"):
        await bank.resume(question.answer(True))


async def test_an_agent_of_adks_own_does_the_same() -> None:
    bank = Bank()
    model = ScriptedModel(reply(Call("hand_on", {}), Call("pay", {"what": "x"})), "once more")
    tools: list[Any] = [
        FunctionTool(each, require_confirmation=True) for each in (bank.hand_on, bank.pay)
    ]
    other = LlmAgent(name="other", model=ScriptedModel("from the other"))
    bank.make(LlmAgent(name="boss", model=model, tools=tools, sub_agents=[other]))
    first, second = (await bank.run()).pending
    left = await bank.resume(first.answer(True))
    assert (left.pending, left.text) == ([second], "")
    ran = await bank.resume(second.answer(True))
    assert (ran.pending, ran.text) == ([], "z done")
    assert [e.content for e in ran if e.content] == ["from the other", "z done"]


@pytest.mark.parametrize("kind", ["agent", "hooks", "own"])
async def test_who_is_handed_over_to_runs_inside_whoever_hands_over(kind: str) -> None:
    """Asked or not, what stands behind an agent comes behind what it hands over to."""
    orders: list[list[str]] = []
    for asks in (False, True):
        bank = Bank("hooks" if kind == "hooks" else "step")
        order: list[str] = []

        def says(callback_context: Any, order: list[str] = order) -> Content | None:
            order.append(f"after {callback_context.agent_name}")
            return Content(role="model", parts=[Part(text="a note")])

        def enters(callback_context: Any, order: list[str] = order) -> None:
            order.append(f"before {callback_context.agent_name}")

        around: Any = {"before_agent_callback": enters, "after_agent_callback": says}
        tool = FunctionTool(bank.hand_on, require_confirmation=asks)
        if kind == "own":
            other = LlmAgent(name="other", model=ScriptedModel("from the other"), **around)
            model = ScriptedModel(Call("hand_on", {}), default="once more")
            boss: Any = LlmAgent(
                name="boss", model=model, tools=[tool], sub_agents=[other], **around
            )
        else:
            agents = [bank.agent("other", "from the other"), bank.agent("boss", Call("hand_on"))]
            other, boss = (each.before_agent(enters).after_agent(says) for each in agents)
            boss = boss.tool(tool).writes("said").delegates(other.writes("heard"))
        bank.make(boss)
        ran = await bank.run()
        if asks:
            assert order == ["before boss", "after boss"]
            order.clear()
            ran = await bank.resume(ran.pending[0].answer(True))
        orders.append(order)
        assert (ran.text, ran.state.get("heard", "from the other")) == ("z done", "from the other")
        assert "said" not in ran.state
    assert orders == [["before boss", "before other", "after other", "after boss"]] * 2


# --- results that come later ---------------------------------------------------------------------


class Decision(BaseModel):
    verdict: str


def waits_with_words(bank: Bank, **more: Any) -> Agent:
    """An agent whose tool says something of its result at once, and whose model does, too."""
    call, final = Call("file", {"what": "leave"}), more.get("final", told)
    agent = bank.agent("a", call, "It is being looked at.", final)
    return agent.tool(LongRunningFunctionTool(bank.file))


@pytest.mark.parametrize("where", PATHS)
async def test_what_a_tool_says_meanwhile_answers_nothing(where: str) -> None:
    bank = Bank(where)
    bank.make(waits_with_words(bank))
    asked = await bank.run()
    (question,) = asked.pending
    assert (question.kind, question.name, question.payload) == ("tool", "file", {"what": "leave"})
    assert [each.id for each in await bank.still()] == [question.id]
    assert "z" not in bank.asked
    ran = await bank.resume(question.answer({"status": "approved"}))
    assert (ran.pending, ran.text, bank.done) == ([], "z done", ["filed leave"])
    assert [e.content for e in ran if e.author == "a" and e.content] == [
        '[result file {"status": "approved"}]'
    ]


async def test_ask_says_that_it_has_no_answer_yet() -> None:
    bank = Bank()
    agent = waits_with_words(bank)
    with pytest.raises(SessionError, match="has no answer yet"):
        await agent.ask_async("hi")


async def test_nothing_is_written_of_words_that_are_said_meanwhile() -> None:
    bank = Bank()
    bank.make(waits_with_words(bank).writes("answer"))
    asked = await bank.run()
    assert [e.content for e in asked if e.content] == ["It is being looked at."]
    assert "answer" not in asked.state
    ran = await bank.resume(asked.pending[0].answer({"status": "approved"}))
    assert ran.state["answer"] == '[result file {"status": "approved"}]'


async def test_nor_of_those_of_a_delegate() -> None:
    bank = Bank("delegate")
    bank.make(waits_with_words(bank).writes("answer"))
    asked = await bank.run()
    assert "answer" not in asked.state
    ran = await bank.resume(asked.pending[0].answer({"status": "approved"}))
    assert ran.state["answer"] == '[result file {"status": "approved"}]'


async def test_nor_of_those_of_an_agent_of_adks_own() -> None:
    bank = Bank()
    model = ScriptedModel(Call("file", {"what": "leave"}), "It is being looked at.", told)
    tools: list[Any] = [LongRunningFunctionTool(bank.file)]
    bank.make(LlmAgent(name="a", model=model, tools=tools, output_key="answer"))
    asked = await bank.run()
    assert "answer" not in asked.state
    ran = await bank.resume(asked.pending[0].answer({"status": "approved"}))
    assert ran.state["answer"] == '[result file {"status": "approved"}]'


async def test_nor_are_they_the_result_of_an_item() -> None:
    bank = Bank()
    bank.make(map_over("items", waits_with_words(bank), output_key="all", name="each"))
    asked = await bank.run(state={"items": [1]})
    assert "all" not in asked.state
    ran = await bank.resume(asked.pending[0].answer({"status": "approved"}))
    assert ran.state["all"] == ['[result file {"status": "approved"}]']


async def test_nor_are_they_held_against_a_schema() -> None:
    bank = Bank()
    bank.make(waits_with_words(bank, final='{"verdict": "yes"}').writes("answer") @ Decision)
    asked = await bank.run()
    assert "answer" not in asked.state
    ran = await bank.resume(asked.pending[0].answer({"status": "approved"}))
    assert (ran.text, ran.state["answer"]) == ("z done", {"verdict": "yes"})


def own_and_typed(bank: Bank, final: Any, kind: Any = LlmAgent) -> LlmAgent:
    """An agent of ADK's own that waits, and answers in a schema."""
    called = Call("file", {"what": "leave"})
    return kind(
        name="a",
        model=ScriptedModel(called, "It is being looked at.", final),
        tools=[LongRunningFunctionTool(bank.file)],
        output_schema=Decision,
        output_key="answer",
    )


class OwnKind(LlmAgent):
    """A kind of agent of somebody's own."""


def in_a_sequence(agent: LlmAgent) -> Any:
    return SequentialAgent(name="whole", sub_agents=[agent])  # pyright: ignore[reportDeprecated]


def below_another(agent: LlmAgent) -> Any:
    hands_over = Call("transfer_to_agent", {"agent_name": agent.name})
    return LlmAgent(name="above", model=ScriptedModel(hands_over), sub_agents=[agent])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # SequentialAgent, on 2.x
@pytest.mark.parametrize(
    ("where", "kind", "around"),
    [
        *[(where, LlmAgent, None) for where in PATHS if where != "below"],
        ("step", OwnKind, None),
        ("delegate", OwnKind, None),
        ("step", LlmAgent, in_a_sequence),
        ("enclosed", OwnKind, in_a_sequence),
        ("step", LlmAgent, below_another),
    ],
)
async def test_nor_are_those_of_an_agent_of_adks_own(where: str, kind: Any, around: Any) -> None:
    bank = Bank(where)
    agent = own_and_typed(bank, '```json\n{"verdict": "yes"}\n```', kind)
    bank.make(agent if around is None else around(agent))
    asked = await bank.run()
    assert ("answer" in asked.state, asked.status) == (False, "waiting")
    ran = await bank.resume(asked.pending[0].answer({"status": "approved"}))
    assert ran.text == "z done"
    if where != "item":
        assert bank.answer(ran) == {"verdict": "yes"}
    assert [e.output for e in ran if e.author == "a" and e.content] == [{"verdict": "yes"}]
    assert (agent.output_key, type(agent)) == ("answer", kind)


@pytest.mark.parametrize("where", ["step", "delegate"])
async def test_the_answer_of_one_is_held_against_its_schema(where: str) -> None:
    bank = Bank(where)
    bank.make(own_and_typed(bank, "yes"))
    asked = await bank.run()
    with pytest.raises(OutputInvalidError, match="the answer of a does not fit"):
        await bank.resume(asked.pending[0].answer({"status": "approved"}))


@pytest.mark.parametrize("retries", [0, 1])
async def test_a_tool_cannot_wait_so_what_it_says_meanwhile_is_its_result(retries: int) -> None:
    bank = Bank()
    said = '{"verdict": "later"}'
    agent = bank.agent("a", Call("file", {"what": "leave"}), "It is being looked at.", said)
    agent = agent.tool(LongRunningFunctionTool(bank.file)).writes("answer") @ Decision
    top = bank.agent("top", Call("a", {"request": "leave"}), told)
    bank.make(top.agent_tool(agent.output_retries(retries)))
    if retries:
        ran = await bank.run()
        assert (ran.pending, ran.state["answer"]) == ([], {"verdict": "later"})
    else:
        with pytest.raises(OutputInvalidError, match="the answer of a does not fit"):
            await bank.run()


async def test_the_answer_is_held_against_it() -> None:
    bank = Bank()
    bank.make(waits_with_words(bank, final="yes").writes("answer") @ Decision)
    asked = await bank.run()
    with pytest.raises(OutputInvalidError):
        await bank.resume(asked.pending[0].answer({"status": "approved"}))


# --- turns that are answered one by one ----------------------------------------------------------

PAYS = reply(Call("pay", {"what": "x"}), Call("pay", {"what": "y"}), Call("look", {"what": "w"}))


@pytest.fixture(params=["memory", "sqlite"])
def service(request: Any, tmp_path: Path) -> Any:
    if request.param == "memory":
        return InMemorySessionService()
    return SqliteSessionService(str(tmp_path / "sessions.sqlite"))


async def _one_by_one(bank: Bank, *, refuse: bool = False) -> None:
    agent = bank.agent("a", PAYS, told).tool(bank.look)
    bank.make(agent.tool(bank.pay, require_confirmation=True))
    x, y = (await bank.run()).pending
    assert (bank.done, bank.asked["a"]) == (["seen w"], 1)
    left = await bank.resume(y.answer(not refuse))
    assert [each.id for each in left.pending] == [x.id]
    assert bank.done == ["seen w", *([] if refuse else ["paid y"])]
    assert bank.asked["a"] == 1
    ran = await bank.resume(x.answer(True))
    assert (ran.pending, ran.text) == ([], "z done")
    assert bank.done == ["seen w", *([] if refuse else ["paid y"]), "paid x"]
    assert bank.asked["a"] == 2
    whole = [e for e in ran if not e.is_partial]
    (said,) = (e.content for e in whole if e.author == "a" and e.content)
    assert "paid x" in said
    assert ("paid y" in said) is not refuse
    assert "approve or reject" not in said
    answers = [line for line in said.splitlines() if line.startswith("[result pay")]
    assert ["paid x" in each for each in answers] == [True, False]  # in the order of the calls


@pytest.mark.parametrize("where", PATHS)
async def test_a_model_is_asked_again_when_all_its_calls_are_settled(where: str) -> None:
    await _one_by_one(Bank(where))


@pytest.mark.parametrize("refuse", [False, True])
async def test_so_it_is_in_every_session_service(service: Any, refuse: bool) -> None:
    await _one_by_one(Bank(service=service), refuse=refuse)


async def test_so_it_is_where_answers_are_streamed() -> None:
    bank = Bank()
    bank.options["config"] = ExecutionConfig(streaming_mode="sse")
    await _one_by_one(bank)


async def test_so_it_is_where_a_run_is_kept_at_each_step() -> None:
    bank = Bank()
    bank.options["config"] = ExecutionConfig(resumable=True)
    await _one_by_one(bank)


async def test_all_answers_at_once_are_one_turn() -> None:
    bank = Bank()
    agent = bank.agent("a", PAYS, told).tool(bank.look)
    bank.make(agent.tool(bank.pay, require_confirmation=True))
    x, y = (await bank.run()).pending
    ran = await bank.resume(x.answer(True), y.answer(True))
    assert (ran.pending, bank.asked) == ([], {"a": 2, "z": 1})
    assert sorted(bank.done) == ["paid x", "paid y", "seen w"]


@pytest.mark.parametrize("first", ["tool", "confirmation"])
@pytest.mark.parametrize("later", ["order", "file"])
async def test_a_confirmation_and_a_result_that_comes_later(first: str, later: str) -> None:
    bank = Bank()
    agent = bank.agent("a", reply(Call("pay", {"what": "x"}), Call(later, {"what": "y"})), told)
    agent = agent.tool(LongRunningFunctionTool(getattr(bank, later)))
    bank.make(agent.tool(bank.pay, require_confirmation=True))
    asked = (await bank.run()).pending
    assert sorted(each.kind for each in asked) == ["confirmation", "tool"]
    assert bank.asked == {"a": 1}
    one, two = sorted(asked, key=lambda each: each.kind != first)
    left = await bank.resume(one.answer({"came": 1} if one.kind == "tool" else True))
    assert ([each.id for each in left.pending], bank.asked) == ([two.id], {"a": 1})
    assert ("paid x" in bank.done) is (first == "confirmation")
    ran = await bank.resume(two.answer({"came": 1} if two.kind == "tool" else True))
    assert (ran.pending, ran.text, bank.asked) == ([], "z done", {"a": 2, "z": 1})
    (said,) = (e.content for e in ran if e.author == "a" and e.content)
    assert "paid x" in said
    assert '{"came": 1}' in said


@pytest.mark.parametrize("where", PATHS)
async def test_a_tool_that_has_run_beside_one_whose_result_comes_later(where: str) -> None:
    bank = Bank(where)
    calls = reply(Call("order", {"what": "x"}), Call("look", {"what": "w"}))
    agent = bank.agent("a", calls, told).tool(bank.look)
    bank.make(agent.tool(LongRunningFunctionTool(bank.order)))
    (question,) = (await bank.run()).pending
    assert bank.asked["a"] == 1
    ran = await bank.resume(question.answer({"came": 1}))
    assert (ran.pending, ran.text, bank.asked["a"]) == ([], "z done", 2)
    assert bank.done == ["ordered x", "seen w"]


@pytest.mark.parametrize("where", PATHS)
async def test_nobody_waits_for_the_result_of_what_was_refused(where: str) -> None:
    bank = Bank(where)
    agent = bank.agent("a", Call("order", {"what": "x"}), told).writes("answer")
    bank.make(agent.tool(LongRunningFunctionTool(bank.order)).before_tool(_asks))
    asked = {each.kind: each for each in (await bank.run()).pending}
    assert (asked.keys(), bank.done) == ({"tool", "confirmation"}, [])
    ran = await bank.resume(asked["confirmation"].answer(False))
    assert (ran.pending, ran.text, await bank.still()) == ([], "z done", [])
    assert (bank.answer(ran), bank.done) == ('[result order {"status": "refused"}]', [])


async def test_nor_where_the_model_fails_that_is_told_so() -> None:
    bank = Bank()
    bank.options["config"] = ExecutionConfig(resumable=True)
    replies = (Call("order", {"what": "x"}), reply(raises=ConnectionError("down")), told)
    agent = bank.agent("a", *replies).tool(LongRunningFunctionTool(bank.order))
    bank.make(agent.before_tool(_asks))
    asked = {each.kind: each for each in (await bank.run()).pending}
    with pytest.raises(ConnectionError):
        await bank.resume(asked["confirmation"].answer(False))
    ran = await bank.resume()
    assert (ran.pending, ran.text, await bank.still()) == ([], "z done", [])
    assert bank.asked == {"a": 3, "z": 1}


@pytest.mark.parametrize("where", PATHS)
async def test_nor_for_what_was_answered_without_its_tool(where: str) -> None:
    bank = Bank(where)

    def knows(tool: Any, args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any]:
        return {"known": args["what"]}

    agent = bank.agent("a", Call("file", {"what": "x"}), told).writes("answer")
    bank.make(agent.tool(LongRunningFunctionTool(bank.file)).before_tool(knows))
    ran = await bank.run()
    assert (ran.pending, ran.text, await bank.still()) == ([], "z done", [])
    assert (bank.answer(ran), bank.done) == ('[result file {"known": "x"}]', [])


async def test_nor_for_what_has_failed_and_was_made_good() -> None:
    bank = Bank()

    def fails(what: str) -> None:
        """Fail."""
        raise ConnectionError(what)

    def mends(tool: Any, args: Any, tool_context: Any, error: Exception) -> dict[str, Any]:
        return {"failed": str(error)}

    agent = bank.agent("a", Call("fails", {"what": "x"}), told)
    bank.make(agent.tool(LongRunningFunctionTool(fails)).on_tool_error(mends))
    ran = await bank.run()
    assert (ran.pending, ran.text, await bank.still()) == ([], "z done", [])


class Trying(Middleware):
    """Runs an agent once more that failed."""

    name = "trying"

    async def wrap_agent(self, call: Any, next: Any) -> Any:
        """Try twice."""
        try:
            return await next(call)
        except ConnectionError:
            return await next(call)


@pytest.mark.parametrize("where", ["step", "delegate"])
async def test_an_agent_that_is_run_once_more_waits_for_no_call_of_before(where: str) -> None:
    bank = Bank(where)

    def fails(what: str) -> str:
        """Fail."""
        raise ConnectionError(what)

    agent = bank.agent("a", Call("fails", {"what": "x"}), "never mind").tool(fails)
    bank.make(agent)
    assert bank.pipeline is not None
    bank.pipeline = bank.pipeline.middleware(Trying())
    ran = await bank.run()
    assert (ran.pending, ran.text, bank.asked["a"]) == ([], "z done", 2)


# --- what stands for a result while a person is asked --------------------------------------------


def helped(bank: Bank, way: Callable[[Agent], Any]) -> None:
    helper = bank.agent("helper", "helped")
    boss = bank.agent("boss", Call("helper", {"request": "r"}), told, told).agent_tool(helper)
    bank.make(way(boss))


def _skips(tool: Any, args: dict[str, Any], tool_context: ToolContext) -> Any:
    tool_context.actions.skip_summarization = tool_context.tool_confirmation is None
    return _asks(tool, args, tool_context)


class Skipping(Asking):
    """Asks before each tool, as `Asking`."""

    async def before_tool(self, ctx: Any, tool_name: str, args: dict[str, Any]) -> Any:
        """Ask, or do what was answered."""
        return _skips(None, args, ctx)


def callback(boss: Agent) -> Any:
    return boss.before_tool(_asks)


def skipping_callback(boss: Agent) -> Any:
    return boss.before_tool(_skips)


def middleware(boss: Agent) -> Any:
    return boss.middleware(Asking(), scope="agent")


def skipping_middleware(boss: Agent) -> Any:
    return boss.middleware(Skipping(), scope="agent")


@pytest.mark.parametrize("way", [callback, skipping_callback, middleware, skipping_middleware])
@pytest.mark.parametrize("where", ["step", "branch", "enclosed", "delegate"])
async def test_nobody_is_told_what_stands_for_the_result_of_an_agent(way: Any, where: str) -> None:
    bank = Bank(where)
    helped(bank, way)
    asked = await bank.run()
    assert asked.text == ("beside" if where == "branch" else "")
    ran = await bank.resume(asked.pending[0].answer(True))
    (said,) = (e.content for e in ran if e.author == "boss" and e.content)
    assert said == '[result helper {"result": "helped"}]'


async def test_nor_are_later_agents_told() -> None:
    bank = Bank()
    requests: list[str] = []

    def listens(asked: Asked) -> str:
        requests.append(str(asked.raw.contents))
        return "z"

    agent = bank.agent("a", Call("pay", {"what": "x"}), told)
    agent = agent.tool(bank.pay, require_confirmation=True)
    bank.make(agent >> bank.agent("listener", listens))
    (question,) = (await bank.run()).pending
    await bank.resume(question.answer(True))
    await bank.run("And now?")
    assert len(requests) == 2
    for each in requests:
        assert "paid x" in each
        assert "approve or reject" not in each

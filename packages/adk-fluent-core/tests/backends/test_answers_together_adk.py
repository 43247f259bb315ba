"""Exactly what models are told when one message answers several agents, or one agent twice."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest
from adk_programs import plain
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.genai.types import Content, FunctionResponse, Part

from adk_fluent import Agent, FanOut, gate, map_over
from adk_fluent.testing import Call, Script, ScriptedModel, reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.builders import Builder
    from adk_fluent.protocol import Pending, RunResult
    from adk_fluent.testing import Asked

pytestmark = [pytest.mark.adk, pytest.mark.filterwarnings("ignore:.EXPERIMENTAL")]

OPENING = "Handle the requests as specified in the System Instruction."


def order(what: str) -> None:
    """Order something; somebody answers later."""


def pay(what: str) -> str:
    """Pay."""
    return f"paid {what}"


def ordered(what: str) -> list[str]:
    """The turns of a long-running call that was answered."""
    return [f'[call order {{"what": "{what}"}}]', f'[result order {{"came": "{what}"}}]']


def paid(what: str) -> list[str]:
    """The turns of a call that was confirmed."""
    return [f'[call pay {{"what": "{what}"}}]', f'[result pay {{"result": "paid {what}"}}]']


class Desk:
    """Agents that call tools and wait, what their models were told, and one session."""

    def __init__(self, make: Callable[[Desk], Builder]) -> None:
        self.told: dict[str, list[list[str]]] = {}
        self._make = make
        self._service = InMemorySessionService()

    def agent(self, name: str, *rounds: list[Call]) -> Agent:
        """An agent that makes the calls of each round when it has the results of those before."""

        def answer(asked: Asked) -> Any:
            turns = [plain(turn.text) for turn in asked.turns if turn.text]
            self.told.setdefault(name, []).append(turns)
            said = max((i for i, each in enumerate(turns) if each.startswith("say")), default=0)
            done = sum(each.startswith("[result") for each in turns[said:])
            return reply(*rounds[done]) if done < len(rounds) else name.upper()

        agent = Agent(name, ScriptedModel(script=Script(default=answer)))
        called = {call.name for each in rounds for call in each}
        if "pay" in called:
            agent = agent.tool(pay, require_confirmation=True)
        return agent.tool(LongRunningFunctionTool(order)) if "order" in called else agent

    async def say(self, message: Any, state: dict[str, Any] | None = None) -> RunResult:
        return await self._make(self).run(
            message, session_id="s", session_service=self._service, state=state
        )

    async def write(self, answers: dict[Pending, Any], text: str) -> RunResult:
        """Answer in words of one's own."""
        given = [
            Part(function_response=FunctionResponse(id=each.id, name=each.name, response=value))
            for each, value in answers.items()
        ]
        return await self.say(Content(role="user", parts=[*given, Part(text=text)]))

    async def answer(self, asked: list[Pending]) -> RunResult:
        """Give all answers in one message: what was ordered has come, and the rest is approved."""
        return await self.say(
            [
                each.answer({"came": each.payload["what"]} if each.kind == "tool" else True)
                for each in asked
            ]
        )

    def last(self, name: str) -> list[str]:
        """What a model was told last."""
        return self.told[name][-1]

    def last_own(self, name: str) -> list[str]:
        """The same without what other agents said, which ADK puts into words of each version."""
        begin = ("say", "[call", "[result")
        return [each for each in self.last(name) if each.startswith(begin) or each == name.upper()]


def orders(*things: str) -> list[Call]:
    return [Call("order", {"what": each}) for each in things]


def pays(*things: str) -> list[Call]:
    return [Call("pay", {"what": each}) for each in things]


@pytest.mark.parametrize("history", ["transcript", "own", "input", "none"])
async def test_branches_that_wait_for_long_running_tools(history: Any) -> None:
    def make(d: Desk) -> Builder:
        c, d_ = (d.agent(*each) for each in (("c", orders("tea")), ("d", orders("milk"))))
        return c.history(history) | d_.history(history)

    desk = Desk(make)
    assert (await desk.answer((await desk.say("say hi")).pending)).pending == []
    first = OPENING if history == "none" else "say hi"
    assert desk.last("c") == [first, *ordered("tea")]
    assert desk.last("d") == [first, *ordered("milk")]


async def test_branches_that_wait_for_confirmations() -> None:
    desk = Desk(lambda d: d.agent("c", pays("tea")) | d.agent("d", pays("milk")))
    assert (await desk.answer((await desk.say("say hi")).pending)).pending == []
    assert desk.last("c") == ["say hi", *paid("tea")]
    assert desk.last("d") == ["say hi", *paid("milk")]


@pytest.mark.parametrize("order", list(permutations(["confirmation", "gate", "tool"])))
async def test_a_long_running_tool_a_confirmation_and_a_gate(order: tuple[str, ...]) -> None:
    def make(d: Desk) -> Builder:
        gated = gate(message="Go on?") >> d.agent("g")
        return (d.agent("c", orders("tea")) | d.agent("d", pays("milk")) | gated) >> d.agent("z")

    desk = Desk(make)
    asked = (await desk.say("say hi")).pending
    ran = await desk.answer(sorted(asked, key=lambda each: order.index(each.kind)))
    assert (ran.pending, ran.text) == ([], "Z")
    assert desk.last("c") == ["say hi", *ordered("tea")]
    assert desk.last("d") == ["say hi", *paid("milk")]
    assert desk.last("g") == ["say hi"]
    assert desk.last_own("z") == ["say hi"]
    await desk.say("say more")
    assert desk.last_own("c") == ["say hi", *ordered("tea"), "C", "say more"]
    assert desk.last_own("d") == ["say hi", *paid("milk"), "D", "say more"]


async def test_the_next_turn_tells_each_what_it_was_answered() -> None:
    desk = Desk(lambda d: d.agent("c", orders("tea")) | d.agent("d", orders("milk")))
    await desk.answer((await desk.say("say hi")).pending)
    await desk.say("say more")
    assert desk.last_own("c") == ["say hi", *ordered("tea"), "C", "say more"]
    assert desk.last_own("d") == ["say hi", *ordered("milk"), "D", "say more"]


async def test_branches_that_wait_again() -> None:
    desk = Desk(
        lambda d: (
            d.agent("c", orders("tea"), orders("cake"))
            | d.agent("d", orders("milk"), orders("cream"))
        )
    )
    asked = (await desk.say("say hi")).pending
    asked = (await desk.answer(asked)).pending
    assert sorted(each.payload["what"] for each in asked) == ["cake", "cream"]
    assert (await desk.answer(asked)).pending == []
    assert desk.last("c") == ["say hi", *ordered("tea"), *ordered("cake")]
    assert desk.last("d") == ["say hi", *ordered("milk"), *ordered("cream")]


async def test_an_agent_that_waits_for_a_result_and_a_confirmation() -> None:
    desk = Desk(lambda d: d.agent("c", [*orders("tea"), *pays("milk")]))
    assert (await desk.answer((await desk.say("say hi")).pending)).pending == []
    calls, results = zip(ordered("tea"), paid("milk"), strict=True)
    first, *told = desk.last("c")
    assert (first, [set(each.splitlines()) for each in told]) == (
        "say hi",
        [set(calls), set(results)],
    )


@pytest.mark.parametrize("together", [False, True])
async def test_items_of_a_map(together: bool) -> None:
    """They have one agent, which is told in the next turn of all that it asked."""
    desk = Desk(lambda d: map_over("items", d.agent("c", orders("tea")), name="m"))
    asked = (await desk.say("say hi", {"items": [1, 2]})).pending
    for answered in [asked] if together else [asked[:1], asked[1:]]:
        await desk.answer(answered)
    assert desk.told["c"][2:] == [["say hi", *ordered("tea")]] * 2
    await desk.say("say more")
    assert desk.last_own("c") == ["say hi", *ordered("tea") * 2, "C", "C", "say more"]
    assert desk.told["c"][-1] == desk.told["c"][-2]


async def test_what_is_said_with_the_answers_is_told_as_with_one() -> None:
    def alone(d: Desk) -> Builder:
        return d.agent("c", orders("tea"))

    desks = [Desk(alone), Desk(lambda d: alone(d) | d.agent("d", orders("milk")))]
    for desk in desks:
        asked = (await desk.say("say hi")).pending
        ran = await desk.write({each: {"came": "it"} for each in asked}, "say please")
        assert ran.pending == []
    assert desks[1].last("c") == desks[0].last("c")


async def test_answers_on_which_nothing_was_run_are_told_to_nobody() -> None:
    desk = Desk(lambda d: d.agent("c", orders("tea")) | d.agent("d", orders("milk")))
    asked = (await desk.say("say hi")).pending
    await desk.answer(asked)
    ran = await desk.write({each: {"came": "late"} for each in asked}, "say no")
    assert "Nothing was run" in str(list(ran)[-1].content)
    await desk.say("say more")
    assert desk.last_own("c") == ["say hi", *ordered("tea"), "C", "say more"]
    assert desk.last_own("d") == ["say hi", *ordered("milk"), "D", "say more"]


async def test_answers_to_a_pipeline_in_a_pipeline() -> None:
    """It is given all of them, and tells each of its agents what is for it."""

    def make(d: Desk) -> Builder:
        gated = gate(message="Go on?") >> d.agent("g")
        inner = FanOut("inner", gated, d.agent("c", orders("tea")), d.agent("d", orders("milk")))
        return d.agent("a") >> inner.to_agent() >> d.agent("z")

    desk = Desk(make)
    ran = await desk.answer((await desk.say("say hi")).pending)
    assert (ran.pending, ran.text) == ([], "Z")
    assert desk.last_own("c") == ["say hi", *ordered("tea")]
    assert desk.last_own("d") == ["say hi", *ordered("milk")]
    assert desk.last_own("g") == ["say hi"]

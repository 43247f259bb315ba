"""Tools on the mock backend: none is called, but a person is asked about them as on ADK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent, map_over
from adk_fluent.backends.mock import mock_backend
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import SessionError, UsageError
from adk_fluent.ir import AdkAgentNode, Ref
from adk_fluent.testing import Asked, Call, Script, reply

if TYPE_CHECKING:
    from adk_fluent.backends.mock import MockBackend
    from adk_fluent.builders import Builder
    from adk_fluent.protocol import AgentEvent

WAITS = {"error": "a person has to approve this call first"}
REJECTED = {"error": "a person refused this call"}


class Later:
    """What ADK's LongRunningFunctionTool looks like from outside."""

    is_long_running = True


class Confirmed:
    """What ADK's FunctionTool looks like that asks for confirmation."""

    name = "pay"
    _require_confirmation = True


class Toolset:
    """What ADK's toolsets look like, of which nobody knows the names without asking a server."""

    def __init__(self, *, asks: bool) -> None:
        self._require_confirmation = asks

    async def get_tools(self) -> None: ...


def pay(order: str) -> str:
    raise AssertionError("it is not called")


def pays(*orders: str) -> Any:
    return reply(*(Call("pay", {"order": order}) for order in orders))


def clerk(*, asks: Any = True) -> Builder:
    return Agent("clerk").tool(pay, require_confirmation=asks) >> Agent("after")


def results(events: list[AgentEvent]) -> list[Any]:
    return [each.result for event in events for each in event.tool_responses]


def shown(backend: MockBackend, agent: str) -> list[tuple[str, str]]:
    asked = [each for each in backend.calls if each.agent == agent][-1]
    return [(turn.role, turn.text.removeprefix("For context:\n")) for turn in asked.turns]


# --- tools that nobody is asked about -------------------------------------------------------------


async def test_a_tool_is_as_good_as_one_that_returns_nothing() -> None:
    def script(asked: Asked) -> Any:
        return "seen" if "[result pay" in asked.prompt else pays("A1")

    backend = mock_backend({"clerk": Script(default=script), "after": "ok"})
    result = await clerk(asks=False).run("hello", backend=backend)
    assert results(result) == [{"result": None}]
    assert shown(backend, "clerk")[-1] == ("user", '[result pay {"result": null}]')
    assert shown(backend, "after")[1:] == [
        ("user", "[clerk] called tool `pay` with parameters: {'order': 'A1'}"),
        ("user", "[clerk] `pay` tool returned result: {'result': None}"),
        ("user", "[clerk] said: seen"),
    ]


@pytest.mark.parametrize("history", ["none", "input", "own"])
async def test_its_own_calls_an_agent_always_sees(history: Any) -> None:
    backend = mock_backend({"a": "one", "clerk": [pays("A1"), "seen"]})
    agent = Agent("clerk").tool(pay).history(history)
    await (Agent("a") >> agent).run("go", backend=backend)
    told = [text.partition(" ")[0] for _, text in shown(backend, "clerk")[-2:]]
    assert told == ["[call", "[result"]


async def test_a_tool_that_an_agent_lacks_is_told_to_the_model() -> None:
    backend = mock_backend({"clerk": [Call("pya"), "sorry"], "after": "ok"})
    result = await clerk().run("hello", backend=backend)
    [told] = results(result)
    assert told["error"] == "there is no tool pya(); the tools that can be called: pay"
    assert result.text == "ok"


# --- confirmations --------------------------------------------------------------------------------


async def test_a_run_waits_for_a_confirmation_and_goes_on() -> None:
    backend = mock_backend({"clerk": [pays("A1"), "Done."], "after": "Bye."})
    asked = await clerk().run("pay", backend=backend, session_id="s")
    [question] = asked.pending
    assert (question.kind, question.name, question.author) == ("confirmation", "pay", "clerk")
    assert question.payload == {"order": "A1"}
    assert question.message.startswith("May pay() be called?")
    assert results(asked) == [WAITS]
    result = await clerk().resume(question.answer(True), backend=backend, session_id="s")
    assert results(result) == [{"result": None}]
    assert (result.text, result.pending) == ("Bye.", [])
    assert shown(backend, "clerk")[1:] == [
        ("model", '[call pay {"order": "A1"}]'),
        ("user", '[result pay {"result": null}]'),
    ]


async def test_a_model_is_told_that_its_call_was_refused() -> None:
    backend = mock_backend({"clerk": [pays("A1"), "I may not."], "after": "Bye."})
    asked = await clerk().run("pay", backend=backend, session_id="s")
    refusal = asked.pending[0].answer({"confirmed": False})
    result = await clerk().resume(refusal, backend=backend, session_id="s")
    assert results(result) == [REJECTED]
    assert "a person refused this call" in shown(backend, "clerk")[-1][1]
    assert result.text == "Bye."


async def test_only_an_answer_goes_on() -> None:
    backend = mock_backend({"clerk": [pays("A1"), "Done."], "after": "Bye."})
    asked = await clerk().run("pay", backend=backend, session_id="s")
    held = await clerk().run("yes", backend=backend, session_id="s")
    assert held.pending == asked.pending
    assert held.reason.startswith("Nothing was run")
    with pytest.raises(UsageError, match="no answer to the confirmation"):
        await clerk().resume(asked.pending[0].answer("hm"), backend=backend, session_id="s")
    result = await clerk().resume(asked.pending[0].answer(), backend=backend, session_id="s")
    assert results(result) == [{"result": None}]
    assert "yes" not in [text for _, text in shown(backend, "after")]
    with pytest.raises(SessionError, match="not open any more"):
        await clerk().resume(asked.pending[0].answer(), backend=backend, session_id="s")


async def test_several_calls_of_a_reply_are_answered_together_or_one_by_one() -> None:
    for together in (True, False):
        backend = mock_backend({"clerk": [pays("A1", "A2"), "Done."], "after": "Bye."})
        options: dict[str, Any] = {"backend": backend, "session_id": "s"}
        first, second = (await clerk().run("pay", **options)).pending
        if together:
            result = await clerk().resume(first.answer(), second.answer(False), **options)
            assert results(result) == [{"result": None}, REJECTED]
        else:
            result = await clerk().resume(second.answer(False), **options)
            assert [each.id for each in result.pending] == [first.id]
            assert results(result) == [REJECTED]
            assert (result.text, len(backend.calls)) == ("", 1)
            result = await clerk().resume(first.answer(), **options)
            assert results(result) == [{"result": None}]
        assert result.text == "Bye."
        assert not any(WAITS["error"] in text for _, text in shown(backend, "after"))


@pytest.mark.parametrize("later", [False, True])
async def test_a_predicate_over_the_arguments_says_which_calls_are_confirmed(later: bool) -> None:
    seen: list[str] = []

    def large(order: str) -> bool:
        seen.append(order)
        return order == "big"

    async def large_later(order: str) -> bool:
        return large(order)

    backend = mock_backend(
        {
            "clerk": [Call("pay", {"order": "small", "note": "?"}), pays("big"), "Done."],
            "after": "-",
        }
    )
    pipeline = clerk(asks=large_later if later else large)
    result = await pipeline.run("pay", backend=backend, session_id="s")
    assert seen == ["small", "big"]
    assert [each.payload for each in result.pending] == [{"order": "big"}]


async def test_what_can_be_told_is_told_although_somebody_is_asked() -> None:
    def look() -> None: ...

    backend = mock_backend({"clerk": [reply(Call("look"), pays("A1").parts[0]), "Done."]})
    agent = Agent("clerk").tool(pay, require_confirmation=True).tool(look)
    asked = await agent.run("pay", backend=backend, session_id="s")
    assert results(asked) == [{"result": None}, WAITS]
    result = await agent.resume(asked.pending[0].answer(False), backend=backend, session_id="s")
    assert result.text == "Done."
    assert shown(backend, "clerk")[-1] == (
        "user",
        '[result look {"result": null}]\n[result pay {"error": "a person refused this call"}]',
    )


async def test_tools_and_toolsets_of_adk_say_themselves_that_they_ask() -> None:
    toolset = Agent("clerk").tool(Ref(Toolset(asks=True), "Toolset"))
    silent = Agent("clerk").tool(Ref(Toolset(asks=False), "Toolset"))
    native = AdkAgentNode("clerk", Ref(type("Fake", (), {"tools": [Confirmed()]})(), "clerk"))
    tool = Agent("clerk").tool(Ref(Confirmed(), "pay"))
    for agent, asks in ((toolset, True), (silent, False), (tool, True), (native, True)):
        backend = mock_backend({"clerk": [pays("A1"), "Done."]})
        node = agent if isinstance(agent, AdkAgentNode) else agent.to_ir()
        result = await backend.run(backend.compile(node), "pay")
        assert len(result.pending) == asks, agent


async def test_a_failed_step_is_done_once_more_without_asking_again() -> None:
    backend = mock_backend({"clerk": [pays("A1"), ConnectionError("down"), "Done."], "after": "ok"})
    options: dict[str, Any] = {
        "backend": backend,
        "session_id": "s",
        "config": ExecutionConfig(resumable=True),
    }
    asked = await clerk().run("pay", **options)
    with pytest.raises(ConnectionError):
        await clerk().resume(asked.pending[0].answer(), **options)
    result = await clerk().resume(**options)
    assert (result.text, results(result), result.pending) == ("ok", [], [])


async def test_items_of_a_map_ask_one_question_each() -> None:
    def script(asked: Asked) -> Any:
        return "Done." if "[result" in asked.prompt else pays("A1")

    backend = mock_backend({"clerk": Script(default=script)})
    agent = Agent("clerk").tool(pay, require_confirmation=True)
    pipeline = map_over("orders", agent, output_key="done")
    options: dict[str, Any] = {"backend": backend, "session_id": "s"}
    asked = await pipeline.run("pay", state={"orders": ["x", "y"]}, **options)
    result = await pipeline.resume(*(each.answer() for each in asked.pending), **options)
    assert result.state["done"] == ["Done.", "Done."]


# --- tools that take their time -------------------------------------------------------------------


def buyer() -> Builder:
    return Agent("clerk").tool(Ref(Later(), "order")).writes("said") >> Agent("after")


async def test_a_long_running_tool_waits_for_its_result() -> None:
    backend = mock_backend({"clerk": [Call("order", {"what": "x"}), "Here."], "after": "Bye."})
    asked = await buyer().run("go", backend=backend, session_id="s")
    [question] = asked.pending
    assert (question.kind, question.name, question.payload) == ("tool", "order", {"what": "x"})
    assert (results(asked), len(backend.calls)) == ([], 1)
    result = await buyer().resume(question.answer("came"), backend=backend, session_id="s")
    assert (result.text, result.state) == ("Bye.", {"said": "Here."})
    assert shown(backend, "clerk")[-1] == ("user", '[result order {"result": "came"}]')
    assert [text.partition(" ")[0] for _, text in shown(backend, "after")] == [
        "go",
        "[clerk]",
        "[clerk]",
    ]


async def test_a_model_hears_of_all_its_long_running_calls_at_once() -> None:
    calls = reply(Call("order", {"what": "x"}), Call("order", {"what": "y"}))
    backend = mock_backend({"clerk": [calls, "Here."], "after": "Bye."})
    options: dict[str, Any] = {"backend": backend, "session_id": "s"}
    x, y = (await buyer().run("go", **options)).pending
    first = await buyer().resume(y.answer({"of": "y"}), **options)
    assert (first.pending, len(backend.calls)) == ([x], 1)
    result = await buyer().resume(x.answer({"of": "x"}), **options)
    assert result.text == "Bye."
    told = [text for role, text in shown(backend, "clerk") if role == "user"][1:]
    assert "\n".join(told) == '[result order {"of": "x"}]\n[result order {"of": "y"}]'


async def test_nor_is_it_asked_before_because_another_tool_has_run() -> None:
    def look() -> None: ...

    calls = reply(Call("order", {"what": "x"}), Call("look"))
    backend = mock_backend({"clerk": [calls, "Here."], "after": "Bye."})
    agent = Agent("clerk").tool(Ref(Later(), "order")).tool(look) >> Agent("after")
    options: dict[str, Any] = {"backend": backend, "session_id": "s"}
    asked = await agent.run("go", **options)
    assert (asked.text, len(asked.pending), len(backend.calls)) == ("", 1, 1)
    result = await agent.resume(asked.pending[0].answer({"of": "x"}), **options)
    assert (result.text, len(backend.calls)) == ("Bye.", 3)


async def test_a_confirmation_and_a_result_that_comes_later_are_one_turn() -> None:
    calls = reply(Call("order", {"what": "x"}), Call("pay", {"order": "A1"}))
    for kind in ("tool", "confirmation"):
        backend = mock_backend({"clerk": [calls, "Here."], "after": "Bye."})
        agent = Agent("clerk").tool(Ref(Later(), "order")).tool(pay, require_confirmation=True)
        pipeline = agent >> Agent("after")
        options: dict[str, Any] = {"backend": backend, "session_id": "s"}
        asked = (await pipeline.run("go", **options)).pending
        first, second = sorted(asked, key=lambda each: each.kind != kind)
        left = await pipeline.resume(first.answer(), **options)
        assert (left.pending, len(backend.calls)) == ([second], 1)
        assert (await pipeline.resume(second.answer(), **options)).text == "Bye."

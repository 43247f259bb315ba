"""Agents on the mock backend that hand over to others, or call them as tools, as on ADK."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from adk_fluent import Agent, Fallback, Pipeline, S, gate, until
from adk_fluent.backends.mock import mock_backend
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import BuildError, RunError, UnknownNameError, UnsupportedNodeError
from adk_fluent.ir import AdkAgentNode, Ref
from adk_fluent.testing import Call, reply
from adk_fluent.testing.conformance._seen import lines

if TYPE_CHECKING:
    from adk_fluent.backends.mock import MockBackend
    from adk_fluent.builders import Builder
    from adk_fluent.protocol import RunResult

YES = {"approved": True, "note": ""}


def to(name: str) -> Call:
    return Call("transfer_to_agent", {"agent_name": name})


def pay(order: str) -> None: ...


def below() -> Builder:
    """A pipeline that asks in the middle."""
    return (Agent("e") >> gate(name="ask") >> Agent("f").writes("k")).named("pipe")


async def run(pipeline: Builder, /, **scripts: Any) -> tuple[RunResult, MockBackend]:
    backend = mock_backend(scripts)
    return await pipeline.run("go", backend=backend, session_id="s"), backend


def results(result: RunResult) -> list[Any]:
    return [each.result for event in result for each in event.tool_responses]


def shown(backend: MockBackend, agent: str) -> list[str]:
    asked = [each for each in backend.calls if each.agent == agent][-1]
    return [turn.text.removeprefix("For context:\n") for turn in asked.turns]


# --- handing over ---------------------------------------------------------------------------------


async def test_the_agent_that_is_named_goes_on_in_the_same_step() -> None:
    desk = Agent("d").delegates(Agent("e").writes("k")) >> Agent("z")
    result, backend = await run(desk, d=to("e"), e="E!", z="bye")
    assert lines(result) == [
        "s0 d calls transfer_to_agent({'agent_name': 'e'})",
        "s0 d result of transfer_to_agent ->e",
        "s0 d@e 'E!' {'k': 'E!'}",
        "s1 z 'bye'",
    ]
    assert [each.tools for each in backend.calls] == [
        ("transfer_to_agent",),
        ("transfer_to_agent",),
        (),
    ]
    assert shown(backend, "e") == [
        "go",
        "[d] called tool `transfer_to_agent` with parameters: {'agent_name': 'e'}",
        "[d] `transfer_to_agent` tool returned result: {'result': None}",
    ]


async def test_to_the_parent_and_to_a_peer() -> None:
    desk = Agent("d").delegates(Agent("e"), Agent("f"))
    result, _ = await run(desk, d=[to("e"), "back"], e=to("f"), f=to("d"))
    assert [each.author for each in result if each.transfer_to] == ["d", "e", "f"]
    assert result.text == "back"


async def test_each_delegate_brings_its_own_mock() -> None:
    desk = Agent("d").mock(to("e")).delegates(Agent("e").mock("E!"))
    result, _ = await run(desk)
    assert result.text == "E!"


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("nobody", "Agent nobody not found in the agent tree."),
        ("g", "Agent d is not allowed to transfer to agent g."),
        ("z", "Agent d is not allowed to transfer to agent z."),
    ],
)
async def test_nobody_else_goes_on(name: str, error: str) -> None:
    desk = Agent("d").delegates(Agent("e").delegates(Agent("g"))) >> Agent("z")
    with pytest.raises(ValueError, match=error):
        await run(desk, d=to(name), z="bye")


async def test_an_agent_without_anybody_to_hand_over_to_lacks_the_tool() -> None:
    desk = Agent("d") >> Agent("z")
    result, _ = await run(desk, d=[to("z"), "sorry"], z="bye")
    [told] = results(result)
    assert told["error"].startswith("there is no tool transfer_to_agent()")
    assert result.text == "bye"


async def test_a_transfer_to_nobody_lacks_an_argument() -> None:
    desk = Agent("d").delegates(Agent("e"))
    result, _ = await run(desk, d=[Call("transfer_to_agent"), "sorry"])
    assert results(result)[0]["error"] == "transfer_to_agent() was called without agent_name"
    assert result.text == "sorry"


async def test_what_is_disallowed() -> None:
    aside = Agent("e").disallow_transfer_to_peers()
    with pytest.raises(ValueError, match="Agent e is not allowed to transfer to agent f"):
        await run(Agent("d").delegates(aside, Agent("f")), d=to("e"), e=to("f"))
    stays = Agent("e").disallow_transfer_to_parent()
    result, _ = await run(Agent("d").delegates(stays), d=to("e"), e=[to("d"), "E2"])
    assert result.text == "E2"


async def test_agents_of_adk_hand_over_to_theirs() -> None:
    inner = SimpleNamespace(name="e", sub_agents=[], disallow_transfer_to_parent=False)
    outer = SimpleNamespace(name="d", sub_agents=[inner], disallow_transfer_to_parent=False)
    backend = mock_backend({"d": [to("e"), "back"], "e": to("d")})
    result = await backend.run(backend.compile(AdkAgentNode("d", Ref(outer, "d"))), "go")
    assert [(each.author, each.transfer_to) for each in result if each.transfer_to] == [
        ("d", "e"),
        ("e", "d"),
    ]
    assert result.text == "back"


async def test_agents_that_hand_over_to_each_other_for_ever_come_to_an_end() -> None:
    desk = Agent("d").delegates(Agent("e")).mock(lambda _: to("e"))
    backend = mock_backend({"e": lambda _: to("d")})
    with pytest.raises(RunError, match="e would make more than 9 model calls"):
        await desk.run("go", backend=backend, config=ExecutionConfig(max_llm_calls=9))
    assert [each.agent for each in backend.calls] == ["d", "e"] * 4 + ["d"]


async def test_nobody_said_what_a_delegate_answers() -> None:
    desk = Fallback("f", Agent("d").delegates(below()), Agent("other"))
    with pytest.raises(UnknownNameError, match="nobody said what agent 'e' answers"):
        await run(desk, d=to("pipe"), other="covers it up")


# --- pipelines below agents -----------------------------------------------------------------------


async def test_a_pipeline_goes_on_at_positions_below_the_step() -> None:
    inner = (Agent("e").mock("E!") >> S.set(q=1)).named("pipe")
    result, _ = await run(Agent("d").delegates(inner) >> Agent("z"), d=to("pipe"), z="bye")
    assert lines(result)[2:] == ["s0.s0 e 'E!'", "s0.s1 set@pipe {'q': 1}", "s1 z 'bye'"]


async def test_an_attempt_that_fails_in_it_is_undone_there() -> None:
    first = S.set(k=1) >> Agent("x").mock("lost") >> Agent("bad").mock(ValueError("no"))
    inner = Fallback("pipe", first, Agent("y").mock("Y"))
    result, backend = await run(Agent("d").delegates(inner) >> Agent("z"), d=to("pipe"), z="bye")
    assert lines(result)[2:] == [
        "~s0.f0.s0 set@pipe {'k': 1}",
        "~s0.f0.s1 x 'lost'",
        "s0 pipe {'k': None}",
        "s0.f1 y 'Y'",
        "s1 z 'bye'",
    ]
    assert "[x] said: lost" not in shown(backend, "z")


async def test_it_works_on_the_snapshot_of_its_branch() -> None:
    from adk_fluent import map_over

    def double(state: Any) -> dict[str, int]:
        return {"out": state["_item"] * 2 + state.get("out", 0)}

    inner = (Pipeline("pipe", double) >> double).named("pipe")
    agent = Agent("d").mock(to("pipe")).delegates(inner)
    pipeline = map_over("list", agent, result_key="out", output_key="outs")
    result = await pipeline.run("go", backend=mock_backend(), state={"list": [1, 10]})
    assert result.state["outs"] == [4, 40]


async def test_whoever_ends_a_loop_in_it_ends_the_loop_around_it() -> None:
    inner = Pipeline("pipe", Agent("e").mock(Call("exit_loop")))
    looped = Agent("d").mock(lambda _: to("pipe")).delegates(inner) * until(lambda _: False, max=3)
    _, backend = await run(looped)
    assert [each.agent for each in backend.calls] == ["d", "e"]


async def test_a_gate_in_it_waits_and_goes_on() -> None:
    desk = Agent("d").delegates(below()) >> Agent("z")
    asked, backend = await run(desk, d=to("pipe"), e="E!", f="F!", z="bye")
    assert lines(asked)[2:] == ["s0.s0 e 'E!'", "s0 pipe asks gate ask"]
    assert [each.author for each in asked.pending] == ["pipe"]
    [question] = asked.pending
    result = await desk.resume(question.answer(), backend=backend, session_id="s")
    assert lines(result) == [
        f"s0.s1 ask@pipe {{'ask': {YES}}}",
        "s0.s2 f 'F!' {'k': 'F!'}",
        "s1 z 'bye'",
    ]
    assert [each.agent for each in backend.calls] == ["d", "e", "f", "z"]


async def test_a_refusal_in_it_ends_the_whole_run() -> None:
    desk = Agent("d").delegates(below()) >> Agent("z")
    asked, backend = await run(desk, d=to("pipe"), e="E!")
    no = asked.pending[0].answer(False)
    result = await desk.resume(no, backend=backend, session_id="s")
    assert (result.text, result.status, result.step) == ("", "rejected", "ask")
    assert result.reason == "ask was refused. Nothing after it was run."
    assert [each.agent for each in backend.calls] == ["d", "e"]


async def test_a_confirmation_in_it_is_answered_where_it_was_asked() -> None:
    agent = Agent("e").tool(pay, require_confirmation=True)
    for inner, line in ((agent, "s0 d@e 'Done.'"), (Pipeline("pipe", agent), "s0.s0 e 'Done.'")):
        name = inner.to_ir().name
        desk = Agent("d").delegates(inner) >> Agent("z")
        script = [Call("pay", {"order": "A1"}), "Done."]
        asked, backend = await run(desk, d=to(name), e=script, z="bye")
        assert [(each.kind, each.author) for each in asked.pending] == [("confirmation", "e")]
        yes = asked.pending[0].answer()
        result = await desk.resume(yes, backend=backend, session_id="s")
        assert lines(result)[1:] == [line, "s1 z 'bye'"]
        assert [each.agent for each in backend.calls] == ["d", "e", "e", "z"]


async def test_what_was_done_in_it_before_a_failure_is_not_done_again() -> None:
    inner = (Agent("e") >> Agent("f")).named("pipe")
    desk = Agent("d").mock(lambda _: to("pipe")).delegates(inner)
    backend = mock_backend({"e": "E!", "f": [ConnectionError("down"), "F!"]})
    options: dict[str, Any] = {
        "backend": backend,
        "session_id": "s",
        "config": ExecutionConfig(resumable=True),
    }
    with pytest.raises(ConnectionError):
        await desk.run("go", **options)
    assert (await desk.resume(**options)).text == "F!"
    assert [each.agent for each in backend.calls] == ["d", "e", "f", "d", "f"]


async def test_listeners_hear_of_what_fails_in_it() -> None:
    heard: list[tuple[str | None, str]] = []

    class Listener:
        def on_event(self, event: Any) -> None: ...

        def on_notice(self, notice: Any) -> None:
            heard.append((notice.path, notice.error.code))

    inner = (Agent("e").mock("E!") >> Agent("f").mock(ValueError("no"))).named("pipe")
    desk = Agent("d").mock(to("pipe")).delegates(inner)
    with pytest.raises(ValueError, match="no"):
        await desk.run("go", backend=mock_backend(), listeners=[Listener()])
    assert ("s1", "ValueError") in heard


# --- agents as tools ------------------------------------------------------------------------------


def with_tool(tool: Any) -> Builder:
    return Agent("d").agent_tool(tool) >> Agent("z")


async def test_an_agent_that_is_a_tool_answers_in_a_session_of_its_own() -> None:
    expert = Agent("e").instruct("About {topic}.").writes("k")
    pipeline = S.set(topic="ü") >> with_tool(expert)
    asks = Call("e", {"request": "what?"})
    result, backend = await run(pipeline, d=[asks, "D says"], e="E!", z="bye")
    assert lines(result)[1:] == [
        "s1 d calls e({'request': 'what?'})",
        "s1 d {'k': 'E!'} result of e",
        "s1 d 'D says'",
        "s2 z 'bye'",
    ]
    assert results(result) == [{"result": "E!"}]
    assert (shown(backend, "e"), result.state["k"]) == (["what?"], "E!")
    assert next(each.system for each in backend.calls if each.agent == "e") == "About ü."
    assert "[e] said: E!" not in shown(backend, "z")


async def test_a_pipeline_that_is_a_tool_answers_what_was_said_last() -> None:
    inner = (Agent("e").mock("E!") >> Agent("f").mock("F!") >> S.set(q=1)).named("pipe")
    asks = Call("pipe", {"request": "what?"})
    result, _ = await run(with_tool(inner), d=[asks, "D says"], z="bye")
    assert (results(result), result.state) == ([{"result": "F!"}], {"q": 1})


async def test_temporary_keys_are_those_of_one_session() -> None:
    expert = Agent("e").instruct("{temp:a?}{b}") >> S.temp.set(c="C") >> S.set(d="D")
    last = Agent("f").instruct("{temp:c}")
    pipeline = S.temp.set(a="A") >> S.set(b="B") >> with_tool((expert >> last).named("pipe"))
    pipeline >>= Agent("y").instruct("{temp:a}{temp:c?}{d}")
    asks = Call("pipe", {"request": "?"})
    _, backend = await run(pipeline, d=[asks, "D"], e="E", f="F", z="Z", y="Y")
    told = {each.agent: each.system for each in backend.calls}
    assert (told["e"], told["f"], told["y"]) == ("B", "C", "AD")


async def test_what_a_tool_cannot_do_its_caller_is_told() -> None:
    waits = Agent("e").tool(pay, require_confirmation=True).mock(Call("pay", {"order": "A1"}))
    says_no = Agent("e").mock(reply(error_code="SAFETY"))
    for tool, told in ((waits, "Error: agent 'e' stopped waiting"), (says_no, "")):
        asks = Call("e", {"request": "what?"})
        result, _ = await run(with_tool(tool), d=[asks, "D says"], z="bye")
        [given] = results(result)
        assert given["result"].startswith(told)
        assert bool(given["result"]) == bool(told)
        assert result.pending == []


async def test_what_a_tool_raises_its_caller_raises() -> None:
    asks = Call("e", {"request": "what?"})
    with pytest.raises(ValueError, match="bad"):
        await run(with_tool(Agent("e").mock(ValueError("bad"))), d=asks)
    covered = with_tool(Agent("e")) // Agent("no")
    with pytest.raises(BuildError, match="nobody said what agent 'e' answers"):
        await run(covered, d=asks, no="covers it up")


async def test_arguments_that_are_no_request_are_told_as_json() -> None:
    asks = Call("e", {"b": "ü", "a": 1})
    _, backend = await run(with_tool(Agent("e")), d=[asks, "D says"], e="E!", z="bye")
    assert shown(backend, "e") == ['{"a": 1, "b": "ü"}']


async def test_what_an_agent_reports_or_answers_by_a_schema_is_its_result() -> None:
    class Price(BaseModel):
        euros: int
        note: str | None = None

    data = Agent("e").mock('{"euros": 7}').output_schema(Price)
    says_no = Agent("e").mock(reply(error_code="SAFETY", error_message="no"))
    for tool, told in ((data, {"euros": 7}), (says_no, {"result": "no"})):
        asks = Call("e", {"request": "what?"})
        result, _ = await run(with_tool(tool), d=[asks, "D says"], z="bye")
        assert results(result) == [told]


async def test_the_arguments_of_a_tool_fit_its_input_schema() -> None:
    class Order(BaseModel):
        id: int
        note: str | None = None

    asks = Call("e", {"id": "7"})
    tool = Agent("e").input_schema(Order)
    _, backend = await run(with_tool(tool), d=[asks, "D says"], e="E!", z="bye")
    assert shown(backend, "e") == ['{"id":7}']


# --- what is refused before a run -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("pipeline", "says"),
    [
        (Agent("d").agent_tool(below()), "gate 'ask' stands in 'pipe', which is a tool"),
        (
            Agent("d").agent_tool(Agent("e").history("none")),
            "history 'none' has no effect on a tool",
        ),
        (Agent("d").delegates(Agent("e").history("own")), "history 'own' has no effect on a deleg"),
    ],
)
def test_what_adk_refuses_is_refused(pipeline: Builder, says: str) -> None:
    with pytest.raises(UnsupportedNodeError, match=says):
        mock_backend().compile(pipeline.to_ir())


def test_a_gate_in_a_race_below_an_agent_is_refused() -> None:
    from adk_fluent import race

    inner = race(Agent("x"), Agent("y") >> gate(), name="pipe")
    with pytest.raises(BuildError, match="inside the race"):
        mock_backend().compile(Agent("d").delegates(inner).to_ir())

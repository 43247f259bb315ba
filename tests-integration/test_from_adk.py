"""The table "What changes" of the page ``from-adk.md``, row by row, on the ADK that is there."""

# What is compared with is what ADK 2.x deprecates.
# pyright: reportDeprecated=false

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.live_request_queue import LiveRequestQueue
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.loop_agent import LoopAgent
from google.adk.agents.parallel_agent import ParallelAgent
from google.adk.agents.sequential_agent import SequentialAgent
from google.adk.runners import InMemoryRunner
from google.adk.tools.exit_loop_tool import exit_loop
from google.genai.types import Content, Part

from adk_fluent import Agent, FanOut, Pipeline, until
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import OutputMissingError, UsageError
from adk_fluent.testing import Call, ScriptedModel, reply

if TYPE_CHECKING:
    from google.adk.agents import BaseAgent
    from google.adk.events import Event

    from adk_fluent.builders import State
    from adk_fluent.testing import Reply

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings("ignore:.* is deprecated in favor of Workflow:DeprecationWarning"),
]

ADK_2 = int(version("google-adk").split(".", 1)[0]) >= 2


@dataclass
class Session:
    """What one session came to."""

    events: list[Event] = field(default_factory=list["Event"])
    state: dict[str, Any] = field(default_factory=dict[str, Any])

    def said(self) -> list[tuple[str, str]]:
        parts = ((event, event.content.parts if event.content else None) for event in self.events)
        return [(event.author, part.text) for event, of in parts for part in of or () if part.text]


def talk(agent: BaseAgent, *messages: str) -> Session:
    """A session under ADK's own Runner."""

    async def run() -> Session:
        runner = InMemoryRunner(agent, app_name="demo")
        sessions = runner.session_service
        session = await sessions.create_session(app_name="demo", user_id="ann")
        found = Session()
        try:
            for message in messages:
                new = Content(role="user", parts=[Part(text=message)])
                async with aclosing(
                    runner.run_async(user_id="ann", session_id=session.id, new_message=new)
                ) as events:
                    found.events += [event async for event in events]
        finally:
            await runner.close()
        kept = await sessions.get_session(app_name="demo", user_id="ann", session_id=session.id)
        assert kept is not None
        found.state = kept.state
        return found

    return asyncio.run(run())


def adk(name: str, *replies: str | Reply | Call | Exception, **fields: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedModel(*replies), **fields)


def agent(name: str, *replies: str | Reply | Call | Exception) -> Agent:
    return Agent(name, ScriptedModel(*replies))


def test_authors_and_order() -> None:
    theirs = SequentialAgent(name="desk", sub_agents=[adk("a", "one"), adk("b", "two")])
    ours = Pipeline("desk", agent("a", "one"), agent("b", "two"))
    assert talk(theirs, "Hi.").said() == [("a", "one"), ("b", "two")]
    assert talk(ours.to_agent(), "Hi.").said() == [("a", "one"), ("b", "two")]


def test_a_function_writes_by_the_root() -> None:
    def step(_: State) -> dict[str, int]:
        return {"n": 1}

    (event,) = talk((step >> Pipeline().step(step)).to_agent(), "Hi.").events[:1]
    assert (event.author, event.actions.state_delta) == ("pipeline", {"n": 1})


def test_branches() -> None:
    theirs = ParallelAgent(name="look_up", sub_agents=[adk("a", "one"), adk("b", "two")])
    named = FanOut("look_up", agent("a", "one"), agent("b", "two"))
    unnamed = agent("a", "one") | agent("b", "two")
    assert {event.branch for event in talk(theirs, "Hi.").events} == {"look_up.a", "look_up.b"}
    assert {event.branch for event in talk(named.to_agent(), "Hi.").events} == {
        "look_up.a",
        "look_up.b",
    }
    assert {event.branch for event in talk(unnamed.to_agent(), "Hi.").events} == {
        "parallel.a",
        "parallel.b",
    }


def test_a_branch_raises() -> None:
    theirs = ParallelAgent(
        name="both",
        sub_agents=[adk("a", reply("late", latency=30)), adk("b", RuntimeError("down"))],
    )
    with pytest.raises(RuntimeError if ADK_2 else ExceptionGroup):
        talk(theirs, "Hi.")
    ours = agent("a", reply("late", latency=30)) | agent("b", RuntimeError("down"))
    with pytest.raises(RuntimeError, match="down"):
        talk(ours.to_agent(), "Hi.")


def test_the_end_of_a_loop() -> None:
    script = ("draft", Call("exit_loop", {}), "never")
    theirs = LoopAgent(name="polish", sub_agents=[adk("a", *script, tools=[exit_loop])])
    ours = agent("a", *script).tool(exit_loop) * 5
    assert talk(theirs, "Hi.").said() == talk(ours.to_agent(), "Hi.").said() == [("a", "draft")]

    quiet = talk((agent("a", "draft") * until(lambda _: True, max=5)).to_agent(), "Hi.")
    assert [event.author for event in quiet.events] == ["a"]


def test_an_agent_reports_an_error_instead_of_its_key() -> None:
    blocked = reply(error_code="SAFETY")
    theirs = SequentialAgent(
        name="desk", sub_agents=[adk("a", blocked, output_key="k"), adk("b", "went on")]
    )
    found = talk(theirs, "Hi.")
    assert (found.said(), found.state) == ([("b", "went on")], {})
    with pytest.raises(OutputMissingError):
        talk((agent("a", blocked).writes("k") >> agent("b", "went on")).to_agent(), "Hi.")


def test_the_message_after_a_transfer() -> None:
    over = Call("transfer_to_agent", {"agent_name": "b"})
    theirs = adk("a", over, "a again", sub_agents=[adk("b", "one", "two")])
    ours = agent("a", over, "a again").delegates(agent("b", "one", "two"))
    assert talk(theirs, "Hi.", "And?").said() == [("b", "one"), ("b", "two")]
    assert talk(ours.to_agent(), "Hi.", "And?").said() == [("b", "one"), ("a", "a again")]


def test_names_of_apps_and_agents() -> None:
    nested = (agent("a", "one") | agent("b", "two")) >> agent("c", "three")
    assert nested.to_app().name == "adk_fluent_app"
    assert [each.name for each in nested.to_agent().sub_agents] == ["a", "b", "c"]


def test_a_session_of_before_goes_on() -> None:
    model = ScriptedModel("On its way.")

    async def run() -> dict[str, Any]:
        runner = InMemoryRunner(adk("a", "one", output_key="order"), app_name="demo")
        sessions = runner.session_service
        session = await sessions.create_session(app_name="demo", user_id="ann")
        new = Content(role="user", parts=[Part(text="Hi.")])
        async with aclosing(
            runner.run_async(user_id="ann", session_id=session.id, new_message=new)
        ) as events:
            assert [event.author async for event in events] == ["a"]
        await runner.close()
        result = await (
            Agent("b", model)
            .instruct("{order}")
            .run(
                "And?",
                config=ExecutionConfig(app_name="demo"),
                user_id="ann",
                session_id=session.id,
                session_service=sessions,
            )
        )
        return dict(result.state)

    assert asyncio.run(run()) == {"order": "one"}
    assert model.calls[0].system.startswith("one")
    assert model.calls[0].turns[0].text == "Hi."


@pytest.mark.skipif(not ADK_2, reason="ADK 1.x has no Workflow")
def test_a_workflow_is_no_step() -> None:
    workflow: Any = import_module("google.adk.workflow").Workflow(name="w", edges=[])
    with pytest.raises(UsageError, match="a Workflow cannot be a step"):
        Pipeline("desk").step(workflow)


def test_live() -> None:
    async def live() -> list[str]:
        runner = InMemoryRunner((agent("a", "one") >> agent("b", "two")).to_agent())
        session = await runner.session_service.create_session(
            app_name=runner.app_name, user_id="ann"
        )
        line = LiveRequestQueue()
        line.send_content(Content(role="user", parts=[Part(text="hi")]))
        said: list[str] = []
        async with aclosing(
            runner.run_live(user_id="ann", session_id=session.id, live_request_queue=line)
        ) as events:
            async for event in events:
                parts = (event.content and event.content.parts) or ()
                said += [part.text or "" for part in parts if not event.partial]
                if event.turn_complete:
                    line.close()
        await runner.close()
        return said

    assert asyncio.run(live()) == ["one", "two"]

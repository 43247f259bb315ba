"""Pipelines that ask, what they can stand below, and sessions in which every message is a process.

A process of its own as far as a test can be one: a session service that reads the file anew, a
pipeline compiled anew, an App and a Runner of their own.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App, ResumabilityConfig
from google.adk.runners import Runner
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai.types import Content, FunctionResponse, Part

from adk_fluent import Agent, gate
from adk_fluent.backends.adk._hooks._plugin import MiddlewarePlugin
from adk_fluent.backends.adk._session._events import to_agent_event
from adk_fluent.config import ExecutionConfig
from adk_fluent.testing import Call, ScriptedModel, rule

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from adk_fluent.builders import Builder
    from adk_fluent.testing import Asked

APP: Final = "nested"
PAID: list[str] = []
BEFORE: Final = [("draft", "a draft")]
AFTER: Final = [("publish", "published")]


def pay(order: str) -> str:
    """Pay an order back.

    Args:
        order: Its number.
    """
    PAID.append(order)
    return f"{order} is paid back"


def with_a_gate() -> Builder:
    published = Agent("publish").mock("published")
    return (
        Agent("draft").mock("a draft") >> gate(message="Good?", name="good") >> published
    ).named("pipe")


def knows(text: str) -> Callable[[Asked], bool]:
    return lambda asked: any(text in turn.text for turn in asked.turns)


def with_two_gates() -> Builder:
    asked = gate(message="Good?", name="good") | gate(message="Sure?", name="sure")
    return (Agent("draft").mock("a draft") >> asked >> Agent("publish").mock("published")).named(
        "pipe"
    )


def with_a_number() -> Builder:
    asked = gate(message="How many?", name="count", response_schema=int)
    return (Agent("draft").mock("a draft") >> asked >> Agent("publish").mock("published")).named(
        "pipe"
    )


def with_a_confirmation() -> Builder:
    rules = [rule(knows("paid back"), reply="done"), rule("rejected", reply="not done")]
    clerk = Agent("clerk", ScriptedModel(rules=rules, default=Call("pay", {"order": "A1"})))
    clerk.tool(pay, require_confirmation=True)
    published = Agent("publish").mock("published")
    return (Agent("draft").mock("a draft") >> clerk >> published).named("pipe")


class Boss:
    """An agent that hands everything over, and counts how often it is asked."""

    def __init__(self) -> None:
        call = Call("transfer_to_agent", {"agent_name": "pipe"})
        self.model = ScriptedModel(default=call)

    def of_adk(self, pipe: Builder) -> App:
        root = LlmAgent(name="boss", model=self.model, sub_agents=[pipe.to_agent()])
        return App(name=APP, root_agent=root)

    def with_our_plugin(self, pipe: Builder) -> App:
        return self.of_adk(pipe).model_copy(update={"plugins": [MiddlewarePlugin()]})

    def resumable(self, pipe: Builder) -> App:
        more = {"resumability_config": ResumabilityConfig(is_resumable=True)}
        return self.of_adk(pipe).model_copy(update=more)

    def in_a_step(self, pipe: Builder) -> App:
        outer = Agent("first").mock("1") >> pipe.to_agent() >> Agent("last").mock("9")
        call = Call("transfer_to_agent", {"agent_name": "outer"})
        self.model = ScriptedModel(default=call)
        return self.of_adk(outer.named("outer"))

    def below_two(self, pipe: Builder) -> App:
        boss = LlmAgent(name="boss", model=self.model, sub_agents=[pipe.to_agent()])
        model = ScriptedModel(default=Call("transfer_to_agent", {"agent_name": "boss"}))
        root = LlmAgent(name="root", model=model, sub_agents=[boss])
        return App(name=APP, root_agent=root, plugins=[MiddlewarePlugin()])

    def in_a_graph(self, pipe: Builder) -> App:
        from google.adk.workflow import START, Workflow  # since 2.0

        return App(name=APP, root_agent=Workflow(name="graph", edges=[(START, pipe.to_agent())]))

    def bare(self, pipe: Builder) -> App:
        return App(name=APP, root_agent=pipe.to_agent())

    def bare_with_our_plugin(self, pipe: Builder) -> App:
        return self.bare(pipe).model_copy(update={"plugins": [MiddlewarePlugin()]})

    def of_ours(self, pipe: Builder) -> App:
        return _app(Agent("boss", self.model).delegates(pipe))

    def in_a_pipeline(self, pipe: Builder) -> App:
        boss = Agent("boss", self.model).delegates(pipe)
        return _app(Agent("first").mock("1") >> boss >> Agent("last").mock("9"))

    def nobody(self, pipe: Builder) -> App:
        return _app(Agent("first").mock("1") >> pipe.to_agent() >> Agent("last").mock("9"))


def _app(pipeline: Builder) -> App:
    return pipeline.to_app(ExecutionConfig(app_name=APP))


class Place:
    """A session in a file, and the program that is started anew for every message."""

    def __init__(self, path: Path, pipe: Callable[[], Builder], above: str) -> None:
        self.path = path
        self.question: Any = None
        self.questions: list[Any] = []
        self.asked = 0  # how often the boss was, by the last message
        self.schemas: list[Any] = []  # of all questions
        self._pipe = pipe
        self._above = above

    async def say(self, message: Content, runner: Runner | None = None) -> list[tuple[str, str]]:
        """Who said what, on a message; without a Runner a new process gets it."""
        boss = Boss()
        app: App = getattr(boss, self._above)(self._pipe())
        service = SqliteSessionService(str(self.path))
        if self.question is None:
            await service.create_session(app_name=APP, user_id="user", session_id="s")
        runner = runner or Runner(app=app, session_service=service)
        said: list[tuple[str, str]] = []
        running = runner.run_async(user_id="user", session_id="s", new_message=message)
        async with aclosing(running) as events:
            async for event in events:
                self.schemas += [each.response_schema for each in to_agent_event(event).pending]
                texts = [part.text for part in (event.content and event.content.parts) or ()]
                said.extend((event.author, text) for text in texts if text)
                for call in event.get_function_calls():
                    if (call.name or "").startswith(("adk_request_", "delivered")):
                        self.question = call
                        self.questions.append(call)
        self.asked = len(boss.model.calls)
        return said

    async def answer(self, runner: Runner | None = None, **response: Any) -> list[tuple[str, str]]:
        part = response_to(self.question, response)
        return await self.say(Content(role="user", parts=[part]), runner)


def response_to(question: Any, response: dict[str, Any]) -> Part:
    given = FunctionResponse(id=question.id, name=question.name, response=response)
    return Part(function_response=given)

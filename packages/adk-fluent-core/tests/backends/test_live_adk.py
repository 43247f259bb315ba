"""Live runs: agents that talk with the user, and the hooks that are asked meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator  # noqa: TC003  # ADK looks it up
from contextlib import asynccontextmanager
from datetime import date
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from adk_middlewares import made_of
from google.adk.agents.live_request_queue import LiveRequestQueue
from google.adk.agents.run_config import RunConfig
from google.adk.models.llm_response import LlmResponse
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext  # noqa: TC002  # ADK reads annotations
from google.genai import types
from pydantic import BaseModel
from websockets.exceptions import ConnectionClosedError
from websockets.frames import Close

from adk_fluent import Agent, FanOut, Pipeline, gate, map_over
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import (
    BuildError,
    RunError,
    StateKeyError,
    StateTypeError,
    UnsupportedConfigError,
    UsageError,
)
from adk_fluent.ir import StateFieldRef
from adk_fluent.testing import Call, Script, ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from google.adk.events.event import Event
    from google.adk.sessions.base_session_service import BaseSessionService
    from google.adk.sessions.session import Session

    from adk_fluent.protocol import AgentEvent, NextTool, ToolCall

pytestmark = pytest.mark.adk

BIDI = ExecutionConfig(app_name="calls", streaming_mode="bidi")
DONE = Call("task_completed")


def user(text: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text)])


def answer(text: str) -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))


def texts(event: Event) -> str:
    return "".join(part.text or "" for part in (event.content and event.content.parts) or ())


class Talk:
    """A live run in which the user speaks whenever the model's turn is complete, then hangs up.

    Attributes:
        events: What the Runner gave.
        session: The session afterwards.
    """

    def __init__(self, service: BaseSessionService | None = None) -> None:
        self.service = service or InMemorySessionService()
        self.config = RunConfig(response_modalities=[types.Modality.TEXT])
        self.events: list[Event] = []
        self.session: Session

    async def about(
        self, pipeline: Any, *says: str, realtime: Sequence[Any] = (), hang_up: bool = True
    ) -> Talk:
        runner = pipeline.to_runner(config=BIDI, session_service=self.service)
        session = await self.service.create_session(app_name="calls", user_id="u")
        queue, left = LiveRequestQueue(), list(says)
        if left:
            queue.send_content(user(left.pop(0)))
        for each in realtime:
            queue.send_realtime(each)
        running = runner.run_live(
            user_id="u", session_id=session.id, live_request_queue=queue, run_config=self.config
        )
        try:
            async with asyncio.timeout(30):
                async for event in running:
                    self.events.append(event)
                    if event.turn_complete and left:
                        queue.send_content(user(left.pop(0)))
                    elif event.turn_complete and hang_up:
                        queue.close()
        finally:
            await running.aclose()
            found = await self.service.get_session(
                app_name="calls", user_id="u", session_id=session.id
            )
            assert found is not None
            self.session = found
        return self

    @property
    def said(self) -> list[str]:
        """Who said what, without fragments."""
        whole = [event for event in self.events if not event.partial]
        return [f"{event.author}: {said}" for event in whole if (said := texts(event))]

    @property
    def stored(self) -> list[str]:
        """The same of the session."""
        return [f"{e.author}: {said}" for e in self.session.events if (said := texts(e))]


async def talk(pipeline: Any, *says: str, **options: Any) -> Talk:
    return await Talk().about(pipeline, *says, **options)


def lookup(city: str) -> str:
    """Look up the weather."""
    return f"sunny in {city}"


class Asked:
    """Notes which hooks are asked, and about what."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    async def before_run(self, ctx: Any) -> None:
        self.notes.append("before_run")

    async def after_run(self, ctx: Any) -> None:
        self.notes.append("after_run")

    async def before_agent(self, ctx: Any, agent_name: str) -> None:
        self.notes.append(f"before_agent {agent_name}")

    async def after_agent(self, ctx: Any, agent_name: str) -> None:
        self.notes.append(f"after_agent {agent_name}")

    async def before_model(self, ctx: Any, request: Any) -> None:
        said = "".join(p.text or "" for c in request.contents for p in c.parts)
        self.notes.append(f"before_model {ctx.agent_name} {said!r}")
        ctx.state["asked"] = ctx.state.get("asked", 0) + 1

    async def after_model(self, ctx: Any, response: Any) -> None:
        said = "".join(p.text or "" for p in response.content.parts)
        self.notes.append(f"after_model {'~' if response.partial else ''}{said!r}")

    async def before_tool(self, ctx: Any, tool_name: str, args: dict[str, Any]) -> None:
        self.notes.append(f"before_tool {tool_name}")

    async def wrap_tool_call(self, call: ToolCall, next: NextTool) -> Any:
        self.notes.append(f"wrap_tool_call {call.name}")
        return await next(call)

    async def after_tool(self, ctx: Any, tool_name: str, args: dict[str, Any], result: Any) -> None:
        self.notes.append(f"after_tool {tool_name} {result}")

    async def on_event(self, ctx: Any, event: AgentEvent) -> None:
        if event.content and not event.is_partial:
            self.notes.append(f"on_event {event.content}")


# --- the run -------------------------------------------------------------------------------------


async def test_agents_talk_one_after_the_other_and_the_rest_runs_when_the_user_has_hung_up() -> (
    None
):
    def count(state: Any) -> dict[str, Any]:
        return {"counted": len(state["said"])}

    first = ScriptedModel("Hi.", "Fine.", DONE)
    second = ScriptedModel("I am b.", "Again.")
    last = ScriptedModel("A summary.")
    pipeline = (
        Agent("a").instruct("Greet.").model(first).writes("said")
        >> count
        >> Agent("b").instruct("Help.").model(second)
        >> Agent("c").instruct("Sum up.").model(last).writes("summary")
    )
    talked = await talk(pipeline, "hello", "how are you?", "bye", "and you?")
    assert talked.said == [
        *("a: Hi.", "a: Fine.", "b: I am b.", "b: Again.", "c: A summary."),
    ]
    assert talked.session.state == {"said": "Fine.", "counted": 5, "summary": "A summary."}
    assert [each for each in talked.stored if each.startswith("user")] == [
        *("user: hello", "user: how are you?", "user: bye", "user: and you?"),
    ]
    assert "task_completed" in first.calls[0].system
    assert "task_completed" in second.calls[0].system
    assert "task_completed" not in last.calls[0].system
    assert "how are you?" in " ".join(turn.text for turn in last.calls[0].turns)


async def test_an_agent_that_nothing_comes_after_talks_until_the_user_hangs_up() -> None:
    model = ScriptedModel("One.", "Two.")
    talked = await talk(Agent("a").instruct("Talk.").model(model), "1", "2")
    assert talked.said == ["a: One.", "a: Two."]
    assert "task_completed" not in model.calls[0].system
    assert "task_completed" not in model.calls[0].raw.tools_dict


async def test_an_instruction_that_is_a_function_is_told_of_the_end_too() -> None:
    def instruct(ctx: Any) -> str:
        return f"Talk to {ctx.state['name']}."

    def named(_: Any) -> dict[str, Any]:
        return {"name": "Ann"}

    def over(_: Any) -> dict[str, Any]:
        return {"over": True}

    model = ScriptedModel(DONE)
    pipeline = named >> Agent("a").instruct(instruct).model(model) >> over
    talked = await talk(pipeline, "hello")
    assert talked.session.state["over"]
    assert model.calls[0].system.startswith("Talk to Ann.")
    assert "task_completed" in model.calls[0].system


async def test_loops_and_routes_are_live_too() -> None:
    model = ScriptedModel("One.", DONE, "Two.", DONE)
    agent = Agent("a").instruct("Talk.").model(model)
    talked = await talk(agent * 2, "1", "2", "3")
    assert talked.said == ["a: One.", "a: Two."]


async def test_the_next_attempt_connects_when_the_first_cannot() -> None:
    class Broken(ScriptedModel):
        def connect(self, llm_request: Any) -> Any:
            raise ConnectionError("no line")

    first = Agent("a").instruct("A").model(Broken(model="broken", script=Script("")))
    pipeline = first // Agent("b").instruct("B").model(ScriptedModel("Here."))
    assert (await talk(pipeline, "hello")).said == ["b: Here."]


async def test_an_error_of_the_model_is_raised_with_its_own_type() -> None:
    agent = Agent("a").instruct("A").model(ScriptedModel(ConnectionResetError("cut")))
    with pytest.raises(ConnectionResetError, match="cut"):
        await talk(agent, "hello")


async def test_a_tool_whose_result_comes_later_does_not_end_the_run() -> None:
    from google.adk.tools.long_running_tool import LongRunningFunctionTool

    def order(item: str) -> dict[str, str]:
        """Order something."""
        return {"status": "pending"}

    model = ScriptedModel(Call("order", {"item": "tea"}), "Ordered.", "Bye.")
    agent = Agent("a").instruct("A").model(model).tool(LongRunningFunctionTool(order))
    talked = await talk(agent, "tea please", "bye")
    assert talked.said == ["a: Ordered.", "a: Bye."]


@pytest.mark.parametrize("history", ["own", pytest.param("none", marks=pytest.mark.full)])
async def test_what_the_user_says_is_stored_where_a_step_sees_a_copy_of_the_session(
    store: BaseSessionService, history: Any
) -> None:
    model = ScriptedModel("One.", "Two.", DONE)
    pipeline = Agent("a").instruct("A").model(model).history(history).writes("said") >> Agent(
        "b"
    ).instruct("B").model(ScriptedModel("Bye.")).history(history)
    talked = await Talk(store).about(pipeline, "1", "2", "3")
    assert [each for each in talked.stored if each.startswith("user")] == [
        *("user: 1", "user: 2", "user: 3"),
    ]
    assert talked.said == ["a: One.", "a: Two.", "b: Bye."]
    assert talked.session.state["said"] == "Two."


async def test_what_is_spoken_is_an_answer_too() -> None:
    spoken = LlmResponse(
        output_transcription=types.Transcription(text="It is sunny.", finished=True), partial=False
    )

    def upper(state: Any) -> dict[str, Any]:
        return {"upper": state["weather"].upper()}

    model = ScriptedModel(spoken)
    voice = [
        types.Blob(data=b"1", mime_type="audio/pcm"),
        types.Blob(data=b"2", mime_type="audio/pcm"),
    ]
    runner = (Agent("a").instruct("A").model(model).writes("weather") >> upper).to_runner(
        config=BIDI
    )
    session = await runner.session_service.create_session(app_name="calls", user_id="u")
    queue = LiveRequestQueue()
    for each in voice:
        queue.send_realtime(each)
    queue.send_activity_end()
    async with asyncio.timeout(30):
        async for event in runner.run_live(
            user_id="u", session_id=session.id, live_request_queue=queue
        ):
            if event.turn_complete:
                queue.close()
    found = await runner.session_service.get_session(
        app_name="calls", user_id="u", session_id=session.id
    )
    assert found is not None
    assert found.state["upper"] == "IT IS SUNNY."
    (asked,) = model.calls
    assert [turn.text for turn in asked.turns][-1] == "[audio/pcm 1 bytes]\n[audio/pcm 1 bytes]"


async def test_whoever_leaves_early_leaves_nothing_behind() -> None:
    before = asyncio.all_tasks()
    seen = Asked()
    model = ScriptedModel("One.", "Two.")
    runner = Agent("a").instruct("A").model(model).middleware(seen).to_runner(config=BIDI)
    session = await runner.session_service.create_session(app_name="calls", user_id="u")
    queue = LiveRequestQueue()
    queue.send_content(user("1"))
    running = runner.run_live(user_id="u", session_id=session.id, live_request_queue=queue)
    async with asyncio.timeout(30):
        async for event in running:
            if event.turn_complete:
                break
        await running.aclose()
        left = asyncio.all_tasks() - before
        if left:
            await asyncio.wait(left)
    assert "after_run" not in seen.notes


async def test_runs_at_the_same_time_do_not_mix() -> None:
    class Own:
        def __init__(self) -> None:
            self.count = 0

        def new(self) -> Own:
            return Own()

        async def before_model(self, ctx: Any, request: Any) -> None:
            self.count += 1
            ctx.state["count"] = self.count
            await asyncio.sleep(0.01)

    def pipeline(count: int) -> Any:
        agent = Agent("a").instruct("A").model(ScriptedModel(default="Yes."))
        return talk(agent.middleware(Own()), *map(str, range(count)))

    counts = [1, 4, 2]
    talked = await asyncio.gather(*map(pipeline, counts))
    assert [each.session.state["count"] for each in talked] == [each + 1 for each in counts]


# --- hooks ---------------------------------------------------------------------------------------


async def test_hooks_are_asked_in_order_and_what_they_write_is_kept(
    store: BaseSessionService,
) -> None:
    asked = Asked()
    model = ScriptedModel(Call("lookup", {"city": "Rome"}), "Sunny.", "Bye.")
    agent = Agent("a").instruct("A").model(model).tool(lookup).middleware(asked)
    talked = await Talk(store).about(agent, "weather?", "bye")
    assert asked.notes == [
        *("before_run", "before_agent a", "before_model a ''", "before_model a 'weather?'"),
        *("after_model ''", "before_tool lookup", "wrap_tool_call lookup"),
        *("after_tool lookup sunny in Rome", "after_model ~'Sunny.'"),
        *("after_model 'Sunny.'", "on_event Sunny.", "before_model a 'bye'"),
        *("after_model ~'Bye.'", "after_model 'Bye.'", "on_event Bye."),
        *("after_agent a", "after_run"),
    ]
    assert talked.session.state["asked"] == 3
    delta = [e.actions.state_delta for e in talked.session.events if e.actions.state_delta]
    assert [each["asked"] for each in delta] == [2, 3]  # with the first event after each


async def test_before_model_changes_what_is_sent_or_answers_itself() -> None:
    class Guard:
        async def before_model(self, ctx: Any, request: Any) -> Any:
            for content in request.contents:
                if content.role != "user":
                    continue
                said = content.parts[0].text
                if said == "forbidden":
                    ctx.state["blocked"] = True
                    return answer("Not that.")
                content.parts[0].text = said.replace("4111", "****")
            return None

        async def after_model(self, ctx: Any, response: Any) -> Any:
            whole = response.content and not response.partial
            return answer(response.content.parts[0].text.upper()) if whole else None

    model = ScriptedModel("One.", "Two.")
    agent = Agent("a").instruct("A").model(model).writes("said").middleware(Guard())
    talked = await talk(agent, "my card 4111", "forbidden", "again")
    assert talked.said == ["a: ONE.", "a: Not that.", "a: TWO."]
    assert [each.turns[-1].text for each in model.calls] == ["my card ****", "again"]
    assert talked.session.state == {"said": "TWO.", "blocked": True}


async def test_an_answer_to_the_opening_request_is_all_that_an_agent_says() -> None:
    class Closed:
        async def before_model(self, ctx: Any, request: Any) -> Any:
            return answer("We are closed.") if ctx.agent_name == "a" else None

    model = ScriptedModel("never")
    pipeline = Agent("a").instruct("A").model(model) >> Agent("b").instruct("B").model(
        ScriptedModel(default="But I am here.")
    )
    talked = await talk(pipeline.middleware(Closed()), "hello")
    assert talked.said[:2] == ["a: We are closed.", "b: But I am here."]
    assert not model.calls


@pytest.mark.parametrize("hook", ["before_model", "after_model", "before_tool", "wrap_tool_call"])
async def test_an_error_of_a_hook_ends_the_run_with_its_own_type(hook: str) -> None:
    class OwnError(Exception):
        pass

    class Failing:
        async def before_model(self, ctx: Any, request: Any) -> None:
            if request.contents:
                self.fail("before_model")

        async def after_model(self, ctx: Any, response: Any) -> None:
            self.fail("after_model")

        async def before_tool(self, ctx: Any, tool_name: str, args: dict[str, Any]) -> None:
            self.fail("before_tool")

        async def wrap_tool_call(self, call: ToolCall, next: NextTool) -> Any:
            self.fail("wrap_tool_call")
            return await next(call)

        def fail(self, here: str) -> None:
            if here == hook:
                raise OwnError(hook)

    model = ScriptedModel(Call("lookup", {"city": "Rome"}), "Sunny.")
    agent = Agent("a").instruct("A").model(model).tool(lookup).middleware(Failing())
    with pytest.raises(OwnError, match=hook):
        await talk(agent, "weather?")


async def test_tools_of_toolsets_with_a_prefix_have_their_hooks() -> None:
    class Weather(BaseToolset):
        async def get_tools(self, readonly_context: Any = None) -> list[Any]:
            return [FunctionTool(lookup)]

        async def close(self) -> None:
            pass

    asked = Asked()
    model = ScriptedModel(Call("w_lookup", {"city": "Rome"}), "Sunny.")
    toolset = Weather(tool_name_prefix="w")
    agent = Agent("a").instruct("A").model(model).tool(toolset).middleware(asked)
    await talk(agent, "weather?")
    assert [each for each in asked.notes if "tool" in each] == [
        *("before_tool w_lookup", "wrap_tool_call w_lookup"),
        "after_tool w_lookup sunny in Rome",
    ]


async def test_an_agent_that_is_handed_over_to_has_its_hooks() -> None:
    asked = Asked()
    model = ScriptedModel("From kid.", "Bye.")
    kid = Agent("kid").description("knows").instruct("K").model(model)
    boss = (
        Agent("boss")
        .instruct("B")
        .model(ScriptedModel(Call("transfer_to_agent", {"agent_name": "kid"})))
        .delegates(kid)
        .middleware(asked)
    )
    talked = await talk(boss, "hello", "bye")
    assert talked.said == ["kid: From kid.", "kid: Bye."]
    assert [each for each in asked.notes if each.startswith("before_model kid")][1:] == [
        "before_model kid 'bye'"
    ]


async def test_what_stands_around_a_part_is_asked_in_that_part() -> None:
    asked = Asked()
    first = Agent("a").instruct("A").model(ScriptedModel("One.", DONE))
    second = Agent("b").instruct("B").model(ScriptedModel("Two.", "Three."))
    await talk(first >> second.middleware(asked, scope="agent"), "1", "2", "3")
    assert {each.split()[1] for each in asked.notes if each.startswith("before_model")} == {"b"}


# --- whoever something comes after ---------------------------------------------------------------


def _done(name: str, *replies: Any) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(*replies)
    return Agent(name).instruct(name).model(model), model


#: Two or three agents hang up one after the other, a second each.
SLOW = ("delegate", "pipeline as delegate", "back")


@pytest.mark.parametrize(
    "shape", ["nested", *(pytest.param(each, marks=pytest.mark.full) for each in SLOW)]
)
async def test_whoever_something_comes_after_can_say_that_it_is_done(shape: str) -> None:
    hand = Call("transfer_to_agent", {"agent_name": "kid"})
    last, _ = _done("last", "Bye.")
    if shape == "nested":
        kid, model = _done("kid", "From kid.", DONE)
        first = Pipeline("inner", kid).to_agent()
    elif shape == "delegate":
        kid, model = _done("kid", "From kid.", DONE)
        boss, _ = _done("boss", hand)
        first = boss.delegates(kid.description("knows"))
    elif shape == "pipeline as delegate":
        kid, model = _done("two", "From kid.", DONE)
        one, _ = _done("one", DONE)
        boss, _ = _done("boss", hand)
        first = boss.delegates((one >> kid).named("kid"))
    else:
        back = Call("transfer_to_agent", {"agent_name": "boss"})
        boss, model = _done("boss", hand, "From kid.", DONE)
        kid, _ = _done("kid", back)
        first = boss.delegates(kid.description("knows"))
    talked = await talk(Pipeline("p", first, last), "hello", "thanks")
    assert [each.partition(": ")[2] for each in talked.said] == ["From kid.", "Bye."]
    assert "task_completed" in model.calls[-1].tools


async def test_an_end_of_ones_own_takes_the_place_of_ours() -> None:
    called: list[str] = []

    def task_completed() -> str:
        """Own."""
        called.append("own")
        return "over"

    first, model = _done("a", "Hi.", DONE)
    last, _ = _done("b", "Bye.")
    talked = await talk(first.tool(task_completed) >> last, "hello", "thanks")
    assert talked.said == ["a: Hi.", "b: Bye."]
    assert called == ["own"]
    assert model.calls[0].tools.count("task_completed") == 1


async def test_an_agent_with_a_schema_does_not_talk() -> None:
    class Ticket(BaseModel):
        topic: str

    clerk, _ = _done("clerk", "Hello.", DONE)
    ticket = Agent("ticket").instruct("Sum up.").model(ScriptedModel('{"topic": "refund"}'))
    talked = await talk(clerk >> ticket.output_schema(Ticket).writes("ticket"), "hi", "bye")
    assert talked.session.state["ticket"] == {"topic": "refund"}
    assert talked.events[-1].turn_complete is None  # no connection was opened for it


# --- connections ---------------------------------------------------------------------------------


async def test_what_hooks_write_into_a_request_is_about_that_alone() -> None:
    seen: list[int] = []

    class Says:
        async def before_model(self, ctx: Any, request: Any) -> None:
            request.append_instructions(["ONCE"])
            seen.append(request.config.system_instruction.count("ONCE"))

    await talk(_agent("a").middleware(Says()), "1", "2", "3")
    assert seen[0] == 1
    assert set(seen[1:]) <= {1, 2}  # with what the connection was opened with
    assert len(seen) == 4


async def test_a_connection_that_is_opened_again_begins_as_the_first_did() -> None:
    opened: list[int] = []

    class Dropping(ScriptedModel):
        @asynccontextmanager
        async def connect(self, llm_request: Any) -> AsyncGenerator[Any, None]:
            opened.append(str(llm_request.config.system_instruction).count("ONCE"))
            async with super().connect(llm_request) as connection:
                if len(opened) == 1:
                    connection.receive = self.dropped
                else:  # what was said was lost with the first one
                    await connection.send_content(user("hi"))
                yield connection

        async def dropped(self) -> AsyncGenerator[LlmResponse, None]:
            update = types.LiveServerSessionResumptionUpdate(new_handle="h", resumable=True)
            yield LlmResponse(live_session_resumption_update=update)
            raise ConnectionClosedError(Close(1011, "lost"), None, None)

    class Says:
        async def before_model(self, ctx: Any, request: Any) -> None:
            if not opened or len(opened) == 1:
                request.append_instructions(["ONCE"])

    model = Dropping(model="dropping", script=Script("Hello.", "Bye."))
    agent = Agent("a").instruct("A").model(model).middleware(Says())
    try:
        await talk(agent, "hi", "bye")
    except ConnectionClosedError:  # ADK 1.x does not take up a session again
        assert opened == [1]
    else:
        assert opened == [1, 1]


@pytest.mark.parametrize("where", ["receive", "before_model"])
async def test_a_cancellation_from_inside_ends_the_run(where: str) -> None:
    async def cancelled(*_: Any) -> None:
        task = asyncio.ensure_future(asyncio.sleep(10))
        task.cancel()
        await task

    class Hook:
        async def before_model(self, ctx: Any, request: Any) -> None:
            if where == "before_model" and request.contents:
                await cancelled()

    class Cancelled(ScriptedModel):
        async def generate_content_async(
            self, *args: Any, **options: Any
        ) -> AsyncGenerator[LlmResponse, None]:
            if where == "receive":
                await cancelled()
            yield answer("Hello.")

    model = Cancelled(model="cancelled", script=Script("Hello."))
    with pytest.raises(RunError, match="cancelled"):
        await talk(Agent("a").instruct("A").model(model).middleware(Hook()), "hi")


async def test_what_others_answer_in_a_tools_place_passes_our_hooks() -> None:
    asked = Asked()

    def theirs(tool: Any, args: Any, tool_context: Any) -> dict[str, Any]:
        return {"result": "theirs"}

    model = ScriptedModel(Call("lookup", {"city": "Rome"}), "Sunny.")
    agent = Agent("a").instruct("A").model(model).tool(lookup).before_tool(theirs)
    await talk(agent.middleware(asked), "weather?")
    told = [each for each in asked.notes if "tool" in each]
    assert told in (["after_tool lookup {'result': 'theirs'}"], [])  # ADK 1.25 asks no plugin


# --- what is refused -----------------------------------------------------------------------------


def _agent(name: str) -> Any:
    return Agent(name).instruct(name).model(ScriptedModel(default="Yes."))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: _agent("a") >> gate(lambda _: True), "cannot wait at a gate"),
        (lambda: FanOut("both", _agent("a"), _agent("b")), "agent 'a' cannot be live here"),
        (lambda: map_over("items", _agent("a")), "agent 'a' cannot be live here"),
    ],
)
async def test_what_cannot_be_live_is_refused(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(BuildError, match=says):
        make().to_app(BIDI)
    runner = make().to_runner()  # not known to be for live runs
    session = await runner.session_service.create_session(app_name=runner.app_name, user_id="u")
    running = runner.run_live(
        user_id="u", session_id=session.id, live_request_queue=LiveRequestQueue()
    )
    with pytest.raises(BuildError, match=says):
        await anext(running)


async def test_a_tool_that_streams_works() -> None:
    async def countdown(start: int) -> AsyncGenerator[str, None]:
        """Count down."""
        for left in range(start, 0, -1):
            yield f"{left} left"

    asked = Asked()
    model = ScriptedModel(Call("countdown", {"start": 2}), default="Counting.")
    agent = Agent("a").instruct("A").model(model).tool(FunctionTool(countdown)).middleware(asked)
    await talk(agent, "count down", "and?", "and?")
    heard = [turn.text for each in model.calls for turn in each.turns]
    assert any("2 left" in text for text in heard)
    assert any("1 left" in text for text in heard)
    about = [each.split()[0] for each in asked.notes if "tool" in each]
    assert about in ([], ["before_tool", "wrap_tool_call", "after_tool"])  # as ADK calls it


async def test_functions_side_by_side_can_be_live() -> None:
    pipeline = FanOut("both", lambda _: {"x": 1}, lambda _: {"y": 2}) >> Agent("a").instruct(
        "{x} {y}"
    ).model(ScriptedModel("Yes."))
    assert (await talk(pipeline, "hello")).said == ["a: Yes."]


@pytest.mark.parametrize("how", ["ask_async", "run", "map_async", "stream"])
async def test_a_live_run_takes_no_prompt(how: str) -> None:
    given = ["hello"] if how == "map_async" else "hello"
    made = getattr(_agent("a"), how)(given, config=BIDI)
    with pytest.raises(UnsupportedConfigError, match="run_live"):
        await (anext(made) if how == "stream" else made)


async def test_what_stands_below_is_refused_before_anybody_talks() -> None:
    class Budget:
        def refuses_live(self) -> str | None:
            return "Budget counts model calls"

        async def before_model(self, ctx: Any, request: Any) -> None: ...

    inner = Pipeline("inner", _agent("b").middleware(Budget())).to_agent()
    with pytest.raises(UsageError, match="Budget counts"):
        Pipeline("p", _agent("a"), inner).to_app(BIDI)
    gated = (_agent("b") >> gate(lambda _: True)).named("gated")
    with pytest.raises(BuildError, match="gate"):
        _agent("a").delegates(gated).to_app(BIDI)


async def test_a_middleware_says_that_it_cannot_be_live() -> None:
    class Budget:
        def refuses_live(self) -> str | None:
            return "Budget counts model calls, and a live connection is none"

        async def before_model(self, ctx: Any, request: Any) -> None: ...

    with pytest.raises(UsageError, match="Budget counts model calls"):
        await talk(_agent("a").middleware(Budget()), "hello")
    with pytest.raises(UsageError, match="Budget counts model calls"):
        await talk(_agent("b") >> _agent("a").middleware(Budget(), scope="agent"), "hello")


async def test_hooks_that_are_not_asked_are_told_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Wraps:
        async def wrap_model_call(self, call: Any, next: Any) -> Any:
            return await next(call)

    class Knows(Wraps):
        def refuses_live(self) -> str | None:
            return None

    with caplog.at_level(logging.WARNING, logger="adk_fluent"):
        for _ in range(2):
            await talk(_agent("a").middleware(Wraps(), Knows()), "hello")
    (told,) = (each.getMessage() for each in caplog.records if each.name == "adk_fluent")
    assert told == "a live run asks no wrap_model_call of Wraps: what it does there is not done"


async def test_a_pipeline_of_one_name_that_is_not_live_stays_as_it_was() -> None:
    agent = Pipeline("p", _agent("a"))
    assert await agent.ask_async("hello", config=ExecutionConfig(app_name="calls")) == "Yes."


# --- state contracts -----------------------------------------------------------------------------


class Desk:
    """A state schema: a number, and a date that is stored as text."""

    __state_fields__: ClassVar[dict[str, StateFieldRef]] = {
        "n": StateFieldRef("n", int),
        "day": StateFieldRef("day", date),
    }

    @classmethod
    def __state_encode__(cls, delta: Mapping[str, Any], where: str, /) -> dict[str, Any]:
        if isinstance(delta.get("n"), str):
            raise StateTypeError(f"n is no int, as {where} has it", key="n")
        return {k: v.isoformat() if isinstance(v, date) else v for k, v in delta.items()}


async def test_what_is_written_in_a_live_run_keeps_to_the_schema() -> None:
    def put(tool_context: ToolContext) -> str:
        """Writes."""
        tool_context.state["day"] = date(2020, 1, 2)
        return "ok"

    async def after_model(ctx: Any, response: Any) -> None:
        ctx.state["n"] = 7

    first = Agent("first", ScriptedModel(Call("put"), DONE)).tool(put)
    pipeline = Pipeline("p", first, Agent("then").mock("done")).state(Desk)
    talk = await Talk().about(pipeline.middleware(made_of(after_model=after_model)), "go")
    assert {key: talk.session.state.get(key) for key in ("day", "n")} == {
        "day": "2020-01-02",
        "n": 7,
    }


async def test_what_a_hook_writes_in_a_live_run_keeps_to_the_schema() -> None:
    async def after_model(ctx: Any, response: Any) -> None:
        ctx.state["n"] = "seven"

    pipeline = Pipeline("p", Agent("first", ScriptedModel("hello", default=DONE))).state(Desk)
    with pytest.raises(StateTypeError, match="n is no int") as caught:
        await Talk().about(pipeline.middleware(made_of(after_model=after_model)), "go")
    assert caught.value.node == "first"


async def test_a_live_run_begins_with_its_inputs() -> None:
    model = ScriptedModel("hello")
    with pytest.raises(StateKeyError, match="p begins without 'topic'"):
        await Talk().about(Pipeline("p", Agent("a", model)).contract(inputs=["topic"]), "go")
    assert not model.calls

"""Built-ins in live runs: each keeps its promise there, refuses, or is named in a warning."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.live_request_queue import LiveRequestQueue
from google.adk.agents.run_config import RunConfig
from google.genai import types
from kit import NAMES, made

from adk_fluent import Agent
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import UsageError
from adk_fluent.middleware import (
    circuit_breaker,
    pii_filter,
    rate_limiter,
    retry,
    structured_log,
    timeout,
    todo_list,
    token_budget,
    tool_approval,
    tool_call_limit,
    tool_emulator,
)
from adk_fluent.middleware._errors import CallLimitError, CircuitOpenError
from adk_fluent.protocol import hooks_of
from adk_fluent.testing import Call, ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]

LIVE = ExecutionConfig(app_name="calls", streaming_mode="bidi")
#: Those whose promise is about model calls alone, or about what is said.
REFUSED = {"model_call_limit", "pii_filter", "rate_limiter", "timeout", "token_budget"}


async def talk(middleware: Any, model: ScriptedModel, *says: str, tools: Any = ()) -> Any:
    """Let the user say one thing after the other; gives what was said, and the state."""
    agent = Agent("a").instruct("Talk.").model(model).allow("MDW003")
    for tool in tools:
        agent = agent.tool(tool)
    runner = agent.middleware(middleware).to_runner(config=LIVE)
    service = runner.session_service
    session = await service.create_session(app_name="calls", user_id="u")
    queue, left, said = LiveRequestQueue(), list(says), list[str]()
    queue.send_content(types.Content(role="user", parts=[types.Part(text=left.pop(0))]))
    running = runner.run_live(
        user_id="u",
        session_id=session.id,
        live_request_queue=queue,
        run_config=RunConfig(response_modalities=[types.Modality.TEXT]),
    )
    try:
        async with asyncio.timeout(30):
            async for event in running:
                if event.content and not event.partial:
                    said += [part.text for part in event.content.parts or () if part.text]
                if event.turn_complete and left:
                    content = types.Content(role="user", parts=[types.Part(text=left.pop(0))])
                    queue.send_content(content)
                elif event.turn_complete:
                    queue.close()
    finally:
        await running.aclose()
    found = await service.get_session(app_name="calls", user_id="u", session_id=session.id)
    assert found is not None
    return said, found.state


def results_of(model: ScriptedModel) -> list[str]:
    """What the model was told of its tools."""
    (*_, last) = model.calls
    return [turn.text for turn in last.turns if "[result" in turn.text]


@pytest.mark.parametrize("name", NAMES)
async def test_each_refuses_or_talks(name: str, caplog: pytest.LogCaptureFixture) -> None:
    middleware = made(name)
    if name in REFUSED:
        with pytest.raises(UsageError, match="live"):
            await talk(middleware, ScriptedModel("Hello."), "Hi.")
        return
    with caplog.at_level(logging.WARNING, logger="adk_fluent"):
        said, _ = await talk(middleware, ScriptedModel("Hello.", "Bye."), "Hi.", "Bye.")
    assert said == ["Hello.", "Bye."]
    if "wrap_model_call" in hooks_of(middleware):
        told = [each.getMessage() for each in caplog.records if each.name == "adk_fluent"]
        assert told == [] or "wrap_model_call" in told[0]  # once a process


@pytest.mark.parametrize(
    "make",
    [
        lambda: rate_limiter(tools={"look": 3}),
        lambda: timeout(tool=3.0, run=30.0),
    ],
)
async def test_what_is_asked_of_tools_alone_is_not_refused(make: Callable[[], Any]) -> None:
    assert (await talk(make(), ScriptedModel("Hello."), "Hi."))[0] == ["Hello."]


async def test_refusals_come_before_anything_is_compiled() -> None:
    for each in (pii_filter(), token_budget(max_tokens=10)):
        with pytest.raises(UsageError, match=each.name):
            Agent("a").instruct("A").mock("x").middleware(each).to_app(LIVE)


async def test_a_tool_is_called_again() -> None:
    tries: list[str] = []

    def look(word: str) -> str:
        """Look something up."""
        tries.append(word)
        if len(tries) < 3:
            raise ConnectionError("not now")
        return "found"

    model = ScriptedModel(Call("look", {"word": "x"}), "It is there.")
    said, _ = await talk(
        retry(max_attempts=3, backoff_base=0.001, tools=["look"]), model, "Find x.", tools=[look]
    )
    assert said == ["It is there."]
    assert len(tries) == 3


async def test_a_breaker_opens_for_a_tool() -> None:
    def look(word: str) -> str:
        """Look something up."""
        raise ConnectionError(word)

    breaker = circuit_breaker(failures=1, tools=["look"])
    with pytest.raises(ConnectionError):
        await talk(breaker, ScriptedModel(Call("look", {"word": "x"})), "Find x.", tools=[look])
    with pytest.raises(CircuitOpenError):
        await talk(breaker, ScriptedModel(Call("look", {"word": "x"})), "Find x.", tools=[look])


async def test_tool_calls_are_limited() -> None:
    calls: list[str] = []

    def look(word: str) -> str:
        """Look something up."""
        calls.append(word)
        return "found"

    model = ScriptedModel(*(Call("look", {"word": "x"}) for _ in range(3)))
    with pytest.raises(CallLimitError):
        await talk(tool_call_limit(per_run=2, on_exceeded="error"), model, "Find x.", tools=[look])
    assert len(calls) == 2


async def test_a_tool_that_needs_approval_is_not_called() -> None:
    calls: list[str] = []

    def refund(order: str) -> str:
        """Pay back."""
        calls.append(order)
        return "paid"

    model = ScriptedModel(Call("refund", {"order": "7"}), default="I may not.")
    said, _ = await talk(tool_approval(tools=["refund"]), model, "Refund 7.", tools=[refund])
    assert not calls
    assert said == ["I may not."]


async def test_a_tool_is_emulated() -> None:
    def look(word: str) -> str:
        """Look something up."""
        raise AssertionError(word)

    model = ScriptedModel(Call("look", {"word": "x"}), "It is there.")
    await talk(tool_emulator(results={"look": "emulated"}), model, "Find x.", tools=[look])
    assert any("emulated" in each for each in results_of(model))


async def test_a_list_of_things_to_do_is_kept() -> None:
    todo = {"content": "Find x.", "status": "in_progress"}
    model = ScriptedModel(Call("write_todos", {"todos": [todo]}), "Noted.")
    said, state = await talk(todo_list(), model, "Find x.")
    assert said == ["Noted."]
    assert any("Find x." in str(value) for value in state.values())


async def test_a_call_is_logged() -> None:
    log = structured_log()
    await talk(log, ScriptedModel("Hello."), "Hi.")
    assert {"before_run", "before_model", "after_model"} <= {each["event"] for each in log.log}

"""Lists of what is to do, which agents keep in state."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from kit import SSE, clerk
from pydantic import BaseModel

from adk_fluent import Agent
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import UsageError
from adk_fluent.middleware import TodoListMiddleware, todo_list, tool_approval
from adk_fluent.protocol import Middleware
from adk_fluent.testing import Call, GeminiEmulator, ScriptedModel, reply

if TYPE_CHECKING:
    from pathlib import Path

    from adk_fluent.builders import Builder

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]"),
]


class Named(BaseModel):
    name: str


def item(content: str, status: str = "pending") -> dict[str, str]:
    return {"content": content, "status": status}


def write(*items: Any) -> Call:
    return Call("write_todos", {"todos": list(items)})


def desk(*script: Any, **options: Any) -> tuple[Builder, ScriptedModel]:
    model = ScriptedModel(*script)
    made = Agent("desk", model).instruct("Help.").middleware(todo_list(**options))
    return made, model


def results(result: Any) -> list[Any]:
    return [each.result for event in result for each in event.tool_responses]


def list_in(asked: Any) -> str:
    """The list that a model was shown at the end of its request."""
    text = asked.raw.contents[-1].parts[0].text or ""
    return text if text.startswith("<todos>") else ""


FIRST = [item("look", "in_progress"), item("answer")]


# --- what every middleware here is tried in ------------------------------------------------------


async def test_happy() -> None:
    pipeline, model = desk(write(*FIRST), write(item("look", "completed"), FIRST[1]), "done")
    result = await pipeline.run("hi")
    assert result.text == "done"
    assert result.state["todos"] == [item("look", "completed"), item("answer")]
    assert results(result) == [
        {"status": "The list is kept: 0 of 2 steps are completed."},
        {"status": "The list is kept: 1 of 2 steps are completed."},
    ]
    assert model.calls[0].tools == ("write_todos",)
    assert "three or more steps" in model.calls[0].system
    assert model.calls[0].system.startswith("Help.")


async def test_streamed() -> None:
    """Over Gemini, with another tool: the list comes behind the tool's result."""
    script = (write(*FIRST), Call("search", {"word": "x"}), reply(chunks=["all ", "done"]))
    with GeminiEmulator(*script) as gemini:
        result = await clerk(gemini, todo_list()).run("hi", config=SSE)
        assert result.text == "all done"
        assert [each.content for each in result if each.is_partial][-2:] == ["all ", "done"]
        first, second, third = gemini.requests
        declared = first.declarations["write_todos"]
        assert "in_progress" in json.dumps(declared)
        assert "<todos>" not in json.dumps(first.contents)
        assert "<todos>" not in json.dumps(second.contents)
        assert third.contents[-1]["parts"] == [{"text": "<todos>\n[>] look\n[ ] answer\n</todos>"}]
        assert first.system == second.system == third.system


async def test_parallel_tools() -> None:
    """Of several lists at once the last one counts, and the model is told so."""
    two = reply(write(item("a")), Call("other", {"x": "1"}), write(item("b")))
    ran: list[str] = []

    def other(x: str) -> str:
        """Something else."""
        ran.append(x)
        return "ok"

    pipeline: Any = Agent("desk", ScriptedModel(two, "done")).tool(other)
    result = await pipeline.middleware(todo_list()).run("hi")
    assert result.state["todos"] == [item("b")]
    first, _, last = results(result)
    assert "only the last one counts" in first["error"]
    assert last == {"status": "The list is kept: 0 of 1 steps are completed."}
    assert ran == ["1"]


async def test_cancelled() -> None:
    """What was written before a run was cut off stays."""
    sessions = InMemorySessionService()
    pipeline, model = desk(write(*FIRST), reply("late", latency=60))
    kept: Any = {"session_id": "s", "session_service": sessions}
    running = asyncio.ensure_future(pipeline.run("hi", **kept))
    async with asyncio.timeout(10):
        while len(model.calls) < 2:  # noqa: ASYNC110  # models tell nobody
            await asyncio.sleep(0.005)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    again, model = desk("done")
    assert (await again.run("go on", **kept)).state["todos"] == FIRST
    assert list_in(model.calls[0])


async def test_error_after_the_first_partial() -> None:
    """The list is what it was before the answer that breaks, and the next run is shown it."""
    kept: Any = {"session_id": "s", "session_service": InMemorySessionService()}
    half = reply(chunks=["Half an ", "answer"], fault="cut")
    with GeminiEmulator(write(*FIRST), half, "done") as gemini:
        pipeline = Agent("desk", gemini.model()).middleware(todo_list())
        with pytest.raises(Exception):  # noqa: B017, PT011  # clients of different ages call it differently
            await pipeline.run("hi", config=SSE, **kept)
        assert len(gemini.requests) == 2
        result = await pipeline.run("go on", **kept)
        assert result.state["todos"] == FIRST
        last = gemini.requests[-1].contents[-1]["parts"][-1]
        assert last == {"text": "<todos>\n[>] look\n[ ] answer\n</todos>"}


async def test_concurrent() -> None:
    """Runs side by side, all with one middleware, keep a list each."""
    shared = todo_list()
    pipelines = [
        Agent("desk", ScriptedModel(write(item(f"{n}")), "done")).middleware(shared)
        for n in range(8)
    ]
    done = await asyncio.gather(*(each.run("hi") for each in pipelines))
    assert [each.state["todos"] for each in done] == [[item(f"{n}")] for n in range(8)]


# --- what is kept --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "wrong"),
    [
        ({}, "todos: field required"),
        ({"todos": "a"}, "todos: input should be a valid list"),
        ({"todos": [{"content": "a"}]}, "todos.0.status: field required"),
        ({"todos": [item("a"), item("b", "done")]}, "todos.1.status: input should be 'pending'"),
        ({"todos": [item(" ")]}, "todos.0.content: string should have at least 1 character"),
        ({"todos": [item("a")] * 3}, "3 steps are too many, at most 2 may be on it"),
    ],
)
async def test_what_is_wrong_with_a_list_is_told(args: Any, wrong: str) -> None:
    bad = Call("write_todos", args)
    pipeline, _ = desk(write(item("a")), bad, "done", max_items=2)
    result = await pipeline.run("hi")
    assert f"The list stays as it was: {wrong}" in results(result)[1]["error"]
    assert result.state["todos"] == [item("a")]


async def test_only_what_belongs_to_a_list_is_kept() -> None:
    pipeline, _ = desk(write({**item(" a "), "id": 1, "priority": "high"}), "done")
    assert (await pipeline.run("hi")).state["todos"] == [item("a")]


async def test_a_list_may_be_emptied() -> None:
    pipeline, _ = desk(write(item("a")), write(), "done")
    result = await pipeline.run("hi")
    assert result.state["todos"] == []


async def test_the_key_may_be_named() -> None:
    pipeline, _ = desk(write(item("a")), "done", key="user:plan")
    result = await pipeline.run("hi")
    assert result.state["user:plan"] == [item("a")]
    assert "todos" not in result.state


async def test_it_is_kept_in_a_store(tmp_path: Path) -> None:
    path = str(tmp_path / "s.db")

    def kept() -> Any:
        return {"session_id": "s", "session_service": SqliteSessionService(path)}

    first, _ = desk(write(*FIRST), "one")
    await first.run("hi", **kept())
    second, model = desk(write(item("look", "completed")), "two")
    result = await second.run("go on", **kept())
    assert list_in(model.calls[0]) == "<todos>\n[>] look\n[ ] answer\n</todos>"
    assert result.state["todos"] == [item("look", "completed")]  # not merged with what was there
    third, model = desk("three")
    assert (await third.run("and?", **kept())).state["todos"] == [item("look", "completed")]
    assert list_in(model.calls[0]) == ""


# --- what an agent is shown ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kept", "shown"),
    [
        (None, ""),
        ([], ""),
        ([item("a", "completed")], ""),
        ([item("a", "completed"), item("b")], "<todos>\n[x] a\n[ ] b\n</todos>"),
        ("mine", ""),
        ([{"task": "a"}], ""),
    ],
)
async def test_what_is_left_to_do_is_shown(kept: Any, shown: str) -> None:
    pipeline, model = desk("done")
    await pipeline.run("hi", state={"todos": kept})
    assert list_in(model.calls[0]) == shown
    assert len(model.calls[0].raw.contents) == (2 if shown else 1)


async def test_after_it_was_written_it_is_not_shown_again() -> None:
    pipeline, model = desk(write(*FIRST), "done")
    await pipeline.run("hi")
    assert list_in(model.calls[1]) == ""


async def test_what_is_said_about_it_may_be_changed() -> None:
    pipeline, model = desk("done", instruction="Plan first.")
    await pipeline.run("hi")
    assert model.calls[0].system.endswith("Plan first.")


@pytest.mark.parametrize(
    ("agents", "have"),
    [(True, [True, True]), (False, [False, False]), (["b"], [False, True])],
)
async def test_which_agents_have_it(agents: Any, have: list[bool]) -> None:
    one, two = ScriptedModel("A"), ScriptedModel("B")
    pipeline = Agent("a", one) >> Agent("b", two)
    await pipeline.middleware(todo_list(agents=agents)).run("hi")
    tools = [each.calls[0].tools == ("write_todos",) for each in (one, two)]
    told = ["todos" in each.calls[0].system for each in (one, two)]
    assert tools == told == have


async def test_an_agent_with_a_schema_or_such_a_tool_of_its_own_is_left_alone() -> None:
    wrote: list[str] = []

    def write_todos(text: str) -> str:
        """Write."""
        wrote.append(text)
        return "ok"

    model = ScriptedModel(Call("write_todos", {"text": "mine"}), "done")
    own = Agent("own", model).tool(write_todos)
    await own.middleware(todo_list()).run("hi")
    assert wrote == ["mine"]

    model = ScriptedModel('{"name": "x"}')
    schema = Agent("schema", model).output_schema(Named)
    await schema.middleware(todo_list()).run("hi")
    assert "write_todos" not in model.calls[0].tools
    assert "todos" not in model.calls[0].system


# --- where it stands -----------------------------------------------------------------------------


async def test_in_an_agent_that_is_a_tool() -> None:
    helper = Agent("helper", ScriptedModel(write(item("a")), "helped"))
    model = ScriptedModel(Call("helper", {"request": "hi"}), "done")
    boss = Agent("boss", model).agent_tool(helper).middleware(todo_list())
    result = await boss.run("hi")
    assert result.text == "done"
    assert result.state["todos"] == [item("a")]


async def test_beside_an_approval_it_asks_nobody_and_is_kept_while_the_run_waits() -> None:
    paid: list[str] = []

    def pay(order: str) -> str:
        """Pay."""
        paid.append(order)
        return "paid"

    two = reply(write(*FIRST), Call("pay", {"order": "A1"}))
    model = ScriptedModel(two, write(item("look", "completed")), "done")
    pipeline = Agent("desk", model).tool(pay).middleware(tool_approval()).middleware(todo_list())
    kept: Any = {"session_id": "s", "session_service": InMemorySessionService()}
    asked = await pipeline.run("hi", **kept)
    (question,) = asked.pending
    assert (question.name, asked.state["todos"]) == ("pay", FIRST)
    done = await pipeline.resume(question.answer(True), **kept)
    assert (paid, done.text) == (["A1"], "done")
    assert done.state["todos"] == [item("look", "completed")]


@pytest.mark.parametrize("together", [True, False])
async def test_a_run_that_failed_beside_it_goes_on(together: bool) -> None:
    fails = [True]

    def shaky() -> str:
        """Fail once."""
        if fails:
            fails.pop()
            raise ConnectionError("reset")
        return "ok"

    calls = [reply(write(*FIRST), Call("shaky"))] if together else [write(*FIRST), Call("shaky")]
    model = ScriptedModel(*calls, write(*FIRST), default="done")
    pipeline = Agent("desk", model).tool(shaky).middleware(todo_list())
    kept: Any = {
        "session_id": "s",
        "session_service": InMemorySessionService(),
        "config": ExecutionConfig(resumable=True),
    }
    with pytest.raises(ConnectionError):
        await pipeline.run("hi", **kept)
    done = await pipeline.resume(**kept)
    assert done.text == "done"
    assert done.state["todos"] == FIRST


# --- what it is given ----------------------------------------------------------------------------


def test_it_is_a_middleware() -> None:
    assert isinstance(TodoListMiddleware(), Middleware)
    assert "key" in (todo_list.DESC.config_schema or {})["properties"]


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"agents": "desk"}, "agents"),
        ({"key": ""}, "key"),
        ({"max_items": 0}, "max_items"),
        ({"instruction": ""}, "instruction"),
    ],
)
def test_wrong_options_are_refused_where_they_are_given(options: Any, option: str) -> None:
    with pytest.raises(UsageError, match=rf"todo_list\({option}=\.\.\.\)") as caught:
        TodoListMiddleware(**options)
    assert __file__ in str(caught.value)

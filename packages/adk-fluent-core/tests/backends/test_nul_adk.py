"""Text with NUL in state, of which SQLite keeps half: refused however it is written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.tools.tool_context import ToolContext  # noqa: TC002  # ADK reads it off our tools
from pydantic import BaseModel

from adk_fluent import Agent, FanOut, Loop, S, gate, map_over
from adk_fluent.errors import UnstorableValueError
from adk_fluent.ir import Ref, StateFieldRef
from adk_fluent.testing import Call, mock_backend

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.sessions.base_session_service import BaseSessionService

    from adk_fluent.builders import Builder

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
]

NUL = "page 1\0page 2"


class Page(BaseModel):
    text: str


def by_function(written: dict[str, Any]) -> Builder:
    def put(state: Any) -> dict[str, Any]:
        return written

    return Agent("a").mock("b") >> put


def tool() -> Builder:
    def put(tool_context: ToolContext) -> str:
        """Put."""
        tool_context.state["x"] = NUL
        return "ok"

    return Agent("a").mock([Call("put"), "done"]).tool(put)


def callback() -> Builder:
    def before(callback_context: Any) -> None:
        callback_context.state["x"] = NUL

    return Agent("a").mock("done").before_agent(before)


def delegate() -> Builder:
    inner = Agent("inner").instruct("Say.").mock(NUL).writes("x")
    return Agent("a").mock(Call("transfer_to_agent", {"agent_name": "inner"})).delegates(inner)


def agent_tool() -> Builder:
    inner = Agent("inner").instruct("Say.").mock(NUL).writes("x")
    return Agent("a").mock([Call("inner", {"request": "Go."}), "done"]).agent_tool(inner)


def several_keys() -> Builder:
    keys = (StateFieldRef("x", str), StateFieldRef("n", int))
    return Agent("a").mock(json.dumps({"x": NUL, "n": 1})).writes(*keys)


def reduced() -> Builder:
    def whole(one: str, other: str) -> str:
        return f"{one}\0{other}"

    ref = StateFieldRef("x", str, reducer=Ref.to(whole))
    first, other = Agent("one").mock("1").writes(ref), Agent("two").mock("2").writes(ref)
    return FanOut(first, other)


#: Ways to write; each writes text with NUL to a key, or a key with NUL.
WAYS: dict[str, Callable[[], Builder]] = {
    "an answer": lambda: Agent("a").mock(NUL).writes("x"),
    "an answer for the user": lambda: Agent("a").mock(NUL).writes("user:x"),
    "an answer for the app": lambda: Agent("a").mock(NUL).writes("app:x"),
    "a typed answer": lambda: Agent("a").mock(Page(text=NUL).model_dump_json()).writes("x") @ Page,
    "several keys": several_keys,
    "a function": lambda: by_function({"x": NUL}),
    "deep": lambda: by_function({"x": [{"y": NUL}]}),
    "a key in a value": lambda: by_function({"x": {NUL: 1}}),
    "a key": lambda: by_function({"x\0y": 1}),
    "user state": lambda: by_function({"user:x": NUL}),
    "app state": lambda: by_function({"app:x": NUL}),
    "a transform": lambda: Agent("a").mock("b") >> S.compute(x=lambda state: NUL),
    "a tool": tool,
    "a callback": callback,
    "a delegate": delegate,
    "an agent that is a tool": agent_tool,
    "a map": lambda: map_over("items", Agent("a").mock(NUL), output_key="x"),
    "branches": reduced,
    "a loop": lambda: Loop(
        "l", Agent("a").mock([NUL] * 2).writes("x"), until=lambda state: True, max=2
    ),
}


async def kept(service: BaseSessionService) -> dict[str, Any]:
    session = await service.get_session(app_name="adk_fluent_app", user_id="user", session_id="s")
    assert session is not None
    return dict(session.state)


@pytest.mark.parametrize("way", WAYS)
async def test_it_is_refused_where_it_is_written(way: str, sqlite: BaseSessionService) -> None:
    await refused(way, sqlite)


@pytest.mark.parametrize("way", ["an answer", "deep", "a key", "user state"])
async def test_also_in_a_database(way: str, database: BaseSessionService) -> None:
    await refused(way, database)


async def refused(way: str, store: BaseSessionService) -> None:
    """See that a write is refused, what was written before is kept, and the session goes on."""
    pipeline = Agent("first").mock("one").writes("kept") >> WAYS[way]()
    options: dict[str, Any] = {"session_service": store, "session_id": "s"}
    with pytest.raises(UnstorableValueError) as caught:
        await pipeline.run("hi", state={"items": [1]}, **options)
    error = caught.value
    assert "has a NUL character at position" in str(error.found)
    assert error.help is not None
    assert error.help.startswith('take it out: text.replace("\\0", "")')
    assert error.node is not None
    state = await kept(store)
    assert "\0" not in json.dumps(state).encode().decode("unicode_escape")
    assert (state["items"], state["kept"]) == ([1], "one")
    later = await Agent("later").mock("still here").writes("later").run("hi", **options)
    assert later.text == "still here"


async def test_a_session_does_not_begin_with_it(store: BaseSessionService) -> None:
    for state in ({"x": NUL}, {"user:x": [NUL]}, {"app:x": {"a": NUL}}, {"a\0b": 1}):
        with pytest.raises(UnstorableValueError, match="state= writes what sessions"):
            await Agent("a").mock("b").run("hi", state=state, session_service=store)


@pytest.mark.parametrize("answer", [NUL, {"approved": True, "note": NUL}])
async def test_a_question_is_not_answered_with_it(answer: Any, store: BaseSessionService) -> None:
    """It stays open, and another answer is taken."""
    options: dict[str, Any] = {"session_service": store, "session_id": "s"}
    schema = str if isinstance(answer, str) else None
    asked = gate(message="ok?", response_schema=schema, name="ok")
    pipeline = Agent("a").mock("b") >> asked >> Agent("c").mock("done")
    first = await pipeline.run("hi", **options)
    (question,) = first.pending
    with pytest.raises(UnstorableValueError, match="NUL character"):
        await pipeline.resume(question.answer(answer), **options)
    assert [each.id for each in await pipeline.pending(**options)] == [question.id]
    fine = "Ann" if isinstance(answer, str) else True
    done = await pipeline.resume(question.answer(fine), **options)
    assert done.pending == []


async def test_what_is_said_is_kept_as_it_is(service: BaseSessionService) -> None:
    """Events hold it: the messages of users, answers of agents, and what tools give."""

    def read() -> str:
        """Read."""
        return NUL

    options: dict[str, Any] = {"session_service": service, "session_id": "s"}
    agent = Agent("a").mock([Call("read"), NUL]).tool(read)
    result = await agent.run(NUL, **options)
    assert result.text == NUL
    session = await service.get_session(app_name="adk_fluent_app", user_id="user", session_id="s")
    assert session is not None
    said = [part for event in session.events for part in (event.content.parts or ())]  # type: ignore[union-attr]  # pyright: ignore[reportOptionalMemberAccess]
    assert [part.text for part in said if part.text] == [NUL, NUL]
    assert [part.function_response.response for part in said if part.function_response] == [
        {"result": NUL}
    ]


@pytest.mark.parametrize("way", ["an answer", "a function", "a key"])
async def test_memory_takes_it(way: str, memory: BaseSessionService) -> None:
    here = await WAYS[way]().run("hi", session_service=memory)
    assert "\0" in repr(here.state).encode().decode("unicode_escape")
    backend = mock_backend({"a": NUL})
    there = await WAYS[way]().run("hi", backend=backend)
    assert there.state == here.state

"""State that does not serialise: refused at the writer, on every session service that stores it."""

from __future__ import annotations

import threading
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from math import nan
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.auth.auth_credential import AuthCredential, AuthCredentialTypes
from google.adk.runners import Runner
from google.adk.tools.tool_context import ToolContext  # noqa: TC002  # ADK reads it off our tools
from google.genai import types
from pydantic import BaseModel

from adk_fluent import Agent, S, map_over, race
from adk_fluent.backends.adk._session._storing import Keeping
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import SessionStoreError, UnstorableValueError, UsageError
from adk_fluent.testing import Call, reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.sessions.base_session_service import BaseSessionService

    from adk_fluent.builders import Builder

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
]

NAME: dict[str, Any] = {"app_name": "adk_fluent_app", "user_id": "user", "session_id": "s"}


class Order(BaseModel):
    number: int = 1


@dataclass
class Item:
    price: float = 1.5


def looped() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


VALUES: dict[str, tuple[Any, str, str]] = {
    "set": ({1}, "is a set", "sorted(...)"),
    "datetime": (datetime(2026, 1, 1, tzinfo=UTC), "is a datetime", "isoformat()"),
    "model": (Order(), "is an Order", 'model_dump(mode="json")'),
    "dataclass": (Item(), "is an Item", "dataclasses.asdict"),
    "lambda": (lambda: 1, "is a function", ".inject(...)"),
    "nan": (nan, "is nan", "write None"),
    "infinity": (-float("inf"), "is -inf", "write None"),
    "nul": ("page 1\0page 2", "has a NUL character at position 6", 'replace("\\0", "")'),
    "surrogate": ("a\udc80", "has half a character", "repair it"),
    "bytes": (b"\xff", "is a bytes", "base64"),
    "int keys": ({1: 2}, "has the key 1, an int", "make the keys str"),
    "cycle": (looped(), "contains itself", "a copy"),
    "too deep to write": (nested(300), "lies below 128", "keep it flat"),
    "too deep to read": (nested(200), "lies below 128", "keep it flat"),
    "huge int": (10**5000, "is an int of more than", "hex"),
    "object": (object(), "is an object", ".inject(...)"),
}


# --- the writers ---------------------------------------------------------------------------------


def by_function(value: Any) -> Builder:
    def put(state: Any) -> dict[str, Any]:
        return {"fine": 1, "x": {"in": [value]}}

    return Agent("unused").mock("u") >> put


def by_async_function(value: Any) -> Builder:
    async def put(state: Any) -> dict[str, Any]:
        return {"x": {"in": [value]}}

    return Agent("unused").mock("u") >> put


def by_tool(value: Any) -> Builder:
    def put(tool_context: ToolContext) -> str:
        """Put."""
        tool_context.state["x"] = {"in": [value]}
        return "ok"

    return Agent("put").mock([Call("put"), "done"] * 2).tool(put)


def by_callback(value: Any) -> Builder:
    def before(callback_context: Any) -> None:
        callback_context.state["x"] = {"in": [value]}

    return Agent("put").mock("done").before_agent(before)


def by_map(value: Any) -> Builder:
    def put(state: Any) -> dict[str, Any]:
        return {"x": {"in": [value]}}

    return map_over("items", put, result_key="x", output_key="all")


def by_transform(value: Any) -> Builder:
    return Agent("unused").mock("u") >> S.compute(x=lambda state: {"in": [value]})


WRITERS: dict[str, Callable[[Any], Builder]] = {
    each.__name__: each
    for each in (by_function, by_async_function, by_tool, by_callback, by_map, by_transform)
}


async def refused(pipeline: Builder, service: BaseSessionService, **options: Any) -> Any:
    with pytest.raises(UnstorableValueError) as caught:
        await pipeline.run("hi", session_service=service, session_id="s", **options)
    return caught.value


async def session_of(service: BaseSessionService) -> Any:
    session = await service.get_session(**NAME)
    assert session is not None
    return session


def first() -> Agent:
    return Agent("first").mock("one").writes("kept")


async def check_kept(service: BaseSessionService) -> None:
    """What was committed is there, what was refused is not, and the session goes on."""
    session = await session_of(service)
    assert session.state["kept"] == "one"
    assert not {"x", "fine", "all"} & session.state.keys()
    again = Agent("again").mock("still here").writes("later")
    result = await again.run("and now?", session_service=service, session_id="s")
    assert (result.text, result.state["kept"]) == ("still here", "one")
    assert (await session_of(service)).state["later"] == "still here"


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("writer", WRITERS)
async def test_a_writer_is_told_what_cannot_be_kept(
    writer: str, name: str, sqlite: BaseSessionService
) -> None:
    value, says, help = VALUES[name]
    pipeline = first() >> WRITERS[writer](value)
    error = await refused(pipeline, sqlite, state={"items": [1]})
    put = {"by_transform": "compute"}.get(writer, "put")
    who = "tool 'put'" if writer == "by_tool" else put
    assert error.what == f"{who} writes what sessions of SqliteSessionService cannot keep"
    assert error.node == put
    assert "test_bad_input_state.py:" in str(error.location)
    assert error.key == "x"
    assert error.path.startswith("state['x']['in'][0]")
    assert error.found.startswith("state['x']['in'][0]")
    assert says in error.found
    assert help in error.help
    assert "for this run only: write to 'temp:x'" in error.help
    assert len(str(error)) < 600
    await check_kept(sqlite)


@pytest.mark.parametrize("writer", WRITERS)
async def test_also_in_a_database(writer: str, database: BaseSessionService) -> None:
    error = await refused(first() >> WRITERS[writer]({1}), database, state={"items": [1]})
    assert "sessions of DatabaseSessionService" in error.what
    await check_kept(database)


@pytest.mark.parametrize("name", VALUES)
async def test_a_session_begins_with_nothing_that_cannot_be_kept(
    name: str, sqlite: BaseSessionService
) -> None:
    value, says, _ = VALUES[name]
    error = await refused(first(), sqlite, state={"fine": 1, "user:x": value})
    assert error.what == "state= writes what sessions of SqliteSessionService cannot keep"
    assert error.found.startswith("state['user:x']")
    assert says in error.found
    assert await sqlite.get_session(**NAME) is None
    result = await first().run("hi", session_service=sqlite, session_id="s")
    assert result.state == {"kept": "one"}


@pytest.mark.parametrize("mode", ["none", "sse"])
async def test_by_a_runner_of_ones_own(mode: Any, sqlite: BaseSessionService) -> None:
    app = (first() >> by_tool({1})).to_app(ExecutionConfig(streaming_mode=mode))
    runner = Runner(app=app, session_service=sqlite)
    await sqlite.create_session(**NAME)
    message = types.Content(role="user", parts=[types.Part(text="hi")])
    running = runner.run_async(user_id="user", session_id="s", new_message=message)
    with pytest.raises(UnstorableValueError, match="tool 'put' writes"):
        async with aclosing(running) as events:
            _ = [event async for event in events]
    await check_kept(sqlite)


async def test_by_ask_and_stream_and_map(sqlite: BaseSessionService) -> None:
    pipeline, options = first() >> by_function({1}), {"session_service": sqlite}
    with pytest.raises(UnstorableValueError):
        await pipeline.ask_async("hi", **options)  # pyright: ignore[reportArgumentType]  # a dict
    with pytest.raises(UnstorableValueError) as caught:
        await pipeline.map_async(["hi"], session_service=sqlite)
    assert "in message 0 of map(...)" in caught.value.__notes__
    with pytest.raises(UnstorableValueError):
        async with aclosing(pipeline.stream("hi", session_service=sqlite)) as events:
            _ = [event async for event in events]


def as_fallback(attempt: Builder) -> Builder:
    return attempt // Agent("backup").mock("sorry").writes("x")


def as_race(attempt: Builder) -> Builder:
    return race(attempt, Agent("backup").mock(reply("sorry", latency=0.05)).writes("x"))


@pytest.mark.parametrize("writer", [each for each in WRITERS if each != "by_map"])
@pytest.mark.parametrize("arranged", [as_fallback, as_race])
async def test_another_attempt_goes_on(
    arranged: Any, writer: str, sqlite: BaseSessionService
) -> None:
    pipeline = first() >> arranged(WRITERS[writer]({1}))
    result = await pipeline.run("hi", session_service=sqlite, session_id="s")
    assert (result.text, result.state) == ("sorry", {"kept": "one", "x": "sorry"})
    assert (await session_of(sqlite)).state == {"kept": "one", "x": "sorry"}


# --- what is not refused -------------------------------------------------------------------------


@pytest.mark.parametrize("name", [each for each in VALUES if each != "cycle"])
@pytest.mark.parametrize("writer", WRITERS)
async def test_in_memory_adk_takes_any_object(
    writer: str, name: str, memory: BaseSessionService
) -> None:
    value, *_ = VALUES[name]
    options: dict[str, Any] = {"session_service": memory, "session_id": "s"}
    pipeline = WRITERS[writer](value) >> Agent("after").mock("bye")
    assert (await pipeline.run("hi", state={"items": [1]}, **options)).text == "bye"
    assert (await pipeline.run("again", **options)).text == "bye"


async def test_temporary_state_takes_any_object(service: BaseSessionService) -> None:
    lock = threading.Lock()
    seen: list[Any] = []

    def put(state: Any) -> dict[str, Any]:
        return {"temp:lock": lock}

    def look(state: Any) -> None:
        seen.append(state["temp:lock"])

    options: dict[str, Any] = {"session_service": service, "session_id": "s"}
    for _ in range(2):
        await (Agent("a").mock("x") >> put >> look).run("hi", **options)
    assert seen == [lock, lock]


async def test_what_json_makes_of_it_comes_back(service: BaseSessionService) -> None:
    def put(state: Any) -> dict[str, Any]:
        return {"x": {"deep": nested(100), "big": 2**70, "text": "💥"}}

    options: dict[str, Any] = {"session_service": service, "session_id": "s"}
    await (Agent("a").mock("x") >> put).run("hi", **options)
    session = await session_of(service)
    assert session.state["x"] == put(None)["x"]
    assert session.events[-1].actions.state_delta["x"] == put(None)["x"]


def test_what_is_adks_own_is_left_to_its_service(sqlite: BaseSessionService) -> None:
    credential = AuthCredential(auth_type=AuthCredentialTypes.API_KEY, api_key="k")
    Keeping(sqlite).check_state({"credential": credential}, "a")
    with pytest.raises(UnstorableValueError, match="a writes what sessions of SqliteSession"):
        Keeping(sqlite).check_state({"credential": Order()}, "a")


# --- keys, and objects that cannot be copied -----------------------------------------------------


async def test_a_key_that_is_no_str(service: BaseSessionService) -> None:
    def put(tool_context: ToolContext) -> str:
        """Put."""
        key: Any = 5
        tool_context.state[key] = 1
        return "ok"

    pipeline = first() >> Agent("put").mock([Call("put"), "done"]).tool(put)
    with pytest.raises(UsageError, match="tool 'put' writes to a state key that is no str") as e:
        await pipeline.run("hi", session_service=service, session_id="s")
    assert "node 'put' at " in str(e.value)
    assert e.value.found == "key 5 of type int"
    await check_kept(service)


async def test_a_session_in_memory_that_cannot_be_copied_any_more(
    memory: BaseSessionService,
) -> None:
    def put(state: Any) -> dict[str, Any]:
        return {"lock": threading.Lock(), "fine": {1}}

    options: dict[str, Any] = {"session_service": memory, "session_id": "s"}
    pipeline = first() >> put
    await pipeline.run("hi", **options)
    with pytest.raises(SessionStoreError, match="session 's' cannot be read any more") as caught:
        await pipeline.run("again", **options)
    assert "state['lock']" in (caught.value.found or "")
    assert "'temp:lock'" in (caught.value.help or "")
    assert isinstance(caught.value.__cause__, TypeError)


async def test_a_session_in_memory_begins_with_nothing_that_cannot_be_copied(
    memory: BaseSessionService,
) -> None:
    error = await refused(first(), memory, state={"fine": {1}, "lock": threading.Lock()})
    assert (error.key, error.found) == ("lock", "state['lock'] is a lock")
    assert await memory.get_session(**NAME) is None


# --- what goes into events -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (threading.Lock(), "is a lock"),
        ("a\udc80", "has half a character"),
        (nested(200), "lies below 128"),
        (looped(), "contains itself"),
    ],
    ids=["object", "surrogate", "deep", "cycle"],
)
async def test_a_result_of_a_tool_that_nobody_can_be_told(
    value: Any, says: str, service: BaseSessionService
) -> None:
    def give() -> dict[str, Any]:
        """Give."""
        return {"a": value}

    pipeline = first() >> Agent("asks").mock([Call("give"), "done"]).tool(give)
    with pytest.raises((ValueError, TypeError)) as caught:
        await pipeline.run("hi", session_service=service, session_id="s")
    error = caught.value
    if isinstance(error, UnstorableValueError):  # ADK 1.x copies and dumps it before
        assert error.what.startswith("tool 'give' returned what cannot be told to a model")
        assert error.path.startswith("give(...)['a']")
        assert says in str(error.found)
        assert "node 'asks' at " in str(error)
    else:
        assert error.__notes__[-1].startswith("in node 'asks' at ")
    await check_kept(service)


@pytest.mark.parametrize(
    ("answer", "where"),
    [
        ("a\udc80", "the text"),
        (Call("give", {"a": nested(200)}), "give(...)['a']"),
    ],
    ids=["text", "call"],
)
async def test_an_answer_of_a_model_that_cannot_be_kept(
    answer: Any, where: str, sqlite: BaseSessionService
) -> None:
    def give(a: list[Any]) -> str:
        """Give."""
        return "ok"

    pipeline = first() >> Agent("asks").mock(answer).tool(give)
    error = await refused(pipeline, sqlite)
    assert error.what.startswith("the model of asks answered what sessions of SqliteSession")
    assert error.path.startswith(where)
    assert error.node == "asks"
    await check_kept(sqlite)

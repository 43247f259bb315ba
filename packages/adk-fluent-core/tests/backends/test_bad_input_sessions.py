"""Messages, ids and stores that are no good: refused in words; what was there before stays."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from google.genai import types

from adk_fluent import Agent
from adk_fluent.backends.adk import ADKBackend
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import SessionError, SessionStoreError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from google.adk.sessions.base_session_service import BaseSessionService

pytestmark = pytest.mark.adk

APP, USER = "adk_fluent_app", "user"


def clerk(says: str = "ok") -> Agent:
    return Agent("clerk").mock(says).writes("said")


async def state_of(service: BaseSessionService, session_id: str = "s", **name: str) -> Any:
    app, user = name.get("app_name", APP), name.get("user_id", USER)
    session = await service.get_session(app_name=app, user_id=user, session_id=session_id)
    return None if session is None else session.state


async def sessions_of(service: BaseSessionService) -> list[str]:
    listed = await service.list_sessions(app_name=APP, user_id=USER)
    return [session.id for session in listed.sessions]


# --- messages ------------------------------------------------------------------------------------


def looped() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def blob(data: bytes | None, mime_type: str | None) -> types.Part:
    return types.Part(inline_data=types.Blob(data=data, mime_type=mime_type))


MESSAGES: dict[str, tuple[Any, str, str]] = {
    "bytes": (b"x", "bytes alone do not say what they are", "Part.from_bytes"),
    "int": (3, "cannot use int as a message", "give a text"),
    "None": (None, "cannot use NoneType as a message", "give a text"),
    "dict": ({"text": "x"}, "cannot use dict as a message", "give a text"),
    "an int in a list": (["x", 3], "cannot use int as a message", "give a text"),
    "empty": ("", "the message is empty", "give a text"),
    "white space": (" \n\t", "the message is empty", "give a text"),
    "empty texts": (["", " "], "the message is empty", "give a text"),
    "empty list": ([], "the message is empty", "give a text"),
    "no parts": (types.Content(role="user"), "the message is empty", "at least one part"),
    "turns": ([types.Content(parts=[types.Part(text="x")])], "one turn", "the parts of it"),
    "lists in lists": ([["a", ["b"]]], "one flat list", "one after the other"),
    "a list in itself": (looped(), "one flat list", "one after the other"),
    "surrogate": ("a\udc80b", "half a character ('\\udc80') at position 1", "repair it"),
    "surrogate part": (
        ["a", types.Part(text="\ud83d")],
        "part 1 of the message has half",
        "repair",
    ),
    "empty part": (["a", types.Part()], "part 1 of the message is an empty Part", "give a text"),
    "data of no type": (blob(b"x", None), "has data of no type", "mime_type='image/png'"),
    "data of empty type": (blob(b"x", ""), "has data of no type", "mime_type='image/png'"),
    "empty data": (blob(b"", "image/png"), "has data that is empty", "Part.from_bytes"),
    "a call": (
        types.Part(function_call=types.FunctionCall(name="pay", args={})),
        "is a call of a function, which only a model can say",
        "give the text",
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
async def test_a_message_that_is_none(name: str, sqlite: BaseSessionService) -> None:
    message, says, help = MESSAGES[name]
    await clerk("first").run("hi", session_service=sqlite, session_id="s")
    with pytest.raises(UsageError) as caught:
        await clerk().run(message, session_service=sqlite, session_id="s")
    assert says in str(caught.value)
    assert help in (caught.value.help or "")
    assert "test_bad_input_sessions.py:" in str(caught.value)
    with pytest.raises(UsageError):
        await anext(clerk().stream(message, session_service=sqlite, session_id="s"))
    with pytest.raises(UsageError) as caught:
        await clerk().map_async(["fine", message], concurrency=1, session_service=sqlite)
    assert "in message 1 of map(...)" in caught.value.__notes__
    assert await state_of(sqlite) == {"said": "first"}


@pytest.mark.parametrize(
    "message",
    [
        "x" * 2_000_000,
        "a\0b 💥",
        [["a", "b"], types.Part(text="c")],
        types.Part.from_bytes(data=b"x", mime_type="application/x-unknown"),
        types.Part.from_uri(file_uri="gs://a/b", mime_type="image/png"),
        types.Content(role="model", parts=[types.Part(text="x")]),
    ],
    ids=["huge", "odd characters", "a list in a list", "unknown type", "file", "role"],
)
async def test_a_message_that_is_fine(message: Any, service: BaseSessionService) -> None:
    result = await clerk().run(message, session_service=service, session_id="s")
    assert result.text == "ok"
    again = await clerk("again").run(message, session_service=service, session_id="s")
    assert again.text == "again"


# --- ids -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["session_id", "user_id"])
@pytest.mark.parametrize(
    ("id", "found"),
    [
        ("", "''|empty"),
        (5, "5"),
        (b"s", "bytes"),
        ("  ", "'  ', which has white space"),
        (" s", "' s', which has white space"),
        ("s\n", r"'s\\n', which has white space"),
        ("s\udc80", r"'s\\udc80', which has half a character"),
    ],
)
async def test_an_id_that_a_service_would_not_keep(
    id: Any, found: str, name: Any, service: BaseSessionService
) -> None:
    options: dict[str, Any] = {"session_service": service, name: id}
    with pytest.raises(UsageError, match=f"{name}= takes a text") as caught:
        await clerk().run("hi", **options)
    assert re.search(found, caught.value.found or "")
    assert "test_bad_input_sessions.py:" in str(caught.value)
    assert await sessions_of(service) == []


@pytest.mark.parametrize("name", ["session_id", "user_id"])
@pytest.mark.parametrize(
    "id",
    ["a/../../b", "'; DROP TABLE sessions; --", "x" * 10_000, "a\0b", "💥é", "a\nb", "%s {0}", "."],
)
async def test_an_id_that_only_looks_bad(id: str, name: Any, service: BaseSessionService) -> None:
    options: dict[str, Any] = {"session_service": service, "session_id": "s", name: id}
    first = await clerk("first").run("hi", **options)
    assert getattr(first, name) == id
    second = await Agent("again").mock("x").run("hi", **options)
    assert second.state == {"said": "first"}


async def test_the_session_of_another_user_or_app_is_neither_read_nor_changed(
    service: BaseSessionService,
) -> None:
    options: dict[str, Any] = {"session_service": service, "session_id": "s"}
    await clerk("ann's").run("hi", user_id="ann", state={"secret": 1}, **options)
    bob = await clerk("bob's").run("hi", user_id="bob", **options)
    shop = ExecutionConfig(app_name="shop")
    other = await clerk("shop's").run("hi", user_id="ann", config=shop, **options)
    assert bob.state == {"said": "bob's"}
    assert (other.state, other.app_name) == ({"said": "shop's"}, "shop")
    assert await state_of(service, user_id="ann") == {"secret": 1, "said": "ann's"}


async def test_what_needs_a_session_says_which_one_is_not_there(
    service: BaseSessionService,
) -> None:
    desk = clerk()
    result = await desk.run("hi", session_service=service, session_id="s", user_id="ann")
    before = {"session_service": service, "before_invocation_id": result.invocation_id}
    for name in ({"session_id": "other", "user_id": "ann"}, {"session_id": "s", "user_id": "bob"}):
        with pytest.raises(SessionError) as caught:
            await desk.rewind(**name, **before)  # pyright: ignore[reportArgumentType]  # dicts
        for each in name.values():
            assert repr(each) in str(caught.value)
        assert repr(APP) in str(caught.value)
        assert "use the ids that RunResult carries" in (caught.value.help or "")
    assert await state_of(service, user_id="ann") == {"said": "ok"}


async def test_a_session_that_is_removed_while_it_runs(store: BaseSessionService) -> None:
    async def remove(state: Any) -> None:
        await store.delete_session(app_name=APP, user_id=USER, session_id="s")

    desk = clerk() >> remove >> Agent("after").mock("bye")
    with pytest.raises(SessionError, match="session 's' was removed while a run was") as caught:
        await desk.run("hi", session_service=store, session_id="s")
    assert "while the session service stored what step 'after' put out" in caught.value.__notes__
    assert isinstance(caught.value.__cause__, ValueError)
    assert (await clerk().run("hi", session_service=store, session_id="s")).text == "ok"


# --- the store -----------------------------------------------------------------------------------


async def refusal(service: BaseSessionService) -> SessionStoreError:
    with pytest.raises(SessionStoreError, match="the sessions cannot be read or written") as caught:
        await clerk("later").run("private words", session_service=service, session_id="s")
    assert "SELECT" not in str(caught.value)  # nor what was to be written
    assert "private words" not in str(caught.value)
    return caught.value


def contents(path: Path) -> bytes:
    return path.read_bytes()


def replace(path: Path, data: bytes) -> None:
    path.write_bytes(data)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let SQLite wait for no lock."""
    connect = sqlite3.connect

    def at_once(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        return connect(*args, **{**kwargs, "timeout": 0})

    monkeypatch.setattr(sqlite3, "connect", at_once)


@pytest.mark.usefixtures("impatient")
async def test_a_file_that_another_program_has_locked(sqlite: Any, path: Path) -> None:
    await clerk("first").run("hi", session_service=sqlite, session_id="s")
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        error = await refusal(sqlite)
    assert (error.found, "another program" in (error.help or "")) == (
        "OperationalError: database is locked",
        True,
    )
    assert await state_of(sqlite) == {"said": "first"}
    await clerk("second").run("hi", session_service=sqlite, session_id="s")
    assert await state_of(sqlite) == {"said": "second"}


async def test_a_file_that_may_not_be_written(store: Any, path: Path) -> None:
    await clerk("first").run("hi", session_service=store, session_id="s")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(
            "CREATE TRIGGER no BEFORE INSERT ON events "
            "BEGIN SELECT RAISE(ABORT, 'attempt to write a readonly database'); END"
        )
    error = await refusal(store)
    assert "readonly" in (error.found or "")
    assert "it may not be written, or was moved or removed" in (error.help or "")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DROP TRIGGER no")
    assert await state_of(store) == {"said": "first"}
    await clerk("second").run("hi", session_service=store, session_id="s")


async def test_a_file_that_is_damaged(sqlite: Any, path: Path) -> None:
    await clerk("first").run("hi", session_service=sqlite, session_id="s")
    good = contents(path)
    replace(path, b"no database " * 1000)
    error = await refusal(sqlite)
    assert error.found == "DatabaseError: file is not a database"
    assert contents(path) == b"no database " * 1000  # nothing was done to it
    replace(path, good)
    assert await state_of(sqlite) == {"said": "first"}


async def test_a_file_whose_tables_are_gone(store: Any, path: Path) -> None:
    await clerk("first").run("hi", session_service=store, session_id="s")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("ALTER TABLE events RENAME COLUMN session_id TO other")
    error = await refusal(store)
    assert "no such column" in (error.found or "")
    assert "is it a session database of this version of ADK" in (error.help or "")


async def test_an_event_that_cannot_be_read(sqlite: Any, path: Path) -> None:
    await clerk("first").run("hi", session_service=sqlite, session_id="s")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE events SET event_data = '{\"author\": 5}'")
    error = await refusal(sqlite)
    assert (error.found or "").startswith("ValidationError: ")


async def test_a_backend_goes_on_after_every_refusal(memory: BaseSessionService) -> None:
    backend = ADKBackend(session_service=memory)
    compiled = backend.compile(clerk().to_ir())
    for options in ({"session_id": " "}, {"state": 5}, {"user_id": "\udc80"}):
        with pytest.raises(UsageError):
            await backend.run(compiled, "hi", **options)  # pyright: ignore[reportArgumentType]
    assert (await backend.run(compiled, "hi", session_id="s")).text == "ok"
    assert await sessions_of(memory) == ["s"]

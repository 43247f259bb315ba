"""Sessions and artifacts in the engine's database: what is kept, and what is refused."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types
from sqlalchemy import text

from adk_fluent import Agent, gate
from adk_fluent.distributed import DbosEngine, DistributedRunError, SegmentCall
from adk_fluent.distributed._artifacts_adk import RunArtifacts
from adk_fluent.distributed._database import Address, Database
from adk_fluent.distributed._station_adk import Station, stores
from adk_fluent.distributed._store_adk import RunSessions
from adk_fluent.errors import SessionStoreError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from google.adk.agents.callback_context import CallbackContext
    from google.adk.models.llm_request import LlmRequest
    from google.adk.sessions.session import Session

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x
]

ONE: dict[str, Any] = {"app_name": "a", "user_id": "u", "session_id": "s"}


@pytest.fixture
def database(any_url: str) -> Iterator[Database]:
    made = Database(Address.of(any_url))
    yield made
    made.close()


def writing(delta: dict[str, Any], said: str = "x", id: str = "") -> Event:
    content = types.Content(role="model", parts=[types.Part(text=said)])
    return Event(
        id=id, author="a", content=content, actions=EventActions(state_delta=delta), timestamp=1.0
    )


async def test_what_is_written_is_read_elsewhere(database: Database) -> None:
    here, there = RunSessions(database), RunSessions(database)
    start = {"n": 2**60, "user:name": "Bo", "app:at": [1], "temp:t": 1}
    session = await here.create_session(**ONE, state=start)
    with pytest.raises(AlreadyExistsError):
        await there.create_session(**ONE)
    await here.append_event(session, writing({"n": {"a": 1, "b": "ü\x00"}, "temp:t": 2}))
    await here.append_event(session, writing({"n": {"a": 2}, "user:name": "Al"}))
    for each in (here, there):
        read = await each.get_session(**ONE)
        assert read is not None
        assert read.state == {"n": {"a": 2}, "user:name": "Al", "app:at": [1]}
        assert [event.actions.state_delta for event in read.events] == [
            {"n": {"a": 1, "b": "ü\x00"}},
            {"n": {"a": 2}, "user:name": "Al"},
        ]
        last = await each.get_session(**ONE, config=GetSessionConfig(num_recent_events=1))
        assert last is not None
        assert [event.id for event in last.events] == [read.events[1].id]
    assert await there.get_user_state(app_name="a", user_id="u") == {"name": "Al"}
    other = await there.create_session(app_name="a", user_id="u", session_id="t")
    assert other.state == {"user:name": "Al", "app:at": [1]}
    listed = (await there.list_sessions(app_name="a", user_id="u")).sessions
    assert [each.id for each in listed] == ["s", "t"]
    await there.delete_session(**ONE)
    assert await here.get_session(**ONE) is None
    with pytest.raises(ValueError, match="Session s not found"):
        await here.append_event(session, writing({}))


async def test_of_two_that_write_one_does(database: Database) -> None:
    here, there = RunSessions(database), RunSessions(database)
    mine = await here.create_session(**ONE)
    its = await there.get_session(**ONE)
    assert its is not None
    writes = (
        here.append_event(mine, writing({"by": 1})),
        there.append_event(its, writing({"by": 2})),
    )
    done = await asyncio.gather(*writes, return_exceptions=True)
    lost = [type(each).__name__ for each in done if isinstance(each, Exception)]
    assert lost == ["StaleSessionError"]
    read = await here.get_session(**ONE)
    assert read is not None
    assert len(read.events) == 1


async def test_a_segment_reads_its_session_once(database: Database) -> None:
    here, there = RunSessions(database), RunSessions(database)
    session = await here.create_session(**ONE)
    other = await there.get_session(**ONE)
    assert other is not None
    async with here.at_work("a", "u", "s"):
        await there.append_event(other, writing({"by": "other"}))
        known = await here.get_session(**ONE)
        assert known is not None
        assert known.events == []
        with pytest.raises(ValueError, match="was written to since it was read"):
            await here.append_event(session, writing({"by": "me"}))  # and so it is read again
        known = await here.get_session(**ONE)
        assert known is not None
        assert known.state == {"by": "other"}


async def test_large_bytes_are_kept_once(postgres: str) -> None:
    seen: list[bytes] = []

    def look(callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        for content in llm_request.contents:
            blobs = [each.inline_data for each in content.parts or ()]
            seen.extend(each.data or b"" for each in blobs if each is not None)

    picture = bytes(range(256)) * 32_000  # 8 MB
    small = b"thumbnail"
    message = [
        "What is this?",
        types.Part.from_bytes(data=picture, mime_type="image/png"),
        types.Part.from_bytes(data=small, mime_type="image/png"),
    ]
    looks = Agent("looks").mock("A cat.").before_model(look)
    again = Agent("again").mock("Still a cat.").before_model(look).execution_boundary()
    async with DbosEngine(postgres) as engine:
        result = await engine.run(looks >> again, message, run_id="r")
    assert result.text == "Still a cat."
    assert seen == [picture, small] * 2
    database = Database(Address.of(postgres))
    with database.begin() as db:
        rows = db.execute(text("select name, length(data) from adk_fluent_artifacts")).all()
        assert [length for _, length in rows] == [len(picture)]
        events = db.execute(text("select sum(length(data)) from adk_fluent_events")).scalar_one()
        assert events < 20_000
        db.execute(text("delete from adk_fluent_artifacts"))
    ids: Any = {"app_name": result.app_name, "user_id": "user", "session_id": "r"}
    with pytest.raises(SessionStoreError, match="a large part of session 'r' is not there"):
        await RunSessions(database).get_session(**ids)
    assert await RunArtifacts(database).list_artifact_keys(**ids) == []
    database.close()


async def test_artifacts(database: Database) -> None:
    kept = RunArtifacts(database)
    blob = types.Part.from_bytes(data=b"\x00\xff", mime_type="image/png")
    assert await kept.save_artifact(**ONE, filename="f", artifact=types.Part(text="one")) == 0
    told = {"by": "me"}
    assert await kept.save_artifact(**ONE, filename="f", artifact=blob, custom_metadata=told) == 1
    assert await kept.save_artifact(**ONE, filename="user:g", artifact=blob) == 0
    first = await kept.load_artifact(**ONE, filename="f", version=0)
    assert first == types.Part(text="one")
    elsewhere: dict[str, Any] = {**ONE, "session_id": "other"}
    assert await RunArtifacts(database).load_artifact(**ONE, filename="f") == blob
    assert await kept.load_artifact(**elsewhere, filename="f") is None
    assert await kept.load_artifact(**elsewhere, filename="user:g") == blob
    assert await kept.list_artifact_keys(**ONE) == ["f", "user:g"]
    assert await kept.list_artifact_keys(app_name="a", user_id="u") == ["user:g"]
    assert await kept.list_versions(**ONE, filename="f") == [0, 1]
    version = await kept.get_artifact_version(**ONE, filename="f")
    assert version is not None
    assert (version.version, version.mime_type, version.custom_metadata) == (1, "image/png", told)
    await kept.delete_artifact(**ONE, filename="f")
    assert await kept.load_artifact(**ONE, filename="f") is None
    with pytest.raises(UsageError, match="an artifact cannot be named 'sha256:1'"):
        await kept.save_artifact(**ONE, filename="sha256:1", artifact=blob)
    many = (kept.save_artifact(**ONE, filename="m", artifact=blob) for _ in range(8))
    assert sorted(await asyncio.gather(*many)) == [*range(8)]


async def test_a_database_that_cannot_be_read(tmp_path: Path) -> None:
    from adk_fluent.backends.adk import ADKBackend

    (tmp_path / "r.sessions.sqlite").write_text("This is no database, but text.\n" * 99)
    database = Database(Address.of(f"sqlite:///{tmp_path / 'r.sqlite'}"))
    with pytest.raises(SessionStoreError, match="the sessions cannot be read or written"):
        await ADKBackend(RunSessions(database)).run(
            ADKBackend().compile(Agent("a").mock("A").to_ir()), "Go.", session_id="s"
        )


async def test_a_message_is_said_once_where_a_worker_died_before_its_first_step(
    database: Database,
) -> None:
    heard: list[list[str]] = []

    def look(callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        heard.append([part.text or "" for c in llm_request.contents for part in c.parts or ()])

    pipeline = Agent("a").mock("A").before_model(look) >> Agent("b").mock("B").execution_boundary()
    station = Station(pipeline, None, *stores(database), url=database.address.url)
    said, _ = await station.message_of("Go.", "r", "user")
    dead = RunSessions(database)
    session = await dead.create_session(
        app_name="adk_fluent_app", user_id="user", session_id="r", state={"n": 1}
    )
    message = types.Content(role="user", parts=[types.Part(text="Go.")])
    await dead.append_event(session, Event(author="user", content=message, invocation_id="i"))
    first = SegmentCall("r", "pipeline", 0, station.plan.fingerprint, "user", said, {"n": 1})
    assert (await station.advance(first)).next == "b"
    assert heard == [["Go."]]
    result = await station.advance(first.next("b"))
    assert (result.status, result.answer, result.state) == ("completed", "B", {"n": 1})
    with pytest.raises(ValueError, match="was written to since it was read"):
        await dead.append_event(session, writing({"n": 2}))


async def test_an_answer_is_said_once_where_a_worker_died_with_it(database: Database) -> None:
    pipeline = Agent("a").mock("A") >> gate(message="Go on?", name="ok") >> Agent("b").mock("B")
    here, there = (Station(pipeline, None, *stores(database)) for _ in range(2))
    said, _ = await here.message_of("Go.", "r", "user")
    first = SegmentCall("r", "pipeline", 0, here.plan.fingerprint, "user", said)
    asked = await here.advance(first)
    call = replace(first, number=1, answers={asked.pending[0]["id"]: True})
    sessions, dead = here._backend.session_service, list[Event]()
    append = sessions.append_event

    async def dies(session: Session, event: Event) -> Event:
        if dead:
            raise asyncio.CancelledError
        made = await append(session, event)
        if event.author == "user":
            dead.append(event)
            raise asyncio.CancelledError
        return made

    setattr(sessions, "append_event", dies)  # noqa: B010  # it is a method
    with pytest.raises(asyncio.CancelledError):
        await here.advance(call, lambda _: False)
    assert dead
    result = await there.advance(call, lambda _: False)
    assert (result.status, result.answer) == ("completed", "B")
    with database.begin() as db:
        rows = db.execute(text("select data from adk_fluent_events order by number")).scalars()
        events = [Event.model_validate_json(row) for row in rows]
    answers = [each for each in events if each.get_function_responses()]
    assert [each.author for each in answers] == ["user"]


async def test_an_answer_whose_place_was_not_written_is_said_once(
    any_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def says(prompt: str) -> str:
        said.append(prompt)
        return f"B{len(said)}"

    append = RunSessions.append_event

    async def failing(self: RunSessions, session: Session, event: Event) -> Event:
        if session.events and session.events[-1].author == "b" and len(said) == 1:
            raise OSError("no room")
        return await append(self, session, event)

    pipeline = Agent("a").mock("A") >> Agent("b").mock(says).writes("b") >> Agent("c").mock("C")
    async with DbosEngine(any_url) as engine:
        with monkeypatch.context() as patched:
            patched.setattr(RunSessions, "append_event", failing)
            with pytest.raises(DistributedRunError, match="no room"):
                await engine.run(pipeline, "Go.", run_id="r")
        await engine.answer("r")
        result = await engine.run(pipeline, "Go.", run_id="r")
    assert [event.content for event in result if event.content] == ["A", "B2", "C"]
    assert (result.state["b"], len(said)) == ("B2", 2)
    assert "B1" not in said[1]

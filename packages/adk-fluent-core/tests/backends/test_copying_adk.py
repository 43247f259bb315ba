"""Copies of sessions: their runs are their own, and their state is right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from adk_middlewares import made_of
from adk_programs import agent, fn, seq
from google.adk.sessions import Session
from pydantic import ConfigDict

from adk_fluent import Agent
from adk_fluent.backends.adk import ADKBackend
from adk_fluent.backends.adk._session._copies import copied
from adk_fluent.config import ExecutionConfig
from adk_fluent.extend import METADATA_KEY, copy_events, initial_state, is_journal_key, write_state

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.sessions.base_session_service import BaseSessionService

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings("ignore:.*EXPERIMENTAL.*:UserWarning"),
]

IDS: dict[str, Any] = {"app_name": "adk_fluent_app", "user_id": "user", "session_id": "s"}


async def ran(service: BaseSessionService, **state: Any) -> Session:
    program = seq(agent("a"), fn("count", lambda s: {"n": (s.get("n") or 0) + 1}), agent("b"))
    backend = ADKBackend(session_service=service)
    compiled = backend.compile(program, ExecutionConfig(resumable=True))
    await service.create_session(**IDS, state=state)
    await backend.run(compiled, "hi", session_id="s")
    session = await service.get_session(**IDS)
    assert session is not None
    return session


def runs_of(events: list[Event]) -> set[str]:
    metadata: list[dict[str, Any]] = [each.custom_metadata or {} for each in events]
    stamps: list[dict[str, str]] = [each.get(METADATA_KEY, {}) for each in metadata]
    return {stamp["run"] for stamp in stamps if "run" in stamp}


async def test_runs_of_a_copy_are_others_and_nobodys(service: BaseSessionService) -> None:
    session = await ran(service)
    made = copy_events(session.events)
    again = copy_events(session.events)
    runs = [runs_of(events) for events in (session.events, made, again)]
    assert [len(each) for each in runs] == [1, 1, 1]
    assert len({run for each in runs for run in each}) == 3
    texts = [
        text
        for each in made
        for key, text in each.actions.state_delta.items()
        if is_journal_key(key) and text is not None
    ]
    assert texts
    for text in texts:
        assert '"owner":""' in text
        assert all(run in text for run in runs[1])
        assert not any(run in text for run in runs[0])
    assert [each.id for each in made] == [each.id for each in session.events]


async def test_state_that_a_session_was_created_with_is_found(service: BaseSessionService) -> None:
    session = await ran(service, keep={"a": 1}, n=3)
    assert initial_state(session) == {"keep": {"a": 1}, "n": 3}


async def test_a_write_outside_of_a_run_replaces_a_dict(service: BaseSessionService) -> None:
    session = await ran(service, keep={"a": 1}, n=3)
    await write_state(service, session, {"keep": {"b": 2}}, author="a", invocation_id="i")
    stored = await service.get_session(**IDS)
    assert stored is not None
    assert stored.state["keep"] == {"b": 2}
    assert initial_state(stored) == {"keep": {"a": 1}, "n": 3}


async def test_a_changed_copy_is_the_one_that_pydantic_makes() -> None:
    copies = 0

    async def before_run(ctx: Any) -> None:
        nonlocal copies
        changed: list[tuple[Any, dict[str, Any]]] = [
            (ctx, {"branch": "b", "_ours": 1}),
            (ctx.session, {"events": []}),
        ]
        for model, changes in changed:
            made, wanted = copied(model, changes), model.model_copy(update=changes)
            assert made == wanted
            assert vars(made) == vars(wanted)
            assert made.model_fields_set == wanted.model_fields_set
            made.model_fields_set.clear()
            assert model.model_fields_set
            private = model.__pydantic_private__
            assert private is None or made.__pydantic_private__ is not private
            copies += 1

    await Agent("a").mock("A").middleware(made_of(before_run=before_run)).run("hi")
    assert copies == 2


def test_a_copy_of_a_session_of_somebody_s_own_keeps_what_is_added_to_it() -> None:
    class Owned(Session):
        model_config = ConfigDict(extra="allow")

    session = Owned.model_validate({"id": "s", "app_name": "a", "user_id": "u", "tenant": "t"})
    made = copied(session, {"events": []})
    assert made == session.model_copy(update={"events": []})
    assert made.model_extra == {"tenant": "t"}
    assert made.model_extra is not session.model_extra

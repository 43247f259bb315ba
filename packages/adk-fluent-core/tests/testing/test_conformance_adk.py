"""The conformance suite on ADK, with sessions in memory; and some of it with sessions in SQLite."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.testing import conformance

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from google.adk.sessions.base_session_service import BaseSessionService

    from adk_fluent.protocol import Backend
    from adk_fluent.testing.conformance import Program, Subject

pytestmark = [
    pytest.mark.adk,
    # 1.x says so of streamed text
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
]

TestADK = conformance.as_pytest(conformance.adk_subject)


#: What differs where a service merges a dict into the one it holds, as SQLite's of old ADK
#: does by RFC 7396: it takes two events to replace one, and None inside of one is lost.
_MERGED = {
    "state/a dict replaces a dict": {"events"},
    "state/a dict with None in it is kept": {"state", "by run"},
}


def _stored() -> Iterator[Program]:
    """What depends on where sessions are kept."""
    for program in conformance.programs():
        situation = program.id.partition("/")[0]
        if program.id not in _MERGED and situation in {
            "alone",
            "closed early",
            "state",
            "session",
            "transform",
        }:
            yield program


_folders: list[Path] = []
_numbers = itertools.count()


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    _folders.append(tmp_path_factory.mktemp("sessions"))


def _on_sqlite() -> Subject:
    """Each program has a file of its own, which is opened anew after each message."""
    from google.adk.sessions.sqlite_session_service import SqliteSessionService

    from adk_fluent.backends.adk import ADKBackend

    def here(number: int) -> SqliteSessionService:
        return SqliteSessionService(str(_folders[-1] / f"{number}.db"))

    current = 0

    def sessions() -> BaseSessionService:
        nonlocal current
        current = next(_numbers)
        return here(current)

    def reopen(_: Backend[Any]) -> ADKBackend:
        return ADKBackend(here(current))

    return replace(conformance.adk_subject(sessions), reopen=reopen)


TestSqlite = conformance.as_pytest(_on_sqlite, only=_stored())


@pytest.mark.parametrize("id", _MERGED)
async def test_what_differs_where_dicts_are_merged(id: str) -> None:
    from adk_fluent.backends.adk._caps import merges_dicts

    subject = _on_sqlite()
    backend: Any = subject.backend()
    (program,) = [each for each in conformance.programs() if each.id == id]
    found = {each.aspect for each in await conformance.check(program, subject)}
    assert found <= _MERGED[id]
    assert bool(found) == merges_dicts(backend.session_service)

# ruff: noqa: S608  # the statements are ours
"""Removes runs that ended long ago, with all that is kept of them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from adk_fluent.distributed._overview import last_calls, summary_of
from adk_fluent.distributed._runtime import workflow_id

if TYPE_CHECKING:
    from dbos import DBOSClient

    from adk_fluent.distributed._database import Database
    from adk_fluent.distributed._summaries import RunSummary

#: A run that failed may go on, one that waits may be answered.
_ENDED: Final = ("completed", "rejected", "cancelled")
_PAGE: Final = 500  # calls that are removed at once
_TABLES: Final = ("events", "artifacts", "sessions")


async def ended_before(client: DBOSClient, before: float) -> list[RunSummary]:
    """The runs that ended before a moment, in seconds since 1970; those first begun come first."""
    until = datetime.fromtimestamp(before, UTC).isoformat()
    last = await last_calls(client, end_time=until)
    found = [summary_of(run_id, row) for run_id, row in last.items()]
    ended = [each for each in found if each.status in _ENDED and each.changed < before]
    return [each for part in _parts(ended) for each in await _without_later(client, part)]


async def remove(client: DBOSClient, database: Database, runs: list[RunSummary]) -> None:
    """Remove runs that have ended. Where that is cut off, another call goes on with it."""
    for part in _parts(runs):
        await asyncio.to_thread(_remove_sessions, database, [each.run_id for each in part])
        await client.delete_workflows_async(
            [workflow_id(each.run_id, number) for each in part for number in range(each.calls)]
        )


def _remove_sessions(database: Database, ids: list[str]) -> None:
    with database.begin() as db:
        for table in _TABLES:
            statement = text(f"delete from adk_fluent_{table} where session = :session")
            db.execute(statement, [{"session": each} for each in ids])


async def _without_later(client: DBOSClient, runs: list[RunSummary]) -> list[RunSummary]:
    """Those of which no call was submitted since."""
    ids = [workflow_id(each.run_id, each.calls) for each in runs]
    options: dict[str, Any] = {"load_input": False, "load_output": False}
    rows = await client.list_workflows_async(workflow_ids=ids, **options)
    later = {row.workflow_id for row in rows}
    return [each for each, id in zip(runs, ids, strict=True) if id not in later]


def _parts(runs: list[RunSummary]) -> list[list[RunSummary]]:
    """Runs with some hundred calls each time."""
    parts: list[list[RunSummary]] = []
    calls = _PAGE
    for each in runs:
        if calls + each.calls > _PAGE:
            parts.append([])
            calls = 0
        parts[-1].append(each)
        calls += each.calls
    return parts

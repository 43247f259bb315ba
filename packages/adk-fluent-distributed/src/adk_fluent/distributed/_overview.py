"""Finds the runs of a database."""

from __future__ import annotations

import itertools
from math import inf
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.distributed._errors import EngineError
from adk_fluent.distributed._runs import error_in
from adk_fluent.distributed._runtime import APP, result_in
from adk_fluent.distributed._summaries import RunSummary

if TYPE_CHECKING:
    from dbos import DBOSClient, WorkflowStatus

    from adk_fluent.distributed._call import Status

_PAGE: Final = 500  # calls that are read at once


async def last_calls(
    client: DBOSClient, limit: float = inf, prefix: str | None = None, **asked: Any
) -> dict[str, WorkflowStatus]:
    """The last call of each run, of the calls that are asked for, until there are enough runs."""
    found: dict[str, WorkflowStatus] = {}
    for page in itertools.count():
        rows = await client.list_workflows_async(
            application_name=APP,
            workflow_id_prefix=prefix,
            limit=_PAGE,
            offset=page * _PAGE,
            load_input=False,
            **asked,
        )
        for row in rows:
            run_id, _, number = row.workflow_id.rpartition("#")
            known = found.get(run_id)
            if prefix not in (None, f"{run_id}#"):  # SQLite finds ids in either case
                continue
            if number.isdecimal() and (known is None or known.workflow_id < row.workflow_id):
                found[run_id] = row
        if len(rows) < _PAGE or len(found) >= limit:
            break
    return found


async def runs_in(client: DBOSClient, limit: int, prefix: str | None = None) -> list[RunSummary]:
    """The runs whose calls were submitted last, those that changed last first."""
    found = await last_calls(client, limit, prefix, sort_desc=True)
    made = [summary_of(run_id, row) for run_id, row in found.items()]
    return sorted(made, key=lambda each: -each.changed)[:limit]


def summary_of(run_id: str, row: WorkflowStatus) -> RunSummary:
    """The summary of a run by its last call; of one that cannot be read, what is wrong with it."""
    status: Status = "running"
    result, error = dict[str, Any](), dict[str, str]()
    if row.status == "SUCCESS":
        try:
            result = result_in(row)
            status = result["status"]
            error = result["error"] or error
        except EngineError as raised:
            status, error = "failed", {"type": "EngineError", "message": raised.what}
    elif row.status == "CANCELLED":
        status = "cancelled"
    elif row.status in ("ERROR", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"):
        status, error = "failed", error_in(row)
    queued = (row.queue_name or "").partition("/")[2]
    return RunSummary(
        run_id,
        status,
        result.get("segment") or queued.replace("*", ""),
        int(row.workflow_id.rpartition("#")[2]) + 1,
        "" if row.status == "ENQUEUED" else row.executor_id or "",
        max(row.created_at or 0, row.updated_at or 0) / 1000,
        tuple(str(each.get("name") or each.get("id")) for each in result.get("pending", ())),
        f"{error['type']}: {error['message']}" if error else "",
    )

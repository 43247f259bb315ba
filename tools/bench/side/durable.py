"""Agents of ADK as durable steps of DBOS by hand, on SQLite, in one process."""

from __future__ import annotations

import asyncio
import tempfile
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbos import DBOS, SetWorkflowID
from google.adk.agents.llm_agent import LlmAgent
from google.adk.runners import Runner
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

from bench.side.scripted import MESSAGE, USER, Echo

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from bench.side.worker import Task

_RUNNERS: list[Runner] = []


@DBOS.step()
async def _step(at: int, run_id: str) -> int:
    said = types.Content(role="user", parts=[types.Part(text=MESSAGE)])
    events = _RUNNERS[at].run_async(user_id=USER, session_id=run_id, new_message=said)
    return len([event async for event in events])


@DBOS.workflow()
async def _workflow(size: int, run_id: str) -> int:
    await _RUNNERS[0].session_service.create_session(
        app_name="bench", user_id=USER, session_id=run_id
    )
    return sum([await _step(at, run_id) for at in range(size)])


def run_durable(size: int) -> Callable[[], Coroutine[Any, Any, int]]:
    """Run so many agents, each a durable step over one session; return the number of answers."""
    folder, runs = Path(tempfile.mkdtemp()), count()
    sessions = SqliteSessionService(str(folder / "s.sqlite"))
    for at in range(size):
        agent = LlmAgent(name=f"a{at}", model=Echo(model="echo"))
        _RUNNERS.append(Runner(app_name="bench", agent=agent, session_service=sessions))
    url = f"sqlite:///{folder}/r.sqlite"
    DBOS(config={"name": "bench", "system_database_url": url, "log_level": "ERROR"})
    DBOS.listen_queues([])
    DBOS.launch()

    def run() -> Any:
        run_id = f"r{next(runs)}"
        with SetWorkflowID(run_id):
            return DBOS.start_workflow(_workflow, size, run_id).get_result()

    async def once() -> int:
        return await asyncio.to_thread(run)

    return once


TASKS: dict[str, Task] = {"run-durable": run_durable}

"""Agents of ADK behind queues of DBOS by hand: each workflow puts the next one into its queue."""

from __future__ import annotations

import asyncio
import tempfile
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbos import DBOS, DBOSClient
from google.adk.agents.llm_agent import LlmAgent
from google.adk.runners import Runner
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

from bench.side.scripted import MESSAGE, USER, Echo

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from dbos import EnqueueOptions, WorkflowHandle

    from bench.side.worker import Task

SEGMENTS, POLL = 3, 0.05
_RUNNERS: list[Runner] = []


@DBOS.step()
async def _step(at: int, run_id: str) -> int:
    if at == 0:
        await _RUNNERS[0].session_service.create_session(
            app_name="bench", user_id=USER, session_id=run_id
        )
    said = types.Content(role="user", parts=[types.Part(text=MESSAGE)])
    events = _RUNNERS[at].run_async(user_id=USER, session_id=run_id, new_message=said)
    return len([event async for event in events])


@DBOS.workflow(name="hop")
async def _hop(at: int, run_id: str) -> int:
    made = await _step(at, run_id)
    if at + 1 < SEGMENTS:
        await DBOS.enqueue_workflow_with_options_async(_options(at + 1, run_id), at + 1, run_id)
    return made


def _options(at: int, run_id: str) -> EnqueueOptions:
    return {
        "workflow_name": "hop",
        "workflow_id": f"{run_id}#{at}",
        "queue_name": f"q{at}",
        "app_version": "1",
    }


def run_queued(size: int) -> Callable[[], Coroutine[Any, Any, int]]:
    """Put so many runs into the first queue and wait for them; return the number of answers."""
    folder, runs = Path(tempfile.mkdtemp()), count()
    sessions = SqliteSessionService(str(folder / "s.sqlite"))
    for at in range(SEGMENTS):
        agent = LlmAgent(name=f"a{at}", model=Echo(model="echo"))
        _RUNNERS.append(Runner(app_name="bench", agent=agent, session_service=sessions))
    url = f"sqlite:///{folder}/r.sqlite"
    DBOS(
        config={
            "name": "bench",
            "system_database_url": url,
            "application_version": "1",
            "log_level": "ERROR",
        }
    )
    DBOS.listen_queues([f"q{at}" for at in range(SEGMENTS)])
    DBOS.launch()
    for at in range(SEGMENTS):
        DBOS.register_queue(f"q{at}", worker_concurrency=size, polling_interval_sec=POLL)
    client = DBOSClient(system_database_url=url)

    def wait(run_id: str) -> int:
        made = 0
        for at in reversed(range(SEGMENTS)):
            handle: WorkflowHandle[int] = DBOS.retrieve_workflow(
                f"{run_id}#{at}", existing_workflow=False
            )
            made += handle.get_result(polling_interval_sec=POLL)
        return made

    async def once() -> int:
        ids = [f"r{next(runs)}" for _ in range(size)]
        for id in ids:
            await client.enqueue_async(_options(0, id), 0, id)
        return sum(await asyncio.gather(*(asyncio.to_thread(wait, id) for id in ids)))

    return once


TASKS: dict[str, Task] = {"run-queued": run_queued}

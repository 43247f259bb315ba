"""A process that answers or goes on when it is told to, at the same moment as another one.

It reads one request a line, `Request` as JSON, and answers with one line: what became of it.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from google.adk.sessions.database_session_service import DatabaseSessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService

from adk_fluent import Agent, Pipeline, gate
from adk_fluent.builders import RunOptions, State
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import AdkFluentError, SessionError
from adk_fluent.protocol import Answer

if TYPE_CHECKING:
    from google.adk.sessions.base_session_service import BaseSessionService

NAME = "go"
CONFIG = ExecutionConfig(resumable=True)


@dataclass(frozen=True)
class Request:
    """What is asked for.

    Attributes:
        path: Where sessions are kept.
        store: In which service of ADK's.
        session: The session.
        does: A run that asks at a gate, or fails; answering; going on; or reading the state.
        question: What is answered.
        at: When, in seconds since 1970.
    """

    path: str
    store: Literal["sqlite", "database"]
    session: str
    does: Literal["asks", "fails", "answers", "goes on", "reads"]
    question: str = ""
    at: float = 0.0


def asking() -> Pipeline:
    """A pipeline that asks, and then counts."""
    return Agent("a").mock("A") >> gate(message="Go?", name="ok") >> count >> Agent("z").mock("Z")


def failing(*, broken: bool) -> Pipeline:
    """A pipeline that fails before it counts."""

    def breaks(state: State) -> None:
        if broken:
            raise RuntimeError(NAME)

    return Agent("a").mock("A") >> breaks >> count >> Agent("z").mock("Z")


async def count(state: State) -> dict[str, int]:
    """Count, and take a moment for it."""
    await asyncio.sleep(0.01)
    return {"n": int(str(state.get("n") or 0)) + 1}


async def done(  # noqa: PLR0911  # one for each thing that is asked for
    request: Request, service: BaseSessionService
) -> dict[str, Any]:
    """Do what is asked for; what became of it."""
    options = RunOptions(session_id=request.session, session_service=service, config=CONFIG)
    time.sleep(max(0.0, request.at - time.time()))  # noqa: ASYNC251  # nothing else runs here
    try:
        match request.does:
            case "asks":
                asked = await asking().run("hi", **options)
                return {"question": asked.pending[0].id}
            case "fails":
                try:
                    await failing(broken=True).run("hi", **options)
                except RuntimeError as error:
                    return {"failed": str(error)}
            case "answers":
                answer = Answer(request.question, value=True)
                came = await asking().resume(answer, **options)
                return {"text": came.text or came.reason}
            case "goes on":
                came = await failing(broken=False).resume(**options)
                return {"text": came.text or came.reason}
            case "reads":
                session = await service.get_session(
                    app_name=CONFIG.app_name, user_id="user", session_id=request.session
                )
                return {"n": None if session is None else session.state.get("n")}
    except AdkFluentError as error:
        return {
            "error": type(error).__name__,
            "is": isinstance(error, SessionError),
            "says": str(error),
        }
    return {}


async def serve(request: Request) -> dict[str, Any]:
    """Do what is asked for with a session service of its own."""
    if request.store == "sqlite":
        return await done(request, SqliteSessionService(request.path))
    service = DatabaseSessionService(f"sqlite+aiosqlite:///{request.path}")
    try:
        return await done(request, service)
    finally:
        await service.close()


def main() -> None:
    """Serve until there are no more requests."""
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(asyncio.run(serve(Request(**json.loads(line))))), flush=True)


if __name__ == "__main__":
    main()

"""Finding, creating and rewinding sessions, with errors a user understands."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import contextmanager
from json import JSONDecodeError
from typing import TYPE_CHECKING, Any, Final

from google.adk.errors.already_exists_error import AlreadyExistsError
from pydantic import ValidationError

from adk_fluent.errors import SessionError, SessionStoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from google.adk.sessions.base_session_service import BaseSessionService
    from google.adk.sessions.session import Session

    from adk_fluent.errors import RunError

#: Keys with these prefixes are not the session's own.
FOREIGN: Final = ("app:", "user:", "temp:")
# how ADK 1.x says that a session is stale: its SQLite service, and its one for all databases
_STALE: Final = (
    "last_update_time provided in the session object is earlier",
    "session has been modified in storage since it was loaded",
)
_SHOWN: Final = 160  # characters of a store's own error


async def find_session(
    service: BaseSessionService, app_name: str, user_id: str, session_id: str
) -> Session | None:
    """A session; None when there is none of that id.

    Raises:
        SessionStoreError: The store cannot be read.
    """
    with readable_store():
        return await service.get_session(app_name=app_name, user_id=user_id, session_id=session_id)


async def open_session(
    service: BaseSessionService,
    app_name: str,
    user_id: str,
    session_id: str | None = None,
    state: Mapping[str, Any] | None = None,
) -> Session:
    """A session to go on with, or a new one.

    Args:
        service: Where it is kept.
        app_name: The app.
        user_id: The user.
        session_id: The session; it is made when there is none of that id. None makes a new one.
        state: What a new session's state starts with.

    Raises:
        SessionStoreError: The store cannot be read or written.
    """
    if session_id is not None:
        session = await find_session(service, app_name, user_id, session_id)
        if session is not None:
            return session
    try:
        with readable_store():
            return await service.create_session(
                app_name=app_name, user_id=user_id, session_id=session_id, state=dict(state or {})
            )
    except AlreadyExistsError:  # another run was faster
        session = await find_session(service, app_name, user_id, session_id or "")
        if session is None:
            raise
        return session


async def existing_session(
    service: BaseSessionService, app_name: str, user_id: str, session_id: str
) -> Session:
    """A session that must be there.

    Raises:
        SessionError: There is no such session.
        SessionStoreError: The store cannot be read.
    """
    session = await find_session(service, app_name, user_id, session_id)
    if session is None:
        raise SessionError(
            f"there is no session {session_id!r} of user {user_id!r} in app {app_name!r}",
            help="use the ids that RunResult carries, and the session service of that run",
        )
    return session


@contextmanager
def readable_store(
    session_id: str = "", raised_there: Callable[[Exception], bool] = lambda _: True
) -> Generator[None]:
    """Tell a broken store from everything else that may go wrong.

    Args:
        session_id: The session that is written to.
        raised_there: Whether an error comes from the store; others stay as they are.

    Raises:
        SessionError: Another run wrote to the session meanwhile.
        SessionStoreError: The store cannot be read or written.
    """
    try:
        yield
    except Exception as error:
        better = _explained(error, session_id) if raised_there(error) else None
        if better is None:
            raise
        raise better from error


def is_stale(error: Exception) -> bool:
    """Whether a session was not written because it is not as it was read (ADK 1.x: by its text)."""
    if not isinstance(error, ValueError):
        return False
    text = str(error)
    return type(error).__name__ == "StaleSessionError" or any(each in text for each in _STALE)


def _explained(error: Exception, session_id: str) -> RunError | None:
    if is_stale(error):
        return SessionError(
            f"another run wrote to session {session_id!r} meanwhile",
            found=f"{type(error).__name__}: {error}",
            help="do the runs of one session one after the other, or give each a session_id of its "
            "own; what was committed before is still there",
        )
    if isinstance(error, _store_errors()):
        return SessionStoreError(
            "the sessions cannot be read or written",
            found=f"{type(error).__name__}: {' '.join(str(error).split())[:_SHOWN]}",
            help="is it a session database of this version of ADK, may it be written, and is there "
            "space? Move a damaged file away to start anew, or restore it from a backup",
        )
    return None


def _store_errors() -> tuple[type[Exception], ...]:
    database: Any = sys.modules.get("sqlalchemy.exc")  # not imported: nothing of it can be raised
    more = () if database is None else (database.SQLAlchemyError,)
    # the last two: what is stored is no event, or one of a newer ADK
    return (sqlite3.Error, OSError, *more, ValidationError, JSONDecodeError)

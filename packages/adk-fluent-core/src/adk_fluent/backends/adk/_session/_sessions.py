"""Finding, creating and rewinding sessions, with errors a user understands."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import sys
from contextlib import contextmanager
from json import JSONDecodeError
from traceback import clear_frames
from typing import TYPE_CHECKING, Any, Final

from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from pydantic import ValidationError

from adk_fluent._texts import error_line
from adk_fluent.backends._storable import text_fault
from adk_fluent.backends.adk._session._storing import Keeping, uncopyable
from adk_fluent.errors import SessionError, SessionStoreError, UsageError

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
_GONE: Final = re.compile(r"Session .* not found\.", re.DOTALL)
_SHOWN: Final = 160  # characters of a store's own error
#: What to do, by what a store says.
_STORE_HELP: Final = (
    (
        "locked",
        (
            "SQLite lets one write at a time, and this one waited too long for its turn: too many "
            "runs write to the file at once, or another program does. Nothing of it was written. "
            "Do fewer runs at once, or keep sessions in DatabaseSessionService(url, "
            'connect_args={"timeout": 60}), which waits longer, or in a database server'
        ),
    ),
    ("readonly", "it may not be written, or was moved or removed while it was open: put it back"),
    ("disk is full", "free space, and try again; what was committed before is still there"),
    (
        "no such table",
        (
            "it is no session database, or was replaced while it was open: put it back, or make a "
            "new session service to start anew"
        ),
    ),
)
_STORE_HELP_ELSE: Final = (
    "is it a session database of this version of ADK, may it be written, and is there space? Move "
    "a damaged file away to start anew, or restore it from a backup"
)


async def find_session(
    service: BaseSessionService, app_name: str, user_id: str, session_id: str
) -> Session | None:
    """A session; None when there is none of that id.

    Raises:
        SessionStoreError: The store cannot be read.
    """
    try:
        with readable_store():
            return await service.get_session(
                app_name=app_name, user_id=user_id, session_id=session_id
            )
    except Exception as error:
        if isinstance(service, InMemorySessionService):
            held = service.sessions.get(app_name, {}).get(user_id, {}).get(session_id)
            keys = [] if held is None else uncopyable(held.state)
            if keys:
                raise SessionStoreError(
                    f"session {session_id!r} cannot be read any more",
                    found=f"an object that cannot be copied in state[{keys[0]!r}]: "
                    f"{error_line(error, _SHOWN)}",
                    help="ADK copies a session in memory at the start of each run; objects that "
                    f"cannot be copied go to {'temp:' + keys[0]!r}, or are handed over by "
                    ".inject(...)",
                ) from error
        raise


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
        UsageError: An id is none that every service keeps as it is.
        UnstorableValueError: There is something in `state` that the service cannot keep.
        SessionStoreError: The store cannot be read or written.
    """
    _check_id("user_id", user_id)
    if session_id is not None:
        _check_id("session_id", session_id)
        session = await find_session(service, app_name, user_id, session_id)
        if session is not None:
            return session
    if state:
        Keeping(service).check_start(state)
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


def _check_id(name: str, id: str) -> None:
    """Refuse what some services store under another id, so that nobody finds it again."""
    half = text_fault(id)
    if id == id.strip() and half is None:
        return
    raise UsageError(
        f"{name}= takes a text that every session service keeps as it is",
        found=f"{id!a:.60}, which {'has white space at its ends' if half is None else half.says}",
        help="take the white space off: id.strip()" if half is None else half.help,
    )


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
    except asyncio.CancelledError as error:
        _let_go(error)
        raise
    except Exception as error:
        better = _explained(error, session_id) if raised_there(error) else None
        if better is None:
            raise
        for note in getattr(error, "__notes__", ()):
            better.add_note(note)
        raise better from error


def _let_go(error: BaseException) -> None:
    """Drop what the frames of an error hold.

    SQLAlchemy leaves a cancelled statement in a cycle of its error and frames, and SQLite keeps
    the file locked for it until garbage is collected: the next run could not write.
    """
    seen: BaseException | None = error
    while seen is not None:
        clear_frames(seen.__traceback__)
        seen = seen.__context__


def is_stale(error: Exception) -> bool:
    """Whether a session was not written because it is not as it was read (ADK 1.x: by its text)."""
    if not isinstance(error, ValueError):
        return False
    text = str(error)
    return type(error).__name__ == "StaleSessionError" or any(each in text for each in _STALE)


def catch_up(session: Session, stored: Session) -> None:
    """Let a session that a run holds be what is stored, so that the run may write to it again."""
    session.events[:] = stored.events
    temporary = {key: value for key, value in session.state.items() if key.startswith("temp:")}
    session.state.clear()
    session.state.update(stored.state | temporary)
    session.last_update_time = stored.last_update_time
    for name in session.__private_attributes__:  # 2.x compares a marker, too
        setattr(session, name, getattr(stored, name))


def _explained(error: Exception, session_id: str) -> RunError | None:
    if is_stale(error):
        stale = SessionError(
            f"another run wrote to session {session_id!r} meanwhile",
            found=f"{type(error).__name__}: {error}",
            help="do the runs of one session one after the other, or give each a session_id of its "
            "own; what was committed before is still there",
        )
        stale.taken_by = "another run"
        return stale
    if _is_gone(error):
        return SessionError(
            f"session {session_id!r} was removed while a run was going on in it",
            found=f"{type(error).__name__}: {error}",
            help="let runs end before their session or its store is removed; what was to be "
            "written is lost with the session",
        )
    if isinstance(error, _store_errors()):
        text = " ".join(str(getattr(error, "orig", None) or error).split())
        kind = type(getattr(error, "orig", None) or error).__name__
        return SessionStoreError(
            "the sessions cannot be read or written",
            found=f"{kind}: {text[:_SHOWN]}",
            help=next((told for said, told in _STORE_HELP if said in text), _STORE_HELP_ELSE),
        )
    return None


def _is_gone(error: Exception) -> bool:
    """Whether a session is not there any more (ADK 1.x: by its text)."""
    if type(error).__name__ == "SessionNotFoundError":
        return True
    return type(error) is ValueError and _GONE.fullmatch(str(error)) is not None


def _store_errors() -> tuple[type[Exception], ...]:
    database: Any = sys.modules.get("sqlalchemy.exc")  # not imported: nothing of it can be raised
    more = () if database is None else (database.SQLAlchemyError,)
    # the last two: what is stored is no event, or one of a newer ADK
    return (sqlite3.Error, OSError, *more, ValidationError, JSONDecodeError)

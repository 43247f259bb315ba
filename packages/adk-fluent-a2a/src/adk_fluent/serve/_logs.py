"""What a server logs of failures: a line where that says all, a traceback where it is a bug."""

from __future__ import annotations

import logging
import sys
from traceback import walk_tb
from typing import Final

from adk_fluent.errors import AdkFluentError, error_parts, unwrap
from adk_fluent.extend import LOG
from adk_fluent.protocol import classify, status_of

_DATABASES: Final = ("sqlalchemy", "sqlite3", "aiosqlite")
#: What asks a server's own databases; whoever else asks one is an agent's code.
_STORES: Final = ("a2a.server", "adk_fluent.", "google.adk.sessions")
#: Whose errors with a status are those of a model.
_MODELS: Final = ("anthropic", "google.api_core", "google.genai", "litellm", "openai")
#: Whose frames say nothing of an agent's code. One that lacks costs a traceback too many.
_LIBRARIES: Final = sys.stdlib_module_names | {
    *("a2a", "adk_fluent", "aiohttp", "aiosqlite", "anthropic", "anyio", "asyncpg", "google"),
    *("grpc", "httpcore", "httpx", "jsonschema", "litellm", "openai", "opentelemetry"),
    *("psycopg", "pydantic", "sqlalchemy", "starlette", "tenacity"),
}
_SDK: Final = "a2a.server"
_REQUESTS: Final = f"{_SDK}.routes"


def log_failure(what: str, error: Exception, *, level: int = logging.ERROR) -> None:
    """Log a failure; where DEBUG is logged, always with its traceback.

    Args:
        what: What failed.
        error: Why.
        level: How bad it is, as `logging` has it.
    """
    if LOG.isEnabledFor(logging.DEBUG) or not _says_all(unwrap(error)):
        LOG.log(level, "%s", what, exc_info=error)
    else:
        LOG.log(level, "%s: %s", what, one_line(unwrap(error)))


def one_line(error: BaseException) -> str:
    """An error as a line, with its code, place and help; of a database without its SQL."""
    if is_of_database(error):
        found = getattr(error, "orig", None) or error
        return f"{type(found).__name__}: {found}".splitlines()[0]
    parts = error_parts(error)
    code = f" [{parts['code']}]" if parts["code"] else ""
    place = f" at {parts['location']}" if parts["location"] else ""
    where = f" (node {parts['node']!r}{place})" if parts["node"] else ""
    if not isinstance(error, AdkFluentError) and (code_at := _code_at(error)):
        where = f" (at {code_at})"
    help = f"; {parts['help']}" if parts["help"] else ""
    return " ".join(f"{parts['type']}{code}: {parts['message']}{where}{help}".split())


def is_of_database(error: BaseException) -> bool:
    """Whether a database, or its driver, raised an error."""
    return type(error).__module__.startswith(_DATABASES)


def shorten(record: logging.LogRecord) -> bool:
    """A filter of a handler: of wrong requests and databases the SDK logs a line, too."""
    error = record.exc_info[1] if record.exc_info else None
    of_sdk, of_request = record.name.startswith(_SDK), record.name.startswith(_REQUESTS)
    if error is not None and of_sdk and (of_request or _says_all(error)):
        record.msg, record.args = f"{record.getMessage()}: {one_line(error)}", ()
        record.exc_info = record.exc_text = None
    return True


def _says_all(error: BaseException) -> bool:
    """Whether an error is of the kinds that say where and why, and no bug of somebody's code."""
    if isinstance(error, AdkFluentError):
        cause = error.__cause__ and unwrap(error.__cause__)
        return cause is None or _says_all(cause) or not _code_at(cause)
    if is_of_database(error):
        return _asked_by(error).startswith(_STORES)
    of_models = any(kind.__module__.startswith(_MODELS) for kind in type(error).__mro__)
    return (of_models and status_of(error) is not None) or classify(error) == "retriable"


def _asked_by(error: BaseException) -> str:
    """The module that asked the database that raised an error."""
    found = ""
    for frame, _ in walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__", ""))
        if module.startswith(_DATABASES):
            break
        if module.partition(".")[0] not in sys.stdlib_module_names:
            found = module
    return found


def _code_at(error: BaseException) -> str:
    """The innermost line of an agent's code that an error has passed; empty if there is none."""
    found = ""
    for frame, line in walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] not in _LIBRARIES:
            found = f"{frame.f_code.co_filename}:{line}"
    return found

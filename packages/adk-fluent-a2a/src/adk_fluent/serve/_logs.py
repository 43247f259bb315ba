"""What a server logs of failures: a line where that says all, a traceback where it is a bug."""

from __future__ import annotations

import logging
from typing import Final

from adk_fluent.errors import AdkFluentError, error_parts, unwrap
from adk_fluent.extend import LOG
from adk_fluent.protocol import classify

_DATABASES: Final = ("sqlalchemy", "sqlite3")
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
    status = getattr(error, "code", getattr(error, "status_code", None))  # of a provider of models
    known = isinstance(error, AdkFluentError) or is_of_database(error) or isinstance(status, int)
    return known or classify(error) == "retriable"

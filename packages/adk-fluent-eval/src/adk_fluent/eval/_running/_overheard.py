"""What went wrong in a run, also what ADK's service tells its log alone."""

from __future__ import annotations

import logging
import threading
from contextvars import ContextVar
from typing import Final

from adk_fluent.errors import unwrap

#: What the run of this task raised; empty if nothing.
FAILED: ContextVar[list[BaseException]] = ContextVar("adk_fluent_eval_failed")
#: Metric to why there is no score, in this task.
UNSCORED: ContextVar[dict[str, str]] = ContextVar("adk_fluent_eval_unscored")


def in_full(error: BaseException) -> str:
    """An error as ``Type: message``, whatever its length."""
    error = unwrap(error)
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  # it is the user's error: anything may happen
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class _Overheard(logging.Filter):
    """Takes errors that ADK's service only writes to its log, and keeps them out of it.

    Also where logging is turned off: by level, by ``logging.disable``, or by ``dictConfig``, which
    disables all loggers that are there already unless it is told not to. There is one, for all
    suites that run at a time.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._users = 0
        self._logger = logging.getLogger("google_adk.google.adk.evaluation.local_eval_service")
        self._was_disabled = False

    def __enter__(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._was_disabled = self._logger.disabled
                self._logger.disabled = False
                self._logger.isEnabledFor = self._is_heard
                self._logger.addFilter(self)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                self._logger.removeFilter(self)
                del self._logger.isEnabledFor
                self._logger.disabled = self._was_disabled

    def _is_on(self, level: int) -> bool:
        """Whether the log takes records of a level, but for us."""
        return not self._was_disabled and logging.Logger.isEnabledFor(self._logger, level)

    def _is_heard(self, level: int) -> bool:
        return level >= logging.ERROR or self._is_on(level)

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record goes on to the log."""
        error = record.exc_info[1] if record.exc_info else None
        failed = FAILED.get(None)
        if error is None or failed is None:
            return self._is_on(record.levelno)
        if str(record.msg).startswith("Metric"):
            name = str(record.args[0]) if isinstance(record.args, tuple) and record.args else ""
            UNSCORED.get({})[name] = in_full(error)
        else:
            failed.append(unwrap(error))
        return False


#: Keeps what ADK's service tells its log alone; to be entered around runs.
OVERHEARD: Final = _Overheard()

"""What Gemini, or the way to it, says instead of an answer."""

from __future__ import annotations

from typing import Any, Final

from adk_fluent.cli._keys import credentials, without_keys
from adk_fluent.errors import AdkFluentError

#: By HTTP status: what to do about it.
_HELP: Final = {
    401: "check the key in {key}",
    403: "check that the key in {key} is valid and may use this model",
    404: "check the names of the models",
    429: "wait a minute or take fewer tickets: the quota of the key in {key} is used up",
}
_NETWORK: Final = "check the network"
_BUSY: Final = "try again later"


class NoAnswerError(AdkFluentError, ConnectionError):
    """Nothing that was asked of Gemini was answered."""


def no_answer(what: str, error: BaseException) -> NoAnswerError:
    """The error about something that came to nothing because of `error`.

    Args:
        what: What came to nothing.
        error: What was said instead of an answer.
    """
    return NoAnswerError(
        what, found=said(error), help=f"{_help(error)}; or run it with --offline, without a key"
    )


def said(error: BaseException) -> str:
    """An error without what is said twice in it, and without the key."""
    status, message = _status(error), getattr(error, "message", None)
    if status is None or not isinstance(message, str):
        return without_keys(f"{type(error).__name__}: {error}")
    name: Any = getattr(error, "status", None)
    return without_keys(f"{status} {name}: {message}" if name else f"{status}: {message}")


def _status(error: BaseException) -> int | None:
    """The HTTP status that Google's client tells."""
    code = getattr(error, "code", None)
    return code if isinstance(code, int) else None


def _help(error: BaseException) -> str:
    status = _status(error)
    if status is None:
        return _NETWORK
    if status == 400 and "api key" in said(error).lower():
        status = 401  # so says Gemini of a key that does not exist
    return _HELP.get(status, _BUSY).format(key=credentials())

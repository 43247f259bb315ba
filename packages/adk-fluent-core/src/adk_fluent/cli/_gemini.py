"""What Gemini, or the way to it, says instead of an answer."""

from __future__ import annotations

import re
import traceback
from typing import Any, Final

from adk_fluent.cli._keys import KEYS, credentials, without_keys
from adk_fluent.cli._text import short
from adk_fluent.errors import AdkFluentError, CredentialsError

#: What happened, and what to do about it.
_Reading = tuple[str, str]

_KEY: Final = ("Gemini rejects the key", "check the key in {key}")
_BY_STATUS: Final[dict[int, _Reading]] = {
    401: _KEY,
    403: ("Gemini refuses access", "check that the key in {key} is valid and may use this model"),
    404: ("Gemini does not have this model", "check the names of the models"),
    413: ("the request is too large for Gemini", "send smaller files, or fewer"),
    429: ("Gemini's quota is used up", "wait a minute: the quota of the key in {key} is used up"),
}
_BUSY: Final = ("Gemini cannot answer now", "try again later")
_NETWORK: Final = ("Gemini cannot be reached", "check the network")
_BROKEN: Final = (
    "the answer of Gemini broke off, or cannot be read",
    "try again; if that does not help, something on the way, such as a proxy, may change answers",
)
_REFUSED: Final = ("Gemini refuses the request", "change what it complains about")
_MIME: Final = (
    "Gemini does not take this type of file",
    "convert the file, or say what it is, TYPE/SUBTYPE:PATH, in a new session: this one keeps it",
)
_QUOTA_OF_TICKETS: Final = (
    "wait a minute or take fewer tickets: the quota of the key in {key} is used up"
)

_ABOUT_MIME: Final = re.compile(r"\bmime.?type", re.IGNORECASE)
_ABOUT_KEY: Final = re.compile(r"\bapi.key", re.IGNORECASE)
_UNREADABLE: Final = frozenset(
    {
        "ClientPayloadError",
        "JSONDecodeError",
        "RemoteProtocolError",
        "ServerDisconnectedError",
        "UnknownApiResponseError",
        "ValidationError",
    }
)
_HELP: Final = "help: "
_SHOWN: Final = 300  # characters of what was said


class NoAnswerError(AdkFluentError, ConnectionError):
    """Gemini was asked, and did not answer."""


class RefusedError(AdkFluentError, ValueError):
    """Gemini refuses what it was asked, and will again."""


def no_answer(what: str, error: BaseException) -> NoAnswerError:
    """The error about something that came to nothing because of `error`.

    Args:
        what: What came to nothing.
        error: What was said instead of an answer.
    """
    help = _QUOTA_OF_TICKETS if _status(error) == 429 else _reading(error)[1]
    help = help.format(key=credentials())
    return NoAnswerError(
        what, found=said(error), help=f"{help}; or run it with --offline, without a key"
    )


def explained(error: BaseException) -> AdkFluentError | None:
    """What an error of Gemini's client means; None if it is no such error."""
    kinds = [f"{kind.__module__}." for kind in type(error).__mro__]
    its_own = any(kind.startswith("google.genai.") for kind in kinds)
    if not its_own and not raised_in(error, "google.genai"):
        return None
    if type(error) is ValueError and raised_in(error, "google.genai.client"):
        return CredentialsError(
            "the Gemini client has no credentials",
            found=str(error),
            help=f"set {KEYS[0]}, or give the agent a mock(...)",
        )
    if kinds[0].startswith("google.auth."):
        return CredentialsError(
            "Google Cloud's credentials cannot be used",
            found=said(error),
            help="run gcloud auth application-default login, or set a key instead",
        )
    reading = _reading(error)
    what, help = reading
    error_of = RefusedError if reading in (_REFUSED, _MIME) else NoAnswerError
    notes = getattr(error, "__notes__", ())
    if any(_HELP in note for note in notes) and reading not in (_MIME, _NETWORK):
        return error_of(what, found=said(error))  # it has been said already
    return error_of(what, found=said(error), help=help.format(key=credentials()))


def said(error: BaseException) -> str:
    """An error without what is said twice in it, and without the key."""
    status, message = _status(error), getattr(error, "message", None)
    if status is None or not isinstance(message, str):
        text = f"{type(error).__name__}: {error}"
    else:
        name: Any = getattr(error, "status", None)
        text = f"{status} {name}: {message}" if name else f"{status}: {message}"
    return short(without_keys(text), _SHOWN)


def raised_in(error: BaseException, package: str) -> bool:
    """Whether a module of the package is on the way from where it was raised to here."""
    frames = traceback.walk_tb(error.__traceback__)
    names = (str(frame.f_globals.get("__name__")) for frame, _ in frames)
    return any(f"{name}.".startswith(f"{package}.") for name in names)


def _status(error: BaseException) -> int | None:
    """The HTTP status that Google's client tells."""
    code = getattr(error, "code", None)
    return code if isinstance(code, int) else None


def _reading(error: BaseException) -> _Reading:
    status = _status(error)
    if status is None:
        return _BROKEN if type(error).__name__ in _UNREADABLE else _NETWORK
    if status == 400:
        if _ABOUT_KEY.search(said(error)):
            return _KEY  # so says Gemini of a key that does not exist
        if getattr(error, "status", None) == "INVALID_ARGUMENT":
            return _MIME if _ABOUT_MIME.search(said(error)) else _REFUSED
    return _BY_STATUS.get(status, _BUSY)

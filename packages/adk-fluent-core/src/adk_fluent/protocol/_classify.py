"""Whether an error is worth another try."""

from __future__ import annotations

import math
import re
from datetime import UTC
from json import JSONDecodeError
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from adk_fluent.errors import unwrap

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Whether the same call may succeed later, will fail again, or was ended on purpose.
ErrorKind = Literal["retriable", "permanent", "control"]

#: 408 is not among them: the request itself was too slow, so the same again will be, too.
#: 529 is Anthropic's, for being overloaded.
_RETRIABLE_STATUS: Final = frozenset({429, 500, 502, 503, 504, 529})
#: Errors of connections that do not derive from `ConnectionError` or `TimeoutError`, by the name of
#: the class or a base of it: httpx and httpcore, aiohttp, openai, anthropic and litellm, urllib3,
#: name resolution. Importing a client only to ask would be worse.
_CONNECTION: Final = frozenset(
    {
        "APIConnectionError",
        "ClientConnectionError",
        "ClientPayloadError",
        "NetworkError",
        "NewConnectionError",
        "RemoteProtocolError",
        "TimeoutException",
        "gaierror",
    }
)
#: What JSON that was cut may end with: nothing that is missing, or a part of a word or a number.
_PART: Final = re.compile(
    r"(t|tr|tru|f|fa|fal|fals|n|nu|nul|-|\.|e[+-]?|u[0-9a-f]{0,4})?", re.IGNORECASE
)


def classify(error: BaseException) -> ErrorKind:
    """What to do about an error.

    - ``control``: no failure but control flow (cancellation, Ctrl-C, ADK's interrupts: whatever is
      no `Exception`); never catch it;
    - ``retriable``: too many requests, an overloaded or failing server, a timeout, a lost
      connection, JSON that was cut on its way; the same again may succeed;
    - ``permanent``: everything else; the same again will fail again.

    An error decides by itself with an attribute ``retriable``. A group is as bad as the worst error
    in it. Providers are recognised by the shape of their errors (``code``, ``status_code``,
    ``response.status_code``), not by imports.
    """
    todo: list[BaseException] = [error]
    found: ErrorKind = "retriable"
    while todo:
        each = unwrap(todo.pop())
        if isinstance(each, BaseExceptionGroup):
            todo.extend(each.exceptions)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]  # of anything
            continue
        kind = _classify(each)
        if kind == "control":
            return kind
        if kind == "permanent":
            found = kind
    return found


def _classify(error: BaseException) -> ErrorKind:
    if not isinstance(error, Exception):
        return "control"
    decided = getattr(error, "retriable", None)
    if isinstance(decided, bool):
        return "retriable" if decided else "permanent"
    names = {cls.__name__ for cls in type(error).__mro__}
    # before the status: litellm puts 500 on a connection that never was
    if isinstance(error, TimeoutError | ConnectionError) or not _CONNECTION.isdisjoint(names):
        return "retriable"
    # google-genai raises the error of the JSON itself, or one of its own because of it
    broken = error.__cause__ if "UnknownApiResponseError" in names else error
    if isinstance(broken, JSONDecodeError) and _is_cut(broken):
        return "retriable"
    status = status_of(error)
    if status == 500 and "APIResponseValidationError" in names:
        return "permanent"  # litellm again: there was a response, which a check of its own refused
    return "retriable" if status in _RETRIABLE_STATUS else "permanent"


def _is_cut(broken: JSONDecodeError) -> bool:
    """Whether JSON ends before it is whole; another text that is no JSON stays what it is."""
    rest = broken.doc[broken.pos :].rstrip()
    return broken.msg.startswith("Unterminated string") or bool(_PART.fullmatch(rest))


def status_of(error: BaseException) -> int | None:
    """The HTTP status that an error of a service tells; None if it tells none."""
    if "rcvd" in vars(error):  # of a WebSocket, whose codes are none of HTTP's
        return None
    response = getattr(error, "response", None)
    for value in (
        getattr(error, "code", None),
        getattr(error, "status_code", None),
        getattr(response, "status_code", None),
    ):
        if isinstance(value, int):
            return value
    return None


def retry_after(error: BaseException, now: float) -> float | None:
    """Return the seconds after which a service wants to be asked again; None if it does not say.

    It may say so in the header ``Retry-After``, or in ``google.rpc.RetryInfo``. What is negative,
    infinite or past says nothing.

    Args:
        error: Its error.
        now: Seconds since 1970.
    """
    for seconds in _waits(error, now):
        if 0 <= seconds < math.inf:  # not so nan
            return seconds
    return None


def _waits(error: BaseException, now: float) -> Iterator[float]:
    """What an error says, wherever it does; maybe nonsense."""
    said = getattr(error, "retry_after", None)
    if isinstance(said, int | float) and not isinstance(said, bool):
        yield said
    headers: Any = getattr(getattr(error, "response", None), "headers", None)
    for name in ("retry-after", "Retry-After") if hasattr(headers, "get") else ():
        text = headers.get(name)
        if text is not None:
            yield _seconds(str(text), now)
    delay = _retry_info(getattr(error, "details", None)) if status_of(error) is not None else None
    if delay is not None:
        yield delay


def _seconds(text: str, now: float) -> float:
    """What a header says: seconds, or a date; nan if neither."""
    from email.utils import parsedate_to_datetime  # noqa: PLC0415  # slow to import, seldom needed

    try:
        return float(text)
    except ValueError:
        pass
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return math.nan
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now


def _retry_info(details: Any) -> float | None:
    """What ``google.rpc.RetryInfo`` says, wherever it is in the error's details."""
    waiting: list[Any] = [details]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            fields = cast("dict[str, Any]", each)
            delay = fields.get("retryDelay")
            if isinstance(delay, str) and re.fullmatch(r"\d+(\.\d+)?s", delay):
                return float(delay[:-1])
            waiting.extend(fields.values())
        elif isinstance(each, list):
            waiting.extend(cast("list[Any]", each))
    return None

"""How long a service that refused a call wants to be left alone."""

from __future__ import annotations

import math
import re
import time
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from adk_fluent.protocol._ports import Clock

_HEADER: Final = "retry-after"
_INFO: Final = "RetryInfo"
_SECONDS: Final = re.compile(r"\d+(\.\d+)?", re.ASCII)


def retry_after(error: BaseException, *, clock: Clock | None = None) -> float | None:
    """How long a service's error says to wait before the call is made again.

    Services say so in an attribute ``retry_after`` in seconds, in an HTTP header ``Retry-After`` of
    the error or its ``response``, in seconds or as a date, or in a ``google.rpc.RetryInfo`` among
    the error's ``details``. Clients are recognised by the shape of their errors, not by imports.
    Where an error does not say it, the one that it was raised from may.

    Args:
        error: The error, also as ADK's plugin manager wraps it.
        clock: Tells the time, for dates; the machine's by default.

    Returns:
        Seconds, 0 for a date that has passed; None if it says nothing, or nothing that makes sense.
    """
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        for read in (_own, _of_headers, _of_details):
            try:
                said = read(each, clock)
            except Exception:  # noqa: BLE001, S112  # of whatever shape that is, it says nothing
                continue
            if said is not None:
                return said
        each = each.__cause__
    return None


def _sensible(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _own(error: BaseException, _: Clock | None) -> float | None:
    said = getattr(error, "retry_after", None)
    if isinstance(said, bool) or not isinstance(said, int | float):
        return None
    return _sensible(float(said))


def _of_headers(error: BaseException, clock: Clock | None) -> float | None:
    for holder in (getattr(error, "response", None), error):  # errors of aiohttp have their own
        headers: Any = getattr(holder, "headers", None)
        for name, value in () if headers is None else headers.items():
            if _text(name).lower() == _HEADER:
                return _of_header(_text(value).strip(), clock)
    return None


def _text(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _of_header(text: str, clock: Clock | None) -> float | None:
    """What a header says: seconds, or a date."""
    if _SECONDS.fullmatch(text):
        return _sensible(float(text))
    # slow to import, and only needed for dates
    from calendar import timegm  # noqa: PLC0415
    from email.utils import parsedate_to_datetime  # noqa: PLC0415

    at = timegm(parsedate_to_datetime(text).utctimetuple())  # one without a zone is UTC, too
    return max(0.0, at - (time.time() if clock is None else clock.now()))


def _of_details(error: BaseException, _: Clock | None) -> float | None:
    """What a RetryInfo says, wherever it is in the details."""
    todo: list[Any] = [getattr(error, "details", None)]
    seen: set[int] = set()
    while todo:
        each = todo.pop()
        if id(each) in seen:  # something that holds itself
            continue
        seen.add(id(each))
        if isinstance(each, dict):
            fields = cast("dict[str, Any]", each)
            said = _of_info(fields)
            if said is not None:
                return said
            todo.extend(fields.values())
        elif isinstance(each, list):
            todo.extend(cast("list[Any]", each))
    return None


def _of_info(fields: dict[str, Any]) -> float | None:
    """What one says in protobuf's JSON, as ``3.5s``."""
    delay = fields.get("retryDelay")
    if not isinstance(delay, str) or not str(fields.get("@type", _INFO)).endswith(_INFO):
        return None
    number = delay.removesuffix("s")
    if number == delay or not _SECONDS.fullmatch(number):
        return None
    return _sensible(float(number))

"""How an answer is sent, and how it goes wrong on its way."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adk_fluent._scripts._replies import Fault
    from adk_fluent.testing._gemini._answer import Answer
    from adk_fluent.testing._gemini._http import Response

    #: What goes wrong; after a silence nothing comes any more.
    Trouble = Fault | Literal["silence"]

_SSE: Final = "text/event-stream"
_HTML: Final = "text/html; charset=utf-8"
_PAGE: Final = b"<!DOCTYPE html><html><title>Error</title><p>This page comes from a proxy.</html>"
_BAD_JSON: Final = b'{"candidates": [{]}'


async def send_whole(
    response: Response, answer: Answer, trouble: Trouble | None, headers: Mapping[str, str]
) -> None:
    """Send an answer in one piece.

    Args:
        response: Where to.
        answer: What.
        trouble: What goes wrong.
        headers: Further headers.
    """
    body, status = answer.bodies[0], answer.status
    match trouble:
        case None:
            await response.send(status, body, headers=headers)
        case "disconnect":
            return
        case "silence":
            await asyncio.Event().wait()
        case "cut":
            await response.send(status, body, headers=headers, sent=len(body) // 2)
        case "truncated":
            await response.send(status, body[: len(body) // 2], headers=headers)
        case "bad_json":
            await response.send(status, _BAD_JSON, headers=headers)
        case "html":
            await response.send(status, _PAGE, content_type=_HTML)
        case "empty":
            await response.send(status, b"", headers=headers)


async def send_stream(
    response: Response, answer: Answer, trouble: Trouble | None, *, pause: float, sse: bool
) -> None:
    """Send an answer event by event.

    Args:
        response: Where to.
        answer: What.
        trouble: What goes wrong with the last event.
        pause: Seconds between events.
        sse: As server-sent events; otherwise as a JSON array.
    """
    if trouble in ("disconnect", "html", "empty"):
        await send_whole(response, answer, trouble, {"Content-Type": _SSE})
        return
    await response.begin_stream(_SSE if sse else "application/json; charset=UTF-8")
    events = list(answer.bodies)
    if trouble == "bad_json":
        events[-1] = _BAD_JSON
    *framed, last = _sse(events) if sse else _array(events)
    for event in framed:
        await response.piece(event)
        await asyncio.sleep(pause)
    if trouble == "silence":
        await asyncio.Event().wait()
    await response.piece(last[: len(last) // 2] if trouble in ("cut", "truncated") else last)
    if trouble != "cut":
        await response.end_stream()


def _sse(events: list[bytes]) -> list[bytes]:
    return [b"data: %b\r\n\r\n" % event for event in events]


def _array(events: list[bytes]) -> list[bytes]:
    opened = [b"%b%b" % (b",\r\n" if at else b"[", event) for at, event in enumerate(events)]
    return [*opened[:-1], opened[-1] + b"\r\n]"]

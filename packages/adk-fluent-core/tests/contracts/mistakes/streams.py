"""Answers that are handed on in pieces to what needs them whole, and content nobody takes."""

from __future__ import annotations

from typing import Final

from ._mistake import Mistake

_STREAM: Final = "StreamingRouteConflict"
_CONTENT: Final = "ModalityMismatch"

MISTAKES: Final = (
    Mistake(
        title="a classifier that streams to the route behind it",
        of="intent desk",
        right='.writes("intent")',
        wrong='.writes("intent").stream_to("token")',
        finding=_STREAM,
        at=(("route", "intent"),),
        help='"full"',
    ),
    Mistake(
        title="an agent that streams to the test of the loop around it",
        of="claim auditor",
        right='.writes("answer")',
        wrong='.writes("answer").stream_to("token")',
        finding=_STREAM,
        at=(("audit", "mender"),),
        help='"full"',
    ),
    Mistake(
        title="a judgement in pieces, which a route reads",
        of="marketing agency",
        right='.writes("taste")',
        wrong='.writes("taste").stream_to("chunked", chunk_size=16)',
        finding=_STREAM,
        at=(("route", "taste"),),
        help='"full"',
    ),
    Mistake(
        title="a picture handed on as text",
        of="llm auditor",
        right='.writes("findings")',
        wrong='.writes("findings").produces_modality(Modality.IMAGE)',
        finding=_CONTENT,
        at=(("critic", "findings"),),
        help=".writes(...)",
    ),
)

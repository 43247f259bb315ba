"""Replies of a script in the shapes in which Gemini's REST API gives them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from adk_fluent._scripts._replies import Call, Thought
from adk_fluent._scripts._wire import scripted_error, usage_body
from adk_fluent._words import describe
from adk_fluent.errors import UsageError
from adk_fluent.testing._gemini._http import json_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adk_fluent._scripts._replies import Reply
    from adk_fluent.protocol import Usage
    from adk_fluent.testing._gemini._request import GeminiRequest

#: Why a prompt is blocked; other error codes are reasons for which an answer ends.
_BLOCKED: Final = frozenset(
    {
        "BLOCK_REASON_UNSPECIFIED",
        "SAFETY",
        "OTHER",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "IMAGE_SAFETY",
        "MODEL_ARMOR",
        "JAILBREAK",
    }
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes over the wire.

    Attributes:
        status: The HTTP status.
        bodies: One JSON object, or if it is streamed one an event, as bytes.
    """

    status: int
    bodies: tuple[bytes, ...]


def answer_of(reply: Reply, request: GeminiRequest, status: int | None) -> Answer:
    """The answer that a reply is to a request.

    Args:
        reply: What the script says.
        request: What was asked.
        status: The HTTP status it fails with, if it does.

    Raises:
        UsageError: The reply holds what an emulator does not know.
        TypeError: It holds what JSON does not know.
    """
    code, bodies = _bodies(reply, request, status)
    return Answer(code, tuple(map(json_bytes, bodies)))


def _bodies(
    reply: Reply, request: GeminiRequest, status: int | None
) -> tuple[int, list[dict[str, Any]]]:
    streamed = request.stream
    head = {"modelVersion": request.model, "responseId": f"emulator-{request.number}"}
    if status is not None:
        begun = _pieces((*reply.chunks, ""), reply, head)[:-1] if streamed else []
        return 200 if begun else status, [*begun, scripted_error(reply, status)]
    if reply.error_code is not None:
        return 200, [_reported(reply, head)]
    if streamed:
        parts = (*reply.chunks, *reply.parts[1:]) if reply.chunks else reply.parts
        return 200, _pieces(parts, reply, head)
    return 200, [_candidate(list(map(_part, reply.parts)), reply, head)]


def _pieces(parts: Sequence[Any], reply: Reply, head: dict[str, Any]) -> list[dict[str, Any]]:
    """A body for each part; the last one also says why it ends."""
    made: list[dict[str, Any]] = []
    for at, part in enumerate(parts[:-1], 1):
        body: dict[str, Any] = {"candidates": [_content([_part(part)])]}
        if reply.usage is not None:
            body["usageMetadata"] = usage_body(_so_far(reply.usage, at / len(parts)))
        made.append(body | head)
    return [*made, _candidate([_part(part) for part in parts[-1:]], reply, head)]


def _so_far(usage: Usage, share: float) -> Usage:
    """What was used when a share of the answer is told: each event tells all of it anew."""
    return replace(
        usage,
        output=int(usage.output * share),
        thoughts=int(usage.thoughts * share),
        audio_output=int(usage.audio_output * share),
        image_output=int(usage.image_output * share),
    )


def _candidate(parts: list[dict[str, Any]], reply: Reply, head: dict[str, Any]) -> dict[str, Any]:
    candidate = _content(parts) if parts or reply.finish_reason == "STOP" else {"index": 0}
    ended = candidate | {"finishReason": reply.finish_reason}
    return _with_usage({"candidates": [ended]}, reply) | head


def _reported(reply: Reply, head: dict[str, Any]) -> dict[str, Any]:
    """An error in place of an answer."""
    message, code = reply.error_message, reply.error_code
    if code in _BLOCKED:
        feedback = {"blockReason": code} | ({"blockReasonMessage": message} if message else {})
        return _with_usage({"promptFeedback": feedback}, reply) | head
    ended = {"finishReason": code, "index": 0} | ({"finishMessage": message} if message else {})
    return _with_usage({"candidates": [ended]}, reply) | head


def _with_usage(body: dict[str, Any], reply: Reply) -> dict[str, Any]:
    return body if reply.usage is None else body | {"usageMetadata": usage_body(reply.usage)}


def _content(parts: list[dict[str, Any]]) -> dict[str, Any]:
    content: dict[str, Any] = {"parts": parts} if parts else {}
    return {"content": content | {"role": "model"}, "index": 0}


def _part(part: Any) -> dict[str, Any]:
    match part:
        case str():
            return {"text": part}
        case Thought(text=text):
            return {"text": text, "thought": True}
        case Call(name=name, args=args, id=id):
            call = {"name": name, "args": dict(args)}
            return {"functionCall": call if id is None else call | {"id": id}}
        case _ if type(part).__module__ == "google.genai.types" and type(part).__name__ == "Part":
            return part.model_dump(mode="json", by_alias=True, exclude_none=True)
        case _:
            raise UsageError(
                f"an emulator cannot answer with {describe(part)}",
                help="give a text, Thought, Call, or a genai Part",
            )

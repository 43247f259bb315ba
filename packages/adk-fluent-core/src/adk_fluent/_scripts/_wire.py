"""Errors and token counts as Gemini's REST API tells them, for all that stands in for it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adk_fluent._scripts._replies import Reply
    from adk_fluent.protocol import Usage

#: Google's name of an HTTP status.
STATUS: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
#: What ADK tells every model, in every version.
_NAME: Final = re.compile(r'Your internal name is "([^"]+)"')
_TYPES: Final = "type.googleapis.com/google.rpc."


def agent_name(system: str) -> str | None:
    """The agent that a system instruction was made for."""
    found = _NAME.search(system)
    return found[1] if found else None


def error_body(code: int, message: str, *, details: Sequence[Any] = ()) -> dict[str, Any]:
    """An error in the shape that all of Google's APIs share.

    Args:
        code: The HTTP status.
        message: What is wrong.
        details: Messages of ``google.rpc``, as `retry_info` and `error_info` make them.
    """
    error = {"code": code, "message": message, "status": STATUS.get(code, "UNKNOWN")}
    return {"error": error | ({"details": list(details)} if details else {})}


def scripted_error(reply: Reply, code: int) -> dict[str, Any]:
    """The body of a reply that is an error of this HTTP status."""
    message = reply.error_message or f"scripted {STATUS.get(code, 'UNKNOWN')}"
    details = [] if reply.retry_after is None else [retry_info(reply.retry_after)]
    return error_body(code, message, details=details)


def retry_info(seconds: float) -> dict[str, Any]:
    """When to try again."""
    return {"@type": f"{_TYPES}RetryInfo", "retryDelay": f"{seconds:g}s"}


def error_info(reason: str) -> dict[str, Any]:
    """Why, as a word that programs understand."""
    return {
        "@type": f"{_TYPES}ErrorInfo",
        "reason": reason,
        "domain": "googleapis.com",
        "metadata": {"service": "generativelanguage.googleapis.com"},
    }


def usage_body(usage: Usage) -> dict[str, Any]:
    """The ``usageMetadata`` of a response; counts of nothing are left out, as Gemini does."""
    told = {
        "promptTokenCount": usage.prompt,
        "candidatesTokenCount": usage.output,
        "totalTokenCount": usage.total,
    }
    optional = {
        "cachedContentTokenCount": usage.cached,
        "thoughtsTokenCount": usage.thoughts,
        "toolUsePromptTokenCount": usage.tool,
        "promptTokensDetails": _by_modality(usage.prompt, AUDIO=usage.audio),
        "cacheTokensDetails": _by_modality(usage.cached, AUDIO=usage.cached_audio),
        "candidatesTokensDetails": _by_modality(
            usage.output, AUDIO=usage.audio_output, IMAGE=usage.image_output
        ),
    }
    return told | {name: count for name, count in optional.items() if count}


def _by_modality(total: int, **others: int) -> list[dict[str, Any]]:
    """Tokens by modality; nothing where all of them are text."""
    if not any(others.values()):
        return []
    counts = {"TEXT": total - sum(others.values()), **others}
    return [{"modality": name, "tokenCount": count} for name, count in counts.items() if count]

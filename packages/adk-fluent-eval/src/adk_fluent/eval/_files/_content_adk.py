"""Texts and calls of ADK's contents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.eval._cases._turn import ToolCall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.genai.types import Content, FunctionCall


def text_or_content(content: Content) -> str | Content:
    """Return the text of a Content that is one text and nothing else, or the Content."""
    parts = content.parts or []
    if len(parts) == 1 and parts[0].text:
        held = {name for name in parts[0].model_fields_set if getattr(parts[0], name) is not None}
        if held == {"text"}:
            return parts[0].text
    return content


def answer_text(content: Content | None) -> str:
    """Return the text of an answer, without thoughts."""
    parts = (content.parts if content else None) or []
    return "".join(part.text for part in parts if part.text and not part.thought)


def tool_calls(calls: Sequence[FunctionCall]) -> list[str | ToolCall]:
    """Return calls as a case expects them."""
    return [
        ToolCall(each.name or "", dict(each.args)) if each.args else each.name or ""
        for each in calls
    ]

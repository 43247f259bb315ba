"""What middlewares make of ADK's and genai's objects."""

from __future__ import annotations

from typing import Any

from google.adk.models.llm_response import LlmResponse
from google.genai import types


def content(text: str, role: str = "model") -> types.Content:
    """A text as somebody's."""
    return types.Content(role=role, parts=[types.Part(text=text)])


def says(text: str, **fields: Any) -> LlmResponse:
    """A text as the answer of a model, with further fields of a response."""
    return LlmResponse(content=content(text), **fields)

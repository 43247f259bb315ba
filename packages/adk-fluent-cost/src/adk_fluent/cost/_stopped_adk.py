"""What is answered where a model may not be called."""

from __future__ import annotations

from google.adk.models.llm_response import LlmResponse
from google.genai import types

from adk_fluent.cost._requests import STOPPED
from adk_fluent.protocol import ModelReply


def stopped(code: str, message: str, by: str) -> ModelReply:
    """Return an error in the place of a model's answer, which took no tokens.

    Args:
        code: The error's code.
        message: The error's message.
        by: The budget; ``custom_metadata["adk_fluent_stopped"]`` names it.
    """
    nothing = types.GenerateContentResponseUsageMetadata(
        prompt_token_count=0, candidates_token_count=0, total_token_count=0
    )
    response = LlmResponse(
        error_code=code,
        error_message=message,
        usage_metadata=nothing,
        custom_metadata={STOPPED: by},
    )
    return ModelReply([response])

"""What is said where a model may not be called."""

from __future__ import annotations

from google.genai import types

from adk_fluent.middleware._adk import says
from adk_fluent.protocol import ModelReply


def stopped(message: str, by: str) -> ModelReply:
    """An answer in the place of a model's, which took no tokens.

    Args:
        message: The answer.
        by: The middleware that says so; ``custom_metadata["adk_fluent_stopped"]`` names it.
    """
    nothing = types.GenerateContentResponseUsageMetadata(
        prompt_token_count=0, candidates_token_count=0, total_token_count=0
    )
    metadata = {"adk_fluent_stopped": by}
    return ModelReply([says(message, custom_metadata=metadata, usage_metadata=nothing)])

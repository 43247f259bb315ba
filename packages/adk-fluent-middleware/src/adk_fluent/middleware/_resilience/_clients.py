"""What the clients of models do by themselves."""

from __future__ import annotations

from typing import Any


def own_attempts(model: Any) -> int:
    """How often the client of a model makes a call by itself, at most."""
    options = getattr(model, "retry_options", None)  # of ADK's Gemini
    if options is not None:
        return getattr(options, "attempts", None) or 5  # what google-genai does when it is not said
    more: dict[str, Any] | None = getattr(model, "_additional_args", None)  # of ADK's LiteLlm
    return 1 + int((more or {}).get("num_retries") or 0)

"""What depends on the version of ADK: who measures model calls."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from google.adk.models.google_llm import Gemini


@cache
def _measures() -> bool:
    """Whether ADK measures model calls itself, as 2.x does."""
    try:
        metrics = import_module("google.adk.telemetry._metrics")
    except ImportError:
        return False
    return hasattr(metrics, "record_client_token_usage")


def is_measured_elsewhere(model: Any) -> bool:
    """Whether somebody measures the calls of a model: ADK, or the instrumentation of Gemini."""
    if _measures():
        return True
    tracing = import_module("google.adk.telemetry.tracing")
    asked = getattr(tracing, "_instrumented_with_opentelemetry_instrumentation_google_genai", None)
    return isinstance(model, Gemini) and asked is not None and bool(asked())


def provider_of(model: Any) -> str:
    """Who provides a model, in OpenTelemetry's words."""
    if isinstance(model, Gemini):
        return "gcp.gemini"
    return type(model).__name__.lower()

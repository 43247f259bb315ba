"""Personal data: what finds it, what replaces it, and the middleware that does both."""

from __future__ import annotations

from adk_fluent.middleware._pii._finding import Detector, Finding, Scope
from adk_fluent.middleware._pii._middleware import Kind, PIIFilterMiddleware, pii_filter
from adk_fluent.middleware._pii._presidio import PresidioDetector, presidio
from adk_fluent.middleware._pii._strategies import Strategy

__all__ = [
    "Detector",
    "Finding",
    "Kind",
    "PIIFilterMiddleware",
    "PresidioDetector",
    "Scope",
    "Strategy",
    "pii_filter",
    "presidio",
]

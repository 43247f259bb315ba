"""The Gemini REST API on loopback; see `GeminiEmulator`."""

from __future__ import annotations

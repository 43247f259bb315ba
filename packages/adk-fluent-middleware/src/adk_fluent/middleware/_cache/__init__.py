"""Answers of models, kept and given again."""

from __future__ import annotations

from adk_fluent.middleware._cache._disk import DiskStore
from adk_fluent.middleware._cache._memory import MemoryStore
from adk_fluent.middleware._cache._middleware import CacheMiddleware, CacheStats, cache
from adk_fluent.middleware._cache._store import CacheStore

__all__ = ["CacheMiddleware", "CacheStats", "CacheStore", "DiskStore", "MemoryStore", "cache"]

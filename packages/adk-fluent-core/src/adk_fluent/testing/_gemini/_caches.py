"""Cached contents: what ADK's context caching makes and uses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from adk_fluent._scripts._script import prompt_tokens
from adk_fluent.testing._gemini._http import RefusedError
from adk_fluent.testing._gemini._request import field

if TYPE_CHECKING:
    from adk_fluent.testing._gemini._request import GeminiRequest

NOT_FOUND: Final = "CachedContent not found (or permission denied)"
_TTL: Final = 3600.0  # seconds, where none are asked for


class Caches:
    """What was cached so far, by name."""

    def __init__(self) -> None:
        self._bodies: dict[str, dict[str, Any]] = {}
        self._resources: dict[str, dict[str, Any]] = {}
        self._made = 0

    def find(self, name: str) -> dict[str, Any] | None:
        """What a cached content was made with; None if there is none of that name."""
        return self._bodies.get(name)

    def create(self, request: GeminiRequest) -> dict[str, Any]:
        """Make one."""
        body = request.body or {}
        name = f"cachedContents/{self._made}"
        self._made += 1
        now = datetime.now(UTC)
        self._bodies[name] = body
        self._resources[name] = {
            "name": name,
            "model": body.get("model"),
            "createTime": _time(now),
            "updateTime": _time(now),
            "expireTime": _time(now + timedelta(seconds=_seconds(field(body, "ttl")))),
            "usageMetadata": {"totalTokenCount": prompt_tokens(request.asked)},
        }
        return self._resources[name]

    def get(self, name: str) -> dict[str, Any]:
        """What is told of one.

        Raises:
            RefusedError: There is none of that name.
        """
        if name not in self._bodies:
            raise RefusedError(403, NOT_FOUND)
        return self._resources[name]

    def delete(self, name: str) -> dict[str, Any]:
        """Forget one.

        Raises:
            RefusedError: There is none of that name.
        """
        self.get(name)
        del self._bodies[name]
        return {}


def _seconds(ttl: Any) -> float:
    try:
        return min(max(float(str(ttl or _TTL).removesuffix("s")), 0.0), 1e9)
    except ValueError:
        raise RefusedError(400, "Invalid value at 'cached_content.ttl'") from None


def _time(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")

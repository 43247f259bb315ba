"""What DBOS keeps, as JSON. Its default is pickle: who writes the database would run code."""

from __future__ import annotations

import json
from typing import Any

from dbos import Serializer


class JsonSerializer(Serializer):
    """Writes calls and results as JSON, and an error as its type and text."""

    def name(self) -> str:
        """The name that stands beside every value."""
        return "adk_fluent_json"

    def serialize(self, data: Any) -> str:
        """Write a value.

        Raises:
            TypeError: JSON cannot hold it.
        """
        if isinstance(data, BaseException):
            data = {"error": type(data).__name__, "message": str(data)}
        return json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))

    def deserialize(self, serialized_data: str) -> Any:
        """Read a value."""
        return json.loads(serialized_data)

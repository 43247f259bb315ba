"""What IR is compiled to and runs on. A backend is imported when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adk_fluent.backends.adk import ADKBackend
else:

    def __getattr__(name: str) -> Any:
        if name == "ADKBackend":
            from adk_fluent.backends.adk import ADKBackend  # noqa: PLC0415  # imports ADK

            return ADKBackend
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["ADKBackend"]

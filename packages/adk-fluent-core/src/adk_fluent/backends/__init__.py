"""What IR is compiled to and runs on. A backend is imported when it is first used.

A layer adds rules and passes with tables of the same shapes as a backend's own: `RuleTable`,
`ValueTable` and `PassList`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent.backends._tables import (
    Kind,
    Pass,
    PassList,
    Rule,
    RuleTable,
    ValueRule,
    ValueTable,
)

if TYPE_CHECKING:
    from adk_fluent.backends.adk import ADKBackend
else:

    def __getattr__(name: str) -> Any:
        if name == "ADKBackend":
            from adk_fluent.backends.adk import ADKBackend  # noqa: PLC0415  # imports ADK

            return ADKBackend
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "ADKBackend",
    "Kind",
    "Pass",
    "PassList",
    "Rule",
    "RuleTable",
    "ValueRule",
    "ValueTable",
]

"""Typed session state: what ADK keeps, declared once, and checked where it is read and written.

Pydantic is imported when the first value needs it, ADK when something of it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.errors import StateKeyError, StateTypeError
from adk_fluent.state._errors import (
    SchemaCompositionError,
    SchemaError,
    SchemaUpgradeError,
    StateConflictError,
    UnstorableStateError,
)
from adk_fluent.state._field import field
from adk_fluent.state._reduce import Reduce
from adk_fluent.state._ref import AppScoped, SessionScoped, StateFieldRef, Temp, UserScoped
from adk_fluent.state._schema import StateSchema
from adk_fluent.state._tool import tool

if TYPE_CHECKING:
    from adk_fluent.state._service_adk import SchemaSessionService
else:  # a type checker must see a misspelt name, not Any

    def __getattr__(name: str) -> object:
        if name == "SchemaSessionService":  # imports ADK
            from adk_fluent.state._service_adk import SchemaSessionService  # noqa: PLC0415

            globals()[name] = SchemaSessionService
            return SchemaSessionService
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "AppScoped",
    "Reduce",
    "SchemaCompositionError",
    "SchemaError",
    "SchemaSessionService",
    "SchemaUpgradeError",
    "SessionScoped",
    "StateConflictError",
    "StateFieldRef",
    "StateKeyError",
    "StateSchema",
    "StateTypeError",
    "Temp",
    "UnstorableStateError",
    "UserScoped",
    "field",
    "tool",
]

"""The names that ``adk_fluent`` itself exports, in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.builders import (
    Agent,
    Fallback,
    FanOut,
    Loop,
    Pipeline,
    Preset,
    RemoteAgent,
    Resource,
    Route,
    S,
    agent,
    effects,
    expect,
    gate,
    map_over,
    race,
    tap,
    timeout,
    transfer,
    until,
)
from adk_fluent.errors import ModelRetry

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from adk_fluent.protocol import Layer


def injected(name: str) -> Any:
    """The resource of that name, for code that none can be handed to, such as a middleware.

    Args:
        name: What it is injected as; see `Resource`.

    Raises:
        UsageError: No pipeline runs here, or it has no such resource.
    """
    from adk_fluent.backends import _resources  # noqa: PLC0415  # keeps the import of adk_fluent light

    return _resources.injected(name)


def layers() -> Mapping[str, Layer]:
    """Return the installed layers by name.

    One that is broken raises `LayerError` when it is read, and disturbs no other.
    """
    from adk_fluent import _registry  # noqa: PLC0415  # keeps the import of adk_fluent light

    return _registry.layers()


__all__ = [
    "Agent",
    "Fallback",
    "FanOut",
    "Loop",
    "ModelRetry",
    "Pipeline",
    "Preset",
    "RemoteAgent",
    "Resource",
    "Route",
    "S",
    "agent",
    "effects",
    "expect",
    "gate",
    "injected",
    "layers",
    "map_over",
    "race",
    "tap",
    "timeout",
    "transfer",
    "until",
]

"""Fluent, typed agents for Google's Agent Development Kit."""

from __future__ import annotations

from pkgutil import extend_path
from typing import TYPE_CHECKING

__path__ = extend_path(__path__, __name__)  # the other wheels add their subpackages here

from adk_fluent import _layers

_layers.install()

from adk_fluent._public import (  # noqa: E402  # the import hints must be in place first
    Agent,
    Fallback,
    FanOut,
    Loop,
    ModelRetry,
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
    injected,
    layers,
    map_over,
    race,
    tap,
    timeout,
    transfer,
    until,
)

if TYPE_CHECKING:
    from adk_fluent.protocol import Middleware as Middleware  # slow to import, seldom derived from

    __version__: str
else:  # a type checker must see a misspelt name, not Any

    def __getattr__(name: str) -> object:
        """The version, or a public name of another wheel, or an error that names that wheel."""
        if name == "__version__":
            from adk_fluent._version import core_version  # noqa: PLC0415  # 15 ms, seldom needed

            return core_version()
        if name == "Middleware":
            from adk_fluent.protocol import Middleware  # noqa: PLC0415

            return Middleware
        from adk_fluent._registry import resolve_name  # noqa: PLC0415  # keeps the import light

        return resolve_name(name, __name__, __all__)


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

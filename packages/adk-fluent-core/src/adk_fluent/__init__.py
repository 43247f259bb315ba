"""Fluent, typed agents for Google's Agent Development Kit."""

from __future__ import annotations

from pkgutil import extend_path
from typing import TYPE_CHECKING

__path__ = extend_path(__path__, __name__)  # the other wheels add their subpackages here

from adk_fluent import _layers

_layers.install()

if TYPE_CHECKING:
    from adk_fluent._public import (
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
    from adk_fluent.protocol import Middleware as Middleware  # not in __all__: seldom derived from

    __version__: str

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

if not TYPE_CHECKING:  # a type checker must see a misspelt name, not Any
    from importlib import import_module

    from adk_fluent._lazy import lazy_names

    #: Core's own parts: `from adk_fluent import ir` asks here first, and looking in layers is slow.
    _PARTS = frozenset(
        {
            *("backends", "builders", "cli", "config", "contracts", "errors"),
            *("extend", "flow", "ir", "protocol", "testing"),
        }
    )
    # each is imported when it is first used: a part, such as adk_fluent.ir, needs not all
    _find = lazy_names(__name__, {"_public": " ".join(__all__), "protocol": "Middleware"})

    def __getattr__(name: str) -> object:
        """The version, a part, a public name also of another wheel, or an error that says which."""
        if name == "__version__":
            from adk_fluent._version import core_version  # noqa: PLC0415  # 15 ms, seldom needed

            return core_version()
        if name in _PARTS:
            return import_module(f"{__name__}.{name}")
        return _find(name)

"""Builders: what users write pipelines with.

Everything here makes IR (`adk_fluent.ir`) and nothing else; the backends turn that into something
that runs. The names most programs need are also in `adk_fluent` itself.
"""

from __future__ import annotations

from adk_fluent.builders._agent import Agent
from adk_fluent.builders._base import BuilderBase
from adk_fluent.builders._explain import explain
from adk_fluent.builders._flow import Builder, Fallback, FanOut, Loop, Pipeline, Race
from adk_fluent.builders._primitives import (
    Expect,
    MapOver,
    Tap,
    Timeout,
    expect,
    map_over,
    race,
    tap,
    timeout,
)
from adk_fluent.builders._resources import Resource
from adk_fluent.builders._route import Route
from adk_fluent.builders._running import RunOptions
from adk_fluent.builders._types import State
from adk_fluent.builders._until import Until, until

__all__ = [
    "Agent",
    "Builder",
    "BuilderBase",
    "Expect",
    "Fallback",
    "FanOut",
    "Loop",
    "MapOver",
    "Pipeline",
    "Race",
    "Resource",
    "Route",
    "RunOptions",
    "State",
    "Tap",
    "Timeout",
    "Until",
    "expect",
    "explain",
    "map_over",
    "race",
    "tap",
    "timeout",
    "until",
]

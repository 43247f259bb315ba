"""Builders: what users write pipelines with.

Everything here makes IR (`adk_fluent.ir`) and nothing else; the backends turn that into something
that runs. The names most programs need are also in `adk_fluent` itself.
"""

from __future__ import annotations

from adk_fluent.builders._agent import Agent
from adk_fluent.builders._base import BuilderBase
from adk_fluent.builders._explain import explain
from adk_fluent.builders._flow import Builder, Fallback, FanOut, Loop, Pipeline, Race
from adk_fluent.builders._presets import Preset, agent
from adk_fluent.builders._primitives import (
    Expect,
    MapOver,
    Tap,
    Timeout,
    Transfer,
    expect,
    map_over,
    race,
    tap,
    timeout,
    transfer,
)
from adk_fluent.builders._remote import RemoteAgent
from adk_fluent.builders._resources import Resource
from adk_fluent.builders._route import Route
from adk_fluent.builders._running import RunOptions
from adk_fluent.builders._transforms import Compute, S, ScopedTransforms, StateTransforms, Transform
from adk_fluent.builders._types import State
from adk_fluent.builders._until import Until, until

__all__ = [
    "Agent",
    "Builder",
    "BuilderBase",
    "Compute",
    "Expect",
    "Fallback",
    "FanOut",
    "Loop",
    "MapOver",
    "Pipeline",
    "Preset",
    "Race",
    "RemoteAgent",
    "Resource",
    "Route",
    "RunOptions",
    "S",
    "ScopedTransforms",
    "State",
    "StateTransforms",
    "Tap",
    "Timeout",
    "Transfer",
    "Transform",
    "Until",
    "agent",
    "expect",
    "explain",
    "map_over",
    "race",
    "tap",
    "timeout",
    "transfer",
    "until",
]

"""Builders: what users write pipelines with.

Everything here makes IR (`adk_fluent.ir`) and nothing else; the backends turn that into something
that runs. The names most programs need are also in `adk_fluent` itself.
"""

from __future__ import annotations

from adk_fluent.builders._agent import Agent, Preset
from adk_fluent.builders._base import AgentLike, Branches, BuilderBase, StepLike
from adk_fluent.builders._decorator import agent
from adk_fluent.builders._effects import effects
from adk_fluent.builders._explain import explain
from adk_fluent.builders._flow import Builder, Fallback, FanOut, Loop, Pipeline, Race
from adk_fluent.builders._gates import Gate, gate
from adk_fluent.builders._preset_settings import PresetSettings
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
from adk_fluent.builders._remote import RemoteAgent, RemoteOptions
from adk_fluent.builders._resources import Resource
from adk_fluent.builders._route import Route
from adk_fluent.builders._running import CardOptions, RunOptions
from adk_fluent.builders._transforms import Compute, S, ScopedTransforms, StateTransforms, Transform
from adk_fluent.builders._types import (
    AgentFunction,
    Callback,
    Callbacks,
    InstructionProvider,
    JsonValue,
    KeyLike,
    Message,
    MessagePart,
    MockReplies,
    MockReply,
    ModelLike,
    PredicateFunction,
    PredicateLike,
    Schema,
    State,
    StateFunction,
    StepFunction,
    TapFunction,
    ToolLike,
    ValueFunction,
    ValuesFunction,
    Via,
)
from adk_fluent.builders._until import Until, until

__all__ = [
    "Agent",
    "AgentFunction",
    "AgentLike",
    "Branches",
    "Builder",
    "BuilderBase",
    "Callback",
    "Callbacks",
    "CardOptions",
    "Compute",
    "Expect",
    "Fallback",
    "FanOut",
    "Gate",
    "InstructionProvider",
    "JsonValue",
    "KeyLike",
    "Loop",
    "MapOver",
    "Message",
    "MessagePart",
    "MockReplies",
    "MockReply",
    "ModelLike",
    "Pipeline",
    "PredicateFunction",
    "PredicateLike",
    "Preset",
    "PresetSettings",
    "Race",
    "RemoteAgent",
    "RemoteOptions",
    "Resource",
    "Route",
    "RunOptions",
    "S",
    "Schema",
    "ScopedTransforms",
    "State",
    "StateFunction",
    "StateTransforms",
    "StepFunction",
    "StepLike",
    "Tap",
    "TapFunction",
    "Timeout",
    "ToolLike",
    "Transfer",
    "Transform",
    "Until",
    "ValueFunction",
    "ValuesFunction",
    "Via",
    "agent",
    "effects",
    "expect",
    "explain",
    "gate",
    "map_over",
    "race",
    "tap",
    "timeout",
    "transfer",
    "until",
]

"""Programs about configuration, and what other wheels bring, or later versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.builders import Agent, Pipeline, RemoteAgent
from adk_fluent.config import ExecutionConfig, TelemetryConfig
from adk_fluent.ir import ModelCandidate
from adk_fluent.testing.conformance._case import case
from adk_fluent.testing.conformance._program import Raised

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.testing.conformance._program import Program


def configured() -> Iterator[Program]:
    """What the configuration asks for."""
    yield case(
        "model calls/no more than the configuration allows",
        "model calls",
        lambda p: Pipeline("root", p.agent("a", writes="k"), p.agent("b"), p.agent("c")),
        end={"k": "A"},
        calls=("a",),
        events=("s0 a 'A' {'k': 'A'}",),
        raises=Raised(""),
        config=ExecutionConfig(max_llm_calls=1),
    )
    for what, config in (
        ("live", ExecutionConfig(streaming_mode="bidi")),
        ("workflow target", ExecutionConfig(target="workflow")),
        ("telemetry", ExecutionConfig(telemetry=TelemetryConfig())),
    ):
        yield case(
            f"configuration/{what}",
            what,
            lambda p: Pipeline("root", p.agent("a")),
            text="A",
            calls=("a",),
            events=("s0 a 'A'",),
            config=config,
        )


def of_layers() -> Iterator[Program]:
    """What other wheels bring, or later versions."""
    yield case(
        "layer/chunks flow between steps",
        "streaming edge",
        lambda p: p.agent("a").stream_to("chunked", chunk_size=1) >> p.agent("z"),
        text="Z",
        calls=("a", "z"),
        events=("s0 a 'A'", "s1 z 'Z'"),
    )
    yield case(
        "layer/a remote agent",
        "remote agent",
        lambda p: (
            RemoteAgent("r", endpoint="http://127.0.0.1:9/a2a", fallback=p.agent("b"))
            >> p.agent("z")
        ),
        text="Z",
        calls=("b", "z"),
        events=("s0.f1 b 'B'", "s1 z 'Z'"),
    )
    yield case(
        "layer/a model that is chosen at run time",
        "model choice",
        lambda _: Pipeline(
            "root",
            Agent("a").instruct("Speak.").model_select(candidates=[ModelCandidate("m")]),
        ),
        text="A",
        events=("s0 a 'A'",),
    )

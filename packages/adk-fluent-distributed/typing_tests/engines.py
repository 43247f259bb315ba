"""What type checkers know about engines, plans and runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_type

from adk_fluent import Agent
from adk_fluent.distributed import (
    DbosEngine,
    EngineCapabilities,
    InlineEngine,
    RunStatus,
    ScalingConfig,
    SegmentEngine,
    SegmentPlan,
    idempotency_key,
    split,
)
from adk_fluent.protocol import Pending, RunResult

pipeline = Agent("a") >> Agent("b").execution_boundary(scaling=ScalingConfig(max_instances=2))
assert_type(split(pipeline), SegmentPlan)
assert_type(split(pipeline.to_ir()).names, tuple[str, ...])
assert_type(idempotency_key("mail"), str)


async def use(engine: SegmentEngine) -> None:
    assert_type(engine.capabilities, EngineCapabilities)
    assert_type(await engine.run(pipeline, "Go.", run_id="r", state={"n": 1}), RunResult)
    stands = await engine.submit(pipeline, "Go.")
    assert_type(stands, RunStatus)
    assert_type(stands.pending, tuple[Pending, ...])
    assert_type(stands.state, Mapping[str, Any])
    await engine.answer("r", stands.pending[0].answer(True))
    await engine.answer("r", True)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def engines() -> None:
    await use(InlineEngine())
    async with DbosEngine("sqlite:///runs.sqlite") as engine:
        assert_type(engine, DbosEngine)
        await use(engine)
    DbosEngine(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    split(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

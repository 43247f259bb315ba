"""Runs a pipeline on ADK as a case says. Importing this imports google.adk."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Literal

from google.adk.sessions.in_memory_session_service import InMemorySessionService

from adk_fluent.ir import ExecutionConfig, Ref
from adk_fluent.testing import ScriptedModel

from ._case import Case, script

if TYPE_CHECKING:
    from adk_fluent.builders import Builder
    from adk_fluent.protocol import RunResult
    from adk_fluent.testing import Asked, Reply


async def play(
    case: Case, pipeline: Builder, contracts: Literal["error", "off"] = "error"
) -> tuple[RunResult, Counter[str]]:
    """Run a pipeline with the message, replies and answers of a case.

    Args:
        case: The case.
        pipeline: Its pipeline, or one like it.
        contracts: Whether it is checked before.

    Returns:
        What came of it, and how often each agent asked its model.
    """
    scripts = {agent: script(replies) for agent, replies in case.replies.items()}
    asked_of = Counter[str]()

    async def answer(asked: Asked) -> Reply:
        assert asked.agent is not None
        asked_of[asked.agent] += 1
        return await scripts[asked.agent].answer(asked)

    model = Ref.to(ScriptedModel(default=answer))
    config = ExecutionConfig(default_model=model, contracts=contracts)
    options: dict[str, Any] = {"config": config, "session_service": InMemorySessionService()}
    ran = await pipeline.run(case.message, state=case.state, **options)
    for given in case.answers:
        [pending] = ran.pending
        ran = await pipeline.resume(pending.answer(given), session_id=ran.session_id, **options)
    return ran, asked_of

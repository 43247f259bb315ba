"""Correct pipelines, run on ADK: each goes the way it is made for and ends as it must."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from corpus import CASES, Case, count, script
from google.adk.sessions.in_memory_session_service import InMemorySessionService

from adk_fluent.ir import ExecutionConfig, Ref
from adk_fluent.testing import ScriptedModel

if TYPE_CHECKING:
    from adk_fluent.testing import Asked, Reply

pytestmark = [pytest.mark.adk, pytest.mark.filterwarnings("ignore:.EXPERIMENTAL")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_correct_pipeline_runs(case: Case) -> None:
    scripts = {agent: script(replies) for agent, replies in case.replies.items()}
    asked_of = Counter[str]()

    async def answer(asked: Asked) -> Reply:
        assert asked.agent is not None
        asked_of[asked.agent] += 1
        return await scripts[asked.agent].answer(asked)

    config = ExecutionConfig(default_model=Ref.to(ScriptedModel(default=answer)))
    options: dict[str, Any] = {"config": config, "session_service": InMemorySessionService()}
    pipeline, answers = case.pipeline(), list(case.answers)
    ran = await pipeline.run(case.message, state=case.state, **options)
    while ran.pending:
        [asked] = ran.pending
        answered = asked.answer(answers.pop(0))
        ran = await pipeline.resume(answered, session_id=ran.session_id, **options)
    assert ran.errors == []
    assert answers == []
    assert asked_of == {agent: count(replies) for agent, replies in case.replies.items()}
    if case.text is not None:
        assert ran.text == case.text
    assert {key: ran.state.get(key) for key in case.after} == case.after

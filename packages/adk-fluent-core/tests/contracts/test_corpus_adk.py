"""Correct pipelines, run on ADK: each goes the way it is made for and ends as it must."""

from __future__ import annotations

import pytest
from corpus import CASES, Case, count
from corpus.play_adk import play

pytestmark = [pytest.mark.adk, pytest.mark.filterwarnings("ignore:.EXPERIMENTAL")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_correct_pipeline_runs(case: Case) -> None:
    ran, asked_of = await play(case, case.pipeline())
    assert (ran.errors, ran.pending) == ([], [])
    assert asked_of == {agent: count(replies) for agent, replies in case.replies.items()}
    if case.text is not None:
        assert ran.text == case.text
    assert {key: ran.state.get(key) for key in case.after} == case.after

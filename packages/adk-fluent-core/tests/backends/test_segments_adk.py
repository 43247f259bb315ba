"""A compiled segment does its own steps and stops, at a position, before those of others."""

from __future__ import annotations

from typing import Any

import pytest

from adk_fluent import Agent, gate
from adk_fluent.backends.adk import ADKBackend
from adk_fluent.builders import Pipeline, State
from adk_fluent.errors import SessionError
from adk_fluent.extend import DURABLE_RUN, DurableRun, current_step, effect_key
from adk_fluent.protocol import Resume

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
]
IDS: Any = {"user_id": "ann", "session_id": "s"}


async def test_a_run_stops_at_a_boundary_and_goes_on_in_its_segment() -> None:
    heavy = Agent("b").mock("B").writes("b").execution_boundary()
    node = (Agent("a").mock("A") >> heavy >> Agent("c").mock("C")).to_ir()
    backend = ADKBackend()
    outer = backend.compile_segment(node, segment="")
    inner = backend.compile_segment(node, segment="b")
    assert outer.config.resumable

    assert [e.node for e in await backend.run(outer, "Go.", **IDS)] == ["a"]
    entry = (await backend.recall(inner, **IDS)).entry
    assert entry is not None
    assert (entry.status, entry.segments) == ("boundary", ("b",))
    assert [e.node for e in await backend.run(outer, Resume(()), **IDS)] == []  # not its own
    assert [e.node for e in await backend.run(inner, Resume(()), **IDS)] == ["b"]
    entry = (await backend.recall(outer, **IDS)).entry
    assert entry is not None
    assert entry.segments == ("",)
    assert (await backend.run(outer, Resume(()), **IDS)).text == "C"
    assert (await backend.recall(outer, **IDS)).entry is None
    told = (await backend.recall(outer, **IDS)).result()
    assert ([e.node for e in told], told.text, told.state) == (["a", "b", "c"], "C", {"b": "B"})
    with pytest.raises(SessionError, match="there is no session"):
        await backend.recall(outer, session_id="other")


async def test_predicates_are_asked_in_the_segment_of_their_step() -> None:
    asked: list[str] = []

    def at_most_two(state: State) -> bool:
        asked.append("until")
        return state["n"] >= 2

    def bump(state: State) -> dict[str, object]:
        return {"n": (state.get("n") or 0) + 1}

    from adk_fluent.builders import until  # beside its only use

    body = Pipeline("b", Agent("x").mock("X"), bump).execution_boundary()
    node = (body * until(at_most_two, max=5)).to_ir()
    backend = ADKBackend()
    outer, inner = (
        backend.compile_segment(node, segment=""),
        backend.compile_segment(node, segment="b"),
    )
    await backend.run(outer, "Go.", **IDS)
    for turn in range(1, 3):
        await backend.run(inner, Resume(()), **IDS)
        assert len(asked) == turn - 1
        await backend.run(outer, Resume(()), **IDS)
        assert len(asked) == turn
    assert (await backend.recall(outer, **IDS)).entry is None


async def test_an_open_question_sends_a_run_nowhere() -> None:
    node = (gate(message="Sure?", name="g").execution_boundary() >> Agent("c").mock("C")).to_ir()
    backend = ADKBackend()
    outer, inner = (
        backend.compile_segment(node, segment=""),
        backend.compile_segment(node, segment="g"),
    )
    await backend.run(outer, "Go.", **IDS)
    asked = await backend.run(inner, Resume(()), **IDS)
    entry = (await backend.recall(outer, **IDS)).entry
    assert entry is not None
    assert (entry.status, entry.segments) == ("waiting", ())
    # the answer is taken where it arrives, and used where the gate stands
    await backend.run(outer, Resume((asked.pending[0].answer(True),)), **IDS)
    entry = (await backend.recall(outer, **IDS)).entry
    assert entry is not None
    assert (entry.status, entry.segments) == ("boundary", ("g",))
    await backend.run(inner, Resume(()), **IDS)
    assert (await backend.run(outer, Resume(()), **IDS)).text == "C"
    assert (await backend.recall(outer, **IDS)).result().pending == []


async def test_without_segments_boundaries_are_plain_steps() -> None:
    pipeline = Agent("a").mock("A") >> Agent("b").mock("B").execution_boundary()
    assert (await pipeline.run("Go.")).text == "B"


async def test_a_step_of_a_durable_run_has_a_key() -> None:
    keys: list[str | None] = []

    def look(state: State) -> None:
        keys.append(effect_key())

    pipeline = Agent("a").mock("A") >> Pipeline("far", look, look).execution_boundary() >> look
    await pipeline.run("Go.")
    here = DURABLE_RUN.set(DurableRun("r", "job", 2))
    try:
        assert effect_key() is None
        await pipeline.run("Go.")
    finally:
        DURABLE_RUN.reset(here)
    assert keys[:3] == [None, None, None]
    assert keys[3:] == ["r:far:s1.s0/look", "r:far:s1.s1/look", "r:job:s2/look"]
    assert not DurableRun("r", "job").is_left()


async def test_code_knows_the_step_it_runs_in() -> None:
    seen: list[Any] = []

    def look(state: State) -> None:
        seen.append(current_step())

    assert current_step() is None
    nested = Agent("boss").mock("Fine.")
    await (nested >> Pipeline("p", look, look) * 2).run("Go.")
    assert [tuple(each) for each in seen if each is not None] == [
        ("s1.l0.s0", "look", ""),
        ("s1.l0.s1", "look", ""),
        ("s1.l1.s0", "look", ""),
        ("s1.l1.s1", "look", ""),
    ]
    assert current_step() is None

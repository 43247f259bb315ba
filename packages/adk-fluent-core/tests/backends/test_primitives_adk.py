"""race, map_over, timeout, tap, expect and transfer on ADK: run, streamed, by ADK's own Runner."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from adk_programs import by_runner
from google.adk.agents.run_config import RunConfig

from adk_fluent import Agent, Route, S, expect, map_over, race, tap, timeout, transfer, until
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import ExpectationError, StepTimeoutError
from adk_fluent.testing import mock_backend, reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.builders import Builder, State

pytestmark = [
    pytest.mark.adk,
    # ADK 2.x says so of agents that can hand over to each other, whatever app they are in
    pytest.mark.filterwarnings("ignore:.*context_cache_config"),
]
STREAMED = ExecutionConfig(streaming_mode="sse")
SEEN: list[dict[str, Any]] = []


def says(name: str, *chunks: str, latency: float = 0) -> Agent:
    """An agent that writes what it says, in chunks when it is streamed."""
    return Agent(name).mock(lambda _: reply(*chunks, latency=latency)).writes(name)


async def look(state: State) -> None:
    await asyncio.sleep(0)
    SEEN.append(dict(state))


async def soon(state: State) -> bool:
    await asyncio.sleep(0)
    return True


async def never_ends(state: State) -> None:
    await asyncio.sleep(60)


def count(state: State) -> dict[str, int]:
    return {"n": state.get("n", 0) + 1}


def make(name: str) -> Builder:
    a, b, c = says("a", "A", "1"), says("b", "B", "2"), says("c", "C", "3")
    aside = Route("absent").eq("never", b)
    programs: dict[str, Callable[[], Builder]] = {
        "race": lambda: a >> race(b >> never_ends, says("c", "C", "3", latency=0.02)) >> count,
        "map_over": lambda: map_over("rows", a.instruct("{row}"), item_key="row") >> tap(look) >> b,
        "timeout": lambda: timeout(a >> tap(look), 30) >> timeout(b, 30),
        "timeout in fallback": lambda: timeout(a >> never_ends, 0.5) // b,
        "tap": lambda: tap(look) >> a >> tap(look) >> (b | tap(soon)),
        "expect": lambda: a >> expect(soon) >> expect(lambda s: s["a"] == "A1") >> b,
        "expect in fallback": lambda: (a >> expect(lambda s: s["a"] == "no")) // (b >> tap(look)),
        "transfer": lambda: a >> transfer(b, when=soon) >> c >> aside,
        "no transfer": lambda: a >> transfer(b, when=lambda s: s["a"] == "no") >> c >> aside,
        "transfer in loop": lambda: (
            (count >> transfer("b")) * until(lambda s: s["n"] == 2) >> aside
        ),
        "transfer in race": lambda: race(transfer(b), never_ends) >> aside,
        "race in map": lambda: map_over(
            "rows", race(never_ends, S.compute(r=lambda s: s["_item"] * 2)), result_key="r"
        ),
        "map in timeout in loop": lambda: (
            timeout(map_over("rows", count, result_key="n", concurrency=1), 30) * 2 >> a
        ),
    }
    return programs[name]()


PROGRAMS = [
    "race",
    "map_over",
    "timeout",
    "timeout in fallback",
    "tap",
    "expect",
    "expect in fallback",
    "transfer",
    "no transfer",
    "transfer in loop",
    "transfer in race",
    "race in map",
    "map in timeout in loop",
]
STATE = {"rows": [1, 2]}


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    SEEN.clear()


@pytest.mark.parametrize("name", PROGRAMS)
async def test_run_and_streamed_it_does_what_it_does_without_adk(name: str) -> None:
    answers = {"a": "A1", "b": "B2", "c": "C3"}
    mocked = await make(name).run("hi", backend=mock_backend(answers), state=STATE)
    seen_there, _ = sorted(map(repr, SEEN)), SEEN.clear()
    for config in (ExecutionConfig(), STREAMED):
        ran = await make(name).run("hi", config=config, state=STATE)
        assert (ran.text, ran.state, ran.errors) == (mocked.text, mocked.state, [])
        assert sorted(map(repr, SEEN)) == seen_there
        SEEN.clear()
        whole = [e for e in ran if not e.is_partial]
        assert [e.transfer_to for e in whole if e.transfer_to] == [
            e.transfer_to for e in mocked if e.transfer_to
        ]


@pytest.mark.parametrize("name", PROGRAMS)
async def test_fragments_are_those_of_what_is_said(name: str) -> None:
    events = [event async for event in make(name).stream("hi", config=STREAMED, state=STATE)]
    fragments: dict[str, str] = {}
    answers: dict[str, str] = {}
    for event in events:
        if event.content and event.path is not None:
            into = fragments if event.is_partial else answers
            into[event.path] = into.get(event.path, "") + event.content
    raced = {path for path in answers if "w" in path}  # whose fragments are never shown
    assert fragments == {path: text for path, text in answers.items() if path not in raced}
    assert all(not event.state_delta for event in events if event.is_partial)


@pytest.mark.parametrize("name", PROGRAMS)
async def test_under_adks_own_runner(name: str) -> None:
    ran = await make(name).run("hi", state=STATE)
    app = (S.set(**STATE) >> make(name)).to_app()
    config = RunConfig.model_validate({"streaming_mode": "sse"})
    events = await by_runner(app, run_config=config)
    state: dict[str, Any] = {}
    for event in events:
        if not event.partial:
            state.update(event.actions.state_delta)
    assert {key: value for key, value in state.items() if value is not None} == ran.state


async def test_what_stops_the_run_stops_a_stream_and_what_was_written_stays() -> None:
    a = says("a", "A", "1")
    for step, error in (
        (expect(lambda s: s["a"] == "no", "not that"), ExpectationError),
        (timeout(never_ends, 0.02), StepTimeoutError),
    ):
        seen: list[str | None] = []

        async def go(step: Builder = step, seen: list[str | None] = seen) -> None:
            async for event in (a >> step >> says("b", "B")).stream("hi", config=STREAMED):
                seen.append(event.content)  # noqa: PERF401  # until it raises

        with pytest.raises(error):
            await go()
        assert seen == ["A", "1", "A1"]

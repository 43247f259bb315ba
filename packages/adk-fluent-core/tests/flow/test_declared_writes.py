"""What an agent declares to write has to be written when it ends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from adk_fluent.errors import AgentReportedError, OutputMissingError
from adk_fluent.flow import Signal
from adk_fluent.ir import StateFieldRef
from adk_fluent.protocol import Pending

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from adk_fluent.ir import AgentNode
    from adk_fluent.protocol import AgentEvent

    from .conftest import Bench, Turn


def owing(node: AgentNode, *keys: str) -> AgentNode:
    return node.replace(writes_keys=tuple(map(StateFieldRef, keys)))


async def test_what_was_written_is_owed_no_more(b: Bench) -> None:
    await b.run(owing(b.say("a", k=1, l=None), "k", "l"))
    assert b.state == {"k": 1, "l": None}


async def test_the_error_names_the_keys_and_the_writer(b: Bench) -> None:
    with pytest.raises(OutputMissingError, match=r"a did not write 'l', 'm', which") as caught:
        await b.run(b.seq(owing(b.say("a", k=1), "m", "k", "l"), b.say("never")))
    assert caught.value.keys == ("l", "m")
    assert caught.value.node == "a"
    assert "no answer" in str(caught.value.found)
    assert b.calls == ["a"]


async def test_an_error_that_was_reported_is_told(b: Bench) -> None:
    with pytest.raises(OutputMissingError) as caught:
        await b.run(owing(b.reports("a"), "k"))
    assert caught.value.found == "it reported SAFETY: no"
    assert "what it reported" in str(caught.value.help)
    await b.run(owing(b.reports("b", state_delta={"k": 1}), "k"))
    assert b.state == {"k": 1}


async def test_keys_that_tools_write_are_owed_too(b: Bench) -> None:
    node = b.say("a", k=1).replace(tool_writes=(StateFieldRef("t"),))
    with pytest.raises(OutputMissingError, match="'t'"):
        await b.run(node)


async def test_a_partial_event_writes_nothing(b: Bench) -> None:
    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        yield turn.event("p", is_partial=True, state_delta={"k": 1})

    with pytest.raises(OutputMissingError):
        await b.run(owing(b.agent("a", act), "k"))


async def test_an_attempt_that_does_not_write_has_failed(b: Bench) -> None:
    await b.run(b.fallback(owing(b.say("a", x=1), "k"), owing(b.say("b", k=2), "k")))
    assert b.clean_state == {"k": 2}
    with pytest.raises(AgentReportedError):  # the graver fault is the one told
        await b.run(b.fallback(owing(b.reports("c"), "k")))


async def test_who_leaves_the_loop_hands_over_or_is_refused_owes_nothing(b: Bench) -> None:
    async def hands_over(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        yield turn.event(transfer_to="other")

    await b.run(b.loop(owing(b.escalates("a"), "k")))
    await b.run(owing(b.escalates("b"), "k"))
    await b.run(owing(b.agent("c", hands_over), "k"))
    ran = await b.run(owing(b.stops("d"), "k"))
    assert ran.outcome is Signal.STOP
    assert b.state == {}


async def test_who_waits_owes_it_afterwards(b: Bench) -> None:
    root = owing(b.waits("w", written=1), "w", "written")
    ran = await b.run(root)
    assert ran.outcome is Signal.PAUSE
    await b.run(root, position=ran.engine.position, answers={"w": "yes"})
    assert b.state == {"w": "yes", "written": 1}
    root = owing(b.waits("w"), "k")
    ran = await b.run(root)
    with pytest.raises(OutputMissingError):
        await b.run(root, position=ran.engine.position, answers={"w": "yes"})


async def test_what_was_written_before_waiting_counts_also_in_another_process(b: Bench) -> None:
    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        if turn.answers:
            yield turn.event("done", state_delta=dict(turn.answers))
        else:
            yield turn.event(state_delta={"k": 1})
            yield turn.event(pending=(Pending("w", "tool"),))

    root = owing(b.agent("w", act), "k", "w")
    ran = await b.run(root)
    position = json.loads(json.dumps(ran.engine.position))
    await b.run(root, position=position, answers={"w": 2})
    assert b.state == {"k": 1, "w": 2}

"""Exactly what models are asked: history modes, discarded attempts, branches."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from adk_programs import (
    agent,
    built,
    each,
    fallback,
    fn,
    loop,
    model_of,
    par,
    plain,
    race,
    raiser,
    run,
    seq,
    turns,
    within,
    writer,
)
from google.adk.agents.llm_agent import LlmAgent
from google.genai import types

from adk_fluent.backends.adk import ADKBackend, to_agent
from adk_fluent.ir import CompactionConfig, ExecutionConfig, Match, Ref, RouteNode
from adk_fluent.testing import Call, Reply, ScriptedModel, Thought, reply

if TYPE_CHECKING:
    from adk_fluent.ir import AgentNode, Node

pytestmark = pytest.mark.adk


class BoomError(Exception):
    pass


def asker(name: str = "z", **fields: Any) -> AgentNode:
    """An agent that is there to see."""
    return agent(name, **fields)


def failing(node: Node) -> Node:
    return seq(node, raiser("no", BoomError("no")), name="failing")


async def asked(*programs: Node, messages: tuple[str, ...] = ("hi",), of: AgentNode) -> list[str]:
    """What `of` was asked last, when the programs ran one after the other in one session."""
    backend = ADKBackend()
    for program in programs:
        compiled = backend.compile(program)
        for message in messages:
            await backend.run(compiled, message, session_id="s")
    return turns(of)


# --- transcript ----------------------------------------------------------------------------------


async def test_on_the_main_line_everything_is_seen_as_adk_shows_it() -> None:
    z = asker()
    assert await asked(seq(agent("a"), fn("f", lambda s: {"x": 1}), agent("b"), z), of=z) == [
        "hi",
        "a: a",
        "b: b",
    ]


async def test_earlier_turns_are_seen() -> None:
    z = asker()
    seen = await asked(seq(agent("a"), z), messages=("one", "two"), of=z)
    assert seen == ["one", "a: a", "z", "two", "a: a"]


async def test_after_a_parallel_every_branch_is_seen() -> None:
    z = asker()
    seen = await asked(seq(par(agent("a"), agent("b")), z), of=z)
    assert seen[0] == "hi"
    assert sorted(seen[1:]) == ["a: a", "b: b"]


async def test_a_branch_sees_what_came_before_and_nothing_beside_it() -> None:
    goes_on = asyncio.Event()

    async def wait(state: Any) -> None:
        await goes_on.wait()

    z = asker()

    def let_go(state: Any) -> None:
        goes_on.set()

    side = seq(agent("b"), agent("c"), fn("go", let_go), name="side")
    program = seq(agent("a"), par(side, seq(fn("wait", wait), z, name="late")))
    assert await asked(program, of=z) == ["hi", "a: a"]


async def test_a_branch_sees_its_own_nested_parallel_once_that_is_over() -> None:
    z = asker()
    nested = seq(par(agent("b"), agent("c"), name="inner"), z, name="nested")
    seen = await asked(seq(agent("a"), par(agent("beside"), nested, name="outer")), of=z)
    assert seen[:2] == ["hi", "a: a"]
    assert sorted(seen[2:]) == ["b: b", "c: c"]


async def test_a_branch_sees_an_earlier_parallel() -> None:
    z = asker()
    seen = await asked(
        seq(par(agent("a"), agent("b"), name="one"), par(agent("c"), z, name="two")), of=z
    )
    assert seen[0] == "hi"
    assert sorted(seen[1:]) == ["a: a", "b: b"]


async def test_in_a_loop_a_branch_sees_the_iteration_before() -> None:
    z = asker()
    seen = await asked(loop(par(agent("a"), z), 2), of=z)
    assert seen[0] == "hi"
    assert sorted(seen[1:]) == ["a: a", "z"]


async def test_a_branch_sees_its_own_tool_turns() -> None:
    def ping() -> str:
        """Answers."""
        return "pong"

    z = agent("z", Call("ping"), "done", tools=[ping])
    program = seq(par(agent("a"), agent("b"), name="one"), par(agent("c"), z, name="two"))
    seen = await asked(program, of=z)
    assert seen[-2:] == ["[call ping {}]", '[result ping {"result": "pong"}]']
    assert sorted(seen[1:-2]) == ["a: a", "b: b"]


async def test_items_of_a_map_do_not_see_each_other() -> None:
    z = asker()
    await run(seq(writer("w", items=[1, 2, 3]), each("items", z, concurrency=1)))
    assert [turns(z, call) for call in range(3)] == [["hi"]] * 3


async def test_after_a_map_every_item_is_seen() -> None:
    z = asker()
    program = seq(writer("w", items=[1, 2]), each("items", agent("a")), z)
    assert await asked(program, of=z) == ["hi", "a: a", "a: a"]


async def test_a_timeout_hides_nothing() -> None:
    z = asker()
    program = seq(agent("a"), within(seq(agent("b"), z, name="in_time"), 9))
    assert await asked(program, of=z) == ["hi", "a: a", "b: b"]


async def test_a_foreign_agent_in_a_branch_sees_the_same() -> None:
    model = ScriptedModel(default="z")
    z = built(LlmAgent(name="z", model=model))
    await run(seq(par(agent("a"), agent("b"), name="one"), par(agent("c"), z, name="two")))
    seen = [plain(turn.text) for turn in model.calls[0].turns]
    assert (seen[0], sorted(seen[1:])) == ("hi", ["a: a", "b: b"])


async def test_a_bare_root_agent_below_a_branch_of_adks_sees_its_parallel() -> None:
    """A flow whose own context is in a branch already."""
    z = asker()
    inner = to_agent(seq(par(agent("b"), agent("c"), name="inner"), z, name="flow"))
    seen = await asked(seq(agent("a"), par(agent("beside"), built(inner), name="outer")), of=z)
    assert seen[:2] == ["hi", "a: a"]
    assert sorted(seen[2:]) == ["b: b", "c: c"]


# --- discarded attempts --------------------------------------------------------------------------


async def test_what_a_failed_attempt_said_is_hidden() -> None:
    good, z = asker("good"), asker()
    program = seq(agent("a"), fallback(failing(agent("bad", "SECRET")), good), z)
    assert await asked(program, of=z) == ["hi", "a: a", "good: good"]
    assert turns(good) == ["hi", "a: a"]


async def test_a_running_attempt_sees_what_it_said_itself() -> None:
    z = asker()
    program = fallback(failing(agent("bad")), seq(agent("b"), z, name="second"))
    assert await asked(program, of=z) == ["hi", "b: b"]


async def test_an_attempt_that_failed_in_an_earlier_run_stays_hidden() -> None:
    z = asker()
    failed = fallback(failing(agent("bad", "SECRET")), agent("good"))
    assert await asked(failed, seq(z), of=z) == ["hi", "good: good", "hi"]


async def test_scopes_of_different_runs_are_not_mixed_up() -> None:
    z = asker()
    failed = fallback(failing(agent("bad", "SECRET")), agent("good"), name="one")
    kept = fallback(agent("kept"), agent("never"), name="two")
    assert await asked(failed, kept, seq(z), of=z) == ["hi", "good: good", "hi", "kept: kept", "hi"]


async def test_a_loser_of_a_race_is_hidden() -> None:
    z = asker()
    loser = seq(agent("early", "SECRET"), fn("wait", lambda s: asyncio.sleep(30)), name="loser")
    winner = seq(fn("pause", lambda s: asyncio.sleep(0.05)), agent("won"), name="winner")
    assert await asked(seq(race(loser, winner), z), of=z) == ["hi", "won: won"]


async def test_nested_attempts_are_hidden_with_the_outer_one() -> None:
    z = asker()
    inner = fallback(failing(agent("b1", "SECRET")), agent("b2", "SECRET"), name="inner")
    program = seq(
        fallback(seq(inner, raiser("no", BoomError("x")), name="outer"), agent("good")), z
    )
    assert await asked(program, of=z) == ["hi", "good: good"]


async def test_a_settled_inner_attempt_is_seen_inside_the_outer_one() -> None:
    z = asker()
    inner = fallback(failing(agent("b1", "SECRET")), agent("b2"), name="inner")
    assert await asked(fallback(seq(inner, z, name="first"), agent("never")), of=z) == [
        "hi",
        "b2: b2",
    ]


async def test_tool_turns_of_a_failed_attempt_are_hidden_too() -> None:
    def ping() -> str:
        """Answers."""
        return "SECRET"

    z = asker()
    bad = agent("bad", Call("ping"), "SECRET", tools=[ping])
    assert await asked(seq(fallback(failing(bad), agent("good")), z), of=z) == ["hi", "good: good"]


async def test_an_error_event_of_a_failed_attempt_is_hidden() -> None:
    z = asker()
    refused = agent("refused", reply("SECRET"), reply(error_code="SAFETY"))
    program = fallback(seq(refused, refused, name="twice"), agent("good"))
    assert await asked(seq(program, z), of=z) == ["hi", "good: good"]


@pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning")  # ADK says so of compaction
async def test_summaries_are_not_told_what_was_discarded() -> None:
    writer_ = ScriptedModel(default="SUMMARY")
    program = fallback(failing(agent("bad", "SECRET")), agent("good", "GOOD"))
    backend = ADKBackend()
    config = ExecutionConfig(
        compaction=CompactionConfig(interval=1, overlap=0), default_model=Ref.to(writer_)
    )
    compiled = backend.compile(program, config)
    await backend.run(compiled, "one", session_id="s")
    await backend.run(compiled, "two", session_id="s")
    assert len(writer_.calls) == 2
    assert all("GOOD" in call.prompt and "SECRET" not in call.prompt for call in writer_.calls)


# --- own -----------------------------------------------------------------------------------------


async def test_own_sees_the_user_and_itself() -> None:
    z = asker(history="own")
    program = seq(agent("a"), z, agent("b"))
    assert await asked(program, messages=("one", "two"), of=z) == ["one", "z", "two"]


async def test_own_keeps_its_tool_turns() -> None:
    def ping() -> str:
        """Answers."""
        return "pong"

    z = agent("z", Call("ping"), "done", tools=[ping], history="own")
    assert await asked(seq(agent("a"), z), of=z) == [
        "hi",
        "[call ping {}]",
        '[result ping {"result": "pong"}]',
    ]


async def test_own_hides_its_own_discarded_attempts() -> None:
    z = asker(history="own")
    backend = ADKBackend()
    await backend.run(backend.compile(fallback(failing(z), agent("good"))), "one", session_id="s")
    await backend.run(backend.compile(z), "two", session_id="s")
    assert turns(z) == ["one", "two"]


# --- input ---------------------------------------------------------------------------------------


async def test_input_is_the_output_of_the_step_before() -> None:
    z = asker(history="input")
    assert await asked(seq(agent("a"), agent("b", "B"), z), of=z) == ["B"]


async def test_input_of_the_first_step_is_what_the_user_says() -> None:
    z = asker(history="input")
    program = seq(z, agent("b"))
    assert await asked(program, messages=("one", "two"), of=z) == ["two"]


async def test_input_goes_past_steps_that_say_nothing() -> None:
    z = asker(history="input")
    assert await asked(seq(agent("a", "A"), writer("w", x=1), z), of=z) == ["A"]


async def test_input_after_a_parallel_is_all_branches_in_declared_order() -> None:
    z = asker(history="input")
    slow = seq(fn("wait", lambda s: asyncio.sleep(0.03)), agent("a", "A"), name="slow")
    await run(seq(par(slow, agent("b", "B")), z))
    (content,) = model_of(z).calls[0].raw.contents
    assert [part.text for part in content.parts] == ["A", "B"]
    assert content.role == "user"


async def test_input_in_a_loop_is_the_last_output_of_the_iteration_before() -> None:
    z = asker(history="input")
    other = agent("other", "first", "second")
    await run(loop(seq(z, other, name="body"), 2))
    assert [turns(z, call) for call in range(2)] == [["hi"], ["first"]]


async def test_input_after_a_route_or_a_fallback_is_what_was_chosen() -> None:
    z = asker(history="input")
    route = RouteNode(
        "way", "k", (Match("eq", "k", 1),), (agent("left", "L"),), agent("right", "R")
    )
    assert await asked(seq(agent("a"), route, z), of=z) == ["R"]
    z = asker(history="input")
    chosen = fallback(failing(agent("bad", "SECRET")), agent("good", "G"))
    assert await asked(seq(chosen, z), of=z) == ["G"]


async def test_input_inside_a_branch_is_what_came_before_in_it() -> None:
    first, second = asker("first", history="input"), asker("second", history="input")
    program = seq(agent("a", "A"), par(agent("b"), seq(first, second, name="line")))
    assert await asked(program, of=first) == ["A"]
    assert turns(second) == ["first"]


async def test_input_keeps_parts_that_are_no_text_and_drops_thoughts() -> None:
    image = types.Part.from_bytes(data=b"x", mime_type="image/png")
    artist = agent("artist", Reply((Thought("hm"), "look", image)))
    z = asker(history="input")
    await run(seq(artist, z))
    (content,) = model_of(z).calls[0].raw.contents
    assert [(part.text, part.inline_data is not None) for part in content.parts] == [
        ("look", False),
        (None, True),
    ]


async def test_input_of_a_first_step_keeps_the_users_parts() -> None:
    image = types.Part.from_bytes(data=b"x", mime_type="image/png")
    z = asker(history="input")
    await run(z, ["look", image])
    (content,) = model_of(z).calls[0].raw.contents
    assert len(content.parts) == 2


async def test_input_keeps_the_agents_own_tool_turns() -> None:
    def ping() -> str:
        """Answers."""
        return "pong"

    z = agent("z", Call("ping"), Call("ping"), "done", tools=[ping], history="input")
    assert await asked(seq(agent("a", "A"), z), of=z) == [
        "A",
        "[call ping {}]",
        '[result ping {"result": "pong"}]',
        "[call ping {}]",
        '[result ping {"result": "pong"}]',
    ]


# --- none ----------------------------------------------------------------------------------------

OPENING = "Handle the requests as specified in the System Instruction."


async def test_none_is_the_instruction_only() -> None:
    z = asker(history="none", instruction="Say {word}.")
    assert await asked(seq(agent("a"), writer("w", word="yes"), z), of=z) == [OPENING]
    assert model_of(z).calls[0].system.startswith("Say yes.")


async def test_none_keeps_the_agents_own_tool_turns() -> None:
    def ping() -> str:
        """Answers."""
        return "pong"

    z = agent("z", Call("ping"), "done", tools=[ping], history="none")
    seen = await asked(seq(agent("a"), z), messages=("one",), of=z)
    assert seen == [OPENING, "[call ping {}]", '[result ping {"result": "pong"}]']


async def test_none_does_not_see_its_own_earlier_turns() -> None:
    z = asker(history="none")
    assert await asked(loop(z, 2), messages=("one", "two"), of=z) == [OPENING]


# --- state and templates -------------------------------------------------------------------------


@pytest.mark.parametrize("history", ["transcript", "own", "input", "none"])
async def test_what_a_filtered_agent_writes_is_committed(history: Any) -> None:
    z = asker(history=history, writes="out")
    result = await run(seq(fallback(failing(agent("bad")), agent("good")), z))
    assert result.state == {"out": "z"}


async def test_a_transferred_agent_keeps_the_turns_of_this_run() -> None:
    kid = agent("kid", "from kid", description="knows")
    boss = agent(
        "boss", Call("transfer_to_agent", {"agent_name": "kid"}), delegates=(kid,), history="input"
    )
    await run(seq(agent("a", "A"), boss))
    asked_kid = model_of(kid).calls[0]
    assert asked_kid.turns[0].text == "A"
    assert "transfer_to_agent" in asked_kid.turns[1].text

"""Conversations of several turns, what they are made of, and every way in which a run can end."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest
from eval_programs import (
    adk_agent,
    agent,
    calling,
    case,
    desk,
    lookup,
    outcome_of,
    parallel,
    passes,
    report_of,
    says,
    scripted,
    suite_of,
)
from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.genai import types

from adk_fluent import Agent, gate
from adk_fluent.eval import EvalError, FluentCase, Status, ToolCall, Turn
from adk_fluent.protocol import Usage
from adk_fluent.testing import Asked, Call, Thought, reply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from google.adk.events.event import Event

    from adk_fluent.eval import CaseOutcome

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]"),  # ADK 1.x says so
    pytest.mark.filterwarnings("ignore:.*is deprecated.*:DeprecationWarning"),  # ADK 2.x's own
]

A1 = Call("lookup", {"order": "A1"})
PNG = types.Part.from_bytes(data=b"\x89PNG picture", mime_type="image/png")


def ours(answer: Any, *tools: Any) -> Any:
    made = Agent("desk", says(answer))
    for tool in tools:
        made = made.tool(tool)
    return made


def adks(answer: Any, *tools: Any) -> Any:
    return LlmAgent(name="desk", model=says(answer), tools=list(tools))


BOTH = pytest.mark.parametrize("build", [ours, adks], ids=["ours", "ADK's"])


# --- several turns -------------------------------------------------------------------------------


@BOTH
async def test_each_turn_has_expectations_of_its_own(build: Callable[..., Any]) -> None:
    def answer(asked: Asked) -> Any:
        if "where" in asked.prompt and "[result" not in asked.prompt:
            return A1
        return f"You said: {asked.prompt[:20]}"

    outcome = await passes(
        build(answer, lookup),
        [
            Turn("Hello", expected_trajectory=[], expected_response_contains="You said: Hello"),
            Turn("where is A1?", expected_trajectory=[ToolCall("lookup", {"order": "A1"})]),
            "Thanks",
        ],
        expected_trajectory=[],
        expected_response_contains=["said", re.compile("thanks", re.IGNORECASE)],
    )
    assert [turn.input for turn in outcome.turns] == ["Hello", "where is A1?", "Thanks"]
    assert [len(turn.tool_uses) for turn in outcome.turns] == [0, 1, 0]
    assert [turn.model_calls for turn in outcome.turns] == [1, 2, 1]
    assert outcome.input == "Hello"
    assert outcome.response.startswith("You said: Thanks")
    assert len({turn.invocation_id for turn in outcome.turns}) == 3
    assert outcome.duration_s == pytest.approx(sum(turn.duration_s for turn in outcome.turns))


@pytest.mark.parametrize(
    ("match", "expected", "ok"),
    [
        ("exact", ["lookup", "pay"], True),
        ("exact", ["pay", "lookup"], False),
        ("exact", ["lookup"], False),
        ("in_order", ["pay"], True),
        ("in_order", ["pay", "lookup"], False),
        ("any_order", ["pay", "lookup"], True),
        ("any_order", ["pay", "pay"], False),
        ("subset", ["lookup", "pay", "pay"], True),
        ("subset", ["pay"], False),
        ("f1", ["lookup", "pay"], True),
        ("f1", ["lookup", "pay", "pay"], False),
    ],
)
@BOTH
async def test_the_ways_to_compare_trajectories(
    build: Callable[..., Any], match: Any, expected: list[str], ok: bool
) -> None:
    def pay(amount: int) -> int:
        """Pay."""
        return amount

    outcome = await outcome_of(
        build(calling(A1, Call("pay", {"amount": 3})), lookup, pay),
        trajectory_match=match,
        expected_trajectory=expected,
    )
    assert outcome.status is (Status.PASSED if ok else Status.FAILED)


@BOTH
async def test_a_turn_that_is_not_as_expected_is_named(build: Callable[..., Any]) -> None:
    outcome = await outcome_of(
        build("ok", lookup),
        [
            Turn("one", expected_response_contains="yes"),
            Turn("two", expected_trajectory=["lookup"]),
            "three",
        ],
        expected_response_contains="no",
    )
    assert outcome.status is Status.FAILED
    assert outcome.reasons == [
        "tools of turn 2: lookup was not called",
        'answer contains of turn 1: the answer does not contain "yes": "ok"',
        'answer contains of turn 3: the answer does not contain "no": "ok"',
    ]


@BOTH
async def test_history_is_kept_between_turns(build: Callable[..., Any]) -> None:
    def answer(asked: Asked) -> str:
        return " | ".join(turn.text for turn in asked.turns)

    outcome = await passes(build(answer), ["one", "two"], expected_response_contains="one | one")
    assert outcome.response == "one | one | two"


async def test_each_run_begins_anew() -> None:
    def answer(asked: Asked) -> str:
        return str(len(asked.turns))

    report = await report_of(agent("a", answer), case(["one", "two"]), num_runs=3)
    assert [[turn.response for turn in each.turns] for each in report.outcomes] == [["1", "3"]] * 3


# --- what is said --------------------------------------------------------------------------------

MESSAGES: dict[str, tuple[Any, str]] = {
    "text": ("Look", "Look"),
    "a part": (Turn(PNG), "[image/png]"),
    "several parts": (Turn(["Look at", PNG]), "Look at [image/png]"),
    "content": (
        types.Content(role="user", parts=[types.Part(text="Look"), PNG]),
        "Look [image/png]",
    ),
    "a file": (
        Turn([types.Part.from_uri(file_uri="gs://x/y.pdf", mime_type="application/pdf"), "read"]),
        "[application/pdf] read",
    ),
}


@BOTH
@pytest.mark.parametrize("kind", MESSAGES)
async def test_what_the_user_says_reaches_the_model(kind: str, build: Callable[..., Any]) -> None:
    message, told = MESSAGES[kind]
    seen: list[Any] = []

    def answer(asked: Asked) -> str:
        seen.append(asked.raw.contents[-1].parts)
        return "A picture"

    given = message.input if isinstance(message, Turn) else message
    outcome = await passes(build(answer), [message], expected_response_contains="picture")
    assert outcome.turns[0].input == told
    assert outcome.input == told
    has_picture = "png" in told
    pictures = [part.inline_data.data for part in seen[0] if part.inline_data is not None]
    assert pictures == ([PNG.inline_data.data] if has_picture and PNG.inline_data else [])
    assert given is not None


async def test_a_picture_in_a_later_turn() -> None:
    outcome = await passes(agent("a"), ["Hello", Turn(["this", PNG])])
    assert [turn.input for turn in outcome.turns] == ["Hello", "this [image/png]"]


# --- the transcript ------------------------------------------------------------------------------


async def test_everything_that_happens_is_told_in_order() -> None:
    def answer(asked: Asked) -> Any:
        if "[result" not in asked.prompt:
            return reply(Thought("I should look"), "Let me look.", A1)
        return "It is shipped."

    program = Agent("desk", says(answer)).tool(lookup).writes("answer") >> agent("bye", "Bye.")
    outcome = await passes(program, expected_response_contains="Bye.")
    told = [
        (step.author, step.thought, step.text or (step.tool and step.tool.name) or step.state)
        for step in outcome.turns[0].steps
    ]
    assert told[0] == ("desk", True, "I should look")
    assert told[1] == ("desk", False, "Let me look.")
    assert told[2] == ("desk", False, "lookup")
    assert ("desk", False, "It is shipped.") in told
    assert ("desk", False, {"answer": "It is shipped."}) in told
    assert told[-1] == ("bye", False, "Bye.")
    [use] = outcome.tool_uses
    assert use.args == {"order": "A1"}
    assert use.response == {"order": "A1", "status": "shipped"}


@BOTH
async def test_parallel_calls_of_one_tool(build: Callable[..., Any]) -> None:
    both = reply(Call("lookup", {"order": "A1"}), Call("lookup", {"order": "B2"}))
    outcome = await passes(
        build(calling(both), lookup),
        expected_trajectory=[ToolCall("lookup", {"order": each}) for each in ("A1", "B2")],
    )
    assert [use.response["order"] for use in outcome.tool_uses] == ["A1", "B2"]


# --- errors --------------------------------------------------------------------------------------


class OddError(Exception):
    """An error of somebody's."""


@BOTH
async def test_an_exception_ends_the_conversation(build: Callable[..., Any]) -> None:
    def answer(asked: Asked) -> Any:
        if "two" in asked.prompt:
            raise OddError("the model is gone")
        return "ok"

    outcome = await outcome_of(
        build(answer),
        [Turn("one", expected_response_contains="ok"), "two", "three"],
        expected_response_contains="ok",
    )
    assert outcome.status is Status.ERROR
    assert outcome.error == "OddError: the model is gone"
    assert outcome.reasons == ["OddError: the model is gone"]
    assert [turn.input for turn in outcome.turns] == ["one", "two"]
    assert outcome.turns[0].response == "ok"
    assert outcome.scores == []


@BOTH
async def test_a_tool_that_raises_is_shown_at_its_call(build: Callable[..., Any]) -> None:
    def fails(order: str) -> str:
        """Fail."""
        raise OddError(f"{order} is gone")

    outcome = await outcome_of(build(Call("fails", {"order": "A1"}), fails))
    assert outcome.error == "OddError: A1 is gone"
    [use] = outcome.tool_uses
    assert (use.error, use.response, use.mocked) == ("OddError: A1 is gone", None, False)


@BOTH
async def test_of_several_calls_the_one_that_raised_is_shown(build: Callable[..., Any]) -> None:
    def fails(order: str) -> str:
        """Fail."""
        raise OddError(f"{order} is gone")

    both = reply(Call("lookup", {"order": "A1"}), Call("fails", {"order": "B2"}))
    outcome = await outcome_of(build(both, lookup, fails))
    assert outcome.error == "OddError: B2 is gone"
    assert [(use.name, use.error) for use in outcome.tool_uses] == [
        ("lookup", ""),
        ("fails", "OddError: B2 is gone"),
    ]


@BOTH
async def test_a_tool_that_is_not_there(build: Callable[..., Any]) -> None:
    """The model makes it up."""
    program = build(calling(Call("lokup", {"order": "A1"})), lookup)
    outcome = await outcome_of(program)
    [use] = outcome.tool_uses
    assert "Tool 'lokup' not found" in use.error
    if outcome.error is None:  # google-adk 2.x lets the model know
        assert "lokup" in str(use.response)
    else:
        assert "lokup" in outcome.error


@BOTH
async def test_a_tool_error_that_is_made_good(build: Callable[..., Any]) -> None:
    def fails(order: str) -> str:
        """Fail."""
        raise OddError("gone")

    def recover(tool: Any, args: Any, tool_context: Any, error: Exception) -> dict[str, Any]:
        return {"made": "good"}

    program: Any = build(calling(Call("fails", {"order": "A1"})), fails)
    if isinstance(program, Agent):
        program.on_tool_error(recover)
    else:
        program.on_tool_error_callback = recover
    outcome = await passes(program, expected_trajectory=["fails"])
    [use] = outcome.tool_uses
    assert use.response == {"made": "good"}
    assert use.error in {"OddError: gone", ""}  # what a middleware makes good nobody else hears of


@BOTH
async def test_an_error_that_an_agent_reports(build: Callable[..., Any]) -> None:
    blocked = reply(error_code="SAFETY", error_message="it was blocked")
    outcome = await outcome_of(build(blocked), ["one", "two"])
    assert outcome.status is Status.ERROR
    assert "SAFETY" in (outcome.error or "")
    assert "it was blocked" in (outcome.error or "")
    assert len(outcome.turns) == 1
    [step] = [step for step in outcome.turns[0].steps if step.error]
    assert (step.author, "SAFETY" in step.error) == ("desk", True)


async def test_an_error_that_a_fallback_makes_good_is_none() -> None:
    for broken in (reply(error_code="SAFETY"), ValueError("no")):
        program = agent("a", broken) // agent("b", "ok")
        outcome = await passes(program, ["one", "two"], expected_response_contains="ok")
        assert outcome.error is None
        assert len(outcome.turns) == 2


@BOTH
async def test_an_answer_that_was_cut_off(build: Callable[..., Any]) -> None:
    """For a pipeline of ours that is an error; ADK's agents mind it no more than ADK does."""
    outcome = await outcome_of(build(reply("Half an", finish_reason="MAX_TOKENS")))
    assert outcome.response == "Half an"
    assert outcome.error == ("MAX_TOKENS" if build is ours else None)


@BOTH
async def test_a_model_that_says_nothing(build: Callable[..., Any]) -> None:
    silent = build(reply())
    outcome = await outcome_of(silent, expected_response_contains="anything")
    assert outcome.status in {Status.FAILED, Status.ERROR}
    assert outcome.response == ""
    assert (await outcome_of(silent, expected_trajectory=[])).response == ""


async def test_a_pipeline_that_does_nothing_is_an_error() -> None:
    from google.adk.agents.base_agent import BaseAgent

    class Idle(BaseAgent):
        async def _run_async_impl(self, ctx: Any) -> AsyncGenerator[Event, None]:
            for event in ():
                yield event

    outcome = await outcome_of(Idle(name="idle"), expected_trajectory=[])
    assert outcome.status is Status.ERROR
    assert outcome.error == "nothing happened: the run gave no events"


async def test_errors_of_several_branches_are_one() -> None:
    root = parallel("p", adk_agent("a", OddError("one")), adk_agent("b", "fine"))
    outcome = await outcome_of(root)
    assert outcome.status is Status.ERROR
    assert outcome.error == "OddError: one"


async def test_an_error_without_words() -> None:
    assert (await outcome_of(agent("a", OddError()))).error == "OddError"


async def test_one_case_that_fails_ends_no_other() -> None:
    def answer(asked: Asked) -> Any:
        if "bad" in asked.prompt:
            raise OddError("bad")
        return "ok"

    cases = [case(text, id=text) for text in ("one", "bad", "two")]
    report = await report_of(agent("a", answer), *cases)
    assert [each.status for each in report.outcomes] == [
        Status.PASSED,
        Status.ERROR,
        Status.PASSED,
    ]


# --- waiting -------------------------------------------------------------------------------------


async def test_a_gate_that_asks() -> None:
    program = agent("a") >> gate(lambda state: True, message="Send it?", name="sure") >> agent("b")
    outcome = await outcome_of(program, ["one", "two"])
    assert outcome.status is Status.ERROR
    assert outcome.error is not None
    assert outcome.error.startswith("it waits for an answer to gate 'sure'")
    assert "Send it?" in outcome.error
    assert len(outcome.turns) == 1


@BOTH
async def test_a_tool_that_asks_for_a_confirmation(build: Callable[..., Any]) -> None:
    tool = FunctionTool(lookup, require_confirmation=True)
    outcome = await outcome_of(build(A1, tool))
    assert outcome.status is Status.ERROR
    assert "it waits for an answer to confirmation 'lookup' of desk" in (outcome.error or "")
    assert "nobody is there to give one" in (outcome.error or "")


@BOTH
async def test_a_long_running_tool(build: Callable[..., Any]) -> None:
    def ask(order: str) -> None:
        """Ask the boss."""

    outcome = await outcome_of(build(Call("ask", {"order": "A1"}), LongRunningFunctionTool(ask)))
    assert outcome.status is Status.ERROR
    assert "it waits for an answer to tool 'ask' of desk" in (outcome.error or "")
    assert "mock it: mock_tool_outputs" in (outcome.error or "")


# --- time ----------------------------------------------------------------------------------------


async def _slowly(asked: Asked) -> str:
    await asyncio.sleep(30)
    return "late"


async def test_time_that_is_up() -> None:
    cases = [
        case("Hi", id="own", timeout_s=0.1),
        case("Hi", id="the suite's"),
        case("Hi", id="enough", timeout_s=20, target_node="fast"),
    ]
    program = agent("slow", _slowly) >> agent("fast")
    report = await report_of(program, *cases, timeout_s=0.2)
    assert [each.error for each in report.outcomes] == [
        "TimeoutError: it took longer than 0.1 s",
        "TimeoutError: it took longer than 0.2 s",
        None,
    ]
    assert [each.status for each in report.outcomes] == [Status.ERROR, Status.ERROR, Status.PASSED]
    assert len(report.outcomes[0].turns) == 1


@BOTH
async def test_what_was_under_way_when_time_was_up(build: Callable[..., Any]) -> None:
    ended: list[str] = []

    async def wait(order: str) -> str:
        """Wait."""
        try:
            await asyncio.sleep(30)
        finally:
            ended.append(order)
        return "late"

    outcome = await outcome_of(build(Call("wait", {"order": "A1"}), wait), timeout_s=0.3)
    assert outcome.error == "TimeoutError: it took longer than 0.3 s"
    assert ended == ["A1"]
    [use] = outcome.tool_uses
    assert use.response is None
    assert use.error == "it was ended"


async def test_a_timeout_of_the_pipelines_own_is_told_as_such() -> None:
    outcome = await outcome_of(agent("a", TimeoutError("the service is slow")), timeout_s=20)
    assert outcome.error == "TimeoutError: the service is slow"


@pytest.mark.parametrize("limit", [0, -1, "soon", float("nan"), True])
async def test_a_timeout_that_is_none(limit: Any) -> None:
    with pytest.raises(EvalError, match="timeout_s= is no number of seconds above 0"):
        await report_of(agent("a"), case(), timeout_s=limit)


# --- fail fast, skip, xfail ----------------------------------------------------------------------


async def test_fail_fast() -> None:
    def answer(asked: Asked) -> str:
        return asked.prompt

    cases = [
        FluentCase(text, id=text, expected_response_contains="good")
        for text in ("good 1", "bad", "good 2", "good 3")
    ]
    report = await report_of(agent("a", answer), *cases, fail_fast=True, parallelism=1)
    assert [each.id for each in report.outcomes] == ["good 1", "bad"]
    assert report.interrupted
    assert report.failures


async def test_fail_fast_minds_neither_skipped_nor_expected_failures() -> None:
    cases = [
        case("Hi", id="skipped", skip="later"),
        FluentCase("Hi", id="known", expected_response_contains="x", xfail="a bug"),
        case("Hi", id="good"),
    ]
    report = await report_of(agent("a"), *cases, fail_fast=True, parallelism=1)
    assert [each.status for each in report.outcomes] == [
        Status.SKIPPED,
        Status.XFAILED,
        Status.PASSED,
    ]
    assert not report.interrupted


async def test_a_case_that_is_skipped() -> None:
    model = says("x")
    outcome = await outcome_of(Agent("a", model), "Hello", skip="no key", tags=["slow"])
    assert outcome.status is Status.SKIPPED
    assert (outcome.note, outcome.input, outcome.tags) == ("no key", "Hello", ["slow"])
    assert model.calls == ()
    assert outcome.turns == []


def _broken(kind: str) -> tuple[Any, dict[str, Any]]:
    if kind == "fails":
        return agent("a"), {"expected_response_contains": "b"}
    if kind == "raises":
        return agent("a", OddError("no")), {}
    return agent("a", _slowly), {"timeout_s": 0.1}


@pytest.mark.parametrize(
    ("kind", "status"),
    [("fails", Status.XFAILED), ("raises", Status.ERROR), ("takes too long", Status.ERROR)],
)
async def test_a_case_that_fails_as_expected(kind: str, status: Status) -> None:
    program, fields = _broken(kind)
    outcome = await outcome_of(program, xfail="bug 7", **fields)
    assert outcome.status is status  # a run that broke says nothing of what is expected to fail
    assert outcome.note == "bug 7"
    assert outcome.reasons  # why is told all the same


async def test_a_case_that_passes_though_it_is_expected_to_fail() -> None:
    outcome = await outcome_of(agent("a"), xfail="bug 7")
    assert outcome.status is Status.FAILED
    assert outcome.reasons == ["it is expected to fail (bug 7), and passed"]


# --- what an outcome tells -----------------------------------------------------------------------


async def test_what_a_case_says_of_itself_is_in_its_outcome() -> None:
    outcome = await passes(
        agent("a"),
        "Hello",
        id="x",
        tags=["smoke", "slow"],
        metadata={"owner": "me", "n": 1, "when": re.compile("x")},
    )
    assert (outcome.id, outcome.run, outcome.key) == ("x", 1, ("x", 1))
    assert outcome.tags == ["smoke", "slow"]
    assert outcome.metadata["owner"] == "me"
    assert isinstance(outcome.metadata["when"], str)


async def test_tokens_are_those_of_all_model_calls() -> None:
    usage = Usage(prompt=10, cached=4, output=3, thoughts=2, tool=1)
    model = scripted(reply(A1, usage=usage), reply("ok", usage=usage))
    outcome = await passes(Agent("desk", model).tool(lookup) >> agent("b", reply("b", usage=usage)))
    tokens = outcome.tokens
    assert (tokens.prompt, tokens.cached, tokens.output, tokens.thoughts) == (33, 12, 9, 6)
    assert tokens.total == 48
    assert outcome.turns[0].model_calls == 3


async def test_attempts_that_failed_are_counted_too() -> None:
    usage = Usage(prompt=10, output=3)
    blocked = reply(error_code="SAFETY", usage=usage)
    outcome = await passes(agent("a", blocked) // agent("b", reply("ok", usage=usage)))
    assert (outcome.tokens.prompt, outcome.turns[0].model_calls) == (20, 2)


async def test_a_suite_that_is_run_without_async() -> None:
    suite = suite_of(desk(), case(expected_trajectory=["lookup"]))
    report = await asyncio.to_thread(suite.run_sync)
    assert report.pass_rate == 1.0


async def test_leaving_a_stream_ends_what_is_under_way() -> None:
    ended: list[str] = []

    async def answer(asked: Asked) -> str:
        if asked.prompt == "fast":
            return "ok"
        try:
            await asyncio.sleep(30)
        finally:
            ended.append(asked.prompt)
        return "late"

    suite = suite_of(agent("a", answer), case("fast", id="1"), case("slow", id="2"))
    came: list[CaseOutcome] = []
    stream = suite.stream()
    async for each in stream:
        came.append(each)
        await asyncio.sleep(0.05)
        break
    await stream.aclose()
    assert [each.id for each in came] == ["1"]
    assert ended == ["slow"]


async def test_cancelling_a_run_ends_what_is_under_way() -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def answer(asked: Asked) -> str:
        began.set()
        try:
            await asyncio.sleep(30)
        finally:
            ended.set()
        return "late"

    running = asyncio.create_task(report_of(agent("a", answer), case()))
    await began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended.is_set()


@BOTH
async def test_a_key_that_a_service_quotes_is_not_kept(
    build: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "AIza-not-a-real-one")
    refused = PermissionError("API key AIza-not-a-real-one is not valid")
    report = await report_of(build(refused), case("hi", id="a"))
    outcome = report.outcome("a")
    assert outcome.error is not None
    assert "is not valid" in outcome.error
    assert "AIza" not in report.to_markdown() + outcome.error + "".join(outcome.reasons)

"""Users who are played, from a script or by a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from eval_programs import (
    agent,
    calling,
    case,
    desk,
    lookup,
    outcome_of,
    passes,
    report_of,
    says,
    scripted,
    suite_of,
)
from google.adk.agents.llm_agent import LlmAgent
from google.adk.version import __version__ as adk_version
from google.genai import types

from adk_fluent import Agent
from adk_fluent.eval import (
    EvalError,
    FluentCase,
    FluentEvalSuite,
    FluentJudge,
    Status,
    ToolCall,
    Turn,
    UserSimulation,
)
from adk_fluent.eval._running._simulator_adk import persona_text, scenario_of
from adk_fluent.testing import Asked, Call, Thought, reply

if TYPE_CHECKING:
    from adk_fluent.testing import ScriptedModel

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]"),  # ADK 1.x says so
    pytest.mark.filterwarnings("ignore:.*is deprecated.*:DeprecationWarning"),  # ADK 2.x's own
]

PERSONAS = not adk_version.startswith("1.")
A1 = Call("lookup", {"order": "A1"})


def _is_shipped(text: str) -> bool:
    return "shipped" in text


def echo(asked: Asked) -> str:
    return f"You said: {asked.prompt}"


def played(*replies: Any, **fields: Any) -> UserSimulation:
    """A user whom a model plays that says these things."""
    return UserSimulation(model=scripted(*replies, model="user-1"), **fields)


def model_of(user: UserSimulation) -> ScriptedModel:
    model: Any = user.model
    return model


# --- from a script -------------------------------------------------------------------------------


async def test_a_script() -> None:
    user = UserSimulation(script=["And then?", "Bye."])
    outcome = await passes(
        agent("a", echo), "Hello", simulation=user, expected_response_contains="You said: Bye."
    )
    assert [turn.input for turn in outcome.turns] == ["Hello", "And then?", "Bye."]
    assert outcome.stop_reason == "script_end"
    again = await passes(agent("a", echo), "Hello", simulation=user)
    assert len(again.turns) == 3


async def test_a_script_that_says_nothing_more() -> None:
    outcome = await passes(agent("a", echo), "Hello", simulation=UserSimulation(script=[]))
    assert [turn.input for turn in outcome.turns] == ["Hello"]
    assert outcome.stop_reason == "script_end"


async def test_a_script_that_is_longer_than_may_be() -> None:
    user = UserSimulation(script=["a", "b", "c"], max_turns=2)
    outcome = await passes(agent("a", echo), "Hello", simulation=user)
    assert [turn.input for turn in outcome.turns] == ["Hello", "a"]
    assert outcome.stop_reason == "max_turns"


async def test_a_script_has_no_stop_signal() -> None:
    user = UserSimulation(script=["</finished>", "more"])
    outcome = await passes(agent("a", echo), "Hello", simulation=user)
    assert len(outcome.turns) == 3


# --- by a model ----------------------------------------------------------------------------------


async def test_a_model_plays_until_it_says_stop() -> None:
    user = played("And then?", "Thanks.", "</finished>")
    outcome = await passes(agent("a", echo), "Hello", simulation=user)
    assert [turn.input for turn in outcome.turns] == ["Hello", "And then?", "Thanks."]
    assert outcome.stop_reason == "stop_signal"


@pytest.mark.parametrize("said", ["[DONE]", "Thank you! [done]", "  [Done]\n"])
async def test_a_stop_signal_of_ones_own(said: str) -> None:
    user = played("</finished>", said, stop_signal="[DONE]")
    outcome = await passes(agent("a", echo), "Hello", simulation=user)
    assert [turn.input for turn in outcome.turns] == ["Hello", "</finished>"]
    assert outcome.stop_reason == "stop_signal"
    assert "write [DONE] and nothing else" in model_of(user).calls[0].system


STOPS = [
    ("done", "done"),
    ("done", "  Done.\n"),
    ("DONE", "Thank you!\n**done**"),
    ("done", "Thank you. That is all. Done!"),
    ("I am done.", "Thanks! I am done"),
    ("</finished>", "Bye</FINISHED>"),
    ("[STOP]", "bye[stop]bye"),
]
GOES_ON = [
    ("done", "I am not done yet."),
    ("done", "Is it done?"),
    ("done", "Done?"),
    ("done", "Done, and now the next one"),
    ("done", "undone"),
    ("done", "..."),
    ("stop", "Please stop"),
    ("</finished>", "finished"),
]


@pytest.mark.parametrize(("signal", "said"), STOPS)
async def test_what_stops(signal: str, said: str) -> None:
    user = played(said, stop_signal=signal, max_turns=3)
    outcome = await passes(agent("a", echo), "Hello", simulation=user)
    assert [turn.input for turn in outcome.turns] == ["Hello"]
    assert outcome.stop_reason == "stop_signal"


@pytest.mark.parametrize(("signal", "said"), GOES_ON)
async def test_a_word_of_the_user_is_no_stop_signal(signal: str, said: str) -> None:
    user = played(said, signal, stop_signal=signal)
    outcome = await passes(agent("a", echo), "Hello", simulation=user)
    assert [turn.input for turn in outcome.turns] == ["Hello", said]
    assert outcome.stop_reason == "stop_signal"


@pytest.mark.parametrize("limit", [1, 3])
async def test_so_many_turns_at_most(limit: int) -> None:
    user = UserSimulation(model=scripted(default="more"), max_turns=limit)
    outcome = await passes(agent("a", echo), "Hello", simulation=user)
    assert [turn.input for turn in outcome.turns] == ["Hello", "more", "more"][:limit]
    assert outcome.stop_reason == "max_turns"
    assert len(model_of(user).calls) == limit - 1


@pytest.mark.parametrize("nothing", ["", "  \n", reply(), reply(Thought("hm"))])
async def test_a_user_who_says_nothing_is_none(nothing: Any) -> None:
    outcome = await outcome_of(agent("a", echo), "Hello", simulation=played("more", nothing))
    assert outcome.status is Status.ERROR
    assert outcome.reasons == ["RuntimeError: the model that plays the user said nothing"]
    assert [turn.input for turn in outcome.turns] == ["Hello", "more"]
    assert outcome.stop_reason == "error"


async def test_what_the_model_is_told() -> None:
    user = played(
        reply(Thought("what next?"), "Where is it?"),
        "</finished>",
        persona="A customer in a hurry.",
        success_criteria="The customer knows where the order is.",
    )
    await passes(desk(), "Order A1", simulation=user)
    first, second = model_of(user).calls
    assert "A customer in a hurry." in first.system
    assert "The customer knows where the order is." in first.system
    assert "</finished>" in first.system
    answer = "{'order': 'A1', 'status': 'shipped'}"
    assert first.prompt == f"The conversation so far:\nUser: Order A1\nAssistant: {answer}\nUser:"
    assert second.prompt.startswith(first.prompt + " Where is it?") or (
        "User: Where is it?" in second.prompt
    )
    assert "lookup" not in second.prompt


async def test_what_the_assistant_thinks_is_not_told() -> None:
    user = played("</finished>")
    await passes(agent("a", reply(Thought("secret"), "Hello.")), "Hi", simulation=user)
    assert model_of(user).calls[0].prompt.splitlines()[1:3] == ["User: Hi", "Assistant: Hello."]


async def test_the_calls_of_tools_are_told_where_it_is_asked_for() -> None:
    user = played("</finished>", include_function_calls=True)
    await passes(desk(), "Order A1", simulation=user)
    lines = model_of(user).calls[0].prompt.splitlines()
    assert lines[2:4] == [
        "[the assistant calls lookup with {'order': 'A1'}]",
        "[lookup returned {'order': 'A1', 'status': 'shipped'}]",
    ]


async def test_a_picture_is_told_by_its_type() -> None:
    user = played("</finished>")
    picture = types.Part.from_bytes(data=b"\x89PNG", mime_type="image/png")
    outcome = await passes(agent("a"), [Turn(["See", picture])], simulation=user)
    assert outcome.turns[0].input == "See [image/png]"
    assert "User: See\nUser: [image/png]\nAssistant: a" in model_of(user).calls[0].prompt


async def test_another_message_to_begin_with() -> None:
    user = UserSimulation(script=["more"], starting_prompt="Good morning")
    outcome = await passes(agent("a", echo), "Hello", simulation=user)
    assert [turn.input for turn in outcome.turns] == ["Good morning", "more"]


@pytest.mark.skipif(not PERSONAS, reason="google-adk 1.x has no personas")
async def test_a_persona_of_adks() -> None:
    from google.adk.evaluation.simulation.user_simulator_personas import (
        UserBehavior,
        UserPersona,
    )

    behaviour: Any = UserBehavior(
        name="hurry",
        description="Is in a hurry.",
        behavior_instructions=["Write short sentences."],
        violation_rubrics=["Writes long sentences."],
    )
    persona: Any = UserPersona(id="busy", description="A busy customer.", behaviors=[behaviour])
    user = played("</finished>", persona=persona)
    await passes(agent("a"), simulation=user)
    system = model_of(user).calls[0].system
    assert "A busy customer." in system
    assert "- hurry: Is in a hurry." in system
    assert "  - Write short sentences." in system
    scenario: Any = scenario_of(user, "Hello")
    assert scenario.user_persona is persona


def test_a_persona_in_words() -> None:
    assert persona_text("Anna") == "Anna"
    assert persona_text(None) == ""
    plan = scenario_of(UserSimulation(script=["a", "b"], persona="Anna"), "Hello")
    assert plan.starting_prompt == "Hello"
    assert plan.conversation_plan.startswith("Anna\n")
    assert plan.conversation_plan.endswith("one after the other:\na\nb")


# --- what is expected ----------------------------------------------------------------------------


async def test_expectations_are_of_the_whole_conversation() -> None:
    outcome = await passes(
        Agent("desk", says(calling(A1))).tool(lookup).writes("answer"),
        "Where is A1?",
        simulation=UserSimulation(script=["Really?", "Thanks"]),
        expected_trajectory=[ToolCall("lookup", {"order": "A1"})] * 3,
        expected_response_contains="shipped",
        state_assertions={"answer": _is_shipped},
        max_tool_calls=3,
    )
    assert [len(turn.tool_uses) for turn in outcome.turns] == [1, 1, 1]


async def test_what_is_not_as_expected_in_the_end() -> None:
    outcome = await outcome_of(
        desk(),
        simulation=UserSimulation(script=["more"]),
        expected_trajectory=["lookup"],
        expected_response_contains="lost",
    )
    assert outcome.status is Status.FAILED
    assert outcome.reasons[0] == ("tools of the conversation: lookup was called, and not expected")
    assert "does not contain" in outcome.reasons[1]


async def test_expectations_of_the_one_turn_that_a_case_says() -> None:
    outcome = await passes(
        agent("a", echo),
        [Turn("Hello", expected_response_contains="Bye", state_assertions={"k": None})],
        simulation=UserSimulation(script=["Bye"]),
    )
    assert len(outcome.turns) == 2


async def test_judges_know_why_it_ended() -> None:
    seen: list[Any] = []

    def judge(stop_reason: str, responses: list[str]) -> bool:
        seen.append((stop_reason, len(responses)))
        return True

    suite = FluentEvalSuite(
        "s",
        agent("a", echo),
        [FluentCase("Hello", simulation=UserSimulation(script=["more"]))],
        custom_judges=[FluentJudge("j", judge)],
    )
    assert (await suite.run()).pass_rate == 1.0
    assert seen == [("script_end", 2)]


# --- the suite's ---------------------------------------------------------------------------------


async def test_the_suites_user_plays_where_a_case_does_not_say() -> None:
    user = UserSimulation(script=["from the suite"])
    own = UserSimulation(script=["from the case"])
    suite = suite_of(
        agent("a", echo),
        case("Hello", id="suite's"),
        case("Hello", id="own", simulation=own),
        case(["one", "two", "three"], id="says itself"),
        simulation=user,
    )
    report = await suite.run()
    assert report.pass_rate == 1.0
    assert [[turn.input for turn in each.turns] for each in report.outcomes] == [
        ["Hello", "from the suite"],
        ["Hello", "from the case"],
        ["one", "two", "three"],
    ]
    assert [each.stop_reason for each in report.outcomes] == ["script_end", "script_end", ""]


async def test_each_run_is_played_for_itself() -> None:
    async def says_more(asked: Asked) -> str:
        turns = asked.prompt.count("User:") - 1
        return "</finished>" if turns >= 3 else f"more {turns}"

    user = UserSimulation(model=says(says_more))
    report = await report_of(
        agent("a", echo),
        *(case("Hello", id=str(number), simulation=user) for number in range(3)),
        num_runs=2,
    )
    assert [[turn.input for turn in each.turns] for each in report.outcomes] == [
        ["Hello", "more 1", "more 2"]
    ] * 6


async def test_a_case_that_is_not_played_has_no_reason() -> None:
    assert (await passes(agent("a"))).stop_reason == ""


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (ConnectionError("reset"), "ConnectionError: reset"),
        (reply(error_code="SAFETY", error_message="blocked"), "reported SAFETY: blocked"),
    ],
    ids=["raises", "reports"],
)
async def test_a_model_that_cannot_play(broken: Any, told: str) -> None:
    outcome = await outcome_of(agent("a", echo), "Hello", simulation=played("more", broken))
    assert outcome.status is Status.ERROR
    assert outcome.error is not None
    assert "play" in outcome.error
    assert told in outcome.error
    assert outcome.stop_reason == "error"
    assert [turn.input for turn in outcome.turns] == ["Hello", "more"]


async def test_a_pipeline_that_fails_ends_the_conversation() -> None:
    def answer(asked: Asked) -> str:
        if "more" in asked.prompt:
            raise ValueError("no")
        return "ok"

    outcome = await outcome_of(agent("a", answer), "Hello", simulation=played("more", "and more"))
    assert outcome.error == "ValueError: no"
    assert outcome.stop_reason == "error"
    assert len(outcome.turns) == 2


@pytest.mark.parametrize("whose", ["case", "suite"])
async def test_a_model_that_there_is_not(whose: str) -> None:
    model = says("x")
    user = UserSimulation(model="no-such-model-at-all")
    suite = suite_of(
        Agent("a", model),
        case(simulation=user if whose == "case" else None),
        simulation=user if whose == "suite" else None,
    )
    with pytest.raises(EvalError) as caught:
        await suite.run()
    assert caught.value.what == "the model that plays the user cannot be had"
    assert "no-such-model-at-all" in (caught.value.found or "")
    assert "BaseLlm" in (caught.value.help or "")
    assert model.calls == ()


# --- with others in place ------------------------------------------------------------------------


@pytest.mark.parametrize("built", ["ours", "ADK's"])
async def test_another_model_for_the_pipeline_does_not_play_the_user(built: str) -> None:
    """Also where the user is played by the very model that the pipeline has."""
    shared, other = says("from the user"), says("from the other")
    program: Any = Agent("a", shared) if built == "ours" else LlmAgent(name="a", model=shared)
    outcome = await outcome_of(
        program,
        "Hello",
        options={"model": other},
        simulation=UserSimulation(model=shared, max_turns=3),
        expected_response_contains="from the other",
    )
    assert outcome.reasons == []
    assert [turn.input for turn in outcome.turns] == ["Hello", "from the user", "from the user"]
    assert (len(shared.calls), len(other.calls)) == (2, 3)


async def test_mocks_and_a_played_user() -> None:
    await passes(
        desk(),
        "Hello",
        simulation=UserSimulation(script=["again"]),
        mock_tool_outputs={"lookup": ["lost", "found"]},
        expected_response_contains="found",
    )

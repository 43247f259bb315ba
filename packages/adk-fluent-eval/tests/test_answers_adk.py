"""Answers of a case to what a pipeline asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from eval_desk import desk, run
from google.adk.agents.llm_agent import LlmAgent
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool

from adk_fluent import Agent, gate
from adk_fluent.eval import EvalError, FluentCase, FluentEvalSuite, Status, Turn
from adk_fluent.extend import answers_in_place, ask_in_place
from adk_fluent.protocol import Middleware
from adk_fluent.testing import Call, ScriptedModel

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK's confirmations
]


def refund() -> Any:
    """A desk, a gate, and who pays."""
    return desk() >> gate(message="Pay?", name="approve") >> Agent("pay").mock("Paid.").writes("p")


def test_a_gate_is_answered_and_the_run_goes_on_in_the_same_turn() -> None:
    case = FluentCase(
        ["my order", Turn("again my order", expected_trajectory=["look_up"])],
        id="a",
        answers={"approve": True},
        expected_response_contains="Paid.",
        state_assertions={"approve": {"approved": True, "note": ""}, "pay.p": "Paid."},
    )
    report = FluentEvalSuite("s", refund(), [case]).run_sync()
    [made] = report.outcomes
    assert made.passed, made.reasons
    assert [turn.response for turn in made.turns] == ["Paid.", "Paid."]
    assert [use.name for use in made.turns[0].tool_uses] == ["look_up"]
    told = [step.text for step in made.turns[0].steps if step.author == "user"]
    assert told == ["answer to approve: True"]
    [result] = report.case_results
    assert len(result.eval_metric_result_per_invocation) == 2


def test_a_refusal_ends_the_run() -> None:
    answer = {"approved": False, "note": "too much"}
    case = FluentCase(
        "my order", id="a", answers={"approve": answer}, state_assertions={"approve": answer}
    )
    made = run(case, refund())
    assert made.passed, made.reasons
    assert "p" not in made.state


def test_a_list_has_an_answer_for_each_question() -> None:
    twice = refund() >> gate(message="And now?", name="approve")
    case = FluentCase("my order", id="a", expected_trajectory=["look_up"])
    case.answers = {"approve": [True, "yes"]}
    assert run(case, twice).passed
    case.answers = {"approve": [True]}
    made = run(case, twice)
    assert made.status is Status.ERROR
    assert made.reasons == [
        "the run waits for another answer to gate 'approve': And now?; answers= has 1 answer"
    ]
    assert made.state["p"] == "Paid."


def test_questions_of_branches_are_answered_together() -> None:
    branches = (desk("a") >> gate(message="a?", name="a_ok")) | (
        desk("b") >> gate(message="b?", name="b_ok")
    )
    case = FluentCase("hi", answers={"a_ok": True}, expected_trajectory=[])
    made = run(case, branches >> Agent("end").mock("Done."))
    assert made.status is Status.ERROR
    assert "gate 'b_ok': b?" in made.reasons[0]
    case.answers = {"a_ok": True, "b_ok": "y"}
    made = run(case, branches >> Agent("end").mock("Done."))
    assert (made.passed, made.turns[0].response) == (True, "Done.")


def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def says(asked: Any) -> Any:
    last = asked.raw.contents[-1].parts[0].function_response
    return Call("pay", {"amount": 5}) if last is None else f"it says {last.response}"


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize(("answer", "said"), [(True, "paid 5"), (False, "rejected")])
def test_a_tool_is_confirmed(native: bool, answer: bool, said: str) -> None:
    model = ScriptedModel(default=says)
    if native:
        tool = FunctionTool(pay, require_confirmation=True)
        pipeline: Any = LlmAgent(name="clerk", model=model, tools=[tool])
    else:
        pipeline = Agent("clerk", model).tool(pay, require_confirmation=True) >> desk("then")
    case = FluentCase("go", answers={"pay": answer}, expected_trajectory=["pay"])
    made = run(case, pipeline)
    assert made.passed, made.reasons
    assert said in str(made.turns[0].tool_uses[0].response)


def test_a_long_running_tool_gives_its_result_later() -> None:
    def order_parts(amount: int) -> None:
        """Order parts."""

    def later(asked: Any) -> Any:
        made = says(asked)
        return Call("order_parts", {"amount": 5}) if isinstance(made, Call) else made

    tool = LongRunningFunctionTool(order_parts)
    pipeline = Agent("clerk", ScriptedModel(default=later)).tool(tool)
    case = FluentCase("go", answers={"order_parts": {"n": 3}}, expected_response_contains="'n': 3")
    assert run(case, pipeline).passed
    case.answers = None
    [reason] = run(case, pipeline).reasons
    assert "give answers={'order_parts': ...}, or mock it with mock_tool_outputs" in reason


@pytest.mark.parametrize("answer", [True, {"approved": False, "note": "late"}, [1, 2]])
async def test_a_session_keeps_what_was_answered(answer: Any) -> None:
    service = InMemorySessionService()
    options: dict[str, Any] = {"session_service": service, "session_id": "s"}
    schema = list[int] if isinstance(answer, list) else None
    pipeline = (
        desk()
        >> gate(message="Pay?", name="approve", response_schema=schema)
        >> Agent("pay").mock("Paid.")
        >> gate(message="Sure?", name="sure")
    )
    asked = await pipeline.run("my order", **options)
    result = await pipeline.resume(asked.pending[0].answer(answer), **options)
    if result.pending:
        result = await pipeline.resume(result.pending[0].answer("yes"), **options)
    session = await service.get_session(
        app_name=result.app_name, user_id=result.user_id, session_id="s"
    )
    assert session is not None
    case = FluentCase.from_session(session, id="a")
    given: Any = [answer] if isinstance(answer, list) else answer
    refused = isinstance(answer, dict)
    assert case.answers == {"approve": given, **({} if refused else {"sure": "yes"})}
    report = await FluentEvalSuite("s", pipeline, [case]).run()
    [made] = report.outcomes
    assert made.passed, made.reasons
    assert made.state["approve"] == result.state["approve"]


def test_an_answer_that_is_none_is_said() -> None:
    case = FluentCase("my order", answers={"approve": "perhaps"}, expected_trajectory=["look_up"])
    made = run(case, refund())
    assert made.status is Status.ERROR
    assert made.reasons[0].startswith("the answer to gate 'approve' was refused: ")
    assert "'perhaps' is no answer to gate 'approve'" in made.reasons[0]


def test_answers_to_what_nothing_asks_are_told() -> None:
    """A middleware may bring tools, so that such a name may be one of them."""

    class Brings(Middleware):
        async def before_model(self, ctx: Any, request: Any) -> Any: ...

    asks = Agent("clerk").mock("hi").middleware(Brings()) >> gate(message="Pay?", name="approve")
    case = FluentCase("hi", answers={"aprove": True}, expected_trajectory=[])
    made = run(case, asks)
    assert made.status is Status.ERROR
    assert made.reasons[0].endswith("give answers={'approve': ...}; nothing has asked 'aprove'")


def test_questions_of_middlewares_are_answered_as_input() -> None:
    class Asks(Middleware):
        adds_tools = ()

        async def wrap_model_request(self, call: Any, next: Any) -> Any:
            return await (next(call) if answers_in_place(call, "me") else self._ask(call))

        async def _ask(self, call: Any) -> Any:
            return ask_in_place(call, "me", "May it?")

    asks = Agent("clerk", ScriptedModel("hello")).middleware(Asks())
    case = FluentCase("hi", answers={"input": True}, expected_response_contains="hello")
    made = run(case, asks)
    assert made.passed, made.reasons


def test_answers_are_checked_before_any_model_call() -> None:
    def never(_: Any) -> str:
        raise AssertionError

    pipeline = desk(answer=never) >> gate(message="Pay?", name="approve")
    with pytest.raises(EvalError, match="did you mean 'approve'"):
        run(FluentCase("hi", answers={"aprove": True}, expected_trajectory=[]), pipeline)
    with pytest.raises(EvalError, match="it answers unknown gate or tool 'desk'"):
        run(FluentCase("hi", answers={"desk": True}, expected_trajectory=[]), pipeline)


@pytest.mark.parametrize(
    ("answers", "what"),
    [
        ([True], "answers= must be a mapping of gates and tools"),
        ({1: True}, "keys of answers= are names of gates and tools"),
        ({"approve": []}, "answers= has none for 'approve'"),
        ({"approve": {"by": object()}}, r"JSON cannot hold: answers\['approve'\]\['by'\]"),
        ({"approve": lambda: True}, "JSON cannot hold"),
    ],
)
def test_answers_that_cannot_be_given_are_refused(answers: Any, what: str) -> None:
    with pytest.raises(EvalError, match=what):
        FluentCase("hi", answers=answers)


def test_files_hold_answers(tmp_path: Path) -> None:
    text = "cases:\n- {input: hi, id: a, expected_trajectory: [], answers: {approve: [true, no]}}\n"
    (tmp_path / "c.yaml").write_text(text, "utf-8")
    suite = FluentEvalSuite.from_yaml(tmp_path / "c.yaml", refund())
    assert suite.cases[0].answers == {"approve": [True, False]}
    suite.to_yaml(tmp_path / "d.yaml")
    suite.to_eval_set_file(tmp_path / "d.evalset.json")
    for again in (
        FluentEvalSuite.from_yaml(tmp_path / "d.yaml"),
        FluentEvalSuite.from_eval_set(tmp_path / "d.evalset.json"),
    ):
        assert again.cases == suite.cases
    (tmp_path / "c.csv").write_text('input,answers\nhi,"{""approve"": true}"\n', "utf-8")
    assert FluentEvalSuite.from_table(tmp_path / "c.csv").cases[0].answers == {"approve": True}

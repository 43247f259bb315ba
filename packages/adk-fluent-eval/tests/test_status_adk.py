"""What becomes of a run, as a case expects it, and answers that nothing asks for."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest
from eval_desk import desk, run
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.tool_context import ToolContext  # noqa: TC002  # ADK reads it at run time

from adk_fluent import Agent, gate
from adk_fluent.eval import (
    EvalError,
    EvalFileError,
    FluentCase,
    FluentEvalReport,
    FluentEvalSuite,
    Status,
    Turn,
)
from adk_fluent.testing import Call, ScriptedModel, reply

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.adk

NO = {"approved": False, "note": "too much"}


def refund() -> Any:
    """A desk, a gate, and who pays."""
    return desk() >> gate(message="Pay?", name="approve") >> Agent("pay").mock("Paid.")


def give_up(tool_context: ToolContext) -> str:
    """Give up."""
    tool_context.actions.escalate = True
    return "ok"


def scripted(said: Any) -> Agent:
    """An agent that always says the same."""
    return Agent("clerk", ScriptedModel(default=said))


def ends(how: str) -> Any:
    """A pipeline whose run ends in a way."""
    match how:
        case "waiting" | "rejected":
            return refund()
        case "truncated":
            return scripted(reply("It is on", finish_reason="MAX_TOKENS"))
        case "failed":
            return scripted(reply(error_code="SAFETY", error_message="no"))
        case "escalated":
            model = ScriptedModel(Call("give_up", {}), default="I cannot.")
            return Agent("clerk", model).tool(give_up) >> Agent("boss").mock("y")
        case _:
            return desk()


@pytest.mark.parametrize(
    "how", ["completed", "waiting", "rejected", "truncated", "failed", "escalated"]
)
def test_a_status_is_expected_and_another_is_told(how: Any) -> None:
    answers = {"approve": NO} if how == "rejected" else None
    made = run(FluentCase("hi", expected_status=how, answers=answers), ends(how))
    assert made.passed, made.reasons
    assert made.turns[-1].status == how
    other: Any = "escalated" if how == "completed" else "completed"
    made = run(FluentCase("hi", expected_status=other, answers=answers), ends(how))
    assert made.status in {Status.FAILED, Status.ERROR}
    assert f"expected {other}, found {how}" in made.reasons[0]
    assert (made.status is Status.ERROR) is (how in {"waiting", "truncated", "failed"})


@pytest.mark.skipif(find_spec("rouge_score") is None, reason="needs google-adk[eval]")
@pytest.mark.filterwarnings("ignore")  # of the libraries of the extra
@pytest.mark.parametrize("how", ["completed", "waiting", "truncated", "failed", "escalated"])
def test_the_service_of_adk_finds_the_same_status(how: Any) -> None:
    for expected in (how, "rejected"):
        case = FluentCase("hi", expected_status=expected)
        light, local = run(case, ends(how)), run(case, ends(how), engine="local")
        assert (local.status, local.reasons) == (light.status, light.reasons)
        assert local.turns[-1].status == light.turns[-1].status == how
    turns = [Turn("hi", expected_status=how), Turn("go on", expected_status="waiting")]
    light, local = (
        run(FluentCase(turns), ends(how)),
        run(FluentCase(turns), ends(how), engine="local"),
    )
    assert (local.status, local.reasons) == (light.status, light.reasons)


def test_what_is_expected_decides_nothing_else() -> None:
    case = FluentCase("my order", expected_status="waiting", expected_trajectory=[])
    made = run(case, refund())
    assert made.reasons == ["tools of turn 1: look_up was called unexpectedly"]
    case = FluentCase("break", expected_status="failed")
    assert run(case, desk()).status is Status.ERROR  # what is raised is no status
    bad = FluentCase("hi", expected_status="waiting", answers={"approve": "perhaps"})
    assert "was refused" in run(bad, refund()).reasons[0]


def test_turns_state_theirs() -> None:
    """What is said while a question is open passes no gate."""
    turns = [
        Turn("hi", expected_status="waiting"),
        Turn("go on", expected_status="waiting", expected_response_contains="."),
    ]
    made = run(FluentCase(turns), refund())
    assert [turn.status for turn in made.turns] == ["waiting", "waiting"]
    made = run(FluentCase(["hi", "go on"], expected_status="completed"), refund())
    assert made.reasons[0].startswith("the run waits for an answer")  # of the first turn
    turns = [Turn("hi", expected_status="rejected"), "go on"]
    made = run(FluentCase(turns, max_tool_calls=0), desk())
    assert made.reasons == ["status of turn 1: expected rejected, found completed"]


def test_what_is_no_status_is_refused() -> None:
    with pytest.raises(EvalError, match="unknown expected_status='waitng'") as caught:
        FluentCase("hi", expected_status="waitng")  # pyright: ignore[reportArgumentType]
    assert caught.value.help == "did you mean 'waiting'?"
    with pytest.raises(EvalError, match=r"turn 1: unknown expected_status=3"):
        FluentCase([Turn("hi", expected_status=3)])  # pyright: ignore[reportArgumentType]
    with pytest.raises(EvalError, match="set on the case and on its last turn"):
        FluentCase([Turn("hi", expected_status="failed")], expected_status="failed")


def test_files_hold_it(tmp_path: Path) -> None:
    text = "cases:\n- {input: [{input: hi, expected_status: waiting}, no way], id: a, "
    (tmp_path / "c.yaml").write_text(f"{text}expected_status: rejected}}\n", "utf-8")
    suite = FluentEvalSuite.from_yaml(tmp_path / "c.yaml")
    assert [turn.expected_status for turn in suite.cases[0].turns] == ["waiting", "rejected"]
    suite.to_yaml(tmp_path / "d.yaml")
    suite.to_eval_set_file(tmp_path / "d.evalset.json")
    for again in (
        FluentEvalSuite.from_yaml(tmp_path / "d.yaml"),
        FluentEvalSuite.from_eval_set(tmp_path / "d.evalset.json"),
    ):
        assert again.cases == suite.cases
    (tmp_path / "c.csv").write_text("input,expected_status\nhi,failed\n", "utf-8")
    table = FluentEvalSuite.from_table(tmp_path / "c.csv")
    assert table.cases[0].expected_status == "failed"
    (tmp_path / "c.csv").write_text("input,expected_status\nhi,fail\n", "utf-8")
    with pytest.raises(EvalFileError, match=r"c\.csv:2") as caught:
        FluentEvalSuite.from_table(tmp_path / "c.csv")
    assert caught.value.help == "did you mean 'failed'?"


def test_reports_keep_it(tmp_path: Path) -> None:
    cases = [FluentCase("hi", expected_status="waiting", id="a"), FluentCase("hi", id="b")]
    cases[1].expected_status = "rejected"
    report = FluentEvalSuite("s", refund(), cases).run_sync()
    report.save(tmp_path / "r.json")
    again = FluentEvalReport.load(tmp_path / "r.json")
    assert again.outcomes == report.outcomes
    [finding] = again.outcomes[0].findings
    assert (finding.what, finding.expected, finding.actual) == ("status", "waiting", "waiting")


@pytest.mark.parametrize("answer", [None, NO, True])
async def test_a_session_keeps_what_became_of_it(answer: Any) -> None:
    service = InMemorySessionService()
    options: dict[str, Any] = {"session_service": service, "session_id": "s"}
    result = await refund().run("hi", **options)
    if answer is not None:
        result = await refund().resume(result.pending[0].answer(answer), **options)
    session = await service.get_session(
        app_name=result.app_name, user_id=result.user_id, session_id="s"
    )
    assert session is not None
    case = FluentCase.from_session(session, id="a")
    status = "waiting" if answer is None else "rejected" if answer is NO else None
    assert case.turns[-1].expected_status == status
    [made] = (await FluentEvalSuite("s", refund(), [case]).run()).outcomes
    assert made.passed, made.reasons


# --- answers -------------------------------------------------------------------------------------


def test_an_answer_that_nothing_asks_for_fails() -> None:
    case = FluentCase("hi", answers={"approve": NO, "later": True}, expected_status="rejected")
    later = refund() >> gate(message="Sure?", name="later")
    made = run(case, later)
    assert made.status is Status.FAILED
    assert made.reasons == ["answer to later: nothing has asked for it"]
    case.answers = {"approve": [NO, True]}
    assert run(case, later).reasons == ["answer to approve: only 1 of 2 were asked for"]
    case.answers = {"approve": [NO]}
    assert run(case, later).passed
    twice = refund() >> gate(message="And now?", name="approve")
    assert run(
        FluentCase("hi", answers={"approve": True}, expected_status="completed"), twice
    ).passed


def test_answers_alone_expect_nothing() -> None:
    case = FluentCase("hi", answers={"approve": True})
    with pytest.raises(EvalError, match="it expects nothing") as caught:
        FluentEvalSuite("s", refund(), [case]).check()
    assert caught.value.help is not None
    assert "a status" in caught.value.help

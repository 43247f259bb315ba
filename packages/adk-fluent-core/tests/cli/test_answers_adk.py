"""`adk-fluent run` with pipelines that ask: at a terminal, by options, and in another process."""

from __future__ import annotations

import json
import shlex
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.cli._later import tell_what_waits
from adk_fluent.protocol import Pending

from .conftest import PROGRAM
from .terminal import CTRL_D, Terminal

if TYPE_CHECKING:
    from .conftest import Cli, Write

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings("ignore:.*EXPERIMENTAL"),  # as ADK 1.x calls confirmations
]
at_a_terminal = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows has no pseudo-terminals of this kind"
)

DESK = """
import os
from adk_fluent import Agent, FanOut, S, gate
from adk_fluent.testing import Call, ScriptedModel

PLAN = {
    "type": "object",
    "properties": {"amount": {"type": "number"}, "how": {"enum": ["card", "cash"]}},
    "required": ["amount", "how"],
}

def large(state):
    return state["amount"] > 100

def shown(state):
    return {"amount": state["amount"]}

def pay(order: str) -> dict:
    \"\"\"Pay.\"\"\"
    return {"paid": order}

def answered(state):
    return {"seen": state.get("approve"), "with": state.get("plan")}

def flaky(state):
    if not os.path.exists("mended"):
        raise ValueError("not yet")

def paying(asked):
    return "Done." if len(asked.turns) > 1 else Call("pay", {"order": "17"})

def deadly(state):
    if not os.path.exists("mended"):
        os._exit(9)

def payer():
    return Agent("payer", ScriptedModel(default="Paid."))

approve = gate(large, message="Pay this refund?", payload=shown, name="approve")
plan = gate(message="How?", response_schema=PLAN, name="plan")
clerk = Agent("clerk", ScriptedModel(default=paying))

pipeline = S.default(amount=250) >> approve >> payer()
planned = S.set(amount=250) >> approve >> plan >> answered >> payer()
both = S.set(amount=250) >> FanOut(approve, plan) >> payer()
confirmed = clerk.tool(pay, require_confirmation=True) >> payer()
yes_or_no = gate(response_schema=bool, name="certain") >> payer()
last = payer() >> gate(name="last")
dying = payer() >> deadly >> Agent("after", ScriptedModel(default="After."))
failing = payer() >> flaky >> Agent("after", ScriptedModel(default="After."))
"""
KEPT = ("--session-db", "kept.sqlite", "--session", "s")


@pytest.fixture
def desk(write: Write) -> str:
    write("desk.py", DESK)
    return "desk.py"


def asked(done: Any) -> str:
    """The command line that is told."""
    (line,) = (each for each in done.err.splitlines() if each.startswith("[answer with: "))
    return line.removeprefix("[answer with: ").removesuffix("]")


# --- by options ----------------------------------------------------------------------------------


def test_what_waits_is_told_and_how_to_answer_it(desk: str, cli: Cli) -> None:
    done = cli("run", desk, "hi", *KEPT)
    assert (done.code, done.out) == (1, "")
    new, *said, how = done.err.splitlines()
    assert new == "[session s is new]"
    assert said == ["approve asks: Pay this refund?", "{", '  "amount": 250', "}"]
    program, *args = shlex.split(asked(done))
    assert (program, how) == ("adk-fluent", f"[answer with: {asked(done)}]")
    done = cli(*args)
    assert (done.code, done.out, done.err) == (0, "payer: Paid.\n", "")
    again = cli(*args)
    assert (again.code, again.out) == (1, "")
    assert again.err.startswith("error[ADKF308]: nothing waits for an answer in session 's'\n")


def test_a_session_that_nothing_keeps(desk: str, here: Cli) -> None:
    done = here("run", desk, "hi")
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines()[-1] == (
        "[nothing keeps this session: to answer later give --session-db FILE, to answer at once "
        "--answer approve=yes]"
    )
    done = here("run", desk, "hi", "--answer", "approve=yes")
    assert (done.code, done.out, done.err) == (0, "payer: Paid.\n", "")


def test_a_question_without_a_name_is_answered_by_its_place(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: Any = SimpleNamespace(pending=[Pending("a2a-1", "input", message="Send it?")])
    settings: Any = SimpleNamespace(as_json=False, session_db=None)
    tell_what_waits(asked, settings, was_shown=True)
    assert capsys.readouterr().err.endswith("to answer at once --answer TEXT]\n")


def test_an_answer_that_is_not_needed(desk: str, here: Cli) -> None:
    done = here("run", desk, "hi", "--state", "amount=3", "--answer", "approve=no")
    assert (done.code, done.out) == (0, "payer: Paid.\n")


def test_a_refusal_is_a_failure(desk: str, here: Cli) -> None:
    done = here("run", desk, "hi", "--answer", "no, too much")
    assert done.code == 1
    assert (done.out, done.err) == (
        "",
        "[approve was refused: too much. Nothing after it was run.]\n",
    )


def test_an_answer_that_is_none_leaves_the_question_open(desk: str, here: Cli) -> None:
    done = here("run", desk, "hi", *KEPT, "--answer", "hmm")
    assert (done.code, done.out) == (1, "")
    assert "'hmm' is no answer to gate 'approve'" in done.err
    assert here(*shlex.split(asked(done))[1:]).code == 0


def test_several_questions_at_once_and_one_after_the_other(desk: str, here: Cli) -> None:
    plan = '{"amount": 3, "how": "card"}'
    for target in ("planned", "both"):
        done = here("run", f"{desk}:{target}", "hi", "--answer", f"plan={plan}", "--answer", "yes")
        assert (done.code, done.out, done.err) == (0, "payer: Paid.\n", "")
    done = here("run", f"{desk}:both", "hi", *KEPT, "--answer", "approve=yes")
    assert (done.code, done.out) == (1, "")
    assert "approve asks" not in done.err
    done = here("run", f"{desk}:both", *KEPT, "--answer", plan)
    assert (done.code, done.out) == (0, "payer: Paid.\n")


@pytest.mark.parametrize("answer", ["true", "false"])
def test_false_is_no_refusal_where_it_is_asked_for(answer: str, desk: str, here: Cli) -> None:
    done = here("run", f"{desk}:yes_or_no", "hi", "--answer", answer)
    assert (done.code, done.out) == (0, "payer: Paid.\n")


@pytest.mark.parametrize("answer", ["yes", "no"])
def test_a_tool_that_has_to_be_confirmed(answer: str, desk: str, here: Cli) -> None:
    target = f"{desk}:confirmed"
    done = here("run", target, "hi", *KEPT)
    assert done.err.splitlines()[2] == 'clerk asks to run pay(order="17")'
    done = here("run", target, *KEPT, "--answer", answer)
    assert (done.code, done.out) == (0, "clerk: Done.\npayer: Paid.\n")


def test_nobody_need_speak_behind_a_gate(desk: str, here: Cli) -> None:
    done = here("run", f"{desk}:last", "hi", "--answer", "yes")
    assert (done.code, done.out, done.err) == (0, "payer: Paid.\n", "")


def test_text_does_not_slip_through(desk: str, here: Cli) -> None:
    here("run", desk, "hi", *KEPT)
    done = here("run", desk, "yes", *KEPT)
    assert done.code == 1
    assert done.err.startswith("[Nothing was run: the run in this session waits for")
    assert asked(done)


def test_records(desk: str, here: Cli) -> None:
    done = here("run", desk, "hi", *KEPT, "--json")
    *events, record = map(json.loads, done.out.splitlines())
    (question,) = record.pop("pending")
    assert (done.code, record) == (1, {"session_id": "s"})
    assert question["id"] == events[-1]["pending"][0]["id"]
    assert (question["name"], question["payload"]) == ("approve", {"amount": 250})
    done = here("run", desk, *KEPT, "--resume", "--json")
    assert json.loads(done.out)["pending"] == [question]
    done = here("run", desk, *KEPT, "--answer", f"{question['id']}=yes", "--json")
    assert done.code == 0
    assert json.loads(done.out.splitlines()[-1])["content"] == "Paid."


# --- going on ------------------------------------------------------------------------------------


def test_a_run_that_failed_goes_on_where_it_failed(desk: str, here: Cli, write: Write) -> None:
    target = f"{desk}:failing"
    done = here("run", target, "hi", *KEPT)
    assert (done.code, done.out) == (1, "payer: Paid.\n")
    assert "[what was committed is kept; go on with --session s]\n" in done.err
    write("mended", "")
    done = here("run", target, *KEPT, "--resume")
    assert (done.code, done.out, done.err) == (0, "after: After.\n", "")
    done = here("run", target, *KEPT, "--resume")
    assert done.code == 1
    assert "there is no run to go on with in this session" in done.err


def test_a_run_whose_process_died_goes_on(desk: str, here: Cli, process: Cli, write: Write) -> None:
    assert process("run", f"{desk}:dying", "hi", *KEPT).code == 9
    write("mended", "")
    done = here("run", f"{desk}:dying", *KEPT, "--resume")
    assert (done.code, done.out, done.err) == (0, "after: After.\n", "")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--resume",), "--resume needs --session-db and --session: whose run goes on?"),
        (("hi", *KEPT, "--resume"), "--resume goes on with a run, and takes no MESSAGE and no"),
    ],
)
def test_wrong_usage(args: tuple[str, ...], said: str, desk: str, here: Cli) -> None:
    done = here("run", desk, *args)
    assert done.code == 2
    assert said in done.err


# --- in a conversation ---------------------------------------------------------------------------


def test_lines_that_are_piped_in_answer(desk: str, here: Cli) -> None:
    done = here("run", f"{desk}:planned", "-i", *KEPT, input="hi\nyes\n3\ncard\n/state\n")
    assert (done.code, done.out) == (0, "payer: Paid.\n")
    state = json.loads(done.err[done.err.index("How?") + 5 : done.err.index("[go on")])
    assert state == {
        "amount": 250,
        "approve": {"approved": True, "note": ""},
        "plan": {"amount": 3, "how": "card"},
        "seen": {"approved": True, "note": ""},
        "with": {"amount": 3, "how": "card"},
    }


def test_a_question_may_be_left_open(desk: str, here: Cli) -> None:
    done = here("run", desk, "-i", *KEPT, input="hi\n/later\n/answer\n/later\n/new\n/answer\n")
    assert done.code == 0
    assert done.err.count("approve asks") == 2
    assert done.err.count("[/answer answers what is open]") == 2
    assert "[nothing waits for an answer]" in done.err
    done = here("run", desk, "-i", *KEPT, "--resume", input="no\n")
    assert "[approve was refused. Nothing after it was run.]" in done.err


@at_a_terminal
def test_a_person_is_asked(desk: str) -> None:
    plain = {"TERM": "dumb", "PYTHONIOENCODING": "utf-8"}
    with Terminal(*PROGRAM, "run", f"{desk}:planned", "hi", *KEPT, **plain) as person:
        assert "approve asks: Pay this refund?\n{" in person.until("too much)> ")
        person.type("no problem\n")
        assert "'no problem' is no answer" in person.until("too much)> ")
        person.type("yes, it is fine\n")
        assert "plan asks: How?" in person.until("amount (number)> ")
        person.type(CTRL_D)
        said = person.rest()
    assert person.code == 1
    assert f"[answer with: adk-fluent run {desk}:planned --session-db kept.sqlite" in said
    with Terminal(*PROGRAM, "run", f"{desk}:planned", *KEPT, **plain) as person:
        assert "plan asks: How?" in person.until("amount (number)> ")
        person.type("3\n")
        person.until("how (card or cash)> ")
        person.type("cash\n")
        assert person.until("\n> ").endswith("payer: Paid.\n> ")
        person.type(CTRL_D)
        person.rest()
    assert person.code == 0

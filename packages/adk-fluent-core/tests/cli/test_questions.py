"""Questions and answers at the command line, without anything that asks them."""

from __future__ import annotations

from typing import Any

import pytest

from adk_fluent.cli._answers import Given, Person
from adk_fluent.cli._lines import Typed
from adk_fluent.cli._questions import example, prompt, read, refusal, shown, words_of
from adk_fluent.flow import APPROVAL
from adk_fluent.protocol import Answer, Pending
from adk_fluent.protocol._decision import Fault

PLAN = {
    "type": "object",
    "properties": {
        "amount": {"type": "number", "minimum": 0},
        "how": {"$ref": "#/$defs/How"},
        "why": {"type": "string", "description": "For the files."},
        "days": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    },
    "required": ["amount", "how"],
    "$defs": {"How": {"enum": ["card", "cash"]}},
}
ASK = Pending("ask-1", "gate", "ask", "desk", "Pay?", {"amount": 3}, APPROVAL)
CHOOSE = Pending("choose-1", "gate", "choose", "desk", "Which?", None, {"enum": ["low", "high"]})
PLANNED = Pending("plan-1", "gate", "plan", "desk", "How?", None, PLAN)
CONFIRM = Pending("c1", "confirmation", "pay", "clerk", "", {"order": "17"})
TOOL = Pending("t1", "tool", "look_up", "clerk", "", {"order": "17"})
AUTH = Pending("a1", "auth", "", "clerk")
INPUT = Pending("i1", "input", "", "other", "More?")
SPEND = Pending("i2", "input", "", "clerk", "Spend?", None, APPROVAL)


@pytest.mark.parametrize(
    ("question", "text", "asked", "given"),
    [
        (
            ASK,
            'ask asks: Pay?\n{\n  "amount": 3\n}',
            "yes or no, and a note if you like (no, too much)",
            "yes",
        ),
        (CHOOSE, "choose asks: Which?", "low or high", "low"),
        (PLANNED, "plan asks: How?", "object", '{"amount": 0, "how": "..."}'),
        (CONFIRM, 'clerk asks to run pay(order="17")', "yes or no", "yes"),
        (TOOL, 'clerk waits for the result of look_up(order="17")', None, "TEXT"),
        (INPUT, "other asks: More?", "JSON or text", "TEXT"),
        (SPEND, "clerk asks: Spend?", "yes or no", "yes"),
    ],
)
def test_what_is_shown(question: Pending, text: str, asked: str | None, given: str) -> None:
    assert shown(question) == text
    assert prompt(question) == (asked or "its result, as JSON or text")
    assert example(question) == given


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("Really?", 'clerk asks to run pay(order="17"): Really?'),
        ("Please approve or reject the tool call pay() ...", 'clerk asks to run pay(order="17")'),
    ],
)
def test_the_hint_of_a_confirmation(message: str, text: str) -> None:
    asked = Pending("c1", "confirmation", "pay", "clerk", message, {"order": "17"})
    assert shown(asked) == text


@pytest.mark.parametrize(
    ("question", "text", "value"),
    [
        (ASK, "Yes", {"approved": True, "note": ""}),
        (ASK, "no, too much", {"approved": False, "note": "too much"}),
        (ASK, " ok: fine,\nreally ", {"approved": True, "note": "fine,\nreally"}),
        (ASK, '{"approved": true, "by": "ann"}', {"approved": True, "note": "", "by": "ann"}),
        (CONFIRM, "y", True),
        (CONFIRM, "Refused", False),
        (CONFIRM, "no, too much", {"approved": False, "note": "too much"}),
        (
            CONFIRM,
            '{"confirmed": true, "payload": 3}',
            {"approved": True, "note": "", "payload": 3},
        ),
        (CHOOSE, "low", {"result": "low"}),
        (CHOOSE, '{"approved": false}', {"approved": False, "note": ""}),
        (PLANNED, '{"amount": 3, "how": "card"}', {"result": {"amount": 3, "how": "card"}}),
        (TOOL, "shipped", "shipped"),
        (TOOL, '{"status": 1}', {"status": 1}),
        (TOOL, "[" * 100_000, "[" * 100_000),
        (INPUT, "3", 3),
    ],
)
def test_what_a_text_answers(question: Pending, text: str, value: Any) -> None:
    assert read(question, text) == question.answer(value)


@pytest.mark.parametrize(
    ("question", "text", "what"),
    [
        (ASK, "no problem", "'no problem' is no answer to gate 'ask'"),
        (ASK, "maybe, later", "'maybe, later' is no answer to gate 'ask'"),
        (CHOOSE, "no", "the answer to gate 'choose' does not fit its schema: 'no' is not one of"),
        (CONFIRM, "hmm", "'hmm' is no answer to the confirmation"),
        (AUTH, "secret", "credentials cannot be given here"),
    ],
)
def test_what_is_no_answer(question: Pending, text: str, what: str) -> None:
    found = read(question, text)
    assert isinstance(found, Fault)
    assert found.what.startswith(what)


def test_what_can_be_refused() -> None:
    for question in (ASK, PLANNED, CONFIRM):
        assert refusal(question, "no") == question.answer({"approved": False, "note": "no"})
    assert refusal(CONFIRM, "") == CONFIRM.answer(False)
    own = {"properties": {"approved": {"type": "boolean"}}, "additionalProperties": False}
    judge = Pending("j1", "gate", "judge", response_schema=own)
    assert refusal(judge, "") == judge.answer({"result": {"approved": False}})
    assert isinstance(refusal(judge, "too long"), Fault)
    assert refusal(TOOL, "") == Fault(
        "look_up cannot be refused", "give its result, as JSON or text"
    )


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": ["string", "null"]}, "string or null"),
        ({"enum": [1, "two"]}, "1 or two"),
        ({"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/Plan"}]}, "integer or Plan"),
        ({}, "JSON or text"),
    ],
)
def test_schemas_in_words(schema: Any, words: str) -> None:
    assert words_of(schema) == words


# --- given by options ----------------------------------------------------------------------------


def values(answers: list[Answer]) -> dict[str, Any]:
    return {each.id: each.value for each in answers}


YES = {"approved": True, "note": ""}


def test_each_answer_counts_once_and_for_its_question() -> None:
    given = Given(["low", "pay=yes", "ask-1=yes", "later=no"])
    assert values(given([ASK, CHOOSE])) == {"ask-1": YES, "choose-1": {"result": "low"}}
    assert values(given([ASK, CHOOSE, AUTH])) == {}
    assert values(given([CONFIRM])) == {"c1": True}


def test_one_answer_for_each_question_of_a_name() -> None:
    again = Pending("ask-2", "gate", "ask", "desk", "Pay?", None, APPROVAL)
    assert values(Given(["ask=yes", "ask=no"])([ASK, again])) == {
        "ask-1": YES,
        "ask-2": {"approved": False, "note": ""},
    }


def test_what_is_wrong_with_one_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert Given(["ask=hmm"])([ASK]) == []
    assert "'hmm' is no answer to gate 'ask': answer yes or no" in capsys.readouterr().err


# --- typed ---------------------------------------------------------------------------------------


class Keys:
    """A person who types these lines, and then leaves."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)
        self.prompts: list[str] = []

    def read(self, prompt: str) -> Typed | None:
        self.prompts.append(prompt)
        return Typed(line := self.lines.pop(0), line.startswith("/")) if self.lines else None


def typed(*lines: str) -> tuple[Person, Keys]:
    keys = Keys(*lines)
    return Person(keys), keys  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_a_person_is_asked_until_it_is_an_answer(capsys: pytest.CaptureFixture[str]) -> None:
    person, keys = typed("hmm", "/help", "yes")
    assert values(person([ASK])) == {"ask-1": YES}
    assert set(keys.prompts) == {f"{prompt(ASK)}> "}
    said = capsys.readouterr().err
    assert said.count("ask asks: Pay?") == 1
    assert "'hmm' is no answer" in said
    assert "/refuse [NOTE]" in said


def test_a_schema_is_asked_field_by_field(capsys: pytest.CaptureFixture[str]) -> None:
    person, keys = typed("lots", "-1", "", "12.5", "gold", "card", "", "x", "3")
    plan = {"result": {"amount": 12.5, "how": "card", "days": 3}}
    assert values(person([PLANNED])) == {"plan-1": plan}
    assert list(dict.fromkeys(keys.prompts)) == [
        "amount (number)> ",
        "how (How)> ",
        "why (string, optional)> ",
        "days (integer or null, optional)> ",
    ]
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "plan asks: How?",
        "['lots' is not of type 'number']",
        "[-1 is less than the minimum of 0]",
        "[amount is needed]",
        "['gold' is not one of ['card', 'cash']]",
        "why: For the files.",
        "['x' is not valid under any of the given schemas]",
    ]


def test_a_schema_may_be_answered_at_once() -> None:
    person, _ = typed('{"amount": 1}', '{"amount": 1, "how": "cash"}')
    assert values(person([PLANNED])) == {"plan-1": {"result": {"amount": 1, "how": "cash"}}}


def test_a_person_may_refuse_wait_or_leave(capsys: pytest.CaptureFixture[str]) -> None:
    person, _ = typed("/refuse", "/later", "/refuse not now", "/quit")
    assert values(person([TOOL, AUTH, PLANNED, ASK, CHOOSE])) == {
        "plan-1": {"approved": False, "note": "not now"}
    }
    assert person.has_left
    assert person([CHOOSE]) == []
    said = capsys.readouterr().err
    assert "look_up cannot be refused" in said
    assert "sign in with adk web" in said


def test_what_was_left_open_is_asked_again_when_wished() -> None:
    person, keys = typed("/later", "yes")
    assert person([ASK]) == person([ASK]) == []
    person.come_back()
    assert values(person([ASK])) == {"ask-1": YES}
    assert len(keys.prompts) == 2

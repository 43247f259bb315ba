"""`gate`: what it builds, what it looks like, and every mistake with it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from misuse import KEYS, PREDICATE, Case
from pydantic import BaseModel, Field

import adk_fluent
from adk_fluent import Agent, S, gate
from adk_fluent.builders import explain
from adk_fluent.contracts import GateInRace
from adk_fluent.errors import BuildError, SessionError, UnknownNameError, UsageError
from adk_fluent.ir import (
    GateNode,
    Match,
    Ref,
    RouteNode,
    SequenceNode,
    from_json,
    to_json,
    verify,
)
from adk_fluent.protocol import Pending
from adk_fluent.testing import mock_backend


def large(state: Any) -> bool:
    return state["amount"] > 100


async def large_soon(state: Any) -> bool:
    return large(state)


def shown(state: Any) -> Any:
    return {"amount": state["amount"]}


def doubled(state: Any) -> dict[str, Any]:
    return {"amount": state["amount"] * 2}


def gen(state: Any) -> Any:
    yield {}


class Refund(BaseModel):
    amount: float
    why: str = Field(default="", max_length=80)


@dataclass
class Choice:
    plan: Literal["slow", "fast"]


class Thing:
    pass


a, b = Agent("a"), Agent("b")
NODE = GateNode("approve", Ref.to(large), "Refund?", Ref.to(shown), '{"type":"string"}', "answer")


def full() -> Any:
    return gate(
        large,
        message="Refund?",
        payload=shown,
        response_schema={"type": "string"},
        key="answer",
        name="approve",
    )


# --- what it builds ------------------------------------------------------------------------------


def test_its_node() -> None:
    assert gate().build() == GateNode("gate")
    assert gate().build().location is not None
    assert full().build() == NODE
    assert verify(NODE) == ()


@pytest.mark.parametrize("predicate", [large_soon, Match("gt", "amount", 100), Ref.to(large)])
def test_whatever_a_test_over_state_can_be(predicate: Any) -> None:
    expected = predicate if isinstance(predicate, Match) else Ref.to(large)
    expected = Ref.to(large_soon) if predicate is large_soon else expected
    assert gate(predicate).build() == GateNode("gate", expected)


def test_setters_and_copies() -> None:
    one = full()
    other = one.clone("other")
    assert one.description("Asks.") is one
    assert one.build() == NODE.replace(description="Asks.")
    assert other.build() == NODE.replace(name="other")
    assert one.named("again").with_(name="third").build().name == "third"


@pytest.mark.parametrize(
    ("given", "schema"),
    [
        ({"enum": ["pay", "wait"]}, {"enum": ["pay", "wait"]}),
        (int, {"type": "integer"}),
        (Literal["pay", "wait"], {"enum": ["pay", "wait"], "type": "string"}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Annotated[int, Field(gt=3)], {"exclusiveMinimum": 3, "type": "integer"}),
        (list[str], {"items": {"type": "string"}, "type": "array"}),
        (
            Refund,
            {
                "properties": {
                    "amount": {"title": "Amount", "type": "number"},
                    "why": {"default": "", "maxLength": 80, "title": "Why", "type": "string"},
                },
                "required": ["amount"],
                "title": "Refund",
                "type": "object",
            },
        ),
        (
            Choice,
            {
                "properties": {
                    "plan": {"enum": ["slow", "fast"], "title": "Plan", "type": "string"}
                },
                "required": ["plan"],
                "title": "Choice",
                "type": "object",
            },
        ),
    ],
)
def test_a_schema_is_kept_as_text(given: Any, schema: Any) -> None:
    node = gate(response_schema=given).build()
    assert isinstance(node, GateNode)
    assert json.loads(node.response_schema or "") == schema
    assert verify(node) == ()


def test_a_schema_that_is_changed_later_changes_nothing() -> None:
    schema: dict[str, Any] = {"enum": ["é"]}
    builder = gate(response_schema=schema)
    schema["enum"].append("late")
    assert builder.build() == GateNode("gate", response_schema='{"enum":["é"]}')


def test_steps_behind_it() -> None:
    node = GateNode("gate")
    assert (a >> gate() >> S.set(x=1) >> b).build().children[1] == node
    assert (a >> gate() >> doubled).build().children[1] == node
    pick = gate(response_schema={"enum": ["pay", "wait"]}, name="pick", key="choice")
    chosen = RouteNode(
        "route",
        "choice",
        (Match("eq", "choice", "pay"), Match("eq", "choice", "wait")),
        (a.build(), b.build()),
    )
    assert (pick >> {"pay": a, "wait": b}).build().children[1] == chosen
    assert (pick >> S.log("choice") >> {"pay": a, "wait": b}).build().children[2] == chosen


def test_json_there_and_back() -> None:
    pipeline = (a >> full() >> b).build()
    assert from_json(to_json(pipeline), allow_imports=[__name__]) == pipeline


# --- what it does --------------------------------------------------------------------------------


async def shown_soon(state: Any, rate: float) -> Any:
    return {"amount": state["amount"] * rate}


@pytest.mark.parametrize("predicate", [None, large, large_soon, Match("gt", "amount", 100)])
async def test_it_asks_waits_and_goes_on(predicate: Any) -> None:
    asks = gate(predicate, message="Pay?", payload=shown_soon, name="ask", key="answer")
    pipeline = (S.set(amount=200) >> asks >> S.set(done=1)).inject(rate=0.5)
    backend = mock_backend({})
    asked = await pipeline.run("hi", backend=backend, session_id="s")
    (question,) = asked.pending
    assert (question.kind, question.name, question.message) == ("gate", "ask", "Pay?")
    assert question.payload == {"amount": 100.0}
    assert asked.state == {"amount": 200}
    done = await pipeline.resume(question.answer(True), backend=backend, session_id="s")
    assert done.pending == []
    assert done.state == {"amount": 200, "answer": {"approved": True, "note": ""}, "done": 1}


def small(state: Any) -> bool:
    return not large(state)


@pytest.mark.parametrize("predicate", [small, Match("lt", "amount", 100)])
async def test_it_does_not_ask_without_need(predicate: Any) -> None:
    pipeline = S.set(amount=200) >> gate(predicate) >> S.set(done=1)
    ran = await pipeline.run("hi", backend=mock_backend({}))
    assert (ran.pending, ran.state) == ([], {"amount": 200, "done": 1})


@pytest.mark.parametrize("choice", ["pay", "wait"])
async def test_what_is_chosen_is_run(choice: str) -> None:
    pick = gate(response_schema=Literal["pay", "wait"], name="pick")
    pipeline = pick >> S.log("pick") >> {"pay": S.set(paid=1), "wait": S.set(waits=1)}
    backend = mock_backend({})
    asked = await pipeline.run("hi", backend=backend, session_id="s")
    (question,) = asked.pending
    assert question.response_schema == {"enum": ["pay", "wait"], "type": "string"}
    with pytest.raises(UsageError, match="does not fit its schema: 'stay' is not one of"):
        await pipeline.resume(question.answer("stay"), backend=backend, session_id="s")
    done = await pipeline.resume(question.answer(choice), backend=backend, session_id="s")
    assert done.state == {"pick": choice, {"pay": "paid", "wait": "waits"}[choice]: 1}


@pytest.mark.adk
@pytest.mark.parametrize("answer", [True, False])
async def test_false_is_no_refusal_where_it_is_asked_for(answer: bool) -> None:
    from adk_fluent.backends.adk import ADKBackend

    pipeline = gate(response_schema=bool, name="certain") >> S.set(done=1)
    for backend in (mock_backend({}), ADKBackend()):
        asked = await pipeline.run("hi", backend=backend)
        given = asked.pending[0].answer(answer)
        done = await pipeline.resume(given, backend=backend, session_id=asked.session_id)
        assert done.state == {"certain": answer, "done": 1}


async def test_what_waits_is_no_answer() -> None:
    pipeline = Agent("count").mock("250") >> gate(message="Pay?", name="approve")
    says = "pipeline has no answer yet, for it waits for one"
    with pytest.raises(SessionError, match=says) as raised:
        await pipeline.ask_async("hi", backend=mock_backend({}))
    assert raised.value.found == "approve: Pay?"
    with pytest.raises(SessionError, match=says):
        await pipeline.map_async(["hi"], backend=mock_backend({}))
    with pytest.raises(SessionError, match=says):
        await asyncio.to_thread(pipeline.ask, "hi", backend=mock_backend({}))


@pytest.mark.parametrize("given", [True, "yes", {"approved": True}, Pending("g-1", "gate")])
async def test_what_is_no_answer_is_refused(given: Any) -> None:
    with pytest.raises(UsageError, match=r"resume\(...\) takes answers") as raised:
        await gate().resume(given, backend=mock_backend({}), session_id="s")
    assert raised.value.help == "make one of a question: result.pending[0].answer(True)"


async def test_nobody_is_asked_in_a_race_when_it_runs() -> None:
    with pytest.raises(BuildError, match="which cannot wait for a person"):
        await adk_fluent.race(gate(), S.set(x=1)).run("hi", backend=mock_backend({}))


# --- what it looks like --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"title": "Refund", "type": "object"}, "Refund"),
        ({"properties": {"a": {}, "b": {}}}, "a, b"),
        ({"enum": [1, "two"]}, "1, two"),
        ({"type": ["string", "null"]}, "string, null"),
        ({}, "JSON"),
    ],
)
def test_in_words(schema: Any, words: str) -> None:
    text = gate(large, message="Pay?", payload=shown, response_schema=schema).explain()
    headline, *details = text.splitlines()
    assert headline.startswith("gate: Pay?, if large")
    assert [line.strip() for line in details] == [
        "shows: shown",
        f"answers with: {words}",
        "writes: gate",
    ]


@pytest.mark.parametrize(("schema", "words"), [("true", "true"), ("{", "text that is no JSON")])
def test_in_words_when_it_was_not_built(schema: str, words: str) -> None:
    text = explain(GateNode("g", response_schema=schema, key="k"))
    assert [line.strip() for line in text.splitlines()[1:]] == [
        f"answers with: {words}",
        "writes: k",
    ]


def test_as_a_picture() -> None:
    drawn = (a >> full() >> b).to_mermaid()
    assert "gate approve<br/>Refund?<br/>if large<br/>writes answer" in drawn


# --- mistakes ------------------------------------------------------------------------------------

AnyAgent: Any = Agent  # Any: a type checker finds these mistakes by itself
Gate: Any = gate
SCHEMA = "response_schema of gate(...)"
A_SCHEMA = 'pass a dict such as {"type": "string"}, or a pydantic model class'
KEPT = "a key that ADK and adk-fluent keep for themselves"

CASES = [
    Case(
        lambda: Gate("Sure?"),
        "gate(...) takes a function of state",
        found="a str",
        help="for what the person is asked write gate(message=...)",
    ),
    Case(lambda: Gate(True), "gate(...) takes a function of state", "True", PREDICATE),
    Case(lambda: Gate(Thing), "gate(...) takes a function of state", "the class Thing", PREDICATE),
    Case(lambda: Gate(message=3), "the message of gate(...) takes text", "3"),
    Case(
        lambda: Gate(message=" \n"),
        "the message of gate(...) is empty",
        help="say what the person is asked, in a sentence",
    ),
    Case(
        lambda: Gate(payload={"a": 1}),
        "payload takes a function of state",
        found="a dict",
        help='pass fn(state) -> JSON, such as lambda s: {"amount": s["amount"]}',
    ),
    Case(
        lambda: Gate(payload=Thing),
        "payload takes a function of state",
        found="the class Thing",
        help='pass fn(state) -> JSON, such as lambda s: {"amount": s["amount"]}',
    ),
    Case(
        lambda: Gate(payload=gen),
        "a generator cannot be the payload of a gate",
        found="the function gen",
        help="return what is shown; do not yield",
    ),
    Case(
        lambda: Gate(response_schema='{"type": "string"}'),
        f"{SCHEMA} takes a JSON Schema or a type",
        found="a str",
        help=A_SCHEMA,
    ),
    Case(
        lambda: Gate(response_schema=Refund(amount=1)),
        f"{SCHEMA} takes a JSON Schema or a type",
        found="a Refund",
        help=A_SCHEMA,
    ),
    Case(
        lambda: Gate(response_schema=True),
        f"{SCHEMA} takes a JSON Schema or a type",
        found="True",
        help=A_SCHEMA,
    ),
    Case(
        lambda: Gate(response_schema={"type": "thing"}),
        f"{SCHEMA} is no JSON Schema that answers can be checked against",
        found="at $.type: 'thing' is not valid under any of the given schemas",
    ),
    Case(
        lambda: Gate(response_schema={"$ref": "#/$defs/nowhere"}),
        f"{SCHEMA} is no JSON Schema that answers can be checked against",
        found="$ref '#/$defs/nowhere' leads to nothing within it",
    ),
    Case(
        lambda: Gate(response_schema={"enum": {1}}),
        f"{SCHEMA} takes values that JSON can hold",
        found="a set at enum",
        help="sessions are stored as JSON: give None, bool, int, float, str, list, or dict with "
        "str keys",
    ),
    Case(
        lambda: Gate(response_schema=Thing),
        f"{SCHEMA} takes a type that pydantic has a JSON Schema for",
        found="the class Thing",
        help=f"pydantic says: Unable to generate pydantic-core schema for {Thing!r}",
    ),
    Case(lambda: Gate(key=""), "key takes state keys", "an empty str", KEYS),
    Case(lambda: Gate(key=3), "key takes state keys", "3", KEYS),
    Case(lambda: Gate(key="_adk_x"), "key does not take '_adk_x'", KEPT, "choose another key"),
    Case(
        lambda: Gate(name="the gate"),
        "'the gate' cannot name a Gate",
        found="not an identifier",
        help="use letters, digits and underscores, such as 'the_gate'",
        error=BuildError,
    ),
    Case(
        lambda: Gate(name="user"),
        "'user' cannot name a Gate",
        found="a name that ADK and adk-fluent keep for themselves",
        help="choose another one, such as 'my_user'",
        error=BuildError,
    ),
    Case(
        lambda: a >> Gate(name="ok") >> {"yes": b},
        "a dict of branches needs one value for each branch",
        found="the approval of gate 'ok', behind which all is approved",
        help='let the person choose: gate(..., response_schema={"enum": ["pay", "wait"]})',
        error=BuildError,
    ),
    *[
        Case(
            lambda word=word: getattr(a, word),
            f"Agent 'a' has no method '{word}'",
            help="to ask a person before the next step write a >> gate(message=...)",
            error=UnknownNameError,
        )
        for word in ("interrupt", "approve", "ask_human", "confirm", "human_in_the_loop")
    ],
    Case(
        lambda: AnyAgent("x", human_input=True),
        "Agent(...) takes a name and a model, and no 'human_input'",
        help="to ask a person before the next step write a >> gate(message=...)",
        error=UnknownNameError,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_mistake_is_refused_with_an_exact_message(case: Case) -> None:
    assert case.raised() == case.expected()


def test_nobody_is_asked_in_a_race() -> None:
    report = (adk_fluent.race(gate() >> a, b) >> b).check()
    assert [type(found) for found in report.errors] == [GateInRace]


def test_what_a_payload_needs_is_checked() -> None:
    def needs(state: Any, db: Any) -> Any:
        return db

    pipeline = a >> gate(payload=needs)
    assert [found.message for found in pipeline.check().errors] == [
        "in `gate`, `needs` needs `db`, which no resource fills"
    ]
    assert pipeline.inject(db=1).check().ok


def test_it_is_a_step_and_nothing_else() -> None:
    assert isinstance((gate() >> a).build(), SequenceNode)
    with pytest.raises(UnknownNameError, match="it is a method of Agent"):
        Gate().instruct("Ask.")

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adk_fluent.extend import answer_fault
from adk_fluent.flow._gates import question as gate_question
from adk_fluent.ir import GateNode
from adk_fluent.protocol import Pending
from adk_fluent.protocol._decision import NO, YES, Decision, Fault, decide
from adk_fluent.protocol._json_schema import has_field, schema_fault, schema_misfit

REFUND = json.dumps(
    {
        "type": "object",
        "properties": {"amount": {"type": "number", "minimum": 0}, "note": {"type": "string"}},
        "required": ["amount"],
    }
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = st.sampled_from(["approved", "confirmed", "result", "response", "note"])
ANSWERS = VALUES | st.dictionaries(KEYS, VALUES | st.sampled_from(sorted(YES | NO)))
SCHEMAS = st.sampled_from([None, REFUND, "true", '{"type":"integer"}', '{"$ref":"#"}', "{", "3"])


def approval(approved: bool, **more: Any) -> Decision:
    return Decision(approved, {"approved": approved, "note": "", **more})


# --- approval ------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", sorted(YES))
def test_words_that_approve(word: str) -> None:
    assert decide(None, word) == decide(None, f"  {word.upper()}\n") == approval(True)


@pytest.mark.parametrize("word", sorted(NO))
def test_words_that_refuse(word: str) -> None:
    assert decide(None, word) == decide(None, f"\t{word.title()} ") == approval(False)


@pytest.mark.parametrize(
    "answer",
    [
        True,
        {"approved": True},
        {"approved": "Yes"},
        {"approved": True, "note": None},
        {"confirmed": True},
        {"approved": True, "confirmed": "ok"},
        {"result": True},
        {"result": "yes"},
        {"response": "Approved"},
        {"result": {"approved": True}},
        {"result": '{"approved": true}'},
        '{"approved": true}',
        ' "yes" ',
    ],
)
def test_every_way_to_approve(answer: Any) -> None:
    assert decide(None, answer) == approval(True)


@pytest.mark.parametrize(
    "answer", [False, {"approved": False}, {"response": "no"}, '{"confirmed": "no"}']
)
def test_every_way_to_refuse(answer: Any) -> None:
    assert decide(None, answer) == approval(False)


def test_what_else_was_sent_is_kept() -> None:
    sent = {"confirmed": True, "note": "fine", "by": ["ann"]}
    assert decide(None, sent) == approval(True, note="fine", by=["ann"])
    assert decide(None, {"result": json.dumps(sent)}) == approval(True, note="fine", by=["ann"])


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        ("hmm maybe", "'hmm maybe' is no answer to gate 'refund'"),
        ({"result": "perhaps"}, "'perhaps' is no answer to gate 'refund'"),
        ("", "'' is no answer to gate 'refund'"),
        ("x" * 100, f"'{'x' * 57}...' is no answer to gate 'refund'"),
        (None, "nothing is no answer to gate 'refund'"),
        (1, "1 is no answer to gate 'refund'"),
        ([True], "a list is no answer to gate 'refund'"),
        ({}, "an object without approved is no answer to gate 'refund'"),
        ({"note": "no"}, "an object without approved is no answer to gate 'refund'"),
        ({"approved": None}, "an object without approved is no answer to gate 'refund'"),
        ({"approved": "hmm"}, "approved 'hmm' is no answer to gate 'refund'"),
        ({"approved": True, "confirmed": 3}, "approved True is no answer to gate 'refund'"),
        ({"result": "yes", "more": 1}, "an object without approved is no answer to gate 'refund'"),
    ],
)
def test_no_answer(answer: Any, what: str) -> None:
    assert decide(None, answer, "refund") == Fault(
        what, 'answer yes or no, or {"approved": true, "note": "..."}'
    )


def test_yes_and_no_at_once() -> None:
    assert decide(None, {"approved": True, "confirmed": False}, "g") == Fault(
        "the answer to gate 'g' says both yes and no", "give approved alone, without confirmed"
    )


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    "value", [float("nan"), {1, 2}, object(), b"yes", "\ud800", LOOP, nested(100), nested(100_000)]
)
def test_what_json_cannot_hold(value: Any) -> None:
    expected = Fault(
        "the answer to gate 'g' is more than JSON can hold",
        "answer text, a number, a bool, None, or a list or dict of them; of a pydantic model its "
        "model_dump(mode='json')",
    )
    for schema in (None, "true"):
        assert decide(schema, {"approved": True, "note": value}, "g") == expected


def test_text_that_says_more_than_json_is_only_text() -> None:
    for text in ("NaN", "1e999", '"\\ud800"', "[" * 100_000, "[" * 90 + "]" * 90):
        assert isinstance(decide(None, text), Fault)
        assert decide("true", text) == Decision(True, text)
        assert isinstance(decide('{"not": {"type": "string"}}', text), Fault)


# --- schemas -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        {"amount": 5},
        '{"amount": 5}',
        {"result": {"amount": 5}},
        {"response": '{"amount": 5}'},
        {"amount": 5, "note": None},  # a form sends what was left empty
    ],
)
def test_an_answer_that_fits(answer: Any) -> None:
    assert decide(REFUND, answer) == Decision(True, {"amount": 5})


def test_none_stays_where_the_schema_takes_it() -> None:
    schema = '{"type":"object","properties":{"note":{"type":["string","null"]}}}'
    assert decide(schema, {"note": None}) == Decision(True, {"note": None})


@pytest.mark.parametrize(
    ("schema", "answer", "value"),
    [
        ('{"type":"integer"}', {"result": "42"}, 42),
        ('{"type":"string"}', {"result": "42"}, "42"),
        ('{"type":"string"}', "no", "no"),
        ('{"type":"boolean"}', False, False),
        ('{"type":"boolean"}', "false", False),
        ('{"type":"null"}', None, None),
        ("true", {"result": "42"}, "42"),
        ('{"properties":{"result":{"type":"string"}}}', {"result": "42"}, {"result": "42"}),
        ('{"properties":{"result":{"type":"integer"}}}', {"result": {"result": 4}}, {"result": 4}),
        ('{"enum":["low","high"]}', {"response": "low"}, "low"),
        ('{"type":"string","format":"date-time"}', "2026-11-21T10:00:00Z", "2026-11-21T10:00:00Z"),
    ],
)
def test_which_reading_of_an_answer_counts(schema: str, answer: Any, value: Any) -> None:
    assert decide(schema, answer) == Decision(True, value)


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        ("yes", "'yes' is not of type 'object'"),
        (True, "True is not of type 'object'"),
        ({"result": "yes"}, "'yes' is not of type 'object'"),
        ({}, "'amount' is a required property"),
        ({"amount": "x"}, "at $.amount: 'x' is not of type 'number'"),
        ('{"amount": -1}', "at $.amount: -1 is less than the minimum of 0"),
        ({"amount": "x" * 300}, f"at $.amount: '{'x' * 196}..."),
    ],
)
def test_an_answer_that_does_not_fit(answer: Any, wrong: str) -> None:
    assert decide(REFUND, answer, "refund") == Fault(
        f"the answer to gate 'refund' does not fit its schema: {wrong}",
        'answer JSON that fits the schema, or {"approved": false} to refuse',
    )


#: Schemas with a field ``approved`` of their own.
OWN = [
    '{"type":"object","properties":{"approved":{"type":"boolean"}}}',
    '{"$ref":"#/$defs/a/b~1c","$defs":{"a":{"b/c":{"type":"object","properties":{"approved":{}}}}}}',
    '{"allOf":[{"type":"object"},{"properties":{"approved":{"type":"boolean"}}}]}',
    '{"anyOf":[{"type":"null"},{"type":"object","properties":{"approved":{"type":"boolean"}}}]}',
    '{"oneOf":[{"type":"null"},{"type":"object","required":["approved"]}]}',
    '{"allOf":[{"$ref":"#"},{"properties":{"approved":{}}}],"x":1}',
]
#: Schemas that have none, whatever else they say of the word.
OTHERS = [
    REFUND,
    "true",
    '{"properties":{"verdict":{"enum":["approved"]}}}',
    '{"properties":{"legal":{"properties":{"approved":{}}}}}',
    '{"$ref":"#/$defs/a","$defs":{"a":{"type":"object"},"b":{"properties":{"approved":{}}}}}',
]


@pytest.mark.parametrize("schema", [each for each in OWN if '"#"' not in each])
@pytest.mark.parametrize(
    "answer", [{"approved": False}, {"result": {"approved": False}}, '{"approved": false}']
)
def test_a_field_of_the_schema_s_own_is_data(schema: str, answer: Any) -> None:
    assert decide(schema, answer) == Decision(True, {"approved": False})


@pytest.mark.parametrize("schema", OWN)
def test_it_is_found_wherever_it_stands(schema: str) -> None:
    assert has_field(schema, "approved")
    assert not has_field(schema, "note")


@pytest.mark.parametrize("schema", [*OTHERS, "{", "3", '{"$ref":"#/nowhere"}', '{"$ref":"x"}'])
def test_it_is_found_nowhere_else(schema: str) -> None:
    assert not has_field(schema, "approved")


def test_such_a_field_refuses_nothing_where_the_answer_does_not_fit() -> None:
    schema = '{"properties":{"approved":{"type":"boolean"}},"required":["reason"]}'
    assert decide(schema, {"approved": False}) == Fault(
        "the answer to gate 'gate' does not fit its schema: 'reason' is a required property",
        "answer JSON that fits the schema",
    )


@pytest.mark.parametrize("schema", OTHERS)
@pytest.mark.parametrize(
    "answer", [{"approved": False}, {"result": {"approved": False}}, '{"approved": false}']
)
def test_refusing_whatever_the_schema(schema: str, answer: Any) -> None:
    assert decide(schema, answer) == approval(False)


def test_a_refusal_keeps_its_note() -> None:
    refused = decide(REFUND, {"approved": False, "note": "too much"})
    assert refused == approval(False, note="too much")


@pytest.mark.parametrize("schema", ["{", "3", '{"type":"thing"}', '{"$ref":"#/nowhere"}'])
def test_a_schema_that_cannot_be_used(schema: str) -> None:
    fault = decide(schema, 1, "g")
    assert isinstance(fault, Fault)
    assert fault.what.startswith("the schema of gate 'g' cannot be used: ")


def test_a_schema_without_an_end() -> None:
    fault = decide('{"$ref":"#"}', 1)
    assert isinstance(fault, Fault)
    assert "refers to itself without an end" in fault.what


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        ({"type": "thing"}, "at $.type: 'thing' is not valid under any of the given schemas"),
        ({"pattern": "("}, "at $.pattern: '(' is not a 'regex'"),
        ({"$ref": "#/$defs/a"}, "$ref '#/$defs/a' leads to nothing within it"),
        (
            {"properties": {"a": {"items": {"$ref": "https://127.0.0.1:9/a.json"}}}},
            "$ref 'https://127.0.0.1:9/a.json' leads to nothing within it",
        ),
        ([], "a schema is an object, True or False"),
        (None, "a schema is an object, True or False"),
    ],
)
def test_what_is_wrong_with_a_schema(schema: Any, fault: str) -> None:
    assert schema_fault(schema) == fault


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        {"const": {"$ref": "#/nowhere"}},
        {"properties": {"$ref": {"type": "string"}}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]},
        {"$defs": {"a": {"properties": {"next": {"$ref": "#/$defs/a"}}}}, "$ref": "#/$defs/a"},
        {"$defs": {"a": {"$anchor": "here"}}, "items": {"$ref": "#here"}},
    ],
)
def test_schemas_that_can_be_used(schema: Any) -> None:
    assert schema_fault(schema) is None
    assert schema_misfit(json.dumps(schema), {}) in (None, "{'$ref': '#/nowhere'} was expected")


@pytest.mark.parametrize(
    ("format", "wrong"),
    [("date", "soon"), ("date-time", "soon"), ("email", "ann"), ("uuid", "7"), ("ipv4", "1.2")],
)
def test_formats_that_are_checked_on_every_machine(format: str, wrong: str) -> None:
    assert schema_misfit(json.dumps({"format": format}), wrong) == f"{wrong!r} is not a {format!r}"


# --- laws ----------------------------------------------------------------------------------------


@given(SCHEMAS, ANSWERS)
def test_every_answer_is_decided_or_explained(schema: str | None, answer: Any) -> None:
    found = decide(schema, answer)
    assert isinstance(found, Decision | Fault)
    if isinstance(found, Decision):
        json.dumps(found.value, allow_nan=False).encode()
    else:
        assert found.what
        assert found.help


@given(ANSWERS)
def test_an_approval_decides_the_same_again(answer: Any) -> None:
    found = decide(None, answer)
    if isinstance(found, Decision):
        assert decide(None, found.value) == found


@given(ANSWERS)
def test_what_approves_fits_the_schema(answer: Any) -> None:
    found = decide(REFUND, answer)
    if isinstance(found, Decision) and found.approved:
        assert schema_misfit(REFUND, found.value) is None


@given(
    st.booleans() | st.sampled_from(sorted(YES | NO)) | st.builds(dict, approved=st.booleans()),
    st.sampled_from(["result", "response"]),
)
def test_wrapping_changes_nothing_of_an_approval(answer: Any, key: str) -> None:
    assert decide(None, {key: answer}) == decide(None, answer)
    assert decide(None, {key: json.dumps(answer)}) == decide(None, answer)


def test_an_answer_is_judged_by_its_question_alone() -> None:
    asked = gate_question(GateNode("ok"), None)
    read = Pending(**json.loads(json.dumps(asdict(asked))))
    for question in (asked, read):
        assert answer_fault(question, "yes") is None
        fault = answer_fault(question, "perhaps")
        assert fault is not None
        assert "is no answer to gate 'ok'" in fault.what
    amount = gate_question(GateNode("ok", response_schema=REFUND), None)
    assert answer_fault(amount, {"amount": 3}) is None
    assert answer_fault(amount, {"approved": False}) is None
    assert answer_fault(amount, {"amount": "x"}) is not None
    assert answer_fault(Pending("1", "confirmation", "tool"), "perhaps") is not None
    assert answer_fault(Pending("1", "tool", "tool"), "perhaps") is None

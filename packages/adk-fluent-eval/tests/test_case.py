"""Cases: what they say, what they are called, and what they refuse."""

from __future__ import annotations

import copy
import dataclasses
import math
import os
import pickle
import re
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adk_fluent.eval import (
    EvalError,
    FluentCase,
    FluentEvalSuite,
    Rubric,
    ToolCall,
    Turn,
    UserSimulation,
)
from adk_fluent.eval._cases._case import CaseFields, SessionFields, key_of, text_of
from adk_fluent.ir import StateFieldRef


class Part(SimpleNamespace):
    """As ADK's, which is not needed here."""

    text: str | None = None
    inline_data: Any = None
    file_data: Any = None


def image(data: bytes = b"png") -> Part:
    return Part(inline_data=SimpleNamespace(mime_type="image/png", data=data))


def content(*parts: Part) -> Any:
    return SimpleNamespace(parts=list(parts), role="user")


# --- turns ---------------------------------------------------------------------------------------


def test_one_turn() -> None:
    case = FluentCase(
        "hi",
        expected_trajectory=["a", ToolCall("b", {"n": 1})],
        expected_response_contains="x",
        reference_response="ref",
        state_assertions={"a": 1},
        rubrics=["polite"],
    )
    [turn] = case.turns
    assert turn.input == "hi"
    assert turn.trajectory == (ToolCall("a"), ToolCall("b", {"n": 1}))
    assert turn.contains == ("x",)
    assert turn.reference_response == "ref"
    assert turn.state_assertions is None  # that of the case is looked at in the end
    assert turn.rubrics == ()


def test_what_a_case_expects_is_expected_of_its_last_turn() -> None:
    first = Turn("1", ["a"], "one", "x", {"k": 1}, ["r"])
    last = Turn("3", expected_response_contains=["y"], state_assertions={"k": 2})
    case = FluentCase(
        [first, "2", last],
        expected_trajectory=[],
        reference_response="three",
        expected_response_contains=re.compile("z"),
    )
    assert case.turns[0] == first
    assert case.turns[1] == Turn("2")
    assert case.turns[2] == Turn("3", [], "three", ("y", re.compile("z")), {"k": 2})
    assert last.expected_trajectory is None  # it is not changed


def test_a_turn_that_expects_nothing_is_not_checked() -> None:
    [turn] = FluentCase("hi").turns
    assert (turn.trajectory, turn.contains, turn.reference_response) == (None, (), None)


@pytest.mark.parametrize(
    ("given", "texts"),
    [
        ("hi", ["hi"]),
        (["a", "b"], ["a", "b"]),
        (("a", Turn("b")), ["a", "b"]),
        (Turn("a"), ["a"]),
        (Turn(["look", image()]), ["look [image/png]"]),
        (image(), ["[image/png]"]),
        (content(Part(text="look"), image()), ["look [image/png]"]),
        ([content(Part(text="a")), "b"], ["a", "b"]),
        (Part(file_data=SimpleNamespace(mime_type=None, file_uri="gs://x")), ["[file]"]),
        (Part(function_response={}), [""]),
    ],
)
def test_what_is_said(given: Any, texts: list[str]) -> None:
    assert [text_of(turn.input) for turn in FluentCase(given).turns] == texts


# --- ids -----------------------------------------------------------------------------------------


def test_an_id_of_ones_own() -> None:
    assert FluentCase("hi", id="greet").name == "greet"
    assert FluentCase("hi", metadata={"id": "greet"}).id == "greet"
    assert FluentCase("hi", id="a", metadata={"id": "b"}).name == "a"
    assert FluentCase("hi", metadata={"id": 7}).id is None


def test_a_made_id_says_what_the_case_says() -> None:
    name = FluentCase("Where is my order #42?").name
    assert re.fullmatch(r"where-is-my-order-42-[0-9a-f]{8}", name)
    assert re.fullmatch(r"[0-9a-f]{8}", FluentCase("退款").name)
    assert len(FluentCase("word " * 1000).name) <= 49
    assert FluentCase("\ud800").name  # half a character


def test_what_makes_an_id_and_what_does_not() -> None:
    base = FluentCase("hi")
    same = FluentCase("hi", expected_trajectory=["a"], tags=["x"], metadata={"a": 1}, max_tokens=1)
    assert same.name == base.name
    others = [
        FluentCase("Hi"),
        FluentCase(["hi", "there"]),
        FluentCase("hi there"),
        FluentCase("hi", target_node="a"),
        FluentCase("hi", initial_state={"a": 1}),
        FluentCase("hi", initial_state={"a": "1"}),
        FluentCase("hi", initial_state={"b": 1}),
        FluentCase(Turn(["hi", image()])),
        FluentCase(Turn(["hi", image(b"other")])),
        FluentCase(Turn(["hi", Part(file_data=SimpleNamespace(file_uri="gs://a"))])),
        FluentCase(Turn(["hi", Part(file_data=SimpleNamespace(file_uri="gs://b"))])),
    ]
    assert len({each.name for each in [base, *others]}) == 1 + len(others)


def test_order_of_state_makes_no_id() -> None:
    one = FluentCase("hi", initial_state={"a": {"x": 1, "y": 2}, StateFieldRef("b"): 2})
    other = FluentCase("hi", initial_state={"b": 2, "a": {"y": 2, "x": 1}})
    assert one.name == other.name


ODD_CASE = """
from enum import Enum
from adk_fluent.eval import FluentCase
class Thing: pass
class Color(Enum):
    RED = object
def tell(): pass
state = {
    "set": {"a", "b", "c", "d"}, "thing": Thing(), "type": Thing, "enum": Color.RED, "f": tell,
    "nested": [{"x": frozenset("abcdef")}], "float": 0.1, "none": None, "self": print,
}
print(FluentCase("hi", initial_state=state).name)
"""


def test_ids_are_the_same_in_every_process() -> None:
    """Whatever the seed of hashes, and wherever objects happen to be."""
    names = {
        subprocess.run(
            [sys.executable, "-c", filler + ODD_CASE],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed, filler in (("1", ""), ("2", "kept = [object() for _ in range(5000)]\n"))
    }
    assert len(names) == 1
    assert next(iter(names)).startswith("hi-")


def test_made_ids_never_change() -> None:
    """Baselines are kept for years."""
    assert FluentCase("Refund my order", initial_state={"tier": "gold"}).name == GOLDEN


GOLDEN = "refund-my-order-cc6a68a3"


@given(st.text(min_size=1).filter(str.strip))
def test_every_text_has_an_id(text: str) -> None:
    name = FluentCase(text).name
    assert re.fullmatch(r"([a-z0-9-]+-)?[0-9a-f]{8}", name)
    assert name == FluentCase(text).name


# --- as a value ----------------------------------------------------------------------------------


def test_cases_can_be_copied_kept_and_changed() -> None:
    case = FluentCase("hi", expected_trajectory=["a"], tags=["x"])
    for other in (copy.deepcopy(case), pickle.loads(pickle.dumps(case)), dataclasses.replace(case)):
        assert other == case
        assert other.location == case.location
    with pytest.raises(EvalError):
        dataclasses.replace(case, tags="x")


def test_a_case_knows_the_line_that_made_it() -> None:
    case = FluentCase("hi")
    line = sys._getframe().f_lineno - 1
    assert case.place == f"{__file__}:{line}"
    assert FluentCase("hi", location=("cases.yaml", 7)).place == "cases.yaml:7"
    assert case == FluentCase("hi", location=("cases.yaml", 7))


# --- bad input -----------------------------------------------------------------------------------

NOTHING = "it says nothing"

BAD: list[tuple[dict[str, Any], str]] = [
    ({"initial_state": {"temp:x": 1}}, "no agent gets what initial_state= gives 'temp:x'"),
    ({"initial_state": {StateFieldRef("temp:x"): 1}}, "no agent gets what initial_state= gives"),
    ({"state_assertions": {"temp:x": None}}, "state_assertions= expects something of 'temp:x'"),
    (
        {"state_assertions": {"k": 1, StateFieldRef("temp:x"): 1}},
        "state_assertions= expects something of 'temp:x'",
    ),
    ({"state_assertions": {"a.temp:x": None}}, "state_assertions= expects something of 'a.temp:x'"),
    ({"input": ["a", Turn("b", state_assertions={"temp:x": 1})]}, "turn 2: state_assertions="),
    ({"input": None}, "what the user says is no text"),
    ({"input": ""}, NOTHING),
    ({"input": " \n"}, NOTHING),
    ({"input": []}, NOTHING),
    ({"input": ()}, NOTHING),
    ({"input": 42}, "what the user says is no text"),
    ({"input": b"hi"}, "what the user says is no text"),
    ({"input": {"text": "hi"}}, "what the user says is no text"),
    ({"input": ["hi", ""]}, f"turn 2: {NOTHING}"),
    ({"input": ["hi", 42]}, "turn 2: what the user says is no text"),
    ({"input": ["hi", ["there"]]}, "turn 2: what the user says is no text"),
    ({"input": ["look", image()]}, "turn 2: a list is one turn after the other"),
    ({"input": content()}, NOTHING),
    ({"input": Turn("")}, NOTHING),
    ({"input": Turn([])}, NOTHING),
    ({"input": Turn([image(), 3])}, "what the user says is no text"),
    ({"input": Turn(None)}, "what the user says is no text"),
    ({"input": ["a", Turn("b", "tool")]}, "turn 2: expected_trajectory= is one text"),
    ({"input": ["a", Turn("b", [3])]}, "turn 2: an expected trajectory holds something that"),  # pyright: ignore[reportArgumentType]
    ({"input": [Turn("a", rubrics="r"), "b"]}, "turn 1: rubrics= is one text"),
    ({"input": Turn("a", reference_response=3)}, "reference_response= is no text"),  # pyright: ignore[reportArgumentType]
    ({"input": Turn("a", state_assertions=["k"])}, "state_assertions= is no mapping"),  # pyright: ignore[reportArgumentType]
    ({"input": Turn("a", state_assertions={3: 1})}, "state is named by keys"),
    ({"input": Turn("a", expected_response_contains=3)}, "expected_response_contains= takes"),  # pyright: ignore[reportArgumentType]
    ({"input": Turn("a", ["t"]), "expected_trajectory": ["t"]}, "expected_trajectory= is given tw"),
    (
        {"input": Turn("a", reference_response="x"), "reference_response": "x"},
        "reference_response= is given twice",
    ),
    ({"expected_trajectory": "tool"}, "expected_trajectory= is one text, not a list"),
    ({"expected_trajectory": {"tool": 1}}, "expected_trajectory= is no list"),
    ({"expected_trajectory": [""]}, "a ToolCall names its tool"),
    ({"expected_trajectory": [None]}, "an expected trajectory holds something that is no call"),
    ({"trajectory_match": "any"}, "there is no trajectory_match='any'"),
    ({"trajectory_match": None}, "there is no trajectory_match=None"),
    ({"trajectory_match": []}, "there is no trajectory_match=[]"),
    ({"expected_response_contains": ""}, "expected_response_contains= takes texts and patterns"),
    ({"expected_response_contains": ["a", ""]}, "expected_response_contains= takes texts and"),
    ({"expected_response_contains": 3}, "expected_response_contains= takes texts and patterns"),
    ({"expected_response_contains": {"a"}}, "expected_response_contains= takes texts and"),
    ({"expected_response_contains": re.compile(b"x")}, "expected_response_contains= takes texts"),
    ({"expected_response_contains": re.compile("")}, "expected_response_contains= takes texts"),
    ({"reference_response": 3}, "reference_response= is no text"),
    ({"mock_tool_outputs": ["a"]}, "mock_tool_outputs= is no mapping of tools to answers"),
    ({"mock_tool_outputs": {3: "a"}}, "mock_tool_outputs= names tools"),
    ({"mock_tool_outputs": {"": "a"}}, "mock_tool_outputs= names tools"),
    ({"initial_state": [("a", 1)]}, "initial_state= is no mapping of keys to values"),
    ({"initial_state": {3: 1}}, "state is named by keys"),
    ({"state_assertions": "a"}, "state_assertions= is no mapping"),
    ({"state_assertions": {None: 1}}, "state is named by keys"),
    ({"target_node": 3}, "target_node= is no name of a step"),
    ({"target_node": ""}, "target_node= is no name of a step"),
    ({"tags": "x"}, "tags= is one text, not a list of them"),
    ({"tags": None}, "tags= is no list"),
    ({"tags": {"x"}}, "tags= is no list"),
    ({"tags": ["x", 3]}, "a tag is no name"),
    ({"tags": [" "]}, "a tag is no name"),
    ({"metadata": None}, "metadata= is no mapping"),
    ({"metadata": ["id"]}, "metadata= is no mapping"),
    ({"id": ""}, "id= is no name"),
    ({"id": " "}, "id= is no name"),
    ({"id": 3}, "id= is no name"),
    ({"rubrics": "polite"}, "rubrics= is one text"),
    ({"rubrics": [3]}, "a rubric says nothing"),
    ({"rubrics": [""]}, "a rubric says nothing"),
    ({"simulation": "somebody"}, "simulation= is no UserSimulation"),
    ({"input": ["a", "b"], "simulation": UserSimulation(script=["c"])}, "it says several turns"),
    ({"max_cost_usd": -1}, "max_cost_usd= is no number from 0 up"),
    ({"max_cost_usd": math.nan}, "max_cost_usd= is no number from 0 up"),
    ({"max_cost_usd": "1"}, "max_cost_usd= is no number from 0 up"),
    ({"max_cost_usd": True}, "max_cost_usd= is no number from 0 up"),
    ({"max_tokens": 1.5}, "max_tokens= is no whole number from 0 up"),
    ({"max_tokens": -1}, "max_tokens= is no whole number from 0 up"),
    ({"max_latency_s": math.inf}, "max_latency_s= is no number from 0 up"),
    ({"max_tool_calls": True}, "max_tool_calls= is no whole number from 0 up"),
    ({"timeout_s": -0.1}, "timeout_s= is no number from 0 up"),
    ({"timeout_s": 0}, "timeout_s=0 ends every run before it begins"),
    ({"skip": True}, "skip= is no reason"),
    ({"skip": ""}, "skip= is no reason"),
    ({"xfail": 1}, "xfail= is no reason"),
]


@pytest.mark.parametrize(("fields", "message"), BAD, ids=[str(n) for n in range(len(BAD))])
def test_bad_input(fields: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"input": "hi", **fields}
    with pytest.raises(EvalError) as caught:
        FluentCase(**given)
    line = sys._getframe().f_lineno - 1
    assert caught.value.what.startswith(f"case: {message}") or (
        isinstance(given.get("id"), str) and message in caught.value.what
    )
    assert f"\n  where: {__file__}:{line}" in str(caught.value)


@pytest.mark.parametrize(
    ("contains", "found"),
    [
        (re.compile(b"x"), "a pattern that is empty or of bytes"),
        (re.compile(""), "a pattern that is empty or of bytes"),
        ("", "an empty str"),
        (3, "3"),
    ],
)
def test_what_no_answer_can_contain(contains: Any, found: str) -> None:
    with pytest.raises(EvalError) as caught:
        FluentCase("hi", expected_response_contains=contains)
    assert caught.value.found == found
    assert r're.compile(r"T-\d+")' in (caught.value.help or "")


def test_a_case_with_an_id_is_named() -> None:
    with pytest.raises(EvalError, match=r"^case 'greet': tags= is one text"):
        FluentCase("hi", id="greet", tags="x")


def test_bad_input_of_a_file_names_its_line() -> None:
    with pytest.raises(EvalError, match=r"where: cases\.yaml:7"):
        FluentCase("", location=("cases.yaml", 7))


def test_secrets_are_not_told() -> None:
    secret = "sk-very-secret"
    fields: list[dict[str, Any]] = [
        {"metadata": [secret]},
        {"initial_state": secret},
        {"state_assertions": [secret]},
        {"mock_tool_outputs": secret},
        {"input": {"key": secret}},
        {"reference_response": [secret]},
        {"initial_state": {(secret,): 1}},
    ]
    for each in fields:
        given: dict[str, Any] = {"input": "hi", **each}
        with pytest.raises(EvalError) as caught:
            FluentCase(**given)
        assert secret not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ToolCall(""), "a ToolCall names its tool"),
        (lambda: ToolCall(3), "a ToolCall names its tool"),  # pyright: ignore[reportArgumentType]
        (lambda: ToolCall("t", ["a"]), "the arguments of tool 't' are no mapping"),  # pyright: ignore[reportArgumentType]
        (lambda: ToolCall("t", {3: 1}), "an argument of tool 't' has no name"),  # pyright: ignore[reportArgumentType]
        (lambda: Rubric(""), "a rubric says nothing"),
        (lambda: Rubric(3), "a rubric says nothing"),  # pyright: ignore[reportArgumentType]
        (lambda: Rubric("x", 3), "the id of a rubric is no name"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_bad_parts_of_a_case(make: Any, message: str) -> None:
    with pytest.raises(EvalError, match=f"^{message}") as caught:
        make()
    assert f"where: {__file__}:" in str(caught.value)


def test_budgets_of_nothing_are_budgets() -> None:
    assert FluentCase("hi", max_cost_usd=0, max_tokens=0, max_latency_s=0.0, max_tool_calls=0)


def test_expectations_of_nothing_are_none() -> None:
    case = FluentCase("hi", expected_response_contains=[], rubrics=[], tags=())
    assert case.turns[0].contains == ()


# --- keys ----------------------------------------------------------------------------------------


def test_keys_of_typed_references() -> None:
    asked: list[str] = []

    class Ref:
        key = "user:tier"
        scope = "user"
        type = str

        @property
        def default(self) -> str:
            asked.append("default")
            raise RuntimeError("not today")

    assert key_of("intent") == "intent"
    assert key_of(StateFieldRef("app:x")) == "app:x"
    assert key_of(Ref()) == "user:tier"
    assert not asked  # a default may be made by a function of the user's


@pytest.mark.parametrize("key", [None, 3, b"x", ("a",), SimpleNamespace(key=3, scope="x"), dict])
def test_what_is_no_key(key: Any) -> None:
    with pytest.raises(EvalError, match="state is named by keys"):
        key_of(key)


@pytest.mark.parametrize(
    "fields",
    [
        {"script": ["a"]},
        {"script": []},
        {"script": ("a",)},
        {"model": "gemini-2.5-flash", "persona": "angry", "starting_prompt": "Hi"},
        {"model": object()},
    ],
)
def test_users_that_are_played(fields: dict[str, Any]) -> None:
    assert FluentCase("hi", simulation=UserSimulation(**fields)).simulation is not None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "a simulated user is played by a model or from a script"),
        ({"model": "m", "script": ["a"]}, "a simulated user is played by a model or from a script"),
        ({"model": ""}, "model= is no text"),
        ({"script": "a"}, "script= is one text, not a list of them"),
        ({"script": {"a"}}, "script= is no list of texts"),
        ({"script": ["a", ""]}, "a line of script= is no text"),
        ({"script": [3]}, "a line of script= is no text"),
        ({"model": "m", "max_turns": 0}, "max_turns= is no number from 1 up"),
        ({"model": "m", "max_turns": True}, "max_turns= is no number from 1 up"),
        ({"model": "m", "max_turns": 2.5}, "max_turns= is no number from 1 up"),
        ({"model": "m", "stop_signal": ""}, "stop_signal= is no text"),
        ({"model": "m", "stop_signal": None}, "stop_signal= is no text"),
        ({"model": "m", "starting_prompt": " "}, "starting_prompt= is no text"),
    ],
)
def test_users_that_nobody_can_play(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(EvalError, match=f"^{message}") as caught:
        UserSimulation(**fields)
    assert f"where: {__file__}:" in str(caught.value)


# --- fields as keyword arguments -----------------------------------------------------------------


def test_fields_are_those_of_a_case() -> None:
    known = {each.name: each.type for each in dataclasses.fields(FluentCase)}
    typed = {name: each.__forward_arg__ for name, each in CaseFields.__annotations__.items()}
    said = known.pop("input")
    assert typed == known
    assert SessionFields.__annotations__["input"].__forward_arg__ == said


def test_a_misspelt_field_of_a_suites_case() -> None:
    suite = FluentEvalSuite()
    with pytest.raises(EvalError, match="a case has no field 'tgas'") as caught:
        suite.case("Hello", tgas=["a"])  # pyright: ignore[reportCallIssue]
    assert caught.value.help == "did you mean 'tags'?"
    assert __file__ in str(caught.value.location)
    assert suite.cases == []
    with pytest.raises(EvalError, match="'zzzzzzzz'") as caught:
        suite.case("Hello", zzzzzzzz=1)  # pyright: ignore[reportCallIssue]
    assert caught.value.help is None
    assert suite.case("Hello", tags=["a"]).cases[0].tags == ["a"]

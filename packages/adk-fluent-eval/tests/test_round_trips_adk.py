"""Plain suites survive every format."""

from __future__ import annotations

import string
from pathlib import Path  # noqa: TC003  # hypothesis resolves it
from typing import Any

import pytest
from google.genai.types import Blob, Content, Part
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from adk_fluent.eval import FluentCase, Rubric, ToolCall, Turn, UserSimulation
from adk_fluent.eval._cases._case import key_of
from adk_fluent.eval._files._content import SuiteData
from adk_fluent.eval._files._evalset_adk import read_eval_set, write_eval_set
from adk_fluent.eval._files._plain import case_data
from adk_fluent.eval._files._table import dump_jsonl, load_jsonl
from adk_fluent.eval._files._yaml import dump_yaml, load_yaml

pytestmark = pytest.mark.adk


# whatever a user types; half characters are no text that a file can hold
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
words = texts.map(lambda text: f"w{text}")
names = st.text(string.ascii_letters + string.digits + "_-. é", min_size=1, max_size=8).map(
    lambda text: f"n{text}"
)
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
mappings = st.dictionaries(words, plain, min_size=1, max_size=3)
# mappings that look like functions, errors and patterns have to stay mappings
marked = st.sampled_from(["call", "raise", "literal", "regex"]).flatmap(
    lambda key: st.fixed_dictionaries({key: plain})
)
values = plain | marked
calls = st.lists(
    words | st.builds(ToolCall, words, st.dictionaries(words, values, min_size=1, max_size=2)),
    max_size=3,
)
contains = words | st.lists(words, min_size=1, max_size=2)
assertions = st.dictionaries(words | st.just("step.key"), values, min_size=1, max_size=3)
rubrics = st.lists(words | st.builds(Rubric, words, names), max_size=2, unique_by=str)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


turns = st.builds(
    Turn,
    input=words,
    expected_trajectory=maybe(calls),
    reference_response=maybe(words),
    expected_response_contains=maybe(contains),
    state_assertions=maybe(assertions),
)
simulations = st.builds(
    UserSimulation, model=words, persona=maybe(words), success_criteria=maybe(words)
) | st.builds(UserSimulation, script=st.lists(words, max_size=2), starting_prompt=maybe(words))
numbers = maybe(st.floats(0.001, 1e6) | st.integers(1, 10**6))
counts = maybe(st.integers(0, 10**6))


def _case(**fields: Any) -> FluentCase:
    """A case without what cases refuse: an expectation twice, several turns of a played user."""
    given: list[Any] | str = fields["input"]
    if fields["simulation"] is not None and isinstance(given, list):
        fields["input"] = given = [given[0]]
    if isinstance(given, list) and isinstance(given[-1], Turn):
        fields["expected_trajectory"] = fields["reference_response"] = None
    return FluentCase(**fields)


cases = st.builds(
    _case,
    input=words | st.lists(words | turns, min_size=1, max_size=3),
    expected_trajectory=maybe(calls),
    trajectory_match=st.sampled_from(["exact", "in_order", "any_order", "subset", "f1"]),
    expected_response_contains=maybe(contains),
    reference_response=maybe(words),
    mock_tool_outputs=maybe(
        st.dictionaries(words, values | st.lists(values, min_size=1, max_size=2), max_size=2)
    ),
    initial_state=maybe(mappings),
    state_assertions=maybe(assertions),
    target_node=maybe(words),
    tags=st.lists(words, max_size=2),
    metadata=st.dictionaries(words, plain, max_size=2),
    id=maybe(names),
    rubrics=rubrics,
    simulation=maybe(simulations),
    max_cost_usd=numbers,
    max_tokens=counts,
    max_latency_s=numbers,
    max_tool_calls=counts,
    timeout_s=numbers,
    skip=maybe(words),
    xfail=maybe(words),
)
metrics = st.sampled_from(
    ["tool_trajectory_avg_score", "response_match_score", "token_usage_v1", "own_judge"]
)
suites = st.builds(
    SuiteData,
    name=names,
    cases=st.lists(cases, max_size=3, unique_by=lambda case: case.name).map(tuple),
    metrics=st.lists(metrics, max_size=2, unique=True).map(tuple),
    thresholds=st.dictionaries(metrics, st.floats(0, 1), max_size=2),
    num_runs=st.integers(1, 3),
    description=texts,
    app_name=maybe(names),
)


def meaning(case: FluentCase) -> dict[str, Any]:
    """What a case says, however it is written: what is expected of the last turn may be its own."""
    simulated = case.simulation is not None
    made = case_data(case)
    for name in ("id", "input", "expected_trajectory", "reference_response"):
        made.pop(name, None)
    own = case.input if isinstance(case.input, list) else [case.input]
    made["turns"] = [
        (
            turn.input,
            turn.trajectory,
            turn.reference_response,
            turn.contains,
            {key_of(key): value for key, value in (turn.state_assertions or {}).items()},
            turn.rubrics,
        )
        for turn in case.turns
    ]
    made["given"] = len(own)
    # nothing is asserted, however that is said
    for name in ("initial_state", "state_assertions"):
        if not made.get(name):
            made.pop(name, None)
    return {**made, "simulated": simulated}


def same(one: SuiteData, other: SuiteData, *, cases_alone: bool = False) -> None:
    """Asserts that two suites say the same."""
    assert [case.name for case in one.cases] == [case.name for case in other.cases]
    for mine, theirs in zip(one.cases, other.cases, strict=True):
        assert meaning(mine) == meaning(theirs)
    if not cases_alone:
        for name in ("name", "metrics", "thresholds", "num_runs", "description", "app_name"):
            assert getattr(one, name) == getattr(other, name), name


survives = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
    phases=[
        phase for phase in Phase if phase is not Phase.explain
    ],  # of large examples it takes hours
)


@survives
@given(suites)
def test_yaml(tmp_path: Path, data: SuiteData) -> None:
    file = tmp_path / "s.yaml"
    file.write_bytes(dump_yaml(data).encode())
    same(load_yaml(file), data)


@survives
@given(suites)
def test_json_lines(tmp_path: Path, data: SuiteData) -> None:
    file = tmp_path / "s.jsonl"
    file.write_bytes(dump_jsonl(data).encode())
    same(load_jsonl(file), data, cases_alone=True)


@survives
@given(suites)
def test_eval_sets(tmp_path: Path, data: SuiteData) -> None:
    file = tmp_path / "s.evalset.json"
    write_eval_set(data, file)
    same(read_eval_set(file), data)


def test_media(tmp_path: Path) -> None:
    picture = Part(inline_data=Blob(data=b"\xff\x00\xfe", mime_type="image/png"))
    said = Content(role="user", parts=[Part(text="look"), picture])
    data = SuiteData("s", (FluentCase(said, id="a"), FluentCase(["hi", said], id="b")))
    (tmp_path / "s.yaml").write_text(dump_yaml(data), encoding="utf-8")
    (tmp_path / "s.jsonl").write_text(dump_jsonl(data), encoding="utf-8")
    write_eval_set(data, tmp_path / "s.json")
    assert load_yaml(tmp_path / "s.yaml").cases == data.cases
    assert load_jsonl(tmp_path / "s.jsonl").cases == data.cases
    assert read_eval_set(tmp_path / "s.json").cases == data.cases

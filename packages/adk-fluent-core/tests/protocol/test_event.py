from __future__ import annotations

import copy
import json
import math
import pickle
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adk_fluent.protocol import (
    AgentEvent,
    Answer,
    ErrorInfo,
    Pending,
    ToolCallInfo,
    ToolResponseInfo,
    Usage,
)

PENDING = Pending("q1", "gate", "legal", "root", "ok to go?", {"amount": 3}, {"type": "boolean"})
FULL = AgentEvent(
    "writer",
    "text",
    state_delta={"k": [1, {"n": None}], "user:tier": "gold"},
    artifact_delta={"a.txt": 2},
    transfer_to="other",
    escalate=True,
    tool_calls=[ToolCallInfo("search", {"q": "x"}, "c1")],
    tool_responses=[ToolResponseInfo("search", {"hits": 3}, "c1")],
    is_final=True,
    is_partial=True,
    end_of_agent=True,
    agent_state={"at": 1},
    metadata={"run": "r1"},
    timestamp=12.5,
    id="e1",
    invocation_id="i1",
    branch="a.b",
    path="s1.p0",
    node="step",
    attempt="3.7",
    discarded=("2", "9"),
    usage=Usage(prompt=10, output=2),
    error=ErrorInfo("SAFETY", "blocked"),
    pending=(PENDING,),
    output={"ok": True},
    custom_metadata={"tag": "x"},
    raw=object(),
)


def test_the_full_event_has_every_field_set() -> None:
    plain = AgentEvent("")
    assert [f.name for f in fields(FULL) if getattr(FULL, f.name) == getattr(plain, f.name)] == []


def test_an_event_goes_through_json() -> None:
    data = json.loads(json.dumps(FULL.to_dict(), allow_nan=False))
    assert "raw" not in data
    assert AgentEvent.from_dict(data) == FULL


def test_defaults_are_left_out() -> None:
    assert AgentEvent("a").to_dict() == {"author": "a"}
    assert AgentEvent("a", output=0).to_dict() == {"author": "a", "output": 0}
    assert AgentEvent.from_dict({"author": "a"}) == AgentEvent("a")
    assert AgentEvent.from_dict({"author": "a", "usage": None, "error": None}) == AgentEvent("a")


def test_unknown_fields_and_a_missing_author_are_refused() -> None:
    with pytest.raises(TypeError, match="colour"):
        AgentEvent.from_dict({"author": "a", "colour": "red"})
    with pytest.raises(TypeError, match="author"):
        AgentEvent.from_dict({})


def test_pickle_and_deepcopy_leave_raw_out_and_copy_keeps_it() -> None:
    for again in (pickle.loads(pickle.dumps(FULL)), copy.deepcopy(FULL)):
        assert again == FULL
        assert again.raw is None
    assert copy.copy(FULL).raw is FULL.raw
    assert copy.copy(FULL) is not FULL


def test_raw_shows_nowhere_and_does_not_compare() -> None:
    assert "raw" not in repr(FULL)
    assert AgentEvent("a", raw=1) == AgentEvent("a", raw=2)


def test_events_do_not_share_their_containers() -> None:
    one, other = AgentEvent("a"), AgentEvent("a")
    one.state_delta["k"] = 1
    one.tool_calls.append(ToolCallInfo("t"))
    assert (other.state_delta, other.tool_calls) == ({}, [])


def test_a_run_is_known_by_its_id_or_else_by_the_invocation() -> None:
    assert AgentEvent("a", invocation_id="i").run_id == "i"
    assert AgentEvent("a", invocation_id="i", metadata={"run": "r"}).run_id == "r"


class Colour(Enum):
    RED = "red"


class Word(StrEnum):
    YES = "yes"


@dataclass
class Point:
    x: int
    when: date


class Model:
    def model_dump(self, *, exclude_none: bool) -> dict[str, Any]:
        return {"a": date(2026, 1, 2), "excluded": exclude_none}


class Opaque:
    def __repr__(self) -> str:
        return "secret"


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (True, True),
        (Word.YES, "yes"),
        (Colour.RED, "red"),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (1.5, 1.5),
        (b"\x00\xff", "AP8="),
        (datetime(2026, 1, 2, 3, tzinfo=UTC), "2026-01-02T03:00:00+00:00"),
        (timedelta(minutes=2), 120.0),
        (Decimal("1.10"), "1.10"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (PurePosixPath("/a/b"), "/a/b"),
        ({"b", "a"}, ["a", "b"]),
        ((1, (2,)), [1, [2]]),
        (MappingProxyType({1: "int", None: "none", Colour.RED: "enum"}), None),
        (Point(1, date(2026, 1, 2)), {"x": 1, "when": "2026-01-02"}),
        (Model(), {"a": "2026-01-02", "excluded": True}),
        (Opaque(), "<Opaque>"),
        (Opaque, "<type>"),
    ],
)
def test_any_value_becomes_json(value: Any, plain: Any) -> None:
    if isinstance(value, MappingProxyType):
        plain = {"1": "int", "None": "none", "red": "enum"}
    found = AgentEvent("a", output=[value]).to_dict()["output"][0]
    assert found == plain
    assert type(found) is type(plain)


def test_a_value_that_contains_itself_comes_to_an_end() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert "..." in json.dumps(AgentEvent("a", output=loop).to_dict())


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
names = st.text(max_size=5)
objects = st.dictionaries(names, json_values, max_size=3)
events = st.builds(
    AgentEvent,
    author=names,
    content=st.none() | names,
    state_delta=objects,
    tool_calls=st.lists(st.builds(ToolCallInfo, names, objects, st.none() | names), max_size=2),
    tool_responses=st.lists(st.builds(ToolResponseInfo, names, json_values), max_size=2),
    discarded=st.lists(names, max_size=2).map(tuple),
    usage=st.none() | st.builds(Usage, prompt=st.integers(0), thoughts=st.integers(0)),
    error=st.none() | st.builds(ErrorInfo, names, names),
    pending=st.lists(
        st.builds(
            Pending,
            names,
            st.sampled_from(("gate", "confirmation", "tool", "auth", "input")),
            payload=json_values,
        ),
        max_size=2,
    ).map(tuple),
    output=json_values,
    metadata=objects,
)


@given(events)
def test_every_event_goes_through_json(event: AgentEvent) -> None:
    text = json.dumps(event.to_dict(), allow_nan=False)
    assert AgentEvent.from_dict(json.loads(text)) == event


def test_an_answer_knows_its_question() -> None:
    assert PENDING.answer() == Answer("q1", True, "gate", "legal")
    assert PENDING.answer({"approved": False}).value == {"approved": False}
    assert hash(PENDING) == hash(Pending("q1", "gate", "legal", "root", "ok to go?"))


def test_an_error_reads_well() -> None:
    assert str(ErrorInfo("SAFETY", "blocked")) == "SAFETY: blocked"
    assert str(ErrorInfo("SAFETY")) == "SAFETY"


def test_an_output_that_cannot_be_compared_is_data_nevertheless() -> None:
    class Odd:
        def __ne__(self, other: object) -> bool:
            raise ValueError("the truth value of an array is ambiguous")

    assert AgentEvent("a", output=Odd()).to_dict()["output"].startswith("<")

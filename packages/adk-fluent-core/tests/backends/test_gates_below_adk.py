"""Gates and confirmations in a pipeline that stands below what is ADK's: an agent or a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from adk_places import (
    AFTER,
    BEFORE,
    PAID,
    Place,
    response_to,
    with_a_confirmation,
    with_a_gate,
    with_a_number,
    with_two_gates,
)
from google.genai.types import Content, UserContent

from adk_fluent.backends.adk._caps import CAPS
from adk_fluent.flow import APPROVAL

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.adk, pytest.mark.filterwarnings("ignore:.EXPERIMENTAL")]

BELOW: Final[list[tuple[str, list[Any], list[Any]]]] = [
    ("of_adk", [], []),
    ("with_our_plugin", [], []),
    ("below_two", [], []),
    ("in_a_step", [("first", "1")], [("last", "9")]),
]
if CAPS.workflow:
    BELOW.extend((each, [], []) for each in ("resumable", "in_a_graph"))
NATIVELY = pytest.mark.parametrize(("above", "first", "last"), BELOW)


@NATIVELY
async def test_a_gate_below_what_is_adks(
    path: Path, above: str, first: list[Any], last: list[Any]
) -> None:
    place = Place(path, with_a_gate, above)
    assert await place.say(UserContent("hi")) == [*first, *BEFORE]
    assert place.asked == (above != "in_a_graph")
    ((_, held),) = await place.say(UserContent("yes, go on"))
    assert held.endswith("Answer it first.\n- good: Good?")
    assert await place.answer(approved=True) == [*AFTER, *last]
    assert place.asked == 0
    ((_, late),) = await place.answer(approved=True)
    assert "is not open any more" in late
    await place.say(UserContent("once more"))
    assert await place.answer(approved=False) == [
        ("pipe", "good was refused. Nothing after it was run.")
    ]


@NATIVELY
async def test_what_is_no_answer_is_told_and_can_be_mended(
    path: Path, above: str, first: list[Any], last: list[Any]
) -> None:
    place = Place(path, with_a_gate, above)
    assert await place.say(UserContent("hi")) == [*first, *BEFORE]
    wrong: dict[str, Any]
    for wrong in ({"result": "perhaps"}, {"approved": "perhaps"}, {"more": 1}, {}):
        ((_, held),) = await place.answer(**wrong)
        assert "is no answer to gate 'good'" in held
    assert place.schemas
    assert all(each == APPROVAL for each in place.schemas)
    assert await place.answer(result="yes") == [*AFTER, *last]  # as `adk run` says it


async def test_a_gate_with_a_schema_below_an_agent_of_adk(path: Path) -> None:
    place = Place(path, with_a_number, "of_adk")
    await place.say(UserContent("hi"))
    ((_, held),) = await place.answer(result="many")
    assert "does not fit its schema" in held
    assert {str(each) for each in place.schemas} == {"{'type': 'integer'}"}
    assert await place.answer(approved=False, note="none") == [
        ("pipe", "count was refused: none. Nothing after it was run.")
    ]
    await place.say(UserContent("once more"))
    assert await place.answer(result=3) == AFTER


async def test_two_gates_below_an_agent_of_adk_are_answered_at_once(path: Path) -> None:
    place = Place(path, with_two_gates, "of_adk")
    assert await place.say(UserContent("hi")) == BEFORE
    parts = [response_to(each, {"approved": True}) for each in place.questions]
    assert await place.say(Content(role="user", parts=parts)) == AFTER
    assert place.asked == 0


async def test_two_gates_below_an_agent_of_adk_are_answered_one_by_one(path: Path) -> None:
    place = Place(path, with_two_gates, "with_our_plugin")
    assert await place.say(UserContent("hi")) == BEFORE
    other, place.question = place.questions
    assert await place.answer(approved=True) == []
    assert place.asked == 0
    place.question = other
    assert await place.answer(approved=True) == AFTER
    assert place.asked == 0


@NATIVELY
async def test_a_confirmation_below_what_is_adks(
    path: Path, above: str, first: list[Any], last: list[Any]
) -> None:
    place = Place(path, with_a_confirmation, above)
    PAID.clear()
    assert await place.say(UserContent("hi")) == [*first, *BEFORE]
    assert await place.answer(confirmed=True) == [("clerk", "done"), *AFTER, *last]
    assert (place.asked, PAID) == (0, ["A1"])

"""Routes on a key whose values are known, or that is free text."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import BaseModel

from adk_fluent import Agent, FanOut, Loop, Route, effects, gate
from adk_fluent.contracts import RouteWithoutDefault, UnreachableBranch
from adk_fluent.ir import StateFieldRef

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adk_fluent.builders import Builder


class Verdict(Enum):
    GOOD = "approve"
    BAD = "reject"


class Level(Enum):
    LOW = 1
    HIGH = 2


class Review(BaseModel):
    verdict: Literal["approve", "reject"]
    note: str


Word = Literal["approve", "reject"]
pay, drop, other = Agent("pay"), Agent("drop"), Agent("other")


def judge(kind: Any, key: str = "verdict") -> Agent:
    return (Agent("judge") @ kind).writes(key)


def never(pipeline: Builder) -> list[str]:
    """Branches of which the report says that they never run."""
    found = [each for each in pipeline.check().diagnostics if isinstance(each, UnreachableBranch)]
    return sorted(str(each.node) for each in found)


def without_default(pipeline: Builder) -> list[bool]:
    """Whether each route without a default is said to be on free text."""
    report = pipeline.check()
    found = [each for each in report.diagnostics if isinstance(each, RouteWithoutDefault)]
    return ["is free text" in each.message for each in found]


def rest(route: Route) -> Route:
    return route.otherwise(other)


@pytest.mark.parametrize(
    "kind", [Word, Verdict, Annotated[Word, "said"], Word | None, Literal[Verdict.GOOD, "reject"]]
)
def test_a_branch_that_no_member_takes(kind: Any) -> None:
    route = rest(Route("verdict").eq("aprove", pay).eq("reject", drop))
    assert never(judge(kind) >> route) == ["pay"]
    route = rest(Route("verdict").eq("approve", pay).contains("REJ", drop))
    assert never(judge(kind) >> route) == []
    route = rest(Route("verdict").contains("APP", pay, case=True).contains("x", drop))
    assert never(judge(kind) >> route) == ["drop", "pay"]


def test_it_says_which_values_there_are() -> None:
    report = (judge(Word) >> rest(Route("verdict").eq("aprove", pay))).check()
    [found] = [each for each in report.diagnostics if isinstance(each, UnreachableBranch)]
    assert found.message == (
        "`pay` never runs: `verdict == 'aprove'` holds for no value that `verdict` may have"
    )
    assert found.help == "test one of its values: 'approve', 'reject'"
    assert [each.message for each in found.related] == ["`judge` writes it"]


def test_a_dict_of_branches() -> None:
    assert never(judge(Word) >> {"aprove": pay, "reject": drop}) == ["pay"]
    assert never(judge(Level, "level") >> {1: pay, 3: drop}) == ["drop"]


def test_a_declared_key_and_the_field_of_a_model() -> None:
    declared = Agent("judge").writes(StateFieldRef("verdict", Word))
    assert never(declared >> rest(Route("verdict").eq("aprove", pay))) == ["pay"]
    fields = (Agent("judge") @ Review).writes("verdict", "note")
    assert never(fields >> rest(Route("verdict").eq("aprove", pay))) == ["pay"]
    assert never(fields >> rest(Route("note").eq("aprove", pay))) == []


def test_what_none_or_a_comparison_takes() -> None:
    assert never(judge(Word) >> rest(Route("verdict").eq(None, pay))) == []
    assert never(judge(Level, "level") >> rest(Route("level").gt(1, pay).gt(2, drop))) == ["drop"]


@effects(writes=["verdict"])
def guess(state: Mapping[str, Any]) -> dict[str, Any]:
    return {"verdict": "aprove"}


def unknown(state: Mapping[str, Any]) -> dict[str, Any]:
    return dict(state)


@pytest.mark.parametrize(
    "before",
    [
        Agent("judge").writes("verdict"),
        judge(Word) >> guess,
        judge(Word) >> unknown,
        FanOut(judge(Word), guess),
        gate(name="ask", key="verdict", response_schema={"type": "string"}),
        judge(Word) >> Route("other").eq("x", guess).otherwise(other),
    ],
)
def test_other_values_may_come_from_elsewhere(before: Builder) -> None:
    assert never(before >> rest(Route("verdict").eq("aprove", pay))) == []


def test_a_key_that_a_loop_writes_after_its_route() -> None:
    body = Route("verdict").eq("aprove", pay).otherwise(other) >> guess
    assert never(judge(Word) >> Loop(body, max=2)) == []


def test_a_route_that_has_a_branch_for_each_value_needs_no_default() -> None:
    for kind in (Word, Verdict):
        assert without_default(judge(kind) >> {"approve": pay, "reject": drop}) == []
        assert without_default(judge(kind) >> {"approve": pay}) == [False]
    assert without_default(judge(Word | None) >> {"approve": pay, "reject": drop}) == [False]


def test_a_route_on_free_text_needs_a_default() -> None:
    route = Route("topic").contains("billing", pay).eq("other", drop)
    text = Agent("classify").writes("topic") >> route
    assert without_default(text) == [True]
    assert without_default(Agent("classify").writes("topic") >> rest(route)) == []
    [found] = [e for e in text.check().diagnostics if isinstance(e, RouteWithoutDefault)]
    assert "`topic` is free text" in found.message
    assert found.help == "add .otherwise(...), or let the agent choose: agent @ Literal[...]"
    assert without_default(guess >> Route("verdict").eq("x", pay)) == [False]

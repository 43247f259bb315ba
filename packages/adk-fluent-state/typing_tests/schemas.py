"""What type checkers know about schemas, fields and bound state."""

from __future__ import annotations

import operator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar, assert_type

from adk_fluent import Agent, Pipeline, Route, S, map_over
from adk_fluent.state import (
    AppScoped,
    Reduce,
    SessionScoped,
    StateFieldRef,
    StateSchema,
    Temp,
    UserScoped,
    field,
    tool,
)

if TYPE_CHECKING:
    from adk_fluent.protocol import StateRules


class Desk(StateSchema):
    intent: SessionScoped[str]
    confidence: SessionScoped[float]
    ticket: SessionScoped[str | None]
    when: SessionScoped[datetime] = field(doc="When it came in")
    tier: UserScoped[str] = field(default="free")
    limit: AppScoped[int] = field(default=3, ge=0)
    scratch: Temp[dict[str, int]] = field(default_factory=dict)
    hits: SessionScoped[Annotated[list[str], Reduce(operator.add)]]


class Plain(StateSchema):
    intent: str
    tier: Annotated[str, UserScoped] = "free"
    note: str | None = None


class Whole(Desk):
    count: SessionScoped[int]
    label: str = ""


T = TypeVar("T")
Item = TypeVar("Item")


class Found(StateSchema, Generic[T]):
    best: SessionScoped[T]
    hits: UserScoped[list[T]] = field(default_factory=list)


class Numbers(Found[int]):
    total: SessionScoped[int]


class Lists(Found[list[Item]], Generic[Item]):
    first: SessionScoped[Item]


# of the class, a field is a reference; of what is bound, it is the value
assert_type(Desk.intent, SessionScoped[str])
assert_type(Desk.tier, UserScoped[str])
refs: list[StateFieldRef[Any]] = [Desk.intent, Desk.limit, Desk.scratch, Desk.hits]
assert_type(Desk.intent.key, str)
assert_type(Desk.confidence.default, float)
assert_type(Desk.ref("intent"), StateFieldRef[Any])

desk = Desk.bind({})
assert_type(desk, Desk)
assert_type(desk.intent, str)
assert_type(desk.ticket, str | None)
assert_type(desk.when, datetime)
assert_type(desk.limit, int)
assert_type(desk.scratch, dict[str, int])
assert_type(desk.hits, list[str])
assert_type(Whole.bind(desk).count, int)
assert_type(Whole.bind(desk).intent, str)
assert_type(Plain.bind({}).note, str | None)
assert_type(Numbers.bind({}).best, int)
assert_type(Numbers.bind({}).hits, list[int])
assert_type(Found[str].bind({}).best, str)
assert_type(Lists[int].bind({}).best, list[int])
assert_type(Lists[int].bind({}).first, int)
numbers: StateRules = Numbers
Numbers.bind({}).best = "x"  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue]
Agent("a").writes(Numbers.ref("best")).state(Numbers)
Agent("a").writes(Numbers.best)  # type: ignore[misc]  # which mypy allows of no generic class

desk.intent = "x"
desk.ticket = None
desk.confidence = 1
desk.hits += ["x"]

desk.intent = 3  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue]
desk.intent = None  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue]
desk.hits = "x"  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue]
desk.intnt = "x"  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
Desk.bind({}).intnt.upper()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
Desk.intnt.key.upper()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
Plain.bind({}).intent = 3  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue]
Desk(intent="x")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
assert_type(Desk.limit.decode("3"), int)

with desk.edit(Desk.hits) as hits:
    assert_type(hits, list[str])
    hits.append("x")
    hits.append(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
with desk.edit("scratch") as scratch:
    assert_type(scratch, Any)
desk.unset("intent", Desk.tier)

assert_type(Desk.template.intent, str)
assert_type(Desk.initial(intent="x"), dict[str, Any])
assert_type(Desk.delta(intent="x"), dict[str, Any])
assert_type(Desk.json_schema(), dict[str, Any])
rules: StateRules = Desk

# fields stand where keys do, and a schema where one is taken
Agent("a").reads(Desk.intent, Plain.ref("intent"), "other").writes(Desk.ticket, Desk.confidence)
Route(Desk.tier).eq("gold", Agent("a"))
map_over(Desk.hits, Agent("a"), item_key=Desk.intent, output_key=Desk.hits)
S.merge(Desk.intent, Desk.tier, into=Desk.ticket)
Pipeline("p").step(Agent("a")).state(Desk).contract(inputs=[Desk.intent], outputs=[Desk.ticket])
Agent("a").writes(Desk.bind({}).confidence)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Agent("a").state(Desk.bind({}))  # pyright: ignore[reportArgumentType]


@tool
def open_ticket(query: str, state: Desk) -> str:
    return f"{state.intent} {query}"


assert_type(open_ticket("x", state=desk), str)
Agent("a").tool(open_ticket)
open_ticket(3, desk)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Reduce(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
field(defualt=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]

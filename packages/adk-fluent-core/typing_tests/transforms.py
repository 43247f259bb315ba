"""User code that type checkers accept without a word: `S` and the functions that make steps."""
# ruff: noqa: TC003  # users import as they please

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, TypedDict, assert_type

from adk_fluent import Agent, FanOut, Pipeline, Route, S, map_over, race, timeout, transfer, until
from adk_fluent.builders import Compute, Expect, State, Tap, Transfer, Transform
from adk_fluent.ir import Match, Node, StateFieldRef, TransformNode

a = Agent("a")
TIER = StateFieldRef("user:tier", str)


class Order(TypedDict):
    number: str
    rows: list[int]


class Prices:
    def of(self, name: str) -> float:
        return float(len(name))


order: Order = {"number": "A1", "rows": [1]}
table: Mapping[str, int] = {"a": 1}
names: list[str] = ["a"]


def total(state: State) -> float:
    return sum(float(row["price"]) for row in state["rows"])


def reset_all(state: State) -> dict[str, None]:
    return dict.fromkeys(state)


async def looked_up(state: State) -> str:
    await asyncio.sleep(0)
    return str(state["name"])


def priced(state: State, prices: Prices, *, rate: float = 1) -> float:
    return prices.of(str(state["name"])) * rate


def rounded(value: float) -> int:
    return round(value)


async def translated(text: str) -> str:
    await asyncio.sleep(0)
    return text


def both(one: str, other: str | None) -> str:
    return f"{one} {other}"


# --- what each gives -----------------------------------------------------------------------------

assert_type(S.set(stage="triage", tries=0, done=False, rate=0.5, none=None), Transform)
assert_type(S.set(order=order, table=table, names=names, rows=[{"a": [1]}]), Transform)
assert_type(S.default(tries=0).named("start"), Transform)
assert_type(S.pick("topic", StateFieldRef("draft")), Transform)
assert_type(S.drop("draft", "seen"), Transform)
assert_type(S.rename(draft="answer", seen="shown"), Transform)
assert_type(S.merge("web", "papers", into="found"), Transform)
assert_type(S.merge("web", TIER, into="found", fn=both), Transform)
assert_type(S.merge("a", "b", into="c", fn=lambda one, other: one + other), Transform)
assert_type(S.transform("topic", str.lower), Transform)
assert_type(S.transform("score", float), Transform)
assert_type(S.transform("score", rounded), Transform)
assert_type(S.transform("text", translated), Transform)
assert_type(S.transform("text", lambda text: text[:80]), Transform)
assert_type(S.compute(total=total, name=looked_up, count=len, price=priced), Compute)
assert_type(S.compute(n=lambda state: state["n"] + 1).reads("n", TIER), Compute)
assert_type(S.guard("topic"), Expect)
assert_type(S.guard(TIER, "who is it?"), Expect)
assert_type(S.guard(lambda state: state["n"] > 3, "n is small"), Expect)
assert_type(S.guard(Match("gt", "n", 3)), Expect)
assert_type(S.log(), Tap)
assert_type(S.log("topic", TIER, logger=logging.getLogger("mine"), level=logging.DEBUG), Tap)
assert_type(S.log("topic", logger="mine").named("look"), Tap)

assert_type(S.user.set(tier="gold"), Transform)
assert_type(S.user.drop(TIER), Transform)
assert_type(S.app.default(rate=0.5), Transform)
assert_type(S.temp.rename(a="b"), Transform)
assert_type(S.temp.compute(now=looked_up), Compute)
assert_type(S.app.merge("a", "user:b", into="c"), Transform)
assert_type(S.user.transform("tier", str.lower), Transform)

# --- wherever a step can stand -------------------------------------------------------------------

assert_type(a >> S.set(k=1) >> a, Pipeline)
assert_type(S.pick("k") >> a, Pipeline)
assert_type(reset_all >> S.set(k=1), Pipeline)
assert_type(S.set(k=1) | S.set(n=1) | a, FanOut)
assert_type(Pipeline("p", S.set(k=1), a).step(S.guard("k")), Pipeline)

desk = (
    S.default(tries=0)
    >> S.compute(tries=lambda state: state["tries"] + 1)
    >> (a // S.set(failed=True))
    >> (a >> S.rename(a="b")) * until(lambda state: state["tries"] > 3, max=5)
    >> Route("topic").eq("x", S.set(x=1)).otherwise(S.drop("x"))
    >> {"x": S.set(x=1), "y": a}
    >> race(S.set(x=1), a)
    >> map_over("rows", S.transform("_item", str), result_key="_item")
    >> timeout(S.log(), 3)
)
assert_type(desk, Pipeline)
assert_type(desk.inject(prices=Prices()).build(), Node)
change: Node = S.set(k=1).build()
if isinstance(change, TransformNode):
    assert_type(change.affected_keys, tuple[str, ...] | None)

# --- transfer ------------------------------------------------------------------------------------


async def urgent(state: State) -> bool:
    return bool(state.get("urgent"))


assert_type(transfer("billing"), Transfer)
assert_type(transfer(a), Transfer)
assert_type(transfer(desk.named("desk"), when=urgent, name="over"), Transfer)
assert_type(transfer("billing", when=lambda state: state["n"] > 3) >> a, Pipeline)
assert_type(a // transfer("billing", when=Match("eq", "topic", "bill")) >> a, Pipeline)


def reset(keys: dict[str, Any]) -> Transform:
    return S.set(**keys)


assert_type(reset({"a": 1}) >> a, Pipeline)

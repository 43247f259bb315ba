"""User code that type checkers accept without a word: the language."""
# ruff: noqa: TC003  # users import as they please

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, assert_type

from google.adk.code_executors import BuiltInCodeExecutor
from google.adk.planners import BuiltInPlanner, PlanReActPlanner
from google.adk.workflow import RetryConfig
from google.genai.types import GenerateContentConfig, ThinkingConfig
from pydantic import BaseModel

from adk_fluent import (
    Agent,
    Fallback,
    FanOut,
    Loop,
    Pipeline,
    Route,
    expect,
    gate,
    map_over,
    race,
    tap,
    timeout,
    until,
)
from adk_fluent.builders import Builder, Expect, Gate, MapOver, Race, State, Tap, Timeout
from adk_fluent.ir import Node, StateFieldRef


class Ticket(BaseModel):
    intent: str
    urgent: bool = False


# --- agents --------------------------------------------------------------------------------------


def search(query: str, limit: int = 5) -> list[str]:
    """Search the knowledge base."""
    return [query] * limit


async def fetch(url: str) -> dict[str, str]:
    """Fetch a page."""
    return {"url": url}


def needs_person(amount: float) -> bool:
    return amount > 100


triage = (
    Agent("triage", "gemini-2.5-flash")
    .instruct("Classify the ticket: {ticket}")
    .description("Classifies tickets")
    .reads("customer", "user:tier")
    .writes("intent")
    .history("own")
)
assert_type(triage, Agent)
assert_type(triage.name, str)

worker = (
    Agent("worker")
    .model("gemini-2.5-pro")
    .tool(fetch)
    .tool(needs_person, require_confirmation=True)
    .tool(search, require_confirmation=needs_person)
    .writes(StateFieldRef("draft"), StateFieldRef("user:seen"), via="tool")
    .outputs("answer")
    .configure(disallow_transfer_to_peers=True, planner=PlanReActPlanner())
    .mock(["first", "second"])
)
typed = triage @ Ticket
assert_type(typed, Agent[Ticket])
assert_type(triage @ list[Ticket], Agent[list[Ticket]])
assert_type(triage.clone("copy").with_(model="m", history="none"), Agent)
assert_type(triage.named("again").mock("billing"), Agent)


def personal(context: Any) -> str:
    return f"You serve {context.state['user:name']}"


async def slow_personal(context: Any) -> str:
    return personal(context)


Agent("personal").instruct(personal).instruct(slow_personal).static_instruct("Be kind.")
assert_type(
    Agent("tuned")
    .generate_content_config(GenerateContentConfig(temperature=0.2))
    .planner(BuiltInPlanner(thinking_config=ThinkingConfig(thinking_budget=0)))
    .code_executor(BuiltInCodeExecutor())
    .code_executor(None)
    .include_contents("none")
    .disallow_transfer_to_parent()
    .disallow_transfer_to_peers(False)
    .global_instruction(slow_personal)
    .retry_config(RetryConfig(max_attempts=2))
    .state_schema(Ticket)
    .timeout(2.5),
    Agent,
)
boss = Agent("boss").delegates(triage, worker).sub_agents(Agent("third")).agent_tool(typed)


# --- functions over state ------------------------------------------------------------------------


def plain(state: State) -> dict[str, Any]:
    return {"length": len(state["text"])}


def mapping(state: Mapping[str, Any]) -> Mapping[str, object]:
    return {"seen": sorted(state)}


def dicted(state: dict[str, Any]) -> dict[str, int]:
    return {"n": len(state)}


def nothing(state: State) -> None:
    print(state)


def maybe(state: State) -> dict[str, str] | None:
    return {"a": "b"} if state else None


async def later(state: State) -> dict[str, int]:
    await asyncio.sleep(0)
    return {"n": len(state)}


def injected(state: State, store: list[str], *, limit: int = 3) -> dict[str, list[str]]:
    return {"rows": store[:limit]}


class Counter:
    def __call__(self, state: State) -> dict[str, int]:
        return {"n": int(state.get("n", 0)) + 1}

    def bump(self, state: State) -> dict[str, int]:
        return self(state)


def made(key: str) -> Callable[[State], Awaitable[dict[str, str]]]:
    async def step(state: State) -> dict[str, str]:
        return {key: str(state.get(key))}

    return step


steps = (
    triage
    >> plain
    >> mapping
    >> dicted
    >> nothing
    >> maybe
    >> later
    >> injected
    >> Counter()
    >> Counter().bump
    >> made("x")
    >> functools.partial(injected, limit=2)
    >> worker
)
assert_type(steps, Pipeline)
# the parameter of a lambda is known in a call, not next to an operator
assert_type(steps.step(lambda state: {"twice": state["n"] * 2}), Pipeline)
assert_type(Pipeline("n", steps, lambda state: {"twice": state["n"] * 2}), Pipeline)
assert_type(plain >> triage, Pipeline)
assert_type(plain | triage, FanOut)
assert_type(plain // triage, Fallback)


# --- operators -----------------------------------------------------------------------------------

assert_type(triage >> worker >> boss, Pipeline)
assert_type(triage | worker | steps, FanOut)
assert_type(triage // worker // boss, Fallback)
assert_type(triage * 3, Loop)
assert_type((triage >> worker) * until(lambda s: s["score"] > 8, max=3), Loop)
assert_type(triage * until(lambda s: bool(s.get("done"))) >> worker, Pipeline)
assert_type(triage >> {"billing": worker, "third": triage >> worker}, Pipeline)
assert_type(steps.step({"billing": worker, "other": plain, "third": triage | worker}), Pipeline)
routes = {"billing": worker, "general": boss}
assert_type(triage >> routes, Pipeline)
assert_type(triage >> {True: worker, False: boss} >> {1: worker}, Pipeline)
assert_type((triage | worker) >> (boss // worker) * 2, Pipeline)


# --- named arrangements --------------------------------------------------------------------------

desk = (
    Pipeline("desk")
    .step(triage)
    .step(Route("intent").eq("billing", worker).contains("refund", boss).otherwise(worker))
    .step({"yes": worker})
    .step(plain)
    .model("gemini-2.5-flash")
)
assert_type(desk, Pipeline)
assert_type(Pipeline("all", triage, plain, worker), Pipeline)
assert_type(Pipeline(triage, desk), Pipeline)
assert_type(FanOut("look_up", triage, worker, merge="first_complete").branch(boss), FanOut)
assert_type(FanOut(triage, worker), FanOut)
assert_type(Fallback("reply", triage, plain, on=(ConnectionError, KeyError)), Fallback)
assert_type(Fallback(triage, on=OSError), Fallback)
Fallback(triage, on="OSError")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]
assert_type(Fallback("reply").attempt(triage).attempt(plain).model("m"), Fallback)
assert_type(Loop("polish", triage, worker, until=lambda s: s["ok"] == "yes", max=4), Loop)
assert_type(Loop("polish").step(triage).until(lambda s: not s["open"]).max(2), Loop)

score = (
    Route("score", name="by_score")
    .gt(0.8, worker)
    .lt(1, boss)
    .eq(None, triage)
    .when(lambda s: s["tier"] == "gold" and s["n"] > 3, worker)
    .otherwise(plain)
)
assert_type(score, Route)
assert_type(Route().when(lambda s: "x" in s, worker), Route)


async def approved(state: State) -> bool:
    return bool(await made("ok")(state))


assert_type(tap(print), Tap)
assert_type(tap(lambda s: print(s["n"]), name="look"), Tap)
assert_type(expect(lambda s: s["n"] > 3, "n is small"), Expect)
assert_type(expect(approved), Expect)
assert_type(gate(), Gate)
assert_type(
    gate(
        lambda s: s["amount"] > 100,
        message="Pay?",
        payload=lambda s: {"amount": s["amount"]},
        response_schema={"type": "object", "properties": {"amount": {"type": "number"}}},
        key="decision",
        name="approve",
    ),
    Gate,
)
assert_type(gate(approved, payload=made("ok"), response_schema=dict[str, int]).named("g"), Gate)
assert_type(triage >> gate(response_schema=int) >> worker, Pipeline)
assert_type(gate(response_schema=int | None), Gate)
assert_type(race(triage, worker, plain, name="fastest").branch(boss), Race)
map_over("items", triage >> worker, item_key="item", concurrency=4, on_error="skip")
assert_type(map_over("items", plain, name="each"), MapOver)
assert_type(timeout(triage | worker, 1.5, name="quick"), Timeout)

everything = desk >> score >> tap(print) >> race(triage, worker) >> timeout(desk, 3)
assert_type(everything.build(), Node)
assert_type(everything.to_ir(), Node)
assert_type(everything.named("everything").clone(), Pipeline)
assert_type(everything.explain(), str)


def wrap(part: Builder) -> Builder:
    return timeout(part * 2, 5) >> part


assert_type(wrap(triage), Builder)

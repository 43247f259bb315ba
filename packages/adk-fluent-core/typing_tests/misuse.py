"""Mistakes that type checkers find; never run."""

from __future__ import annotations

from typing import Any

from google.adk.planners import BuiltInPlanner

from adk_fluent import (
    Agent,
    Fallback,
    FanOut,
    Loop,
    Pipeline,
    Resource,
    Route,
    expect,
    gate,
    map_over,
    race,
    tap,
    timeout,
    until,
)

a = Agent("a")
b = Agent("b")


def counted(state: dict[str, Any]) -> int:
    return len(state)


def use(value: object) -> None:
    """Take what an operator makes, so that it is no unused expression."""
    print(value)


def stateless() -> dict[str, Any]:
    return {}


# --- what an agent's methods take ----------------------------------------------------------------

a.tool(42)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.tool("search")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.tool(None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.tool(b)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.tool([counted])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.tool(counted, require_confirmation="yes")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.tool(counted, confirm=True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
a.model(42)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.model(None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Agent()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
Agent("a", 42)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Agent(42)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Agent("a", temperature=0.2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
a.instruct(42)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.instruct(None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.description(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.history("all")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.reads(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.writes(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.writes("k", via="model")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.delegates("b")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.delegates(counted)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.agent_tool(stateless)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.before_model("log")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.after_tool([1, 2])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
a.mock(42)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.middleware(42)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.middleware(print)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.middleware(object())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.output_schema("Ticket")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
a.planner(42)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.planner(BuiltInPlanner)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.code_executor("python")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.generate_content_config({"temperature": 0.2})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.include_contents("all")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.disallow_transfer_to_peers("yes")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.global_instruction(None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.state_schema(int)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.retry_config(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.timeout("3")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.with_(nmae="x")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
a.with_(history="all")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.named(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
use(a @ 3)  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnknownArgumentType]
use(a @ "Ticket")  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnknownArgumentType]

# --- misspelt and misplaced methods --------------------------------------------------------------

a.instuct("x")  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
a.write("x")  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
a.output_key("x")  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
a.befor_model(print)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
use((a >> b).instruct("x"))  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownMemberType]
(a | b).tool(print)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
Pipeline("p").branch(a)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
Route("k").equals("x", a)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
Loop("l").times(3)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]

# --- operators -----------------------------------------------------------------------------------

use(a >> 3)  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnknownArgumentType]
use(a >> "b")  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnknownArgumentType]
use(a >> None)  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnknownArgumentType]
use(a >> [a, b])  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnknownArgumentType]
use(a >> stateless)  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnknownArgumentType]
use(a >> counted)  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnknownArgumentType]
use(a >> Agent)  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnknownArgumentType]
use(3 >> a)  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnknownArgumentType]
use("a" >> b)  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnknownArgumentType]
use(a | 3)  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnknownArgumentType]
use(a | {"x": b})  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnknownArgumentType]
use(a // "b")  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnknownArgumentType]
use(a * "3")  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnknownArgumentType]
use(a * 2.5)  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnknownArgumentType]
use(a * (lambda s: True))  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnknownArgumentType, reportUnknownLambdaType]
use(a + b)  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnknownArgumentType]
use(a & b)  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnknownArgumentType]
use(a >> {"x": 3})  # type: ignore[dict-item]  # pyright: ignore[reportOperatorIssue, reportUnknownArgumentType]

# --- arrangements --------------------------------------------------------------------------------

Pipeline(3)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
Pipeline("p", "q")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
Pipeline("p").step("q")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
FanOut(a, merge="first")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
Fallback(a, 3)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
Loop(a, max="3")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
Loop(a, until=3)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
Loop(a).until("done")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
until("done")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
until(counted, 3)  # type: ignore[arg-type, call-arg]  # pyright: ignore[reportCallIssue]
Route(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Route("k").eq([1], a)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Route("k").gt(None, a)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Route("k").when("x", a)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Route("k").otherwise(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
tap(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
expect("x > 3")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
expect(counted, 3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
gate("Sure?")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
gate(lambda s: True, "Sure?")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
gate(message=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
gate(payload={"a": 1})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
gate(response_schema="string")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
gate(schema=int)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
race(a, 3)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
map_over(3, a)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
map_over("k", 3)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
map_over("k", a, concurrency="4")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
map_over("k", a, on_error="ignore")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
timeout(a, "3")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
timeout(3, 3)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]

# --- resources -----------------------------------------------------------------------------------

a.inject(3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
Resource(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Resource(dict, scope="sesion")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Resource(dict, cleanup="close")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

# --- running -------------------------------------------------------------------------------------

a.ask(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.ask("x", sesion_id="s")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
a.ask("x", config={"max_llm_calls": 3})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.map("x", concurrency="2")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.to_app(plugins=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
answer: int = a.ask("x")  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]

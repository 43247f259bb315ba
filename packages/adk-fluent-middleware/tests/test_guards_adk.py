"""Names in what guards tools and agents: one that nothing has keeps a pipeline from running."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent, FanOut, RemoteAgent, map_over
from adk_fluent.config import ExecutionConfig
from adk_fluent.contracts import Severity, check_all
from adk_fluent.errors import ContractError
from adk_fluent.ir import MiddlewareRef
from adk_fluent.middleware import (
    circuit_breaker,
    context_editing,
    model_call_limit,
    pii_filter,
    rate_limiter,
    retry,
    timeout,
    todo_list,
    tool_approval,
    tool_call_limit,
    tool_emulator,
    tool_selector,
)
from adk_fluent.testing import Call, ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.builders import Builder

pytestmark = pytest.mark.adk

PAID: list[int] = []


def refund(amount: int) -> str:
    """Pay an amount back."""
    PAID.append(amount)
    return "paid"


def search(text: str) -> str:
    """Look for a text."""
    return text


def clerk() -> Agent:
    return Agent("clerk", ScriptedModel(Call("refund", {"amount": 5}), "Done.")).tool(refund)


#: What holds something back, with a name that nothing has.
GUARDS: dict[str, Any] = {
    "tool_approval": tool_approval(tools=["refnd"]),
    "tool_call_limit": tool_call_limit(tools={"refnd": 1}),
    "timeout": timeout(tool={"refnd": 1}),
    "pii_filter": pii_filter(tools=["refnd"]),
    "circuit_breaker": circuit_breaker(tools=["refnd"]),
    "rate_limiter": rate_limiter(tools={"refnd": 1}),
    "tool_emulator": tool_emulator(tools=["refnd"]),
    "tool_emulator results": tool_emulator(tools=False, results={"refnd": 1}),
    "model_call_limit": model_call_limit(per_agent={"clark": 1}),
    "a reference": MiddlewareRef("tool_approval", {"tools": ["refnd"]}),
    "another name": MiddlewareRef("human_in_the_loop", {"tools": ["refnd"]}),
    "one of several": tool_approval(tools=["refund", "refnd"]),
}
#: What holds nothing back: without the name more is guarded, or a run is less good.
OTHERS: dict[str, Any] = {
    "tool_approval": tool_approval(exclude=["refnd"]),
    "tool_emulator": tool_emulator(exclude=["refnd"]),
    "retry": retry(tools=["refnd"]),
    "tool_selector": tool_selector(always=["refnd"]),
    "context_editing": context_editing(exclude_tools=["refnd"]),
    "todo_list": todo_list(agents=["clark"]),
}
ASKS = GUARDS["tool_approval"]


@pytest.fixture(autouse=True)
def nothing_paid() -> None:
    PAID.clear()


@pytest.mark.parametrize("guard", GUARDS)
def test_a_guard_that_names_nothing_keeps_a_pipeline_from_running(guard: str) -> None:
    desk = clerk().middleware(GUARDS[guard])
    with pytest.raises(ContractError) as caught:
        desk.ask("My money back!")
    (found,) = caught.value.report.errors
    assert (found.code, found.severity) == ("MDW003", Severity.ERROR)
    assert found.help in ("did you mean `refund`?", "did you mean `clerk`?")
    assert str(caught.value.location).startswith(__file__)
    assert PAID == []


@pytest.mark.parametrize("other", OTHERS)
def test_what_holds_nothing_back_is_a_warning(other: str) -> None:
    desk = clerk().middleware(OTHERS[other])
    (found,) = [each for each in check_all(desk) if each.code == "MDW003"]
    assert found.severity is Severity.WARNING
    desk.to_app()


#: Every place where a guard can stand, around a part with the tool.
PLACES: dict[str, Callable[[Any], Builder]] = {
    "agent": lambda guard: clerk().middleware(guard),
    "part": lambda guard: Agent("a").mock("x") >> clerk().middleware(guard, scope="agent"),
    "pipeline": lambda guard: clerk().middleware(guard) >> Agent("a").mock("x"),
    "around a pipeline": lambda guard: FanOut(Agent("a").mock("x"), clerk()).middleware(guard),
    "branch": lambda guard: FanOut(clerk().middleware(guard), Agent("a").mock("x")),
    "item": lambda guard: map_over("k", clerk().middleware(guard, scope="agent")),
    "tool": lambda guard: Agent("a").agent_tool(clerk().middleware(guard, scope="agent")),
    "delegate": lambda guard: Agent("a").delegates(clerk().middleware(guard, scope="agent")),
    "around an agent as a tool": lambda guard: Agent("a").agent_tool(clerk()).middleware(guard),
}


@pytest.mark.parametrize("place", PLACES)
def test_wherever_it_stands(place: str) -> None:
    for export in (PLACES[place](ASKS).to_app, PLACES[place](ASKS).to_agent):
        with pytest.raises(ContractError, match="refnd"):
            export()
    PLACES[place](tool_approval(tools=["refund"])).to_app()


def test_also_in_what_is_given_to_a_run() -> None:
    config = ExecutionConfig(middlewares=[ASKS])
    desk = clerk() >> Agent("b").mock("x")
    for run in (
        lambda: desk.ask("hello", config=config),
        lambda: desk.ask("hello", middleware=[ASKS]),
        lambda: asyncio.run(desk.run("hello", middleware=[ASKS])),
        lambda: desk.to_app(config),
        lambda: clerk().middleware(retry()).to_app(config),
    ):
        with pytest.raises(ContractError, match="refnd"):
            run()
    assert PAID == []
    assert desk.ask("hello", middleware=[retry()]) == "x"
    assert PAID == [5]


def test_what_is_meant_to_be_so_runs(caplog: pytest.LogCaptureFixture) -> None:
    """A stack that several pipelines share may name tools that one of them does not have."""
    shared = tool_approval(tools=["refund", "close_account"])
    with pytest.raises(ContractError, match="close_account"):
        clerk().middleware(shared).to_app()
    clerk().middleware(shared).allow("MDW003").to_app()
    clerk().middleware(shared, scope="agent").allow("MDW003").to_app()
    (clerk().middleware(shared) >> Agent("a")).allow("MDW003").to_app()
    config = ExecutionConfig(contracts="warn")
    with caplog.at_level(logging.WARNING, "adk_fluent.contracts"):
        clerk().middleware(shared).to_app(config)
    assert "error[MDW003]" in caplog.text
    clerk().middleware(shared).to_app(replace(config, contracts="off"))


def test_where_not_all_tools_are_known_a_slip_is_a_warning() -> None:
    from google.adk.tools.base_toolset import BaseToolset

    class Bank(BaseToolset):
        async def get_tools(self, readonly_context: Any = None) -> list[Any]:
            return []

    desk = clerk().tool(Bank())
    (found,) = [each for each in check_all(desk.middleware(ASKS)) if each.code == "MDW003"]
    assert (found.severity, found.help) == (Severity.WARNING, "did you mean `refund`?")
    assert "unless a toolset or" in found.message
    desk.to_app()
    far = clerk().tool(Bank()).middleware(tool_approval(tools=["wire_transfer"]))
    assert [each for each in check_all(far) if each.code == "MDW003"] == []


class _Unknown:
    async def before_model(self, ctx: Any, request: Any) -> None: ...


class _Banking(_Unknown):
    adds_tools = ("wire_transfer",)


def test_tools_that_a_middleware_adds_are_there_and_may_be_anything_of_one_that_does_not_say() -> (
    None
):
    wires = tool_approval(tools=["wire_transfer"])

    def found(desk: Any) -> list[Any]:
        return [each.severity for each in check_all(desk) if each.code == "MDW003"]

    assert found(clerk().middleware(wires, retry(), todo_list())) == [Severity.ERROR]
    assert found(clerk().middleware(_Banking(), wires)) == []
    assert found(clerk().middleware(_Unknown(), wires)) == []
    assert found(clerk().middleware(_Unknown(), ASKS)) == [Severity.WARNING]
    inside = Agent("a").mock("x") >> clerk().middleware(wires, scope="agent")
    assert found(inside.middleware(_Banking())) == []


def test_tools_of_a_remote_agent_run_elsewhere_and_are_not_guarded() -> None:
    far = RemoteAgent("bank", endpoint="https://bank.example")
    found = check_all((clerk() >> far).middleware(tool_approval(tools=["wire_transfer"])))
    assert [each.severity for each in found if each.code == "MDW003"] == [Severity.ERROR]

"""What `check` says about stacks that do not do what they seem to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from adk_fluent import Agent
from adk_fluent.config import ExecutionConfig
from adk_fluent.contracts import check_all
from adk_fluent.errors import LayerError
from adk_fluent.ir import AppNode, MiddlewareRef
from adk_fluent.middleware import (
    cache,
    circuit_breaker,
    context_editing,
    model_call_limit,
    pii_filter,
    production,
    rate_limiter,
    retry,
    timeout,
    todo_list,
    tool_approval,
    tool_call_limit,
    tool_emulator,
    tool_selector,
)
from adk_fluent.middleware._order import UNSOUND


def findings(pipeline: Any) -> list[tuple[str, str]]:
    return [(each.code, each.message) for each in check_all(pipeline) if each.code[:3] == "MDW"]


#: Settings with which those act on calls that act on none by themselves.
SETTINGS: dict[str, dict[str, Any]] = {
    "rate_limiter": {"requests_per_minute": 60},
    "timeout": {"model": 5},
}


def ref(name: str, **settings: Any) -> MiddlewareRef:
    return MiddlewareRef(name, SETTINGS.get(name, {}) | settings)


@pytest.mark.parametrize(("outer", "inner", "why"), UNSOUND)
def test_each_unsound_order_is_found(outer: str, inner: str, why: str) -> None:
    pipeline = Agent("a").middleware(ref(outer)).middleware(ref(inner))
    ((code, message),) = findings(pipeline)
    assert code == "MDW001"
    assert message == f"`{outer}` stands outside of `{inner}`: {why}"


@pytest.mark.parametrize(("outer", "inner", "why"), UNSOUND)
def test_the_other_way_round_nothing_is_said(outer: str, inner: str, why: str) -> None:
    if outer != inner:
        pipeline = Agent("a").middleware(ref(inner)).middleware(ref(outer))
        assert findings(pipeline) == []


def test_the_page_has_all_rules() -> None:
    page = (Path(__file__).parent.parent / "docs" / "order.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| (.+) \|$", page, re.MULTILINE)
    assert rows == list(UNSOUND)


@pytest.mark.parametrize(
    "stack",
    [
        (retry(models=False, tools=["search"]), *production()),
        (*production(tool_seconds=None), retry(models=False, tools=["search"])),
        (circuit_breaker(), circuit_breaker(models=False, tools=True)),
        (circuit_breaker(tools=["a"]), circuit_breaker(models=False, tools=["b"])),
        (ref("circuit_breaker", tools=False), ref("circuit_breaker", models=False)),
        (timeout(run=5), retry()),
        (timeout(tool=5), retry(tools=False)),
        (timeout(tool={"a": 5}), retry(tools=["b"])),
        (rate_limiter(tools={"a": 5}), retry(tools=False)),
        (rate_limiter(tools={"a": 5}), cache()),
        (tool_emulator(), tool_approval()),
        (cache(), pii_filter(inbound=False, outbound=False)),
    ],
)
def test_of_those_that_act_on_different_calls_nothing_is_said(stack: tuple[Any, ...]) -> None:
    agent = Agent("a").tool(search).tool(a).tool(b)
    assert findings(agent.middleware(*stack)) == []


@pytest.mark.parametrize(
    "stack",
    [
        (retry(models=False, tools=True), circuit_breaker(models=False, tools=["a"])),
        (retry(models=False, tools=["a", "b"]), ref("circuit_breaker", tools=["b"], models=False)),
        (timeout(tool={"a": 5}), retry(models=False, tools=["a"])),
        (timeout(first=5), retry()),
        (rate_limiter(tools={"a": 5}), ref("retry", models=False, tools=True)),
        (circuit_breaker(models=False, tools=["a"]), retry(), circuit_breaker(tools=["a"])),
    ],
)
def test_of_those_that_act_on_the_same_calls_it_is_said(stack: tuple[Any, ...]) -> None:
    agent = Agent("a").tool(a).tool(b)
    assert {code for code, _ in findings(agent.middleware(*stack))} == {"MDW001"}


def search(query: str) -> str:
    """Search."""
    return query


def a() -> str:
    """A."""
    return "a"


def b() -> str:
    """B."""
    return "b"


def test_objects_are_told_by_what_they_are() -> None:
    assert len(findings(Agent("a").middleware(retry()).middleware(ref("circuit_breaker")))) == 1


def test_a_part_stands_inside_the_whole() -> None:
    inner = Agent("a").middleware(ref("pii_filter"), scope="agent")
    assert len(findings((inner >> Agent("b")).middleware(ref("cache")))) == 1
    inner = Agent("a").middleware(ref("cache"), scope="agent")
    assert findings((inner >> Agent("b")).middleware(ref("pii_filter"))) == []
    part = (inner >> Agent("b")).middleware(ref("rate_limiter"), scope="agent")
    assert len(findings(part >> Agent("c"))) == 1


def test_one_limiter_within_itself_is_found() -> None:
    one, other = (rate_limiter(concurrency=1) for _ in range(2))
    part = Agent("a").middleware(one, scope="agent")
    ((code, message),) = findings((part >> Agent("b")).middleware(one))
    assert (code, "around the same calls twice" in message) == ("MDW001", True)
    assert len(findings(Agent("a").middleware(one, retry(models=False), one))) == 1
    assert findings((part >> Agent("b")).middleware(other)) == []
    assert findings(Agent("a").middleware(ref("rate_limiter"), ref("rate_limiter"))) == []
    assert findings(part >> Agent("b").middleware(one, scope="agent")) == []


def test_parts_beside_each_other_are_no_stack() -> None:
    left = Agent("a").middleware(ref("cache"), scope="agent")
    right = Agent("b").middleware(ref("pii_filter"), scope="agent")
    assert findings(left >> right) == []


def test_the_configuration_is_inside_the_builders() -> None:
    node = Agent("a").middleware(ref("cache")).to_ir()
    assert isinstance(node, AppNode)
    config = ExecutionConfig(middlewares=[ref("pii_filter")])
    assert len(findings(node.replace(execution=config))) == 1


@pytest.mark.adk
def test_a_client_that_tries_again_by_itself_is_found() -> None:
    from google.adk.models.google_llm import Gemini
    from google.genai import types

    model = Gemini(model="gemini-2.5-flash", retry_options=types.HttpRetryOptions(attempts=4))
    plain = Agent("b", Gemini(model="gemini-2.5-flash"))
    ((code, message),) = findings((Agent("a", model) >> plain).middleware(retry()))
    assert (code, "up to 4 attempts" in message) == ("MDW002", True)
    assert len(findings(Agent("a", model).middleware(retry(), scope="agent") >> plain)) == 1
    assert findings(Agent("a", model) >> plain.middleware(retry(), scope="agent")) == []


@pytest.mark.adk
def test_a_retry_of_tools_does_not_multiply_the_attempts_of_a_client() -> None:
    from google.adk.models.google_llm import Gemini
    from google.genai import types

    model = Gemini(model="gemini-2.5-flash", retry_options=types.HttpRetryOptions(attempts=4))
    assert findings(Agent("a", model).middleware(retry(models=False, tools=True))) == []
    assert findings(Agent("a", model).middleware(ref("retry", models=False))) == []


# --- names that match nothing --------------------------------------------------------------------


def pay(amount: int) -> str:
    """Pay."""
    return "paid"


@pytest.mark.parametrize(
    ("middleware", "says"),
    [
        (tool_approval(tools=["payy"]), "`tool_approval(tools=...)` names `payy`"),
        (tool_approval(exclude=["payy"]), "`tool_approval(exclude=...)` names `payy`"),
        (tool_call_limit(tools={"payy": 1}), "`tool_call_limit(tools=...)` names `payy`"),
        (timeout(tool={"payy": 1}), "`timeout(tool=...)` names `payy`"),
        (pii_filter(tools=["payy"]), "`pii_filter(tools=...)` names `payy`"),
        (retry(tools=["payy"]), "`retry(tools=...)` names `payy`"),
        (circuit_breaker(tools=["payy"]), "`circuit_breaker(tools=...)` names `payy`"),
        (rate_limiter(tools={"payy": 1}), "`rate_limiter(tools=...)` names `payy`"),
        (tool_emulator(results={"payy": 1}), "`tool_emulator(results=...)` names `payy`"),
        (tool_selector(always=["payy"]), "`tool_selector(always=...)` names `payy`"),
        (context_editing(exclude_tools=["payy"]), "`context_editing(exclude_tools=...)` names"),
        (MiddlewareRef("retry", {"tools": ["payy"]}), "`retry(tools=...)` names `payy`"),
        (MiddlewareRef("human_in_the_loop", {"tools": ["payy"]}), "`tool_approval(tools=...)`"),
        (model_call_limit(per_agent={"clark": 1}), "`model_call_limit(per_agent=...)` names `cla"),
        (todo_list(agents=["clark"]), "`todo_list(agents=...)` names `clark`"),
    ],
)
def test_a_name_that_matches_nothing_is_found(middleware: Any, says: str) -> None:
    for scope in ("all", "agent"):
        agent = Agent("clerk").tool(pay)
        agent = (
            agent.middleware(middleware)
            if scope == "all"
            else agent.middleware(middleware, scope="agent")
        )
        (found,) = [each for each in check_all(agent) if each.code == "MDW003"]
        assert found.message.startswith(says)
        assert found.help in ("did you mean `pay`?", "did you mean `clerk`?")


def test_names_that_match_are_not_found() -> None:
    helper = Agent("helper").tool(search)
    agent = Agent("clerk").tool(pay).agent_tool(helper)
    stack = (
        tool_approval(tools=["pay", "helper", "search"], exclude=["transfer_to_agent"]),
        model_call_limit(per_agent={"clerk": 1, "helper": 1}),
        todo_list(agents=["helper"]),
        retry(tools=["write_todos"]),
    )
    assert findings(agent.middleware(*stack)) == []


def test_a_part_has_its_own_tools() -> None:
    inner = Agent("a").tool(pay).middleware(tool_approval(tools=["search"]), scope="agent")
    ((code, message),) = findings(inner >> Agent("b").tool(search))
    assert (code, message[-29:]) == ("MDW003", "there is no tool of that name")
    outer = Agent("a").tool(pay) >> Agent("b").tool(search)
    assert findings(outer.middleware(tool_approval(tools=["search"]))) == []


@pytest.mark.adk
def test_where_not_all_tools_are_known_nothing_is_said() -> None:
    from google.adk.agents import LlmAgent
    from google.adk.tools.base_toolset import BaseToolset

    class Some(BaseToolset):
        async def get_tools(self, readonly_context: Any = None) -> list[Any]:
            return []

    limit = tool_approval(tools=["wire_transfer"])
    assert findings(Agent("a").tool(pay).tool(Some()).middleware(limit)) == []
    assert findings((Agent("a") >> LlmAgent(name="b")).middleware(limit)) == []
    assert len(findings(Agent("a").tool(pay).middleware(limit))) == 1


def test_a_name_that_two_layers_have_is_a_finding_and_no_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def clash(name: str) -> Any:
        raise LayerError(f"two layers have {name!r}", layer="other")

    monkeypatch.setattr("adk_fluent.middleware._order.find_middleware", clash)
    assert findings(Agent("a").middleware(MiddlewareRef("retry"))) == []

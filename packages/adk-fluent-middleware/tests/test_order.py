"""What `check` says about stacks that do not do what they seem to."""

from __future__ import annotations

from typing import Any

import pytest

from adk_fluent import Agent
from adk_fluent.config import ExecutionConfig
from adk_fluent.contracts import check_all
from adk_fluent.ir import AppNode, MiddlewareRef
from adk_fluent.middleware import retry
from adk_fluent.middleware._order import UNSOUND


def findings(pipeline: Any) -> list[tuple[str, str]]:
    return [(each.code, each.message) for each in check_all(pipeline) if each.code[:3] == "MDW"]


def ref(name: str) -> MiddlewareRef:
    return MiddlewareRef(name)


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


def test_objects_are_told_by_what_they_are() -> None:
    assert len(findings(Agent("a").middleware(retry()).middleware(ref("circuit_breaker")))) == 1


def test_a_part_stands_inside_the_whole() -> None:
    inner = Agent("a").middleware(ref("pii_filter"), scope="agent")
    assert len(findings((inner >> Agent("b")).middleware(ref("cache")))) == 1
    inner = Agent("a").middleware(ref("cache"), scope="agent")
    assert findings((inner >> Agent("b")).middleware(ref("pii_filter"))) == []
    part = (inner >> Agent("b")).middleware(ref("rate_limiter"), scope="agent")
    assert len(findings(part >> Agent("c"))) == 1


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

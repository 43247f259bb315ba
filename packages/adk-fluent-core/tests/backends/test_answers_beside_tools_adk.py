"""Answers of a type, of agents that have tools: what compiles can be asked for, and the reverse."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest
from adk_programs import by_runner
from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.base_llm import BaseLlm  # noqa: TC002  # pydantic looks it up
from pydantic import BaseModel

from adk_fluent import Agent
from adk_fluent.errors import UnsupportedNodeError
from adk_fluent.ir import ExecutionConfig, Ref, StateFieldRef
from adk_fluent.testing import Call, ScriptedModel

pytestmark = pytest.mark.adk


class Item(BaseModel):
    count: int


class Order(BaseModel):
    first: Item
    items: list[Item] = []


class Shelf(BaseModel):
    first: Item | Order


class Tree(BaseModel):
    below: list[Tree] = []


class Size(Enum):
    SMALL = "small"


def look(what: str) -> str:
    """Look something up."""
    return what


def asked(model: BaseLlm) -> ExecutionConfig:
    return ExecutionConfig(default_model=Ref.to(model))


@pytest.mark.parametrize("kind", [Item, Order, Shelf, Tree])
async def test_what_compiles_is_what_adk_can_ask_for(kind: type[BaseModel]) -> None:
    made, failed = Agent("a", ScriptedModel()).tool(look) @ kind, ""
    try:
        await by_runner(
            LlmAgent(name="a", model=ScriptedModel("x"), tools=[look], output_schema=kind)
        )
    except (ValueError, RecursionError) as error:
        failed = type(error).__name__
    if not failed:
        assert made.to_app()
        return
    with pytest.raises(UnsupportedNodeError, match="cannot ask 'a' for an answer") as caught:
        made.to_app()
    assert (caught.value.found or "").startswith(failed)
    assert caught.value.node == "a"


@pytest.mark.parametrize("kind", [Shelf, Tree])
def test_without_tools_all_of_them_do(kind: type[BaseModel]) -> None:
    assert (Agent("a", ScriptedModel()) @ kind).to_app()


@pytest.mark.parametrize("above", [False, True])
def test_models_that_take_both_at_once_need_no_tool(
    monkeypatch: pytest.MonkeyPatch, above: bool
) -> None:
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "1")
    made = Agent("a").tool(look) @ Tree
    if above:
        assert Agent("boss", "gemini-2.5-pro").delegates(made).to_app()
    else:
        assert made.model("gemini-2.5-pro").to_app()


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (Order, {"first": {"count": 1}, "items": [{"count": 2}]}),
        (list[Item], [{"count": 1}]),
        (date, "2026-01-31"),
        (Decimal, "1.50"),
        (Size, "small"),
        (bytes, "AP_-"),
    ],
)
async def test_typed_keys_are_written(kind: Any, given: Any) -> None:
    made = Agent("a").tool(look).writes(StateFieldRef("k", kind))
    answer = {"k": given}
    model = ScriptedModel(Call("look", {"what": "x"}), Call("set_model_response", answer))
    ran = await made.run("go", config=asked(model))
    assert ran.state == answer

"""A pipeline that fails in its second step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent import Agent

if TYPE_CHECKING:
    from adk_fluent.builders import State


def price(state: State) -> dict[str, int]:
    return {"price": state["weight"] * 3}


root_agent = (Agent("weigh").mock("heavy") >> price).named("broken").to_agent()

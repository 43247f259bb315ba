"""A support desk whose agents, functions and tools share typed state.

Runs offline: scripted answers stand in for models. Prints::

    It is on its way.
    refund A1 2026-01-02 gold ['A1', 'seen by review']
    {user:tier?} is the tier of {intent}
    DeskState.intent: str cannot be given 3 (int): Input should be a valid string
"""

from __future__ import annotations

import asyncio
import datetime as dt
from typing import TYPE_CHECKING, Any

from adk_fluent import Agent, S
from adk_fluent.state import (
    SessionScoped,
    StateSchema,
    StateTypeError,
    UserScoped,
    field,
    tool,
)
from adk_fluent.testing import Call, ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Mapping


class DeskState(StateSchema):
    """What the desk knows of a conversation."""

    intent: SessionScoped[str]
    order: SessionScoped[str | None]
    due: SessionScoped[dt.date]
    notes: SessionScoped[list[str]] = field(default_factory=list)
    tier: UserScoped[str] = field(default="free")


@tool
def find_order(order: str, state: DeskState) -> str:
    """Look up an order by its number."""
    state.order = order
    state.due = dt.date(2026, 1, 2)
    with state.edit(DeskState.notes) as notes:
        notes.append(order)
    return f"{order} comes on {state.due:%A}"


def review(state: Mapping[str, Any]) -> dict[str, Any]:
    """Note who has looked at it."""
    desk = DeskState.bind(state)
    return DeskState.delta(notes=[*desk.notes, "seen by review"])


async def main() -> None:
    model = ScriptedModel(Call("find_order", {"order": "A1"}), "It is on its way.")
    clerk = (
        Agent("clerk", model)
        .instruct(f"Help with {DeskState.template.intent}.")
        .reads(DeskState.intent)
        .tool(find_order)
    )
    triage = Agent("triage").mock("refund").writes(DeskState.intent)
    pipeline = triage >> clerk >> review >> S.guard(DeskState.order)
    result = await pipeline.run("Where is A1?", state=DeskState.initial(tier="gold"))
    print(result.text)
    desk = DeskState.bind(result)
    print(desk.intent, desk.order, desk.due, desk.tier, desk.notes)
    print(f"{DeskState.template.tier} is the tier of {DeskState.template.intent}")
    try:
        DeskState.delta(intent=3)
    except StateTypeError as error:
        print(error.what)


if __name__ == "__main__":
    asyncio.run(main())

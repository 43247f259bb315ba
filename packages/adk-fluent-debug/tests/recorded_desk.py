"""A desk that refunds orders, as tests here record it."""

from __future__ import annotations

from typing import Any

from adk_fluent import Agent, Pipeline
from adk_fluent.testing import Call, ScriptedModel, rule

CANARY = "s3cr3t-canary-0815"
RAN: list[str] = []


def refund(order: str, tool_context: Any) -> dict[str, str]:
    """Pay an order back."""
    RAN.append(order)
    tool_context.state["refunded"] = order
    tool_context.actions.skip_summarization = False
    return {"status": "done", "order": order}


def clerk(says: str = "Refund politely.") -> Agent:
    model = ScriptedModel(
        rules=[
            rule("[result refund", reply="A1 is refunded."),
            rule("A1", reply=Call("refund", {"order": "A1"})),
        ],
        default="Good day.",
    )
    return Agent("clerk", model).instruct(says).tool(refund).writes("said")


def desk(says: str = "Refund politely.", late: float = 0.0) -> Pipeline:
    """A clerk, two checks at the same time, and a closing word."""
    fast, slow = (
        Agent(name, ScriptedModel(default=f"{name} agrees", latency=seconds))
        for name, seconds in (("legal", late), ("sales", 0.02 - late))
    )
    closing = Agent("closing", ScriptedModel(default="Bye.")).instruct("Refunded: {refunded?}")
    return clerk(says) >> (fast | slow) >> closing

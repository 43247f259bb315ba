"""A desk that refunds orders, as tests here record it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent, Pipeline
from adk_fluent.testing import Call, ScriptedModel, rule

if TYPE_CHECKING:
    from collections.abc import Generator

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


@contextmanager
def full_disk(size: int) -> Generator[None]:
    """No file takes more than that many bytes, for this process."""
    resource = pytest.importorskip("resource")
    was = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, was[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, was)

"""A support desk that chooses among three models, with a cent for its day.

Runs offline: scripted models stand in for Gemini, by whose prices they are charged. The second
ticket goes on to the best model; for the third there is no money for that, and the answer that is
there stands.

Prints::

    a ticket: $0.0014 estimated, from $0.0003 to $0.0039
    Paid back. ($0.000222, $0.009778 left)
    It is at the customs. ($0.004747, $0.005031 left)
    Not sure, but it left us. ($0.001122, $0.003909 left)
    Sent anew. ($0.000222, $0.003687 left)
"""

from __future__ import annotations

import asyncio

from adk_fluent import Agent
from adk_fluent.cost import Budget, TrafficAssumptions, cost_attribution, cost_of, estimate_cost
from adk_fluent.ir import ModelCandidate
from adk_fluent.protocol import ModelReply, Usage
from adk_fluent.testing import ScriptedModel, reply

TICKETS = ("Where is my refund?", "Where is my parcel?", "And the other one?", "It is broken.")


def model(name: str, output: int, *texts: str) -> ScriptedModel:
    """Make a model whose prompts have 500 tokens."""
    said = (reply(text, usage=Usage(prompt=500, output=output)) for text in texts)
    return ScriptedModel(*said, model=name)


def is_sure(answer: ModelReply) -> bool:
    """Judge the answer of a cheaper model."""
    return "sure" not in answer.text


async def main() -> None:
    triage = Agent(
        "triage", model("gemini-2.5-flash-lite", 5, "refund", "parcel", "parcel", "order")
    )
    lite = model("gemini-2.5-flash-lite", 300, "Paid back.", "Not sure.", "Not sure.", "Sent anew.")
    flash = model("gemini-2.5-flash", 300, "Not sure either.", "Not sure, but it left us.")
    pro = model("gemini-2.5-pro", 300, "It is at the customs.")
    clerk = Agent("clerk").model_select(
        strategy="adaptive",
        candidates=[
            ModelCandidate(lite, quality_tier=1),
            ModelCandidate(flash, quality_tier=2),
            ModelCandidate(pro, quality_tier=3),
        ],
        judge=is_sure,
    )
    desk = triage.writes("kind") >> clerk
    made = estimate_cost(desk, TrafficAssumptions(escalation_rate=0.5))
    print(f"a ticket: ${made.mean:.4f} estimated, from ${made.lo:.4f} to ${made.hi:.4f}")

    day = Budget(0.01, scope="app", name="day", reserve_output=500)
    desk = desk.middleware(day).middleware(cost_attribution())
    for ticket in TICKETS:
        result = await desk.run(ticket)
        left = day.limit - day.balance(result).spent
        print(f"{result.text} ({cost_of(result).total}, {left} left)")


if __name__ == "__main__":
    asyncio.run(main())

"""A desk that sorts messages, calls a tool, and falls back to a second model.

The scripted models stand in for real ones; to ask Gemini, name a model in their place.

Prints::

    billing: Order A1 is paid back.
    general: We open at nine.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from adk_fluent import Agent, Route
from adk_fluent.testing import Call, ScriptedModel, reply, rule

if TYPE_CHECKING:
    from adk_fluent.builders import State

primary = ScriptedModel(
    rules=[
        rule("pay", agent="classify", reply="Billing."),
        rule("open", agent="classify", reply="I would say: general."),
        rule("paid back", agent="refunds", reply="Order A1 is paid back."),
        rule("A1", agent="refunds", reply=Call("refund", {"order": "A1"})),
        rule(agent="general", reply=reply(status=503)),  # as if Gemini were overloaded
    ]
)
backup = ScriptedModel(default="We open at nine.")


def refund(order: str) -> str:
    """Pay an order back.

    Args:
        order: Its number.
    """
    return f"{order} is paid back"


def known_topic(state: State) -> dict[str, str]:
    """One of two words, whatever the model made of it."""
    return {"topic": "billing" if "billing" in state["topic"].lower() else "general"}


classify = Agent("classify").instruct("Answer with one word: billing or general.").writes("topic")
refunds = Agent("refunds").instruct("Pay back what is asked for.").tool(refund)
general = Agent("general").instruct("Answer in one sentence.")
second = general.clone("general_backup").model(backup)

desk = (
    classify >> known_topic >> Route("topic").eq("billing", refunds).otherwise(general // second)
).model(primary)


async def main() -> None:
    for message in ("Please pay A1 back.", "When do you open?"):
        result = await desk.run(message)
        print(f"{result.state['topic']}: {result.text}")


if __name__ == "__main__":
    asyncio.run(main())

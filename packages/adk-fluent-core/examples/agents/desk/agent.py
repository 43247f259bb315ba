"""A support desk for `adk run`, `adk web` and `adk api_server`, which find `root_agent` here.

Two agents look at the message at the same time; a question about an order goes to a clerk with a
tool, and the answer to it is worked on until it is good. The scripted model stands in for a real
one; to ask Gemini, name a model in its place.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from adk_fluent import Agent, Resource, Route, until
from adk_fluent.config import ExecutionConfig
from adk_fluent.testing import Call, ScriptedModel, reply, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.builders import State
    from adk_fluent.testing import Asked

ORDER = re.compile(r"\bA\d\b")


class Orders:
    """Stands in for a database."""

    def __init__(self) -> None:
        self._days = {"A1": "Monday", "A2": "Friday"}

    def day(self, order: str) -> str:
        return self._days.get(order, "a day that we do not know")


def open_orders() -> Iterator[Orders]:
    yield Orders()  # behind it a connection would be closed


def look_up(order: str, orders: Orders) -> str:
    """Look up the day on which an order arrives.

    Args:
        order: Its number.
        orders: Where to look; injected, so the model does not see it.
    """
    return orders.day(order)


def call_look_up(asked: Asked) -> Call:
    return Call("look_up", {"order": ORDER.findall(asked.prompt)[-1]})


def good(state: State) -> bool:
    return state["verdict"] == "good"


model = ScriptedModel(
    rules=[
        rule(ORDER, agent="classify", reply="order"),
        rule(agent="classify", reply="other"),
        rule("!", agent="mood", reply="angry"),
        rule(agent="mood", reply="calm"),
        rule("Monday", agent="clerk", reply="It arrives on Monday."),
        rule("Friday", agent="clerk", reply="It arrives on Friday."),
        rule("do not know", agent="clerk", reply="There is no such order."),
        rule(agent="clerk", reply=call_look_up),
        rule(lambda asked: "sorry" in asked.system, agent="writer", reply="We are sorry. Soon!"),
        rule(agent="writer", reply=reply(chunks=["Dear customer, ", "it is on its way."])),
        rule(
            lambda asked: "angry" in asked.system and "sorry" not in asked.system,
            agent="judge",
            reply="Say that we are sorry.",
        ),
        rule(agent="judge", reply="good"),
        rule(agent="general", reply=reply(chunks=["Hello! ", "Ask about an order."])),
    ]
)

classify = Agent("classify").instruct("One word: order or other?").history("own").writes("topic")
mood = Agent("mood").instruct("One word: calm or angry?").history("own").writes("mood")
clerk = Agent("clerk").instruct("Find out when it arrives.").history("own").tool(look_up)
writer = Agent("writer").instruct("Answer kindly. {verdict?}").writes("answer")
judge = Agent("judge").instruct("Does it do for who is {mood}? {answer}").writes("verdict")
general = Agent("general").instruct("Say what the desk can do.")

answered = clerk >> (writer >> judge) * until(good, max=3)
desk = (classify | mood) >> Route("topic").eq("order", answered).otherwise(general)

root_agent = (
    desk.named("desk")
    .model(model)
    .inject(orders=Resource(open_orders))
    .to_agent(ExecutionConfig(timeout_seconds=60))
)

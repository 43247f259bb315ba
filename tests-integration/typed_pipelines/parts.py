"""What random typed pipelines are made of: types, values, and what their agents and functions do.

Imports no ADK, so that they run on the mock backend without it.
"""

from __future__ import annotations

import asyncio
import datetime as dt  # noqa: TC003  # pydantic looks for it
import enum
import json
from random import Random
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from adk_fluent.backends.mock._responses import Writes
from adk_fluent.testing import Asked, Call, Reply, Script, reply

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

CHANCE: Final = Random()  # seeded by whoever runs a pipeline


class BrokenError(Exception):
    """What fails on purpose, where that is survived."""


class Level(enum.Enum):
    LOW = "low"
    HIGH = "high"


class Grade(enum.IntEnum):
    GOOD = 1
    BAD = 2


class Address(BaseModel):
    street: str
    since: dt.date | None = None


class Order(BaseModel):
    to: Address
    notes: list[str] = []
    paid: dt.datetime | None = None


def note(*values: object) -> bool:
    """Use values; what is bound to a schema is looked at where it is read."""
    return len(values) >= 0


def toss() -> bool:
    """One thing or the other."""
    return CHANCE.random() < 0.5


def data(*fields_and_values: Any) -> str:
    """What an agent answers that writes several fields, or one that is no text: JSON."""
    fields, values = fields_and_values[::2], fields_and_values[1::2]
    made = {
        field.key.rpartition(":")[2]: field.encode(value)
        for field, value in zip(fields, values, strict=True)
    }
    return json.dumps(made)


def work(state: Any, schema: Any, reads: Sequence[str], **writes: Any) -> dict[str, Any]:
    """A step that checks cannot see into: what it does has to be declared."""
    bound = schema.bind(state)
    for name in reads:
        note(getattr(bound, name))
    return schema.delta(**writes)


def says(
    *texts: str,
    calls: Sequence[str] = (),
    transfers: str | None = None,
    instead: Callable[[], Mapping[str, Any]] = dict,
    breaks: bool = False,
) -> Script:
    """An agent's script.

    Args:
        *texts: One of these is its answer.
        calls: Tools, and agents that are tools, that it calls before.
        transfers: Whom it may hand over to instead of answering.
        instead: What its tools write, for a backend that does not run them.
        breaks: Whether it may fail.
    """

    async def turn(asked: Asked) -> Reply:
        for _ in range(CHANCE.randrange(3)):
            await asyncio.sleep(0)
        if breaks and toss():
            raise BrokenError(asked.agent)
        if not any(f"[result {name}" in asked.prompt for name in calls):
            if transfers is not None and toss():
                return reply(Call("transfer_to_agent", {"agent_name": transfers}))
            if calls:
                return _calling(asked, calls, instead)
        return reply(CHANCE.choice(texts))

    return Script(default=turn)


def _calling(asked: Asked, calls: Sequence[str], instead: Callable[[], Mapping[str, Any]]) -> Reply:
    made = [Call(name, {"request": "go"} if name[0] == "a" else {}) for name in calls]
    if asked.raw is not None:
        return reply(*made)
    return Reply(parts=(Writes(dict(instead())), *made))  # the mock backend calls no functions

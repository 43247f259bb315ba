"""All arrangements in one App, with a resource, a configuration and what its `.env` says."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from adk_fluent import Agent, Resource, Route, S, expect, map_over, race, tap, timeout, until
from adk_fluent.config import ExecutionConfig
from adk_fluent.testing import reply

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.builders import State


def words() -> Iterator[list[str]]:
    yield [os.environ["FIRST_WORD"], "two"]


def split(state: State, words: list[str]) -> dict[str, list[str]]:
    return {"words": words}


def length(state: State) -> dict[str, int]:
    return {"length": len(state["word"])}


down = Agent("down").mock(RuntimeError("down"))
up = Agent("up").mock(reply(chunks=["In ", "the ", "end."])).writes("end")
slow = Agent("slow").mock(reply("too late", latency=30))
quick = Agent("quick").mock("in time").writes("winner")
counted = Agent("counted").mock("once more").writes("said") >> S.compute(
    rounds=lambda state: state.get("rounds", 0) + 1
)

mixed = (
    S.set(rounds=0)
    >> split
    >> map_over("words", length, item_key="word", result_key="length", output_key="lengths")
    >> race(slow, quick)
    >> timeout(counted * until(lambda state: state["rounds"] == 2, max=5), 20)
    >> tap(lambda state: state["lengths"])
    >> expect(lambda state: state["lengths"] == [3, 3], "two words of three letters")
    >> S.pick("lengths", "winner", "rounds")
    >> Route("rounds").gt(1, down // up).otherwise(down)
).inject(words=Resource(words, scope="app"))

app = mixed.named("mixed").to_app(
    ExecutionConfig(app_name="mixed", custom_metadata={"by": "mixed"}, max_llm_calls=10)
)

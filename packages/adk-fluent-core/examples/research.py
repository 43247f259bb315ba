"""Questions that are planned, answered at the same time, and summed up.

Prints::

    plan         3 lines
    split        writes questions
    expert       answers
    expert       answers
    expert       answers
    answers      writes answers
    summary      answers
    Summary of: 3 answers
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from adk_fluent import Agent, map_over
from adk_fluent.testing import ScriptedModel

if TYPE_CHECKING:
    from adk_fluent.builders import State
    from adk_fluent.testing import Asked


def model_says(asked: Asked) -> str:
    """What the scripted model answers; a function sees all that the model is asked."""
    if asked.agent == "plan":
        return "Who made it?\nWhat is it for?\nWhat does it cost?"
    if asked.agent == "expert":
        return f"An answer to: {asked.system.splitlines()[0]}"
    return f"Summary of: {asked.system.count('An answer to')} answers"


def split(state: State) -> dict[str, list[str]]:
    return {"questions": state["plan"].splitlines()}


plan = Agent("plan").instruct("List three questions, one a line.").writes("plan")
expert = Agent("expert").instruct("{_item}").history("none")
answers = map_over("questions", expert, output_key="answers", concurrency=2, name="answers")
summary = Agent("summary").instruct("Sum up: {answers}").history("none")

research = (plan >> split >> answers >> summary).model(ScriptedModel(default=model_says))


async def main() -> None:
    result = await research.run("Tell me about the abacus.")
    for event in result:
        if event.node == "plan":
            what = f"{len((event.content or '').splitlines())} lines"
        elif event.content is None:
            what = f"writes {', '.join(event.state_delta)}"
        else:
            what = "answers"
        print(f"{event.node or '':<12} {what}")
    print(result.text)


if __name__ == "__main__":
    asyncio.run(main())

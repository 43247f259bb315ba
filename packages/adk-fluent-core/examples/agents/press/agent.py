"""A press release that goes out once an editor has agreed: `adk web` and `adk run` ask for that.

The scripted model stands in for a real one; to ask Gemini, name a model in its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent import Agent, gate
from adk_fluent.testing import ScriptedModel, rule

if TYPE_CHECKING:
    from adk_fluent.builders import State

model = ScriptedModel(
    rules=[
        rule(agent="write", reply="We open in Rome."),
        rule(agent="announce", reply="It is out: We open in Rome."),
    ]
)


def what_is_published(state: State) -> dict[str, str]:
    return {"release": state["release"]}


write = Agent("write").instruct("Write a press release.").writes("release")
approve = gate(message="Publish this?", payload=what_is_published, name="approve")
announce = Agent("announce").instruct("Say that this is out: {release}")

root_agent = (write >> approve >> announce).named("press").model(model).to_agent()

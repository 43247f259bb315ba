"""A pipeline of an agent with a `LoudModel` and an `EchoNode`, on ADK."""

from __future__ import annotations

import asyncio

from adk_fluent import Agent
from adk_fluent.ir import Ref
from adk_fluent.testing import ScriptedModel
from adk_fluent.toy import EchoNode, LoudModel

voice = LoudModel(ScriptedModel("good morning"))
pipeline = Agent("crier").model(Ref(voice, "loud")) >> EchoNode("echo", text="  morning  ")

if __name__ == "__main__":
    print(pipeline.check())
    for event in asyncio.run(pipeline.run("hello")):
        print(f"{event.author}: {event.content}")

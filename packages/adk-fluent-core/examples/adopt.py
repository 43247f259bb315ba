"""An ADK program that takes adk-fluent in for one part, and runs on as before.

Prints::

    outline   three points
    writer    a text about three points
    checker   no mistakes
    draft: a text about three points
"""

from __future__ import annotations

import asyncio

from google.adk.agents import LlmAgent
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai.types import Content, Part

from adk_fluent import Agent
from adk_fluent.testing import ScriptedModel

# What was there before: an agent, and a Runner with a session service.
writer = LlmAgent(
    name="writer",
    model=ScriptedModel("a text about three points"),
    instruction="Write about: {points}",
    output_key="draft",
)
sessions = InMemorySessionService()

# What is new: the agent becomes a step between two others.
outline = Agent("outline").instruct("List three points.").mock("three points").writes("points")
checker = Agent("checker").instruct("Find mistakes.").mock("no mistakes").history("input")
app = (outline >> writer >> checker).to_app()


async def main() -> None:
    runner = Runner(app=app, session_service=sessions)
    session = await sessions.create_session(app_name=app.name, user_id="ann")
    message = Content(role="user", parts=[Part(text="Write about clocks.")])
    async for event in runner.run_async(user_id="ann", session_id=session.id, new_message=message):
        parts = event.content.parts if event.content else None
        print(f"{event.author:<9}", *(part.text for part in parts or ()))
    kept = await sessions.get_session(app_name=app.name, user_id="ann", session_id=session.id)
    print("draft:", kept.state["draft"] if kept else None)


if __name__ == "__main__":
    asyncio.run(main())

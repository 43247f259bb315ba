"""The agent that evaluation is measured on, and ADK's Runner alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.evaluation.eval_case import EvalCase, IntermediateData, Invocation, SessionInput
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

from bench.side.scripted import driven

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine

    from google.adk.models.llm_request import LlmRequest

    from bench.side.worker import Task

SAID = "My bill is too high"
TOOLS = ("classify", "open_ticket")
ANSWER = "I have opened ticket T-1."
_USAGE = types.GenerateContentResponseUsageMetadata(
    prompt_token_count=10, candidates_token_count=5, total_token_count=15
)


class Desk(BaseLlm):
    """A model that calls one tool, then the other, then answers: three calls a case.

    Attributes:
        calls: The number of calls, in a list that all copies share.
    """

    calls: Any

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """One reply."""
        self.calls[0] += 1
        parts = llm_request.contents[-1].parts or []
        done = parts[0].function_response
        if done is None:
            part = types.Part(function_call=types.FunctionCall(name=TOOLS[0], args={"text": SAID}))
        elif done.name == TOOLS[0]:
            part = types.Part(
                function_call=types.FunctionCall(name=TOOLS[1], args={"kind": "bill"})
            )
        else:
            part = types.Part(text=ANSWER)
        content = types.Content(role="model", parts=[part])
        yield LlmResponse(content=content, usage_metadata=_USAGE)


def classify(text: str) -> dict[str, str]:
    """Classify a text."""
    return {"kind": "bill"}


def open_ticket(kind: str) -> dict[str, str]:
    """Open a ticket."""
    return {"ticket": "T-1"}


def agent(calls: list[int]) -> LlmAgent:
    """Return the agent."""
    return LlmAgent(
        name="desk", model=Desk(model="desk", calls=calls), tools=[classify, open_ticket]
    )


def run_cases(size: int) -> Callable[[], Coroutine[Any, Any, int]]:
    """Run conversations, each in its own session; return the number of model calls."""
    calls = [0]
    once = driven(InMemoryRunner(app=App(name="bench", root_agent=agent(calls))))

    async def all_of_them() -> int:
        calls[0] = 0
        for _ in range(size):
            await once()
        return calls[0]

    return all_of_them


def _content(role: str, text: str) -> types.Content:
    return types.Content(role=role, parts=[types.Part(text=text)])


def eval_cases(size: int) -> Callable[[], int]:
    """Make eval cases by hand."""

    def once() -> int:
        made = [
            EvalCase(
                eval_id=f"case{number}",
                conversation=[
                    Invocation(
                        user_content=_content("user", SAID),
                        final_response=_content("model", ANSWER),
                        intermediate_data=IntermediateData(
                            tool_uses=[types.FunctionCall(name=name, args={}) for name in TOOLS]
                        ),
                    )
                ],
                session_input=SessionInput(app_name="bench", user_id="user", state={"a": 1}),
            )
            for number in range(size)
        ]
        return len(made)

    return once


TASKS: dict[str, Task] = {"run-cases": run_cases, "eval-cases": eval_cases}

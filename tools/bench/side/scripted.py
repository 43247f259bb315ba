"""What every side that runs on ADK shares: the model, and how a run is driven."""

from __future__ import annotations

import logging
import warnings
from typing import TYPE_CHECKING, Any

from google.adk.agents.run_config import RunConfig, StreamingMode  # pyright: ignore[reportPrivateImportUsage]  # where every version has it
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai import types

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine

    from google.adk.models.llm_request import LlmRequest
    from google.adk.runners import Runner

warnings.simplefilter("ignore")  # what ADK deprecates is measured all the same
logging.disable(logging.WARNING)

USER = "user"
MESSAGE = "hi"
_USAGE = types.GenerateContentResponseUsageMetadata(
    prompt_token_count=10, candidates_token_count=5, total_token_count=15
)


class Echo(BaseLlm):
    """A model that says the same thing at once."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """One reply."""
        yield _text("ok")


class Chunks(BaseLlm):
    """A model that streams: so many chunks, then the whole, as ADK's own does.

    Attributes:
        count: How many chunks.
    """

    count: int

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """One reply."""
        for _ in range(self.count if stream else 0):
            yield _text("ok ", partial=True)
        yield _text("ok " * self.count)


def _text(text: str, *, partial: bool | None = None) -> LlmResponse:
    said = types.Content(role="model", parts=[types.Part(text=text)])
    return LlmResponse(content=said, usage_metadata=None if partial else _USAGE, partial=partial)


def name(at: int) -> str:
    """The name of an agent in a pipeline."""
    return f"a{at}"


def driven(
    runner: Runner, run_config: RunConfig | None = None
) -> Callable[[], Coroutine[Any, Any, int]]:
    """A run in a session of its own, as ADK's documentation does it; returns how many events."""
    message = types.Content(role="user", parts=[types.Part(text=MESSAGE)])

    async def once() -> int:
        session = await runner.session_service.create_session(
            app_name=runner.app_name, user_id=USER
        )
        count = 0
        async for _ in runner.run_async(
            user_id=USER, session_id=session.id, new_message=message, run_config=run_config
        ):
            count += 1
        return count

    return once


def streamed(runner: Runner) -> Callable[[], Coroutine[Any, Any, int]]:
    """The same, with fragments of what a model says."""
    return driven(runner, RunConfig(streaming_mode=StreamingMode.SSE))

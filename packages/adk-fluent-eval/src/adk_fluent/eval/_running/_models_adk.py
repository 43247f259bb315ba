"""What answers in the place of models: another model, or an answer that was kept."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from adk_fluent.errors import AgentReportedError
from adk_fluent.eval._files._eval_case_adk import answer_text
from adk_fluent.eval._outcome import CaseOutcome, Tokens
from adk_fluent.eval._running._pace import TRIES, refusal_in, wait_before
from adk_fluent.protocol import ModelCall, ModelReply, NextModel, Usage, request_key

if TYPE_CHECKING:
    from google.adk.models.base_llm import BaseLlm

    from adk_fluent.eval._running._cache import Answers


class Models:
    """Stands in for the models of one run of a case; see `adk_fluent.backends.adk.replace_models`.

    Args:
        model: The model that answers for every model of the pipeline; None leaves each its own.
        answers: The answers of this run.
        outcome: Where calls and tokens of judges and simulated users are counted.
    """

    def __init__(self, model: BaseLlm | None, answers: Answers, outcome: CaseOutcome) -> None:
        self._model = model
        self._answers = answers
        self._outcome = outcome

    async def __call__(self, call: ModelCall, next: NextModel) -> ModelReply:
        """Answer a call, or pass it to the model."""
        if self._model is not None:
            call = replace(call, model=self._model)
            call.request.model = self._model.model

        async def ask() -> list[LlmResponse]:
            return (await next(call)).responses

        return ModelReply(await self._of(call.request, call.model.model, ask))

    async def _of(self, request: LlmRequest, model: str, ask: Any) -> list[LlmResponse]:
        return await self._answers.of(
            lambda: request_key(request, model), model, ask, _dumped, _loaded
        )

    async def ask(self, model: BaseLlm, request: LlmRequest) -> str:
        """Return what a judge or a simulated user says; one that is refused waits and asks again.

        Raises:
            AgentReportedError: The model reported an error.
            Exception: What the model raised.
        """
        request.model = model.model

        async def ask() -> list[LlmResponse]:
            self._outcome.eval_calls += 1
            found = [each async for each in model.generate_content_async(request)]
            for each in found:
                if each.error_code:
                    code = str(each.error_code)
                    what = f"{code}: {each.error_message}"
                    raise AgentReportedError(what, error_code=code)
                usage = Usage.from_genai(each.usage_metadata) or Usage()
                self._outcome.eval_tokens += tokens_of(usage)
            return found

        for attempt in range(1, TRIES + 1):
            try:
                return said(await self._of(request, model.model, ask))
            except Exception as error:
                refusal = refusal_in(error)
                wait = None if refusal is None else wait_before(refusal, attempt)
                if wait is None:
                    raise
                await asyncio.sleep(wait)
        raise AssertionError  # the last try has no wait


def tokens_of(usage: Usage) -> Tokens:
    """Return the tokens of a model call."""
    return Tokens(usage.prompt + usage.tool, usage.cached, usage.output, usage.thoughts)


def prompt_of(text: str, instruction: str | None = None) -> LlmRequest:
    """Return a request with one message."""
    return LlmRequest(
        contents=[types.Content(role="user", parts=[types.Part(text=text)])],
        config=types.GenerateContentConfig(system_instruction=instruction),
    )


def said(responses: list[LlmResponse]) -> str:
    """Return the text of an answer, without thoughts."""
    return "".join(answer_text(each.content) for each in responses if not each.partial)


def _dumped(response: LlmResponse) -> Any:
    return None if response.error_code else response.model_dump(mode="json", exclude_none=True)


def _loaded(value: Any) -> LlmResponse:
    return LlmResponse.model_validate_json(json.dumps(value))  # base64 is only read from JSON

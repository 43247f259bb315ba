"""The models behind judges of ADK's: any model, tolerant of a service that is busy.

ADK's judges take a model by name only and count one failed sample as none at all. So ADK is given
one name, under which it finds a model that hands on to the real one of the metric at work, tries
again what may succeed, and keeps what the judge said, which ADK drops.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.models.registry import LLMRegistry
from google.genai import types

from adk_fluent.errors import UsageError
from adk_fluent.protocol import classify, retry_after

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from google.adk.models.llm_request import LlmRequest

    from adk_fluent.eval._running._models_adk import Answers

#: The name by which ADK finds the model of the metric at work.
JUDGE: Final = "adk-fluent-judge"
_TRIES: Final = 4
_FIRST_WAIT: Final = 0.5  # seconds, doubled at each try
_LONGEST_WAIT: Final = 60.0
_ONCE: Final = types.HttpRetryOptions(attempts=1)


class Hearing:
    """One metric of one run that a model judges.

    Args:
        model: The model that judges.
        answers: Where answers of models are kept.
        errors: Where is noted what the model raised.

    Attributes:
        said: What the judge was asked, to what it said, a text for each sample that it answered.
        failed: What it failed with last; empty if it never did.
    """

    def __init__(self, model: BaseLlm, answers: Answers, errors: list[BaseException]) -> None:
        self._model = model
        self._answers = answers
        self._errors = errors
        self.said: dict[str, list[str]] = {}
        self.failed = ""

    @contextmanager
    def begin(self) -> Generator[None]:
        """Make this the metric at work, for the task that enters it."""
        token = _AT_WORK.set(self)
        try:
            yield
        finally:
            _AT_WORK.reset(token)

    @property
    def unanswered(self) -> bool:
        """Whether something was asked that the judge never answered."""
        return not all(self.said.values())

    async def ask(self, request: LlmRequest) -> str:
        """What the judge says; empty, with `failed`, if it says nothing in the end."""
        answers = self.said.setdefault(text_of(request.contents[-1]), [])
        try:
            found = await self._answers.of(
                _for(request, self._model), self._model.model, "", self._answered
            )
        except Exception as error:  # noqa: BLE001  # of somebody's model
            self._errors.append(error)
            self.failed = f"the judge's model raised {type(error).__name__}: {error}"
            return ""
        response = found[-1] if found else LlmResponse()
        text = text_of(response.content)
        if response.error_code:
            told = ": ".join(filter(None, (str(response.error_code), response.error_message)))
            self.failed = f"the judge's model reported {told}"
        elif not text:
            self.failed = "the judge's model said nothing"
        else:
            answers.append(text)
            return text
        return ""

    async def _answered(self, request: LlmRequest) -> list[LlmResponse]:
        """The answer, after as many tries as it takes and there are."""
        wait = _FIRST_WAIT
        for left in reversed(range(_TRIES)):
            try:
                stream = self._model.generate_content_async(request)
                return [each async for each in stream if not each.partial]
            except Exception as error:
                told = retry_after(error)
                if not left or classify(error) != "retriable" or (told or 0) > _LONGEST_WAIT:
                    raise
                await asyncio.sleep(wait if told is None else told)
                wait *= 2
        raise AssertionError("unreachable: the last try returns or raises")


_AT_WORK: ContextVar[Hearing | None] = ContextVar("adk_fluent_eval_hearing", default=None)


class JudgeModel(BaseLlm):
    """Stands for the model of the metric at work; ADK makes one for each evaluator."""

    @classmethod
    def supported_models(cls) -> list[str]:
        """Its one name."""
        return [JUDGE]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Ask the model that judges.

        One that fails in the end says nothing: ADK then goes by its other samples, and who began
        the hearing looks whether there were any.

        Raises:
            UsageError: No metric is at work.
        """
        hearing = _AT_WORK.get()
        if hearing is None:
            raise UsageError(
                f"the model {JUDGE!r} is a stand-in for the judge of a suite while it runs",
                help="name the model that you want",
            )
        text = await hearing.ask(llm_request)
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))


LLMRegistry.register(JudgeModel)


def _for(request: LlmRequest, model: BaseLlm) -> LlmRequest:
    """A request as the model that judges takes it; nobody but us tries again."""
    config: Any = request.config or types.GenerateContentConfig()
    options: Any = config.http_options or types.HttpOptions()
    config = config.model_copy(
        update={"http_options": options.model_copy(update={"retry_options": _ONCE})}
    )
    return request.model_copy(update={"model": model.model, "config": config})


def text_of(content: types.Content | None) -> str:
    """What a content says, without thoughts: ADK would take them for a part of the verdict."""
    parts = (content and content.parts) or ()
    return "\n".join(part.text for part in parts if part.text and not part.thought)

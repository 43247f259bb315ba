"""What answers in the place of models: another model, or an answer that was kept."""

from __future__ import annotations

import hashlib
import heapq
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from google.adk.models.llm_response import LlmResponse
from pydantic import ValidationError

from adk_fluent.eval._errors import EvalFileError
from adk_fluent.eval._running._cache import Kept
from adk_fluent.eval._running._cost import Cost, usage_of
from adk_fluent.protocol import ModelReply, request_key

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_request import LlmRequest

    from adk_fluent.eval._running._cache import ResponseCache
    from adk_fluent.protocol import ModelCall, NextModel, PriceBook


class Recording:
    """A cache as one run of a suite uses it.

    Args:
        cache: Where answers are kept.

    Attributes:
        problem: Why answers could not be kept; empty if all were.
    """

    def __init__(self, cache: ResponseCache) -> None:
        self._cache = cache
        self._fresh: set[str] = set()
        self.problem = ""

    async def of(
        self, name: str, agent: str, model: str, ask: Callable[[], Awaitable[list[LlmResponse]]]
    ) -> tuple[list[LlmResponse], bool]:
        """An answer, and whether it is one that was kept.

        Args:
            name: What identifies it.
            agent: Who asks.
            model: Who is asked.
            ask: Asks.

        Raises:
            EvalFileError: It cannot be read, or is not there and must not be asked for.
            Exception: What the model raised.
        """
        if (kept := self._cache.read(name, fresh=name in self._fresh)) is not None:
            return [self._response(name, at, each) for at, each in enumerate(kept.responses)], True
        self._cache.check_may_ask(name, agent, model)
        responses = await ask()
        if not _is_error(responses):
            self._keep(name, Kept(agent, model, [_data(each) for each in responses]))
        return responses, False

    def _keep(self, name: str, kept: Kept) -> None:
        """Keep an answer; a disk that is full costs that alone, not the case."""
        try:
            self._cache.write(name, kept)
        except EvalFileError as error:
            found = f" ({error.found})" if error.found else ""
            self.problem = self.problem or f"{error.what}{found}"
        else:
            self._fresh.add(name)

    def _response(self, name: str, at: int, data: Any) -> LlmResponse:
        """A response as it was; through JSON, where alone genai reads bytes back."""
        try:
            return LlmResponse.model_validate_json(json.dumps(data))
        except ValidationError as error:
            first = error.errors()[0]  # its own text shows contents
            field = ".".join([f"responses[{at}]", *map(str, first["loc"])])
            raise self._cache.broken(name, field, first["msg"]) from None


class Answers:
    """The answers of all models in one run of a case, its judges and its played user included.

    Args:
        recording: Where they are kept; None keeps none.
        case: The id of the case: each has answers of its own.
        run: Which run of the case it is: so has each of these.
        prices: What tokens cost; None leaves them without a price.

    Attributes:
        replayed: How many were replayed.
        beside: What judges and the played user took; also what is replayed counts.
    """

    def __init__(
        self, recording: Recording | None, case: str, run: int, prices: PriceBook | None = None
    ) -> None:
        self._recording = recording
        self.beside = Cost(prices)
        digest = hashlib.sha256(case.encode("utf-8", "surrogatepass")).hexdigest()
        self._whose = f"{digest[:8]}.{run}"
        self._asked: dict[str, int] = {}
        self._free: dict[str, list[int]] = {}
        self.replayed = 0

    async def of(
        self,
        request: LlmRequest,
        model: str,
        agent: str,
        ask: Callable[[LlmRequest], Awaitable[list[LlmResponse]]],
    ) -> list[LlmResponse]:
        """What a model answers.

        Args:
            request: What it is asked.
            model: Its name, where the request does not say.
            agent: Who asks; empty for a judge and a played user.
            ask: Asks it.

        Raises:
            EvalFileError: See `Recording.of`.
            Exception: What the model raised.
        """
        responses = await self._of(request, model, agent, ask)
        if not agent:  # those of agents are told by their events
            self._note(responses, request.model or model)
        return responses

    async def _of(
        self,
        request: LlmRequest,
        model: str,
        agent: str,
        ask: Callable[[LlmRequest], Awaitable[list[LlmResponse]]],
    ) -> list[LlmResponse]:
        if self._recording is None:
            return await ask(request)
        key = request_key(request, model)
        number = self._number(key)
        answered = False
        try:
            responses, kept = await self._recording.of(
                f"{key}.{self._whose}.{number}", agent, request.model or model, lambda: ask(request)
            )
            answered = not _is_error(responses)
        finally:
            if not answered:  # who asks again has the answer that was not given
                heapq.heappush(self._free.setdefault(key, []), number)
        self.replayed += kept
        return responses

    def _note(self, responses: list[LlmResponse], model: str) -> None:
        for each in responses:
            usage = usage_of(each.usage_metadata)
            if not each.partial and (usage is not None or not each.error_code):
                self.beside.add(getattr(each, "model_version", None) or model, usage)

    def _number(self, key: str) -> int:
        """How often the same was asked and answered, counted from 1."""
        if self._free.get(key):
            return heapq.heappop(self._free[key])
        self._asked[key] = self._asked.get(key, 0) + 1
        return self._asked[key]


class InsteadOfModels:
    """Stands in the place of all models of a pipeline in one run of a case.

    Args:
        model: The model that answers instead; None leaves each its own.
        answers: The answers of this run.
    """

    def __init__(self, model: BaseLlm | None, answers: Answers) -> None:
        self._model = model
        self._answers = answers

    async def __call__(self, call: ModelCall, next: NextModel) -> ModelReply:
        """Answer a call, or let it through to the model."""
        if not call.agent:  # no agent asks: it is a judge or a played user with an agent's model
            return await next(call)
        if self._model is not None:
            call = replace(call, model=self._model)
            call.request.model = self._model.model

        async def ask(request: LlmRequest) -> list[LlmResponse]:
            return (await next(replace(call, request=request))).responses

        name = getattr(call.model, "model", "")
        return ModelReply(await self._answers.of(call.request, name, call.agent, ask))


def _is_error(responses: list[LlmResponse]) -> bool:
    """Whether a model reported an error, which is no answer to keep."""
    return any(each.error_code for each in responses)


def _data(response: LlmResponse) -> dict[str, Any]:
    return response.model_dump(mode="json", exclude_none=True)

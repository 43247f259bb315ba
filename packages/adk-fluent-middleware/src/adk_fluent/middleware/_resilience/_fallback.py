"""Other models, where one does not answer.

This is not compiled to ADK's FallbackModel, which 2.13 has and 1.25 has not: it calls its models
within what is one call to everybody else, so that retries, limits and circuit breakers cannot stand
around each of them; it moves on at some statuses only, and never when a connection is lost; and
it cannot look at an answer. Here each model is called through all middlewares inside of this one.
A FallbackModel is a model like any other, though, of the agent or among those that are named here.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from json import JSONDecodeError
from typing import TYPE_CHECKING, Annotated, Any
from weakref import WeakKeyDictionary

from pydantic import Field, WithJsonSchema

from adk_fluent.errors import UsageError
from adk_fluent.extend import LOG
from adk_fluent.ir import Ref
from adk_fluent.middleware._builtin import BuiltIn, builtin, dependency, shown
from adk_fluent.middleware._errors import CircuitOpenError, RateLimitError
from adk_fluent.middleware._resilience._names import model_name
from adk_fluent.middleware._spent import tell_spent
from adk_fluent.middleware._stand_ins import tell
from adk_fluent.protocol import (
    ModelCall,
    ModelReply,
    NextModel,
    RequestSnapshot,
    classify,
    status_of,
)
from adk_fluent.telemetry import count

if TYPE_CHECKING:
    from google.adk.models.base_llm import BaseLlm
else:
    BaseLlm = Any  # options are checked without ADK


def _is_of_the_model(error: Exception) -> bool:
    refused = isinstance(error, CircuitOpenError | RateLimitError)
    return refused or classify(error) == "retriable" or _is_elsewhere_otherwise(error)


def _is_elsewhere_otherwise(error: Exception) -> bool:
    """Whether the same call fails again here, and need not at another service."""
    # what is no answer at all, such as the page of a proxy; google-genai has an error for it
    names = {cls.__name__ for cls in type(error).__mro__}
    is_no_answer = isinstance(error, JSONDecodeError) or "UnknownApiResponseError" in names
    return is_no_answer or status_of(error) in (404, 408)


def _never(reply: ModelReply) -> bool:
    return False


class Resolved:
    """What names of models stand for: in each event loop its own, since clients belong to one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: WeakKeyDictionary[asyncio.AbstractEventLoop, Sequence[BaseLlm]]
        self._made = WeakKeyDictionary()

    def __reduce__(self) -> tuple[Any, ...]:
        return (Resolved, ())

    def models(self, given: Sequence[str | Ref | BaseLlm]) -> Sequence[BaseLlm]:
        """The models.

        Raises:
            UsageError: There is none of such a name.
        """
        loop = asyncio.get_running_loop()
        with self._lock:
            made = self._made.get(loop)
            if made is None:
                from adk_fluent.backends.adk import resolve_model  # noqa: PLC0415  # imports ADK

                made = self._made[loop] = tuple(map(resolve_model, given))
        return made


@builtin
class ModelFallbackMiddleware(BuiltIn):
    """Asks other models, in order, when one fails or gives an answer that will not do.

    Another model is asked after lost connections, timeouts, the statuses 404, 408, 429, 500, 502,
    503, 504 and 529, an answer that is no JSON, and when a circuit breaker or a rate limiter inside
    refuses the call. What is wrong with the request is raised at once, and so is what happens after
    the user has read a part of the answer. Each model gets the request as the first one got it.

    Attributes:
        models: The models to ask after the agent's own, best first: names, or instances of ADK's
            BaseLlm.
        fallback_if: Decides which answers will not do; that of the last model is taken as it is.
        fallback_on: Decides which errors another model is asked after, instead of the rule above.
    """

    models: Annotated[
        Sequence[str | Ref | BaseLlm],
        Field(min_length=1),
        WithJsonSchema({"type": "array", "items": {"type": "string"}, "minItems": 1}),
    ]
    fallback_if: Callable[[ModelReply], bool] = dependency(default_factory=lambda: _never)
    fallback_on: Callable[[Exception], bool] = dependency(default_factory=lambda: _is_of_the_model)
    _resolved: Resolved = field(default_factory=Resolved, init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            UsageError: There is no model, or something is none.
        """
        super().__post_init__()
        for each in self.models:
            if not (each if isinstance(each, str) else isinstance(each, Ref) or _generates(each)):
                raise UsageError(
                    "model_fallback(models=...) names models",
                    found=shown(each),
                    help="give names such as 'gemini-2.5-flash', or instances of ADK's BaseLlm",
                )

    async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
        """Call the model, and the others until one answers."""
        # all at once: one that cannot be had is found now, and not when it is needed
        others = self._resolved.models(self.models)
        return await _Attempts(self, call, next, others).reply(0)


class _Attempts:
    """One call, as often as it takes."""

    def __init__(
        self,
        options: ModelFallbackMiddleware,
        call: ModelCall,
        next: NextModel,
        others: Sequence[BaseLlm],
    ) -> None:
        self._options = options
        self._call = call
        self._next = next
        self._others = others
        self._request = call.request
        self._snapshot = RequestSnapshot(call.request)
        self._primary = model_name(call)

    async def reply(self, at: int) -> ModelReply:
        """What the model at a place says, or one after it."""
        is_last = at == len(self._others)
        try:
            reply = await self._ask(at)
        except Exception as error:
            if self._call.emitted or not self._options.fallback_on(error):
                raise
            if is_last:
                error.add_note(f"model_fallback has asked {', '.join(self._names)}")
                raise
            self._tell(at, type(error).__name__)
            return await self.reply(at + 1)  # in here, so that this error is the context of others
        if is_last or self._call.emitted or not self._options.fallback_if(reply):
            tell(of_a_stand_in=at > 0)
            return reply
        tell_spent(self._request, reply.responses)
        self._tell(at, "reply")
        return await self.reply(at + 1)

    async def _ask(self, at: int) -> ModelReply:
        if at == 0:
            return await self._next(self._call)
        model = self._others[at - 1]
        self._snapshot.restore()
        self._request.model = model.model
        # of the other model, if it is ADK's: the old versions of ADK do not look whose it is
        self._request.cache_metadata = None
        return await self._next(replace(self._call, request=self._request, model=model))

    def _tell(self, at: int, why: str) -> None:
        name, to = self._names[at : at + 2]
        what = {"gen_ai.request.model": name, "adk_fluent.fallback.model": to, "error.type": why}
        count("adk_fluent.fallback.switches", 1, what)
        LOG.warning("model %s has not answered (%s): asking %s", name, why, to)

    @property
    def _names(self) -> list[str]:
        return [self._primary, *(each.model for each in self._others)]


def _generates(model: object) -> bool:
    return not isinstance(model, type) and hasattr(model, "generate_content_async")


#: `ModelFallbackMiddleware` by its short name.
model_fallback = ModelFallbackMiddleware

"""One request to a model: what it used, who served it, in which tier."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import fields, replace
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from adk_fluent.cost._prices._ids import model_id
from adk_fluent.protocol import ModelCall, ModelReply, Sink, Usage, estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from adk_fluent.cost._prices._books import PriceBooks, Quote
    from adk_fluent.protocol import Money, NextModel, PriceBook

#: Marks an answer that a budget has given in the model's place: nobody was asked.
STOPPED: Final = "adk_fluent_stopped"
_BY_TRAFFIC: Final = {
    "ON_DEMAND": "standard",
    "ON_DEMAND_FLEX": "flex",
    "ON_DEMAND_OFFPEAK": "off-peak",
    "ON_DEMAND_PRIORITY": "priority",
    "PROVISIONED_THROUGHPUT": "provisioned throughput",
}
#: All fields of a call but its sink; `replace` takes five times as long.
_kept: Final = attrgetter(*(each.name for each in fields(ModelCall) if each.name != "sink"))
_STANDARD: Final = ("", "standard", "unspecified")


class Spent(NamedTuple):
    """What a request used.

    Attributes:
        usage: The tokens.
        estimated: The model did not report them.
        served: The model that answered, as it says itself; "" when it does not.
        tier: The service tier; None is the standard one.
    """

    usage: Usage
    estimated: bool = False
    served: str = ""
    tier: str | None = None


class Watched:
    """A request on its way, whose fragments are seen as they pass.

    Args:
        call: The request.
        by: For whom it is watched.

    Attributes:
        call: The call to go on with.
        by: For whom it is watched.
        asked: The name of the model that was to be asked.
        model: That of the one that is: a budget inside may put another in its place.
    """

    __slots__ = (
        *("_around", "_cut", "_last", "_responses", "_said", "_sink"),
        *("asked", "by", "call", "model"),
    )

    def __init__(self, call: ModelCall, by: object) -> None:
        self.by = by
        self.asked: str = requested(call)
        self.model: str = self.asked
        self._around = (*AROUND.get(), self)
        for each in self._around:
            each.model = self.model
        self._said: list[Any] = []
        self._last: Any = None
        self._responses: Sequence[Any] = ()
        self._cut = False
        self._sink = call.sink
        if call.sink.forward is None:
            self.call: ModelCall = call
        else:
            self.call = ModelCall(*_kept(call), sink=Sink(self._forward, call.sink.emitted))

    async def send(self, next: NextModel, over: Callable[[Watched], None]) -> ModelReply:
        """Send the request.

        Args:
            next: Sends it.
            over: Is told that it is over, once, however it ended: also of one that failed or was
                cut off on the way.
        """
        token = AROUND.set(self._around)
        try:
            reply = await next(self.call)
            self._responses = reply.responses
        except BaseException as error:
            self._cut = not isinstance(error, Exception)  # cancelled: it was sent all the same
            raise
        finally:
            try:
                over(self)
            finally:
                try:  # noqa: SIM105  # suppress takes longer, and this is done for each request
                    AROUND.reset(token)
                except ValueError:  # it is collected in another context
                    pass
        return reply

    async def _forward(self, fragment: Any) -> None:
        usage = fragment.usage_metadata
        if usage is not None:  # each repeats the total so far
            self._last = fragment
        if usage is not None and usage.candidates_token_count is not None:
            self._said.clear()
        elif fragment.content is not None:  # not counted yet
            self._said.append(fragment.content)
        self._sink.emitted = True
        if self._sink.forward is not None:
            await self._sink.forward(fragment)

    def spent(self) -> Spent | None:
        """Return what the request used; None when nobody was asked or it failed at once."""
        responses, request = self._responses, self.call.request
        said = responses[-1] if responses else self._last
        if said is not None and said.custom_metadata and STOPPED in said.custom_metadata:
            return None
        served: str = getattr(said, "model_version", None) or ""
        if len(responses) == 1:  # as nearly always
            usage = Usage.from_genai(responses[0].usage_metadata)
            if usage is not None and usage.total:
                return Spent(usage, False, served, _tier(request, responses))
        reported = [*([] if self._last is None else [self._last]), *responses]
        usage = ModelReply(reported).usage
        if usage is not None and usage.total:
            more = 0 if responses else estimate_tokens(self._said)
            if more:
                usage = replace(usage, output=usage.output + more)
            return Spent(usage, more > 0, served, _tier(request, reported))
        texts = [each.content for each in responses if each.content is not None] or self._said
        if not texts and not self._cut:
            return None
        output = estimate_tokens(texts)
        usage = Usage(prompt=estimate_tokens(request), output=output)
        return Spent(usage, estimated=True, served=served, tier=_tier(request, reported))


#: All that are around a request here, the outermost first.
AROUND: Final[ContextVar[tuple[Watched, ...]]] = ContextVar("adk_fluent_watching", default=())


def is_stopped(reply: ModelReply) -> bool:
    """Return whether a budget has answered in the model's place."""
    return STOPPED in (getattr(reply.final, "custom_metadata", None) or {})


def invocation_of(ctx: Any) -> Any:
    """Return the InvocationContext behind a Context of ADK's, or the context itself."""
    return getattr(ctx, "_invocation_context", ctx)


def requested(call: ModelCall) -> str:
    """Return the name of the model that is asked; the one in the request is what is called."""
    return getattr(call.request, "model", None) or getattr(call.model, "model", None) or ""


def provider_of(call: ModelCall) -> str:
    """Return who provides a model, in OpenTelemetry's words."""
    kind = _kind(cast("type[Any]", type(call.model)))
    prefix = model_id(requested(call)).provider if kind == "litellm" else None
    return prefix or kind


@lru_cache(maxsize=256)
def _kind(model: type[Any]) -> str:
    names = {each.__name__ for each in model.__mro__}
    if "Gemini" in names:
        return "gcp.gemini"
    return "litellm" if "LiteLlm" in names else model.__name__.lower()


#: What the candidates of the selector that has chosen the model bring as prices of their own.
CANDIDATE_PRICES: Final[ContextVar[PriceBook | None]] = ContextVar(
    "adk_fluent_candidate_prices", default=None
)


class Left:
    """What is left of the budgets of a call, for whoever has chosen its model.

    It is copied into state where a budget tells it, so that a recording of the call has it, too.

    Args:
        key: Key of the state that the least is copied to; None copies nothing.
    """

    def __init__(self, key: str | None) -> None:
        self._key = key
        self._left: dict[str, Money] = {}

    def tell(self, account: str, left: Money, ctx: Any) -> None:
        """Take in what is left of a budget, and copy the least into state.

        Args:
            account: Whose money it is.
            left: What is left of it.
            ctx: ADK's context of the call; None has no state.
        """
        self._left[account] = left
        if self._key is not None and ctx is not None:
            ctx.state[self._key] = float(min(self._left.values()).usd)


#: Whoever has chosen the model is told here what is left of each budget.
LEFT: Final[ContextVar[Left | None]] = ContextVar("adk_fluent_left", default=None)


def quoted(
    books: PriceBooks, model: str, spent: Spent, at: datetime, own: PriceBook | None = None
) -> Quote:
    """Return what a request cost: by the model that answered, or else by the one that was asked.

    Args:
        books: The price books.
        model: The model that was asked.
        spent: What it used.
        at: When.
        own: What candidates of a selector bring; None is those of the one around this.
    """
    own = CANDIDATE_PRICES.get() if own is None else own
    books = books if own is None else books.with_own(own)
    if not spent.served or spent.served == model:
        return books.quote(model, spent.usage, at, tier=spent.tier)
    first: Quote | None = None
    for name in dict.fromkeys((*_served(model, spent.served), model)):
        quote = books.quote(name, spent.usage, at, tier=spent.tier)
        if quote.source:
            return quote
        first = quote
    return first if first is not None else books.quote(model, spent.usage, at, tier=spent.tier)


def _served(model: str, served: str) -> tuple[str, ...]:
    """The names of the model that answered; one by LiteLLM comes without its provider."""
    if not served:
        return ()
    prefix, slash, _ = model.rpartition("/")
    return (f"{prefix}/{served}", served) if slash and "/" not in served else (served,)


def service_tier(request: Any) -> str | None:
    """Return the service tier that a request asks for; None is the standard one."""
    asked: Any = getattr(getattr(request, "config", None), "service_tier", None)
    if asked is None:
        return None
    word = str(getattr(asked, "value", asked) or "").lower()
    return None if word in _STANDARD else word


def _tier(request: Any, reported: Sequence[Any]) -> str | None:
    """The tier in which a request was served, as far as that is told."""
    for each in reversed(reported):
        traffic = getattr(each.usage_metadata, "traffic_type", None)
        word = traffic and _BY_TRAFFIC.get(str(getattr(traffic, "value", traffic)))
        if word:
            return None if word == "standard" else word
    return service_tier(request)

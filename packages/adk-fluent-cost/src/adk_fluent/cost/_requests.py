"""One request to a model: what it used, who served it, in which tier."""

from __future__ import annotations

import copy
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self
from weakref import WeakKeyDictionary

from adk_fluent.cost._prices._ids import model_id
from adk_fluent.ir import Ref
from adk_fluent.protocol import Middleware, ModelCall, ModelReply, Usage, estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from adk_fluent.cost._prices._books import PriceBooks, Quote
    from adk_fluent.protocol import Money, NextModel, PriceBook, RunCall

#: Marks an answer that a budget has given in the model's place: nobody was asked.
STOPPED: Final = "adk_fluent_stopped"
_BY_TRAFFIC: Final = {
    "ON_DEMAND": "standard",
    "ON_DEMAND_FLEX": "flex",
    "ON_DEMAND_OFFPEAK": "off-peak",
    "ON_DEMAND_PRIORITY": "priority",
    "PROVISIONED_THROUGHPUT": "provisioned throughput",
}
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


class OfRequests(Middleware):
    """A middleware that has to do with what requests cost, and with whose money that is."""

    adds_tools: Sequence[str] | None = ()
    #: The prices that it was given, by which evaluations count, too.
    __prices__: PriceBooks | None = None
    _owner: tuple[str, str, str, str] | None = None  # app, user, session, run
    _resumed: bool = False

    def new(self) -> Self:
        """Return the instance for one run."""
        made = copy.copy(self)
        made._owner = None  # noqa: SLF001  # its own
        return made

    def refuses_live(self) -> str | None:
        """Say that a live connection has no requests."""
        return f"{type(self).__name__} counts what model calls cost, and a live connection is none"

    def begin_run(self, call: RunCall, /) -> None:
        """Note whose run it is."""
        self._owner = (call.app_name, call.user_id, call.session_id, call.run)
        self._resumed = call.resumed

    def begin_part(self, name: str, call: RunCall, /) -> None:
        """Note whose run it is, too, where this stands around a part of a pipeline."""
        self.begin_run(call)


class Watched:
    """A request on its way, whose fragments are seen as they pass.

    Args:
        call: The request.
        by: For whom it is watched.

    Attributes:
        call: The request.
        by: For whom it is watched.
        told: Who is told what it cost.
        books: Prices of somebody further in.
        asked: The name of the model that was to be asked.
        model: That of the one that is: a budget inside may put another in its place.
    """

    told: tuple[Callable[..., None], ...] = ()
    books: PriceBooks | None = None
    _asked = True
    _cut = False
    _last: Any = None
    _responses: Sequence[Any] = ()

    def __init__(self, call: ModelCall, by: object) -> None:
        self.call = call
        self.by = by
        self.asked = self.model = call.request.model or requested(call)
        self._outside = AROUND.get()
        for each in self._outside:
            each.model = self.model
        self._said: list[Any] = []

    async def send(self, next: NextModel, over: Callable[[Watched], None]) -> ModelReply:
        """Send the request.

        Args:
            next: Sends it.
            over: Is told that it is over, once, however it ended: also of one that failed or was
                cut off on the way.
        """
        call = self.call
        if call.sink.forward is not None:  # kept nowhere here: no cycle for the collector
            call = call.heard_by(self._forward)
        token = AROUND.set((*self._outside, self))
        try:
            reply = await next(call)
            self._responses, self._asked = reply.responses, reply.asked
        except BaseException as error:
            self._cut = not isinstance(error, Exception)  # cancelled: it was sent all the same
            raise
        finally:
            try:  # noqa: SIM105  # suppress takes longer, and this is done for each request
                AROUND.reset(token)
            except ValueError:  # it is collected in another context
                pass
            over(self)
        return reply

    async def _forward(self, fragment: Any) -> None:
        usage = fragment.usage_metadata
        if usage is not None:  # each repeats the total so far
            self._last = fragment
        if usage is not None and usage.candidates_token_count is not None:
            self._said.clear()
        elif fragment.content is not None:  # not counted yet
            self._said.append(fragment.content)
        await self.call.emit(fragment)

    def spent(self) -> Spent | None:
        """Return what the request used; None when nobody was asked or it failed at once."""
        if not self._asked:
            return None
        responses, request = self._responses, self.call.request
        if len(responses) == 1:  # as nearly always
            (only,) = responses
            told = only.usage_metadata
            usage = Usage.from_genai(told)
            if usage is not None and (usage.output or usage.total):
                asked = getattr(request.config, "service_tier", None)
                traffic = getattr(told, "traffic_type", None)
                tier = None if asked is None and traffic is None else _tier(request, only)
                return Spent(usage, False, only.model_version or "", tier)
        said: Any = responses[-1] if responses else self._last
        served = "" if said is None else said.model_version or ""
        if said is not None and said.custom_metadata and STOPPED in said.custom_metadata:
            return None  # also where somebody has made another reply of it
        reported = [*([] if self._last is None else [self._last]), *responses]
        usage = ModelReply(reported).usage
        if usage is not None and usage.total:
            more = 0 if responses else estimate_tokens(self._said)
            if more:
                usage = replace(usage, output=usage.output + more)
            return Spent(usage, more > 0, served, _tier(request, *reported))
        texts = [each.content for each in responses if each.content is not None] or self._said
        if not texts and not self._cut:
            return None
        output = estimate_tokens(texts)
        usage = Usage(prompt=estimate_tokens(request), output=output)
        return Spent(usage, estimated=True, served=served, tier=_tier(request, *reported))


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


def provider_of(kind: type[Any] | None, name: str) -> str:
    """Return who provides a model of a class (None is unknown), in OpenTelemetry's words."""
    names = [] if kind is None else [each.__name__ for each in kind.__mro__]
    if "Gemini" in names:
        return "gcp.gemini"
    if "LiteLlm" in names or not names:
        return model_id(name).provider or ("litellm" if names else "")
    return names[0].lower()


#: What the candidates of the selector that has chosen the model bring as prices of their own.
CANDIDATE_PRICES = ContextVar["PriceBook | None"]("adk_fluent_candidate_prices", default=None)


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
    *answered, asked = names_of(model, spent.served)
    for name in answered:
        quote = books.quote(name, spent.usage, at, tier=spent.tier)
        if quote.source:
            return quote
    return books.quote(asked, spent.usage, at, tier=spent.tier)


def names_of(model: str, served: str) -> Sequence[str]:
    """Return what a price is asked by: the model that answered, then the one that was asked.

    By LiteLLM, one that answered comes without its provider.
    """
    if not served or served == model:
        return (model,)
    prefix, slash, _ = model.rpartition("/")
    full = (f"{prefix}/{served}",) if slash and "/" not in served else ()
    return (*full, served, model)


def service_tier(request: Any) -> str | None:
    """Return the service tier that a request asks for; None is the standard one."""
    asked: Any = getattr(request.config, "service_tier", None)
    if asked is None:
        return None
    word = str(getattr(asked, "value", asked)).lower()
    return None if word in _STANDARD else word


def _tier(request: Any, *reported: Any) -> str | None:
    """The tier in which a request was served, as far as that is told."""
    for each in reversed(reported):
        traffic = getattr(each.usage_metadata, "traffic_type", None)
        if traffic is not None and (word := _BY_TRAFFIC.get(getattr(traffic, "value", traffic))):
            return None if word == "standard" else word
    return service_tier(request)


class Models:
    """What names of models and references to them stand for: in each event loop its own.

    Args:
        given: Names, references, or instances of ADK's BaseLlm.
    """

    def __init__(self, given: Sequence[Any]) -> None:
        self._given = tuple(given)
        self._made: WeakKeyDictionary[Any, dict[int, Any]] = WeakKeyDictionary()

    def __getitem__(self, at: int) -> Any:
        """Return the model at a place.

        Raises:
            UsageError: There is none of such a name.
        """
        import asyncio  # noqa: PLC0415  # slow to import; whoever asks a model has it

        loop = asyncio.get_running_loop()  # clients belong to one
        made = self._made.setdefault(loop, {})
        if at not in made:
            from adk_fluent.backends.adk import resolve_model  # noqa: PLC0415  # imports ADK

            made[at] = resolve_model(self._given[at])
        return made[at]

    def __reduce__(self) -> tuple[Any, ...]:
        return (Models, (self._given,))


def name_of(model: Any) -> str:
    """Return the name of a model, given as a name, a reference or an instance; "" is none."""
    value = model.value if isinstance(model, Ref) else model
    found = value if isinstance(value, str) else getattr(value, "model", "")
    return found if isinstance(found, str) else ""

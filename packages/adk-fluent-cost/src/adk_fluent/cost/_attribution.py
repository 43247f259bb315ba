"""What each request to a model costs: on metrics, on ADK's span, and on the events of the run."""

from __future__ import annotations

import json
from contextlib import suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeAlias

from adk_fluent.cost import _requests as requests
from adk_fluent.cost._errors import PriceError, clock_or_system
from adk_fluent.cost._prices._books import PriceBooks, Prices, price_books
from adk_fluent.cost._report import KEY, REMOTE, CostRecord, CostReport, text_of
from adk_fluent.cost._telemetry import charge, measure
from adk_fluent.extend import LOG, describe
from adk_fluent.protocol import MiddlewareDesc, Money, Unknown, note_on_result

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import adk_fluent.protocol as p
    from adk_fluent.cost._prices._rates import Price

_DAY: Final = 86_400  # seconds; prices change at midnight, UTC
_MOST: Final = 1024
#: The run that asks a remote agent: of several middlewares, the outermost keeps what it cost.
_ASKING: Final = ContextVar[str | None]("adk_fluent_cost_asking", default=None)

#: What requests are alike in that have the same prices: the class and name of the model that was to
#: be asked, the name of the one that was, that of the one that answered, service tier, and day.
_Alike: TypeAlias = tuple[type[Any], str, str, str, str | None, float]
#: What is known of them: who provides the model, its prices (None where books have to be asked each
#: time), and the price book that says so.
_Known: TypeAlias = "tuple[str, Price | None, str]"


class CostAttributionMiddleware(requests.OfRequests):
    """Attributes the cost of every request to a model to its agent, model and step.

    It adds to the counter ``adk_fluent.llm.cost`` (USD), sets ``adk_fluent.cost_usd`` on ADK's own
    span of the model call, and keeps a record on the event, which `cost_of` reads. Each request
    that is sent is charged once, wherever this stands in the stack: attempts of a retry, models of
    a fallback, summaries, streams that were cut off. What a cache answers costs nothing. Where
    several stand around a call, the outermost charges, by the outermost prices that were given. A
    task of a remote agent is a record without a price, since its models are not seen.

    Attributes:
        prices: The price books, in order.
        name: What it is called where a pipeline is explained.
    """

    name: str = "cost_attribution"
    #: Its name, what it does, and the JSON Schema of its options.
    DESC: ClassVar[MiddlewareDesc]

    def __init__(
        self,
        *,
        prices: Prices | None = None,
        on_record: Callable[[CostRecord], None] | None = None,
        clock: p.Clock | None = None,
    ) -> None:
        """Make the middleware.

        Args:
            prices: Rows by model (USD per million tokens), a YAML file of them, a price book, or
                several in order; what they do not know, the built-in table and genai-prices may.
            on_record: Is given each record as soon as the request is over.
            clock: What time it is, since prices change.

        Raises:
            PriceError: The prices are none, or `on_record` cannot be called.
            UsageError: The clock is none.
        """
        if on_record is not None and not callable(on_record):
            raise PriceError("on_record= takes a function", found=describe(on_record))
        self.prices: PriceBooks = price_books(prices)
        self._given: PriceBooks | None = None if prices is None else self.prices
        self.__prices__: PriceBooks | None = self._given
        self._told = () if on_record is None else (on_record,)
        self._clock: p.Clock = clock_or_system(clock, "cost_attribution")
        self._pending: list[CostRecord] = []
        self._known: dict[_Alike, _Known] = {}  # for all runs
        self._warned: set[str] = set()

    def new(self) -> Self:
        """Return the instance for one run."""
        made = super().new()
        made._pending = []  # noqa: SLF001  # its own
        return made

    def begin_run(self, call: p.RunCall, /) -> None:
        """Note whose run it is; what is spent after its last answer is kept on its result."""
        super().begin_run(call)
        note_on_result(call.session_id, self._rest)

    def _rest(self) -> dict[str, str]:
        return {KEY: text_of(self._pending)} if self._pending else {}

    async def wrap_model_request(self, call: p.ModelCall, next: p.NextModel) -> p.ModelReply:
        """Send the request, and charge it: also one that fails or is cut off on the way."""
        for outer in requests.AROUND.get():
            if isinstance(outer.by, CostAttributionMiddleware):
                outer.told += tuple(each for each in self._told if each not in outer.told)
                outer.books = outer.books or self._given
                return await next(call)
        watched = requests.Watched(call, self)
        watched.told = self._told
        return await watched.send(next, self._charge)

    def note_answer(self, call: p.ModelCall, /) -> dict[str, str] | None:
        """Keep on the answer's event what was spent since the one before, for `cost_of`."""
        if self._owner is not None and call.run != self._owner[3]:
            return None  # of a pipeline in a tool: its answer is no event of this run
        kept, self._pending = self._pending, []
        if kept and kept[-1].path != call.path:  # of a step at the same time: its answer will come
            own = (n for n, each in enumerate(kept, 1) if each.path == call.path)
            end = max(own, default=len(kept))
            kept, self._pending = kept[:end], kept[end:]
        return {KEY: text_of(kept)}

    def _charge(self, watched: requests.Watched) -> None:
        """Charge a request that is over, and tell of it."""
        spent = watched.spent()
        if spent is None:
            return
        usage, estimated, served, tier = spent
        call, model = watched.call, watched.model
        now = int(self._clock.now() * 1000) / 1000  # as it is written
        served = served or model
        alike = (call.model.__class__, watched.asked, model, served, tier, now // _DAY)
        provider, price, source = self._known.get(alike) or self._learn(alike)
        books = self._given or watched.books
        if price is None or books is not self._given or requests.CANDIDATE_PRICES.get() is not None:
            at = datetime.fromtimestamp(now, UTC)
            cost, source = requests.quoted(books or self.prices, model, spent, at)
        else:
            cost = price.price(usage, tier)
        agent, path = call.agent, call.path
        branch = getattr(requests.invocation_of(call.ctx), "branch", None) or ""
        record = CostRecord(
            agent, model, served, provider, source, estimated, tier, path, branch, usage, cost, now
        )
        self._pending.append(record)
        attributes = _attributes(agent, model, served, provider, source)
        if isinstance(cost, Money):
            charge(float(cost.usd), attributes)
        else:
            measure("adk_fluent.llm.unpriced", 1, attributes)
            if model not in self._warned:
                self._warned.add(model)
                said = "calls of agent %s have no price: %s; give cost_attribution(prices=...)"
                LOG.warning(said, agent, cost.reason)
        _tell(watched.told, record)

    async def wrap_remote_call(self, call: p.RemoteCall, next: p.NextRemote) -> p.RemoteReply:
        """Ask the agent, and keep that nobody here knows what that cost, however it ends."""
        at, cost = int(self._clock.now() * 1000) / 1000, Unknown("its models are not seen")
        record = CostRecord(call.agent, REMOTE, REMOTE, cost=cost, at=at)
        keeps, token = _ASKING.get() != call.run, _ASKING.set(call.run)
        try:
            reply = await next(call)
            if keeps and reply.events:
                last, keeps = reply.events[-1], False
                noted: dict[str, Any] = last.custom_metadata or {}
                last.custom_metadata = {**noted, KEY: text_of([record])}
            return reply
        finally:
            with suppress(ValueError):  # it is collected in another context
                _ASKING.reset(token)
            if keeps:
                self._pending.append(record)
            _tell(self._told, record)

    def _learn(self, alike: _Alike) -> _Known:
        kind, asked, model, served, tier, day = alike
        name = requests.names_of(model, served)[0]
        on = datetime.fromtimestamp(day * _DAY, UTC).date()
        price, source = self.prices.of_day(name, on, tier)
        provider = requests.provider_of(kind if model == asked else None, model)
        if len(self._known) >= _MOST:
            self._known.clear()
        known = self._known[alike] = provider, price, source
        return known


def _tell(told: Sequence[Callable[[CostRecord], None]], record: CostRecord) -> None:
    for each in told:
        try:
            each(record)
        except Exception:  # noqa: BLE001  # an answer that is paid for is not lost
            LOG.warning("the on_record= of cost_attribution has failed", exc_info=True)


@lru_cache(maxsize=_MOST)
def _attributes(agent: str, model: str, served: str, provider: str, source: str) -> dict[str, str]:
    """What the metrics say of a request: the same of many."""
    attributes = {
        "gen_ai.agent.name": agent,
        "gen_ai.request.model": model,
        "gen_ai.response.model": served,
        "gen_ai.provider.name": provider,
    }
    return {**attributes, "adk_fluent.price.source": source} if source else attributes


#: The schema of ``prices=`` where a file or the command line gives it.
PRICES_SCHEMA: Final = {
    "anyOf": [{"type": "object"}, {"type": "string"}, {"type": "null"}],
    "default": None,
    "description": "Rows by model, USD per million tokens of each kind, or a YAML file of them.",
}
CostAttributionMiddleware.DESC = MiddlewareDesc(
    "cost_attribution",
    "Attributes the cost of every request to a model to its agent, model and step.",
    CostAttributionMiddleware,
    {"type": "object", "additionalProperties": False, "properties": {"prices": PRICES_SCHEMA}},
)

#: `CostAttributionMiddleware` by its short name.
cost_attribution = CostAttributionMiddleware


class CostOption:
    """Collects what the model calls of a command cost, and prints it at its end.

    Attributes:
        middlewares: What stands around each run.
    """

    def __init__(self) -> None:
        self._report = CostReport()
        costs = CostAttributionMiddleware(on_record=self._report.add)
        self.middlewares: Sequence[CostAttributionMiddleware] = (costs,)

    def report(self, *, as_json: bool) -> str:
        """Return what was spent, as a line of JSON or as Markdown."""
        if as_json:
            return json.dumps({"cost": self._report.to_dict()})
        return f"\nCost: {self._report.to_markdown()}"

"""What each request to a model costs: on metrics, on ADK's span, and on the events of the run."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Self

from adk_fluent.cost import _requests as requests
from adk_fluent.cost._errors import PriceError, clock_or_system
from adk_fluent.cost._prices._books import PriceBooks, Prices, price_books
from adk_fluent.cost._report import KEY, CostRecord, CostReport, begun, written
from adk_fluent.cost._telemetry import charge, measure
from adk_fluent.extend import LOG, describe
from adk_fluent.protocol import MiddlewareDesc, Money, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from decimal import Decimal

    from adk_fluent.protocol import Clock, ModelCall, ModelReply, NextModel, PriceBook, Usage

_LABELS: Final = (
    *("gen_ai.agent.name", "gen_ai.request.model", "gen_ai.response.model"),
    *("gen_ai.provider.name", "adk_fluent.price.source"),
)
_DAY: Final = 86_400  # seconds; prices change at midnight, UTC


class _Alike(NamedTuple):
    """What requests of an agent to a model have in common.

    Attributes:
        record: A record of them, without tokens and cost.
        text: How it begins as text.
        attributes: Those of the metrics.
        usd: What their tokens cost; None where books have to be asked each time.
    """

    record: CostRecord
    text: str
    attributes: dict[str, str]
    usd: Callable[[Usage], Decimal] | None


@lru_cache(maxsize=1024)
def _alike(books: PriceBooks, own: PriceBook | None, day: float, *alike: Any) -> _Alike:
    """What those have in common that are alike in all this."""
    (agent, path, branch), (kind, asked, model), estimated, served, tier = alike
    on = datetime.fromtimestamp(day * _DAY, UTC).date()
    name, served = requests.names_of(model, served)[0], served or model
    usd, source = requests.with_candidates(books, own).of_day(name, on, tier)
    provider = requests.provider_of(kind if model == asked else None, model)
    record = CostRecord(agent=agent, model=model, served=served, provider=provider).but(
        source=source, estimated=estimated, tier=tier, path=path, branch=branch or ""
    )
    attributes = dict(zip(_LABELS, (agent, model, served, provider, source), strict=True))
    if not source:
        del attributes[_LABELS[-1]]
    return _Alike(record, begun(record), attributes, usd)


class CostAttributionMiddleware(requests.OfRequests):
    """Attributes the cost of every request to a model to its agent, model and step.

    It adds to the counter ``adk_fluent.llm.cost`` (USD), sets ``adk_fluent.cost_usd`` on ADK's own
    span of the model call, and keeps a record on the event, which `cost_of` reads. Each request
    that is sent is charged once, wherever this stands in the stack: attempts of a retry, models of
    a fallback, summaries, streams that were cut off. What a cache answers costs nothing. Where
    several stand around a call, the outermost charges, by the outermost prices that were given.

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
        clock: Clock | None = None,
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
        self._told = () if on_record is None else (on_record,)
        self._clock: Clock = clock_or_system(clock, "cost_attribution")
        self._pending: list[str] = []
        self._warned: set[str] = set()

    def new(self) -> Self:
        """Return the instance for one run."""
        made = super().new()
        made._pending = []  # noqa: SLF001  # its own
        return made

    async def wrap_model_request(self, call: ModelCall, next: NextModel) -> ModelReply:
        """Send the request, and charge it: also one that fails or is cut off on the way."""
        for outer in requests.AROUND.get():
            if isinstance(outer.by, CostAttributionMiddleware):
                outer.told += self._told
                outer.books = outer.books or self._given
                return await next(call)
        return await requests.Watched(call, self).send(next, self._charge)

    async def after_model(self, ctx: Any, response: Any) -> Any:
        """Keep on the answer what was spent since the one before, for `cost_of`."""
        if response.partial:
            return None
        owner = self._owner
        if owner is not None and requests.invocation_of(ctx).session.id != owner[2]:
            return None  # of an agent in a tool: its answer is no event of the run
        metadata: dict[str, Any] = response.custom_metadata or {}
        kept = {**metadata, KEY: f"[{', '.join(self._pending)}]"}
        self._pending.clear()
        if KEY in metadata:  # of another call: a cache, or the model, gives the same one again
            return response.model_copy(update={"custom_metadata": kept})
        response.custom_metadata = kept  # as ADK's own plugins do; a copy takes five times as long
        return None

    def _charge(self, watched: requests.Watched) -> None:
        """Charge a request that is over, and tell of it."""
        spent = watched.spent()
        if spent is None:
            return
        call, now, (usage, *how) = watched.call, self._clock.now(), spent
        books = self._given or watched.books or self.prices
        place = call.agent, call.path, getattr(requests.invocation_of(call.ctx), "branch", None)
        model = call.model.__class__, watched.asked, watched.model
        own = requests.CANDIDATE_PRICES.get()
        record, text, attributes, usd = _alike(books, own, now // _DAY, place, model, *how)
        if usd is not None:
            cost: Money | Unknown = Money(usd(usage))
        else:
            at = datetime.fromtimestamp(now, UTC)
            cost, source = requests.quoted(books, watched.model, spent, at)
            record = record.but(source=source)
            text = begun(record)
            attributes = {**attributes, **({_LABELS[-1]: source} if source else {})}
        self._pending.append(written(text, usage, cost, now))
        if isinstance(cost, Unknown):
            measure("adk_fluent.llm.unpriced", 1, attributes)
            self._warn(record, cost)
        else:
            charge(float(cost.usd), attributes)
        told = self._told + watched.told
        record = record.but(usage=usage, cost=cost, at=now) if told else record
        for each in told:
            try:
                each(record)
            except Exception:  # noqa: BLE001  # an answer that is paid for is not lost
                LOG.warning("the on_record= of cost_attribution has failed", exc_info=True)

    def _warn(self, record: CostRecord, cost: Unknown) -> None:
        if record.model not in self._warned:
            self._warned.add(record.model)
            LOG.warning(
                "model calls of agent %s have no price: %s; give cost_attribution(prices=...)",
                *(record.agent, cost.reason),
            )


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
    """Collects what the model calls of a command cost, and prints it at its end."""

    def __init__(self) -> None:
        self._report = CostReport()
        self._costs = CostAttributionMiddleware(on_record=self._report.add)

    @property
    def middlewares(self) -> Sequence[CostAttributionMiddleware]:
        """What stands around each run."""
        return (self._costs,)

    def report(self, *, as_json: bool) -> str:
        """Return what was spent, as a line of JSON or as Markdown."""
        if as_json:
            return json.dumps({"cost": self._report.to_dict()})
        return f"\nCost: {self._report.to_markdown()}"

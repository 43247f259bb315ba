"""What each request to a model costs: on metrics, on ADK's span, and on the events of the run."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from adk_fluent.cost._errors import PriceError, clock_or_system
from adk_fluent.cost._prices._books import price_books
from adk_fluent.cost._prices._ids import model_id
from adk_fluent.cost._records import KEY, CostRecord, written
from adk_fluent.cost._requests import (
    AROUND,
    Watched,
    invocation_of,
    provider_of,
    quoted,
)
from adk_fluent.cost._telemetry import measure, note_on_span
from adk_fluent.extend import LOG, describe
from adk_fluent.protocol import Middleware, MiddlewareDesc, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from adk_fluent.cost._prices._books import PriceBooks, Prices
    from adk_fluent.protocol import Clock, ModelCall, ModelReply, NextModel, RunCall


@dataclass(slots=True)
class _Charging:
    """Who is told of a request's cost, and by whose prices that is."""

    told: list[Callable[[CostRecord], None]]
    prices: PriceBooks | None

    def join(self, told: Callable[[CostRecord], None] | None, prices: PriceBooks | None) -> None:
        """Let one further in be told, too; its prices hold where nobody further out gave any."""
        self.told += [] if told is None else [told]
        self.prices = self.prices or prices


class CostAttributionMiddleware(Middleware):
    """Attributes the cost of every request to a model to its agent, model and step.

    It adds to the counter ``adk_fluent.llm.cost`` (USD), sets ``adk_fluent.cost_usd`` on ADK's own
    span of the model call, and keeps a record on the event, which `cost_of` reads. Each request
    that is sent is charged once, wherever this stands in the stack: attempts of a retry, models of
    a fallback, summaries, streams that were cut off. What a cache answers costs nothing. Where
    several stand around a call, the outermost charges, by the outermost prices that were given.

    Attributes:
        prices: The price books, in order.
    """

    adds_tools: Sequence[str] | None = ()
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
        self._on_record = on_record
        self._clock: Clock = clock_or_system(clock, "cost_attribution")
        self._pending: list[CostRecord] = []
        self._session = ""
        self._warned: set[str] = set()

    def new(self) -> Self:
        """Return the instance for one run."""
        made = copy.copy(self)
        made._pending = []  # noqa: SLF001  # its own
        return made

    def refuses_live(self) -> str | None:
        """Say that a live connection is not charged."""
        return "cost_attribution() prices model calls, and a live connection is none"

    def begin_run(self, call: RunCall, /) -> None:
        """Note the session whose events the records are kept on."""
        self._session = call.session_id

    def begin_part(self, name: str, call: RunCall, /) -> None:
        """Note the session, too, where this stands around a part of a pipeline."""
        self._session = call.session_id

    async def wrap_model_request(self, call: ModelCall, next: NextModel) -> ModelReply:
        """Send the request, and charge it: also one that fails or is cut off on the way."""
        for outer in AROUND.get():
            if isinstance(outer.by, _Charging):
                outer.by.join(self._on_record, self._given)
                return await next(call)
        charging = _Charging([] if self._on_record is None else [self._on_record], self._given)
        return await Watched(call, charging).send(next, self._charge)

    async def after_model(self, ctx: Any, response: Any) -> Any:
        """Keep on the answer what was spent since the one before, for `cost_of`."""
        if response.partial or not self._is_of_the_run(ctx):
            return None
        records = written(self._pending)
        self._pending.clear()
        metadata: dict[str, Any] = {**(response.custom_metadata or {}), KEY: records}
        return response.model_copy(update={"custom_metadata": metadata})

    def _is_of_the_run(self, ctx: Any) -> bool:
        """Whether an answer becomes an event of the run: agents in tools have their own session."""
        session = getattr(invocation_of(ctx), "session", None)
        return not self._session or getattr(session, "id", self._session) == self._session

    def _charge(self, watched: Watched) -> None:
        """Charge a request that is over, and tell of it."""
        spent = watched.spent()
        if spent is None:
            return
        call, model = watched.call, watched.model
        charging = cast("_Charging", watched.by)
        now = self._clock.now()
        at = datetime.fromtimestamp(now, UTC)
        quote = quoted(charging.prices or self.prices, model, spent, at)
        is_own = model == watched.asked
        record = CostRecord(
            agent=call.agent,
            model=model,
            served=spent.served or model,
            provider=provider_of(call) if is_own else model_id(model).provider or "",
            usage=spent.usage,
            cost=quote.money,
            source=quote.source,
            estimated=spent.estimated,
            tier=spent.tier,
            path=call.path,
            branch=getattr(invocation_of(call.ctx), "branch", None) or "",
            at=now,
        )
        self._pending.append(record)
        attributes = {
            "gen_ai.agent.name": record.agent,
            "gen_ai.request.model": model,
            "gen_ai.response.model": record.served,
            "gen_ai.provider.name": record.provider,
        }
        if isinstance(quote.money, Unknown):
            measure("adk_fluent.llm.unpriced", 1, attributes)
            self._warn(record)
        else:
            usd = float(quote.money.usd)
            attributes["adk_fluent.price.source"] = quote.source
            measure("adk_fluent.llm.cost", usd, attributes)
            note_on_span(usd)
        for each in charging.told:
            try:
                each(record)
            except Exception:  # noqa: BLE001  # an answer that is paid for is not lost
                LOG.warning("the on_record= of cost_attribution has failed", exc_info=True)

    def _warn(self, record: CostRecord) -> None:
        if record.model not in self._warned and isinstance(record.cost, Unknown):
            self._warned.add(record.model)
            LOG.warning(
                "model calls of agent %s have no price: %s; give cost_attribution(prices=...)",
                record.agent,
                record.cost.reason,
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

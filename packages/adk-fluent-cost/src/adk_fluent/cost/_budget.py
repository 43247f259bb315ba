"""A budget in dollars: what a call may cost is reserved before it, and settled after it."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, Self, cast, get_args

from adk_fluent.cost import _errors as errors
from adk_fluent.cost import _requests as requests
from adk_fluent.cost._asking import Asking
from adk_fluent.cost._attribution import PRICES_SCHEMA
from adk_fluent.cost._ledger import Balance, Ledger, MemoryLedger, Reservation
from adk_fluent.cost._prices._books import PriceBooks, Prices, price_books
from adk_fluent.cost._prices._rates import number
from adk_fluent.cost._telemetry import measure
from adk_fluent.errors import UsageError
from adk_fluent.extend import LOG, describe, must_be, must_be_number, one_of
from adk_fluent.protocol import MiddlewareDesc, ModelReply, Money, RunResult, Usage, estimate_tokens

if TYPE_CHECKING:
    from decimal import Decimal

    from adk_fluent.extend import AnswerInPlace
    from adk_fluent.protocol import Clock, ModelCall, NextModel, PriceBook, Unknown

#: Whose money is counted together.
Scope = Literal["invocation", "session", "user", "app", "process"]
#: What is done with a call that does not fit.
OnExceed = Literal["stop", "fallback", "warn", "ask"]
#: Decides on a call that does not fit: given it and what is left, it gives one of the words.
Decide = Callable[["ModelCall", Money], OnExceed | Awaitable[OnExceed]]

_SCOPES: Final = get_args(Scope)
_WORDS: Final = get_args(OnExceed)
#: How much of app, user, session and run those have in common whose money is counted together.
_SHARED: Final = {"app": 1, "user": 2, "session": 3, "invocation": 4}
_PROCESS: Final = os.urandom(16).hex()
#: The error code of an answer in the place of a call that was not made.
EXHAUSTED: Final = "BUDGET_EXHAUSTED"


class _Held(NamedTuple):
    """What is reserved for a request that goes on."""

    ledger: Ledger
    account: str
    reservation: Reservation

    def covers(self, ledger: Ledger, account: str) -> bool:
        """Whether it is money of an account."""
        return self.account == account and (self.ledger is ledger or self.ledger == ledger)


class Budget(requests.OfRequests):
    """Keeps what models cost within a limit, in USD.

    Before a request is sent, what it may cost is reserved: its prompt's estimate, and as many
    answer tokens as it allows. What does not fit is not sent. Afterwards the true cost is noted and
    the rest given back, so that calls at the same time never get the same money. Attempts of a
    retry, models of a fallback and summaries each need money, wherever this stands in the stack.
    Nothing that runs is cancelled.

    Two of the same `name`, `scope` and `ledger` are one budget.

    Attributes:
        limit: What may be spent.
        scope: Whose money is counted together: of a run (with agents in its tools, and when it is
            resumed), of a session, a user, an app, or this process.
        on_exceed: ``"stop"`` answers with the error code ``BUDGET_EXHAUSTED``, ``"fallback"`` asks
            `fallback_model` if there is money for that, ``"warn"`` logs and goes on. ``"ask"``
            pauses the run until a person has approved what the call may cost, or refused it, which
            ends the run as rejected; in an agent that is a tool it stops. A function is given the
            call and what is left, and gives one of these words; it may be async.
        fallback_model: A cheaper model: its name, or an instance of ADK's BaseLlm.
        reserve_output: Answer tokens reserved where the request sets no ``max_output_tokens``.
        ledger: Where it is counted.
        budget_key: Key of the state that what is left is copied to; it is never read.
        name: What it is called.
        allows_unknown: Models without a price are called, and not counted.
    """

    #: Its name, what it does, and the JSON Schema of its options.
    DESC: ClassVar[MiddlewareDesc]

    def __init__(
        self,
        limit: Money | Decimal | float | str,
        *,
        scope: Scope = "invocation",
        on_exceed: OnExceed | Decide = "stop",
        fallback_model: Any = None,
        prices: Prices | None = None,
        reserve_output: int = 4096,
        on_unknown: Literal["error", "allow"] = "error",
        ledger: Ledger | None = None,
        budget_key: str | None = None,
        name: str = "budget",
        clock: Clock | None = None,
    ) -> None:
        """Make a budget.

        Args:
            limit: What may be spent, in USD; above 0.
            scope: Whose money is counted together.
            on_exceed: What is done with a call that does not fit.
            fallback_model: A cheaper model, for ``"fallback"``.
            prices: As in `cost_attribution`.
            reserve_output: Answer tokens reserved where the request sets no limit.
            on_unknown: A model without a price: ``"error"`` raises `UnknownPriceError` instead of
                calling it, ``"allow"`` calls it and counts nothing.
            ledger: Where it is counted; None is memory of its own.
            budget_key: Key of the state that what is left is copied to.
            name: What it is called, in the ledger and in messages.
            clock: What time it is, since prices change.

        Raises:
            UsageError: An option has a value that it cannot have.
            PriceError: The prices are none.
        """
        self.limit: Money = _limit(limit)
        self.scope: Scope = one_of(scope, _SCOPES, "scope")
        self.on_exceed: OnExceed | Decide = on_exceed if callable(on_exceed) else _word(on_exceed)
        self.fallback_model = fallback_model
        self.reserve_output = reserve_output
        self.ledger: Ledger = MemoryLedger() if ledger is None else ledger
        self.budget_key = budget_key
        self.name = name
        self._prices: PriceBooks = price_books(prices)
        self.__prices__: PriceBooks | None = None if prices is None else self._prices
        self.allows_unknown: bool = one_of(on_unknown, ("error", "allow"), "on_unknown") == "allow"
        self._clock: Clock = errors.clock_or_system(clock, "Budget")
        self._asking = Asking(name)
        self._models = requests.Models([fallback_model])
        self._labels = {"adk_fluent.budget": self.name, "adk_fluent.scope": self.scope}
        self._check()

    def _check(self) -> None:
        model = self.fallback_model
        if self.on_exceed == "fallback" and model is None:
            raise UsageError(
                'Budget(on_exceed="fallback") needs a fallback_model',
                help='Budget(..., on_exceed="fallback", fallback_model="gemini-2.5-flash-lite")',
            )
        if model is not None and self.on_exceed in ("stop", "warn", "ask"):
            raise UsageError(
                "Budget(fallback_model=...) is never used", help='add on_exceed="fallback"'
            )
        is_model = hasattr(model, "generate_content_async") and not isinstance(model, type)
        if not (model is None or is_model or (isinstance(model, str) and model)):
            raise UsageError("Budget(fallback_model=...) is no model", found=describe(model))
        what = "Budget(reserve_output=...) takes a number of tokens"
        must_be_number(self.reserve_output, what, kind=int)
        help = "MemoryLedger(), or SqliteLedger('budgets.db')"
        must_be(Ledger, self.ledger, "Budget(ledger=...) takes a ledger", help)
        must_be(str, self.name or None, "Budget(name=...) takes text")
        if self.budget_key is not None:
            must_be(str, self.budget_key or None, "Budget(budget_key=...) takes text")

    def __content_key__(self) -> tuple[Any, ...]:
        """Return what tells it apart from another budget, as plain data."""
        model, decides = self.fallback_model, self.on_exceed
        return (
            *(str(self.limit), self.scope, decides, self.reserve_output, self.allows_unknown),
            *(type(self.ledger).__qualname__, self.budget_key, self.name, model),
        )

    @property
    def __process_memory__(self) -> str:
        """What is kept in the memory of one process alone, and what to do about that."""
        if not isinstance(self.ledger, MemoryLedger) or self.scope == "process":
            return ""
        return 'what was spent; Budget(..., ledger=SqliteLedger("budgets.db")) keeps it in a file'

    def new(self) -> Self:
        """Return the instance for one run; the ledger is the same for all."""
        made = super().new()
        made._asking = Asking(self.name)  # noqa: SLF001  # its own
        return made

    async def wrap_model_request(self, call: ModelCall, next: NextModel) -> ModelReply:
        """Send the request if there is money for it.

        Raises:
            UnknownPriceError: The model has no price.
            LedgerError: The ledger cannot be used.
        """
        account = self._account(call)
        held = [each.by for each in requests.AROUND.get() if isinstance(each.by, _Held)]
        if any(each.covers(self.ledger, account) for each in held):
            return await next(call)
        amount = self._most(call)
        may_ask = self.on_exceed == "ask" or callable(self.on_exceed)
        said = self._asking.answer(call, amount) if may_ask and self._resumed else None
        admitted = await self._admitted(call, account, amount, said)
        if isinstance(admitted, ModelReply):
            self._mirror(call, account)
            return admitted
        call, reserved = admitted
        watched = requests.Watched(call, _Held(self.ledger, account, reserved))
        reply = await watched.send(next, self._settle)
        if said is not None and requests.is_stopped(reply):
            self._asking.give_back(call, said)
        return reply

    def balance(self, result: RunResult) -> Balance:
        """Return what is gone of the budget that the run of a result was held to.

        Raises:
            UsageError: It is no result.
            LedgerError: The ledger cannot be used.
        """
        must_be(RunResult, result, "Budget.balance takes the result of a run")
        run = result[-1].run_id if result else ""
        owner = (result.app_name, result.user_id, result.session_id, run)
        return self.ledger.balance(self._named(owner))

    def price(self, model: str, usage: Usage, own: PriceBook | None = None) -> Money | Unknown:
        """Return what a call costs by the prices of the budget.

        Args:
            model: The model.
            usage: Its tokens.
            own: Prices that a candidate brings.
        """
        return self._quoted(model, requests.Spent(usage), own)

    def _quoted(
        self, model: str, spent: requests.Spent, own: PriceBook | None = None
    ) -> Money | Unknown:
        at = datetime.fromtimestamp(self._clock.now(), UTC)
        return requests.quoted(self._prices, model, spent, at, own).money

    # --- before the request --------------------------------------------------------------------

    async def _admitted(
        self, call: ModelCall, account: str, amount: Money, said: AnswerInPlace | None
    ) -> tuple[ModelCall, Reservation] | ModelReply:
        """The call with what is reserved for it; or the answer in its place."""
        if said is not None and not said.approved:
            return self._asking.refused(call, self.limit)
        held = await self.ledger.reserve(account, amount, self.limit if said is None else None)
        if held is not None:
            return call, held
        left = self._left(account)
        word = await self._decided(call, left)
        of_call = {"adk_fluent.decision": word, "gen_ai.agent.name": call.agent}
        measure("adk_fluent.budget.denied", 1, {**self._labels, **of_call})
        if word == "warn":
            LOG.warning(
                "%s of %s is exceeded: agent %s needs up to %s, and %s is left",
                *(self.name, self.limit, call.agent, amount, left),
            )
            kept = await self.ledger.reserve(account, amount, None)
            return call, cast("Reservation", kept)
        if word == "fallback":
            other = await self._instead(call, account)
            if other is not None:
                return other
        if word == "ask" and not self._is_in_tool(call):
            return self._asking.ask(call, amount, self.limit, left)
        return self._stopped(call, amount, left)

    async def _decided(self, call: ModelCall, left: Money) -> OnExceed:
        if not callable(self.on_exceed):
            return self.on_exceed
        what, form = f"the on_exceed= of {self.name}", "lambda call, left: ..."
        word = _word(await errors.said_by(call, what, form, self.on_exceed, call, left))
        if word == "fallback" and self.fallback_model is None:
            raise UsageError(
                'the function of Budget(on_exceed=...) says "fallback", and there is no model',
                help="Budget(fallback_model=...)",
            )
        return word

    def _is_in_tool(self, call: ModelCall) -> bool:
        """Whether an agent is run by a tool, which cannot wait: it has a session of its own."""
        session = getattr(requests.invocation_of(call.ctx), "session", None)
        return self._owner is None or getattr(session, "id", None) != self._owner[2]

    async def _instead(self, call: ModelCall, account: str) -> tuple[ModelCall, Reservation] | None:
        """The call of the cheaper model, if there is money for that."""
        model = self._models[0]
        if model.model == requests.requested(call):
            return None
        # ADK's cache is the other model's; and whoever asks again asks the first one
        asked = {"model": model.model, "cache_metadata": None}
        other = replace(call, model=model, request=call.request.model_copy(update=asked))
        amount = self._most(other)
        held = await self.ledger.reserve(account, amount, self.limit)
        if held is None:
            return None
        LOG.info("%s is exceeded: agent %s asks %s", self.name, call.agent, model.model)
        return other, held

    def _most(self, call: ModelCall) -> Money:
        """What a request may cost.

        Raises:
            UnknownPriceError: Nobody knows.
        """
        request, name = call.request, requests.requested(call)
        limit: int | None = getattr(request.config, "max_output_tokens", None)
        output = self.reserve_output if limit is None else limit
        output *= getattr(request.config, "candidate_count", None) or 1
        usage = Usage(prompt=estimate_tokens(request), output=output)
        cost = self._quoted(name, requests.Spent(usage, tier=requests.service_tier(request)))
        if isinstance(cost, Money):
            return cost
        if self.allows_unknown:
            return Money()
        raise errors.UnknownPriceError(
            f"{self.name} cannot be kept: {cost.reason}",
            node=call.node or call.agent,
            help=f'Budget(prices={{"{name}": {{"input": ..., "output": ...}}}}), USD per million '
            'tokens; or on_unknown="allow"',
        )

    def _stopped(self, call: ModelCall, amount: Money, left: Money) -> ModelReply:
        what = "run" if self.scope == "invocation" else self.scope
        return self._asking.stopped(
            EXHAUSTED,
            f"{self.name} of {self.limit} for this {what} is exhausted: {left} is left, and the "
            f"next call of agent {call.agent} may cost {amount}",
        )

    # --- after it ------------------------------------------------------------------------------

    def _settle(self, watched: requests.Watched) -> None:
        """Note what a request cost, and give back the rest of what was reserved for it."""
        by = cast("_Held", watched.by)
        cost = by.reservation.amount
        try:
            cost = self._cost(watched, cost)
        finally:  # also when a price book fails
            self.ledger.settle(by.reservation, cost)
        self._mirror(watched.call, by.account)

    def _cost(self, watched: requests.Watched, most: Money) -> Money:
        """What a request cost; where nobody knows, what was reserved."""
        spent = watched.spent()
        if spent is None:
            return Money()
        cost = self._quoted(watched.model, spent)
        if isinstance(cost, Money):
            return cost
        if most.usd:
            LOG.warning("%s counts all that was reserved, %s: %s", self.name, most, cost.reason)
        return most

    def _mirror(self, call: ModelCall, account: str) -> None:
        """Show what is left; the answer is there, whether that can be told or not."""
        try:
            left = self._left(account)
        except errors.LedgerError as error:
            LOG.warning("what is left of %s cannot be told: %s", self.name, error)
            return
        measure("adk_fluent.budget.remaining", float(left.usd), self._labels)
        if (told := requests.LEFT.get()) is not None:
            told.tell(account, left, call.ctx)
        if self.budget_key is not None and call.ctx is not None:
            call.ctx.state[self.budget_key] = float(left.usd)

    def _left(self, account: str) -> Money:
        gone = self.ledger.balance(account)
        return self.limit - gone.spent - gone.held

    # --- whose money ---------------------------------------------------------------------------

    def _account(self, call: ModelCall) -> str:
        owner = self._owner
        if owner is None:
            session = requests.invocation_of(call.ctx).session
            owner = (session.app_name, session.user_id, session.id, call.run)
        return self._named(owner)

    def _named(self, owner: tuple[str, str, str, str]) -> str:
        whose = (_PROCESS,) if self.scope == "process" else owner[: _SHARED[self.scope]]
        return json.dumps([self.scope, self.name, *whose])

    def __repr__(self) -> str:
        return f"Budget({str(self.limit)!r}, scope={self.scope!r}, name={self.name!r})"


def _limit(limit: Any) -> Money:
    """The limit as money.

    Raises:
        PriceError: It is no amount above 0.
    """
    what, help = "the limit of a budget", "USD above 0, such as Budget(0.05)"
    usd = number(limit.usd if isinstance(limit, Money) else limit, what, help)
    if not usd:
        raise errors.PriceError(f"{what} is above 0", found="0", help=help)
    return Money(usd)


def _word(word: Any) -> OnExceed:
    return one_of(word, _WORDS, "on_exceed")


def price_limit(max_price: Money | Decimal | float | str, **options: Any) -> Budget:
    """Return the `Budget` of a run: its model calls cost no more than that, in USD.

    Args:
        max_price: What a run may cost, in USD.
        **options: Those of `Budget`.
    """
    options.setdefault("name", "price_limit")
    return Budget(max_price, **options)


def _schema(first: str) -> dict[str, Any]:
    """The schema of the options, the first one being the limit."""
    text_or_none = {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}
    amount = {"anyOf": [{"type": "number"}, {"type": "string"}], "description": "In USD."}
    properties: dict[str, Any] = {
        first: amount,
        "scope": {"enum": list(_SCOPES), "default": "invocation"},
        "on_exceed": {"enum": list(_WORDS), "default": "stop"},
        "fallback_model": text_or_none,
        "prices": PRICES_SCHEMA,
        "reserve_output": {"type": "integer", "minimum": 0, "default": 4096},
        "on_unknown": {"enum": ["error", "allow"], "default": "error"},
        "budget_key": text_or_none,
        "name": {"type": "string", "minLength": 1, "default": "budget"},
    }
    kept = {"additionalProperties": False, "properties": properties, "required": [first]}
    return {"type": "object", **kept}


Budget.DESC = MiddlewareDesc(
    "budget", "Keeps what models cost within a limit, in USD.", Budget, _schema("limit")
)
#: `price_limit` as a middleware that can be chosen by name.
PRICE_LIMIT: Final = MiddlewareDesc(
    "price_limit",
    "Keeps what the models of a run cost within a limit, in USD.",
    price_limit,
    _schema("max_price"),
    Budget.adds_tools,
)

"""Tokens that a run, a session or a user may use, and no more."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field

from adk_fluent.errors import UsageError
from adk_fluent.middleware._budgets._ledger import Ledger, Limit, Scope, Tally, take, watched
from adk_fluent.middleware._builtin import BuiltIn, builtin, dependency
from adk_fluent.middleware._errors import BudgetExceededError
from adk_fluent.middleware._spent import tokens_of, told_spent
from adk_fluent.protocol import (
    AgentReply,
    ModelCall,
    ModelReply,
    NextModel,
    NextRun,
    RunCall,
    estimate_tokens,
)
from adk_fluent.telemetry import count

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

_MESSAGE: Final = "I have to stop here: the tokens for this task are used up."
_Tokens = Annotated[int, Field(ge=1)]


@builtin
class TokenBudgetMiddleware(BuiltIn):
    """Keeps the tokens of a run, a session or a user within a budget.

    Before a model is called, the tokens that the call will need are set aside, so that branches at
    the same time cannot spend the same ones; afterwards what the model reports counts, or the
    estimate when it reports nothing. A call that does not fit is not made. What middlewares inside
    ask models besides counts, too, when it is done.

    Attributes:
        max_tokens: Tokens in all: prompts, answers and thoughts.
        max_input_tokens: Tokens of prompts.
        max_output_tokens: Tokens of answers and thoughts.
        scope: Whose tokens are counted together: of a run (with agents in its tools, and when it
            is resumed), of a session, or of a user in an app.
        reserve_output: Tokens set aside for an answer whose request sets no limit itself.
        on_exceeded: ``"error"`` raises `BudgetExceededError`; ``"stop"`` answers with `message`
            in the model's place.
        message: What is answered in the model's place.
        state_key: Key of the state that the count is copied to, for `user` with that prefix.
        ledger: Where sessions and users are counted; share one to share their budgets.
    """

    max_tokens: _Tokens | None = None
    max_input_tokens: _Tokens | None = None
    max_output_tokens: _Tokens | None = None
    scope: Scope = "run"
    reserve_output: Annotated[int, Field(ge=0)] = 0
    on_exceeded: Literal["error", "stop"] = "error"
    message: str = _MESSAGE
    state_key: Annotated[str, Field(min_length=1)] = "adk_fluent_tokens"
    ledger: Ledger = dependency(default_factory=Ledger)
    _tally: Tally = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            UsageError: One has a value that it cannot have, or there is no limit at all.
        """
        super().__post_init__()
        if self.max_tokens is self.max_input_tokens is self.max_output_tokens is None:
            raise UsageError(
                "token_budget() is given no budget",
                help="token_budget(max_tokens=...), or max_input_tokens, or max_output_tokens",
            )
        self._tally = Tally(self.scope, self.state_key)

    def new(self) -> Self:
        """The instance for one run; sessions and users are shared with all others."""
        made = copy.copy(self)
        made._tally = Tally(self.scope, self.state_key)  # noqa: SLF001  # its own
        return made

    def begin_part(self, name: str, call: RunCall, /) -> None:
        """Find what was used before around a part; what is used is written after each call."""
        self._tally.begin_part(name, call, self.ledger)

    def refuses_live(self) -> str | None:
        """A live connection is no call that could be counted."""
        return "token_budget() counts what model calls use, and a live connection is none"

    async def wrap_run(self, call: RunCall, next: NextRun) -> AgentReply:
        """Find what was used before, and write down what is used after it."""
        self._tally.begin(call, self.ledger)
        paused = False
        try:
            reply = await next(call)
            paused = reply.paused
        finally:
            self._tally.end(call.ctx.state, paused=paused)
        return reply

    async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
        """Call the model if there are tokens for it."""
        expected = self._expected(call.request)
        hold = take(expected, self._limits())
        if isinstance(hold, Limit):
            return self._refused(call, expected, hold)
        fragments: list[Any] = []
        responses: list[Any] = []
        with told_spent() as besides:
            try:
                reply = await next(watched(call, fragments))
                responses = reply.responses
            finally:  # what failed, or was cut off, has used what it has said by then
                hold.settle(besides + Counter(tokens_of(fragments, responses, expected["input"])))
                self._tally.copy_to(call.ctx.state)
        return reply

    def _expected(self, request: Any) -> dict[str, int]:
        most: int | None = getattr(request.config, "max_output_tokens", None)
        # a model that is called says something
        return {"input": estimate_tokens(request), "output": most or self.reserve_output or 1}

    def _limits(self) -> list[Limit]:
        given = (
            (self.max_tokens, "tokens", None),
            (self.max_input_tokens, "input tokens", "input"),
            (self.max_output_tokens, "output tokens", "output"),
        )
        account = self._tally.account
        return [Limit(account, most, of, item) for most, of, item in given if most is not None]

    def _refused(self, call: ModelCall, expected: Mapping[str, int], limit: Limit) -> ModelReply:
        count(
            "adk_fluent.limit.denials",
            1,
            {"adk_fluent.limit": self.name, "adk_fluent.scope": self.scope},
        )
        if self.on_exceeded == "stop":
            from adk_fluent.middleware._budgets._stopped_adk import stopped  # noqa: PLC0415  # it is ADK's

            return stopped(self.message, self.name)
        used, held = limit.account.total(limit.item), limit.account.held(limit.item)
        needs = sum(expected.values()) if limit.item is None else expected[limit.item]
        raise BudgetExceededError(
            f"the {limit.of} of this {self.scope} are used up",
            limit=limit.most,
            used=used,
            node=call.node or call.agent,
            found=f"{used:,} of {limit.most:,} used, {held:,} set aside for calls under way, "
            f"and the next call needs about {needs:,}",
            help='a larger budget, shorter prompts, or token_budget(on_exceeded="stop")',
        )


#: `TokenBudgetMiddleware` by its short name.
token_budget = TokenBudgetMiddleware

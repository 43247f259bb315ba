"""Asking a person about a call that a budget has no money for."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.cost._requests import STOPPED, invocation_of, requested

if TYPE_CHECKING:
    from adk_fluent.extend import AnswerInPlace
    from adk_fluent.protocol import ModelCall, ModelReply, Money

#: The error code of an answer in the place of a call that a person has refused.
REFUSED: Final = "BUDGET_REFUSED"
#: State key, with a question's id behind it: that its answer was made use of.
_USED: Final = "adk_fluent_budget"


class Asking:
    """The questions of a budget in one run.

    Args:
        name: What the budget is called.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._by = f"budget:{name}"
        self._used: set[str] = set()  # branches that go on at the same time do not see state yet

    def answer(self, call: ModelCall, amount: Money) -> AnswerInPlace | None:
        """Return what was answered to the question about a call; each answer is of one call.

        Args:
            call: The call.
            amount: What it may cost; an approval of less is none.
        """
        from adk_fluent.extend import AnswerInPlace, answers_in_place  # noqa: PLC0415  # imports ADK

        kept: str | None = call.ctx.state.get(self._kept(call))
        if kept is not None and Decimal(kept) >= amount.usd:
            call.ctx.state[self._kept(call)] = None
            return AnswerInPlace(self._by, approved=True, payload={"usd": kept})
        for each in answers_in_place(call, self._by):
            key = f"{_USED}:{each.id}"
            if each.id in self._used or call.ctx.state.get(key):
                continue
            if each.approved and Decimal(each.payload["usd"]) < amount.usd:
                continue
            self._used.add(each.id)
            call.ctx.state[key] = True
            return each
        return None

    def give_back(self, call: ModelCall, answer: AnswerInPlace) -> None:
        """Keep an approval for when the run goes on: another budget has stopped the call.

        Args:
            call: The call.
            answer: What `answer` returned for it.
        """
        call.ctx.state[self._kept(call)] = answer.payload["usd"]

    def _kept(self, call: ModelCall) -> str:
        branch = getattr(invocation_of(call.ctx), "branch", None) or ""
        return f"{_USED}:{self._by}:{call.run}:{branch}:{call.agent}"

    def ask(self, call: ModelCall, amount: Money, limit: Money, left: Money) -> ModelReply:
        """Pause the run with a question in the place of a model's answer.

        Args:
            call: The call that is not made.
            amount: What it may cost.
            limit: The budget.
            left: What is left of it.
        """
        from adk_fluent.extend import ask_in_place  # noqa: PLC0415  # imports ADK

        model = requested(call)
        message = (
            f"{self._name} of {limit} has {left} left: may agent {call.agent} spend up to "
            f"{amount} on a call of {model}?"
        )
        shown: dict[str, Any] = {"usd": str(amount.usd), "left_usd": str(left.usd), "model": model}
        return self._marked(ask_in_place(call, self._by, message, shown))

    def refused(self, call: ModelCall, limit: Money) -> ModelReply:
        """Return the error that ends a run of which a call was refused."""
        from adk_fluent.extend import refuse_in_place  # noqa: PLC0415  # imports ADK

        message = f"a call of agent {call.agent} above {self._name} of {limit} was refused"
        return self._marked(refuse_in_place(REFUSED, message))

    def stopped(self, code: str, message: str) -> ModelReply:
        """Return an error in the place of a model's answer, which took no tokens.

        Args:
            code: The error's code.
            message: The error's message.
        """
        from adk_fluent.extend import fail_in_place  # noqa: PLC0415  # imports ADK

        return self._marked(fail_in_place(code, message))

    def _marked(self, reply: ModelReply) -> ModelReply:
        """Mark a reply as one in the place of a model's, which was not asked."""
        reply.asked = False
        for each in reply.responses:
            each.custom_metadata = {**(each.custom_metadata or {}), STOPPED: self._name}
        return reply

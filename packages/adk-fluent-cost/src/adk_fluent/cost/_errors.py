"""What prices, budgets and ledgers raise by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent.errors import AdkFluentError, DataFileError, RunError, UsageError
from adk_fluent.extend import must_be
from adk_fluent.protocol import Clock, ModelCall, SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable


class PriceError(UsageError):
    """A price has no meaning, or is off by orders of magnitude.

    Cause: a negative number, a kind of token that does not exist, USD per token or per thousand
    tokens where USD per million is expected.
    Fix: give USD per million tokens for each kind, as the message says.
    """

    code = "ADKF800"
    __module__ = "adk_fluent.cost"  # where it is public


class PriceFileError(PriceError, DataFileError):
    """A file of prices cannot be read, or a row of it is invalid.

    Cause: broken YAML, or a field with a value that it cannot have.
    Fix: correct the line that the message names.
    """

    code = "ADKF801"
    __module__ = "adk_fluent.cost"  # where it is public


class UnknownPriceError(RunError, LookupError):
    """A budget cannot be kept, because nobody knows the price of a model.

    Cause: a `Budget` around an agent whose model is in no price book.
    Fix: `Budget(prices={"model": {"input": ..., "output": ...}})`, or `on_unknown="allow"`.
    """

    code = "ADKF802"
    __module__ = "adk_fluent.cost"  # where it is public


class LedgerError(RunError, OSError):
    """A ledger of budgets cannot be used; no model is called and nothing is spent.

    Cause: another process holds the file for too long, or the file is no ledger.
    Fix: wait, or give the ledger another path.
    """

    code = "ADKF803"
    __module__ = "adk_fluent.cost"  # where it is public


class NoCandidateError(RunError, LookupError):
    """None of the models of a selector takes a call.

    Cause: all candidates have a condition that does not hold, or a limit below the prompt.
    Fix: give one without either, or a fallback_model.
    """

    code = "ADKF804"
    __module__ = "adk_fluent.cost"  # where it is public


class FunctionError(RunError):
    """A function that decides about a model call has failed.

    Cause: a condition of a ModelCandidate, a judge, or a function of ``Budget(on_exceed=...)``
    raised; its own error is the ``__cause__``.
    Fix: correct the function.
    """

    code = "ADKF805"
    __module__ = "adk_fluent.cost"  # where it is public


def clock_or_system(clock: Any, where: str) -> Clock:
    """Return a clock, the machine's for None.

    Raises:
        UsageError: It tells no time.
    """
    if clock is None:
        return SystemClock()
    must_be(Clock, clock, f"{where}(clock=...) takes a clock", "one with now(), monotonic()")
    return clock


async def said_by(call: ModelCall, what: str, how: str, do: Callable[..., Any], *given: Any) -> Any:
    """Return what a function of the user's says, which may be async.

    Args:
        call: The model call that it decides about.
        what: What the function is, for errors.
        how: How one is written, for errors.
        do: The function.
        *given: What it is called with.

    Raises:
        FunctionError: It raised.
    """
    from inspect import isawaitable  # noqa: PLC0415  # slow to import

    try:
        said: Any = do(*given)
        return await said if isawaitable(said) else said
    except AdkFluentError:
        raise
    except Exception as error:
        raise FunctionError(
            f"{what} of agent {call.agent} has failed",
            node=call.node or call.agent,
            found=f"{type(error).__name__}: {error}",
            help=f"correct it; it is written as {how}",
        ) from error

"""What the middlewares raise by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.errors import Details, RunError

if TYPE_CHECKING:
    from typing import Unpack


class CircuitOpenError(RunError, ConnectionError):
    """A model or tool is not called, because it has failed too often of late.

    Cause: a `circuit_breaker` that is open.
    Fix: wait `retry_after` seconds, or answer by a fallback.

    Attributes:
        retry_after: Seconds until it is tried again.
    """

    code = "ADKF500"
    #: The same again at once is refused again.
    retriable = False

    def __init__(self, what: str, *, retry_after: float, **details: Unpack[Details]) -> None:
        self.retry_after = retry_after
        super().__init__(what, **details)


class RateLimitError(RunError, TimeoutError):
    """A call would have had to wait longer than it may for its turn.

    Cause: a `rate_limiter` with a ``max_wait``, and more calls than it lets through.
    Fix: fewer calls at once, a higher limit, or a longer wait.

    Attributes:
        retry_after: Seconds until it would have been its turn.
    """

    code = "ADKF501"
    #: Waiting on top of a wait that was too long would be no limit.
    retriable = False

    def __init__(self, what: str, *, retry_after: float, **details: Unpack[Details]) -> None:
        self.retry_after = retry_after
        super().__init__(what, **details)


class BudgetExceededError(RunError):
    """A model call is not made, because the tokens for it are used up.

    Cause: a `token_budget`.
    Fix: a larger budget, shorter prompts, or `on_exceeded="stop"`.

    Attributes:
        limit: Tokens there were.
        used: Tokens used.
    """

    code = "ADKF502"

    def __init__(self, what: str, *, limit: int, used: int, **details: Unpack[Details]) -> None:
        self.limit = limit
        self.used = used
        super().__init__(what, **details)


class CallLimitError(RunError):
    """A model or tool is not called, because that was done as often as is allowed.

    Cause: a `model_call_limit` or `tool_call_limit`.
    Fix: a higher limit, or look why an agent calls so often.

    Attributes:
        limit: Calls that are allowed.
    """

    code = "ADKF503"

    def __init__(self, what: str, *, limit: int, **details: Unpack[Details]) -> None:
        self.limit = limit
        super().__init__(what, **details)


class CallTimeoutError(RunError, TimeoutError):
    """A model call, a tool call or a run took longer than it may.

    Cause: a `timeout` middleware.
    Fix: more time, or find out what is slow.

    Attributes:
        seconds: How long it may take.
    """

    code = "ADKF504"

    def __init__(self, what: str, *, seconds: float, **details: Unpack[Details]) -> None:
        self.seconds = seconds
        super().__init__(what, **details)


class PersonalDataError(RunError):
    """Personal data stood where none may be.

    Cause: a `pii_filter` with `strategy="block"`.
    Fix: leave it out, or let it be redacted.

    Attributes:
        kinds: What was found, such as ``("email",)``; never the data itself.
    """

    code = "ADKF505"

    def __init__(self, what: str, *, kinds: tuple[str, ...], **details: Unpack[Details]) -> None:
        self.kinds = kinds
        super().__init__(what, **details)


for _each in (
    *(BudgetExceededError, CallLimitError, CallTimeoutError),
    *(CircuitOpenError, PersonalDataError, RateLimitError),
):
    _each.__module__ = "adk_fluent.middleware"  # where they are public

"""The idempotency key of a step, for what it does outside of state."""

from __future__ import annotations

from adk_fluent.errors import UsageError
from adk_fluent.extend import effect_key


def idempotency_key(effect: str = "") -> str:
    """Return a key for an effect of the running step: the same each time the step is run again.

    Give it to whatever the step calls, so that a call that is repeated after a crash is recognised.
    It is ``run:segment:step``, where the step is its path, as in ``s2.l1``, and its name.

    Args:
        effect: Tells several effects of one step apart, such as ``"mail"``.

    Raises:
        UsageError: No step of a distributed run is running; `InlineEngine` makes one in tests.

    Example:
        >>> def charge(state):
        ...     payments.charge(state["amount"], key=idempotency_key())
    """
    key = effect_key()
    if key is None:
        raise UsageError(
            "idempotency_key() is called outside of a distributed run",
            help="call it in a function or tool of a pipeline that an engine runs; "
            "in tests, run it with InlineEngine()",
        )
    return f"{key}:{effect}" if effect else key

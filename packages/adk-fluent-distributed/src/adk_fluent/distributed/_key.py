"""The idempotency key of a step, for what it does outside of state."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

from adk_fluent.errors import UsageError
from adk_fluent.extend import current_step

#: The run that this task is part of, and the segment outside of every boundary.
HERE: Final[ContextVar[tuple[str, str] | None]] = ContextVar("adk_fluent_segment", default=None)


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
    here, step = HERE.get(), current_step()
    if here is None or step is None:
        raise UsageError(
            "idempotency_key() is called outside of a distributed run",
            help="call it in a function or tool of a pipeline that an engine runs; "
            "in tests, run it with InlineEngine()",
        )
    run_id, outside = here
    where = f"{step.path}/{step.node}" if step.path else step.node
    key = f"{run_id}:{step.segment or outside}:{where}"
    return f"{key}:{effect}" if effect else key

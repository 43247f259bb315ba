"""What became of a run, told from its events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from adk_fluent.protocol._attempts import kept_events

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adk_fluent.protocol._event import AgentEvent
    from adk_fluent.protocol._pending import Pending

#: What became of a run.
RunStatus = Literal["completed", "waiting", "rejected", "truncated", "failed", "escalated"]


class Outcome(NamedTuple):
    """How a run came to its end.

    Attributes:
        status: What became of it.
        reason: Why, for people; "" when it was completed; where somebody else had answered, that
            nothing was run.
        step: Name of the step where that was decided; "" when it was completed.
    """

    status: RunStatus
    reason: str = ""
    step: str = ""


def outcome(events: Sequence[AgentEvent], pending: Sequence[Pending]) -> Outcome:
    """How a run came to its end.

    Args:
        events: What happened, in order; of several runs the last one counts.
        pending: The questions that are open.
    """
    kept = kept_events(events)
    if pending:
        last = pending[-1]
        asks = next((e for e in reversed(kept) if last in e.pending), None)
        step = last.name if last.kind == "gate" or asks is None else _step(asks)
        why = "; ".join(f"{each.name or each.kind}: {each.message}" for each in pending)
        if events[-1].metadata.get("why") == "held":  # nothing was run, and it says why
            why = events[-1].content or why
        return Outcome("waiting", why, step or "")
    if events and events[-1].metadata.get("why") == "held":  # an answer that somebody else gave
        return Outcome("completed", events[-1].content or "", _step(events[-1]))
    ours = [e for e in kept if e.run_id == events[-1].run_id] if events else []
    for event in ours:
        if event.metadata.get("why") == "refused":
            why = event.content or (event.error and event.error.message) or ""
            return Outcome("rejected", why, _step(event))
    for event in reversed(ours):
        if event.error is not None:
            cut = event.error.code == _CUT or event.content
            return Outcome("truncated" if cut else "failed", str(event.error), _step(event))
    for event in reversed(ours):
        if _left_everything(event):
            why = event.content or f"{_step(event)} escalated, and there was no loop to end"
            return Outcome("escalated", why, _step(event))
    return Outcome("completed")


_CUT = "MAX_TOKENS"


def _step(event: AgentEvent) -> str:
    return event.node or event.author


def _left_everything(event: AgentEvent) -> bool:
    """Whether an agent escalated, and there was no loop that it could have ended.

    What escalates below an agent of ADK may end a loop of ADK's.
    """
    if not event.escalate or event.is_partial or event.path is None:
        return False
    return event.author == event.node and not any(
        each.startswith("l") for each in event.path.split(".")
    )

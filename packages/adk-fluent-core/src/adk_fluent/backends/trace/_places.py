"""When a step could begin: when what has to be over before it was over."""

from __future__ import annotations

from typing import Final

#: Letters of positions that are taken at the same time (see `AgentEvent.path`).
_AT_ONCE: Final = frozenset("pmw")


class Places:
    """The positions of one run, as a tree.

    Attributes:
        below: By letter and number.
        over: When the last event here or below came; None before the first.
        before: `over` of what is above, when this position was first reached one after the other.
    """

    __slots__ = ("before", "below", "over")

    def __init__(self, before: float | None = None) -> None:
        self.below: dict[str, Places] = {}
        self.over: float | None = None
        self.before = before

    def begin(self, path: str, *, whole: bool = False) -> float | None:
        """When the last step ended that a step here has waited for; None if there was none.

        Args:
            path: Position of the step.
            whole: The step is all that lies below its position, and not what follows that.
        """
        here, latest = self, None
        for position in _positions(path):
            if position not in here.below:
                at_once = position[0] in _AT_ONCE
                here.below[position] = Places(None if at_once else here.over)
            here = here.below[position]
            latest = _later(latest, here.before)
        return latest if whole else _later(latest, here.over)

    def end(self, path: str, now: float) -> None:
        """Take note that something ended here; `begin` was called before."""
        here = self
        here.over = _later(here.over, now)
        for position in _positions(path):
            here = here.below[position]
            here.over = _later(here.over, now)


def _positions(path: str) -> list[str]:
    return path.split(".") if path else []


def _later(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else max(one, other)

"""The step that is running, for code that runs inside it: functions, tools, middlewares."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from adk_fluent.flow._strand import Strand

#: A strand at its step, and the one that the flow it belongs to runs inside of.
Standing: TypeAlias = "tuple[Strand, Standing | None]"

STANDING: Final[ContextVar[Standing | None]] = ContextVar("adk_fluent_step", default=None)


class CurrentStep(NamedTuple):
    """A step that is running.

    Attributes:
        path: Its position in the pipeline, such as ``s2.l1``; the same whenever it is run again.
        node: Its name.
        segment: The nearest step with an execution boundary around it; "" outside of every one.
    """

    path: str
    node: str
    segment: str = ""


def current_step() -> CurrentStep | None:
    """Return the step that calls this; None outside of every step."""
    here = STANDING.get()
    if here is None:
        return None
    node = here[0].nodes[-1].name if here[0].nodes else ""
    paths, segment = list[str](), ""
    while here is not None:
        strand, here = here
        segment = segment or strand.part
        if strand.path:
            paths.append(strand.path)
    return CurrentStep(".".join(reversed(paths)), node, segment)

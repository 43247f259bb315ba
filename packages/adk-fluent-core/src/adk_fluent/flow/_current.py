"""The step that is running, for code that runs inside it: functions, tools, middlewares."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.flow._strand import Strand

#: A strand at its step, and the one that the flow it belongs to runs inside of.
Standing: TypeAlias = "tuple[Strand, Standing | None]"

STANDING: Final[ContextVar[Standing | None]] = ContextVar("adk_fluent_step", default=None)


class DurableRun(NamedTuple):
    """A run that an engine goes on with where a process died.

    Attributes:
        id: The run's id.
        segment: What the engine calls that which is outside of every execution boundary.
        call: The number of the call that is running: another one where somebody had a failed step
            run again, the same where a process has died.
        is_left: Whether what is cancelled now goes on in another process, so that nobody is to be
            told that it was cancelled.
    """

    id: str
    segment: str
    call: int = 0
    is_left: Callable[[], bool] = bool


#: The run that this task is part of, as its engine says; None without such an engine.
DURABLE_RUN: Final[ContextVar[DurableRun | None]] = ContextVar("adk_fluent_run", default=None)


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


def effect_key() -> str | None:
    """Return ``run:segment:step`` of the step that calls this: the same whenever it is run again.

    None outside of every step, and where no engine goes on with runs.
    """
    run, step = DURABLE_RUN.get(), current_step()
    if run is None or step is None:
        return None
    where = f"{step.path}/{step.node}" if step.path else step.node
    return f"{run.id}:{step.segment or run.segment}:{where}"

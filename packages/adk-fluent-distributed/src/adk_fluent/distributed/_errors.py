"""The errors of distributed runs; those of steps, models and sessions keep their own types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.errors import RunError, SessionStoreError, UsageError

if TYPE_CHECKING:
    from typing import Unpack

    from adk_fluent.errors import Details


class BoundaryError(UsageError):
    """A pipeline cannot be cut, or a segment cannot be hosted; nothing was run.

    Cause: a boundary inside a race or below an agent, two bounded steps of one name, a boundary
    that asks for a transport, an isolation or a number of workers that the engine has not, a codec
    whose library is not installed here, a part that no server of A2A can run, or an engine that has
    another pipeline with the same steps and names.
    Fix: move or change the boundary as the help line says.
    """

    code = "ADKF850"


class DistributedRunError(RunError):
    """A distributed run has failed, is unknown, or cannot take what it was given.

    Cause: a step of the run raised, no run has this id, another pipeline began it, or it does not
    wait for the answer.
    Fix: follow the help line. A failed run keeps its place: ``answer(run_id)`` without an answer
    runs the failed step again.

    Attributes:
        run_id: The run.
    """

    code = "ADKF851"

    def __init__(self, what: str, *, run_id: str, **details: Unpack[Details]) -> None:
        self.run_id = run_id
        super().__init__(what, **details)


class EngineError(SessionStoreError):
    """The engine cannot be used.

    Cause: its database cannot be opened or written, is no database of this engine, or holds what no
    engine has written, or this process serves another one already.
    Fix: follow the help line; runs keep their place.
    """

    code = "ADKF852"


for _kind in (BoundaryError, DistributedRunError, EngineError):
    _kind.__module__ = "adk_fluent.distributed"  # as users import it

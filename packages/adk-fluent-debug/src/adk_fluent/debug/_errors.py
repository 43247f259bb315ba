"""The errors of recording and replay; those of pipelines, models and tools keep their own types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent.errors import DataFileError, Details, RunError, UsageError

if TYPE_CHECKING:
    from typing import Unpack


class RecordingFileError(DataFileError):
    """A file of a recording cannot be read or written.

    Cause: it is missing, truncated, no recording, of a newer version, or the disk is full.
    Fix: correct what the message names, or record again.

    Attributes:
        path: The file.
        line: The line of a file of lines, counted from 1; None if unknown.
        field: The field, as ``runs[0].tape[3]``; empty if unknown.
    """

    code = "ADKF950"


class ReplayMismatchError(RunError, LookupError):
    """A run asks for something else than was recorded.

    Cause: the message, the state, an instruction or a function has changed since, or the recording
    was edited.
    Fix: look at the first difference; record again if the change is meant, or choose another
    ``on_mismatch``.

    Attributes:
        agent: The agent that asks.
        path: Where the first difference is, as ``.contents[0].parts[0].text``; empty if there is
            no more to compare with.
        recorded: What stands there in the recording.
        now: What the run has there.
    """

    code = "ADKF951"

    def __init__(
        self,
        what: str,
        *,
        agent: str,
        path: str = "",
        recorded: Any = None,
        now: Any = None,
        **details: Unpack[Details],
    ) -> None:
        self.agent = agent
        self.path = path
        self.recorded = recorded
        self.now = now
        details.setdefault("node", agent)
        details.setdefault("help", _HELP)
        super().__init__(what, **details)


_HELP: Final = "record again if the change is meant, or replay with on_mismatch='live'"


class PipelineMismatchError(UsageError):
    """A recording is of another pipeline than the one that is run.

    Cause: the pipeline was changed since, or the file is the wrong one.
    Fix: record again, or replay with ``on_mismatch="live"``, which answers with the recording
    wherever that still fits.
    """

    code = "ADKF952"


class UnusedInteractionsError(RunError, AssertionError):
    """A replay left model calls or tool calls of the recording unused.

    Cause: the run ended earlier, or took another way, than the one recorded.
    Fix: look at what was not asked for, or allow it by
    ``@pytest.mark.recording(..., allow_unused=True)``.
    """

    code = "ADKF953"


class RecordedError(RunError):
    """An error that was recorded, of a type that this process does not have.

    Cause: a model or tool raised it when the run was recorded.
    Fix: import the package of the original type before the replay, if the type matters.

    Attributes:
        type_name: Module and name of the original type.
    """

    code = "ADKF954"

    def __init__(self, what: str, *, type_name: str, **details: Unpack[Details]) -> None:
        self.type_name = type_name
        super().__init__(what, **details)


for _each in (
    *(PipelineMismatchError, RecordedError, RecordingFileError),
    *(ReplayMismatchError, UnusedInteractionsError),
):
    _each.__module__ = "adk_fluent.debug"  # where they are public

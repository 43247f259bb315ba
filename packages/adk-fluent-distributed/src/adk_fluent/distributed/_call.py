"""What crosses between processes: one call of a segment, and what came of it. All of it is JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from adk_fluent.errors import ErrorParts
from adk_fluent.protocol import Answer, Pending

if TYPE_CHECKING:
    from collections.abc import Mapping

#: How a run stands. ``running`` includes waiting in a queue for a worker.
Status = Literal["running", "waiting", "completed", "rejected", "failed", "cancelled"]
_PARTS: Final = tuple(ErrorParts.__annotations__)


@dataclass(frozen=True, slots=True)
class SegmentCall:
    """One call of a segment. The run's state and transcript are in its session.

    Attributes:
        run_id: The run; also the id of its session.
        segment: The segment to run.
        number: How many calls of the run came before this one.
        fingerprint: That of the pipeline.
        user_id: Whose run it is.
        message: What the user says, as JSON of ADK's Content.
        state: What the session's state starts with.
        answers: Answers to questions of the run, by id.
        trace: W3C trace context: ``traceparent`` and ``tracestate``; or an id for the trace that
            the run shall be.
        bytes: Names of large bytes of the message, by the number of the part that they are of.
    """

    run_id: str
    segment: str
    number: int
    fingerprint: str
    user_id: str
    message: dict[str, Any]
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    answers: dict[str, Any] = field(default_factory=dict[str, Any])
    trace: dict[str, str] = field(default_factory=dict[str, str])
    bytes: dict[str, str] = field(default_factory=dict[str, str])

    def to_dict(self) -> dict[str, Any]:
        """The call as JSON data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SegmentCall:
        """The call of JSON data.

        Raises:
            TypeError: It is none.
        """
        return cls(**data)

    def next(self, segment: str) -> SegmentCall:
        """The call of the segment that comes next."""
        return replace(self, segment=segment, number=self.number + 1, answers={})

    def given(self) -> list[Answer]:
        """The answers as core takes them."""
        return [Answer(id, value) for id, value in self.answers.items()]


@dataclass(frozen=True, slots=True)
class SegmentResult:
    """What came of the call of a segment.

    Attributes:
        status: How the run stands.
        segment: The segment that was called.
        next: The segment that comes next, if one does.
        answer: The answer so far.
        state: The session's state without ``temp:`` keys, where the run rests.
        pending: The questions it waits on, as JSON.
        error: What ended it, in the parts of `adk_fluent.errors.error_parts`.
        notes: What middlewares noted in the call that stands on no event, for `RunResult.notes`.
    """

    status: Status
    segment: str = ""
    next: str | None = None
    answer: str = ""
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    pending: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    error: dict[str, str] | None = None
    notes: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class RunStatus:
    """How a run stands.

    Attributes:
        run_id: The run.
        status: ``running``, ``waiting``, ``completed``, ``rejected``, ``failed`` or ``cancelled``.
        segment: The segment that runs, is queued, or was the last to run.
        answer: The answer; of a run that goes on or was cancelled, the one of its last rest.
        state: The session's state without ``temp:`` keys, as of its last rest.
        pending: The questions it waits on.
        error: What ended it, or was wrong with the last answer: its ``type``, ``code``,
            ``message``, ``node``, ``location`` and ``help``; what it does not say is empty.
    """

    run_id: str
    status: Status
    segment: str
    answer: str = ""
    state: Mapping[str, Any] = field(default_factory=dict[str, Any])
    pending: tuple[Pending, ...] = ()
    error: Mapping[str, str] | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens by itself: it ended, or waits for an answer."""
        return self.status != "running"

    def to_dict(self) -> dict[str, Any]:
        """The status as JSON data."""
        return asdict(self)


def status_of(
    call: Mapping[str, Any],
    result: Mapping[str, Any] | None,
    rest: Mapping[str, Any] | None = None,
) -> RunStatus:
    """The status of a run.

    Args:
        call: Its last call.
        result: What came of that; None while it goes on.
        rest: What came of the call after which the run rested last, if one did.
    """
    result, rest = result or {"status": "running"}, rest or {}
    return RunStatus(
        call["run_id"],
        result["status"],
        result.get("segment") or call["segment"],
        answer=result.get("answer") or rest.get("answer", ""),
        state=result.get("state") or rest.get("state", {}),
        pending=tuple(Pending(**each) for each in result.get("pending", ())),
        error=whole_error(result.get("error")),
    )


def whole_error(error: Mapping[str, str] | None) -> dict[str, str] | None:
    """An error with all its parts; those that nobody has said are empty."""
    return None if error is None else {**dict.fromkeys(_PARTS, ""), **error}

"""The result of one run of one case: plain data, which JSON can hold.

Nothing here knows ADK. Arguments, results and state are made plain when they are recorded.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.protocol import Usage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


class Status(StrEnum):
    """How a run of a case ended.

    Attributes:
        PASSED: Every expectation is met.
        FAILED: An expectation is not met; `CaseOutcome.reasons` says which.
        ERROR: The run raised, or a metric could not be computed.
        SKIPPED: The case says to skip it.
        XFAILED: It failed, as the case expects.
    """

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    XFAILED = "xfailed"

    @property
    def counts(self) -> bool:
        """Whether the run takes part in pass rates."""
        return self in {Status.PASSED, Status.FAILED, Status.ERROR}


class MetricStatus(StrEnum):
    """The status of one metric of a run.

    Attributes:
        PASSED: The score reaches its threshold.
        FAILED: The score misses its threshold.
        NOT_EVALUATED: There is no score; never a pass.
        INFORMATIONAL: The score decides nothing.
    """

    PASSED = "passed"
    FAILED = "failed"
    NOT_EVALUATED = "not_evaluated"
    INFORMATIONAL = "informational"


@dataclass(slots=True)
class ToolUse:
    """A tool call and its result.

    Attributes:
        name: The tool.
        args: Its arguments.
        response: What it returned; None without an answer.
        error: What it raised, as ``Type: message``; empty if nothing.
        agent: The agent that called it.
        mocked: Whether the case's mock answered.
        call_id: Identity of the call.
    """

    name: str
    args: dict[str, Any] = field(default_factory=dict[str, Any])
    response: Any = None
    error: str = ""
    agent: str = ""
    mocked: bool = False
    call_id: str = ""


@dataclass(slots=True)
class Step:
    """One step of a turn: a text, a tool call, a state write, or an error.

    Attributes:
        author: The agent or step.
        text: What it said.
        tool: The tool that it called.
        state: Keys that it wrote, and their values.
        error: An error that it reported, as ``code: message``.
        thought: Whether the text is a thought.
        inside: The agent inside a tool in whose session this happened; empty for the case's own.
    """

    author: str
    text: str = ""
    tool: ToolUse | None = None
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    error: str = ""
    thought: bool = False
    inside: str = ""


@dataclass(slots=True)
class TurnOutcome:
    """One turn of the conversation.

    Attributes:
        input: What the user said, as text; media by their type, as ``[image/png]``.
        response: The answer's text.
        steps: What happened, in order.
        duration_s: Seconds.
        tokens: Tokens of its model calls, those inside tools included.
        model_calls: Model calls, those inside tools included.
        invocation_id: ADK's id of the run.
        status: What became of the run, as `RunResult.status` says it; empty if it raised.
        ended: Why, in words; empty if it was completed.
    """

    input: str
    response: str = ""
    steps: list[Step] = field(default_factory=list[Step])
    duration_s: float = 0.0
    tokens: Usage = field(default_factory=Usage)
    model_calls: int = 0
    invocation_id: str = ""
    status: str = ""
    ended: str = ""

    @property
    def tool_uses(self) -> list[ToolUse]:
        """The tool calls in the case's own session, in order."""
        return [step.tool for step in self.steps if step.tool is not None and not step.inside]

    @property
    def all_tool_uses(self) -> list[ToolUse]:
        """The tool calls, those of agents inside tools included."""
        return [step.tool for step in self.steps if step.tool is not None]


@dataclass(slots=True)
class Finding:
    """One expectation, and what was observed.

    Attributes:
        what: What was checked, such as ``tools`` or ``state intent``.
        ok: Whether the expectation is met.
        expected: The expected value, plain.
        actual: The observed value, plain.
        reason: Why the expectation is not met; empty if it is.
        turn: The turn, counted from 1; None for the whole case.
    """

    what: str
    ok: bool
    expected: Any = None
    actual: Any = None
    reason: str = ""
    turn: int | None = None


@dataclass(slots=True)
class MetricScore:
    """One metric of one run.

    Attributes:
        name: The metric.
        status: Its status.
        score: The score; None if there is none.
        threshold: What the score must reach; None for an informational metric.
        lower_is_better: Whether the score must stay at or below the threshold.
        reason: A judge's reason, or why there is no score.
        findings: The expectations that were checked.
        turns: The score of each turn; None where a turn has none.
        unit: Unit of the score: "" for 0 to 1, ``tokens``, ``s``, ``calls`` or ``USD``.
    """

    name: str
    status: MetricStatus
    score: float | None = None
    threshold: float | None = None
    lower_is_better: bool = False
    reason: str = ""
    findings: list[Finding] = field(default_factory=list[Finding])
    turns: list[float | None] = field(default_factory=list[float | None])
    unit: str = ""

    @property
    def ok(self) -> bool:
        """Whether the metric allows a pass."""
        return self.status in {MetricStatus.PASSED, MetricStatus.INFORMATIONAL}


@dataclass(slots=True)
class CaseOutcome:
    """The result of one run of one case.

    Attributes:
        id: The case.
        run: The run, counted from 1.
        status: How it ended.
        reasons: Why it did not pass, a line each; empty if it passed.
        error: What the run raised, as ``Type: message``; None if nothing.
        input: What the user said first, as text.
        tags: The case's tags.
        metadata: The case's metadata.
        scores: The metrics, the case's own checks first.
        turns: The conversation.
        state: Session state at the end, without temporary keys.
        tokens: Tokens of the pipeline's model calls.
        cost_usd: Their cost in US dollars; None if it is not known.
        eval_tokens: Tokens of judges.
        eval_calls: Model calls of judges.
        duration_s: Seconds of all turns.
        note: Why it was skipped, or why it is expected to fail.
        stop_reason: Why a simulated conversation ended: ``stop_signal``, ``max_turns`` or
            ``script_end``; empty if it was not simulated or did not end.
        target_node: The part of the pipeline that was run; empty for all of it.
        session_id: The session it ran in.
        user_id: The session's user.
    """

    id: str
    run: int = 1
    status: Status = Status.ERROR
    reasons: list[str] = field(default_factory=list[str])
    error: str | None = None
    input: str = ""
    tags: list[str] = field(default_factory=list[str])
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    scores: list[MetricScore] = field(default_factory=list[MetricScore])
    turns: list[TurnOutcome] = field(default_factory=list[TurnOutcome])
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    tokens: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    eval_tokens: Usage = field(default_factory=Usage)
    eval_calls: int = 0
    duration_s: float = 0.0
    note: str = ""
    stop_reason: str = ""
    target_node: str = ""
    session_id: str = ""
    user_id: str = ""

    @property
    def key(self) -> tuple[str, int]:
        """The case and the run, which identify the outcome."""
        return (self.id, self.run)

    @property
    def passed(self) -> bool:
        """Whether every expectation is met."""
        return self.status is Status.PASSED

    @property
    def response(self) -> str:
        """The last answer."""
        return self.turns[-1].response if self.turns else ""

    @property
    def tool_uses(self) -> list[ToolUse]:
        """All tool calls in the case's session, in order."""
        return [use for turn in self.turns for use in turn.tool_uses]

    @property
    def findings(self) -> Iterator[Finding]:
        """Every expectation that was checked."""
        for score in self.scores:
            yield from score.findings

    def score(self, name: str) -> MetricScore | None:
        """Return the metric of this name; None if the run has no such metric."""
        return next((each for each in self.scores if each.name == name), None)


#: All that an outcome is made of.
RECORDS: Final = (CaseOutcome, Finding, MetricScore, Step, ToolUse, TurnOutcome, Usage)


@cache
def defaults_of(record: type) -> dict[str, Any]:
    """Return the fields of a dataclass and their defaults, MISSING for those without one."""
    return {
        each.name: each.default if each.default_factory is MISSING else each.default_factory()
        for each in fields(record)
    }


def changed(record: Any, always: Collection[str] = ()) -> dict[str, Any]:
    """Return the fields of a dataclass that differ from their defaults, and some in any case."""
    found: dict[str, Any] = {}
    for name, default in defaults_of(cast("type[Any]", type(record))).items():
        value = getattr(record, name)
        if type(value) is not type(default) or value != default or name in always:
            found[name] = value
    return found

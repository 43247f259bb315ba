"""What one run of one case came to: plain data, which can be written down and read again.

Nothing in here knows ADK. Values that came from outside (arguments, results, state) are made plain
when they are noted, so that every outcome is JSON.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class Status(StrEnum):
    """How a run of a case ended.

    Attributes:
        PASSED: Everything that was expected is so.
        FAILED: Something is not so; `CaseOutcome.reasons` says what.
        ERROR: It could not be told: the run raised, or a metric could not be computed.
        SKIPPED: It was not run, as the case says.
        XFAILED: It failed, as the case expects. One that passes all the same has failed.
    """

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    XFAILED = "xfailed"

    @property
    def counts(self) -> bool:
        """Whether it takes part in pass rates."""
        return self in {Status.PASSED, Status.FAILED, Status.ERROR}


class MetricStatus(StrEnum):
    """What became of one metric.

    Attributes:
        PASSED: The score reaches its threshold.
        FAILED: It does not.
        NOT_EVALUATED: There is no score; never a pass.
        INFORMATIONAL: The score is for people; nothing depends on it.
    """

    PASSED = "passed"
    FAILED = "failed"
    NOT_EVALUATED = "not_evaluated"
    INFORMATIONAL = "informational"


@dataclass(slots=True)
class ToolUse:
    """A call of a tool, and what came of it.

    Attributes:
        name: The tool.
        args: Its arguments.
        response: What it returned; None while there is no answer.
        error: What it raised, as ``Type: message``; empty if it did not.
        agent: Who called it.
        mocked: The case answered in its place.
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
    """Something that happened in a turn: a text, a call of a tool, a write to state, or an error.

    Attributes:
        author: The agent or step.
        text: What it said; empty if nothing.
        tool: The tool that it called.
        state: Keys that it wrote, and their values.
        error: An error that it reported, as ``code: message``; empty if none.
        thought: Whether the text is a thought, which is no part of an answer.
        inside: The agent inside of a tool, of whose own session this is; empty for the case's.
    """

    author: str
    text: str = ""
    tool: ToolUse | None = None
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    error: str = ""
    thought: bool = False
    inside: str = ""

    @property
    def who(self) -> str:
        """The author, as a reader is told."""
        return f"{self.author} (inside of {self.inside})" if self.inside else self.author

    @property
    def aside(self) -> bool:
        """Whether it cannot be a turn's answer."""
        return self.thought or bool(self.inside)


@dataclass(slots=True)
class Tokens:
    """Tokens of model calls.

    Attributes:
        prompt: Prompt tokens, those of tools' results included.
        cached: Part of `prompt` that came from a cache.
        output: Answer tokens.
        thoughts: Thinking tokens; no part of `output`.
    """

    prompt: int = 0
    cached: int = 0
    output: int = 0
    thoughts: int = 0

    @property
    def total(self) -> int:
        """All tokens, each counted once."""
        return self.prompt + self.output + self.thoughts

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.prompt + other.prompt,
            self.cached + other.cached,
            self.output + other.output,
            self.thoughts + other.thoughts,
        )


@dataclass(slots=True)
class TurnOutcome:
    """One turn of the conversation.

    Attributes:
        input: What the user said, as text; media by their type, as ``[image/png]``.
        response: The answer's text.
        steps: What happened between, in order.
        duration_s: Seconds.
        tokens: What its model calls took, those inside of tools included.
        model_calls: How often a model answered, inside of tools included.
        invocation_id: ADK's id of the run.
    """

    input: str
    response: str = ""
    steps: list[Step] = field(default_factory=list[Step])
    duration_s: float = 0.0
    tokens: Tokens = field(default_factory=Tokens)
    model_calls: int = 0
    invocation_id: str = ""

    @property
    def tool_uses(self) -> list[ToolUse]:
        """The calls of tools in the case's session, in the order in which they were made."""
        return [step.tool for step in self.steps if step.tool is not None and not step.inside]

    @property
    def all_tool_uses(self) -> list[ToolUse]:
        """The same with what agents inside of tools called."""
        return [step.tool for step in self.steps if step.tool is not None]


@dataclass(slots=True)
class Finding:
    """One thing that was expected, and what was there.

    Attributes:
        what: What was looked at, such as ``tools of turn 2`` or ``state intent``.
        ok: Whether it was as expected.
        expected: What was expected, plain.
        actual: What was there, plain.
        reason: Why it is not as expected; empty if it is.
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
    """One metric of one run of a case.

    Attributes:
        name: The metric.
        status: What became of it.
        score: The score; None if there is none.
        threshold: What it has to reach; None for metrics that only inform.
        lower_is_better: It has to stay at or below the threshold.
        reason: Why it is what it is: of a judge, or why there is no score.
        findings: What it looked at.
        turns: Its score in each turn, None where there is none; empty if it has none of turns.
        unit: What the score is counted in: "" for 0 to 1, else ``tokens``, ``s``, ``calls``,
            ``USD``.
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
        """Whether it does not stand in the way of a pass."""
        return self.status in {MetricStatus.PASSED, MetricStatus.INFORMATIONAL}


@dataclass(slots=True)
class CaseOutcome:
    """One run of one case.

    Attributes:
        id: The case.
        run: Which run of it, counted from 1.
        status: How it ended.
        reasons: Why it did not pass, a line each; empty if it passed.
        error: What the run raised, as ``Type: message``; None if it did not.
        input: What the user said first, as text.
        tags: The case's tags.
        metadata: The case's own data.
        scores: The metrics, in the suite's order, the case's own checks first.
        turns: The conversation.
        state: Session state at the end, without temporary keys.
        tokens: What all model calls of the pipeline took; also those whose answers were replayed.
        cost_usd: What they cost, in US dollars; None if there are no prices.
        eval_tokens: What was taken beside: by judges, by a played user, and by attempts that were
            given up because the service refused a call.
        eval_cost_usd: What that cost, in US dollars; None if there are no prices.
        duration_s: Seconds from the first message to the last answer.
        stop_reason: Why a simulated user stopped: ``stop_signal``, ``max_turns``, ``script_end``
            or ``error``; empty if no user was simulated.
        note: Why it was skipped, or why it is expected to fail; empty otherwise.
        target_node: The part of the pipeline that was run; empty for all of it.
        model: The model that stood in for the pipeline's own; empty for none.
        replayed: How many answers of models were replayed, not asked for.
        attempts: How often it was begun; more than once after the service refused it for a while.
        session_id: The session it ran in.
        user_id: Whose session that was.
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
    tokens: Tokens = field(default_factory=Tokens)
    cost_usd: float | None = None
    eval_tokens: Tokens = field(default_factory=Tokens)
    eval_cost_usd: float | None = None
    duration_s: float = 0.0
    stop_reason: str = ""
    note: str = ""
    target_node: str = ""
    model: str = ""
    replayed: int = 0
    attempts: int = 1
    session_id: str = ""
    user_id: str = ""

    @property
    def key(self) -> tuple[str, int]:
        """What identifies it: the case and the run."""
        return (self.id, self.run)

    @property
    def passed(self) -> bool:
        """Whether everything that was expected is so."""
        return self.status is Status.PASSED

    @property
    def response(self) -> str:
        """The last answer."""
        return self.turns[-1].response if self.turns else ""

    @property
    def tool_uses(self) -> list[ToolUse]:
        """All calls of tools, in order."""
        return [use for turn in self.turns for use in turn.tool_uses]

    @property
    def findings(self) -> Iterator[Finding]:
        """Everything that was looked at."""
        for score in self.scores:
            yield from score.findings

    def score(self, name: str) -> MetricScore | None:
        """The metric of this name; None if it was not asked for."""
        return next((each for each in self.scores if each.name == name), None)

"""What the page shows of one run of a case, as JSON, with long texts cut."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.eval._report._words import (
    METRIC_LETTER,
    STATUS,
    change,
    count,
    dollars,
    measured,
    plural,
    seconds,
    shown,
)

if TYPE_CHECKING:
    from adk_fluent.eval._outcome import (
        CaseOutcome,
        Finding,
        MetricScore,
        Step,
        Tokens,
        ToolUse,
        TurnOutcome,
    )

#: A text as the page gets it: whole, or its beginning and how many characters were left out.
Cut = str | list[str | int]

_HAYSTACK: Final = 400
_LINE: Final = 240


class NoRoomError(Exception):
    """The details of a case are larger than what is left of the page."""


@dataclass(slots=True)
class Details:
    """Makes what is shown once a case is opened.

    Attributes:
        limit: Characters of a text that are kept.
        room: Characters that are left for all texts; beyond them it is given up.
    """

    limit: int
    room: float = math.inf

    def of(self, outcome: CaseOutcome, before: CaseOutcome | None) -> dict[str, Any]:
        """Everything about a run, and how it compares with the baseline's.

        Args:
            outcome: The run.
            before: The same run in the baseline, if there is one.

        Raises:
            NoRoomError: It would be more than there is room for.
        """
        return {
            "reasons": [self.text(each) for each in outcome.reasons],
            "error": self.text(outcome.error or ""),
            "note": self.text(outcome.note),
            "facts": [[name, self.text(value)] for name, value in _facts(outcome) if value],
            "metadata": self.table(outcome.metadata),
            "scores": [_score(each, self) for each in outcome.scores],
            "findings": [
                self.finding(each, score.name)
                for score in outcome.scores
                for each in score.findings
            ],
            "turns": [self.turn(each) for each in outcome.turns],
            "state": self.table(outcome.state),
            "before": None if before is None else self.comparison(outcome, before),
        }

    def text(self, text: str) -> Cut:
        """A text, cut if it is long."""
        left = len(text) - self.limit
        self.room -= min(len(text), self.limit)
        if self.room < 0:
            raise NoRoomError
        return [text[: self.limit], left] if left > 0 else text

    def table(self, data: dict[str, Any]) -> list[list[Cut]]:
        """Keys and their values."""
        return [[self.text(str(key)), self.text(shown(value))] for key, value in data.items()]

    def finding(self, finding: Finding, metric: str) -> dict[str, Any]:
        made: dict[str, Any] = {
            "what": self.text(finding.what),
            "ok": finding.ok,
            "reason": self.text(finding.reason),
            "turn": finding.turn,
            "metric": metric,
        }
        expected, actual = finding.expected, finding.actual
        if isinstance(expected, str) and isinstance(actual, str):
            made["sides"] = [self.text(expected), self.text(actual)]
        elif expected is not None or actual is not None:
            made["sides"] = [self.text(shown(expected)), self.text(shown(actual))]
        return made

    def turn(self, turn: TurnOutcome) -> dict[str, Any]:
        said = any(step.text == turn.response and not step.aside for step in turn.steps)
        return {
            "facts": _joined(
                seconds(turn.duration_s),
                plural(turn.tokens.total, "token") if turn.tokens.total else "",
                plural(turn.model_calls, "model call") if turn.model_calls else "",
            ),
            "input": self.text(turn.input),
            "steps": [self.step(each) for each in turn.steps],
            "response": "" if said else self.text(turn.response),
        }

    def step(self, step: Step) -> dict[str, Any]:
        made: dict[str, Any] = {"author": self.text(step.who)}
        if step.inside:
            made["inside"] = True
        if step.text:
            made["thought" if step.thought else "text"] = self.text(step.text)
        if step.tool is not None:
            made["tool"] = self.tool(step.tool)
        if step.state:
            made["state"] = self.table(step.state)
        if step.error:
            made["error"] = self.text(step.error)
        return made

    def tool(self, use: ToolUse) -> dict[str, Any]:
        return {
            "name": self.text(use.name),
            "agent": self.text(use.agent),
            "mocked": use.mocked,
            "args": self.text(shown(use.args)),
            "response": None
            if use.response is None and use.error
            else self.text(shown(use.response)),
            "error": self.text(use.error),
        }

    def comparison(self, now: CaseOutcome, before: CaseOutcome) -> dict[str, Any]:
        """The baseline's run beside this one; its transcript only where the end is another."""
        same_end = now.status is before.status and now.response == before.response
        return {
            "run": before.run,
            "status": before.status,
            "rows": list(_rows(now, before)),
            "reasons": [self.text(each) for each in before.reasons],
            "answers": None
            if now.response == before.response
            else [self.text(now.response), self.text(before.response)],
            "turns": [] if same_end else [self.turn(each) for each in before.turns],
        }


def headline(outcome: CaseOutcome, tags: dict[str, int], metrics: dict[str, int]) -> dict[str, Any]:
    """What the list of cases and its filters need of a run.

    Args:
        outcome: The run.
        tags: Each tag's number.
        metrics: Each metric's number.
    """
    letters = ["-"] * len(metrics)
    for score in outcome.scores:
        letters[metrics[score.name]] = METRIC_LETTER[score.status]
    why = outcome.error or " · ".join(outcome.reasons[:3]) or outcome.note
    tools = " ".join(dict.fromkeys(use.name for use in outcome.tool_uses))
    return {
        "id": outcome.id,
        "run": outcome.run,
        "s": outcome.status,
        "t": [tags[each] for each in dict.fromkeys(outcome.tags)],
        "i": _line(outcome.input),
        "w": _line(why),
        "h": f"{tools[:_HAYSTACK]} {outcome.response[:_HAYSTACK]}",
        "m": "".join(letters),
        "d": _number(outcome.duration_s),
        "c": _number(outcome.cost_usd),
        "dt": seconds(outcome.duration_s),
        "ct": dollars(outcome.cost_usd) if outcome.cost_usd is not None else "",
    }


def _facts(outcome: CaseOutcome) -> list[tuple[str, str]]:
    tokens = outcome.tokens
    beside, paid = outcome.eval_tokens, outcome.eval_cost_usd
    return [
        ("Time", seconds(outcome.duration_s)),
        ("Tokens", _tokens(tokens) if tokens.total else ""),
        ("Cost", dollars(outcome.cost_usd) if outcome.cost_usd is not None else ""),
        ("Tokens for evaluating", _tokens(beside) if beside.total else ""),
        ("Cost of evaluating", dollars(paid) if paid is not None and beside.total else ""),
        ("Model", outcome.model),
        ("Part of the pipeline", outcome.target_node),
        ("Simulated user stopped", outcome.stop_reason),
        ("Answers replayed", count(outcome.replayed) if outcome.replayed else ""),
        ("Attempts", count(outcome.attempts) if outcome.attempts > 1 else ""),
        ("Session", outcome.session_id),
        ("User", outcome.user_id),
    ]


def _tokens(tokens: Tokens) -> str:
    cached = f" ({count(tokens.cached)} cached)" if tokens.cached else ""
    thoughts = f", {count(tokens.thoughts)} thinking" if tokens.thoughts else ""
    parts = f"{count(tokens.prompt)} prompt{cached}, {count(tokens.output)} output{thoughts}"
    return f"{count(tokens.total)}: {parts}"


def _score(score: MetricScore, details: Details) -> dict[str, Any]:
    share = score.score is not None and not score.unit and 0 <= score.score <= 1
    return {
        "name": details.text(score.name),
        "s": score.status,
        "score": measured(score.score, score.unit),
        "unit": score.unit if score.unit not in {"s", "USD"} else "",
        "share": score.score if share else None,
        "least": _number(score.threshold) if share else None,
        "threshold": "" if score.threshold is None else _bound(score),
        "reason": details.text(score.reason),
        "turns": [measured(each, score.unit) for each in score.turns],
    }


def _bound(score: MetricScore) -> str:
    return f"{'≤' if score.lower_is_better else '≥'} {measured(score.threshold, score.unit)}"


def _rows(now: CaseOutcome, before: CaseOutcome) -> list[list[str]]:
    """What is compared, this run's figure, the baseline's, and the difference."""
    rows = [
        ["Status", STATUS[now.status][0], STATUS[before.status][0], ""],
        _row("Time", now.duration_s, before.duration_s, "s"),
        _row("Tokens", now.tokens.total, before.tokens.total, "tokens"),
        _row("Cost", now.cost_usd, before.cost_usd, "USD"),
    ]
    names = dict.fromkeys(each.name for each in (*now.scores, *before.scores))
    for name in names:
        ours, theirs = now.score(name), before.score(name)
        unit = (ours or theirs or before.scores[0]).unit
        rows.append(_row(name, ours and ours.score, theirs and theirs.score, unit))
    return rows


def _row(name: str, now: float | None, before: float | None, unit: str) -> list[str]:
    return [name, measured(now, unit), measured(before, unit), change(now, before, unit)]


def _line(text: str) -> str:
    return " ".join(text[: _LINE * 2].split())[:_LINE]


def _joined(*parts: str) -> str:
    return " · ".join(part for part in parts if part)


def _number(value: float | None) -> float | None:
    """The figure; None where JSON has none, as for infinity."""
    return value if value is not None and abs(value) < float("inf") else None

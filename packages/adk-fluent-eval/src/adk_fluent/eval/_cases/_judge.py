"""Metrics of the user's own."""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, SupportsFloat, cast

from adk_fluent._words import describe
from adk_fluent.errors import nearest_name
from adk_fluent.eval._checks._checks import judged
from adk_fluent.eval._checks._same import told
from adk_fluent.eval._errors import EvalError
from adk_fluent.eval._outcome import MetricScore, MetricStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.eval._checks._observed import Observed

#: What a judge may ask for, by the name of its parameter.
_GIVEN: Final[dict[str, Callable[[Observed], Any]]] = {
    "actual_response": lambda seen: seen.turns[-1].response if seen.turns else "",
    "responses": lambda seen: [turn.response for turn in seen.turns],
    "reference": lambda seen: seen.expected[-1].reference_response if seen.expected else None,
    "tool_trajectory": lambda seen: [use.name for turn in seen.turns for use in turn.tool_uses],
    "tool_calls": lambda seen: [use for turn in seen.turns for use in turn.tool_uses],
    "state": lambda seen: dict(seen.state),
    "case": lambda seen: seen.case,
    "turns": lambda seen: [*seen.turns],
    "events": lambda seen: [event for turn in seen.events for event in turn],
    "invocations": lambda seen: [*seen.invocations],
    "expected": lambda seen: seen.expected_invocations,
    "stop_reason": lambda seen: seen.stop_reason,
}


@dataclass(frozen=True, slots=True)
class FluentJudge:
    """A metric of your own: a function that scores a run.

    The function takes any of these by the names of its parameters: ``actual_response`` (the last
    answer), ``responses``, ``reference``, ``tool_trajectory`` (names of tools), ``tool_calls``
    (`ToolUse`s), ``state``, ``case``, ``turns`` (`TurnOutcome`s), ``events`` and ``invocations``
    (ADK's), ``expected`` (ADK's invocations as expected), ``stop_reason``. It returns a score, a
    bool, a score and a reason, or ADK's ``EvaluationResult``; it may be async. One that raises has
    given no score.

    Attributes:
        name: The metric's name in reports.
        fn: The function.
        threshold: What the score has to reach.
        lower_is_better: The score has to stay at or below the threshold.
    """

    name: str
    fn: Callable[..., Any]
    threshold: float = 0.5
    lower_is_better: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:  # pyright: ignore[reportUnnecessaryIsInstance]  # of anything
            raise EvalError("a judge has no name", found=describe(self.name))
        if not callable(self.fn):
            raise EvalError(
                f"judge {self.name!r} is no function",
                found=describe(self.fn),
                help="give fn= a function that returns a score",
            )
        threshold: Any = self.threshold
        is_number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
        if not is_number or not math.isfinite(threshold):
            raise EvalError(
                f"the threshold of judge {self.name!r} is no number", found=describe(threshold)
            )
        self._wanted()

    def _wanted(self) -> list[str]:
        """The names of what the function takes.

        Raises:
            EvalError: It asks for something that there is not.
        """
        try:
            parameters = inspect.signature(self.fn).parameters.values()
        except (TypeError, ValueError):
            raise EvalError(
                f"nobody can tell what judge {self.name!r} takes",
                found=describe(self.fn),
                help="write it as a function of your own: lambda actual_response: ...",
            ) from None
        wanted: list[str] = []
        for each in parameters:
            if each.kind is each.VAR_KEYWORD:
                return list(_GIVEN)
            if each.name in _GIVEN and each.kind is not each.POSITIONAL_ONLY:
                wanted.append(each.name)
            elif each.default is each.empty and each.kind is not each.VAR_POSITIONAL:
                near = nearest_name(each.name, _GIVEN)
                raise EvalError(
                    f"judge {self.name!r} asks for {each.name!r}, which there is not",
                    help=f"did you mean {near!r}?" if near else f"there are {', '.join(_GIVEN)}",
                )
        return wanted

    async def score(self, seen: Observed) -> MetricScore:
        """The score of a run; one that cannot be told has the reason."""
        try:
            given: Any = self.fn(**{name: _GIVEN[name](seen) for name in self._wanted()})
            if inspect.isawaitable(given):
                given = await given
            score, reason, turns = _read(given)
        except Exception as error:  # noqa: BLE001  # it is the user's function: anything may happen
            return MetricScore(
                self.name,
                MetricStatus.NOT_EVALUATED,
                threshold=self.threshold,
                lower_is_better=self.lower_is_better,
                reason=f"the judge raised {told(error)}",
            )
        return judged(
            self.name,
            score,
            self.threshold,
            lower_is_better=self.lower_is_better,
            reason=reason or ("the judge gave no score" if score is None else ""),
            turns=turns,
        )


def check_judge(given: object) -> None:
    """Look whether something is a judge.

    Raises:
        EvalError: It is none; a function, perhaps.
    """
    if isinstance(given, FluentJudge):
        return
    own = str(getattr(given, "__name__", "")) if inspect.isroutine(given) else ""
    name, function = (own, own) if own.isidentifier() else ("name", "the_function")
    raise EvalError(
        "custom_judges= takes FluentJudges",
        found=describe(given),
        help=f'write FluentJudge("{name}", {function})',
    )


def _read(given: Any) -> tuple[float | None, str, list[float | None]]:
    """A score, its reason and the scores of turns.

    Raises:
        TypeError: It is none.
    """
    if hasattr(given, "overall_score"):  # ADK's EvaluationResult
        turns = [_finite(each.score) for each in given.per_invocation_results or ()]
        rubrics = getattr(given, "overall_rubric_scores", None) or ()  # google-adk 1.25 has none
        said = [each.rationale for each in rubrics if each.rationale]
        return given.overall_score, "; ".join(said), turns
    reason = ""
    if isinstance(given, tuple) and len(cast("tuple[Any, ...]", given)) == 2:
        given, reason = cast("tuple[Any, Any]", given)
    if given is None:
        return None, str(reason or ""), []
    if not isinstance(given, SupportsFloat):
        what = f"a judge returns a number, a bool, or one with a reason, not {describe(given)}"
        raise TypeError(what)
    if given is False:
        reason = reason or "the judge says no; it may return (False, why)"
    return float(given), str(reason or ""), []


def _finite(score: float | None) -> float | None:
    return score if score is not None and math.isfinite(score) else None

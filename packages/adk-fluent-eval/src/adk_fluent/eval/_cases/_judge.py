"""Metrics of the user's own."""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, SupportsFloat, cast

from adk_fluent.eval import _arguments as check
from adk_fluent.eval._checks._checks import scored
from adk_fluent.eval._errors import EvalError
from adk_fluent.extend import describe, error_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from google.adk.models import BaseLlm

    from adk_fluent.eval._checks._checks import Observation
    from adk_fluent.eval._outcome import MetricScore

#: Parameter of a judge to what it is given.
_ARGUMENTS: Final[dict[str, Callable[[Observation], Any]]] = {
    "actual_response": lambda seen: seen.turns[-1].response if seen.turns else "",
    "responses": lambda seen: [turn.response for turn in seen.turns],
    "reference": lambda seen: seen.expected[-1].reference_response,
    "tool_trajectory": lambda seen: [use.name for turn in seen.turns for use in turn.tool_uses],
    "tool_calls": lambda seen: [use for turn in seen.turns for use in turn.tool_uses],
    "state": lambda seen: dict(seen.state),
    "case": lambda seen: seen.case,
    "turns": lambda seen: [*seen.turns],
    "events": lambda seen: [event for turn in seen.events for event in turn],
    "invocations": lambda seen: [*seen.invocations],
}
_ASK: Final = "ask"


@dataclass(frozen=True, slots=True)
class FluentJudge:
    """A metric of your own: a function that scores a run.

    The function takes any of these parameters: ``actual_response`` (the last answer),
    ``responses``, ``reference``, ``tool_trajectory`` (names of tools), ``tool_calls`` (`ToolUse`),
    ``state``, ``case``, ``turns`` (`TurnOutcome`), ``events`` and ``invocations`` (ADK's). With
    `model` it may also take ``ask``, an async function that sends a prompt to the model and returns
    its text. It returns a score, a bool, or ``(score, reason)``, and may be async. A judge that
    raises gives no score, and the run does not pass.

    ::

        async def polite(actual_response, ask):
            return float(await ask(f"Rate the politeness from 0 to 1: {actual_response}"))

        FluentJudge("polite", polite, threshold=0.8, model="gemini-2.5-flash")

    Attributes:
        name: The metric's name in reports.
        fn: The function.
        threshold: What the score must reach.
        lower_is_better: Whether the score must stay at or below the threshold.
        model: The model that ``ask`` calls, by name or as a BaseLlm.
    """

    name: str
    fn: Callable[..., Any]
    threshold: float = 0.5
    lower_is_better: bool = False
    model: str | BaseLlm | None = None

    def __post_init__(self) -> None:
        name: Any = self.name
        check.require(isinstance(name, str) and name, "FluentJudge(name=) must be a name", name)
        check.require(callable(self.fn), f"fn= of judge {name!r} must be a function", self.fn)
        valid = check.is_number(self.threshold)
        check.require(valid, f"threshold= of judge {name!r} must be a number", self.threshold)
        self._parameters()

    def _parameters(self) -> list[str]:
        """The names of the function's parameters."""
        known = (*_ARGUMENTS, *((_ASK,) if self.model is not None else ()))
        names: list[str] = []
        for each in inspect.signature(self.fn).parameters.values():
            if each.kind is each.VAR_KEYWORD:
                return list(known)
            if each.name in known and each.kind is not each.POSITIONAL_ONLY:
                names.append(each.name)
            elif each.default is each.empty and each.kind is not each.VAR_POSITIONAL:
                help = check.did_you_mean(each.name, known, check.one_of(known))
                if each.name == _ASK:
                    help = "give the judge a model: FluentJudge(..., model=...)"
                raise EvalError(
                    f"judge {self.name!r} takes the unknown parameter {each.name!r}", help=help
                )
        return names

    async def score(
        self, seen: Observation, ask: Callable[[str], Awaitable[str]] | None = None
    ) -> MetricScore:
        """Score a run; a judge that raises gives a score of None with the reason."""
        given = {
            name: ask if name == _ASK else _ARGUMENTS[name](seen) for name in self._parameters()
        }
        try:
            made: Any = self.fn(**given)
            if inspect.isawaitable(made):
                made = await made
            score, reason = _read(made)
        except Exception as error:  # noqa: BLE001  # user code
            score, reason = None, f"the judge raised {error_line(error)}"
        if score is None:
            reason = reason or "the judge gave no score"
        lower = self.lower_is_better
        return scored(self.name, score, self.threshold, lower_is_better=lower, reason=reason)


def _read(made: Any) -> tuple[float | None, str]:
    """The score and reason that a judge returned."""
    reason = ""
    if isinstance(made, tuple) and len(cast("tuple[Any, ...]", made)) == 2:
        made, reason = cast("tuple[Any, Any]", made)
    if made is None:
        return None, str(reason or "")
    if not isinstance(made, SupportsFloat):
        what = f"a judge returns a number, a bool, or (score, reason), not {describe(made)}"
        raise TypeError(what)
    score = float(made)
    if not math.isfinite(score):
        return None, f"the score is {score}"
    return score, str(reason or ("the judge returned False" if made is False else ""))

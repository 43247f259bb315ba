"""What is assumed of a pipeline's traffic, or was measured of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from math import inf
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.cost._report import KEY, REMOTE, cost_of, late_records
from adk_fluent.errors import UsageError, nearest_name
from adk_fluent.extend import describe, must_be, must_be_number
from adk_fluent.protocol import RunResult

if TYPE_CHECKING:
    from adk_fluent.cost._report import CostRecord
    from adk_fluent.protocol import AgentEvent

_PLAIN: Final = (int, float)
_SHARES: Final = ("branch_probabilities", "escalation_rate", "failure_rate")
#: What is one number, and what has one for each name.
_ONE: Final = ("invocations_per_day", "failure_rate", "tool_tokens")
_NAMED: Final = ("branch_probabilities", "measured_calls")
#: What goes by the names of some steps alone.
_NAMES: Final = {
    "branch_probabilities": "branch of a route",
    "loop_iterations": "loop",
    "map_items": "map",
}
#: Numbers that hold for all steps, or for each of some names.
Numbers = float | Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class TrafficAssumptions:
    """What one run is like, and how many there are.

    Where a number may differ from step to step, a mapping gives it by the names of steps.

    Attributes:
        invocations_per_day: Runs.
        avg_input_tokens: Prompt tokens of a model call: instruction, tools and the user's message,
            without what earlier steps said.
        avg_output_tokens: Answer tokens of a model call, thoughts included.
        branch_probabilities: Share of the runs of a route that take a branch, by the name of the
            branch's step; of agents that may be handed over to, the share of their parent's runs.
            Branches that are not named share the rest alike; that none is taken, where that may
            be, and that an agent hands over to nobody, have the same share as one of them.
        loop_iterations: Iterations of loops; None is the middle of one and the most of those that
            may end early. One number for all is cut to what each loop can do; by name, what it
            cannot do is refused: none where it asks after each iteration, and too many.
        map_items: Items of `map_over`.
        failure_rate: Share of the attempts of a fallback that fail.
        escalation_rate: Share of the answers that the judge of an adaptive selector rejects.
        tool_rounds: Model calls of an agent with tools, in addition to its first one.
        tool_tokens: Tokens of what a tool returns.
        measured_calls: Model calls of an agent in a run, where that was measured.
        all_measured: Agents that are not in `measured_calls`, and that a run may do without, were
            not called.
        context_growth: What earlier steps said is in the prompts of later ones, as their history
            says; it is not to be added to what was measured.
    """

    invocations_per_day: float = 1
    avg_input_tokens: Numbers = 500
    avg_output_tokens: Numbers = 200
    branch_probabilities: Mapping[str, float] = field(default_factory=dict[str, float])
    loop_iterations: Numbers | None = None
    map_items: Numbers = 5
    failure_rate: float = 0.0
    escalation_rate: Numbers = 0.2
    tool_rounds: Numbers = 1
    tool_tokens: float = 100
    measured_calls: Mapping[str, float] = field(default_factory=dict[str, float])
    all_measured: bool = False
    context_growth: bool = True

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            UsageError: One is negative, or no number, or a share is more than 1; or there is one
                for each name where one holds for all, or the other way round.
        """
        for each in fields(self):
            value: Any = getattr(self, each.name)
            if isinstance(each.default, bool):
                must_be(bool, value, f"TrafficAssumptions({each.name}=...) takes True or False")
                continue
            if each.name == "loop_iterations" and value is None:
                continue
            by_name = isinstance(value, Mapping)
            if each.name in (_ONE if by_name else _NAMED):
                takes = "a number" if by_name else "numbers by the names of steps"
                what = f"TrafficAssumptions({each.name}=...) takes {takes}"
                raise UsageError(what, found=describe(value))
            numbers = cast("Mapping[str, Any]", value) if by_name else {"": value}
            for name, number in numbers.items():
                _check(each.name, name, number, most=1.0 if each.name in _SHARES else inf)

    def of(self, field: str, name: str, otherwise: float | None = None) -> float:
        """Return the number that holds for a step.

        Args:
            field: Which number.
            name: The step.
            otherwise: What holds where nothing is said; None is the default of the field.
        """
        value: Any = getattr(self, field)
        if type(value) in _PLAIN:  # a mapping is slow to know
            return value
        found = None if value is None else value.get(name)
        if found is not None:
            return float(found)
        return getattr(TrafficAssumptions, field) if otherwise is None else otherwise

    def check_names(self, steps: Iterable[str], kinds: Mapping[str, Iterable[str]]) -> None:
        """Refuse numbers for steps that a pipeline does not have, or that no such number is of.

        Args:
            steps: All steps.
            kinds: Those of which a field may give numbers, where these are not all.

        Raises:
            UsageError: There is one; what was measured may also be of agents that nobody sees.
        """
        for each in fields(self):
            value: Any = getattr(self, each.name)
            if not isinstance(value, Mapping):
                continue
            names = set(kinds.get(each.name, steps))
            for name in cast("Mapping[str, float]", value):
                if name in names or name in self.measured_calls:
                    continue
                near = nearest_name(name, names)
                known = ", ".join(sorted(names)) or "none here"
                what = _NAMES.get(each.name, "step")
                raise UsageError(
                    f"TrafficAssumptions({each.name}=...): there is no {what} {name!r}",
                    help=f"did you mean {near!r}?" if near else f"there are: {known}",
                )

    @classmethod
    def from_results(
        cls, results: Iterable[RunResult], *, invocations_per_day: float = 1
    ) -> TrafficAssumptions:
        """Return what runs were like: calls, prompts and answers of each agent, on average.

        Args:
            results: What ``run`` returned, best with `cost_attribution` around the runs.
            invocations_per_day: Runs.

        Raises:
            UsageError: There are none, or they are no results.
        """
        what = "TrafficAssumptions.from_results takes results of runs"
        help = "TrafficAssumptions.from_results([await pipeline.run(...)])"
        must_be(Iterable, results, what, help)
        calls, prompts, answers = (Counter[str]() for _ in range(3))
        told: dict[object, dict[object, AgentEvent]] = {}
        records: list[CostRecord] = []
        for result in results:  # of a run that waited, each part has one; that of an engine has all
            must_be(RunResult, result, what, help)
            run = told.setdefault((result and result[-1].run_id) or object(), {})
            known = len(run)
            run.update((event.id or object(), event) for event in result)
            records += late_records(result) if len(run) > known else ()  # it is told once
        attributed = bool(records)
        for events in told.values():
            records += cost_of(events.values()).records
            attributed |= any(KEY in each.custom_metadata for each in events.values())
        for each in records:
            if each.model == REMOTE:
                continue
            calls[each.agent] += 1
            prompts[each.agent] += each.usage.prompt + each.usage.tool
            answers[each.agent] += each.usage.output + each.usage.thoughts
        if not calls:
            what = "TrafficAssumptions.from_results needs results with model calls"
            raise UsageError(what, found=f"{len(told)} results without any")
        return cls(
            invocations_per_day=invocations_per_day,
            avg_input_tokens={name: prompts[name] / n for name, n in calls.items()},
            avg_output_tokens={name: answers[name] / n for name, n in calls.items()},
            measured_calls={name: n / len(told) for name, n in calls.items()},
            # events alone do not tell of agents in tools
            all_measured=attributed,
            context_growth=False,
        )


def _check(field: str, name: Any, number: Any, *, most: float) -> None:
    must_be(str, name, f"TrafficAssumptions({field}=...) goes by the names of steps")
    where = f"TrafficAssumptions({field}=...)" + (f" for {name!r}" if name else "")
    takes = "a number of 0 or more" if most == inf else "a share from 0 to 1"
    must_be_number(number, f"{where} takes {takes}", most=most)

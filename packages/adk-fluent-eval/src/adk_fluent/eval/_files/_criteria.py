"""ADK's configuration of metrics: ``test_config.json``, both ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent._words import describe
from adk_fluent.eval._cases._case import Rubric, ToolCall
from adk_fluent.eval._files._criteria_judges import (
    Judge,
    either,
    one_judge,
    read_judge,
    warn_of_criterion,
    warn_of_custom,
)
from adk_fluent.eval._files._suite_data import threshold
from adk_fluent.eval._metrics import JUDGE_SAMPLES, METRICS, PrebuiltMetrics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._files._content import SuiteData
    from adk_fluent.eval._files._place import At
    from adk_fluent.eval._files._read import Reader

_TRAJECTORY: Final = PrebuiltMetrics.TOOL_TRAJECTORY_AVG_SCORE

#: ADK's ways to compare trajectories, the strictest first.
_MATCHES: Final = {"exact": "EXACT", "in_order": "IN_ORDER", "any_order": "ANY_ORDER"}

#: The rubrics that a metric looks at, by ADK's name of their type.
RUBRIC_TYPES: Final = {
    PrebuiltMetrics.RUBRIC_BASED_FINAL_RESPONSE_QUALITY_V1: "FINAL_RESPONSE_QUALITY",
    PrebuiltMetrics.RUBRIC_BASED_TOOL_USE_QUALITY_V1: "TOOL_USE_QUALITY",
    PrebuiltMetrics.RUBRIC_BASED_MULTI_TURN_TRAJECTORY_QUALITY_V1: "TRAJECTORY_QUALITY",
}


def config_data(data: SuiteData) -> dict[str, Any]:
    """The configuration of a suite as plain data; metrics that ADK does not know are left out.

    Calls that cases expect are compared, whether or not the suite names the metric. ADK compares
    them in one way for a whole set: the strictest that a case with calls asks for. It compares
    arguments of all calls or of none: of all where each names some, and values alone.
    """
    criteria: dict[str, Any] = {}
    own = (_TRAJECTORY,) if _TRAJECTORY not in data.metrics and any(_expecting(data)) else ()
    for name in (*own, *data.metrics):
        metric = METRICS.get(name)
        if metric is None or metric.informational:  # ADK refuses a threshold for those
            continue
        made: dict[str, Any] = {"threshold": data.thresholds.get(name, metric.threshold)}
        if name == _TRAJECTORY:
            made |= _trajectory(data)
        elif name in RUBRIC_TYPES and (rubrics := shared_rubrics(data)):
            made["rubrics"] = [
                {"rubric_id": rubric_id, "rubric_content": {"text_property": text}}
                for rubric_id, text in numbered(rubrics)
            ]
        if metric.by == "judge" and (judge := _judge_options(data)):
            made["judge_model_options"] = judge
        criteria[str(name)] = made if len(made) > 1 else made["threshold"]
    return {"criteria": criteria}


def _judge_options(data: SuiteData) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if data.judge_model is not None:
        made["judge_model"] = data.judge_model
    if data.judge_samples != JUDGE_SAMPLES:
        made["num_samples"] = data.judge_samples
    return made


def shared_rubrics(data: SuiteData) -> tuple[str | Rubric, ...]:
    """The rubrics that all cases of a suite have; none if they differ.

    google-adk 1.25 needs them in the configuration, and every ADK takes them from there.
    """
    each = {tuple(case.rubrics) for case in data.cases}
    return each.pop() if len(each) == 1 else ()


def numbered(rubrics: Sequence[str | Rubric], prefix: str = "") -> list[tuple[str, str]]:
    """Rubrics with the ids that they have in ADK's files."""
    return [
        (each.id or f"{prefix}rubric_{n}", each.text)
        if isinstance(each, Rubric)
        else (f"{prefix}rubric_{n}", each)
        for n, each in enumerate(rubrics, 1)
    ]


def _trajectory(data: SuiteData) -> dict[str, Any]:
    expecting = [case for case in _expecting(data) if any(_calls(case))]
    asked = {case.trajectory_match for case in expecting}
    strict = not asked or asked - {"in_order", "any_order"}  # ADK has no subset and no F1
    match = "exact" if strict else "in_order" if "in_order" in asked else "any_order"
    calls = [call for case in expecting for call in _calls(case)]
    return {
        "match_type": _MATCHES[match],
        "ignore_args": not calls or not all(map(_names_values, calls)),
    }


def _expecting(data: SuiteData) -> Iterator[FluentCase]:
    """The cases that expect calls where ADK compares them: users who are played have no turns."""
    for case in data.cases:
        if case.simulation is None and any(turn.trajectory is not None for turn in case.turns):
            yield case


def _calls(case: FluentCase) -> list[ToolCall]:
    return [call for turn in case.turns for call in turn.trajectory or ()]


def _names_values(call: ToolCall) -> bool:
    """Whether a call names arguments, and each by its value: ADK knows no functions."""
    return bool(call.args) and not any(map(callable, call.args.values()))


# --- reading -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Criteria:
    """What a configuration says.

    Attributes:
        metrics: Names of metrics.
        thresholds: Metric to the score that it has to reach.
        match: How trajectories are compared; None if it does not say.
        rubrics: What judges look for in all cases.
        simulator: The model that plays users; None if it does not say.
        max_turns: Turns of such a user; None if it does not say.
        ignore_args: Whether calls are compared by the names of tools alone.
        judge: Who judges; empty if it does not say, or metrics have several.
    """

    metrics: tuple[str, ...] = ()
    thresholds: dict[str, float] = field(default_factory=dict[str, float])
    match: str | None = None
    rubrics: tuple[Rubric, ...] = ()
    simulator: str | None = None
    max_turns: int | None = None
    ignore_args: bool = False
    judge: Judge = field(default_factory=Judge)


def read_config(reader: Reader, value: Any) -> Criteria:
    """What a configuration of ADK's says.

    Raises:
        EvalFileError: It is none.
    """
    config = reader.mapping((), value, "the configuration")
    criteria = reader.mapping(("criteria",), config.get("criteria") or {})
    own = reader.mapping(("custom_metrics",), either(config, "custom_metrics") or {})
    thresholds: dict[str, float] = {}
    match: str | None = None
    ignore_args = False
    rubrics: dict[str, Rubric] = {}
    judges: dict[At, Judge] = {}
    for name, each in criteria.items():
        at = ("criteria", name)
        if not isinstance(each, Mapping):
            thresholds[name] = threshold(reader, at, each)
            continue
        criterion = cast("Mapping[str, Any]", each)
        if name not in METRICS or not METRICS[name].informational:
            thresholds[name] = threshold(reader, (*at, "threshold"), criterion.get("threshold"))
        warn_of_criterion(reader, at, criterion)
        if judge := read_judge(reader, at, criterion):
            judges[at] = judge
        if name == _TRAJECTORY:
            match = _match(reader, at, criterion)
            given = either(criterion, "ignore_args")
            ignore_args = given is not None and reader.flag((*at, "ignore_args"), given)
        for rubric in _rubrics(reader, (*at, "rubrics"), criterion.get("rubrics") or []):
            rubrics.setdefault(rubric.text, rubric)
    for name in own:
        warn_of_custom(reader, name, own[name], thresholds.pop(name, None))
    return Criteria(
        tuple(criteria),
        thresholds,
        match,
        tuple(rubrics.values()),
        *_simulator(reader, config),
        ignore_args,
        one_judge(reader, judges),
    )


def _simulator(reader: Reader, config: dict[str, Any]) -> tuple[str | None, int | None]:
    at = ("user_simulator_config",)
    given = reader.mapping(at, either(config, "user_simulator_config") or {})
    model, turns = given.get("model"), either(given, "max_allowed_invocations")
    return (
        None if model is None else reader.named((*at, "model"), model),
        None if turns is None else reader.count((*at, "max_allowed_invocations"), turns),
    )


def _match(reader: Reader, at: At, criterion: Mapping[str, Any]) -> str:
    value = either(criterion, "match_type") or 0
    if isinstance(value, str):
        name = value.strip().lower().replace("-", "_").replace(" ", "_")
    elif isinstance(value, int) and 0 <= value < len(_MATCHES):
        name = list(_MATCHES)[value]
    else:
        name = ""
    if name not in _MATCHES:
        raise reader.source.error(
            (*at, "match_type"),
            "ADK knows no such match_type",
            found=repr(value) if isinstance(value, str) else describe(value),
            help=f"one of {', '.join(_MATCHES.values())}",
        )
    return name


def _rubrics(reader: Reader, at: At, value: Any) -> list[Rubric]:
    made: list[Rubric] = []
    for n, each in enumerate(reader.items(at, value)):
        rubric = reader.mapping((*at, n), each)
        inner = reader.mapping((*at, n, "rubric_content"), either(rubric, "rubric_content") or {})
        text, rubric_id = either(inner, "text_property"), either(rubric, "rubric_id") or ""
        made.append(
            Rubric(
                reader.named((*at, n, "rubric_content", "text_property"), text),
                reader.text((*at, n, "rubric_id"), rubric_id),
            )
        )
    return made

"""What files say of a whole suite."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from adk_fluent._words import describe
from adk_fluent.errors import nearest_name
from adk_fluent.eval._files._warned import warn
from adk_fluent.eval._metrics import BUDGET, JUDGE_SAMPLES, METRICS, RESPONSE, STATE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adk_fluent.eval._files._content import SuiteData
    from adk_fluent.eval._files._place import At
    from adk_fluent.eval._files._read import Reader

#: Every name that a suite may ask for without a judge of its own.
_KNOWN: Final = frozenset({*METRICS, RESPONSE, STATE, BUDGET})
SUITE_FIELDS: Final = (
    "name",
    "description",
    "app_name",
    "metrics",
    "thresholds",
    "num_runs",
    "judge_model",
    "judge_samples",
)


def suite_fields(reader: Reader, at: At, value: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a suite that a mapping has; its other keys are passed over.

    Raises:
        EvalFileError: One of them holds something that it cannot.
    """
    made: dict[str, Any] = {}
    for name in SUITE_FIELDS:
        if (each := value.get(name)) is not None:
            made[name] = _READ[name](reader, (*at, name), each)
    return made


def suite_data(data: SuiteData) -> dict[str, Any]:
    """The fields of a suite as plain data, without its cases."""
    made: dict[str, Any] = {"name": data.name}
    if data.description:
        made["description"] = data.description
    if data.app_name is not None:
        made["app_name"] = data.app_name
    if data.metrics:
        made["metrics"] = [str(name) for name in data.metrics]
    if data.thresholds:
        made["thresholds"] = {str(name): float(each) for name, each in data.thresholds.items()}
    if data.num_runs != 1:
        made["num_runs"] = data.num_runs
    if data.judge_model is not None:
        made["judge_model"] = data.judge_model
    if data.judge_samples != JUDGE_SAMPLES:
        made["judge_samples"] = data.judge_samples
    return made


def _name(reader: Reader, at: At, value: Any) -> str:
    return reader.named(at, value)


def _text(reader: Reader, at: At, value: Any) -> str:
    return reader.text(at, value)


def _metrics(reader: Reader, at: At, value: Any) -> tuple[str, ...]:
    names = reader.texts(at, value)
    for n, name in enumerate(names):
        _warn_of_near(reader, (*at, n), name)
    return tuple(names)


def _thresholds(reader: Reader, at: At, value: Any) -> dict[str, float]:
    given = reader.mapping(at, value)
    for name in given:
        _warn_of_near(reader, (*at, name), name)
    return {name: threshold(reader, (*at, name), each) for name, each in given.items()}


def _warn_of_near(reader: Reader, at: At, name: str) -> None:
    """Warn of a name that is nearly one of ADK's: a run refuses it, and cannot tell the line."""
    near = None if name in _KNOWN else nearest_name(name, METRICS)
    if near is not None:
        warn(
            reader.source,
            at,
            f"ADK has no metric {name!r}; did you mean {near!r}? A judge of your own is given as "
            "custom_judges=",
        )


def threshold(reader: Reader, at: At, value: Any) -> float:
    """A score that a metric has to reach.

    Raises:
        EvalFileError: It is no number.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise reader.source.error(
            at, f"the threshold of {at[-1]} is no number", found=describe(value)
        )
    return float(value)


def whole(reader: Reader, at: At, value: Any) -> int:
    """A whole number from 1 up.

    Raises:
        EvalFileError: It is none.
    """
    number = reader.count(at, value)
    if not number:
        raise reader.source.error(at, f"{at[-1]} is no number from 1 up", found="0")
    return number


_READ: Final = {
    "name": _name,
    "description": _text,
    "app_name": _name,
    "metrics": _metrics,
    "thresholds": _thresholds,
    "num_runs": whole,
    "judge_model": _name,
    "judge_samples": whole,
}

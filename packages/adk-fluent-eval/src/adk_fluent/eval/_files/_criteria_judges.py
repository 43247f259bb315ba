"""What a configuration of ADK's says of judges, and what of it a suite cannot take over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypedDict

from adk_fluent.eval._files._suite_data import whole
from adk_fluent.eval._files._warned import warn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adk_fluent.eval._files._place import At
    from adk_fluent.eval._files._read import Reader

#: Fields of a criterion that are read, or that the cases say better.
_READ: Final = frozenset({"threshold", "match_type", "ignore_args", "rubrics"})
_JUDGE: Final = "judge_model_options"


class Judge(TypedDict, total=False):
    """Who judges, as arguments of a suite."""

    judge_model: str
    judge_samples: int


def either(value: Mapping[str, Any], name: str) -> Any:
    """A field in either of ADK's spellings."""
    return value.get(name, value.get(_camel(name)))


def warn_of_criterion(reader: Reader, at: At, criterion: Mapping[str, Any]) -> None:
    """Warn of fields of a criterion that are not taken over.

    Raises:
        EvalFileError: What it says of the judge is no mapping.
    """
    judge = _judge_of(reader, at, criterion)
    known = {*_READ, _JUDGE}
    lost = [key for key in criterion if _is_lost(criterion, key, known)]
    lost += [
        f"{_JUDGE}.{key}" for key in judge if _is_lost(judge, key, {"judge_model", "num_samples"})
    ]
    if lost:
        warn(reader.source, at, f"{', '.join(lost)}: not taken over; there is no such option here")


def _judge_of(reader: Reader, at: At, criterion: Mapping[str, Any]) -> dict[str, Any]:
    return reader.mapping((*at, _JUDGE), either(criterion, _JUDGE) or {})


def read_judge(reader: Reader, at: At, criterion: Mapping[str, Any]) -> Judge:
    """Who judges, by what a criterion says; empty if it does not.

    Raises:
        EvalFileError: It says something that cannot be.
    """
    judge, made = _judge_of(reader, at, criterion), Judge()
    if (model := either(judge, "judge_model")) is not None:
        made["judge_model"] = reader.named((*at, _JUDGE, "judge_model"), model)
    if (samples := either(judge, "num_samples")) is not None:
        made["judge_samples"] = whole(reader, (*at, _JUDGE, "num_samples"), samples)
    return made


def one_judge(reader: Reader, judges: Mapping[At, Judge]) -> Judge:
    """The judge of all metrics; where they have several, none, and a warning of each."""
    every = list(judges.values())
    if all(each == every[0] for each in every):
        return every[0] if every else Judge()
    for at, judge in judges.items():
        arguments = ", ".join(f"{name}={value!r}" for name, value in judge.items())
        warn(
            reader.source,
            (*at, _JUDGE),
            f"metrics have several judges, and a suite has one; give it: {arguments}",
        )
    return Judge()


def warn_of_custom(reader: Reader, name: str, value: Any, threshold: float | None) -> None:
    """Warn of a metric that is a function of the user's own: files run no code.

    Raises:
        EvalFileError: It is no mapping.
    """
    at = ("custom_metrics", name)
    config = reader.mapping(at, value)
    code = reader.mapping((*at, "code_config"), either(config, "code_config") or {})
    function = str(code.get("name") or "its function")
    limit = "" if threshold is None else f", threshold={threshold:g}"
    warn(
        reader.source,
        at,
        f"files run no code, and {function} is not imported; give "
        f"custom_judges=[FluentJudge({name!r}, the_function{limit})]",
    )


def _is_lost(fields: Mapping[str, Any], key: str, known: set[str]) -> bool:
    """Whether a field says something, and is none of those in either spelling."""
    return bool(fields[key]) and key not in known and key not in {_camel(each) for each in known}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.title() for each in others)

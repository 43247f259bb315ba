"""What decides the outcomes of a run: two runs with the same may share a journal."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from adk_fluent.eval._journal._digest import Digest, Digester, digest_of_text, name_of_type
from adk_fluent.eval._running._names import name_of_model

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._cases._judge import FluentJudge
    from adk_fluent.eval._cases._simulation import UserSimulation
    from adk_fluent.eval._running._settings import Settings


@dataclass(slots=True)
class Counted:
    """What outcomes depend on beside the cases.

    Attributes:
        told: It, as JSON can hold it, without secrets.
        unsure: What of it may have changed, for nobody can tell, and for what it holds.
    """

    told: dict[str, Any]
    unsure: list[str] = field(default_factory=list[str])


def what_counts(
    settings: Settings,
    metrics: Iterable[str],
    thresholds: Mapping[str, float],
    judges: Iterable[FluentJudge],
) -> Counted:
    """What outcomes depend on beside the cases; models by their names, which are no secret."""
    digester, unsure = Digester(), list[str]()

    def told(what: str, value: Any) -> str | None:
        if value is None or issubclass(type(value), str):
            return value
        digest, kind = digester.digest(value), name_of_type(value)
        if digest.unsure:
            unsure.append(f"{what} ({', '.join(digest.unsure)})")
            return f"{kind}, which nobody can tell"  # run again, and not refused
        return f"{kind} {digest.text}"

    def plugin(value: Any) -> str:
        """A plugin by its name and its code: what it holds changes while it works."""
        name = str(getattr(value, "name", name_of_type(value)))
        digest = digester.digest(type(value))
        if digest.unsure:
            unsure.append(f"plugin {name!r} ({', '.join(digest.unsure)})")
            return f"{name}, which nobody can tell"
        return f"{name} {digest.text}"

    return Counted(
        {
            "engine": settings.engine,
            "model": name_of_model(settings.model),
            "timeout_s": settings.timeout_s,
            "prices": told("the prices", settings.prices),
            "plugins": [plugin(each) for each in settings.plugins],
            "metrics": list(metrics),
            "thresholds": dict(thresholds),
            "judges": [
                {
                    "name": each.name,
                    "threshold": each.threshold,
                    "lower_is_better": each.lower_is_better,
                    "fn": told(f"judge {each.name!r}", each.fn),
                }
                for each in judges
            ],
            "judge_model": name_of_model(settings.judge_model),
            "judge_samples": settings.judge_samples,
            "simulation": None
            if settings.simulation is None
            else _player(settings.simulation, told("the persona", settings.simulation.persona)),
        },
        unsure,
    )


def _player(played: UserSimulation, persona: str | None) -> dict[str, Any]:
    told = {each.name: getattr(played, each.name) for each in fields(played)}
    told |= {"model": name_of_model(played.model) or None, "persona": persona}
    return told


def digest_of(case: FluentCase, digester: Digester | None = None) -> Digest:
    """What a case says and expects; where it was made does not count."""
    digester = digester or Digester()
    told: list[list[str]] = []
    unsure: list[str] = []
    for each in fields(case):
        value: Any = getattr(case, each.name)
        if value is None or each.name == "location":
            continue
        digest = digester.digest(value)
        told.append([each.name, digest.text])
        if digest.unsure:
            unsure.append(f"{each.name} ({', '.join(digest.unsure)})")
    return Digest(digest_of_text(json.dumps(told)), tuple(unsure))

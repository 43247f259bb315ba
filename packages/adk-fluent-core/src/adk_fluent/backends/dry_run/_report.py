"""What a dry run found, for people and for programs."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.backends.dry_run._count import Count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from adk_fluent.contracts import ContractReport

#: Version of what `to_dict` gives.
FORMAT: Final = 1
_DEEPEST: Final = 40  # levels that are indented


@dataclass(frozen=True, slots=True)
class Step:
    """A place of the pipeline, in the order in which it could run.

    Attributes:
        depth: How many composites are around it.
        when: When it runs, in words; "" is always.
        kind: What it is: ``agent``, ``function``, ``route``, ...
        name: Its name.
        runs: How often.
    """

    depth: int
    when: str
    kind: str
    name: str
    runs: Count

    def __str__(self) -> str:
        said = self.kind if self.kind == self.name else f"{self.kind} {self.name}"
        return f"{self.when}: {said}" if self.when else said


@dataclass(frozen=True, slots=True)
class DryRun:
    """What would run. Bounds count runs that come to their end without an error.

    Attributes:
        name: The pipeline's name.
        check: What the checks found.
        steps: What could run, in order, branches one after the other.
        more_steps: How many further places are not listed.
        models: Model to how often it is called.
        model_calls: Calls of all models together.
        max_llm_calls: After so many calls ADK stops a run; None is no limit.
        remotes: Remote agent to how often it is asked.
        tools: Tool to the agents that may call it.
        reads: State key to the steps that read it.
        writes: State key to the steps that write it.
        inputs: Keys that are read and that no step writes.
        absent: Layer that is not installed to what has to be installed.
    """

    name: str
    check: ContractReport
    steps: tuple[Step, ...] = ()
    more_steps: int = 0
    models: Mapping[str, Count] = field(default_factory=dict[str, Count])
    model_calls: Count = field(default_factory=Count)
    max_llm_calls: int | None = None
    remotes: Mapping[str, Count] = field(default_factory=dict[str, Count])
    tools: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    reads: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    writes: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    inputs: tuple[str, ...] = ()
    absent: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def ok(self) -> bool:
        """Whether the checks found no error; a layer that cannot be done without is one."""
        return self.check.ok

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {
            "format": FORMAT,
            "name": self.name,
            "ok": self.ok,
            "check": self.check.to_dict(),
            "steps": [
                {
                    "depth": step.depth,
                    "when": step.when,
                    "kind": step.kind,
                    "name": step.name,
                    "runs": _bounds(step.runs),
                }
                for step in self.steps
            ],
            "more_steps": self.more_steps,
            "models": {name: _bounds(count) for name, count in self.models.items()},
            "model_calls": _bounds(self.model_calls),
            "max_llm_calls": self.max_llm_calls,
            "remotes": {name: _bounds(count) for name, count in self.remotes.items()},
            "tools": {name: list(agents) for name, agents in self.tools.items()},
            "reads": {key: list(steps) for key, steps in self.reads.items()},
            "writes": {key: list(steps) for key, steps in self.writes.items()},
            "inputs": list(self.inputs),
            "absent": dict(self.absent),
        }

    def to_json(self) -> str:
        """The report as JSON text, for programs."""
        return json.dumps(self.to_dict(), indent=2)


def _bounds(count: Count) -> dict[str, int | None]:
    return {"at_least": count.at_least, "at_most": count.at_most}


def _lines(report: DryRun) -> Iterator[str]:
    yield f"dry run of {report.name}: nothing was executed"
    yield from _section("steps", _steps(report))
    yield from _section("model calls", [*_counts(report.models), *_total(report)])
    yield from _section("remote calls", _counts(report.remotes))
    yield from _section("tools", (f"{tool}: {', '.join(a)}" for tool, a in report.tools.items()))
    yield from _section("state", _keys(report))
    yield from _section("unknown", (f"{each.node}: {each.why}" for each in report.check.opaque))
    yield from _section("missing", report.absent.values())
    yield ""
    yield str(report.check)


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    found = list(lines)
    if found:
        yield ""
        yield title
        yield from (f"  {line}" for line in found)


def _steps(report: DryRun) -> Iterator[str]:
    rows = [("  " * min(s.depth, _DEEPEST) + str(s), str(s.runs)) for s in report.steps]
    wide = max((len(said) for said, _ in rows), default=0)
    yield from (f"{said:<{wide}}  {runs}" for said, runs in rows)
    if report.more_steps:
        yield f"... {report.more_steps} more"


def _counts(counts: Mapping[str, Count]) -> Iterator[str]:
    wide = max((len(name) for name in counts), default=0)
    yield from (f"{name:<{wide}}  {count}" for name, count in counts.items())


def _total(report: DryRun) -> Iterator[str]:
    calls, limit = report.model_calls, report.max_llm_calls
    if not report.models:
        return
    if limit is None or (calls.at_most is not None and calls.at_most <= limit):
        yield f"in all: {calls}"
    elif calls.at_least <= limit:
        yield f"in all: {calls}; max_llm_calls ends a run after {limit}"
    else:
        yield f"in all: {calls}, which max_llm_calls={limit} does not allow"


def _keys(report: DryRun) -> Iterator[str]:
    for key, steps in report.writes.items():
        yield f"{key}: written by {', '.join(steps)}"
    for key in report.inputs:
        yield f"{key}: read by {', '.join(report.reads[key])}, written by no step"

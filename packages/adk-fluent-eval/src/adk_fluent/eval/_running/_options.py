"""Options of a run, and the cases they select."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

from adk_fluent.eval import _arguments as check
from adk_fluent.eval._errors import EvalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from google.adk.artifacts import BaseArtifactService
    from google.adk.memory import BaseMemoryService
    from google.adk.models import BaseLlm
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.sessions import BaseSessionService

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._outcome import CaseOutcome
    from adk_fluent.eval._report._report import FluentEvalReport
    from adk_fluent.eval._running._kept import ResponseCache
    from adk_fluent.protocol import PriceBook

Engine = Literal["auto", "light", "local"]


@dataclass(frozen=True, slots=True)
class Progress:
    """A finished run of a case: its outcome, the number of finished runs, and of all runs."""

    outcome: CaseOutcome
    done: int
    total: int


class RunOptions(TypedDict, total=False):
    """Keyword arguments of everything that runs a suite.

    Attributes:
        engine: ``light``, our own implementation of ADK's eval service; ``local``, ADK's
            LocalEvalService, which needs google-adk's extra; ``auto`` is ``light``.
        parallelism: Runs at the same time, at most; 10 by default. While a service answers that
            there are too many calls, there are fewer, and refused runs are repeated after a pause.
        session_service: ADK's; None gives each run its own in memory.
        artifact_service: ADK's; None gives each run its own in memory.
        memory_service: ADK's; None gives each run its own in memory.
        plugins: Plugins of ADK, after those of the pipeline.
        filter_tags: Run the cases with any of these tags.
        case_ids: Run the cases with these ids.
        progress: Called after each run of a case, with ``outcome``, ``done`` and ``total``.
        fail_fast: Start nothing more after a run that did not pass.
        num_runs: Runs of each case; None is the suite's.
        prices: Prices of tokens: a price book, or what adk-fluent-cost takes, such as
            ``{"model": {"input": 0.30, "output": 2.50}}``; None uses an installed price book.
        timeout_s: Seconds after which a run is cancelled, unless its case says otherwise.
        baseline: A report that the gate compares with.
        shard: ``(2, 5)`` runs the second of five parts of the selected cases.
        model: Answers in place of every model of the pipeline, by name or as a BaseLlm.
        cache: Answers of models that are recorded and replayed; a folder is a `ResponseCache`.
        journal: A file with the finished runs. A run with the same journal takes them over, unless
            they ended in an error or what they depend on changed.
    """

    engine: Engine
    parallelism: int
    session_service: BaseSessionService | None
    artifact_service: BaseArtifactService | None
    memory_service: BaseMemoryService | None
    plugins: Sequence[BasePlugin]
    filter_tags: Iterable[str] | None
    case_ids: Iterable[str] | None
    progress: Callable[[Progress], None] | None
    fail_fast: bool
    num_runs: int | None
    prices: PriceBook | Mapping[str, Any] | str | PathLike[str] | None
    timeout_s: float | None
    baseline: FluentEvalReport | None
    shard: tuple[int, int] | None
    model: str | BaseLlm | None
    cache: ResponseCache | str | PathLike[str] | None
    journal: str | PathLike[str] | None


def check_options(options: RunOptions) -> RunOptions:
    """Check the options of a run, and return them with lists for iterables."""
    known, engines = RunOptions.__annotations__, get_args(Engine)
    check.check_known(options, known, "a run has no option", "options")
    engine = options.get("engine", "auto")
    check.require(engine in engines, f"unknown engine {engine!r}", help=check.one_of(engines))
    check.positive("parallelism", options.get("parallelism", 10))
    if (shard := options.get("shard")) is not None:
        help = "such as (1, 4)"
        check.require(_is_shard(shard), f"shard= must be (part, parts), not {shard!r}", help=help)
    if (runs := options.get("num_runs")) is not None:
        check.positive("num_runs", runs)
    seconds = options.get("timeout_s")
    valid = seconds is None or (check.is_number(seconds) and seconds > 0)
    check.require(valid, "timeout_s= must be above 0", seconds)
    for name, method, what in (
        ("session_service", "create_session", "a session service of ADK"),
        ("artifact_service", "save_artifact", "an artifact service of ADK"),
        ("memory_service", "search_memory", "a memory service of ADK"),
        ("prices", "price", "rows by model, a file of them, or a price book"),
        ("baseline", "compare", "a report, such as FluentEvalReport.load(path)"),
        ("progress", "__call__", "a function that is not async"),
    ):
        value: Any = options.get(name)
        invalid = isinstance(value, type) or inspect.iscoroutinefunction(value)
        fits = not invalid and callable(getattr(value, method, None))
        are_read = name == "prices" and isinstance(value, Mapping | str | PathLike)
        valid = fits or are_read or value is None
        check.require(valid, f"{name}= must be {what}", options.get(name))
    checked = options.copy()
    for name in ("filter_tags", "case_ids", "plugins"):
        if (given := options.get(name)) is not None:
            checked[name] = check.listed(name, given)
    return checked


def _is_shard(given: Any) -> bool:
    match given:
        case [part, parts]:
            return check.is_whole(part, 1) and check.is_whole(parts, part)
        case _:
            return False


def select(suite: str, cases: Sequence[FluentCase], options: RunOptions) -> list[FluentCase]:
    """Return the cases that the options select; an unknown tag or id, or no case, is an error."""
    check.require(cases, f"suite {suite!r} has no cases", help="an empty suite cannot pass")
    tags, ids = options.get("filter_tags"), options.get("case_ids")
    known = {tag for case in cases for tag in case.tags}
    check.check_known(tags or (), known, f"suite {suite!r} has no tag", "tags")
    check.check_known(
        ids or (), {case.name for case in cases}, f"suite {suite!r} has no case", "cases"
    )
    selected = [case for case in cases if tags is None or not set(tags).isdisjoint(case.tags)]
    selected = [case for case in selected if ids is None or case.name in ids]
    part, parts = options.get("shard") or (1, 1)
    if not selected[part - 1 :: parts]:
        what = f"no case of suite {suite!r} is selected"
        found = f"shard {part} of {parts}, of {len(selected)} cases" if selected else None
        raise EvalError(what, found=found)
    return selected[part - 1 :: parts]

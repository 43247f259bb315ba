"""Options of a run, and the cases they select."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, get_args

from adk_fluent.extend import describe
from adk_fluent.errors import nearest_name
from adk_fluent.eval._errors import EvalError
from adk_fluent.eval._gate import is_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from google.adk.artifacts import BaseArtifactService
    from google.adk.memory import BaseMemoryService
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.sessions import BaseSessionService

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._outcome import CaseOutcome
    from adk_fluent.eval._report._report import FluentEvalReport
    from adk_fluent.protocol import PriceBook

Engine = Literal["auto", "light"]


@dataclass(frozen=True, slots=True)
class Progress:
    """A finished run of a case, as `RunOptions.progress` gets it.

    Attributes:
        outcome: The outcome.
        done: Finished runs.
        total: All runs.
    """

    outcome: CaseOutcome
    done: int
    total: int


class RunOptions(TypedDict, total=False):
    """Keyword arguments of everything that runs a suite.

    Attributes:
        engine: ``light``, our own implementation of ADK's eval service; ``auto`` is ``light``.
        parallelism: Runs at the same time, at most; 10 by default.
        session_service: ADK's; None gives each run its own in memory.
        artifact_service: ADK's; None gives each run its own in memory.
        memory_service: ADK's; None gives each run its own in memory.
        plugins: Plugins of ADK, after those of the pipeline.
        filter_tags: Run the cases with any of these tags.
        case_ids: Run the cases with these ids.
        progress: Called after each run of a case.
        fail_fast: Start nothing more after a run that did not pass.
        num_runs: Runs of each case; None is the suite's.
        prices: Prices of tokens; None uses an installed price book.
        timeout_s: Seconds after which a run is cancelled, unless its case says otherwise.
        baseline: A report that the gate compares with.
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
    prices: PriceBook | None
    timeout_s: float | None
    baseline: FluentEvalReport | None


def check_options(options: RunOptions) -> RunOptions:
    """Check the options of a run, and return them with lists for iterables.

    Raises:
        EvalError: One is unknown or invalid.
    """
    for name in options:
        if name not in RunOptions.__annotations__:
            near = nearest_name(name, RunOptions.__annotations__)
            raise EvalError(
                f"a run has no option {name!r}", help=f"did you mean {near!r}?" if near else None
            )
    engine = options.get("engine", "auto")
    if engine not in get_args(Engine):
        local = "ADK's LocalEvalService is not supported yet" if engine == "local" else None
        raise EvalError(f"unknown engine {engine!r}", found=local, help='use engine="light"')
    positive("parallelism", options.get("parallelism", 10))
    if (runs := options.get("num_runs")) is not None:
        positive("num_runs", runs)
    if not isinstance(options.get("fail_fast", False), bool):
        raise EvalError(
            "fail_fast= must be True or False", found=describe(options.get("fail_fast"))
        )
    seconds = options.get("timeout_s")
    if seconds is not None and not (is_number(seconds) and seconds > 0):
        raise EvalError("timeout_s= must be above 0", found=describe(seconds))
    for name, (what, is_valid) in _OBJECTS.items():
        value = options.get(name)
        if value is not None and not is_valid(value):
            raise EvalError(f"{name}= must be {what}", found=describe(value))
    checked = options.copy()
    for name in ("filter_tags", "case_ids", "plugins"):
        if (value := options.get(name)) is not None:
            checked[name] = listed(name, value)
    return checked


def _has(*methods: str) -> Callable[[Any], bool]:
    """A check for objects with these methods, subclasses of ADK's base class or not."""
    return lambda value: (
        not isinstance(value, type)
        and all(callable(getattr(value, method, None)) for method in methods)
    )


def _is_report(value: Any) -> bool:
    from adk_fluent.eval._report._report import FluentEvalReport  # noqa: PLC0415  # rarely needed

    return isinstance(value, FluentEvalReport)


_OBJECTS: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = {
    "session_service": ("a session service of ADK", _has("create_session", "get_session")),
    "artifact_service": ("an artifact service of ADK", _has("save_artifact", "load_artifact")),
    "memory_service": (
        "a memory service of ADK",
        _has("add_session_to_memory", "search_memory"),
    ),
    "progress": (
        "a function that is not async",
        lambda value: callable(value) and not inspect.iscoroutinefunction(value),
    ),
    "prices": ("a price book: an object with price(model, usage, at)", _has("price")),
    "baseline": ("a report, such as FluentEvalReport.load(path)", _is_report),
}


def listed(name: str, value: Any) -> list[Any]:
    """Return an argument that takes several values as a list.

    Raises:
        EvalError: It is a single text, or not iterable.
    """
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise EvalError(f"{name}= must be a list", found=describe(value), help=f"{name}=[...]")
    return list(value)


def positive(name: str, value: object) -> int:
    """Return a whole number from 1 up.

    Raises:
        EvalError: It is none.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise EvalError(f"{name}= must be a whole number >= 1", found=describe(value))
    return value


def select(suite: str, cases: Sequence[FluentCase], options: RunOptions) -> list[FluentCase]:
    """Return the cases that the options select.

    Raises:
        EvalError: There are none, or a tag or id is unknown.
    """
    if not cases:
        raise EvalError(f"suite {suite!r} has no cases", help="an empty suite cannot pass")
    for option, word, known in (
        ("filter_tags", "tag", {tag for case in cases for tag in case.tags}),
        ("case_ids", "case", {case.name for case in cases}),
    ):
        for name in options.get(option) or ():
            if name not in known:
                near = nearest_name(str(name), known)
                raise EvalError(
                    f"suite {suite!r} has no {word} {name!r}",
                    found=", ".join(sorted(known)[:20]) or "none",
                    help=f"did you mean {near!r}?" if near else None,
                )
    if (tags := options.get("filter_tags")) is not None:
        cases = [case for case in cases if not set(tags).isdisjoint(case.tags)]
    if (ids := options.get("case_ids")) is not None:
        cases = [case for case in cases if case.name in set(ids)]
    if not cases:
        raise EvalError(f"no case of suite {suite!r} is selected")
    return list(cases)

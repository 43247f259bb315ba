"""What a suite can be told for one run, and which cases that leaves."""

from __future__ import annotations

import inspect
import os
from typing import TYPE_CHECKING, Any, Final, TypedDict, get_args

from adk_fluent._words import describe
from adk_fluent.errors import nearest_name
from adk_fluent.eval._errors import EvalError
from adk_fluent.eval._running._settings import EngineName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from os import PathLike

    from google.adk.artifacts import BaseArtifactService
    from google.adk.evaluation.eval_set_results_manager import EvalSetResultsManager
    from google.adk.memory import BaseMemoryService
    from google.adk.models import BaseLlm
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.sessions import BaseSessionService

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._report._report import FluentEvalReport
    from adk_fluent.eval._running._cache import ResponseCache
    from adk_fluent.eval._running._progress import OnProgress
    from adk_fluent.protocol import PriceBook


class RunOptions(TypedDict, total=False):
    """How a suite is run; keyword arguments of everything that runs one.

    Attributes:
        engine: ``light`` runs cases itself; ``local`` has ADK's own service run them, which needs
            the extra ``adk``; ``auto`` is ``light``.
        parallelism: Cases at the same time, at most; fewer while a service refuses calls.
        session_service: Where sessions are kept; None gives each run of a case one in memory.
        artifact_service: Where artifacts are kept; None as for sessions.
        memory_service: What agents remember; None as for sessions.
        plugins: Plugins of ADK's, after those of the pipeline.
        filter_tags: Run the cases that have one of these tags.
        case_ids: Run the cases of these ids.
        progress: Is told of each run of a case when it is done.
        cache: Where answers of models are kept and replayed from.
        fail_fast: Begin nothing more once a case did not pass.
        results_manager: ADK's, which is given the results.
        journal: A file in which each run of a case is noted when it is done; with the same file an
            interrupted run goes on where it was.
        shard: Run one part of the cases, as ``(1, 4)`` for the first of four; of fewer cases than
            shards the last are empty.
        num_runs: How often each case is run; None is the suite's.
        model: What answers in the place of all models of the pipeline.
        prices: What tokens cost; None takes a price book that is installed.
        timeout_s: Seconds after which a run of a case is ended, where the case does not say.
        baseline: A report that the gate holds this one against.
    """

    engine: EngineName
    parallelism: int
    session_service: BaseSessionService | None
    artifact_service: BaseArtifactService | None
    memory_service: BaseMemoryService | None
    plugins: Sequence[BasePlugin]
    filter_tags: Iterable[str] | None
    case_ids: Iterable[str] | None
    progress: OnProgress | None
    cache: ResponseCache | None
    fail_fast: bool
    results_manager: EvalSetResultsManager | None
    journal: str | PathLike[str] | None
    shard: tuple[int, int] | None
    num_runs: int | None
    model: str | BaseLlm | None
    prices: PriceBook | None
    timeout_s: float | None
    baseline: FluentEvalReport | None


def check_options(options: RunOptions) -> RunOptions:
    """Look at the options of a run, before anything of it costs something.

    Returns:
        The options, with lists where something was given that can be gone through only once.

    Raises:
        EvalError: One is unknown, or has no meaning.
    """
    for name in options:
        if name not in RunOptions.__annotations__:
            near = nearest_name(name, RunOptions.__annotations__)
            raise EvalError(
                f"a run has no option {name!r}", help=f"did you mean {near!r}?" if near else None
            )
    engine = options.get("engine", "auto")
    if engine not in get_args(EngineName):
        raise EvalError(
            f"there is no engine {engine!r}", help=f"one of {', '.join(get_args(EngineName))}"
        )
    whole("parallelism", options.get("parallelism", 10))
    if (runs := options.get("num_runs")) is not None:
        whole("num_runs", runs)
    if not isinstance(options.get("fail_fast", False), bool):
        raise EvalError(
            "fail_fast= is neither True nor False", found=describe(options.get("fail_fast"))
        )
    _check_given(options)
    shard = options.get("shard")
    if shard is not None and not (
        isinstance(shard, tuple)  # pyright: ignore[reportUnnecessaryIsInstance]  # of anything
        and len(shard) == 2
        and all(isinstance(each, int) for each in shard)  # pyright: ignore[reportUnnecessaryIsInstance]  # of anything
        and 1 <= shard[0] <= shard[1]
    ):
        raise EvalError("shard= is no part of a whole", found=repr(shard), help="such as (1, 4)")
    checked = options.copy()
    for name in ("filter_tags", "case_ids"):
        if (texts := options.get(name)) is not None:
            checked[name] = _texts(name, texts)
    if (plugins := options.get("plugins")) is not None:
        checked["plugins"] = _listed("plugins", plugins)
    return checked


def _has(*methods: str) -> Callable[[Any], bool]:
    """Whether something does what ADK asks of it: also one that is no subclass of ADK's class."""

    def fits(value: Any) -> bool:
        return not isinstance(value, type) and all(
            callable(getattr(value, method, None)) for method in methods
        )

    return fits


def _is_progress(value: Any) -> bool:
    return callable(value) and not inspect.iscoroutinefunction(value)


def _is_cache(value: Any) -> bool:
    from adk_fluent.eval._running._cache import ResponseCache  # noqa: PLC0415  # of few runs

    return isinstance(value, ResponseCache)


def _is_report(value: Any) -> bool:
    from adk_fluent.eval._report._report import FluentEvalReport  # noqa: PLC0415  # of few runs

    return isinstance(value, FluentEvalReport)


def _is_path(value: Any) -> bool:
    return isinstance(value, str | os.PathLike) and bool(str(value))  # pyright: ignore[reportUnknownArgumentType]  # of text or bytes


#: Option to what it is not if it does not fit, what fits, and what to write instead.
_GIVEN: Final[Mapping[str, tuple[str, Callable[[Any], bool], str]]] = {
    "session_service": (
        "session service",
        _has("create_session", "get_session", "append_event"),
        "give one of ADK's, such as InMemorySessionService()",
    ),
    "artifact_service": (
        "artifact service",
        _has("save_artifact", "load_artifact"),
        "give one of ADK's, such as InMemoryArtifactService()",
    ),
    "memory_service": (
        "memory service",
        _has("add_session_to_memory", "search_memory"),
        "give one of ADK's, such as InMemoryMemoryService()",
    ),
    "results_manager": (
        "manager of results",
        _has("save_eval_set_result"),
        "give one of ADK's, such as LocalEvalSetResultsManager(folder)",
    ),
    "progress": (
        "function that can be told of progress",
        _is_progress,
        "write def progress(progress): ..., without async",
    ),
    "cache": ("cache of answers", _is_cache, "write cache=ResponseCache(folder)"),
    "journal": ("path of a file", _is_path, 'such as journal="run.jsonl"'),
    "baseline": ("report", _is_report, "write baseline=FluentEvalReport.load(path)"),
}


def _check_given(options: RunOptions) -> None:
    for name, (what, fits, help) in _GIVEN.items():
        value = options.get(name)
        if value is not None and not fits(value):
            raise EvalError(f"{name}= is no {what}", found=describe(value), help=help)


def _texts(name: str, values: Any) -> tuple[str, ...]:
    if isinstance(values, str):
        raise EvalError(f"{name}= is one text, not a list of them", found=repr(values))
    texts = _listed(name, values)
    for each in texts:
        if not isinstance(each, str):
            raise EvalError(f"{name}= takes texts", found=describe(each))
    return texts


def _listed(name: str, values: Any) -> tuple[Any, ...]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise EvalError(f"{name}= takes a list", found=describe(values), help=f"{name}=[...]")
    return tuple(values)


def chosen(suite: str, cases: Sequence[FluentCase], options: RunOptions) -> list[FluentCase]:
    """The cases that are run; none where there are fewer of them than shards.

    Raises:
        EvalError: There are none, or a tag or an id is unknown.
    """
    if not cases:
        raise EvalError(
            f"suite {suite!r} has no cases", help="add some; an empty suite passes nothing"
        )
    for option, word, known in (
        ("filter_tags", "tag", {tag for case in cases for tag in case.tags}),
        ("case_ids", "case", {case.name for case in cases}),
    ):
        for wanted in options.get(option) or ():
            if wanted not in known:
                near = nearest_name(str(wanted), known)
                raise EvalError(
                    f"suite {suite!r} has no {word} {wanted!r}",
                    found=", ".join(sorted(known)[:20]) or "none",
                    help=f"did you mean {near!r}?" if near else None,
                )
    if (tags := options.get("filter_tags")) is not None:
        cases = [case for case in cases if not set(tags).isdisjoint(case.tags)]
    if (ids := options.get("case_ids")) is not None:
        cases = [case for case in cases if case.name in set(ids)]
    if not cases:
        raise EvalError(f"of suite {suite!r} no case is left to run")
    if (shard := options.get("shard")) is not None:
        cases = cases[shard[0] - 1 :: shard[1]]
    return list(cases)


def whole(name: str, value: object) -> int:
    """A number of things.

    Raises:
        EvalError: It is none.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise EvalError(f"{name}= is no number from 1 up", found=describe(value))
    return value

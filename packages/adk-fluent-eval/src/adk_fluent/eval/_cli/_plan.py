"""What a call of ``eval run`` comes down to: suites, each with a model and a baseline."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import click

from adk_fluent.errors import nearest_name
from adk_fluent.eval._cli._load import is_file_of_cases, suites_of
from adk_fluent.eval._cli._outputs import FORMS, STDOUT
from adk_fluent.eval._errors import EvalError, EvalFileError
from adk_fluent.eval._report._report import FluentEvalReport
from adk_fluent.eval._running._cache import ResponseCache
from adk_fluent.eval._running._names import journal_of, models_by_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adk_fluent.eval._running._options import RunOptions
    from adk_fluent.eval._suite import FluentEvalSuite

_CHOOSING: Final = ("tags", "cases", "shard")


@dataclass(slots=True)
class Unit:
    """One suite, run once, perhaps with a model of its own.

    Attributes:
        suite: The suite, as the options change it.
        options: How it is run.
        label: What its files are told from others by; empty if there are no others.
        model: The model that stands in; None for none.
        known: The report that it is held against; None for none.
    """

    suite: FluentEvalSuite
    options: RunOptions
    label: str = ""
    model: str | None = None
    known: FluentEvalReport | None = None

    @property
    def title(self) -> str:
        """What it is called while it runs."""
        return f"{self.suite.name} with {self.model}" if self.model else self.suite.name


def planned(target: str, options: dict[str, Any]) -> list[Unit]:
    """What is to be run: suite by suite, model by model.

    Args:
        target: What the person names.
        options: The options of the command.

    Raises:
        UsageError: Options do not go together.
        AdkFluentError: Something is not there.
    """
    _check(target, options)
    suites = _chosen(suites_of(target, options["pipeline"], options["registry"]), options)
    models = _models(options["models"])
    _check_stdout(options, several_suites=len(suites) > 1, several_models=len(models) > 1)
    cache = _cache(options)
    return [
        _unit(suite, model, options, cache, several=len(suites) > 1)
        for suite in suites
        for model in models
    ]


def _check(target: str, options: dict[str, Any]) -> None:
    if is_file_of_cases(target) and options["pipeline"] is None:
        raise click.UsageError("A file of cases needs --pipeline: what are they run against?")
    if options["baseline"] is None:
        for name, unset in (("update_baseline", False), ("max_regressions", None)):
            if options[name] is not unset:
                raise click.UsageError(f"--{name.replace('_', '-')} needs --baseline FILE.")
    if options["update_baseline"]:
        _check_update(options)
    if options["record"] and options["replay"]:
        raise click.UsageError("--record and --replay exclude each other.")
    for name in ("record", "replay"):
        if options[name] and options["cache"] is None:
            raise click.UsageError(f"--{name} needs --cache DIR.")


def _check_update(options: dict[str, Any]) -> None:
    for name in _CHOOSING:
        if options[name]:
            word = name.removesuffix("s")
            raise click.UsageError(f"--update-baseline needs the whole suite, without --{word}.")
    if len(options["models"]) > 1:
        raise click.UsageError("--update-baseline needs one --model: whose is the baseline?")
    if options["max_regressions"] is not None:
        raise click.UsageError("--update-baseline takes what got worse, with no maximum.")


def _check_stdout(options: dict[str, Any], *, several_suites: bool, several_models: bool) -> None:
    """Refuse to write several documents to standard output.

    Raises:
        UsageError: They would be.
    """
    for name in FORMS:
        of_models = several_models and name in {"html", "junit"}
        if options[name] == STDOUT and (several_suites or of_models):
            raise click.UsageError(
                f"--{name} - is for one report, and there are several; name a file, to which the "
                "names of suites and models are added."
            )


def _cache(options: dict[str, Any]) -> ResponseCache | None:
    if options["cache"] is None:
        return None
    mode = "record" if options["record"] else "replay" if options["replay"] else "auto"
    return ResponseCache(options["cache"], mode)


def _models(names: Sequence[str]) -> list[str | None]:
    return list(models_by_name(names)) if names else [None]


def _unit(
    suite: FluentEvalSuite,
    model: str | None,
    options: dict[str, Any],
    cache: ResponseCache | None,
    *,
    several: bool,
) -> Unit:
    label = suite.name if several else ""
    known = _baseline(options, label)
    made: RunOptions = {
        "engine": options["engine"],
        "parallelism": options["parallelism"],
        "filter_tags": _known_to(suite, options["tags"], "tags"),
        "case_ids": _known_to(suite, options["cases"], "cases"),
        "num_runs": options["runs"],
        "model": model,
        "cache": cache,
        "fail_fast": options["fail_fast"],
        "shard": options["shard"],
        "timeout_s": options["timeout"],
        "baseline": None if options["update_baseline"] else known,
    }
    if (journal := options["journal"]) is not None:
        for name in filter(None, (label, model if len(options["models"]) > 1 else None)):
            journal = journal_of(journal, name)
        made["journal"] = journal
    return Unit(_changed(suite, options), made, label, model, known)


def _changed(suite: FluentEvalSuite, options: dict[str, Any]) -> FluentEvalSuite:
    """The suite with what the options say of it; the one of the module stays as it is."""
    made = copy(suite)
    if options["judge_model"] is not None:
        made.judge_model = options["judge_model"]
    changes = {
        name: options[name]
        for name in ("min_pass_rate", "max_regressions")
        if options[name] is not None
    }
    made.gate = replace(suite.gate, **changes)
    return made


def baseline_path(options: dict[str, Any], label: str) -> str | None:
    """Where the baseline of a suite is; None for none."""
    path: str | None = options["baseline"]
    return path if path is None or not label else str(journal_of(path, label))


def _baseline(options: dict[str, Any], label: str) -> FluentEvalReport | None:
    path = baseline_path(options, label)
    if path is None:
        return None
    try:
        return FluentEvalReport.load(path)
    except EvalFileError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
        if options["update_baseline"]:
            return None
        raise EvalFileError(
            "there is no baseline", path=path, help="write this run to it: --update-baseline"
        ) from error


def _chosen(suites: list[FluentEvalSuite], options: dict[str, Any]) -> list[FluentEvalSuite]:
    """The suites that have something of what is chosen.

    Raises:
        EvalError: None has a tag or a case that is named.
    """
    for name, word in (("tags", "tag"), ("cases", "case")):
        wanted: Sequence[str] = options[name]
        known = {each for suite in suites for each in _names(suite, name)}
        for each in wanted:
            if each not in known:
                near = nearest_name(each, known)
                raise EvalError(
                    f"there is no {word} {each!r}",
                    found=", ".join(sorted(known)[:20]) or f"no {name}",
                    help=f"did you mean {near!r}?" if near else None,
                )
        if wanted:
            suites = [each for each in suites if not _names(each, name).isdisjoint(wanted)]
    if not suites:
        raise EvalError("no suite has cases of these ids and tags")
    return suites


def _known_to(suite: FluentEvalSuite, wanted: Iterable[str], what: str) -> list[str] | None:
    known = _names(suite, what)
    return [each for each in wanted if each in known] or None


def _names(suite: FluentEvalSuite, what: str) -> set[str]:
    if what == "cases":
        return {case.name for case in suite.cases}
    return {tag for case in suite.cases for tag in case.tags}

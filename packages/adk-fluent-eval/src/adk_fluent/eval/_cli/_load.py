"""From what a person names to suites and pipelines."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, cast

import click

from adk_fluent._words import describe
from adk_fluent.cli._attribute import attribute_of
from adk_fluent.cli._target import Target, module_of
from adk_fluent.cli._transcript import note
from adk_fluent.errors import nearest_name
from adk_fluent.eval._errors import EvalError
from adk_fluent.eval._files._metric_places import check_metrics
from adk_fluent.eval._files._warned import EvalFileWarning
from adk_fluent.eval._suite import FluentEvalSuite

if TYPE_CHECKING:
    from collections.abc import Generator

#: How a file of cases ends.
FILES: Final = (".yaml", ".yml", ".json", ".csv", ".jsonl")
_WRITE: Final = "write module:attribute or path.py:attribute of a FluentEvalSuite"


def is_file_of_cases(text: str) -> bool:
    """Whether a target names a file of cases, and not a place in Python."""
    return text.lower().endswith(FILES)


def suites_of(
    text: str,
    pipeline: str | None = None,
    registry: str | None = None,
    *,
    as_written: bool = False,
) -> list[FluentEvalSuite]:
    """The suites that a target names.

    What modules print while they are imported goes to standard error: standard output is for
    results.

    Args:
        text: ``module:attribute``, ``path.py:attribute``, or a file of cases.
        pipeline: The same for what is evaluated; None leaves suites theirs.
        registry: The same for the functions that a file of cases names; None gives it none.
        as_written: Whether metrics of a file may be such as cannot be run.

    Raises:
        TargetError: There is no such thing, or it is no suite.
        EvalFileError: The file cannot be read.
        EvalError: Two suites have one name, or a metric of a file has no meaning.
    """
    is_file = is_file_of_cases(text)
    if registry is not None and not is_file:
        raise click.UsageError("--registry is for files of cases, which name functions.")
    with told(), redirect_stdout(sys.stderr):
        suites = (
            [suite_in(text, registry=functions_of(registry))]
            if is_file
            else _suites(Target.parse(text))
        )
        if is_file and not as_written:
            check_metrics(text, suites[0])
        if pipeline is not None:
            target = Target.parse(pipeline)
            found = attribute_of(target, module_of(target))
            suites = [_with_pipeline(each, found) for each in suites]
    names = [each.name for each in suites]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise EvalError(
            f"there are two suites called {twice!r}", help="give each a name of its own"
        )
    return suites


def functions_of(registry: str | None) -> Mapping[str, Callable[..., Any]] | None:
    """The functions that ``--registry`` names, by the names that files call them by.

    Those of a module are there as ``name``, and as ``module:name``, which is how files are written.

    Raises:
        TargetError: There is no such thing, or it is neither a mapping nor a module.
    """
    if registry is None:
        return None
    target = Target.parse(registry)
    module = module_of(target)
    value: Any = module if target.attribute is None else attribute_of(target, module)
    if isinstance(value, ModuleType):
        named = {name: each for name, each in vars(value).items() if not name.startswith("_")}
        functions = {name: each for name, each in named.items() if callable(each)}
        return functions | {f"{value.__name__}:{name}": each for name, each in functions.items()}
    if not isinstance(value, Mapping):
        raise target.error(
            f"{registry} is no registry",
            'name a mapping of names to functions, such as {"is_order": is_order}, or a module',
            found=describe(value),
        )
    return cast("Mapping[str, Callable[..., Any]]", value)


@contextmanager
def told() -> Generator[None]:
    """Tell the person what files warn of, as the rest of the program tells things.

    Of a file that cannot be read, the error alone is told.
    """
    usual = warnings.showwarning
    texts: list[str] = []

    def show(message: Warning | str, category: type[Warning], *where: Any) -> None:
        if issubclass(category, EvalFileWarning):
            texts.append(str(message))
        else:
            usual(message, category, *where)

    with warnings.catch_warnings():
        warnings.simplefilter("always", EvalFileWarning)
        warnings.showwarning = show
        yield
    for text in texts:
        note(f"warning: {text}", fg="yellow")


def suite_in(
    path: str,
    map: Mapping[str, str] | None = None,
    registry: Mapping[str, Callable[..., Any]] | None = None,
) -> FluentEvalSuite:
    """The suite of a file of cases.

    Args:
        path: The file.
        map: Column to the field that it is, for tables.
        registry: Functions by the names that the file calls them by.

    Raises:
        EvalFileError: The file cannot be read.
    """
    suffix = Path(path).suffix.lower()
    if suffix in {".csv", ".jsonl"}:
        read = FluentEvalSuite.from_csv if suffix == ".csv" else FluentEvalSuite.from_jsonl
        return read(path, map=map, registry=registry)
    if map:
        raise click.UsageError("--map is for tables: .csv and .jsonl.")
    if suffix == ".json":
        return FluentEvalSuite.from_eval_set(path, registry=registry)
    if suffix in {".yaml", ".yml"}:
        return FluentEvalSuite.from_yaml(path, registry=registry)
    raise click.UsageError(f"{path} is no file of cases; those end in {', '.join(FILES)}.")


def _with_pipeline(suite: FluentEvalSuite, pipeline: Any) -> FluentEvalSuite:
    from copy import copy  # noqa: PLC0415  # of this alone

    made = copy(suite)
    made.pipeline = pipeline
    return made


def _suites(target: Target) -> list[FluentEvalSuite]:
    module = module_of(target)
    if target.attribute is None:
        return [_only(target, module)]
    value = _named(target, module)
    if _makes(value):
        value = _made(target, value)
    several = isinstance(value, list | tuple)
    suites = list(cast("list[Any]", value)) if several else [value]
    for each in suites:
        if not isinstance(each, FluentEvalSuite):
            what = "holds something that is no suite" if several else "is no suite"
            raise target.error(f"{target.text} {what}", _hint(target, module), found=describe(each))
    if not suites:
        raise target.error(f"{target.text} is empty", "name a suite, or a list of them")
    return suites


def _only(target: Target, module: ModuleType) -> FluentEvalSuite:
    """The one suite of a module; the same one under two names is one."""
    there = _there(module)
    if len({id(each) for each in there.values()}) == 1:
        return next(iter(there.values()))
    if not there:
        raise target.error(f"{target.source} has no FluentEvalSuite", _WRITE, found="none at all")
    raise target.error(
        f"{target.source} has several suites",
        f"name one, such as {target.source}:{next(iter(there))}, or a list of them",
        found=", ".join(there),
    )


def _there(module: ModuleType) -> dict[str, FluentEvalSuite]:
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, FluentEvalSuite) and not name.startswith("_")
    }


def _named(target: Target, module: ModuleType) -> Any:
    value: Any = module
    for part in (target.attribute or "").split("."):
        if not hasattr(value, part):
            near = nearest_name(part, (name for name in dir(value) if not name.startswith("_")))
            raise target.error(
                f"{target.source} has no attribute {target.attribute!r}",
                f"did you mean {near!r}?" if near else "check the name",
                found=f"suites {', '.join(_there(module)) or 'none'}",
            )
        value = getattr(value, part)
    return value


def _makes(value: Any) -> bool:
    """Whether it is a function that gives suites."""
    return callable(value) and not isinstance(value, type) and not hasattr(value, "to_ir")


def _made(target: Target, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except EvalError:
        raise  # says what, where and what to do itself
    except Exception as error:
        raise target.error(
            f"{target.text} cannot be called for a suite",
            "a function without arguments returns a suite, or a list of them",
            found=f"{type(error).__name__}: {error}",
        ) from error


def _hint(target: Target, module: ModuleType) -> str:
    there = next(iter(_there(module)), None)
    return _WRITE if there is None else f"did you mean {target.source}:{there}?"

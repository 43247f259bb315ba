"""From a target of the command line to suites."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click

from adk_fluent.cli import Target, attribute_of, module_of
from adk_fluent.eval._errors import EvalError
from adk_fluent.eval._suite import FluentEvalSuite
from adk_fluent.eval._values import error_line
from adk_fluent.extend import describe

if TYPE_CHECKING:
    from types import ModuleType

_FILES: Final = (".yaml", ".yml", ".json", ".csv", ".jsonl", ".ndjson")
pipeline_option = click.option(
    "--pipeline", metavar="TARGET", help="What is evaluated; for a file of cases."
)
registry_option = click.option(
    "--registry", metavar="TARGET", help="The functions that a file of cases names, or a module."
)


def load_suites(
    text: str, pipeline: str | None = None, registry: str | None = None
) -> list[FluentEvalSuite]:
    """Return the suites that a target names.

    Modules print to standard error while they are imported: standard output is for results.
    """
    is_file = Path(text).suffix.lower() in _FILES
    if registry is not None and not is_file:
        raise click.UsageError("--registry is for files of cases.")
    with redirect_stdout(sys.stderr):
        suites = [_from_file(text, registry)] if is_file else _from_module(Target.parse(text))
        if pipeline is not None:
            target = Target.parse(pipeline)
            found = attribute_of(target, module_of(target))
            for each in suites:
                each.pipeline = found
    names = [each.name for each in suites]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise EvalError(f"two suites are called {twice!r}", help="give each its own name")
    return suites


def _from_file(path: str, registry: str | None) -> FluentEvalSuite:
    functions: Mapping[str, Callable[..., Any]] | None = None
    if registry is not None:
        target = Target.parse(registry)
        module = module_of(target)
        value: Any = vars(module) if target.attribute is None else attribute_of(target, module)
        if not isinstance(value, Mapping):
            raise target.error(
                f"{registry} is not a registry", "name a dict or a module", found=describe(value)
            )
        found = cast("Mapping[str, Any]", value)
        functions = {name: each for name, each in found.items() if callable(each)}
        functions |= {f"{module.__name__}:{name}": each for name, each in functions.items()}
    if path.lower().endswith(".json"):
        return FluentEvalSuite.from_eval_set(path, registry=functions)
    if path.lower().endswith((".yaml", ".yml")):
        return FluentEvalSuite.from_yaml(path, registry=functions)
    return FluentEvalSuite.from_table(path, registry=functions)


def _from_module(target: Target) -> list[FluentEvalSuite]:
    module = module_of(target)
    value: Any = _only(target, module) if target.attribute is None else attribute_of(target, module)
    if callable(value) and not isinstance(value, type):
        try:
            value = value()
        except EvalError:
            raise
        except Exception as error:
            raise target.error(
                f"{target.text} cannot be called",
                "a function without arguments returns a suite, or a list of them",
                found=error_line(error),
            ) from error
    several = isinstance(value, list | tuple)
    suites: list[Any] = list(cast("list[Any]", value)) if several else [value]
    for each in suites or [None]:
        if not isinstance(each, FluentEvalSuite):
            raise target.error(
                f"{target.text} is not a FluentEvalSuite or a list of them",
                f"suites in the module: {', '.join(_suites(module)) or 'none'}",
                found=describe(each),
            )
    return suites


def _suites(module: ModuleType) -> dict[str, FluentEvalSuite]:
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, FluentEvalSuite) and not name.startswith("_")
    }


def _only(target: Target, module: ModuleType) -> FluentEvalSuite:
    found = _suites(module)
    if len({id(each) for each in found.values()}) == 1:
        return next(iter(found.values()))
    raise target.error(
        f"{target.source} has {'several suites' if found else 'no FluentEvalSuite'}",
        f"name one: {target.source}:{next(iter(found), 'suite')}",
        found=", ".join(found) or "none",
    )

"""The docstrings of the builders: their examples run, and every public method has one."""

from __future__ import annotations

import doctest
import inspect
from importlib import import_module
from pkgutil import iter_modules

import pytest

from adk_fluent import builders

MODULES = [f"{builders.__name__}.{module.name}" for module in iter_modules(builders.__path__)]


def test_examples_run() -> None:
    results = [doctest.testmod(import_module(module)) for module in MODULES]
    assert sum(result.failed for result in results) == 0
    assert sum(result.attempted for result in results) >= 6


def _is_own(name: str) -> bool:
    """Whether it is no alias of a type, whose comment is what documents it."""
    return getattr(getattr(builders, name), "__module__", "").startswith("adk_fluent")


@pytest.mark.parametrize("name", [name for name in builders.__all__ if _is_own(name)])
def test_everything_public_is_documented(name: str) -> None:
    thing = getattr(builders, name)
    assert inspect.getdoc(thing)
    if inspect.isclass(thing) and thing is not builders.RunOptions:
        undocumented = [
            attribute
            for attribute, value in inspect.getmembers(thing)
            if not attribute.startswith("_")
            and (inspect.isfunction(value) or isinstance(value, property))
            and not inspect.getdoc(value)
        ]
        assert undocumented == []

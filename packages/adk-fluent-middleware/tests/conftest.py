"""Fixtures of all tests here, and ``--without``: what shows that they find what is missing."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


def _provide(name: str) -> None:
    """Make a helper beside this file importable; importlib mode puts nothing on `sys.path`."""
    if name in sys.modules:
        return
    spec = spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)


_provide("kit")
_provide("faults")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--without",
        metavar="MODULE:CLASS",
        help="let the hooks of this middleware do nothing; its tests have to fail then",
    )


def pytest_configure(config: pytest.Config) -> None:
    target: str | None = config.getoption("--without", None)
    if target is None:
        return
    from importlib import import_module

    from adk_fluent.protocol import HOOKS, Middleware

    module, _, name = target.partition(":")
    kind: Any = getattr(import_module(module), name)
    for hook in HOOKS:
        if getattr(kind, hook) is not getattr(Middleware, hook):
            setattr(kind, hook, getattr(Middleware, hook))


@pytest.fixture
def metrics() -> Iterator[Any]:
    """What was measured in a test: ``metrics("adk_fluent.retry.attempts")`` is the sum."""
    from kit import Measured

    with Measured() as measured:
        yield measured

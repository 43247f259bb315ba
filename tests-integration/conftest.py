"""Options and helpers of the tests of several packages together."""

from __future__ import annotations

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


def _provide(name: str) -> None:
    """Make a package beside this file importable; importlib mode puts nothing on `sys.path`."""
    if name in sys.modules:
        return
    spec = spec_from_file_location(name, Path(__file__).with_name(name) / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)


_provide("typed_pipelines")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("adk-fluent")
    group.addoption(
        "--monolith",
        default=None,
        metavar="PYTHON",
        help="a Python that has adk-fluent 0.18.0: measure again what is said about it",
    )
    group.addoption(
        "--draw", action="store_true", help="draw the pictures of the documentation anew"
    )


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where there is such a place; it outlives processes that are killed, too."""
    memory = "/dev/shm"
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as made:
        yield Path(made)

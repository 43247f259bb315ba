"""Options of the tests that may look longer and further than CI does."""

from __future__ import annotations

import os
import random
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

KILLS = 20  # in CI


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
        "--flow-examples",
        type=int,
        default=None,
        metavar="N",
        help="how many random pipelines to run; other ones each time",
    )
    group.addoption(
        "--flow-every", action="store_true", help="every way to run on ADK runs all of them"
    )
    group.addoption(
        "--flow-seed", type=int, default=None, metavar="SEED", help="the ones of an earlier run"
    )
    group.addoption(
        "--typed-examples",
        type=int,
        default=None,
        metavar="N",
        help="how many proven pipelines over typed state to run; other ones each time",
    )
    group.addoption(
        "--typed-seed", type=int, default=None, metavar="SEED", help="those of an earlier run"
    )
    group.addoption(
        "--kills",
        type=int,
        default=None,
        metavar="N",
        help="how many runs to kill; other ones each time",
    )
    group.addoption(
        "--kill-seed", type=int, default=None, metavar="SEED", help="those of an earlier run"
    )
    group.addoption(
        "--monolith",
        default=None,
        metavar="PYTHON",
        help="a Python that has adk-fluent 0.18.0: measure again what is said about it",
    )
    group.addoption(
        "--draw", action="store_true", help="draw the pictures of the documentation anew"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.option.flow_seed is None:
        given = config.option.flow_examples is not None
        config.option.flow_seed = random.randrange(2**32) if given else 0
    if config.option.typed_seed is None:
        given = config.option.typed_examples is not None
        config.option.typed_seed = random.randrange(2**32) if given else 0
    if config.option.kill_seed is None:
        given = config.option.kills is not None
        config.option.kill_seed = random.randrange(2**32) if given else 0
    if config.option.kills is None:
        config.option.kills = KILLS


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    option = terminalreporter.config.option
    examples = "" if option.flow_examples is None else f"--flow-examples {option.flow_examples} "
    terminalreporter.line(f"random pipelines: {examples}--flow-seed {option.flow_seed}")
    examples = "" if option.typed_examples is None else f"--typed-examples {option.typed_examples} "
    terminalreporter.line(f"typed pipelines: {examples}--typed-seed {option.typed_seed}")
    terminalreporter.line(f"killed runs: --kills {option.kills} --kill-seed {option.kill_seed}")


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where there is such a place; it outlives processes that are killed, too."""
    memory = "/dev/shm"
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as made:
        yield Path(made)

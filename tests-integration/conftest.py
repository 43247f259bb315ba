"""Options of the tests that may look longer and further than CI does."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


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


def pytest_configure(config: pytest.Config) -> None:
    if config.option.flow_seed is None:
        given = config.option.flow_examples is not None
        config.option.flow_seed = random.randrange(2**32) if given else 0


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    option = terminalreporter.config.option
    examples = "" if option.flow_examples is None else f"--flow-examples {option.flow_examples} "
    terminalreporter.line(f"random pipelines: {examples}--flow-seed {option.flow_seed}")

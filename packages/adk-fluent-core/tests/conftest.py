"""Makes the helper modules that lie beside this file importable by tests in any folder.

Under pytest's importlib mode nothing is put on `sys.path`, so a helper is registered by name.
"""

from __future__ import annotations

import gc
import random
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def _provide(name: str) -> None:
    if name in sys.modules:
        return
    spec = spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)


_provide("ir_strategies")
_provide("broken_ir")
_provide("misuse")
_provide("effects_cases")
_provide("effects_sources")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("adk-fluent")
    group.addoption(
        "--sound-graphs",
        type=int,
        default=None,
        metavar="N",
        help="on how many random pipelines to try the analysis of state; other ones each time",
    )
    group.addoption(
        "--sound-seed", type=int, default=None, metavar="SEED", help="those of an earlier run"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("sound_seed", 0) is None:
        given = config.option.sound_graphs is not None
        config.option.sound_seed = random.randrange(2**32) if given else 0


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    graphs = terminalreporter.config.getoption("sound_graphs", None)
    if graphs is not None:
        seed = terminalreporter.config.getoption("sound_seed")
        terminalreporter.line(f"analysed pipelines: --sound-graphs {graphs} --sound-seed {seed}")


def pytest_collection_finish() -> None:
    """Keep the collector from going through all modules and tests again and again."""
    gc.collect()
    gc.freeze()

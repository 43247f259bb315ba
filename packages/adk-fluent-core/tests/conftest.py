"""Makes the helper modules that lie beside this file importable by tests in any folder.

Under pytest's importlib mode nothing is put on `sys.path`, so a helper is registered by name.
"""

from __future__ import annotations

import gc
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path


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


def pytest_collection_finish() -> None:
    """Keep the collector from going through all modules and tests again and again."""
    gc.collect()
    gc.freeze()

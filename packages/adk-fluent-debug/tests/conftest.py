"""What all tests here share: `recorded_desk`, made importable."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path


def _provide(name: str) -> None:
    """Make a helper beside this file importable; importlib mode puts nothing on `sys.path`."""
    spec = spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)


if "recorded_desk" not in sys.modules:
    _provide("recorded_desk")

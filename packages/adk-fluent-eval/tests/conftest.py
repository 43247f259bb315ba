"""What all tests here share: modules beside this file, made importable."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from hypothesis import settings

# how long an example takes says how busy the machine is
settings.register_profile("without a deadline", deadline=None)
settings.load_profile("without a deadline")


def _provide(name: str) -> None:
    """Make a helper beside this file importable; importlib mode puts nothing on `sys.path`."""
    if name in sys.modules:
        return
    spec = spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)


_provide("report_samples")
_provide("eval_programs")
_provide("eval_judges")

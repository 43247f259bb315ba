"""Makes `pictured_pipelines`, which lies above, importable under that name."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

_NAME = "pictured_pipelines"


def _provide() -> None:
    if _NAME in sys.modules:
        return
    spec = spec_from_file_location(_NAME, Path(__file__).parents[1] / f"{_NAME}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[_NAME] = module_from_spec(spec)
    spec.loader.exec_module(module)


_provide()

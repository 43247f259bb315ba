"""Makes `adk_programs`, the helper of the tests that run on ADK, importable by its name."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

if "adk_programs" not in sys.modules:
    _spec = spec_from_file_location("adk_programs", Path(__file__).with_name("adk_programs.py"))
    assert _spec is not None
    assert _spec.loader is not None
    _module = sys.modules["adk_programs"] = module_from_spec(_spec)
    _spec.loader.exec_module(_module)

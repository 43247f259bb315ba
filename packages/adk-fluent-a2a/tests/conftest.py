"""What all tests here share: its kits, made importable. Without the wheel none is run."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path


def _provide(name: str) -> None:
    """Make a helper beside this file importable; importlib mode puts nothing on `sys.path`."""
    spec = spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)


def _installed() -> bool:
    """Whether this wheel is there, which needs google-adk 2.13."""
    try:
        return bool(version("adk-fluent-a2a"))
    except PackageNotFoundError:
        return False


if not _installed():
    collect_ignore_glob = ["test_*.py"]
else:
    for each in ("remote_kit", "serve_kit", "directory_kit"):
        if each not in sys.modules:
            _provide(each)

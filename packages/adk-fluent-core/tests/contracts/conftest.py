"""Makes the packages beside this file importable by their names, and hides other layers."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from adk_fluent.contracts import _check, _checkers

if TYPE_CHECKING:
    from adk_fluent._registry import LayerObject
    from adk_fluent.errors import LayerError

for _name in ("corpus", "mistakes"):
    if _name not in sys.modules:
        _spec = spec_from_file_location(_name, Path(__file__).with_name(_name) / "__init__.py")
        assert _spec is not None
        assert _spec.loader is not None
        _module = sys.modules[_name] = module_from_spec(_spec)
        _spec.loader.exec_module(_module)


@pytest.fixture(autouse=True)
def only_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests of checks see core alone."""
    hide_layers(monkeypatch)


def hide_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is installed where the tests run: no layer is, and no user's checker."""

    def nothing(slot: str) -> tuple[list[LayerObject], list[LayerError]]:
        return [], []

    monkeypatch.setattr(_check, "found", dict)
    monkeypatch.setattr(_checkers, "usable", nothing)
    monkeypatch.setattr(_checkers, "_users", {})

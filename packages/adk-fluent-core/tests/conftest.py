"""Makes the helper modules that lie beside this file importable by tests in any folder.

Under pytest's importlib mode nothing is put on `sys.path`, so a helper is registered by name.
"""

from __future__ import annotations

import gc
import importlib.metadata
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


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


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Hides an installed layer, as if its wheel was not there; what is put in its place stays."""
    from adk_fluent._registry import refresh

    entry_points = importlib.metadata.entry_points
    before = list(entry_points(group="adk_fluent.layers"))

    def hide(name: str) -> None:
        hidden = [each for each in before if each.name == name]

        def rest(**chosen: Any) -> list[Any]:
            known = cast("Iterable[Any]", entry_points(**chosen))
            return [each for each in known if each not in hidden]

        monkeypatch.setattr(importlib.metadata, "entry_points", rest)
        refresh()

    yield hide
    monkeypatch.undo()
    refresh()


def pytest_collection_finish() -> None:
    """Keep the collector from going through all modules and tests again and again."""
    gc.collect()
    gc.freeze()

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
    from collections.abc import Callable, Collection, Iterable, Iterator
    from importlib.machinery import ModuleSpec


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


class _Without:
    """Finds every module but those of some layers."""

    def __init__(self, finders: list[Any], layers: Collection[str]) -> None:
        self._finders = finders
        self._layers = layers

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name.removeprefix("adk_fluent.") in self._layers:
            return None
        found = (each.find_spec(name, path, target) for each in self._finders)
        return next((spec for spec in found if spec is not None), None)

    def find_distributions(self, context: Any) -> Iterator[Any]:
        for each in self._finders:
            if (find := getattr(each, "find_distributions", None)) is not None:
                yield from find(context)


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Hides an installed layer, as if its wheel was not there; what is put in its place stays."""
    from adk_fluent._registry import refresh

    layers = set[str]()
    entry_points = importlib.metadata.entry_points
    before = list(cast("Iterable[Any]", entry_points(group="adk_fluent.layers")))

    def rest(**chosen: Any) -> list[Any]:
        known = cast("Iterable[Any]", entry_points(**chosen))
        return [each for each in known if each.name not in layers or each not in before]

    def hide(name: str) -> None:
        layers.add(name)
        part = f"adk_fluent.{name}"
        for module in [each for each in sys.modules if f"{each}.".startswith(f"{part}.")]:
            monkeypatch.delitem(sys.modules, module)
        monkeypatch.delitem(vars(sys.modules["adk_fluent"]), name, raising=False)
        refresh()

    monkeypatch.setattr(importlib.metadata, "entry_points", rest)
    monkeypatch.setattr(sys, "meta_path", [_Without(list(sys.meta_path), layers)])
    yield hide
    monkeypatch.undo()
    refresh()


def pytest_collection_finish() -> None:
    """Keep the collector from going through all modules and tests again and again."""
    gc.collect()
    gc.freeze()

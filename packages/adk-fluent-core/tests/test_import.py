"""What `import adk_fluent` does, and what importing an absent part of it says."""

from __future__ import annotations

import importlib
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from typing import TYPE_CHECKING

import pytest

import adk_fluent
from adk_fluent import _layers
from adk_fluent._hints import WHEELS
from adk_fluent.errors import UnknownNameError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("part", "wheel"), sorted(WHEELS.items()))
def test_an_absent_part_names_the_wheel_to_install(part: str, wheel: str) -> None:
    finder = _layers.AbsentLayerFinder()
    hint = rf"^adk_fluent\.{part} is not installed; add it with: pip install {wheel}$"
    with pytest.raises(ModuleNotFoundError, match=hint) as caught:
        finder.find_spec(f"adk_fluent.{part}", None)
    assert caught.value.name == f"adk_fluent.{part}"


@pytest.mark.parametrize("name", ["cost", "adk_fluent", "adk_fluent.colour", "other.cost"])
def test_other_names_are_left_to_other_finders(name: str) -> None:
    assert _layers.AbsentLayerFinder().find_spec(name, None) is None


def test_the_import_statement_reaches_the_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WHEELS, "weather", "adk-fluent-weather")
    with pytest.raises(ModuleNotFoundError, match="pip install adk-fluent-weather"):
        importlib.import_module("adk_fluent.weather")


def test_the_hint_is_asked_last_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [each for each in sys.meta_path if type(each).__name__ != "AbsentLayerFinder"]
    monkeypatch.setattr(sys, "meta_path", others)
    _layers.install()
    importlib.reload(_layers).install()
    finders = [type(finder).__name__ for finder in sys.meta_path]
    assert finders.count("AbsentLayerFinder") == 1
    assert finders[-1] == "AbsentLayerFinder"


def test_a_part_from_another_directory_is_found(tmp_path: Path) -> None:
    portion = tmp_path / "adk_fluent" / "elsewhere"
    portion.mkdir(parents=True)
    (portion / "__init__.py").write_text("print('found')\n", "utf-8")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import adk_fluent.elsewhere"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "found\n"


def test_the_version_is_that_of_the_installed_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adk_fluent._version.version", {"adk-fluent-core": "4.5.6"}.__getitem__)
    assert adk_fluent.__version__ == "4.5.6"


def test_bare_sources_have_no_version_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("adk_fluent._version.version", absent)
    assert not hasattr(adk_fluent, "__version__")  # as pydoc asks
    with pytest.raises(UnknownNameError, match="no installation of it"):
        _ = adk_fluent.__version__


def test_a_part_is_there_when_it_is_used_and_no_layer_is_asked() -> None:
    code = (
        "import sys, adk_fluent; from adk_fluent import protocol; "
        "assert adk_fluent.ir.Node and protocol.Usage; "
        "print('adk_fluent._registry' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_nobody_pays_for_what_they_do_not_ask_for() -> None:
    slow = {
        *("adk_fluent.builders", "adk_fluent.ir", "adk_fluent.protocol"),
        *("asyncio", "dataclasses", "importlib.metadata", "inspect", "logging"),
    }
    code = (
        "import sys, adk_fluent; "
        "assert set(adk_fluent.__all__) <= set(dir(adk_fluent)), dir(adk_fluent); "
        f"print(sorted({slow} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

"""The hints of absent wheels are what the wheels of the workspace bring."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

import hints

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = '[project]\nname = "{name}"\n'
LAYER = '[project.entry-points."adk_fluent.layers"]\nink = "hints_ink_layer:LAYER"\n'


def test_the_hints_of_core_are_up_to_date() -> None:
    assert hints.FILE.read_text("utf-8") == hints.text(), "run: python tools/hints.py"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace of core and one wheel that brings two parts."""
    for name, more in (("adk-fluent-core", ""), ("adk-fluent-ink", LAYER)):
        (tmp_path / "packages" / name).mkdir(parents=True)
        (tmp_path / "packages" / name / "pyproject.toml").write_text(
            PROJECT.format(name=name) + more
        )
    for part in ("ink", "blot"):
        folder = tmp_path / "packages/adk-fluent-ink/src/adk_fluent" / part
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
    return tmp_path


def made(root: Path) -> dict[str, Any]:
    scope: dict[str, Any] = {}
    exec(hints.text(root), scope)
    return scope


def test_a_new_name_of_a_layer_is_in_the_hints(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(workspace), *sys.path])
    (workspace / "hints_ink_layer.py").write_text(
        "from adk_fluent.protocol import Entry, Layer\n"
        "LAYER = Layer('ink', {'middleware': Entry('a:b', 'dry'), 'commands': Entry('a:c', 'dip')})"
    )
    scope = made(workspace)
    del sys.modules["hints_ink_layer"]
    assert {part: wheel for part, wheel in scope["WHEELS"].items() if wheel.endswith("ink")} == {
        "blot": "adk-fluent-ink",
        "ink": "adk-fluent-ink",
    }
    providers = scope["PROVIDERS"]
    assert (providers["middleware"]["dry"], providers["commands"]["dip"]) == ("ink", "ink")


def test_check_says_that_the_file_is_out_of_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "_hints.py"
    monkeypatch.setattr(hints, "FILE", file)
    monkeypatch.setattr(hints, "ROOT", tmp_path)
    monkeypatch.setattr(hints, "text", lambda: "X = 1\n")
    monkeypatch.setattr("sys.argv", ["hints.py", "--check"])
    assert hints.main() == 1
    assert capsys.readouterr().out == "out of date: _hints.py; run: python tools/hints.py\n"
    monkeypatch.setattr("sys.argv", ["hints.py"])
    assert hints.main() == 0
    assert file.read_text() == "X = 1\n"
    monkeypatch.setattr("sys.argv", ["hints.py", "--check"])
    assert hints.main() == 0

"""`adk-fluent doctor` finds what is wrong with an installation, whatever it is."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from adk_fluent import _registry
from adk_fluent.cli import _doctor

if TYPE_CHECKING:
    from .conftest import Cli

VERSIONS = {"adk-fluent-core": "0.1.0", "google-adk": "2.13.0", "a2a-sdk": "1.3.0"}


class Installation:
    """What seems to be installed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.versions: dict[str, str] = dict(VERSIONS)
        self.patch = monkeypatch
        monkeypatch.setattr(_doctor, "installed_version", self.versions.get)
        monkeypatch.setattr(_registry, "found", dict)
        monkeypatch.setattr(_doctor, "found", dict)
        for name in ("google", "google.adk", "google.adk.runners"):  # quicker than the real one
            monkeypatch.setitem(sys.modules, name, sys)


@pytest.fixture
def installation(monkeypatch: pytest.MonkeyPatch) -> Installation:
    return Installation(monkeypatch)


def test_a_good_installation_is_fine(installation: Installation, here: Cli) -> None:
    done = here("doctor")
    assert done.code == 0
    assert [line[:4].strip() for line in done.out.splitlines()] == [
        *["ok"] * 5,
        "note",
        "note",
    ]
    assert "none installed beside core" in done.out
    assert "set GOOGLE_API_KEY" in done.out


@pytest.mark.parametrize("version", ["1.24.9", "3.0.0", "0.9", "dev"])
def test_an_adk_out_of_range_is_bad(version: str, installation: Installation, here: Cli) -> None:
    installation.versions["google-adk"] = version
    done = here("doctor")
    assert done.code == 1
    assert f"{version}; adk-fluent needs >=1.25,<3" in done.out


@pytest.mark.parametrize("version", ["1.25.0", "1.39.1", "2.0.0b1", "2.13.0"])
def test_an_adk_in_range_is_good(version: str, installation: Installation, here: Cli) -> None:
    installation.versions["google-adk"] = version
    assert here("doctor").code == 0


def test_an_absent_adk_is_bad(installation: Installation, here: Cli) -> None:
    del installation.versions["google-adk"]
    done = here("doctor")
    assert (done.code, "pip install 'google-adk>=1.25,<3'" in done.out) == (1, True)


@pytest.mark.parametrize("error", [ImportError("no typing"), TypeError("no such argument")])
def test_an_adk_that_cannot_be_imported_is_bad(
    error: Exception, installation: Installation, here: Cli
) -> None:
    class Broken:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "google.adk.runners":
                raise error

    installation.patch.delitem(sys.modules, "google.adk.runners")
    installation.patch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    installation.patch.setattr(sys, "__path__", [], raising=False)
    done = here("doctor")
    assert done.code == 1
    assert f"2.13.0 cannot be imported: {type(error).__name__}: {error}" in done.out


def test_the_old_monolith_beside_core_is_bad(installation: Installation, here: Cli) -> None:
    installation.versions["adk-fluent"] = "0.18.0"
    done = here("doctor")
    assert done.code == 1
    assert "0.18.0 overwrites files of adk-fluent-core; pip uninstall adk-fluent" in done.out


def test_what_is_only_missing_is_noted(installation: Installation, here: Cli) -> None:
    for name in ("a2a-sdk", "adk-fluent-core"):
        del installation.versions[name]
    done = here("doctor")
    assert done.code == 0
    assert "ADK 2.x looks for it again" in done.out
    assert "runs from its sources" in done.out


@pytest.mark.parametrize(
    ("variable", "value", "there"),
    [
        ("GOOGLE_API_KEY", "s3cret", True),
        ("GEMINI_API_KEY", "s3cret", True),
        ("GOOGLE_API_KEY", "  ", False),
        ("GOOGLE_GENAI_USE_VERTEXAI", "TRUE", True),
        ("GOOGLE_GENAI_USE_ENTERPRISE", "1", True),
        ("GOOGLE_GENAI_USE_VERTEXAI", "0", False),
    ],
)
def test_a_key_is_found_and_not_shown(
    variable: str, value: str, there: bool, installation: Installation, here: Cli
) -> None:
    installation.patch.setenv(variable, value)
    done = here("doctor")
    assert (f"{variable} is set" in done.out) is there
    assert "s3cret" not in done.out


@pytest.mark.adk
def test_the_installation_the_tests_run_in_is_fine(process: Cli) -> None:
    done = process("doctor")
    assert done.code == 0, done.out
    assert done.err == ""

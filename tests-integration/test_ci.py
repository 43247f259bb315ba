"""What CI is told to try is what we say that we support."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSION = re.compile(r"\b3\.\d\d\b")


def text(path: str) -> str:
    return (ROOT / path).read_text("utf-8")


def line(path: str, what: str) -> str:
    """The one line of a file that has this in it."""
    (found,) = (each for each in text(path).splitlines() if what in each)
    return found


def supported() -> list[str]:
    manifest = tomllib.loads(text("packages/adk-fluent-core/pyproject.toml"))
    return VERSION.findall("\n".join(manifest["project"]["classifiers"]))


def test_hashes_are_compared_between_all_supported_pythons() -> None:
    """The variable that `tests/ir/test_hash.py` reads is set, to every version we support."""
    assert VERSION.findall(line(".github/workflows/ci.yml", "ADK_FLUENT_PYTHONS:")) == supported()
    assert VERSION.findall(line(".ci/run", "for version in")) == supported()
    assert line(".ci/run", "export ADK_FLUENT_PYTHONS")


def test_contributors_are_told_the_same() -> None:
    told = VERSION.findall(line("CONTRIBUTING.md", "| Python |"))
    assert told == [supported()[0], supported()[0], supported()[-1]]


def test_ci_runs_on_every_supported_python() -> None:
    workflow = text(".github/workflows/ci.yml")
    run = {*VERSION.findall(workflow.partition("matrix:")[2]), "3.11"}
    assert run == set(supported())

"""What CI is told to try, and contributors to do, is true."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from adk_fluent import ir

ROOT = Path(__file__).resolve().parent.parent
VERSION = re.compile(r"\b3\.\d\d\b")
LAYER_X = re.compile(r"(^|/|-)[xX](/|$)")  # stands for some package or layer


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
    assert VERSION.findall(line(".ci/steps.sh", "for version in")) == supported()
    assert line(".ci/steps.sh", "export ADK_FLUENT_PYTHONS")


def test_contributors_are_told_the_same() -> None:
    told = VERSION.findall(line("CONTRIBUTING.md", "| Python |"))
    assert told == [supported()[0], supported()[0], supported()[-1]]


def test_contributors_are_told_where_things_are() -> None:
    core, toy = ROOT / "packages" / "adk-fluent-core", ROOT / "tests-integration" / "toy"
    places = [ROOT, core, core / "src", core / "src" / "adk_fluent", toy]
    told = text("CONTRIBUTING.md")
    paths = {
        each for each in re.findall(r"`([\w./-]+/[\w./-]+)`", told) if not LAYER_X.search(each)
    }
    assert {each for each in paths if not any((place / each).exists() for place in places)} == set()
    assert len(paths) > 10
    (rules,) = re.findall(r"the rules of `(\S+)`", told)
    checks = {Path(rule.check.__code__.co_filename) for rule in ir.RULES}
    assert checks == {core / "src" / "adk_fluent" / rules}


def test_ci_runs_on_every_supported_python() -> None:
    workflow = text(".github/workflows/ci.yml")
    run = {*VERSION.findall(workflow.partition("matrix:")[2]), "3.11"}
    assert run == set(supported())

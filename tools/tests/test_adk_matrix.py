"""What tools/adk_matrix.py reads and writes; the rest is its nightly run in upstream.yml."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import adk_matrix
from adk_matrix import MatrixError, Result

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = """\
[project]
dependencies = ["google-adk>=1.25,<3", "click>=8"]
"""
REPORT = """\
<testsuites><testsuite>
  <testcase classname="tests.test_a" name="test_one" />
  <testcase classname="tests.test_a" name="test_two[x]"><failure message="no" /></testcase>
  <testcase classname="tests.test_a" name="test_both"><failure /><error /></testcase>
  <testcase classname="" name="tests.test_b"><error message="collection" /></testcase>
  <testcase classname="tests.test_a" name="test_no"><skipped /></testcase>
</testsuite></testsuites>
"""
OLD = Result("1.25", True, "1.25.1", "1.56.0", 10, 0, 2, 61, {"workflow": False, "context": True})
NEW = Result("2.13", True, "2.13.0", "2.34.0", 12, 1, 0, 70, {"workflow": True, "context": True})
NONE = Result("2.0", True, trouble="uv pip failed: nothing fits\nat all")
NEXT = Result("newest", False, "3.0.0", "3.0.0", 0, 9, 0, 5, {"shiny": True})


@pytest.mark.parametrize(
    ("version", "asked"),
    [
        ("2.13", "google-adk[mcp]==2.13.*"),
        ("1.25.1", "google-adk[mcp]==1.25.1"),
        ("newest", "google-adk[mcp]"),
    ],
)
def test_what_uv_is_asked_for(version: str, asked: str) -> None:
    assert adk_matrix.requirement(version) == asked


@pytest.mark.parametrize("version", ["", "2", "2.x", "2.13.0.1", ">=2", "2.13 --index-url=x"])
def test_what_is_no_version(version: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(MatrixError, match="is no version"):
        adk_matrix.requirement(version)
    assert adk_matrix.main(["--versions", version]) == 2
    assert "is no version" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("version", "allowed"),
    [("1.24.9", False), ("1.25.0", True), ("2.13.0", True), ("3.0.0", False)],
)
def test_the_manifest_says_what_is_supported(version: str, allowed: bool) -> None:
    assert adk_matrix.supported(MANIFEST, version) is allowed


def test_a_report_is_counted_by_test() -> None:
    assert adk_matrix.counts(REPORT) == (
        1,
        3,
        1,
        ("tests.test_a::test_two[x]", "tests.test_a::test_both", "::tests.test_b"),
    )


def test_the_tables() -> None:
    text = adk_matrix.table([OLD, NONE, NEW, NEXT], "adk", "2026-11-22", "3.11")
    assert text.splitlines() == [
        "On 2026-11-22, Python 3.11, suite `adk`:",
        "",
        "| google-adk | google-genai | passed | failed | skipped | seconds |",
        "| --- | --- | --- | --- | --- | --- |",
        "| 1.25.1 | 1.56.0 | 10 | 0 | 2 | 61 |",
        "| 2.0 | uv pip failed: nothing fits |  |  |  |  |",
        "| 2.13.0 | 2.34.0 | 12 | 1 | 0 | 70 |",
        "| 3.0.0 (not supported) | 3.0.0 | 0 | 9 | 0 | 5 |",
        "",
        "What the versions can do:",
        "",
        "| flag | 1.25.1 | 2.13.0 | 3.0.0 |",
        "| --- | --- | --- | --- |",
        "| `workflow` |  | yes |  |",
        "| `context` | yes | yes |  |",
        "| `shiny` |  |  | yes |",
    ]


def test_without_any_environment_there_is_no_table_of_flags() -> None:
    assert "What the versions can do" not in adk_matrix.table([NONE], "adk", "2026-11-22", "3.11")


def test_only_what_stands_between_the_marks_is_written_anew() -> None:
    page = f"# Page\n\n{adk_matrix.BEGIN}\nold\n\n{adk_matrix.END}\nrest\n"
    new = adk_matrix.replaced(page, "new\n")
    assert new == f"# Page\n\n{adk_matrix.BEGIN}\nnew\n\n{adk_matrix.END}\nrest\n"
    assert adk_matrix.replaced(new, "new\n") == new
    with pytest.raises(MatrixError, match="the page has no"):
        adk_matrix.replaced("# Page\n", "new\n")


def stand_in(monkeypatch: pytest.MonkeyPatch, *results: Result) -> None:
    """Let these be what comes of the versions, in turn."""
    left = iter(results)

    def tried(version: str, folder: Path, suite: str, jobs: int) -> Result:
        return next(left)

    monkeypatch.setattr(adk_matrix, "run", tried)


@pytest.mark.parametrize(
    ("results", "code"),
    [([OLD], 0), ([OLD, NEW], 1), ([OLD, NONE], 1), ([OLD, NEXT], 0), ([Result("2.8", True)], 1)],
    ids=["good", "failed", "no environment", "newer than supported", "no tests"],
)
def test_a_supported_version_that_fails_is_the_exit_code(
    results: list[Result], code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stand_in(monkeypatch, *results)
    out = tmp_path / "out.json"
    versions = [each.asked for each in results]
    assert adk_matrix.main(["--versions", *versions, "--json", str(out)]) == code
    data = json.loads(out.read_text("utf-8"))
    assert [each["asked"] for each in data["results"]] == versions
    assert data["suite"] == "conformance"


def test_the_table_goes_into_the_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{adk_matrix.BEGIN}{adk_matrix.END}", "utf-8")
    monkeypatch.setattr(adk_matrix, "PAGE", page)
    stand_in(monkeypatch, OLD)
    assert adk_matrix.main(["--versions", "1.25", "--write"]) == 0
    assert "| 1.25.1 | 1.56.0 | 10 |" in page.read_text("utf-8")


class Commands:
    """Stands in for what a version is tried with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, report: str | None, code: int = 0) -> None:
        self.seen: list[Sequence[str]] = []
        self._report, self._code = report, code
        monkeypatch.setattr(subprocess, "run", self)

    def __call__(self, command: Sequence[str], **_: Any) -> subprocess.CompletedProcess[str]:
        self.seen.append(command)
        found = {"adk": "2.13.0", "genai": "2.34.0", "flags": {"workflow": True}}
        for word in command:
            if word.startswith("--junitxml=") and self._report is not None:
                Path(word.partition("=")[2]).write_text(self._report, "utf-8")
        error = "no\nit cannot be\n" if self._code else ""
        return subprocess.CompletedProcess(command, self._code, json.dumps(found), error)


def test_a_version_is_tried(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    commands = Commands(monkeypatch, REPORT)
    result = adk_matrix.run("2.13", tmp_path, "backends", 3)
    assert (result.adk, result.genai, result.flags) == ("2.13.0", "2.34.0", {"workflow": True})
    assert (result.passed, result.failed, result.skipped) == (1, 3, 1)
    assert result.supported
    assert not result.good
    made, installed, _, tested = commands.seen
    assert made[:2] == ["uv", "venv"]
    assert "google-adk[mcp]==2.13.*" in installed
    assert (tmp_path / "overrides.txt").read_text("utf-8") == "google-adk[mcp]==2.13.*\n"
    assert list(tested[tested.index("-n") :][:2]) == ["-n", "3"]
    assert set(adk_matrix.SUITES["backends"]) <= set(tested)


def test_a_version_that_cannot_be_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Commands(monkeypatch, None, 1)
    result = adk_matrix.run("2.13", tmp_path, "adk", 2)
    assert result.trouble == "uv venv failed: it cannot be"
    assert not result.good


@pytest.mark.parametrize(
    ("report", "trouble"),
    [(None, "pytest ended with 0 and no report"), ("<testsuites />", "no tests ran")],
)
def test_a_version_without_tests(
    report: str | None, trouble: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Commands(monkeypatch, report)
    assert adk_matrix.run("2.13", tmp_path, "adk", 2).trouble == trouble


def test_the_page_has_the_versions_that_are_tried() -> None:
    page = adk_matrix.PAGE.read_text("utf-8")
    written = page.partition(adk_matrix.BEGIN)[2].partition(adk_matrix.END)[0]
    shown = re.findall(r"^\| (\d+\.\d+)\.\d+ \|", written, re.MULTILINE)
    assert shown == list(adk_matrix.VERSIONS)


def test_the_nightly_run_tries_them_and_the_newest() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "upstream.yml").read_text("utf-8"))
    scripts = [step.get("run", "") for job in workflow["jobs"].values() for step in job["steps"]]
    (line,) = [each for script in scripts for each in script.splitlines() if "adk_matrix" in each]
    words = line.partition("tools/adk_matrix.py ")[2].partition(" | ")[0].split()
    asked = adk_matrix.parser().parse_args(words)
    assert asked.versions == [*adk_matrix.VERSIONS, adk_matrix.NEWEST]
    assert asked.suite == "adk"
    assert workflow["permissions"] == {}
    assert workflow[True]["schedule"]  # YAML 1.1 takes the key `on` for a truth value

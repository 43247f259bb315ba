"""Run our tests on one version of google-adk after another, and make one table of it.

Each version gets an environment of its own: google-adk as named, whatever uv resolves beside it,
core as it is in the sources, and what the tests need. No pin of ours takes part, so this is also
what somebody gets who installs that google-adk today.

Usage::

    python tools/adk_matrix.py                              the conformance suite on VERSIONS
    python tools/adk_matrix.py --suite adk                  every test that imports google.adk
    python tools/adk_matrix.py --versions 2.13 newest       those only; 2.13 is its last patch
    python tools/adk_matrix.py --write                      and the table into the documentation

The exit code is 1 when a version fails that core says it supports; others are tried and shown.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from packaging.requirements import Requirement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

ROOT: Final = Path(__file__).resolve().parent.parent
CORE: Final = ROOT / "packages" / "adk-fluent-core"
PAGE: Final = CORE / "docs" / "adk-versions.md"
BEGIN: Final = "<!-- BEGIN written by tools/adk_matrix.py -->\n"
END: Final = "<!-- END -->\n"

#: What is tried unless others are named; `NEWEST` is the newest release there is.
VERSIONS: Final = ("1.25", "1.30", "1.36", "1.39", "2.0", "2.4", "2.8", "2.13")
NEWEST: Final = "newest"

_TESTS: Final = "packages/adk-fluent-core/tests"
#: The tests of a suite; those of them that are marked `adk` are run.
SUITES: Final[Mapping[str, tuple[str, ...]]] = {
    "conformance": (f"{_TESTS}/testing/test_conformance_adk.py",),
    "backends": (f"{_TESTS}/backends", f"{_TESTS}/testing"),
    "adk": ("packages", "tests-integration"),
}

#: With what its tools for MCP go with: 2.x asks for that only so, and not for every version of it.
_ADK: Final = "google-adk[mcp]"
#: Warnings are errors in our tests, but not those that an old version makes when it is imported.
_WARNINGS: Final = ("ignore::DeprecationWarning", "ignore:[EXPERIMENTAL]:UserWarning")

#: Prints what is installed, and what the compat module found out about it.
_LOOK: Final = """
import json
from dataclasses import asdict
from importlib.metadata import version
from adk_fluent.backends.adk._caps import CAPS
print(json.dumps({
    "adk": version("google-adk"), "genai": version("google-genai"), "flags": asdict(CAPS)
}))
"""


class MatrixError(Exception):
    """A version could not be tried; the message is for the person at the terminal."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one version.

    Attributes:
        asked: The version as it was named.
        supported: Whether core's requirement allows it.
        adk: The version that was installed; "" if none could be.
        genai: The version of google-genai beside it.
        passed: How many tests passed; and so on.
        failed: Failures and errors.
        skipped: Those left out.
        seconds: Wall clock of the tests.
        flags: The capability flags, by name.
        failures: Names of the tests that failed.
        trouble: Why there are no figures; "" if there are.
    """

    asked: str
    supported: bool
    adk: str = ""
    genai: str = ""
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: int = 0
    flags: Mapping[str, bool] = field(default_factory=dict[str, bool])
    failures: tuple[str, ...] = ()
    trouble: str = ""

    @property
    def good(self) -> bool:
        """Whether tests ran, and all of them passed."""
        return not self.trouble and not self.failed and self.passed > 0


# --- pure parts ----------------------------------------------------------------------------------


def requirement(version: str) -> str:
    """What to ask uv for.

    Raises:
        MatrixError: It is neither a version nor `NEWEST`.
    """
    if version == NEWEST:
        return _ADK
    numbers = version.split(".")
    if len(numbers) not in (2, 3) or not all(number.isdecimal() for number in numbers):
        raise MatrixError(f"{version!r} is no version: give 2.13, 2.13.0 or {NEWEST!r}")
    return f"{_ADK}=={version}" + (".*" if len(numbers) == 2 else "")


def supported(manifest: str, version: str) -> bool:
    """Whether core's manifest allows this version of google-adk."""
    needs = map(Requirement, tomllib.loads(manifest)["project"]["dependencies"])
    return any(need.name == "google-adk" and need.specifier.contains(version) for need in needs)


def counts(report: str) -> tuple[int, int, int, tuple[str, ...]]:
    """Passed, failed and skipped of a JUnit report, and the names of what failed."""
    passed = skipped = 0
    failures: list[str] = []
    for case in ET.fromstring(report).iter("testcase"):  # noqa: S314  # pytest wrote it
        outcomes = {each.tag for each in case}
        if outcomes & {"failure", "error"}:
            failures.append(f"{case.get('classname')}::{case.get('name')}")
        elif "skipped" in outcomes:
            skipped += 1
        else:
            passed += 1
    return passed, len(failures), skipped, tuple(failures)


def table(results: Sequence[Result], suite: str, day: str, python: str) -> str:
    """The tables, as Markdown."""
    blocks = [f"On {day}, Python {python}, suite `{suite}`:", _outcomes(results)]
    if flags := _flags(results):
        blocks += ["What the versions can do:", flags]
    return "\n\n".join(blocks) + "\n"


def _outcomes(results: Iterable[Result]) -> str:
    head = ("google-adk", "google-genai", "passed", "failed", "skipped", "seconds")
    rows = [
        (
            (each.adk or each.asked) + ("" if each.supported else " (not supported)"),
            *(
                (each.genai, each.passed, each.failed, each.skipped, each.seconds)
                if not each.trouble
                else (each.trouble.splitlines()[0], "", "", "", "")
            ),
        )
        for each in results
    ]
    return _rows(head, rows)


def _flags(results: Iterable[Result]) -> str:
    known = [each for each in results if each.flags]
    names = dict.fromkeys(name for each in known for name in each.flags)
    rows = [
        (f"`{name}`", *("yes" if each.flags.get(name) else "" for each in known)) for name in names
    ]
    return _rows(("flag", *(each.adk for each in known)), rows) if rows else ""


def _rows(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def replaced(page: str, written: str) -> str:
    """A page with other tables between its marks.

    Raises:
        MatrixError: It has no marks.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise MatrixError(f"the page has no {BEGIN.strip()} ... {END.strip()}")
    return f"{before}{BEGIN}\n{written}\n{END}{after}"


# --- environments and tests ----------------------------------------------------------------------


def run(version: str, folder: Path, suite: str, jobs: int) -> Result:
    """Try one version."""
    asked = Result(version, supported=True)
    try:
        python = environment(version, folder)
        found = json.loads(_output([str(python), "-c", _LOOK]))
    except MatrixError as error:
        return replace(asked, trouble=str(error))
    manifest = (CORE / "pyproject.toml").read_text("utf-8")
    asked = replace(asked, supported=supported(manifest, found["adk"]), **found)
    report = folder / f"{version}.xml"
    start = time.monotonic()
    ended = _pytest(python, suite, jobs, report)
    seconds = round(time.monotonic() - start)
    if not report.exists():
        return replace(asked, trouble=f"pytest ended with {ended} and no report", seconds=seconds)
    passed, failed, skipped, failures = counts(report.read_text("utf-8"))
    return replace(
        asked,
        passed=passed,
        failed=failed,
        skipped=skipped,
        seconds=seconds,
        failures=failures,
        trouble="" if passed or failed else "no tests ran",
    )


def environment(version: str, folder: Path) -> Path:
    """The interpreter of an environment with this google-adk; core is installed anew each time.

    Raises:
        MatrixError: uv cannot make it.
    """
    venv = folder / f"adk-{version}"
    python = venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        _output(["uv", "venv", "--quiet", "--no-project", "--python", "3.11", str(venv)])
    lifted = folder / "overrides.txt"  # core's bound must not keep the newest one away
    lifted.write_text(f"{requirement(version)}\n", "utf-8")
    _output(
        [
            *("uv", "pip", "install", "--quiet", "--no-config", "--python", str(python)),
            *("--compile-bytecode", "--upgrade", "--reinstall-package", "adk-fluent-core"),
            *("--overrides", str(lifted), requirement(version)),
            *("--group", f"{ROOT / 'pyproject.toml'}:test", f"{CORE}[testing]"),
        ]
    )
    return python


def _pytest(python: Path, suite: str, jobs: int, report: Path) -> int:
    """Run a suite; what it prints goes into a file beside the report."""
    report.unlink(missing_ok=True)
    command = [
        *(str(python), "-m", "pytest", "-q", "-n", str(jobs), "-m", "adk"),
        *(option for warning in _WARNINGS for option in ("-W", warning)),
        *("-p", "no:cacheprovider", f"--junitxml={report}", *SUITES[suite]),
    ]
    with report.with_suffix(".log").open("w", encoding="utf-8") as log:
        done = subprocess.run(
            command, cwd=ROOT, env=_variables(), stdout=log, stderr=log, check=False
        )
    return done.returncode


def _variables() -> dict[str, str]:
    """The environment without what would put other code into that interpreter."""
    unset = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV", "PYTEST_ADDOPTS")
    return {name: value for name, value in os.environ.items() if name not in unset}


def _output(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=_variables(), capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise MatrixError("uv is not installed; `pip install uv`") from None
    if done.returncode:
        last = [line.strip() for line in done.stderr.splitlines() if line.strip()] or ["no word"]
        raise MatrixError(f"{Path(command[0]).name} {command[1]} failed: {last[-1]}")
    return done.stdout


# --- command line --------------------------------------------------------------------------------


def parser() -> argparse.ArgumentParser:
    """What the command takes."""
    made = argparse.ArgumentParser(
        description="Our tests on one version of google-adk after another."
    )
    made.add_argument("--suite", choices=SUITES, default="conformance", help="which tests")
    made.add_argument(
        "--versions", nargs="+", default=VERSIONS, help=f"such as 1.39, 2.13.0 or {NEWEST}"
    )
    made.add_argument("--jobs", type=int, default=2, help="processes of pytest")
    made.add_argument("--keep", type=Path, help="where environments and reports stay")
    made.add_argument("--json", type=Path, help="a file for the results as data")
    made.add_argument("--write", action="store_true", help=f"put the tables into {PAGE.name}")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the versions; 1 if a supported one fails, 2 if one is no version."""
    asked = parser().parse_args(arguments)
    try:
        for version in asked.versions:
            requirement(version)
    except MatrixError as error:
        print(error, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        folder = (asked.keep or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        results: list[Result] = []
        for version in asked.versions:
            results.append(run(version, folder, asked.suite, asked.jobs))
            _tell(results[-1])
    report(results, asked)
    return int(any(each.supported and not each.good for each in results))


def report(results: Sequence[Result], asked: argparse.Namespace) -> None:
    """Print the tables, and write what was asked for."""
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    text = table(results, asked.suite, day, "3.11")
    print(f"\n{text}")
    if asked.json:
        data = {"day": day, "suite": asked.suite, "results": [asdict(each) for each in results]}
        asked.json.write_text(json.dumps(data, indent=2) + "\n", "utf-8")
    if asked.write:
        PAGE.write_text(replaced(PAGE.read_text("utf-8"), text), "utf-8")


def _tell(result: Result) -> None:
    figures = f"{result.passed} passed, {result.failed} failed, {result.skipped} skipped"
    print(f"{result.adk or result.asked}: {result.trouble or figures}", flush=True)
    for name in result.failures:
        print(f"  {name}")


if __name__ == "__main__":
    sys.exit(main())

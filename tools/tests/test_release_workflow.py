"""The workflow that publishes does what it should, and nobody else can make it do more."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sysconfig
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from release import cli
from release.repository import Repository

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".github" / "workflows"
TEXT = (FOLDER / "release.yml").read_text("utf-8")
WORKFLOW: dict[Any, Any] = yaml.safe_load(TEXT)
JOBS: dict[str, dict[str, Any]] = WORKFLOW["jobs"]
ON: dict[str, Any] = WORKFLOW[True]  # YAML 1.1 takes the key `on` for a truth value


def steps(job: str) -> list[dict[str, Any]]:
    return JOBS[job]["steps"]


def scripts() -> list[str]:
    return [step["run"] for job in JOBS for step in steps(job) if "run" in step]


def tool(name: str) -> str:
    found = shutil.which(name, path=sysconfig.get_path("scripts"))
    assert found, f"{name} is not installed; run: uv sync"
    return found


@pytest.mark.parametrize(
    "command",
    [
        ["check-jsonschema", "--builtin-schema", "vendor.github-workflows"],
        ["zizmor", "--offline", "--quiet", "--no-config"],
    ],
    ids=lambda command: command[0],
)
def test_workflows_are_valid_and_without_known_holes(command: list[str]) -> None:
    paths = sorted(map(str, FOLDER.glob("*.yml")))
    done = subprocess.run(
        [tool(command[0]), *command[1:], *paths], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_zizmor_would_tell(tmp_path: Path) -> None:
    path = tmp_path / ".github" / "workflows" / "release.yml"
    path.parent.mkdir(parents=True)
    path.write_text(re.sub(r"@[0-9a-f]{40} # ", "@", TEXT), "utf-8")
    command = [tool("zizmor"), "--offline", "--quiet", "--no-config", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "unpinned-uses" in done.stdout


def test_every_package_is_released_by_its_tag() -> None:
    (pattern,) = ON["push"]["tags"]
    for package in Repository(ROOT).packages():
        assert fnmatch(package.tag, pattern)
        assert package.tag.rpartition("-v")[0] == package.name  # what the shell makes of it
    assert set(ON) == {"push", "workflow_dispatch"}
    assert set(ON["push"]) == {"tags"}


def test_nothing_is_published_without_a_pushed_tag_and_a_review() -> None:
    assert JOBS["publish"]["if"] == "github.event_name == 'push'"
    assert JOBS["publish"]["environment"] == "pypi"
    assert set(JOBS["publish"]["needs"]) == {"build", "smoke", "full"}
    assert JOBS["announce"]["needs"] == "publish"  # skipped with it
    assert JOBS["smoke"]["needs"] == "build"


def test_every_job_may_do_the_least() -> None:
    assert WORKFLOW["permissions"] == {}
    assert {name: job["permissions"] for name, job in JOBS.items()} == {
        "build": {"contents": "read"},
        "full": {"contents": "read"},
        "smoke": {"contents": "read"},
        "publish": {"id-token": "write"},
        "announce": {"contents": "write"},
    }
    assert "secrets." not in TEXT


def test_what_may_write_runs_no_code_of_the_repository() -> None:
    for job in ("publish", "announce"):
        used = [step["uses"].partition("@")[0] for step in steps(job) if "uses" in step]
        assert set(used) <= {"actions/download-artifact", "pypa/gh-action-pypi-publish"}
    assert [step for step in steps("publish") if "run" in step] == []


def test_one_build_is_smoked_and_published() -> None:
    assert sum("tools.release build" in script for script in scripts()) == 1
    assert len([step for step in steps("publish") if "download" in step.get("uses", "")]) == 1
    (upload,) = [step for step in steps("publish") if "pypi-publish" in step.get("uses", "")]
    assert upload["with"]["attestations"] is True


def test_actions_are_pinned_by_commit_and_say_their_version() -> None:
    for path in FOLDER.glob("*.yml"):
        lines = [line for line in path.read_text("utf-8").splitlines() if "uses:" in line]
        assert lines
        for line in lines:
            assert re.search(r"uses: [\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line


def test_scripts_take_what_comes_from_outside_as_variables() -> None:
    assert scripts()
    assert [script for script in scripts() if "${{" in script] == []


def test_the_commands_exist() -> None:
    told = [
        shlex.split(line.partition("python -m tools.release ")[2].partition(" > ")[0])
        for script in scripts()
        for line in script.splitlines()
        if "tools.release" in line
    ]
    parsed = [cli.parser().parse_args(words) for words in told]
    assert {each.command for each in parsed} == {"build", "check", "api", "notes", "smoke"}
    tagged = [each.tag for each in parsed if each.command == "check"]
    assert sorted(tagged, key=str) == ["$GITHUB_REF_NAME", None]


def test_uv_is_installed_as_pinned() -> None:
    (line,) = {line for script in scripts() for line in script.splitlines() if "sed -n" in line}
    assert "'/^uv==/,/[^\\\\]$/p' tools/constraints/hashes.txt" in line
    pins = (ROOT / "tools" / "constraints" / "hashes.txt").read_text("utf-8")
    (found,) = re.findall(
        r"^uv==[\d.]+ \\\n(?: {4}--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+", pins, re.MULTILINE
    )
    assert found.count("--hash") > 5


def test_smoke_runs_on_every_supported_python_and_system() -> None:
    matrix = JOBS["smoke"]["strategy"]["matrix"]["include"]
    manifest = Repository(ROOT).package("adk-fluent-core").manifest
    supported = re.findall(r"3\.\d\d", "\n".join(manifest["project"]["classifiers"]))
    assert {row["python"] for row in matrix} == set(supported)
    assert {row["os"].partition("-")[0] for row in matrix} == {"ubuntu", "windows", "macos"}

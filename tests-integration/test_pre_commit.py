"""The hook of this repository as others have it: installed by pre-commit, run by git."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Final

import pytest

pytest.importorskip("pre_commit", reason="installs and runs the hook")

ROOT: Final = Path(__file__).resolve().parent.parent
MANIFEST: Final = ROOT / ".pre-commit-hooks.yaml"
GOOD: Final = """
from adk_fluent import Agent

pipeline = Agent("draft").instruct("Draft a reply.") >> Agent("polish").instruct("Polish it.")
"""
BAD: Final = """
from adk_fluent import Agent

pipeline = Agent("reply").instruct("Draft a reply.") >> Agent("reply").instruct("Polish it.")
"""


class Repository:
    """A git repository of a project."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.folder = folder
        self._env = env
        folder.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *args: str, ok: bool = True) -> str:
        return self.run("git", *args, ok=ok)

    def run(self, *command: str, ok: bool = True) -> str:
        done = subprocess.run(
            command, cwd=self.folder, env=self._env, capture_output=True, text=True, check=False
        )
        said = done.stdout + done.stderr
        assert (done.returncode == 0) is ok, f"{command} ended with {done.returncode}:\n{said}"
        return said

    def write(self, **files: str) -> None:
        for name, text in files.items():
            (self.folder / name.replace("__", ".")).write_text(text, "utf-8")
        self.git("add", "--all")

    def commit(self, *, ok: bool = True) -> str:
        return self.git("commit", "--message", "Change it", ok=ok)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """No settings of git and no cache of pre-commit; our command on the path."""
    programs = tmp_path / "bin"
    programs.mkdir()
    command = programs / "adk-fluent"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m adk_fluent.cli "$@"\n', "utf-8")
    command.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {
        "HOME": str(tmp_path),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PRE_COMMIT_HOME": str(tmp_path / "cache"),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{who}_NAME": "Somebody" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": "somebody@example.com" for who in ("AUTHOR", "COMMITTER")},
    }


@pytest.fixture
def project(tmp_path: Path, env: dict[str, str]) -> Repository:
    """A project that has the hook of our repository, of which it needs the manifest alone."""
    ours = Repository(tmp_path / "ours", env)
    shutil.copy(MANIFEST, ours.folder)
    ours.git("add", "--all")
    ours.commit()
    project = Repository(tmp_path / "project", env)
    config = f"""
        repos:
          - repo: {ours.folder}
            rev: {ours.git("rev-parse", "HEAD").strip()}
            hooks:
              - id: adk-fluent-check
                args: ["desk.py:pipeline"]
    """
    (project.folder / ".pre-commit-config.yaml").write_text(dedent(config), "utf-8")
    project.run(sys.executable, "-m", "pre_commit", "install")
    return project


def test_the_manifest_is_valid(tmp_path: Path, env: dict[str, str]) -> None:
    here = Repository(tmp_path / "here", env)
    said = here.run(sys.executable, "-m", "pre_commit", "validate-manifest", str(MANIFEST))
    assert said == ""


@pytest.mark.skipif(os.name == "nt", reason="the command of this test is a script of a shell")
def test_a_commit_is_checked(project: Repository) -> None:
    project.write(desk__py=GOOD)
    assert "adk-fluent check" in project.commit()
    project.write(desk__py=BAD)
    said = project.commit(ok=False)
    assert "error[FLW102]: two different agents are called `reply`" in said
    assert "desk.py:4" in said
    assert "exit code: 1" in said
    assert project.git("log", "--oneline").count("\n") == 1


@pytest.mark.skipif(os.name == "nt", reason="the command of this test is a script of a shell")
def test_a_commit_without_python_is_not(project: Repository) -> None:
    project.write(desk__py=GOOD)
    project.commit()
    (project.folder / "desk.py").write_text(BAD, "utf-8")
    (project.folder / "notes.txt").write_text("nothing\n", "utf-8")
    project.git("add", "notes.txt")
    assert "(no files to check)Skipped" in project.commit()

"""A small workspace with a history of its own, for the tests of tools/release."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

import boundaries
from release import cli
from release.build import build
from release.repository import Repository, run

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).resolve().parents[2]

MANIFEST: Final = """\
[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"

[project]
name = "{name}"
version = "0.1.0"
description = "A toy."
readme = "README.md"
requires-python = ">=3.11"
license = "Apache-2.0"
license-files = ["LICENSE"]
classifiers = ["Typing :: Typed"]
dependencies = [{needs}]

{points}

[project.urls]
Homepage = "https://example.org/toys"
Source = "https://example.org/toys/tree/main/packages/{name}"
Changelog = "https://example.org/toys/blob/main/packages/{name}/CHANGELOG.md"
Issues = "https://example.org/toys/issues"

[tool.hatch.build.targets.wheel]
{wheel}
"""

POINTS: Final = """\
[project.scripts]
adk-toy = "adk_fluent.command:main"

[tool.adk-fluent.release]
smoke = ["adk-toy one 'two three'"]
"""

CHANGELOG: Final = """\
# Changelog of {name}

## Unreleased

First version.

### Added

- Everything.
"""

WORDS: Final = '''\
"""Words."""

from __future__ import annotations

from typing import Protocol


class Base:
    """A base."""

    def close(self) -> None:
        """Close it."""


class Agent(Base):
    """An agent."""

    code = "T1"
    limit: int = 5

    def ask(self, message: str, *, loud: bool = False) -> str:
        """Ask it."""
        return message


class Hook(Protocol):
    """What acts."""

    def act(self) -> None:
        """Act."""


TABLE = ("one",)


def run(message: str) -> str:
    """Run it."""
    return message
'''

INIT: Final = '''\
"""A toy."""

from __future__ import annotations

from importlib.metadata import version
from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)

from adk_fluent._words import TABLE, Agent, Hook, run

__version__ = version("adk-fluent-core")
__all__ = ["TABLE", "Agent", "Hook", "run"]
'''

COMMAND: Final = '''\
"""Its command."""

from __future__ import annotations

import sys

import adk_fluent

__all__ = ["main"]


def main() -> None:
    """Print the version, or what it was given."""
    given = sys.argv[1:]
    print(adk_fluent.__version__ if given == ["--version"] else given)
'''

LAYER: Final = '''\
"""A layer."""

from __future__ import annotations

from adk_fluent import Agent

__all__ = ["Suite"]


class Suite(Agent):
    """A suite."""

    def grade(self) -> int:
        """Grade it."""
        return 1
'''


@dataclass(frozen=True, slots=True)
class Toy:
    """A workspace of two packages, adk-fluent-core and adk-fluent-eval."""

    root: Path
    capture: pytest.CaptureFixture[str] | None = None

    @property
    def core(self) -> Path:
        return self.root / "packages" / "adk-fluent-core"

    @property
    def layer(self) -> Path:
        return self.root / "packages" / "adk-fluent-eval"

    @property
    def words(self) -> Path:
        """The module with core's public things."""
        return self.core / "src" / "adk_fluent" / "_words.py"

    @property
    def repository(self) -> Repository:
        return Repository(self.root)

    def write(self, path: str, text: str) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8", newline="\n")
        return target

    def edit(self, path: Path, old: str, new: str) -> None:
        text = path.read_text("utf-8")
        assert text.count(old) == 1, f"{old!r} in {path}"
        path.write_text(text.replace(old, new), "utf-8", newline="\n")

    def git(self, *arguments: str) -> str:
        return self.repository.git(*arguments)

    def commit(self, message: str = "Change something") -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)

    def release(self, *arguments: str | Path, expect: int = 0) -> str:
        """Run the command line; give what it printed, or on failure what it complained of."""
        assert self.capture is not None
        self.capture.readouterr()
        code = cli.main([str(each) for each in arguments], root=self.root)
        printed = self.capture.readouterr()
        assert code == expect, printed
        return (printed.err if code else printed.out).strip()


def _fill(toy: Toy) -> None:
    licence = (ROOT / "LICENSE").read_text("utf-8")
    pins = (ROOT / "tools" / "constraints" / "hashes.txt").read_text("utf-8")
    toy.write(".gitattributes", "* text=auto eol=lf\n")
    toy.write(".gitignore", "dist/\n__pycache__/\n")
    toy.write("LICENSE", licence)
    toy.write("tools/constraints/hashes.txt", pins)
    core = {
        "__init__.py": INIT,
        "_words.py": WORDS,
        "command.py": COMMAND,
        "py.typed": "",
    }
    layer = {
        "__init__.pyi": boundaries.MARKER,
        "eval/__init__.py": LAYER,
        "eval/py.typed": "",
    }
    for name, needs, points, wheel, files in (
        (
            "adk-fluent-core",
            "",
            POINTS,
            'packages = ["src/adk_fluent"]',
            core,
        ),
        (
            "adk-fluent-eval",
            '"adk-fluent-core>=0.1,<0.2"',
            "",
            'only-include = ["src/adk_fluent/eval"]\nsources = ["src"]',
            layer,
        ),
    ):
        folder = f"packages/{name}"
        facts = {"name": name, "needs": needs, "points": points, "wheel": wheel}
        toy.write(f"{folder}/pyproject.toml", MANIFEST.format(**facts))
        toy.write(f"{folder}/CHANGELOG.md", CHANGELOG.format(name=name))
        toy.write(f"{folder}/README.md", f"# {name}\n\nA toy, see [more](https://example.org).\n")
        toy.write(f"{folder}/LICENSE", licence)
        for path, text in files.items():
            toy.write(f"{folder}/src/adk_fluent/{path}", text)


@pytest.fixture(scope="session")
def own_git() -> Iterator[None]:
    """Git knows nothing of this machine and of the repository that the tests stand in."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
            patch.delenv(name, raising=False)
        patch.setenv("GIT_CONFIG_GLOBAL", "")
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        for role in ("AUTHOR", "COMMITTER"):
            patch.setenv(f"GIT_{role}_NAME", "Toy")
            patch.setenv(f"GIT_{role}_EMAIL", "toy@example.org")
            patch.setenv(f"GIT_{role}_DATE", "2026-01-02T03:04:05+00:00")
        yield


@pytest.fixture(scope="session")
def first_commit(own_git: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workspace as it was committed first; tests work on copies of it."""
    toy = Toy(tmp_path_factory.mktemp("toy") / "workspace")
    toy.root.mkdir()
    run("git", "init", "--quiet", "--initial-branch=main", toy.root, cwd=toy.root)
    _fill(toy)
    toy.commit("Begin")
    return toy.root


@pytest.fixture
def toy(first_commit: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Toy:
    """A workspace with one commit and no tag."""
    copy = tmp_path / "workspace"
    shutil.copytree(first_commit, copy)
    return Toy(copy, capsys)


@pytest.fixture
def released(toy: Toy) -> Toy:
    """A workspace whose packages are both released as 0.1.0."""
    for name in ("adk-fluent-core", "adk-fluent-eval"):
        toy.release("prepare", name, "0.1.0")
        toy.commit(f"Release {name} 0.1.0")
        toy.release("tag", name)
    for package in (toy.core, toy.layer):
        toy.edit(package / "CHANGELOG.md", "## Unreleased\n", "## Unreleased\n\n- A repair.\n")
    toy.commit("Repair something")
    return toy


@pytest.fixture(scope="session")
def built(first_commit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archives of both packages, as the tool built them of the first commit."""
    dist = tmp_path_factory.mktemp("built")
    repository = Repository(first_commit)
    for package in repository.packages():
        build(repository, package, dist)
    return dist


@pytest.fixture
def dist(built: Path, tmp_path: Path) -> Path:
    """A copy of them to do harm to."""
    return Path(shutil.copytree(built, tmp_path / "dist"))

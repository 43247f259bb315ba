"""What is released: the packages of a workspace, and the git repository they stand in."""

from __future__ import annotations

import difflib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import boundaries
from release.versions import Version

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT: Final = Path(__file__).resolve().parents[2]
CORE: Final = boundaries.CORE


class ReleaseError(Exception):
    """Something cannot be released so; the message is for the person at the terminal."""


def run(
    program: str | Path, *arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None
) -> str:
    """Run a program and return what it printed; its own words are the error's.

    Args:
        program: Its name or path.
        arguments: Its arguments.
        cwd: Where it runs.
        env: Variables beside ours.

    Raises:
        ReleaseError: It is absent or failed.
    """
    found = shutil.which(program)
    if found is None:
        raise ReleaseError(f"{program} is not installed")
    done = subprocess.run(
        [found, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONUTF8": "1", **(env or {})},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        said = f"{done.stdout}\n{done.stderr}".strip() or f"exit code {done.returncode}"
        words = [Path(program).name, *map(str, arguments)]
        shown = " ".join("..." if "\n" in word else word for word in words)
        raise ReleaseError(f"{shown}: {said}")
    return done.stdout


@dataclass(frozen=True)
class Package(boundaries.Package):
    """One package, as its manifest stands in the working tree."""

    @property
    def version(self) -> Version:
        """The version in the manifest.

        Raises:
            ReleaseError: It has another form than X.Y.Z.
        """
        text = self.manifest["project"]["version"]
        version = Version.parse(text)
        if version is None:
            raise ReleaseError(f"{self.name}/pyproject.toml: version {text!r} is not X.Y.Z")
        return version

    @property
    def tag(self) -> str:
        """The tag of the manifest's version."""
        return self.tag_of(self.version)

    def tag_of(self, version: Version) -> str:
        """Give the tag of a version of this package."""
        return f"{self.name}-v{version}"

    @property
    def stem(self) -> str:
        """How the names of its archives begin."""
        return f"{self.name.replace('-', '_')}-{self.version}"

    @property
    def changelog(self) -> Path:
        """Its changelog."""
        return self.path / "CHANGELOG.md"


@dataclass(frozen=True, slots=True)
class Repository:
    """The working tree of the workspace and its history."""

    root: Path

    def git(self, *arguments: str | Path) -> str:
        """Run git here and return what it printed, without the last line end."""
        return run("git", *arguments, cwd=self.root).rstrip("\n")

    def packages(self) -> list[Package]:
        """Give all packages, by name."""
        return [Package(each.path) for each in boundaries.packages(self.root)]

    def package(self, name: str) -> Package:
        """Give the package of that name.

        Raises:
            ReleaseError: There is none.
        """
        known = {each.name: each for each in self.packages()}
        if name in known:
            return known[name]
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"
        raise ReleaseError(f"no package is called {name!r}; {hint}")

    def changes(self) -> list[str]:
        """Give what is not committed, as `git status --short` has it."""
        return self.git("status", "--porcelain").splitlines()

    def branch(self) -> str:
        """Give the branch; empty when HEAD is detached."""
        return self.git("branch", "--show-current")

    def has_tag(self, tag: str) -> bool:
        """Whether there is a tag of this name."""
        return bool(self.git("tag", "--list", tag))

    def last_tag(self, package: Package) -> tuple[Version, str] | None:
        """Give the newest release before this commit, as far as this clone has its tag."""
        pattern = f"{package.name}-v*"
        here = self.git("tag", "--points-at", "HEAD").splitlines()
        released = [
            (version, tag)
            for tag in self.git("tag", "--merged", "HEAD", "--list", pattern).splitlines()
            if tag not in here and (version := Version.parse(tag.removeprefix(pattern[:-1])))
        ]
        return max(released, default=None)

    def files(self, package: Package) -> list[str]:
        """Give what a commit would hold of a package, relative to its folder."""
        listed = self.git(
            *("-C", package.path, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        )
        names = {name for name in listed.split("\0") if name}
        return sorted(name for name in names if (package.path / name).is_file())

"""Before a release: the edits that make it, and the tag that says it is made."""

from __future__ import annotations

import difflib
import re
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from release import api, changelog
from release.repository import CORE, Package, ReleaseError, Repository
from release.versions import BUMPS, Version

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date
    from pathlib import Path

_VERSION: Final = re.compile(r'^version = "[^"]*"$', re.MULTILINE)
_BOUND: Final = re.compile(rf'"{CORE}>=[^"]*"')


@dataclass(frozen=True, slots=True)
class Plan:
    """What a release changes.

    Attributes:
        package: What is released.
        version: As which version.
        edits: The new text of every file that changes.
        remarks: What the person who releases should know.
    """

    package: Package
    version: Version
    edits: dict[Path, str]
    remarks: list[str] = field(default_factory=list[str])

    def diff(self, root: Path) -> str:
        """The edits as a unified diff."""
        lines: list[str] = []
        for path, text in self.edits.items():
            old, name = path.read_text("utf-8"), path.relative_to(root).as_posix()
            rows = (old.splitlines(keepends=True), text.splitlines(keepends=True))
            lines += difflib.unified_diff(*rows, f"a/{name}", f"b/{name}")
        return "".join(lines)

    def write(self) -> None:
        """Make the edits."""
        for path, text in self.edits.items():
            path.write_text(text, "utf-8", newline="\n")


def plan(
    repository: Repository,
    package: Package,
    wanted: str,
    *,
    day: date,
    branch: str = "main",
    accept_breaking: bool = False,
) -> Plan:
    """Plan a release; nothing is written.

    Args:
        repository: Where.
        package: What.
        wanted: ``major``, ``minor``, ``patch`` or a version.
        day: The day of the release.
        branch: The branch it is made from.
        accept_breaking: Whether the version may be smaller than the changes to the API ask.

    Raises:
        ReleaseError: It cannot be released so; the message lists every reason.
    """
    version = _version(repository, package, wanted)
    history = changelog.read(package.changelog)
    wrong = [*_state(repository, branch), *_order(repository, package, version)]
    if history.unreleased.empty:
        wrong.append(f"{package.name}/CHANGELOG.md: nothing stands under '{changelog.OPEN}'")
    if history.release(version):
        wrong.append(f"{package.name}/CHANGELOG.md: already has a section for {version}")
    report = api.compare(repository, package)
    small = report.too_small(version)
    if small and not accept_breaking:
        wrong.append(f"{small} (`api {package.name}` lists them; --accept-breaking overrules)")
    if wrong:
        raise ReleaseError("\n".join(wrong))
    manifest = package.path / "pyproject.toml"
    made = Plan(package, version, {}, [small] if small else [])
    if version != package.version:
        made.edits[manifest] = _with_version(manifest, version)
    made.edits[package.changelog] = history.released(version, day).text
    if package.name == CORE and version[:2] != package.version[:2]:
        _move_bounds(repository, made)
    return made


def tag(repository: Repository, package: Package, *, branch: str = "main", dry: bool) -> str:
    """Tag HEAD as the version of the manifest, with the changelog's section as the message.

    Returns:
        The tag's name.

    Raises:
        ReleaseError: It cannot be tagged so; the message lists every reason.
    """
    section = changelog.read(package.changelog).release(package.version)
    wrong = [*_state(repository, branch)]
    if repository.has_tag(package.tag):
        wrong.append(f"tag {package.tag} exists")
    if section is None:
        wrong.append(
            f"{package.name}/CHANGELOG.md: has no section for {package.version}; "
            f"run: python -m tools.release prepare {package.name} {package.version}"
        )
    if wrong or section is None:
        raise ReleaseError("\n".join(wrong))
    if not dry:
        message = f"{package.name} {package.version}\n\n{section.body.strip()}\n"
        # the default clean-up would take the headings of the changelog for comments
        repository.git("tag", "--annotate", "--cleanup=whitespace", "-m", message, package.tag)
    return package.tag


def _version(repository: Repository, package: Package, wanted: str) -> Version:
    for bump in BUMPS:
        if wanted == bump:
            if not repository.has_tag(package.tag):
                raise ReleaseError(
                    f"{package.name} {package.version} has no tag, so it is no release to count "
                    f"from; name the version (or fetch the tags: git fetch --tags)"
                )
            return package.version.bumped(bump)
    version = Version.parse(wanted)
    if version is None:
        raise ReleaseError(f"expected {', '.join(BUMPS)} or a version X.Y.Z, found {wanted!r}")
    return version


def _state(repository: Repository, branch: str) -> Iterator[str]:
    changes = repository.changes()
    if changes:
        more = f" and {len(changes) - 3} more" if len(changes) > 3 else ""
        yield f"there are uncommitted changes: {', '.join(changes[:3])}{more}"
    current = repository.branch()
    if current != branch:
        found = f"on branch {current}" if current else "at no branch (HEAD is detached)"
        yield f"releases are made on branch {branch}, this is {found}; see --branch"


def _order(repository: Repository, package: Package, version: Version) -> Iterator[str]:
    if repository.has_tag(package.tag_of(version)):
        yield f"tag {package.tag_of(version)} exists"
    elif version < package.version:
        yield f"{version} is before {package.version}, the version of {package.name}"


def _with_version(manifest: Path, version: Version) -> str:
    text, found = _VERSION.subn(f'version = "{version}"', manifest.read_text("utf-8"))
    where = f"{manifest.parent.name}/{manifest.name}"
    if found != 1 or tomllib.loads(text)["project"].get("version") != str(version):
        raise ReleaseError(f'{where}: expected one line version = "X.Y.Z", under [project]')
    return text


def _move_bounds(repository: Repository, made: Plan) -> None:
    """Let everything that builds on core ask for its new minor series, and say so."""
    series = f"{made.version.major}.{made.version.minor}"
    layers = {each.path for each in repository.packages()}
    for manifest in sorted(repository.root.glob("*/*/pyproject.toml")):
        text = manifest.read_text("utf-8")
        moved = _BOUND.sub(f'"{CORE}{made.version.bound}"', text)
        if moved == text:
            continue
        made.edits[manifest] = moved
        if manifest.parent in layers:
            path = manifest.parent / "CHANGELOG.md"
            made.edits[path] = changelog.read(path).noted(f"Needs {CORE} {series}.").text
            made.remarks.append(
                f"{manifest.parent.name} now needs {CORE} {series}; release it after core"
            )

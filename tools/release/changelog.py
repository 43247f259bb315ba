"""A changelog: what is unreleased, then the releases, the newest first.

Its sections are headed ``## Unreleased`` and ``## 1.2.3 (2026-01-31)``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from release.repository import ReleaseError
from release.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OPEN: Final = "## Unreleased"

_RELEASED: Final = re.compile(r"## (?P<version>\S+) \((?P<day>\d{4}-\d\d-\d\d)\)", re.ASCII)
_FENCE: Final = re.compile(r" {0,3}(```|~~~)")
_CHANGED: Final = re.compile(r"^### Changed\n+", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Section:
    """One release, or what comes next (version None).

    Attributes:
        heading: Its heading, without the line end.
        body: What stands below the heading, as written.
        version: The version.
    """

    heading: str
    body: str
    version: Version | None

    @property
    def empty(self) -> bool:
        """Whether nothing but headings stands in it."""
        lines = (line.strip() for line in self.body.splitlines())
        return all(not line or line.startswith("#") for line in lines)


@dataclass(frozen=True, slots=True)
class Changelog:
    """A changelog that was read and found in order."""

    head: str
    sections: tuple[Section, ...]

    @property
    def text(self) -> str:
        """The file's text."""
        return self.head + "".join(f"{each.heading}\n{each.body}" for each in self.sections)

    @property
    def unreleased(self) -> Section:
        """What the next release brings."""
        return self.sections[0]

    def release(self, version: Version) -> Section | None:
        """Give the section of a release."""
        return next((each for each in self.sections if each.version == version), None)

    def released(self, version: Version, day: date) -> Changelog:
        """Make what is unreleased that release."""
        first, *rest = self.sections
        made = Section(f"## {version} ({day.isoformat()})", first.body, version)
        return replace(self, sections=(Section(OPEN, "\n", None), made, *rest))

    def noted(self, entry: str) -> Changelog:
        """Add an entry to what has changed and is unreleased."""
        first, *rest = self.sections
        body, found = _CHANGED.subn(lambda _: f"### Changed\n\n- {entry}\n", first.body, count=1)
        if not found:
            body = f"{first.body.rstrip()}\n\n### Changed\n\n- {entry}\n".lstrip("\n")
            body = f"\n{body}\n" if rest else f"\n{body}"
        return replace(self, sections=(replace(first, body=body), *rest))


def parse(text: str, where: str) -> Changelog:
    """Read a changelog.

    Args:
        text: Its text.
        where: Its name, for the errors.

    Raises:
        ReleaseError: It is not in order; the message lists everything that is wrong.
    """
    head, *parts = _split(text)
    sections: list[Section] = []
    wrong: list[str] = []
    for number, part in parts:
        heading, _, body = part.partition("\n")
        found = _RELEASED.fullmatch(heading)
        version = Version.parse(found["version"]) if found else None
        if heading != OPEN and (version is None or not _is_day(found["day"] if found else "")):
            wrong.append(
                f"{where}:{number}: expected '{OPEN}' or '## X.Y.Z (YYYY-MM-DD)', found {heading!r}"
            )
        sections.append(Section(heading, body, version))
    if [each.heading for each in sections].count(OPEN) != 1 or sections[0].heading != OPEN:
        wrong.append(f"{where}: the first section, and no other, has to be '{OPEN}'")
    versions = [each.version for each in sections if each.version]
    wrong += [
        f"{where}: {older} stands below {newer}; the newest comes first, and each once"
        for newer, older in pairwise(versions)
        if newer <= older
    ]
    if wrong:
        raise ReleaseError("\n".join(wrong))
    return Changelog(head[1], tuple(sections))


def read(path: Path) -> Changelog:
    """Read the changelog of a package.

    Raises:
        ReleaseError: It is absent or not in order.
    """
    where = f"{path.parent.name}/{path.name}"
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise ReleaseError(f"{where}: is absent") from None
    return parse(text, where)


def _split(text: str) -> Iterator[tuple[int, str]]:
    """Give what is before the first section, then the sections, each with its line number."""
    start, lines, fence = 1, list[str](), ""
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        if line.startswith("## ") and not fence:
            yield start, "".join(lines)
            start, lines = number, []
        elif found := _FENCE.match(line):
            fence = "" if fence == found[1] else fence or found[1]
        lines.append(line)
    yield start, "".join(lines)


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True

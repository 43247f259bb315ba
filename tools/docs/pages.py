"""The pages of the repository: which there are, in what order, and where their links lead.

The navigation of a package is the list item ``- pages:`` of its README, in that order. It is there
for readers on GitHub and PyPI as well; a page that is missing from it is a failure here.
"""

from __future__ import annotations

import posixpath
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GITHUB: Final = "https://github.com/adk-fluent/adk-fluent"
PREFIX: Final = "adk-fluent-"

_OURS = re.compile(re.escape(GITHUB) + r"/(?:blob|tree)/main(?:/|$)")
_LINK = re.compile(r"\]\(([^()\s]+)\)")
_NAVIGATION = re.compile(r"^- pages:.*\n(?:  .*\n)*", re.MULTILINE)
_FENCE = re.compile(r" *(```+|~~~+)(\w*)")
_PICTURES = {".gif", ".jpg", ".jpeg", ".png", ".svg", ".webp"}


@dataclass(frozen=True, slots=True)
class Package:
    """A wheel of the workspace.

    Attributes:
        folder: Where it is, from the root of the repository: ``packages/adk-fluent-core``.
        pages: Its README, then its pages in the order of the navigation, then its changelog.
    """

    folder: str
    pages: tuple[Page, ...]

    @property
    def name(self) -> str:
        """The wheel's name."""
        return posixpath.basename(self.folder)


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the repository, and its name in the site.

    Attributes:
        source: Its path from the root of the repository: ``packages/adk-fluent-core/README.md``.
        name: Its path in the site, without ending: ``core/index``.
    """

    source: str
    name: str


def packages(root: Path, problems: list[str]) -> list[Package]:
    """Every package, by name, core first, with its pages in order.

    Args:
        root: The repository.
        problems: What is wrong with the navigation is added here.
    """
    folders = [
        path.parent.relative_to(root).as_posix() for path in root.glob("packages/*/README.md")
    ]
    return [
        Package(folder, tuple(_pages(root, folder, problems)))
        for folder in sorted(folders, key=lambda each: (not each.endswith(f"{PREFIX}core"), each))
    ]


def others(root: Path) -> list[Page]:
    """Pages that belong to no package: the front page is the first."""
    pages = (Page("README.md", "index"), Page("CONTRIBUTING.md", "contributing"))
    return [page for page in pages if (root / page.source).exists()]


def _pages(root: Path, folder: str, problems: list[str]) -> Iterator[Page]:
    short = posixpath.basename(folder).removeprefix(PREFIX)
    yield Page(f"{folder}/README.md", f"{short}/index")
    there = {path.relative_to(root).as_posix() for path in root.glob(f"{folder}/docs/**/*.md")}
    listed = _navigation(root, f"{folder}/README.md")
    problems += [
        f"{source}: in no navigation; link it under '- pages:' in {folder}/README.md"
        for source in sorted(there - set(listed))
    ]
    for source in listed:
        if source not in there:
            problems.append(f"{folder}/README.md: '- pages:' links {source}, which is no page")
            continue
        name = posixpath.relpath(source, f"{folder}/docs").removesuffix(".md")
        yield Page(source, f"{short}/{name}")
    if (root / folder / "CHANGELOG.md").exists():
        yield Page(f"{folder}/CHANGELOG.md", f"{short}/changelog")


def _navigation(root: Path, readme: str) -> list[str]:
    """The pages that a README lists under ``- pages:``."""
    item = _NAVIGATION.search((root / readme).read_text("utf-8"))
    links = _LINK.findall(item[0]) if item else []
    return [path for link in links if (path := _path(link, readme)) is not None]


def _path(link: str, source: str) -> str | None:
    """What a link leads to, from the root of the repository; None when it leads elsewhere."""
    if ours := _OURS.match(link):
        path = link[ours.end() :]
    elif "://" in link or link.startswith(("mailto:", "#")):
        return None
    else:
        path = posixpath.join(posixpath.dirname(source), link)
    return posixpath.normpath(path.partition("#")[0])


class Stage:
    """Copies pages to where Sphinx reads them, with links of the site instead of GitHub's.

    Args:
        root: The repository.
        to: The folder that is written.
        pages: Every page of the site.

    Attributes:
        problems: What was wrong with the pages so far.
    """

    def __init__(self, root: Path, to: Path, pages: list[Page]) -> None:
        self.problems: list[str] = []
        self._root, self._to = root, to
        self._names = {page.source: page.name for page in pages}
        for page in pages:  # a link to a folder shows its README
            if posixpath.basename(page.source) == "README.md":
                self._names[posixpath.dirname(page.source) or "."] = page.name

    def add(self, page: Page, more: str = "") -> None:
        """Copy a page, with `more` behind it, and the pictures it shows."""
        text = (self._root / page.source).read_text("utf-8")
        path = self._to / f"{page.name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(self._lines(page, text)) + more, "utf-8")

    def _lines(self, page: Page, text: str) -> Iterator[str]:
        fence = ""
        for number, line in enumerate(text.splitlines(keepends=True), 1):
            place = f"{page.source}:{number}"
            if mark := _FENCE.match(line):
                if not fence:
                    fence = mark[1]
                    self._check_kind(mark[2], place)
                elif mark[1].startswith(fence) and not mark[2]:
                    fence = ""
            yield line if fence else self._line(line, page, place)

    def _line(self, line: str, page: Page, place: str) -> str:
        return _LINK.sub(lambda match: f"]({self._link(match[1], page, place)})", line)

    def _check_kind(self, kind: str, place: str) -> None:
        if kind == "mermaid":  # its program would come from a network, or be 3 MB of ours
            self.problems.append(f"{place}: a Mermaid block; show the SVG that .visualize() writes")

    def _link(self, link: str, page: Page, place: str) -> str:
        path = _path(link, page.source)
        if path is None:
            return link
        _, hash_, anchor = link.partition("#")
        here = posixpath.dirname(page.name)
        if (name := self._names.get(path)) is not None:
            return f"{posixpath.relpath(name, here or '.')}.md{hash_}{anchor}"
        there = self._root / path
        if not there.exists():
            self.problems.append(f"{place}: a link to {path}, which does not exist")
        elif there.suffix in _PICTURES:
            return self._picture(there, page)
        return f"{GITHUB}/{'tree' if there.is_dir() else 'blob'}/main/{path}{hash_}{anchor}"

    def _picture(self, there: Path, page: Page) -> str:
        """Copy a picture to a folder beside the page, and give the link to it."""
        copy = self._to / posixpath.dirname(page.name) / "pictures" / there.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if copy.exists() and copy.read_bytes() != there.read_bytes():
            self.problems.append(f"{page.source}: two pictures are called {there.name}")
        shutil.copyfile(there, copy)
        return f"pictures/{there.name}"

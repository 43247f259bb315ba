"""What must be true of a package's archives before anybody may install them."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import TYPE_CHECKING, Final

from packaging.metadata import Metadata
from packaging.requirements import Requirement
from readme_renderer import markdown
from trove_classifiers import classifiers as known_classifiers

import boundaries
from release import changelog
from release.build import archives, members
from release.repository import CORE, ReleaseError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from release.repository import Package, Repository

MARKER: Final = "src/adk_fluent/__init__.pyi"  # of a layer, see tools/boundaries.py

#: What the page of a package on PyPI links to.
LINKS: Final = frozenset({"Homepage", "Source", "Changelog", "Issues"})


def problems(
    repository: Repository, package: Package, dist: Path, *, tag: str | None = None
) -> list[str]:
    """List what is wrong with a package and its archives, each as one line to act on.

    Args:
        repository: Where.
        package: What.
        dist: The folder of its wheel and its sdist.
        tag: The tag that it is released by; None asks only what must hold between releases.

    Raises:
        ReleaseError: An archive is absent.
    """
    wheel, sdist = (members(path) for path in archives(package, dist))
    files = {name: (package.path / name).read_bytes() for name in repository.files(package)}
    found = [
        *_history(package, tag),
        *_contents(package, wheel, sdist, files),
        *_metadata(package, _info(package, wheel, "METADATA")),
        *_points(package, wheel),
        *(each for each in boundaries.violations(repository.root) if package.name in each),
    ]
    if wheel.get(_name(package, "licenses/LICENSE")) != (repository.root / "LICENSE").read_bytes():
        found.append("wheel: licenses/LICENSE is absent or not the LICENSE of the repository")
    return [f"{package.name}: {each.removeprefix(f'{package.name}: ')}" for each in found]


def _name(package: Package, file: str) -> str:
    return f"{package.stem}.dist-info/{file}"


def _info(package: Package, wheel: Mapping[str, bytes], file: str) -> str:
    return wheel.get(_name(package, file), b"").decode()


def _history(package: Package, tag: str | None) -> Iterator[str]:
    try:
        history = changelog.read(package.changelog)
    except ReleaseError as error:
        yield str(error)
        return
    released = history.release(package.version)
    if tag is None:
        if released is None and history.unreleased.empty:
            yield f"CHANGELOG.md: says nothing about {package.version}, the version to come"
        return
    if tag != package.tag:
        yield f"the tag is {tag}, the manifest's version asks for {package.tag}"
    if released is None or released.empty:
        yield f"CHANGELOG.md: has no section for {package.version}, or an empty one"


def _contents(
    package: Package,
    wheel: Mapping[str, bytes],
    sdist: Mapping[str, bytes],
    files: Mapping[str, bytes],
) -> Iterator[str]:
    """The wheel holds the sources and nothing else, the sdist everything; both as they are now."""
    sources = {
        name.removeprefix("src/"): text
        for name, text in files.items()
        if name.startswith("src/") and name != MARKER
    }
    notes = {"METADATA", "WHEEL", "RECORD", "licenses/LICENSE"}
    project = package.manifest["project"]
    if project.keys() & {"scripts", "entry-points"}:
        notes.add("entry_points.txt")
    yield from _differ("wheel", sources, {_name(package, each) for each in notes}, wheel)
    yield from _differ("sdist", files, {"PKG-INFO"}, sdist)
    typed = ["adk_fluent"] if package.name == CORE else [f"adk_fluent/{p}" for p in package.parts]
    yield from (
        f"wheel: {each}/py.typed is absent" for each in typed if f"{each}/py.typed" not in wheel
    )


def _differ(
    what: str, files: Mapping[str, bytes], notes: set[str], found: Mapping[str, bytes]
) -> Iterator[str]:
    expected = files.keys() | notes
    yield from (f"{what}: {name} is missing" for name in sorted(expected - found.keys()))
    yield from (f"{what}: {name} does not belong there" for name in sorted(found.keys() - expected))
    for name in sorted(files.keys() & found.keys()):
        if files[name] != found[name]:
            yield f"{what}: {name} is not what it is in the tree; build again"


def _metadata(package: Package, text: str) -> Iterator[str]:
    try:
        told = Metadata.from_email(text, validate=True)
    except ExceptionGroup as group:
        yield from (f"metadata: {error}" for error in group.exceptions)
        return
    project = package.manifest["project"]
    found = (told.name, str(told.version), str(told.requires_python), told.license_expression)
    expected = (package.name, str(package.version), project["requires-python"], "Apache-2.0")
    if found != expected:
        yield f"metadata: is {found}, expected {expected}"
    yield from _classifiers(set(told.classifiers or ()))
    yield from _links(package, told.project_urls or {})
    for requirement in told.requires_dist or ():
        if Requirement(str(requirement)).url:
            yield f"metadata: PyPI refuses the address in {str(requirement)!r}"
    if told.description_content_type != "text/markdown" or not told.description:
        yield "metadata: the README is absent or not declared as Markdown"
    else:
        yield from _readme(told.description)


def _classifiers(found: set[str]) -> Iterator[str]:
    for unknown in sorted(found - known_classifiers):
        yield f"metadata: no classifier is called {unknown!r}"
    for barred in sorted(each for each in found if each.startswith(("Private ::", "License ::"))):
        yield f"metadata: {barred!r} bars it from PyPI, or says again what the licence says"
    if "Typing :: Typed" not in found:
        yield "metadata: the classifier 'Typing :: Typed' is absent"


def _links(package: Package, found: Mapping[str, str]) -> Iterator[str]:
    for absent in sorted(LINKS - found.keys()):
        yield f"metadata: there is no link {absent}"
    home = found.get("Homepage", "")
    for label, address in found.items():
        if not address.startswith("https://") or not address.startswith(home):
            yield f"metadata: {label} is {address}, expected a page below {home or 'https://'}"
    for label, path in (("Source", ""), ("Changelog", "/CHANGELOG.md")):
        if not found.get(label, "").endswith(f"/packages/{package.name}{path}"):
            yield f"metadata: {label} is not the package's own"


def _readme(text: str) -> Iterator[str]:
    rendered = markdown.render(text, variant="GFM")
    if not rendered:
        yield "README.md: PyPI's renderer cannot render it"
        return
    reader = _Targets()
    reader.feed(rendered)
    for target in reader.found:
        if not target.startswith(("https://", "#", "mailto:")):
            yield f"README.md: {target} leads nowhere on PyPI; write the whole address"


class _Targets(HTMLParser):
    """Where links and pictures of a page lead."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag refers to."""
        self.found += [value or "" for name, value in attrs if name in {"href", "src"}]


def _points(package: Package, wheel: Mapping[str, bytes]) -> Iterator[str]:
    """Every entry point names a module of the wheel; smoke imports them."""
    project = package.manifest["project"]
    groups = {"console_scripts": project.get("scripts", {}), **project.get("entry-points", {})}
    for group, points in groups.items():
        for name, target in points.items():
            module = target.partition(":")[0].replace(".", "/")
            if not {f"{module}.py", f"{module}/__init__.py"} & wheel.keys():
                yield f"{group} {name}: the wheel has no module {target.partition(':')[0]}"

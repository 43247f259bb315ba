"""The public surface of a package: names, signatures, and what its manifest promises.

It is read from sources by griffe, without importing them. Public is what a module without a
leading underscore lists in ``__all__``, and the members of that which have no leading underscore.
"""

from __future__ import annotations

import shutil
import tarfile
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import griffe

from release.repository import CORE, Package, Repository

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_RAISED_BY_ALIASES: Final = (griffe.AliasResolutionError, griffe.CyclicAliasError)


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that users can rely on.

    Attributes:
        path: What users call it.
        home: Where it is defined.
        text: What it is: a signature, a type and a value.
        value: The value of an attribute, as written.
        demanding: Whether users have to do something when it is new: a field that must be given,
            a method that an implementation of a protocol must have.
    """

    path: str
    home: str
    text: str
    value: str = ""
    demanding: bool = False

    @property
    def owner(self) -> str:
        """The path of what it is a member of."""
        return self.path.rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class Surface:
    """Everything public of a package at one time.

    Attributes:
        items: By path.
        tree: What griffe read.
    """

    items: Mapping[str, Item]
    tree: griffe.Module = field(repr=False)


def surface(repository: Repository, package: Package, ref: str | None, folder: Path) -> Surface:
    """Read the public surface of a package.

    Args:
        repository: Where.
        package: What.
        ref: The commit to read; None reads the working tree.
        folder: An empty folder to put sources in.

    Raises:
        ReleaseError: The commit does not exist or has no such package.
    """
    names = dict.fromkeys([CORE, package.name])  # a layer derives from classes of core
    sources = repository.root
    if ref is not None:
        sources, archive = folder / "sources", folder / "sources.tar"
        wanted = [f"packages/{name}/{each}" for name in names for each in ("src", "pyproject.toml")]
        repository.git("archive", "--format=tar", f"--output={archive}", ref, "--", *wanted)
        with tarfile.open(archive) as opened:
            opened.extractall(sources, filter="data")
    merged = folder / "merged"
    for name in names:
        shutil.copytree(sources / "packages" / name / "src", merged, dirs_exist_ok=True)
    (merged / "adk_fluent" / "__init__.pyi").unlink(missing_ok=True)
    there = Package(sources / "packages" / package.name)
    return read(merged, there)


def read(merged: Path, package: Package) -> Surface:
    """Read the public surface of a package whose sources stand beside core's in `merged`."""
    tree = griffe.load(
        "adk_fluent", search_paths=[merged], allow_inspection=False, resolve_aliases=True
    )
    if not isinstance(tree, griffe.Module):
        raise TypeError(f"adk_fluent is {tree!r}")
    items = [*_promises(package.manifest)]
    for module in _modules(tree):
        part = module.path.partition(".")[2].partition(".")[0]
        if package.name == CORE or part in package.parts:
            items.append(Item(module.path, module.path, "module"))
            for name in module.exports or ():
                items += _items(f"{module.path}.{name}", module.members.get(str(name)))
    return Surface({each.path: each for each in items}, tree)


def _promises(manifest: Mapping[str, Any]) -> Iterator[Item]:
    """What a manifest promises: commands, entry points, extras, supported versions."""
    project = manifest["project"]
    points = {"command": project.get("scripts", {}), **project.get("entry-points", {})}
    for group, named in points.items():
        for name in named:
            yield Item(f"{group} {name}", "", "provided")
    for extra in project.get("optional-dependencies", {}):
        yield Item(f"extra {extra}", "", "provided")
    floors = {"Python": project["requires-python"]}
    for requirement in project.get("dependencies", ()):
        name, _, rest = requirement.partition(">=")
        floors[name] = f">={rest}"
    for name in floors.keys() & {"Python", "google-adk"}:
        yield Item(f"oldest {name}", "", floors[name].partition(",")[0])


def _modules(module: griffe.Module) -> Iterator[griffe.Module]:
    yield module
    for name, member in sorted(module.members.items()):
        if isinstance(member, griffe.Module) and not name.startswith("_"):
            yield from _modules(member)


def _items(path: str, member: griffe.Object | griffe.Alias | None) -> Iterator[Item]:
    """Describe what is at `path`, and its members."""
    if member is None:
        yield Item(path, path, "listed in __all__ and not found")
        return
    try:
        found = member.final_target if isinstance(member, griffe.Alias) else member
    except _RAISED_BY_ALIASES:
        yield Item(path, path, "of another package")
        return
    if isinstance(found, griffe.Module):
        return  # it is visited as a module
    value = found.value if isinstance(found, griffe.Attribute) else None
    yield Item(path, found.path, describe(found), "" if value is None else str(value))
    if isinstance(found, griffe.Class):
        bases = {str(base).partition("[")[0].rpartition(".")[2] for base in found.bases}
        for name, each in found.all_members.items():
            if not name.startswith("_"):
                for item in _items(f"{path}.{name}", each):
                    yield _demanding(item, each, bases) if item.owner == path else item
            elif name.endswith("__") and _is_function(each):
                yield from _items(f"{path}.{name}", each)


def _is_function(member: griffe.Object | griffe.Alias) -> bool:
    try:
        return member.is_function
    except _RAISED_BY_ALIASES:
        return False


def _demanding(item: Item, member: griffe.Object | griffe.Alias, bases: set[str]) -> Item:
    found = member.final_target if isinstance(member, griffe.Alias) else member
    unset = (
        isinstance(found, griffe.Attribute)
        and found.value is None
        and not found.has_labels("property")
        and "TypedDict" not in bases  # ours are all total=False
    )
    return replace(item, demanding=unset or "Protocol" in bases)


def describe(found: griffe.Object) -> str:
    """Say on one line what something is."""
    match found:
        case griffe.Class():
            return f"class {found.name}({', '.join(map(str, found.bases))})"
        case griffe.Function():
            word = "async def" if found.has_labels("async") else "def"
            forms = [each.signature(return_type=True) for each in found.overloads or [found]]
            return f"{word} {' | '.join(forms)}"
        case griffe.Attribute():
            word = "property " if found.has_labels("property") else ""
            value = "" if found.value is None else f" = {found.value}"
            kind = "" if found.annotation is None else f": {found.annotation}"
            return f"{word}{found.name}{kind}{value}"
        case _:
            return f"{found.kind.value} {found.name}"

"""The public modules of every package, read from their sources without running them."""

from __future__ import annotations

import logging
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast

import griffe

from docs.problems import DocsError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROOT_MODULE: Final = "adk_fluent"
_DOCSTRINGS: Final[griffe.GoogleOptions] = {
    "returns_multiple_items": False,
    "returns_named_value": False,
}


@dataclass(slots=True)
class Sources:
    """What the packages define.

    Attributes:
        modules: The public modules: no name in their path begins with an underscore, and they have
            ``__all__``. By path, those with short paths first.
        merged: The folder that has the sources of all packages.
        files: Where each of them is in the repository, by its path in `merged`.
        homes: Where the reference describes something, by the path of its definition: the first of
            the modules that export it.
    """

    modules: dict[str, griffe.Module]
    merged: Path
    files: dict[str, str]
    homes: dict[str, str] = field(default_factory=dict[str, str])

    def names(self, module: str) -> dict[str, griffe.Object]:
        """What a module exports, by name, as it is defined."""
        found = self.modules[module]
        return {name: target(found.members[name]) for name in exports(found)}

    def place(self, thing: griffe.Object) -> tuple[str, int]:
        """The file that defines something, from the root of the repository, and the line."""
        return self.files[file_of(thing).relative_to(self.merged).as_posix()], thing.lineno or 1

    def where(self, thing: griffe.Object) -> str:
        """The same as text: ``path:line``."""
        return "{}:{}".format(*self.place(thing))


def load(root: Path, merged: Path) -> Sources:
    """Read the sources of all packages, merged as their wheels are in an environment.

    Args:
        root: The repository.
        merged: An empty folder.

    Raises:
        DocsError: A module exports what it does not have, or a docstring is malformed.
    """
    files: dict[str, str] = {}
    for source in sorted(root.glob(f"packages/*/src/{ROOT_MODULE}")):
        for path in source.rglob("*.py"):
            name = path.relative_to(source.parent).as_posix()
            files[name] = path.relative_to(root).as_posix()
            (merged / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, merged / name)
    loader = griffe.GriffeLoader(
        search_paths=[merged],
        docstring_parser="google",
        docstring_options=_DOCSTRINGS,
        allow_inspection=False,
    )
    top = cast("griffe.Module", loader.load(ROOT_MODULE, try_relative_path=False))
    loader.resolve_aliases(external=False)
    public = sorted(_public(top), key=lambda each: (each.path.count("."), each.path))
    found = Sources({each.path: each for each in public}, merged, files)
    found.homes = _homes(found)
    return found


def _public(module: griffe.Module) -> Iterator[griffe.Module]:
    if module.exports is not None:
        yield module
    for name, each in module.modules.items():
        if not each.is_alias and not name.startswith("_"):
            yield from _public(each)


def exports(module: griffe.Module) -> list[str]:
    """The names in a module's ``__all__``."""
    return [str(name) for name in module.exports or ()]


def target(thing: griffe.Object | griffe.Alias) -> griffe.Object:
    """What an imported name stands for."""
    return thing.final_target if isinstance(thing, griffe.Alias) else thing


def file_of(thing: griffe.Object) -> Path:
    """The file that defines something."""
    return cast("Path", thing.filepath)  # a list only of folders without __init__.py


def _homes(found: Sources) -> dict[str, str]:
    homes: dict[str, str] = {}
    problems: list[str] = []
    for path, module in found.modules.items():
        for name in exports(module):
            if name not in module.members:
                problems.append(f"{found.where(module)}: exports {name}, which it does not have")
                continue
            try:
                homes.setdefault(target(module.members[name]).path, f"{path}.{name}")
            except griffe.AliasResolutionError as error:
                problems.append(f"{found.where(module)}: {name}: {error}")
    if problems:
        raise DocsError(problems)
    return homes


def comment(thing: griffe.Object) -> str:
    """What ``#:`` lines above something say of it, or beside it."""
    lines = thing.lines_collection[file_of(thing)]
    at = (thing.lineno or 1) - 1
    _, mark, beside = lines[at].partition("#:")
    above: list[str] = []
    while at > 0 and lines[at - 1].strip().startswith("#:"):
        at -= 1
        above.insert(0, lines[at].strip().removeprefix("#:").removeprefix(" "))
    return "\n".join([*above, beside.strip()] if mark else above)


def docstring(thing: griffe.Object) -> griffe.Docstring | None:
    """The docstring of something, or the comment that stands for it."""
    if thing.docstring is not None:
        return thing.docstring
    text = comment(thing) if thing.is_attribute else ""
    return griffe.Docstring(text, parent=thing, parser="google") if text else None


class Complaints(logging.Handler):
    """Keeps what Griffe finds wrong with docstrings."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one."""
        self.heard.append(record.getMessage())

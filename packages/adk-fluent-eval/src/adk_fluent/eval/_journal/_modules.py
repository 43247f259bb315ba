"""Modules and their files: what imports what, and whose each is."""

from __future__ import annotations

import ast
import hashlib
import sys
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Whose code is known by its names: it changes with its version alone.
_LIBRARIES: Final = sys.stdlib_module_names | {"adk_fluent", "google", "pydantic", "pydantic_core"}


class Import(NamedTuple):
    """An import in a function: what, from how far up, and which names of it."""

    name: str
    level: int
    names: tuple[str, ...]


def read_source(source: bytes) -> tuple[str, tuple[Import, ...]]:
    """The digest of a file, but for its comments if it is Python, and what it imports."""
    try:
        tree = ast.parse(source)
        text = _digest(ast.dump(tree).encode("utf-8", "surrogatepass"))
    except (SyntaxError, ValueError, RecursionError):
        return _digest(source), ()
    found: list[Import] = []
    for each in ast.walk(tree):
        if isinstance(each, ast.Import):
            found += [Import(alias.name, 0, ()) for alias in each.names]
        elif isinstance(each, ast.ImportFrom):
            names = tuple(alias.name for alias in each.names)
            found.append(Import(each.module or "", each.level, names))
    return text, tuple(found)


def modules_of(imports: Sequence[Import], package: str) -> Iterator[str]:
    """The modules that may be meant: packages, too, and what may be a module or not."""
    for name, level, names in imports:
        base = package.split(".")[: len(package.split(".")) - level + 1] if level else []
        parts = [*base, *name.split(".")] if name else base
        for end in range(1, len(parts) + 1):
            yield ".".join(parts[:end])
        yield from (".".join((*parts, each)) for each in names if each != "*")


def file_of(name: str) -> tuple[str | None, bool]:
    """The file of a module, which is not imported for it, and whether it is a package."""
    main = sys.modules.get(name) if name == "__main__" else None
    if main is not None:
        return getattr(main, "__file__", None), False
    places: Any = None
    spec = None
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        spec = PathFinder.find_spec(".".join(parts[:end]), places) if places else _top(name)
        if spec is None:
            return None, False
        places = spec.submodule_search_locations
        if places is None and end < len(parts):
            return None, False
    if spec is None:
        return None, False
    return (spec.origin if spec.has_location else None), places is not None


def is_library(module: str) -> bool:
    """Whether its code changes with its version alone."""
    return module.partition(".")[0] in _LIBRARIES


def is_near(module: str, home: str) -> bool:
    """Whether it is a module of the user's, or was installed with the package of `home`."""
    package = module.partition(".")[0]
    return package == home.partition(".")[0] or is_users(module)


def is_users(module: str) -> bool:
    """Whether it is of the user's own, and no package that is installed."""
    return not is_library(module) and not _is_installed(module.partition(".")[0])


def _top(module: str) -> ModuleSpec | None:
    """The specification of a package, which is not imported for it."""
    try:
        return find_spec(module.partition(".")[0])
    except ValueError:  # somebody made it without one
        return None


@cache
def _is_installed(package: str) -> bool:
    if package == "builtins":
        return True
    module = sys.modules.get(package)
    spec = _top(package) if module is None else None
    places = [getattr(module, "__file__", None) or "", *(getattr(module, "__path__", None) or ())]
    if spec is not None:
        places = [spec.origin or "", *(spec.submodule_search_locations or ())]
    parts = {part for each in places for part in PurePath(each).parts}
    return not parts.isdisjoint({"site-packages", "dist-packages"})


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]

"""The rules between the packages of a workspace, read from its sources and manifests.

- Layers meet only through core: a package imports no part of `adk_fluent` that another brings,
  and depends on core alone.
- Layers use core's public names: no module or name with a leading underscore, and none that its
  module leaves out of ``__all__``; not in a function, and not for type checkers alone either.
- Core owns `adk_fluent/__init__.py`; every other package ships its parts, each with a py.typed,
  and keeps in its source tree the one-line marker that lets pyright see them.
- google.adk is imported only under `backends/adk/` and in files called `_adk.py` or `*_adk.py`.
- Modules import each other in one direction. Imports for types alone and imports inside functions
  count as well, and none is exempt: one that is deferred to keep ADK lazy needs no way back.

`violations(root)` lists what breaks them. As a program: ``python tools/boundaries.py [root]``.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

CORE = "adk-fluent-core"
MARKER = """\
# Development only, never in the wheel: lets pyright see this portion of adk_fluent.
from adk_fluent._public import *
"""


@dataclass(frozen=True, slots=True)
class Import:
    """One absolute name that a module imports, and whether importing the module runs it."""

    name: str
    line: int
    at_import: bool


@dataclass(frozen=True)
class Package:
    """One directory under packages/."""

    path: Path

    @property
    def name(self) -> str:
        """The directory's name, which is also the distribution's."""
        return self.path.name

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The parsed pyproject.toml."""
        return tomllib.loads((self.path / "pyproject.toml").read_text("utf-8"))

    @property
    def source(self) -> Path:
        """The package's portion of adk_fluent."""
        return self.path / "src" / "adk_fluent"

    @property
    def parts(self) -> frozenset[str]:
        """The subpackages of adk_fluent that this package brings."""
        return frozenset(path.name for path in self.source.iterdir() if any(path.glob("*.py")))

    @cached_property
    def modules(self) -> dict[str, Path]:
        """Dotted name -> file, for every module of the package."""
        return {self._dotted(path): path for path in sorted(self.source.rglob("*.py"))}

    def _dotted(self, path: Path) -> str:
        parts = path.relative_to(self.source.parent).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path, module: str) -> Iterator[Import]:
    """Give every import of a file, relative ones resolved against the module's name.

    `from a import b` gives `a.b`, since b may be a module. Imports inside functions and under
    `if TYPE_CHECKING:` are not run when the module is imported.
    """
    package = module if path.stem == "__init__" else module.rpartition(".")[0]
    yield from _imports(path.read_text("utf-8"), package)


@cache  # several rules ask for the same
def _imports(text: str, package: str) -> tuple[Import, ...]:
    return tuple(_found_imports(ast.parse(text), package))


def _found_imports(tree: ast.Module, package: str) -> Iterator[Import]:
    waiting: list[tuple[ast.AST, bool]] = [(tree, True)]
    while waiting:
        node, at_import = waiting.pop()
        match node:
            case ast.Import():
                for alias in node.names:
                    yield Import(alias.name, node.lineno, at_import)
            case ast.ImportFrom():
                base = package.split(".")[: len(package.split(".")) - node.level + 1]
                stem = [*(base if node.level else []), *((node.module or "").split("."))]
                for alias in node.names:
                    name = ".".join(part for part in [*stem, alias.name] if part)
                    yield Import(name, node.lineno, at_import)
            case ast.Call(args=[ast.Constant(value=str(name)), *_]) if _imports_by_name(node):
                yield Import(name, node.lineno, at_import)
            case _:
                pass
        deferred = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        typing_only = node.body if isinstance(node, ast.If) and _is_type_checking(node) else []
        waiting.extend(
            (child, at_import and not deferred and child not in typing_only)
            for child in ast.iter_child_nodes(node)
        )


def _imports_by_name(call: ast.Call) -> bool:
    return ast.unparse(call.func).rpartition(".")[2] in {"import_module", "__import__"}


def _is_type_checking(node: ast.If) -> bool:
    return ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def packages(root: Path) -> list[Package]:
    """Give the packages of a workspace, by name."""
    return [Package(path.parent) for path in sorted(root.glob("packages/*/pyproject.toml"))]


def violations(root: Path) -> list[str]:
    """List what breaks the rules in the workspace at `root`, each as one line to act on."""
    members = packages(root)
    core = next(package for package in members if package.name == CORE)
    found = [*_cycles(members)]
    for package in members:
        others = {
            part: other.name
            for other in members
            if other not in (package, core)
            for part in other.parts
        }
        found += _manifest(package, core)
        found += _strangers(package, others)
        if package is not core:
            found += private_imports(package, core)
            found += _layout(package)
    return found


def _strangers(package: Package, others: dict[str, str]) -> Iterator[str]:
    for module, path in package.modules.items():
        where = path.relative_to(package.path.parent).as_posix()
        for found in imports(path, module):
            top, *rest = found.name.split(".")
            owner = others.get(rest[0]) if top == "adk_fluent" and rest else None
            if owner:
                yield (
                    f"{where}:{found.line}: imports {found.name} of {owner}; "
                    "layers meet in adk_fluent.ir, adk_fluent.protocol and adk_fluent.extend"
                )
            if top == "google" and found.at_import and not _may_import_adk(path):
                yield (
                    f"{where}:{found.line}: imports {found.name}; google.* belongs in "
                    "backends/adk/ or in a file called _adk.py"
                )


def private_imports(package: Package, core: Package) -> Iterator[str]:
    """Name what a package imports of core that is not public, wherever in a file."""
    for module, path in package.modules.items():
        where = path.relative_to(package.path.parent).as_posix()
        for found in imports(path, module):
            top, *parts = found.name.split(".")
            if top != "adk_fluent" or not parts or parts[0] in package.parts:
                continue
            home = _nearest(found.name, core.modules)
            member = found.name.removeprefix(home)[1:].partition(".")[0]
            if any(part.startswith("_") and not part.endswith("__") for part in parts):
                why = f"which is private to {core.name}"
            elif member not in {
                "",
                "*",
                *(_exports(core.modules[home].read_text("utf-8")) or [member]),
            }:
                why = f"which {home} does not list in __all__"
            else:
                continue
            yield (
                f"{where}:{found.line}: imports {found.name}, {why}; use a public name, "
                "or publish it in adk_fluent.extend"
            )


@cache
def _exports(text: str) -> list[str] | None:
    """Read a module's ``__all__``; None if it has none."""
    for node in ast.parse(text).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                return ast.literal_eval(value)
            case _:
                pass
    return None


def _may_import_adk(path: Path) -> bool:
    return path.stem.endswith("_adk") or "backends/adk/" in path.as_posix()


def _manifest(package: Package, core: Package) -> Iterator[str]:
    project = package.manifest["project"]
    where = f"{package.name}/pyproject.toml"
    if project["name"] != package.name:
        yield f"{where}: is called {project['name']}, its directory {package.name}"
    for key in ("requires-python", "license"):
        if project.get(key) != core.manifest["project"][key]:
            yield f"{where}: {key} differs from core's"
    extras = project.get("optional-dependencies", {}).values()
    requirements = [*project["dependencies"], *(item for extra in extras for item in extra)]
    ours = [item for item in requirements if item.startswith("adk-fluent")]
    major, minor, *_ = core.manifest["project"]["version"].split(".")
    bound = f"{CORE}>={major}.{minor},<{major}.{int(minor) + 1}"
    expected = [] if package is core else [bound]
    if ours != expected:
        yield f"{where}: depends on {ours} of ours, expected {expected}"


def _layout(package: Package) -> Iterator[str]:
    where = f"{package.name}/src/adk_fluent"
    if (package.source / "__init__.py").exists():
        yield f"{where}/__init__.py: only core has one"
    marker = package.source / "__init__.pyi"
    if not marker.exists() or marker.read_text("utf-8") != MARKER:
        yield f"{where}/__init__.pyi: is not the marker in tools/boundaries.py"
    for part in sorted(package.parts):
        if not (package.source / part / "py.typed").exists():
            yield f"{where}/{part}/py.typed: is absent"


def _cycles(members: list[Package]) -> Iterator[str]:
    """Name the modules of each import cycle, whenever its imports run.

    `import adk_fluent` alone is no edge: adk_fluent.ir looks at it while it is being imported.
    """
    modules = {module: path for package in members for module, path in package.modules.items()}
    graph = {
        module: {
            _nearest(found.name, modules)
            for found in imports(path, module)
            if found.name != "adk_fluent"
        }
        - {module, ""}
        for module, path in modules.items()
    }
    below = {module: _reached(graph, module) for module in graph}
    named: set[str] = set()
    for module in sorted(graph):
        cycle = {other for other in below[module] if module in below[other]}
        if cycle and module not in named:
            named |= cycle
            yield f"import cycle: {', '.join(sorted(cycle))}"


def _reached(graph: dict[str, set[str]], start: str) -> set[str]:
    """Give the modules that a module imports, directly or through others."""
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph[waiting.pop()] - reached
        reached |= new
        waiting.extend(new)
    return reached


def _nearest(name: str, modules: dict[str, Path]) -> str:
    """Give the module that `name` is or is a member of; empty when it is none of these."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name


def main() -> int:
    """Print what breaks the rules; the exit code is 1 when something does."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    found = violations(root)
    print("\n".join(found) or f"{len(packages(root))} package(s) keep to their boundaries")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

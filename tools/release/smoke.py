"""Install the archives as a user does, and use what they bring a little.

Needs the standard library and uv alone, so that it runs on any Python without the workspace.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from release.build import archives, members
from release.repository import ReleaseError, run

if TYPE_CHECKING:
    from collections.abc import Callable

    from release.repository import Package

#: Imports every module named, and everything that each says is public.
_IMPORTS: Final = """
import importlib, json, sys
for name in json.loads(sys.argv[1]):
    module = importlib.import_module(name)
    for each in module.__all__:
        getattr(module, each)
    print(name, module.__file__)
"""

_VERSION: Final = """
import sys
from importlib.metadata import version
import adk_fluent
print(version(sys.argv[1]), adk_fluent.__version__, version("adk-fluent-core"))
"""


@dataclass(frozen=True, slots=True)
class _Environment:
    """An environment outside of every source tree."""

    path: Path
    pins: Path | None

    def install(self, *what: str | Path) -> None:
        pins = () if self.pins is None else ("--constraints", self.pins)
        where = ("--no-config", "--python", self.path)
        run("uv", "pip", "install", "--quiet", *where, *pins, *what, cwd=self.path)

    def run(self, program: str, *arguments: str) -> str:
        folder = self.path / ("Scripts" if os.name == "nt" else "bin")
        return run(folder / program, *arguments, cwd=self.path, env={"PYTHONPATH": ""})

    def python(self, code: str, *arguments: str) -> str:
        return self.run("python", "-I", "-c", code, *arguments)


def smoke(
    package: Package,
    dist: Path,
    *,
    python: str = sys.executable,
    pins: Path | None = None,
    say: Callable[[str], None],
) -> None:
    """Install the wheel, then the sdist, into a fresh environment and use both.

    Args:
        package: What.
        dist: The folder of its archives; those of other packages there are found, too.
        python: The Python to try it with.
        pins: Versions of what it needs; without, they are the newest that it allows.
        say: What is told each step.

    Raises:
        ReleaseError: Something does not install, import or run.
    """
    dist = dist.resolve()
    wheel, sdist = archives(package, dist)
    modules = public_modules(package, wheel)
    with TemporaryDirectory() as folder:
        here = _Environment(Path(folder).resolve() / "venv", pins and pins.resolve())
        run("uv", "venv", "--quiet", "--no-project", "--python", python, here.path, cwd=dist)
        here.install("--find-links", dist, wheel)
        say(f"installed {wheel.name} for {here.run('python', '--version').strip()}")
        _versions(package, here)
        for command in _commands(package):
            here.run(*shlex.split(command))
            say(f"ran {command}")
        extras = ",".join(package.manifest["project"].get("optional-dependencies", {}))
        if extras:
            here.install("--find-links", dist, f"{wheel}[{extras}]")
        _import(package, here, modules)
        say(f"imported {len(modules)} public modules, with extras: {extras or 'it has none'}")
        here.install("--no-deps", "--reinstall", sdist)
        _versions(package, here)
        _import(package, here, modules)
        say(f"installed {sdist.name}, imported the same modules")


def public_modules(package: Package, wheel: Path) -> list[str]:
    """Give the modules of a wheel whose names have no leading underscore."""
    names: list[str] = []
    for path in map(PurePosixPath, members(wheel)):
        parts = path.with_suffix("").parts
        if path.suffix == ".py":
            dotted = parts[:-1] if parts[-1] == "__init__" else parts
            if not any(part.startswith("_") for part in dotted):
                names.append(".".join(dotted))
    if not names:
        raise ReleaseError(f"{package.name}: {wheel.name} has no public module")
    return sorted(names)


def _commands(package: Package) -> list[str]:
    """The package's commands, and what its manifest wants tried."""
    scripts = package.manifest["project"].get("scripts", {})
    wanted = package.manifest["tool"].get("adk-fluent", {}).get("release", {}).get("smoke", [])
    return [*(f"{name} --version" for name in scripts), *wanted]


def _versions(package: Package, here: _Environment) -> None:
    told, attribute, core = here.python(_VERSION, package.name).split()
    if told != str(package.version) or attribute != core:
        raise ReleaseError(
            f"{package.name} {package.version}: installed, it says {told}; "
            f"adk_fluent.__version__ is {attribute}, core {core}"
        )


def _import(package: Package, here: _Environment, modules: list[str]) -> None:
    lines = here.python(_IMPORTS, json.dumps(modules)).splitlines()
    strays = [line for line in lines if not line.partition(" ")[2].startswith(str(here.path))]
    if len(lines) != len(modules) or strays:
        raise ReleaseError(f"{package.name}: not imported from where it is installed: {strays}")

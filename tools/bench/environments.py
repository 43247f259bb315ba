"""The environments: ours and the monolith's clash in one, so each side has its own."""

from __future__ import annotations

import hashlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PINS = ROOT / "tools" / "constraints" / "adk-2x.txt"
BUILD_PINS = ROOT / "tools" / "constraints" / "hashes.txt"
MONOLITH = "adk-fluent==0.18.0"
#: What both have: a2a-sdk, for ADK 2.x looks for it at every start, and again on every miss.
COMMON = ("google-adk", "a2a-sdk")
TESTING = ("pytest", "pytest-asyncio", "pytest-xdist", "hypothesis", "sqlalchemy[asyncio]")


class BenchError(Exception):
    """The measurement could not be made; the message is for the person at the terminal."""


@dataclass(frozen=True, slots=True)
class Environments:
    """Interpreters.

    Attributes:
        ours: Has what the packages of this workspace need; raw ADK is measured with it, too.
        mono: Has the monolith.
        sources: What of ours is measured; comes before anything installed.
        local: Has google-adk[eval]; None where nothing is measured with it.
    """

    ours: Path
    mono: Path
    sources: tuple[Path, ...]
    local: Path | None = None

    def variables(self, side: str) -> dict[str, str]:
        """The environment variables of a process of a side."""
        kept = {k: v for k, v in os.environ.items() if k not in _UNSET}
        path = [ROOT / "tools", *(() if side in ("adk", "local", "mono") else self.sources)]
        return {**kept, "PYTHONPATH": os.pathsep.join(map(str, path))}

    def python(self, side: str) -> Path:
        """The interpreter of a side."""
        if side == "local" and self.local is not None:
            return self.local
        return self.mono if side == "mono" else self.ours


#: They would keep bytecode from being kept, or tell Python to work differently.
_UNSET = frozenset(
    {
        "PYTHONASYNCIODEBUG",
        "PYTHONDEVMODE",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONHASHSEED",  # each process has its own layout, or all had the same good or bad luck
        "PYTHONPATH",
        "PYTHONWARNINGS",
    }
)


def sources() -> tuple[Path, ...]:
    """The source folders of the packages, core's first."""
    return tuple(sorted((ROOT / "packages").glob("*/src"), key=lambda p: "core" not in str(p)))


def prepare(
    folder: Path,
    ours: Path | None,
    mono: Path | None,
    local: Path | None = None,
    *,
    with_local: bool = False,
) -> Environments:
    """Find or make the environments.

    Args:
        folder: Where those that are made are kept.
        ours: An interpreter that has google-adk, a2a-sdk and what our tests need.
        mono: An interpreter that has the monolith.
        local: An interpreter that has google-adk[eval].
        with_local: Whether that is needed; it is large.
    """
    packages = sorted(path.parent for path in (ROOT / "packages").glob("*/pyproject.toml"))
    editable = [argument for path in packages for argument in ("--editable", str(path))]
    return Environments(
        ours or _made(folder / "ours", [*COMMON, *TESTING, *editable]),
        mono or _made(folder / "mono", [*COMMON, MONOLITH]),
        sources(),
        _made(folder / "local", ["google-adk[eval]", "a2a-sdk"])
        if with_local and local is None
        else local,
    )


def _made(folder: Path, wanted: list[str]) -> Path:
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    recipe = hashlib.sha256("\n".join([PINS.read_text(), *wanted]).encode()).hexdigest()
    stamp = folder / "bench.recipe"
    if not stamp.exists() or stamp.read_text() != recipe:
        _uv("venv", "--quiet", "--clear", "--no-project", "--python", "3.11", str(folder))
        pins = ("--constraints", str(PINS), "--build-constraints", str(BUILD_PINS))
        options = ("--quiet", "--no-config", "--compile-bytecode", "--python", str(python))
        _uv("pip", "install", *options, *pins, *wanted)
        stamp.write_text(recipe)
    return python


def _uv(*arguments: str) -> None:
    try:
        done = subprocess.run(["uv", *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise BenchError("uv is not installed; `pip install uv`") from None
    if done.returncode:
        raise BenchError(f"uv {arguments[0]} failed:\n{done.stderr.strip()}")

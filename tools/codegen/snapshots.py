"""The checked-in descriptions of ADK's models, one file for each version looked at."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "adk"
CONSTRAINTS = HERE.parent / "constraints"


class CodegenError(Exception):
    """Something a person has to say or do first; the message is for them."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a model.

    Attributes:
        name: Its name.
        type: Its type, as `extract.normal_type` writes types.
        default: ``required``, the value's repr, or a factory's name and ``()``.
        deprecated: Whether its docstring says so.
    """

    name: str
    type: str
    default: str
    deprecated: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The models of one version of ADK: name of the class -> its fields by name."""

    version: str
    classes: Mapping[str, Mapping[str, Field]]


def read(data: Mapping[str, Any]) -> Snapshot:
    """Make a snapshot of what `extract` gives."""
    classes = {
        name: {field["name"]: _field(field) for field in described["fields"]}
        for name, described in data["classes"].items()
    }
    return Snapshot(data["adk"], classes)


def _field(data: Mapping[str, Any]) -> Field:
    default = data["default"]
    match default["kind"]:
        case "required":
            shown = "required"
        case "factory":
            shown = f"{default['of']}()"
        case _:
            shown = default["of"]
    return Field(data["name"], data["type"], shown, data["deprecated"])


def path_of(version: str) -> Path:
    """Where the description of a version is, or belongs."""
    return FOLDER / f"{version}.json"


def load_data(version: str) -> dict[str, Any]:
    """Read a checked-in file.

    Raises:
        CodegenError: There is none of this version.
    """
    path = path_of(version)
    if not path.exists():
        raise CodegenError(
            f"there is no snapshot of google-adk {version}; with a Python that has it, run: "
            f"python tools/codegen/extract.py > tools/codegen/adk/{version}.json"
        )
    return json.loads(path.read_text("utf-8"))


def load(version: str) -> Snapshot:
    """Read a snapshot."""
    return read(load_data(version))


def load_all() -> list[Snapshot]:
    """Read all snapshots, the oldest version first."""
    return [load(version) for version in sorted((p.stem for p in FOLDER.glob("*.json")), key=order)]


def order(version: str) -> tuple[int, ...]:
    """A version as numbers, to sort by."""
    return tuple(map(int, version.split(".")))


def pinned() -> list[str]:
    """The versions that CI runs on, the oldest first; each has a snapshot."""
    found = {
        version
        for path in CONSTRAINTS.glob("adk-*.txt")
        for version in re.findall(r"^google-adk==(\S+)", path.read_text("utf-8"), re.MULTILINE)
    }
    return sorted(found, key=order)

"""Reports in the formats that other programs read: SARIF 2.1.0 and GitHub's annotations."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.contracts._reports._diagnostic import CODES, OURS, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from adk_fluent.contracts._reports._diagnostic import Code, Diagnostic
    from adk_fluent.ir import Location

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_HOME: Final = "https://github.com/adk-fluent/adk-fluent"
_DOCS: Final = f"{_HOME}/blob/main/packages/{{package}}/docs"
#: The prefixes of the codes of our own packages.
_PACKAGES: Final = {
    OURS: "adk-fluent-core",
    "CST": "adk-fluent-cost",
    "MDW": "adk-fluent-middleware",
    "DST": "adk-fluent-distributed",
    "RMT": "adk-fluent-a2a",
}
_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_COMMANDS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def to_sarif(findings: Iterable[Diagnostic]) -> str:
    """Findings as one SARIF log (OASIS standard, version 2.1.0), which code hosts show beside code.

    Args:
        findings: In the order in which they are shown.
    """
    every = tuple(findings)
    codes = sorted({each.code for each in every})
    driver: dict[str, Any] = {
        "name": "adk-fluent",
        "informationUri": _HOME,
        "rules": [_rule(code) for code in codes],
    }
    try:
        driver["version"] = version("adk-fluent-core")
    except PackageNotFoundError:  # run from a checkout that is not installed
        driver["version"] = "0"
    run = {
        "tool": {"driver": driver},
        "results": [_result(each, codes.index(each.code)) for each in every],
        "columnKind": "unicodeCodePoints",
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(code: str) -> dict[str, Any]:
    known = CODES[code]
    return {
        "id": code,
        "name": known.name,
        "shortDescription": {"text": known.explanation},
        "helpUri": _page(known),
        "defaultConfiguration": {"level": _LEVELS[known.severity]},
    }


def _page(code: Code) -> str:
    """Where people read more about a finding; what is not core's is explained by its authors."""
    package = next((_PACKAGES[each] for each in _PACKAGES if code.code.startswith(each)), None)
    if package is None:
        return f"{_DOCS.format(package=_PACKAGES[OURS])}/running.md#checking"
    return f"{_DOCS.format(package=package)}/errors.md#{code.code}-{code.name}".lower()


def _result(each: Diagnostic, rule: int) -> dict[str, Any]:
    text = f"{each.message}. Help: {each.help}" if each.help else each.message
    result: dict[str, Any] = {
        "ruleId": each.code,
        "ruleIndex": rule,
        "level": _LEVELS[each.severity],
        "message": {"text": text},
    }
    logical = {"name": each.node, "fullyQualifiedName": each.path or each.node, "kind": "member"}
    place: dict[str, Any] = {"logicalLocations": [logical]} if each.node else {}
    if each.location is not None:
        place["physicalLocation"] = _physical(each.location)
    if place:
        result["locations"] = [place]
    related = [
        {
            "id": at,
            "message": {"text": other.message},
            "physicalLocation": _physical(other.location),
        }
        for at, other in enumerate(each.related, 1)
        if other.location is not None
    ]
    if related:
        result["relatedLocations"] = related
    return result


def _physical(location: Location) -> dict[str, Any]:
    artifact = {"uri": _uri(_path(location.file))}
    return {"artifactLocation": artifact, "region": {"startLine": max(location.line, 1)}}


def _path(file: str) -> Path:
    """A file as code hosts find it: relative where it lies below the working directory."""
    path = Path(file)
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _uri(path: Path) -> str:
    """A file as a reference of RFC 3986, in which some characters mean something else."""
    from urllib.parse import quote  # noqa: PLC0415  # slow to import

    return path.as_uri() if path.is_absolute() else quote(path.as_posix())


def to_github(findings: Iterable[Diagnostic]) -> str:
    """Findings as workflow commands of GitHub Actions, one a line, which it shows beside the code.

    Args:
        findings: In the order in which they are shown.
    """
    return "\n".join(_command(each) for each in findings)


def _command(each: Diagnostic) -> str:
    properties = ",".join(f"{name}={_escaped(value, ',:')}" for name, value in _properties(each))
    text = f"{each.message}\nhelp: {each.help}" if each.help else each.message
    return f"::{_COMMANDS[each.severity]} {properties}::{_escaped(text)}"


def _properties(each: Diagnostic) -> Iterator[tuple[str, str]]:
    if each.location is not None:
        yield "file", _path(each.location.file).as_posix()
        yield "line", str(each.location.line)
    yield "title", f"{each.code} {type(each).__name__}"


def _escaped(text: str, more: str = "") -> str:
    """Text in a workflow command, where a line break would begin another one."""
    for char in ("%", "\r", "\n", *more):
        text = text.replace(char, f"%{ord(char):02X}")
    return text

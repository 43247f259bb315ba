"""``adk-fluent doctor``."""

from __future__ import annotations

import platform
import re
import sqlite3
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from adk_fluent._registry import found, layer_errors, slots_in_use
from adk_fluent.cli._failures import FINDINGS, OK
from adk_fluent.cli._keys import KEYS, credentials
from adk_fluent.cli._text import plain
from adk_fluent.cli._versions import installed_version

if TYPE_CHECKING:
    from collections.abc import Callable

ADK_RANGE: Final = ((1, 25), (3, 0))
_MARKS: Final = {True: ("ok  ", "green"), False: ("BAD ", "red"), None: ("note", "yellow")}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        what: What was looked at.
        good: True, False, or None where it is only worth knowing.
        text: What was found and, if not good, what to do.
    """

    what: str
    good: bool | None
    text: str


@click.command()
@click.pass_context
def doctor(ctx: click.Context) -> None:
    """Look at Python, ADK, layers and keys; exit 1 if something is wrong."""
    checks: tuple[Callable[[], list[Finding]], ...] = (
        _python,
        _core,
        _adk,
        _a2a,
        _sqlite,
        _layers,
        _keys,
    )
    findings = [finding for check in checks for finding in check()]
    width = max(len(finding.what) for finding in findings)
    for finding in findings:
        word, colour = _MARKS[finding.good]
        first, *more = plain(finding.text).splitlines()
        click.echo(f"{click.style(word, fg=colour)} {finding.what:<{width}}  {first}")
        for line in more:
            click.echo(f"{'':<{width + 7}}{line.strip()}")
    ctx.exit(FINDINGS if any(finding.good is False for finding in findings) else OK)


def _python() -> list[Finding]:
    text = f"{platform.python_version()} ({platform.system()} {platform.machine()})"
    return [Finding("python", sys.version_info >= (3, 11), text)]


def _core() -> list[Finding]:
    core, old = installed_version("adk-fluent-core"), installed_version("adk-fluent")
    text = core or "not installed; it runs from its sources"
    rows = [Finding("adk-fluent-core", True if core else None, text)]
    if old is not None:
        fix = "pip uninstall adk-fluent && pip install --force-reinstall adk-fluent-core"
        text = f"{old} overwrites files of adk-fluent-core; {fix}"
        rows.append(Finding("adk-fluent", False, text))
    return rows


def _adk() -> list[Finding]:
    adk = installed_version("google-adk")
    if adk is None:
        return [Finding("google-adk", False, "not installed; pip install 'google-adk>=1.25,<3'")]
    numbers = re.match(r"(\d+)\.(\d+)", adk)
    low, high = ADK_RANGE
    fits = numbers is not None and low <= (int(numbers[1]), int(numbers[2])) < high
    try:
        import google.adk.runners  # noqa: F401  # pyright: ignore[reportUnusedImport]  # whether it can be
    except Exception as error:  # noqa: BLE001  # whatever stops it is the finding
        text = f"{adk} cannot be imported: {type(error).__name__}: {error}"
        return [Finding("google-adk", False, text)]
    wanted = "" if fits else "; adk-fluent needs >=1.25,<3"
    return [Finding("google-adk", fits, adk + wanted)]


def _a2a() -> list[Finding]:
    a2a = installed_version("a2a-sdk")
    text = a2a or "not installed: ADK 2.x looks for it again on every run, which takes milliseconds"
    return [Finding("a2a-sdk", True if a2a else None, text)]


def _sqlite() -> list[Finding]:
    return [Finding("sqlite", True, sqlite3.sqlite_version)]


def _layers() -> list[Finding]:
    errors = layer_errors(*slots_in_use())  # imports everything that layers provide
    bad = {each.layer for each in errors}
    rows = [Finding(f"layer {each.layer}", False, str(each)) for each in errors]
    rows += [
        Finding(f"layer {name}", True, str(layer))
        for name, layer in found().items()
        if name not in bad
    ]
    rows.sort(key=lambda each: each.what)
    return rows or [Finding("layers", None, "none installed beside core")]


def _keys() -> list[Finding]:
    name = credentials()
    if name is not None:
        return [Finding("model key", True, f"{name} is set")]
    return [
        Finding("model key", None, f"none; set {KEYS[0]} to use Gemini (the demo runs without)")
    ]

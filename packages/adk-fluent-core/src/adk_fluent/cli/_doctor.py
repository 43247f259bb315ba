"""``adk-fluent doctor``."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import click

from adk_fluent._registry import found
from adk_fluent.cli._failures import FINDINGS, OK
from adk_fluent.cli._run import KEYS
from adk_fluent.errors import LayerError

if TYPE_CHECKING:
    from collections.abc import Callable

ADK_RANGE = ((1, 25), (3, 0))


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
        mark = {True: ("ok  ", "green"), False: ("BAD ", "red"), None: ("note", "yellow")}[
            finding.good
        ]
        click.echo(f"{click.style(mark[0], fg=mark[1])} {finding.what:<{width}}  {finding.text}")
    ctx.exit(FINDINGS if any(finding.good is False for finding in findings) else OK)


def _python() -> list[Finding]:
    text = f"{platform.python_version()} ({platform.system()} {platform.machine()})"
    return [Finding("python", sys.version_info >= (3, 11), text)]


def _core() -> list[Finding]:
    rows = [Finding("adk-fluent-core", True, version("adk-fluent-core"))]
    try:
        old = version("adk-fluent")
    except PackageNotFoundError:
        return rows
    fix = "pip uninstall adk-fluent && pip install --force-reinstall adk-fluent-core"
    return [
        *rows,
        Finding("adk-fluent", False, f"{old} overwrites files of adk-fluent-core; {fix}"),
    ]


def _adk() -> list[Finding]:
    try:
        installed = version("google-adk")
    except PackageNotFoundError:
        return [Finding("google-adk", False, "not installed; pip install 'google-adk>=1.25,<3'")]
    low, high = ADK_RANGE
    fits = low <= tuple(int(part) for part in installed.split(".")[:2]) < high
    try:
        import google.adk.runners  # noqa: F401  # pyright: ignore[reportUnusedImport]  # whether it can be
    except ImportError as error:
        return [Finding("google-adk", False, f"{installed} cannot be imported: {error}")]
    wanted = "" if fits else "; adk-fluent needs >=1.25,<3"
    return [Finding("google-adk", fits, installed + wanted)]


def _a2a() -> list[Finding]:
    try:
        return [Finding("a2a-sdk", True, version("a2a-sdk"))]
    except PackageNotFoundError:
        text = "not installed: ADK 2.x looks for it again on every run, which costs milliseconds"
        return [Finding("a2a-sdk", None, text)]


def _sqlite() -> list[Finding]:
    return [Finding("sqlite", True, sqlite3.sqlite_version)]


def _layers() -> list[Finding]:
    rows: list[Finding] = []
    for name, layer in sorted(found().items()):
        try:
            layer.load()
        except LayerError as error:
            rows.append(Finding(f"layer {name}", False, str(error)))
        else:
            rows.append(Finding(f"layer {name}", True, f"{layer.distribution} {layer.version}"))
    return rows or [Finding("layers", None, "none installed beside core")]


def _keys() -> list[Finding]:
    there = [key for key in KEYS if os.environ.get(key)]
    if there:
        return [Finding("model key", True, f"{' and '.join(there)} is set")]
    return [
        Finding("model key", None, f"none; set {KEYS[0]} to use Gemini (the demo runs without)")
    ]

"""The command line as a person has it: in this process, and as a process of its own."""

from __future__ import annotations

import io
import logging
import os
import subprocess
import sys
from dataclasses import dataclass
from textwrap import dedent
from typing import TYPE_CHECKING, Protocol

import pytest

from adk_fluent._registry import refresh
from adk_fluent.cli import main
from adk_fluent.cli._keys import CLOUD, KEYS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROGRAM = [sys.executable, "-m", "adk_fluent.cli"]


@dataclass
class Done:
    """How a call of the command line ended, and what it printed."""

    code: int
    out: str
    err: str


class Cli(Protocol):
    def __call__(self, *args: str, input: str | bytes = "") -> Done: ...


class Write(Protocol):
    def __call__(self, name: str, source: str) -> Path: ...


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty directory to stand in, no key, and nothing left behind in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in (*KEYS, *CLOUD, "NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    modules, handlers = set(sys.modules), logging.root.handlers[:]
    yield tmp_path
    for name in set(sys.modules) - modules:
        module = sys.modules[name]  # a directory without an __init__.py has a __path__ alone
        if str(tmp_path) in str([getattr(module, at, "") for at in ("__file__", "__path__")]):
            del sys.modules[name]
    logging.root.handlers[:] = handlers
    monkeypatch.undo()
    refresh()


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Put a file where the person stands."""

    def write(name: str, source: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(source), "utf-8")
        return path

    return write


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command line, called in this process."""

    def call(*args: str, input: str | bytes = "") -> Done:
        data = input.encode() if isinstance(input, str) else input
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), "utf-8"))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(args)
        assert isinstance(ended.value.code, int)
        out, err = capsys.readouterr()
        return Done(ended.value.code, out, err)

    return call


@pytest.fixture
def process() -> Cli:
    """The command line, as a process of its own."""

    def call(*args: str, input: str | bytes = "") -> Done:
        data = input.encode() if isinstance(input, str) else input
        environment = os.environ | {"PYTHONIOENCODING": "utf-8"}
        done = subprocess.run(
            [*PROGRAM, *args], input=data, capture_output=True, check=False, env=environment
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    return call


@pytest.fixture(params=["here", pytest.param("process", marks=[pytest.mark.adk, pytest.mark.full])])
def cli(request: pytest.FixtureRequest) -> Cli:
    """The command line in this process; with ``--full`` as a process of its own, too."""
    return request.getfixturevalue(request.param)
